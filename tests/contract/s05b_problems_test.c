/* s05b_problems_test.c - docs/contract.md section 5, the table below 5.2: each problem type once, with every column of its row. */
#include "tests/contract/scene.h"

#include <signal.h>

/* A row of the page. `executed` NULL: not told. `waits`: Retry-After. */
static void expect_row(const struct http_answer *answer, const char *name, int status, const char *executed,
                       bool retryable, const char *word, bool waits)
{
    EXPECT_PROBLEM(answer, status, word, name);
    ck_assert_str_eq(member_of(answer, "retryable"), retryable ? "true" : "false");
    if (executed == NULL) {
        EXPECT_LACKS(answer, "\"executed\"");
    } else {
        ck_assert_str_eq(member_of(answer, "executed"), text("\"%s\"", executed));
    }
    ck_assert_int_eq(http_field_count(answer, "Retry-After"), waits ? 1 : 0);
}

#define RETRYABLE true
#define FINAL false
#define WAITS true

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

START_TEST(rule_5_2_request_malformed)
{
    expect_row(post_with("5.2-a", "Expect: x\r\n", "x"), "request-malformed", 400, "unknown", FINAL, "", false);
}
END_TEST

START_TEST(rule_5_2_key_missing_and_key_malformed)
{
    expect_row(ask("POST", "/orders", NULL, "x"), "key-missing", 400, "unknown", FINAL, "", false);
    expect_row(post("a b", "x"), "key-malformed", 400, "unknown", FINAL, "refused", false);
}
END_TEST

START_TEST(rule_5_2_tenant_missing)
{
    expect_row(post("5.2-b", "x"), "tenant-missing", 401, "unknown", FINAL, "", false);
}
END_TEST

START_TEST(rule_5_2_body_too_large)
{
    expect_row(ASK_RAW("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 5.2-c\r\nContent-Length: 1048577\r\n\r\n"),
               "body-too-large", 413, "unknown", FINAL, "refused", false);
}
END_TEST

START_TEST(rule_5_2_key_reused)
{
    EXPECT(post("5.2-d", "x"), 200, "executed");
    const struct http_answer *reused = post("5.2-d", "y");
    expect_row(reused, "key-reused", 422, NULL, FINAL, "refused", false);
    ck_assert_str_eq(member_of(reused, "differs"), "[\"body\"]");
}
END_TEST

START_TEST(rule_5_2_key_expired)
{
    SCENE_START(NULL);
    EXPECT(post("done", "x"), 200, "executed");
    peer_script_default(scene.peer, reset);
    EXPECT(post("lost", "x"), 504, "unknown");
    const char *const years[] = { "--set", "max_downtime=365d", NULL };
    scene_pass_time(25 * HOUR_MS, years);
    expect_row(post("done", "x"), "key-expired", 422, "yes", FINAL, "refused", false);
    scene_pass_time(30 * DAY_MS, years);
    expect_row(post("lost", "x"), "key-expired", 422, "unknown", FINAL, "refused", false);
    scene_end();
}
END_TEST

START_TEST(rule_5_2_key_voided)
{
    ck_assert_int_eq(void_key("5.2-e", "")->status, 200);
    expect_row(post("5.2-e", "x"), "key-voided", 422, "no", FINAL, "refused", false);
}
END_TEST

START_TEST(rule_5_2_not_voidable)
{
    EXPECT(post("5.2-f", "x"), 200, "executed");
    const struct http_answer *completed = void_key("5.2-f", "");
    expect_row(completed, "not-voidable", 422, "yes", FINAL, "", false);
    ck_assert_str_eq(member_of(completed, "state"), "\"completed\"");
    peer_script_default(scene.peer, reset);
    EXPECT(post("5.2-g", "x"), 504, "unknown");
    const struct http_answer *unknown = void_key("5.2-g", "");
    expect_row(unknown, "not-voidable", 422, "unknown", FINAL, "", false);
    ck_assert_str_eq(member_of(unknown, "state"), "\"unknown\"");
}
END_TEST

START_TEST(rule_5_2_in_progress)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "5.2-h");
    expect_row(post("5.2-h", "x"), "in-progress", 409, "unknown", RETRYABLE, "in-progress", WAITS);
    expect_row(void_key("5.2-h", ""), "in-progress", 409, "unknown", RETRYABLE, "", WAITS);
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_5_2_still_running)
{
    SCENE_START("--set", "answer_timeout=50ms");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    expect_row(post("k", "x"), "still-running", 504, "unknown", RETRYABLE, "in-progress", WAITS);
    peer_release(scene.peer, 1);
    ck_assert(daemon_wait_logged(&scene.nonbis, "result=executed"));
    scene_end();
}
END_TEST

