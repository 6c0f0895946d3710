/* strangers_test.c - a caller of another tenant, or under another credential, cannot tell a key that somebody uses from one that nobody ever used
 * (docs/contract.md 3.4, 7.4, 10.5): not by a byte of an answer, whatever state the command is in. What is told to him is literal here. */
#include "tests/support/rig.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"
#define COMMANDS "/_nonbis/v1/commands/"

static const char *const more[] = { "--set",   "tenant=header:X-Tenant", "--set",   "response_keep_max=16",
                                    "--route", "POST /short ttl=1s",     "--route", "POST /orders",
                                    NULL };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };
static const struct peer_step large[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 40\r\n\r\n", 0 },
                                          { PEER_SEND, "0123456789", 4 },
                                          PEER_END };

/* A command in a state; its owner asks for it by these fields. */
enum { STATE_RUNNING, STATE_RELEASED = 4, STATE_EXPIRED = 7, STATES };
static const struct {
    const char *name, *script, *target;
    const char *told; /* in the owner's own status */
    bool voided;
} states[STATES] = {
    [STATE_RUNNING] = { "in-progress", "held", "/orders", "\"state\":\"in_progress\"", false },
    { "completed", "", "/orders", "\"state\":\"completed\"", false },
    { "not-kept", "large", "/orders", "\"kept\":false", false },
    { "unknown", "lost", "/orders", "\"state\":\"unknown\"", false },
    [STATE_RELEASED] = { "released", "busy", "/orders", "\"state\":\"released\"", false },
    { "voided-unseen", NULL, NULL, "\"state\":\"voided\"", true },
    { "voided-released", "busy", "/orders", "\"state\":\"voided\"", true },
    [STATE_EXPIRED] = { "expired", "", "/short", "\"state\":\"expired\"", false },
};

struct owner {
    const char *fields; /* tenant and credential */
    const char *prefix; /* of its keys */
    char urls[STATES][128];
    struct http_answer running;
    pthread_t thread;
};
static struct owner owners[] = {
    { .fields = "X-Tenant: b\r\nAuthorization: Bearer mine\r\n", .prefix = "b" },  /* another tenant */
    { .fields = "X-Tenant: a\r\nAuthorization: Bearer other\r\n", .prefix = "a" }, /* another credential */
};
enum { OWNER_TENANT, OWNER_CREDENTIAL, OWNERS };

static const char *const me = "X-Tenant: a\r\nAuthorization: Bearer mine\r\n";

static struct rig rig;

static const char *key_of(const struct owner *owner, int state)
{
    static _Thread_local char key[64];
    (void) snprintf(key, sizeof key, "%s-%s", owner->prefix, states[state].name);
    return key;
}

static struct http_answer ask(const char *method, const char *target, const char *key, const char *fields,
                              const char *body)
{
    char text[1024];
    (void) snprintf(text, sizeof text, "%s%s%s%s", key != NULL ? "Idempotency-Key: " : "", key != NULL ? key : "",
                    key != NULL ? "\r\n" : "", fields);
    return http_request(rig.address, method, target, text, body);
}

/* --- commands of others, in every state --- */

static void owner_post(const struct owner *owner, int state, struct http_answer *answer)
{
    char fields[256];
    (void) snprintf(fields, sizeof fields, "%sContent-Type: text/plain\r\nX-Script: %s\r\n", owner->fields,
                    states[state].script);
    *answer = ask("POST", states[state].target, key_of(owner, state), fields, "x");
}

static void *owner_run(void *context)
{
    struct owner *owner = context;
    owner_post(owner, STATE_RUNNING, &owner->running);
    return NULL;
}

static void owner_make(struct owner *owner, int state)
{
    struct http_answer answer = { 0 };
    if (states[state].script != NULL) {
        owner_post(owner, state, &answer);
        ck_assert_int_ne(answer.status, 0);
        http_answer_free(&answer);
    }
    if (states[state].voided) {
        answer = ask("POST", VOID, key_of(owner, state), owner->fields, NULL);
        ck_assert_int_eq(answer.status, 200);
        http_answer_free(&answer);
    }
}

/* Asks as the owner until the state is there (only `expired` takes time), and notes the command's own path. */
static void owner_expect(struct owner *owner, int state)
{
    char link[256];
    struct http_answer status = ask("GET", STATUS, key_of(owner, state), owner->fields, NULL);
    while (status.status == 200 && state == STATE_EXPIRED && strstr(status.body, states[state].told) == NULL) {
        http_answer_free(&status);
        status = ask("GET", STATUS, key_of(owner, state), owner->fields, NULL);
    }
    ck_assert_msg(status.status == 200 && strstr(status.body, states[state].told) != NULL, "%s: %s", states[state].name,
                  status.body);
    ck_assert(http_field(&status, "Link", link, sizeof link));
    (void) snprintf(owner->urls[state], sizeof owner->urls[state], "%.*s", (int) strcspn(link + 1, ">"), link + 1);
    ck_assert_uint_eq(strlen(owner->urls[state]), strlen(COMMANDS) + 32);
    http_answer_free(&status);
}

