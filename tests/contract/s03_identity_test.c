/* s03_identity_test.c - docs/contract.md section 3: whose key it is, under which credential, for which payload. */
#include "tests/contract/scene.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <arpa/inet.h>

/* --- tenant --- */

START_TEST(rule_3_1_with_one_tenant_no_field_is_asked_for)
{
    EXPECT(post_with("3.1-one", "", "x"), 200, "executed");
    EXPECT(post_with("3.1-one", "X-Tenant: a\r\n", "x"), 200, "replayed");
}
END_TEST

static const char *const no_tenants[] = {
    "",
    "X-Tenant:\r\n",
    "X-Tenant: \t\r\n",
    "X-Tenant: a\r\nX-Tenant: a\r\n",
    "X-Tenant: a\r\nx-tenant:\r\n",
    "X-Tenants: a\r\n",
};

START_TEST(rule_3_1_a_tenant_that_is_missing_empty_or_given_twice_is_refused)
{
    EXPECT_PROBLEM(post_with("3.1", no_tenants[_i], "x"), 401, "", "tenant-missing");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_3_1_a_tenant_has_255_bytes_at_most)
{
    char name[257];
    memset(name, 't', sizeof name - 1);
    name[256] = '\0';
    EXPECT_PROBLEM(post_with("3.1-long", text("X-Tenant: %s\r\n", name), "x"), 401, "", "tenant-missing");
    name[255] = '\0';
    EXPECT(post_with("3.1-long", text("X-Tenant: %s\r\n", name), "x"), 200, "executed");
    EXPECT(post_with("3.1-long", text("X-Tenant: %s\r\n", name), "x"), 200, "replayed");
}
END_TEST

/* An address of this machine that is no loopback address; traffic to it stays on the machine all the same. */
static bool find_own_address(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    ck_assert_int_eq(getifaddrs(&all), 0);
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET) {
            struct in_addr in = ((const struct sockaddr_in *) (const void *) one->ifa_addr)->sin_addr;
            found = ntohl(in.s_addr) >> 24 != 127 && inet_ntop(AF_INET, &in, out, (socklen_t) size) != NULL;
        }
    }
    freeifaddrs(all);
    return found;
}

START_TEST(rule_3_1_the_tenant_field_is_believed_from_loopback_peers_only)
{
    char own[64];
    if (!find_own_address(own, sizeof own)) {
        FIGURE("a tenant from somebody else: not tested, this machine has loopback addresses only");
        return;
    }
    SCENE_START("--set", "tenant=header:X-Tenant", "--listen", text("%s:0", own));
    EXPECT_PROBLEM(post_with("3.1-other", "X-Tenant: a\r\n", "x"), 401, "", "tenant-missing");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    scene_end();
}
END_TEST

