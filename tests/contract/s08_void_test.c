/* s08_void_test.c - docs/contract.md section 8: giving a key up for good. */
#include "tests/contract/scene.h"

#include <signal.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

START_TEST(rule_8_1_a_key_that_was_not_seen_becomes_a_tombstone)
{
    for (int i = 0; i < 2; i++) { /* now, or before */
        const struct http_answer *voided = void_key("8.1", "");
        EXPECT(voided, 200, "");
        EXPECT_FIELD(voided, "Content-Type", "application/json");
        ck_assert_str_eq(member_of(voided, "key"), "\"8.1\"");
        ck_assert_str_eq(member_of(voided, "state"), "\"voided\"");
        ck_assert_str_eq(member_of(voided, "executions"), "0");
    }
    ck_assert_str_eq(get_status("8.1", "")->body, void_key("8.1", "")->body);
    /* A copy that comes late, whatever its payload. */
    EXPECT_PROBLEM(post("8.1", "x"), 422, "refused", "key-voided");
    EXPECT_PROBLEM(post("8.1", "y"), 422, "refused", "key-voided");
    EXPECT_PROBLEM(ask("PATCH", "/other", "Idempotency-Key: 8.1\r\n", ""), 422, "refused", "key-voided");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_8_1_a_released_command_becomes_a_tombstone_and_its_payload_still_counts)
{
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("8.1-free", "x"), 429, "not-executed");
    const struct http_answer *voided = void_key("8.1-free", "");
    EXPECT(voided, 200, "");
    ck_assert_str_eq(member_of(voided, "state"), "\"voided\"");
    ck_assert_str_eq(member_of(voided, "executions"), "1");
    EXPECT_PROBLEM(post("8.1-free", "x"), 422, "refused", "key-voided");
    EXPECT_PROBLEM(post("8.1-free", "y"), 422, "refused", "key-reused");
    EXPECT_RUNS("8.1-free", 1);
}
END_TEST

START_TEST(rule_8_1_completed_and_unknown_commands_are_not_voidable)
{
    EXPECT(post("8.1-done", "x"), 200, "executed");
    const struct http_answer *done = void_key("8.1-done", "");
    EXPECT_PROBLEM(done, 422, "", "not-voidable");
    ck_assert_str_eq(member_of(done, "state"), "\"completed\"");
    EXPECT(post("8.1-done", "x"), 200, "replayed");
    peer_script_default(scene.peer, reset);
    EXPECT(post("8.1-lost", "x"), 504, "unknown");
    const struct http_answer *lost = void_key("8.1-lost", "");
    EXPECT_PROBLEM(lost, 422, "", "not-voidable");
    ck_assert_str_eq(member_of(lost, "state"), "\"unknown\"");
}
END_TEST

START_TEST(rule_8_1_an_expired_command_is_not_voidable)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    const char *const more[] = { "--set", "max_downtime=365d", NULL };
    scene_pass_time(25 * HOUR_MS, more);
    const struct http_answer *expired = void_key("k", "");
    EXPECT_PROBLEM(expired, 422, "", "not-voidable");
    ck_assert_str_eq(member_of(expired, "state"), "\"expired\"");
    scene_end();
}
END_TEST

START_TEST(rule_8_1_a_running_command_is_in_progress)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "8.1-run");
    EXPECT_PROBLEM(void_key("8.1-run", ""), 409, "", "in-progress");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    EXPECT_PROBLEM(void_key("8.1-run", ""), 422, "", "not-voidable");
}
END_TEST

START_TEST(rule_8_1_a_void_stores_its_callers_digest)
{
    EXPECT(void_key("8.1-mine", "Authorization: Bearer a\r\n"), 200, "");
    const struct http_answer *other = void_key("8.1-mine", "Authorization: Bearer b\r\n");
    EXPECT_PROBLEM(other, 422, "", "key-reused");
    ck_assert_str_eq(member_of(other, "differs"), "[\"credentials\"]");
    const struct http_answer *late = post_with("8.1-mine", "Authorization: Bearer b\r\n", "x");
    EXPECT_PROBLEM(late, 422, "refused", "key-reused");
    ck_assert_str_eq(member_of(late, "differs"), "[\"credentials\"]");
    EXPECT_PROBLEM(post_with("8.1-mine", "Authorization: Bearer a\r\n", "x"), 422, "refused", "key-voided");
    EXPECT_PROBLEM(get_status("8.1-mine", ""), 404, "", "key-not-seen");
}
END_TEST