/* The first `count` states; the last one, expired, takes its second. */
static void commands_make(int count)
{
    rig_start(&rig, more);
    peer_script_named(rig.peer, "held", held);
    peer_script_named(rig.peer, "lost", lost);
    peer_script_named(rig.peer, "busy", busy);
    peer_script_named(rig.peer, "large", large);
    for (int i = 0; i < OWNERS; i++) {
        pthread_create(&owners[i].thread, NULL, owner_run, &owners[i]);
        for (int state = STATE_RUNNING + 1; state < count; state++) {
            owner_make(&owners[i], state);
        }
    }
    ck_assert(peer_wait_stalled(rig.peer, OWNERS));
    for (int i = 0; i < OWNERS; i++) {
        for (int state = 0; state < count; state++) {
            owner_expect(&owners[i], state);
        }
    }
}

static void commands_end(void)
{
    peer_release(rig.peer, OWNERS);
    for (int i = 0; i < OWNERS; i++) {
        pthread_join(owners[i].thread, NULL);
        RIG_EXPECT(owners[i].running, 201, "executed");
        http_answer_free(&owners[i].running);
    }
    rig_end(&rig);
}

/* --- what cannot be the same in two answers --- */

static void replace(char *text, const char *before, const char *end, const char *with)
{
    char *from = strstr(text, before);
    ck_assert_msg(from != NULL, "no '%s' in %s", before, text);
    from += strlen(before);
    char *to = from + strcspn(from, end);
    memmove(from + strlen(with), to, strlen(to) + 1);
    memcpy(from, with, strlen(with));
}

/* The answer as text, with # for Date, for the number of the request in `instance`, and with a length as if that had one digit. */
static unsigned long normal_form(const struct http_answer *answer, char *out, size_t size)
{
    char value[64], length[32];
    (void) snprintf(out, size, "%s\r\n\r\n%s", answer->head, answer->body);
    const char *instance = strstr(answer->body, "\"instance\":\"urn:nonbis:request:");
    ck_assert_ptr_nonnull(instance);
    instance = strchr(instance, '-') + 1;
    unsigned long number = strtoul(instance, NULL, 10);
    size_t digits = strspn(instance, "0123456789");
    ck_assert(http_field(answer, "Content-Length", value, sizeof value));
    ck_assert_uint_eq(strtoul(value, NULL, 10), answer->body_len);
    (void) snprintf(length, sizeof length, "%zu", answer->body_len - digits);
    replace(out, "\r\nContent-Length: ", "\r", length);
    replace(out, "\r\nDate: ", "\r", "#");
    replace(out, "\"instance\":\"urn:nonbis:request:", "\"", "#");
    return number;
}

/* The head alone: of a HEAD, whose request had the next number. */
static void normal_head(const struct http_answer *answer, unsigned long number, char *out, size_t size)
{
    char value[64], digits[32], length[32];
    ck_assert_uint_eq(answer->body_len, 0);
    ck_assert(http_field(answer, "Content-Length", value, sizeof value));
    int count = snprintf(digits, sizeof digits, "%lu", number);
    (void) snprintf(length, sizeof length, "%lu", strtoul(value, NULL, 10) - (unsigned long) count);
    (void) snprintf(out, size, "%s", answer->head);
    replace(out, "\r\nContent-Length: ", "\r", length);
    replace(out, "\r\nDate: ", "\r", "#");
}

static char unused_get[4096], unused_head[4096];

static void get_both(const char *target, const char *key, const char *fields, char get[4096], char head[4096])
{
    struct http_answer first = ask("GET", target, key, fields, NULL), second = ask("HEAD", target, key, fields, NULL);
    ck_assert_msg(first.status == 404 && second.status == 404, "%s %s: %d, HEAD %d: %s", target, key, first.status,
                  second.status, first.body);
    unsigned long number = normal_form(&first, get, 4096);
    normal_head(&second, number + 1, head, 4096);
    http_answer_free(&first);
    http_answer_free(&second);
}