START_TEST(rule_3_2_the_same_key_of_two_tenants_is_two_commands)
{
    handler_answers("HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\na");
    EXPECT(post_with("3.2", "X-Tenant: a\r\n", "x"), 201, "executed");
    handler_answers("HTTP/1.1 202 Taken\r\nContent-Length: 1\r\n\r\nb");
    EXPECT(post_with("3.2", "X-Tenant: b\r\n", "x"), 202, "executed");
    EXPECT(post_with("3.2", "X-Tenant: B\r\n", "y"), 202, "executed");
    const struct http_answer *again = post_with("3.2", "X-Tenant: a\r\n", "x");
    EXPECT(again, 201, "replayed");
    ck_assert_str_eq(again->body, "a");
    EXPECT(post_with("3.2", "X-Tenant: b\r\n", "x"), 202, "replayed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 3);
}
END_TEST

START_TEST(rule_3_2_tenant_and_key_are_two_fields)
{
    EXPECT(post_with("bc-3.2", "X-Tenant: a\r\n", "x"), 200, "executed");
    EXPECT(post_with("c-3.2", "X-Tenant: ab\r\n", "x"), 200, "executed");
    EXPECT(post_with("abc-3.2", "X-Tenant: \"\"\r\n", "x"), 200, "executed");
    EXPECT(post_with("b,c-3.2", "X-Tenant: a\r\n", "x"), 200, "executed");
    EXPECT(post_with("c-3.2", "X-Tenant: a,b\r\n", "x"), 200, "executed");
}
END_TEST

/* --- guard --- */

static const char *const guarded[][2] = {
    /* first, then */
    { "Authorization: Bearer a\r\n", "Authorization: Bearer b\r\n" },
    { "Authorization: Bearer a\r\n", "Authorization: bearer a\r\n" },
    { "Authorization: Bearer a\r\n", "" },
    { "", "Authorization: Bearer a\r\n" },
    { "X-API-Key: a\r\n", "X-API-Key: b\r\n" },
    { "X-API-Key: a\r\n", "" },
    { "", "X-API-Key:\r\n" },
    { "Authorization: a\r\n", "X-API-Key: a\r\n" },
    { "Authorization: a\r\nX-API-Key: b\r\n", "Authorization: b\r\nX-API-Key: a\r\n" },
};

START_TEST(rule_3_3_the_guard_is_over_authorization_and_x_api_key_and_absent_is_a_value)
{
    const char *key = text("3.3-%d", _i);
    EXPECT(post_with(key, guarded[_i][0], "x"), 200, "executed");
    EXPECT_PROBLEM(post_with(key, guarded[_i][1], "x"), 422, "refused", "key-reused");
    EXPECT(post_with(key, guarded[_i][0], "x"), 200, "replayed");
    EXPECT_RUNS(key, 1);
}
END_TEST

START_TEST(rule_3_3_an_empty_list_turns_the_guard_off)
{
    SCENE_START("--set", "guard=");
    EXPECT(post_with("k", "Authorization: Bearer a\r\n", "x"), 200, "executed");
    EXPECT(post_with("k", "X-API-Key: b\r\n", "x"), 200, "replayed");
    scene_end();
}
END_TEST

START_TEST(rule_3_3_another_list_guards_what_it_names)
{
    SCENE_START("--set", "guard=X-Signature");
    EXPECT(post_with("k", "X-Signature: a\r\nAuthorization: Bearer a\r\n", "x"), 200, "executed");
    EXPECT(post_with("k", "X-Signature: a\r\nAuthorization: Bearer b\r\n", "x"), 200, "replayed");
    EXPECT_PROBLEM(post_with("k", "X-Signature: b\r\n", "x"), 422, "refused", "key-reused");
    scene_end();
}
END_TEST

/* Whether a file holds these words; false when it is not there. */
static bool file_holds(const char *path, const char *words)
{
    enum { MANY = 4 * 1024 * 1024 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = malloc(MANY);
    ssize_t len = fd < 0 ? 0 : read(fd, bytes, MANY);
    bool found = len > 0 && memmem(bytes, (size_t) len, words, strlen(words)) != NULL;
    free(bytes);
    if (fd >= 0) {
        close(fd);
    }
    return found;
}

START_TEST(rule_3_3_a_credential_is_stored_as_a_digest_only)
{
    SCENE_START(NULL);
    EXPECT(post_with("key-of-the-3.3-row", "Authorization: Bearer open-sesame\r\nX-API-Key: sim-sala-bim\r\n", "x"),
           200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    ck_assert(file_holds(scene.store, "key-of-the-3.3-row"));
    ck_assert(!file_holds(scene.store, "open-sesame"));
    ck_assert(!file_holds(scene.store, "sim-sala-bim"));
    ck_assert(!daemon_logged(&scene.nonbis, "open-sesame"));
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_3_4_under_another_credential_the_key_is_refused_and_nothing_else_is_told)
{
    static const char *const told[] = { "\"command\"", "\"executed\"", "\"state\"", "\"body\"", "\"target\"" };
    EXPECT(post_with("3.4", "Authorization: Bearer a\r\n", "x"), 200, "executed");
    /* Another payload too: it is still the credential alone. */
    for (int i = 0; i < 2; i++) {
        const struct http_answer *other =
            post_with("3.4", "Authorization: Bearer b\r\n", i == 0 ? "x" : "another body");
        EXPECT_PROBLEM(other, 422, "refused", "key-reused");
        ck_assert_str_eq(member_of(other, "differs"), "[\"credentials\"]");
        ck_assert_str_eq(member_of(other, "retryable"), "false");
        for (size_t j = 0; j < sizeof told / sizeof told[0]; j++) {
            EXPECT_LACKS(other, told[j]);
        }
        EXPECT_NO_FIELD(other, "Link");
        EXPECT_NO_FIELD(other, "Idempotency-Expires");
    }
    EXPECT_RUNS("3.4", 1);
}
END_TEST

START_TEST(rule_3_4_a_status_query_under_another_credential_sees_404)
{
    EXPECT(post_with("3.4-s", "Authorization: Bearer a\r\n", "x"), 200, "executed");
    ck_assert_int_eq(get_status("3.4-s", "Authorization: Bearer a\r\n")->status, 200);
    EXPECT_PROBLEM(get_status("3.4-s", "Authorization: Bearer b\r\n"), 404, "", "key-not-seen");
    EXPECT_PROBLEM(get_status("3.4-s", ""), 404, "", "key-not-seen");
}
END_TEST

START_TEST(rule_3_5_a_released_record_forgets_the_credential)
{
    handler_answers("HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n");
    EXPECT(post_with("3.5", "Authorization: Bearer stale\r\n", "x"), 401, "not-executed");
    handler_answers("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    EXPECT(post_with("3.5", "Authorization: Bearer fresh\r\n", "x"), 201, "executed");
    ck_assert_str_eq(handler_saw_field(2, "Authorization"), "Bearer fresh");
    ck_assert_str_eq(handler_saw_field(2, "Nonbis-Execution"), "2");
    EXPECT_PROBLEM(post_with("3.5", "Authorization: Bearer stale\r\n", "x"), 422, "refused", "key-reused");
    EXPECT(post_with("3.5", "Authorization: Bearer fresh\r\n", "x"), 201, "replayed");
}
END_TEST

START_TEST(rule_3_6_the_start_says_what_clients_with_changing_tokens_need)
{
    SCENE_START(NULL);
    ck_assert(
        daemon_logged(&scene.nonbis, "a repeat under another Authorization,X-API-Key is refused (setting guard)"));
    ck_assert(daemon_logged(&scene.nonbis, "--set guard= "));
    ck_assert(daemon_logged(&scene.nonbis, "--set tenant=header:NAME"));
    scene_end();
}
END_TEST

START_TEST(rule_3_6_a_tenant_field_does_not_narrow_the_guard_by_itself)
{
    EXPECT(post_with("3.6", "X-Tenant: a\r\nAuthorization: Bearer a\r\n", "x"), 200, "executed");
    EXPECT_PROBLEM(post_with("3.6", "X-Tenant: a\r\nAuthorization: Bearer b\r\n", "x"), 422, "refused", "key-reused");
}
END_TEST

START_TEST(rule_3_6_the_changing_field_is_taken_out_of_the_guard)
{
    SCENE_START("--set", "tenant=header:X-Tenant", "--set", "guard=X-API-Key");
    EXPECT(post_with("3.6", "X-Tenant: a\r\nAuthorization: Bearer a\r\n", "x"), 200, "executed");
    EXPECT(post_with("3.6", "X-Tenant: a\r\nAuthorization: Bearer b\r\n", "x"), 200, "replayed");
    scene_end();
}
END_TEST

/* --- start --- */

START_TEST(rule_3_11_a_start_with_another_tenant_source_or_guard_is_refused)
{
    static const char *const others[] = {
        "tenant=header:X-Tenant",        "guard=", "guard=Authorization", "guard=X-API-Key,Authorization",
        "guard=authorization,X-API-Key",
    };
    const char *said;
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *const more[] = { "--set", others[i], NULL };
        int exit_code = scene_refusal(more, &said);
        ck_assert_msg(exit_code == 74, "%s: exit code %d: %s", others[i], exit_code, said);
    }
    /* With the old settings it starts, and remembers. */
    SCENE_RESTART("--set", "tenant=none", "--set", "guard=Authorization,X-API-Key");
    EXPECT(post("k", "x"), 200, "replayed");
    scene_end();
}
END_TEST

SUITE(contract_identity)
{
    Suite *suite = suite_create("contract/03-identity");
    RULE(suite, house_plain, rule_3_1_with_one_tenant_no_field_is_asked_for);
    RULE_ROWS(suite, house_plain, rule_3_3_the_guard_is_over_authorization_and_x_api_key_and_absent_is_a_value,
              guarded);
    RULE(suite, house_plain, rule_3_4_under_another_credential_the_key_is_refused_and_nothing_else_is_told);
    RULE(suite, house_plain, rule_3_4_a_status_query_under_another_credential_sees_404);
    RULE(suite, house_plain, rule_3_5_a_released_record_forgets_the_credential);
    RULE_ROWS(suite, house_tenants, rule_3_1_a_tenant_that_is_missing_empty_or_given_twice_is_refused, no_tenants);
    RULE(suite, house_tenants, rule_3_1_a_tenant_has_255_bytes_at_most);
    RULE(suite, house_tenants, rule_3_2_the_same_key_of_two_tenants_is_two_commands);
    RULE(suite, house_tenants, rule_3_2_tenant_and_key_are_two_fields);
    RULE(suite, house_tenants, rule_3_6_a_tenant_field_does_not_narrow_the_guard_by_itself);
    RULE_ALONE(suite, rule_3_1_the_tenant_field_is_believed_from_loopback_peers_only);
    RULE_ALONE(suite, rule_3_6_the_changing_field_is_taken_out_of_the_guard);
    RULE_ALONE(suite, rule_3_3_an_empty_list_turns_the_guard_off);
    RULE_ALONE(suite, rule_3_3_another_list_guards_what_it_names);
    RULE_ALONE(suite, rule_3_3_a_credential_is_stored_as_a_digest_only);
    RULE_ALONE(suite, rule_3_6_the_start_says_what_clients_with_changing_tokens_need);
    RULE_ALONE(suite, rule_3_11_a_start_with_another_tenant_source_or_guard_is_refused);
    return suite;
}
