/* tenant_field_test.c - how the field that names the tenant is read (docs/contract.md 3.1, 3.2): nothing that could be read in two ways is taken, and what is
 * taken is compared byte for byte. Executions are counted at the handler, which gives back the request as it received it. */
#include "tests/support/rig.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"
#define COMMANDS "/_nonbis/v1/commands/"

static const char *const by_tenant[] = { "--set", "tenant=header:X-Tenant", NULL };
static const struct peer_step echo[] = { { PEER_BODY, NULL, 0 }, { PEER_ECHO, NULL, 0 }, PEER_END };

#define TEN(text) text text text text text text text text text text
#define BYTES_250 TEN("0123456789012345678901234")

static struct rig rig;

static struct http_answer ask(const char *method, const char *target, const char *key, const char *fields,
                              const char *body)
{
    char text[2048];
    (void) snprintf(text, sizeof text, "Idempotency-Key: %s\r\n%s", key, fields);
    return http_request(rig.address, method, target, text, body);
}

/* --- what names no tenant --- */

static const struct {
    const char *what, *fields;
} refused[] = {
    { "missing", "" },
    { "empty", "X-Tenant:\r\n" },
    { "blanks", "X-Tenant: \t \r\n" },
    { "twice, the same", "X-Tenant: a\r\nX-Tenant: a\r\n" },
    { "twice, another", "X-Tenant: a\r\nX-Tenant: b\r\n" },
    { "twice, the first empty", "X-Tenant:\r\nX-Tenant: a\r\n" },
    { "twice, the second empty", "X-Tenant: a\r\nX-Tenant:\r\n" },
    { "twice, in two cases", "X-Tenant: a\r\nHmm: x\r\nx-tenant: a\r\n" },
    { "a name that is longer", "X-Tenant-Id: a\r\n" },
    { "a name that is shorter", "X-Tenan: a\r\n" },
    { "another name", "Tenant: a\r\n" },
    { "256 bytes", "X-Tenant: " BYTES_250 "012345\r\n" },
};

static const struct {
    const char *method, *target, *body;
} asked[] = {
    { "POST", "/orders", "x" },    { "PATCH", "/orders/1", "x" },
    { "GET", STATUS, NULL },       { "HEAD", STATUS, NULL },
    { "GET", RESPONSE, NULL },     { "GET", COMMANDS "00112233445566778899aabbccddeeff", NULL },
    { "GET", COMMANDS "1", NULL }, { "POST", VOID, NULL },
    { "POST", VOID, "{}" },
};

START_TEST(without_one_tenant_everything_about_keys_is_refused_before_the_key_is_read)
{
    rig_start(&rig, by_tenant);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        for (size_t j = 0; j < sizeof asked / sizeof asked[0]; j++) {
            for (int bad_key = 0; bad_key < 2; bad_key++) {
                struct http_answer answer =
                    ask(asked[j].method, asked[j].target, bad_key ? "\"" : "k-1", refused[i].fields, asked[j].body);
                bool head = strcmp(asked[j].method, "HEAD") == 0;
                ck_assert_msg(answer.status == 401, "%s: %s %s: %d: %s", refused[i].what, asked[j].method,
                              asked[j].target, answer.status, answer.body);
                ck_assert(head || strstr(answer.body, "\"type\":\"urn:nonbis:problem:tenant-missing\"") != NULL);
                ck_assert(head || strstr(answer.body, "\"retryable\":false,\"executed\":\"unknown\"}") != NULL);
                ck_assert_int_eq(http_field_count(&answer, "Idempotency-Status"), 0);
                ck_assert_int_eq(http_field_count(&answer, "Link"), 0);
                http_answer_free(&answer);
            }
        }
    }
    /* Nothing of it left a trace, with whoever it might have been taken for. */
    static const char *const perhaps[] = { "X-Tenant: a\r\n", "X-Tenant: b\r\n", "X-Tenant: a, a\r\n",
                                           "X-Tenant: " BYTES_250 "01234\r\n" };
    for (size_t i = 0; i < sizeof perhaps / sizeof perhaps[0]; i++) {
        struct http_answer answer = ask("GET", STATUS, "k-1", perhaps[i], NULL);
        ck_assert_int_eq(answer.status, 404);
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    /* What is for everybody, and what is not ours, needs none. */
    struct http_answer contract = http_request(rig.address, "GET", "/_nonbis/v1", NULL, NULL);
    ck_assert_int_eq(contract.status, 200);
    struct http_answer passing = http_request(rig.address, "GET", "/orders/1", NULL, NULL);
    ck_assert_int_eq(passing.status, 200);
    http_answer_free(&contract);
    http_answer_free(&passing);
    rig_end(&rig);
}
END_TEST