static void expect_as_unused(const char *what, const char *target, const char *key, const char *fields)
{
    char get[4096], head[4096];
    get_both(target, key, fields, get, head);
    ck_assert_msg(strcmp(get, unused_get) == 0, "%s: %s is told apart:\n%s\nwanted:\n%s", what, target, get,
                  unused_get);
    ck_assert_msg(strcmp(head, unused_head) == 0, "%s: HEAD %s is told apart:\n%s\nwanted:\n%s", what, target, head,
                  unused_head);
}

static void expect_told(const char *target, const char *key, const char *fields)
{
    struct http_answer answer = ask("GET", target, key, fields, NULL);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "\"state\":\"released\""));
    http_answer_free(&answer);
}

START_TEST(queries_tell_a_stranger_the_same_bytes_in_every_state_as_of_an_unused_key)
{
    static const char *const no_credential = "X-Tenant: a\r\n";
    static const char *const api_key = "X-Tenant: a\r\nX-API-Key: mine\r\n";
    const char *const callers[] = { me, no_credential, api_key };
    int compared = 0;
    commands_make(STATES);
    unsigned requests = peer_count_requests(rig.peer);
    get_both(STATUS, "unused", me, unused_get, unused_head);
    ck_assert_ptr_nonnull(strstr(unused_get, "\"type\":\"urn:nonbis:problem:key-not-seen\""));
    ck_assert_ptr_null(strstr(unused_get, "Link"));
    ck_assert_ptr_null(strstr(unused_get, "Idempotency-Expires"));
    expect_as_unused("unused", RESPONSE, "unused", me);
    expect_as_unused("unused", COMMANDS "00112233445566778899aabbccddeeff", NULL, me);
    for (int i = 0; i < OWNERS; i++) {
        for (int state = 0; state < STATES; state++) {
            /* A released command has forgotten its credential (3.5): within its tenant everybody is told. */
            bool told = i == OWNER_CREDENTIAL && state == STATE_RELEASED;
            for (size_t j = 0; j < sizeof callers / sizeof callers[0]; j++) {
                const char *key = key_of(&owners[i], state);
                if (told) {
                    expect_told(STATUS, key, callers[j]);
                    expect_told(owners[i].urls[state], NULL, callers[j]);
                } else {
                    expect_as_unused(key, STATUS, key, callers[j]);
                    expect_as_unused(key, owners[i].urls[state], NULL, callers[j]);
                }
                expect_as_unused(key, RESPONSE, key, callers[j]);
                compared += told ? 2 : 6;
            }
        }
    }
    FIGURE("strangers: %d answers compared with that of an unused key, byte for byte", compared);
    ck_assert_uint_eq(peer_count_requests(rig.peer), requests);
    commands_end();
}
END_TEST

/* --- attempts and voids under another credential: the 422 is fixed by the contract, and tells the one thing --- */

static const char *const refused_post =
    "HTTP/1.1 422 Unprocessable Content\r\nDate: #\r\nContent-Type: application/problem+json\r\n"
    "Cache-Control: no-store\r\nIdempotency-Status: refused\r\nContent-Length: 260\r\n\r\n"
    "{\"type\":\"urn:nonbis:problem:key-reused\",\"title\":\"The Idempotency-Key was used for another request.\","
    "\"status\":422,\"detail\":\"this key was used before under another credential\","
    "\"instance\":\"urn:nonbis:request:#\",\"retryable\":false,\"differs\":[\"credentials\"]}";
static const char *const refused_void =
    "HTTP/1.1 422 Unprocessable Content\r\nDate: #\r\nContent-Type: application/problem+json\r\n"
    "Cache-Control: no-store\r\nContent-Length: 260\r\n\r\n"
    "{\"type\":\"urn:nonbis:problem:key-reused\",\"title\":\"The Idempotency-Key was used for another request.\","
    "\"status\":422,\"detail\":\"this key was used before under another credential\","
    "\"instance\":\"urn:nonbis:request:#\",\"retryable\":false,\"differs\":[\"credentials\"]}";

static void expect_refusal(const char *target, const char *key, const char *fields, const char *body,
                           const char *wanted)
{
    char seen[4096];
    struct http_answer answer = ask("POST", target, key, fields, body);
    ck_assert_msg(answer.status == 422, "%s %s: %d %s", target, key, answer.status, answer.body);
    (void) normal_form(&answer, seen, sizeof seen);
    ck_assert_msg(strcmp(seen, wanted) == 0, "%s %s:\n%s\nwanted:\n%s", target, key, seen, wanted);
    http_answer_free(&answer);
}