START_TEST(rule_8_1_anothers_completed_command_is_not_told)
{
    EXPECT(post_with("8.1-theirs", "X-API-Key: a\r\n", "x"), 200, "executed");
    const struct http_answer *other = void_key("8.1-theirs", "X-API-Key: b\r\n");
    EXPECT_PROBLEM(other, 422, "", "key-reused");
    ck_assert_str_eq(member_of(other, "differs"), "[\"credentials\"]");
    EXPECT_LACKS(other, "\"state\"");
    EXPECT_LACKS(other, "\"command\"");
    EXPECT_NO_FIELD(other, "Link");
}
END_TEST

START_TEST(rule_8_1_a_void_is_new_work_and_passes_check_8)
{
    struct caller caller;
    SCENE_START("--set", "running_max=1");
    EXPECT(void_key("before", ""), 200, "");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    for (int i = 0; i < 2; i++) {
        const struct http_answer *refused = void_key("new", "");
        EXPECT_PROBLEM(refused, 503, "", "unavailable");
        ck_assert_str_eq(member_of(refused, "reason"), i == 0 ? "\"overloaded\"" : "\"draining\"");
        EXPECT(void_key("before", ""), 200, "");
        daemon_signal(&scene.nonbis, i == 0 ? SIGTERM : 0);
        ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    }
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(get_status("new", ""), 404, "", "key-not-seen");
    scene_end();
}
END_TEST

START_TEST(rule_8_1_a_void_is_durable_when_it_is_told)
{
    SCENE_START(NULL);
    EXPECT(void_key("k", ""), 200, "");
    daemon_kill(&scene.nonbis);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(post("k", "x"), 422, "refused", "key-voided");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    scene_end();
}
END_TEST

START_TEST(rule_8_1_a_void_asks_for_tenant_and_key)
{
    EXPECT_PROBLEM(void_key("8.1-t", ""), 401, "", "tenant-missing");
    EXPECT_PROBLEM(ask("POST", "/_nonbis/v1/command/void", "X-Tenant: a\r\n", NULL), 400, "", "key-missing");
    EXPECT_PROBLEM(void_key("a b", "X-Tenant: a\r\n"), 400, "", "key-malformed");
    EXPECT(void_key("8.1-t", "X-Tenant: a\r\n"), 200, "");
    EXPECT(post_with("8.1-t", "X-Tenant: b\r\n", "x"), 200, "executed");
    EXPECT_PROBLEM(post_with("8.1-t", "X-Tenant: a\r\n", "x"), 422, "refused", "key-voided");
}
END_TEST

START_TEST(rule_8_2_there_is_no_resolve_yet)
{
    peer_script_default(scene.peer, reset);
    EXPECT(post("8.2", "x"), 504, "unknown");
    EXPECT_PROBLEM(ask("POST", "/_nonbis/v1/command/resolve", "Idempotency-Key: 8.2\r\n", "{}"), 404, "", "not-found");
    EXPECT_PROBLEM(ask("POST", text("%s/resolve", command_path_of(post("8.2", "x"))), NULL, "{}"), 404, "",
                   "not-found");
    const struct http_answer *status = get_status("8.2", "");
    ck_assert_str_eq(member_of(status, "state"), "\"unknown\"");
    ck_assert_str_eq(member_of(status, "resolved"), "false");
}
END_TEST

SUITE(contract_void)
{
    Suite *suite = suite_create("contract/08-void");
    RULE(suite, house_plain, rule_8_1_a_key_that_was_not_seen_becomes_a_tombstone);
    RULE(suite, house_plain, rule_8_1_a_released_command_becomes_a_tombstone_and_its_payload_still_counts);
    RULE(suite, house_plain, rule_8_1_completed_and_unknown_commands_are_not_voidable);
    RULE(suite, house_plain, rule_8_1_a_running_command_is_in_progress);
    RULE(suite, house_plain, rule_8_1_a_void_stores_its_callers_digest);
    RULE(suite, house_plain, rule_8_1_anothers_completed_command_is_not_told);
    RULE(suite, house_plain, rule_8_2_there_is_no_resolve_yet);
    RULE(suite, house_tenants, rule_8_1_a_void_asks_for_tenant_and_key);
    RULE_ALONE(suite, rule_8_1_an_expired_command_is_not_voidable);
    RULE_ALONE(suite, rule_8_1_a_void_is_new_work_and_passes_check_8);
    RULE_ALONE(suite, rule_8_1_a_void_is_durable_when_it_is_told);
    return suite;
}