/* --- what names one: pairs of tenant and key, all different --- */

static const struct {
    const char *tenant, *key;
} pairs[] = {
    { "a", "k" },
    { "A", "k" },
    { "a", "K" },
    { "a/b", "k" },
    { "a:b", "k" },
    { "a\\b", "k" },
    { "%00", "k" },
    { "a%00b", "k" },
    { "%61", "k" },
    { "\"a\"", "k" },
    { "\"", "k" },
    { "'", "k" },
    { "a'; DROP TABLE commands; --", "k" },
    { "a,b", "k" },
    { "a, b", "k" },
    { "a b", "k" },
    { "a  b", "k" },
    { "a\tb", "k" },
    { "a;b=c", "k" },
    { "<a>", "k" },
    { "*", "k" },
    { "%", "k" },
    { "_", "k" },
    { "\xc3\xa9", "k" },  /* e acute, UTF-8, composed */
    { "e\xcc\x81", "k" }, /* decomposed */
    { "\xe9", "k" },      /* Latin-1 */
    { "\xff\xfe", "k" },  /* no UTF-8 at all */
    { "\xf0\x9f\x90\x98", "k" },
    { "\xc2\xa0", "k" }, /* a blank that is none */
    { "none", "k" },
    { "header:X-Tenant", "k" },
    { "0", "k" },
    { "00", "k" },
    { "NULL", "k" },
    { BYTES_250 "01234", "k" },
    { BYTES_250 "01235", "k" },
    { BYTES_250 "0123", "k" },
    /* The same bytes when one is written behind the other. */
    { "ab", "c" },
    { "a", "bc" },
    { "abc", "d" },
    { "ab", "cd" },
    { "a", "bcd" },
    { "x:", "y" },
    { "x", ":y" },
    { "x/y", "z" },
    { "x", "/yz" },
    { "x/", "yz" },
    { "1", "11" },
    { "11", "1" },
    { BYTES_250 "01234", BYTES_250 "01234" },
    { BYTES_250 "0123", "4" BYTES_250 "0123" },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static const char *fields_of(size_t i)
{
    static char fields[512];
    (void) snprintf(fields, sizeof fields, "X-Tenant: %s\r\n", pairs[i].tenant);
    return fields;
}

/* The handler's answer to this pair, which names it; `link` is noted or compared. */
static void expect_own(size_t i, const char *word, char link[256])
{
    char tenant[512], key[512], seen[256];
    struct http_answer answer = ask("POST", "/orders", pairs[i].key, fields_of(i), "x");
    RIG_EXPECT(answer, 200, word);
    (void) snprintf(tenant, sizeof tenant, "\r\nX-Tenant: %s\r\n", pairs[i].tenant);
    (void) snprintf(key, sizeof key, "\r\nIdempotency-Key: %s\r\n", pairs[i].key);
    ck_assert_msg(strstr(answer.body, tenant) != NULL && strstr(answer.body, key) != NULL, "'%s' '%s' was answered %s",
                  pairs[i].tenant, pairs[i].key, answer.body);
    ck_assert(http_field(&answer, "Link", seen, sizeof seen));
    if (link[0] == '\0') {
        (void) snprintf(link, 256, "%s", seen);
    }
    ck_assert_str_eq(link, seen);
    http_answer_free(&answer);
}

START_TEST(tenants_and_keys_that_differ_in_a_byte_or_in_where_they_are_cut_stay_apart)
{
    static char links[PAIRS][256];
    rig_start(&rig, by_tenant);
    peer_script_default(rig.peer, echo);
    for (size_t i = 0; i < PAIRS; i++) {
        expect_own(i, "executed", links[i]);
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(links[i], links[j]);
        }
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), PAIRS);
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; i < PAIRS; i++) {
            char own[128];
            expect_own(i, "replayed", links[i]);
            struct http_answer by_key = ask("GET", STATUS, pairs[i].key, fields_of(i), NULL);
            ck_assert(http_field_is(&by_key, "Link", links[i]));
            /* By id: its own tenant's, also of pairs of this tenant alone. */
            size_t next = (i + 1) % PAIRS;
            (void) snprintf(own, sizeof own, "%.*s", (int) strcspn(links[next] + 1, ">"), links[next] + 1);
            bool mine = strcmp(pairs[i].tenant, pairs[next].tenant) == 0;
            struct http_answer by_id = ask("GET", own, "none", fields_of(i), NULL);
            ck_assert_int_eq(by_id.status, mine ? 200 : 404);
            http_answer_free(&by_key);
            http_answer_free(&by_id);
        }
        if (run == 0) { /* what is compared now comes from the disk */
            ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
            rig_restart(&rig, by_tenant);
        }
    }
    FIGURE("tenant field: %d pairs of tenant and key stay apart", (int) PAIRS);
    ck_assert_uint_eq(peer_count_requests(rig.peer), PAIRS);
    rig_end(&rig);
}
END_TEST