START_TEST(a_stranger_s_attempt_and_void_are_refused_in_the_same_words_in_every_state)
{
    const struct owner *owner = &owners[OWNER_CREDENTIAL];
    static const char *const plain = "X-Tenant: a\r\nAuthorization: Bearer mine\r\nContent-Type: text/plain\r\n";
    commands_make(STATES);
    unsigned requests = peer_count_requests(rig.peer);
    for (int state = 0; state < STATES; state++) {
        const char *key = key_of(owner, state);
        if (state == STATE_RELEASED) {
            continue;
        }
        expect_refusal(states[state].target != NULL ? states[state].target : "/orders", key, plain, "x", refused_post);
        expect_refusal("/orders", key, plain, "another body", refused_post);
        expect_refusal("/orders?a=1", key, plain, "x", refused_post);
        expect_refusal("/short", key, me, "x", refused_post);
        expect_refusal(VOID, key, me, NULL, refused_void);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), requests);
    commands_end();
}
END_TEST

START_TEST(another_tenant_s_attempts_are_commands_of_its_own_in_whatever_state_is_the_first)
{
    const struct owner *owner = &owners[OWNER_TENANT];
    char link[256];
    commands_make(STATE_EXPIRED);
    unsigned requests = peer_count_requests(rig.peer);
    for (int state = 0; state < STATE_EXPIRED; state++) {
        struct http_answer answer = ask("POST", "/orders", key_of(owner, state), me, "x");
        RIG_EXPECT(answer, 200, "executed");
        ck_assert(http_field(&answer, "Link", link, sizeof link));
        ck_assert_ptr_null(strstr(link, owner->urls[state]));
        http_answer_free(&answer);
        owner_expect(&owners[OWNER_TENANT], state);
        ck_assert_ptr_null(strstr(link, owner->urls[state]));
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), requests + STATE_EXPIRED);
    commands_end();
}
END_TEST

/* --- the time that it takes --- */

enum { TURNS = 400 };

static const char *const timed_names[] = { "unused", "other_tenant_s", "other_credential_s", "other_tenant_s_id",
                                           "other_credential_s_id" };
enum { TIMED = sizeof timed_names / sizeof timed_names[0] };

static int compare_times(const void *a, const void *b)
{
    double left = *(const double *) a, right = *(const double *) b;
    return left < right ? -1 : left > right;
}

static double timed_query(int fd, const char *target, const char *key)
{
    char request[512];
    struct timespec from, to;
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: %s\r\n%s\r\n", target, key, me);
    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert(http_send(fd, request, (size_t) len));
    struct http_answer answer = http_receive(fd, false, NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_eq(answer.status, 404);
    http_answer_free(&answer);
    return (double) (to.tv_sec - from.tv_sec) * 1e6 + (double) (to.tv_nsec - from.tv_nsec) / 1e3;
}

START_TEST(a_stranger_s_query_takes_about_as_long_as_one_about_an_unused_key)
{
    static double times[TIMED][TURNS];
    char text[512];
    int len = 0;
    commands_make(STATE_EXPIRED);
    const struct {
        const char *target, *key;
    } rows[TIMED] = {
        { STATUS, "unused" },
        { STATUS, "b-completed" },
        { STATUS, "a-completed" },
        { owners[OWNER_TENANT].urls[1], "none" },
        { owners[OWNER_CREDENTIAL].urls[1], "none" },
    };
    int fd = http_connect(rig.address);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < TIMED; i++) {
            int row = (turn + i) % TIMED;
            times[row][turn] = timed_query(fd, rows[row].target, rows[row].key);
        }
    }
    close(fd);
    for (int i = 0; i < TIMED; i++) {
        qsort(times[i], TURNS, sizeof(double), compare_times);
        len += snprintf(text + len, sizeof text - (size_t) len, " %s=%.1f", timed_names[i], times[i][TURNS / 2]);
    }
    FIGURE("strangers' queries, medians of %d, in us:%s", TURNS, text);
    for (int i = 1; i < TIMED; i++) {
        ck_assert_msg(times[i][TURNS / 2] < 3 * times[0][TURNS / 2] && times[0][TURNS / 2] < 3 * times[i][TURNS / 2],
                      "%s takes another time", timed_names[i]);
    }
    commands_end();
}
END_TEST

SUITE(strangers)
{
    Suite *suite = suite_create("integration/strangers");
    CASE(suite, queries_tell_a_stranger_the_same_bytes_in_every_state_as_of_an_unused_key);
    CASE(suite, a_stranger_s_attempt_and_void_are_refused_in_the_same_words_in_every_state);
    CASE(suite, another_tenant_s_attempts_are_commands_of_its_own_in_whatever_state_is_the_first);
    CASE(suite, a_stranger_s_query_takes_about_as_long_as_one_about_an_unused_key);
    return suite;
}