START_TEST(rule_5_2_outcome_unknown)
{
    peer_script_default(scene.peer, reset);
    for (int i = 0; i < 2; i++) {
        const struct http_answer *unknown = post("5.2-i", "x");
        expect_row(unknown, "outcome-unknown", 504, "unknown", FINAL, "unknown", false);
        ck_assert_int_eq(http_field_count(unknown, "Link"), 1); /* "look at the status" */
    }
}
END_TEST

START_TEST(rule_5_2_upstream_not_reached)
{
    SCENE_START(NULL);
    peer_refuse(scene.peer);
    expect_row(post("k", "x"), "upstream-not-reached", 502, "no", RETRYABLE, "not-executed", WAITS);
    expect_row(ask("GET", "/open", NULL, NULL), "upstream-failed", 502, NULL, FINAL, "", false);
    scene_end();
}
END_TEST

START_TEST(rule_5_2_unavailable)
{
    struct caller caller;
    SCENE_START("--set", "running_max=1");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "running");
    const struct http_answer *overloaded = post("k", "x");
    expect_row(overloaded, "unavailable", 503, "unknown", RETRYABLE, "refused", WAITS);
    ck_assert_str_eq(member_of(overloaded, "reason"), "\"overloaded\"");
    daemon_signal(&scene.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    const struct http_answer *draining = post("k", "x");
    expect_row(draining, "unavailable", 503, "unknown", RETRYABLE, "refused", WAITS);
    ck_assert_str_eq(member_of(draining, "reason"), "\"draining\"");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    EXPECT_RUNS("k", 0);
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_5_2_key_not_seen)
{
    const struct http_answer *unseen = get_status("5.2-j", "");
    expect_row(unseen, "key-not-seen", 404, "unknown", RETRYABLE, "", false);
    ck_assert_int_eq(strncmp(member_of(unseen, "window_start"), "\"20", 3), 0);
}
END_TEST

START_TEST(rule_5_2_upstream_failed_and_upstream_timeout_are_for_passing_requests)
{
    static const struct peer_step garbage[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, "SSH-2.0-x\r\n", 0 }, PEER_END };
    static const struct peer_step silent[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };
    peer_script_default(scene.peer, reset);
    expect_row(ask("GET", "/open", NULL, NULL), "upstream-failed", 502, NULL, FINAL, "", false);
    peer_script_default(scene.peer, garbage);
    expect_row(ask("GET", "/open", NULL, NULL), "upstream-failed", 502, NULL, FINAL, "", false);
    peer_script_default(scene.peer, silent);
    expect_row(ask("GET", "/open", NULL, NULL), "upstream-timeout", 504, NULL, FINAL, "", false);
}
END_TEST

START_TEST(rule_5_2_not_found_and_method_not_allowed)
{
    expect_row(ask("GET", "/_nonbis/nothing", NULL, NULL), "not-found", 404, NULL, FINAL, "", false);
    expect_row(ask("POST", "/_nonbis/v1/command", "Idempotency-Key: 5.2-k\r\n", "x"), "method-not-allowed", 405, NULL,
               FINAL, "", false);
}
END_TEST

START_TEST(rule_5_2_loop_detected)
{
    EXPECT(ask("GET", "/open", NULL, NULL), 200, "");
    const struct http_answer *loop = post_with("5.2-l", text("Via: %s\r\n", handler_saw_field(1, "Via")), "x");
    expect_row(loop, "loop-detected", 508, "unknown", FINAL, "", false);
    EXPECT_FIELD(loop, "Nonbis-Outcome", "not-executed");
}
END_TEST

SUITE(contract_problems)
{
    Suite *suite = suite_create("contract/05b-problems");
    RULE(suite, house_plain, rule_5_2_request_malformed);
    RULE(suite, house_plain, rule_5_2_key_missing_and_key_malformed);
    RULE(suite, house_plain, rule_5_2_body_too_large);
    RULE(suite, house_plain, rule_5_2_key_reused);
    RULE(suite, house_plain, rule_5_2_key_voided);
    RULE(suite, house_plain, rule_5_2_not_voidable);
    RULE(suite, house_plain, rule_5_2_in_progress);
    RULE(suite, house_plain, rule_5_2_outcome_unknown);
    RULE(suite, house_plain, rule_5_2_key_not_seen);
    RULE(suite, house_plain, rule_5_2_not_found_and_method_not_allowed);
    RULE(suite, house_plain, rule_5_2_loop_detected);
    RULE(suite, house_tenants, rule_5_2_tenant_missing);
    RULE(suite, house_hasty, rule_5_2_upstream_failed_and_upstream_timeout_are_for_passing_requests);
    RULE_ALONE(suite, rule_5_2_key_expired);
    RULE_ALONE(suite, rule_5_2_still_running);
    RULE_ALONE(suite, rule_5_2_upstream_not_reached);
    RULE_ALONE(suite, rule_5_2_unavailable);
    return suite;
}