START_TEST(the_case_of_the_name_and_the_blanks_around_the_value_do_not_count)
{
    static const char *const same[] = { "x-tenant: a\r\n", "X-TENANT:a\r\n", "X-Tenant: \t a \t \r\n" };
    rig_start(&rig, (const char *const[]){ "--set", "tenant=header:x-Tenant", NULL });
    struct http_answer first = ask("POST", "/orders", "k-1", "X-Tenant: a\r\n", "x");
    RIG_EXPECT(first, 200, "executed");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct http_answer answer = ask("POST", "/orders", "k-1", same[i], "x");
        RIG_EXPECT(answer, 200, "replayed");
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    rig_end(&rig);
}
END_TEST

/* --- who is believed --- */

/* A network of this test's own, with nothing in it but loopback and one address that is none. False: this machine does not allow it. */
static bool network_make(const char *address)
{
    struct ifreq up = { .ifr_name = "lo" }, other = { .ifr_name = "lo:1" };
    struct sockaddr_in *given = (struct sockaddr_in *) (void *) &other.ifr_addr;
    if (unshare(CLONE_NEWNET) != 0) {
        return false;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    up.ifr_flags = IFF_UP | IFF_RUNNING;
    given->sin_family = AF_INET;
    inet_pton(AF_INET, address, &given->sin_addr);
    bool made = ioctl(fd, SIOCSIFFLAGS, &up) == 0 && ioctl(fd, SIOCSIFADDR, &other) == 0;
    close(fd);
    return made;
}

START_TEST(the_field_is_believed_from_loopback_alone)
{
    static const char *const everywhere[] = { "0.0.0.0:0", "[::]:0" };
    static const char *const mine = "X-Tenant: a\r\nX-Forwarded-For: 127.0.0.1\r\n";
    if (!network_make("10.9.8.7")) {
        FIGURE("tenant field from elsewhere: not tested, this machine lets nobody make a network");
        return;
    }
    for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++) {
        char near[64], far[64];
        rig.peer = peer_new();
        (void) snprintf(rig.store, sizeof rig.store, "%s/from-%zu.db", daemon_folder(), i);
        rig_restart(&rig, (const char *const[]){ by_tenant[0], by_tenant[1], "--listen", everywhere[i], NULL });
        const char *port = strrchr(rig.nonbis.listen, ':');
        (void) snprintf(near, sizeof near, "127.0.0.1%s", port);
        (void) snprintf(far, sizeof far, "10.9.8.7%s", port);
        for (size_t j = 0; j < sizeof asked / sizeof asked[0]; j++) {
            rig.address = far;
            struct http_answer answer = ask(asked[j].method, asked[j].target, "k-1", mine, asked[j].body);
            ck_assert_msg(answer.status == 401, "%s %s: %d: %s", asked[j].method, asked[j].target, answer.status,
                          answer.body);
            http_answer_free(&answer);
        }
        ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
        rig.address = near;
        struct http_answer unused = ask("GET", STATUS, "k-1", mine, NULL);
        ck_assert_int_eq(unused.status, 404);
        struct http_answer first = ask("POST", "/orders", "k-1", mine, "x");
        RIG_EXPECT(first, 200, "executed");
        ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
        http_answer_free(&unused);
        http_answer_free(&first);
        rig_end(&rig);
    }
}
END_TEST

SUITE(tenant_field)
{
    Suite *suite = suite_create("integration/tenant_field");
    CASE(suite, without_one_tenant_everything_about_keys_is_refused_before_the_key_is_read);
    CASE(suite, tenants_and_keys_that_differ_in_a_byte_or_in_where_they_are_cut_stay_apart);
    CASE(suite, the_case_of_the_name_and_the_blanks_around_the_value_do_not_count);
    CASE(suite, the_field_is_believed_from_loopback_alone);
    return suite;
}
