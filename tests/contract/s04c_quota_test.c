/* s04c_quota_test.c - docs/contract.md 4.10: how much new work one tenant may bring. By a clock that stands still until the case moves it, so that what
 * comes back meanwhile is known to the last token. */
#include "tests/contract/scene.h"
#include "tests/support/sender.h"

#include <signal.h>

#define QUOTA_START(...) rig_start_at(&scene, "2030-01-01T00:00:00Z", (const char *const[]){ __VA_ARGS__, NULL })
#define SET(text) "--set", text
#define OF(tenant) "X-Tenant: " tenant "\r\n"
#define EMPTY "Content-Length: 0\r\n\r\n"

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

/* As post_with, and leaves its answer for later. */
static int begin(const char *key, const char *fields)
{
    int fd = http_connect(scene.address);
    const char *bytes = text("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: %s\r\n%s"
                             "Content-Length: 1\r\n\r\nx",
                             key, fields);
    ck_assert(fd >= 0 && http_send(fd, bytes, strlen(bytes)));
    return fd;
}

static void expect_over(const struct http_answer *answer, const char *word, const char *reason, const char *retry_after)
{
    EXPECT_PROBLEM(answer, 429, word, "quota-exceeded");
    ck_assert_str_eq(member_of(answer, "reason"), reason);
    ck_assert_str_eq(member_of(answer, "executed"), "\"unknown\"");
    ck_assert_str_eq(member_of(answer, "retryable"), "true");
    EXPECT_FIELD(answer, "Retry-After", retry_after);
}

START_TEST(rule_4_10_new_commands_over_the_rate_of_a_tenant_are_refused_until_there_is_room)
{
    QUOTA_START(SET("tenant=header:X-Tenant"), SET("tenant_rate=2/m"), SET("tenant_burst=3"));
    EXPECT(post_with("1", OF("a"), "x"), 200, "executed");
    EXPECT(post_with("2", OF("a"), "x"), 200, "executed");
    EXPECT(post_with("3", OF("a"), "x"), 200, "executed");
    const struct http_answer *over = post_with("4", OF("a"), "x");
    expect_over(over, "refused", "\"rate\"", "30");
    EXPECT_NO_FIELD(over, "Link"); /* nothing was claimed */
    EXPECT_PROBLEM(get_status("4", OF("a")), 404, "", "key-not-seen");
    EXPECT(post_with("4", OF("b"), "x"), 200, "executed"); /* another tenant */
    clock_hand_pass(&scene.clock, 9500);
    expect_over(post_with("4", OF("a"), "x"), "refused", "\"rate\"", "21"); /* 20.5 s, rounded up */
    clock_hand_pass(&scene.clock, 20499);
    expect_over(post_with("4", OF("a"), "x"), "refused", "\"rate\"", "1");
    EXPECT_RUNS("4", 1);
    clock_hand_pass(&scene.clock, 1);
    EXPECT(post_with("4", OF("a"), "x"), 200, "executed"); /* a refused key is free */
    expect_over(post_with("5", OF("a"), "x"), "refused", "\"rate\"", "30");
    clock_hand_pass(&scene.clock, MOVED_DAY); /* no more than the burst comes back */
    EXPECT(post_with("5", OF("a"), "x"), 200, "executed");
    EXPECT(post_with("6", OF("a"), "x"), 200, "executed");
    EXPECT(post_with("7", OF("a"), "x"), 200, "executed");
    expect_over(post_with("8", OF("a"), "x"), "refused", "\"rate\"", "30");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 8);
    rig_end(&scene);
}
END_TEST

START_TEST(rule_4_10_more_than_a_tenant_may_have_under_way_are_refused)
{
    QUOTA_START(SET("tenant=header:X-Tenant"), SET("tenant_in_flight=2"));
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    int first = begin("1", OF("a")), second = begin("2", OF("a"));
    ck_assert(peer_wait_stalled(scene.peer, 2));
    expect_over(post_with("3", OF("a"), "x"), "refused", "\"in-flight\"", "1");
    EXPECT_PROBLEM(post_with("1", OF("a"), "x"), 409, "in-progress", "in-progress");
    int other = begin("3", OF("b"));
    ck_assert(peer_wait_stalled(scene.peer, 3));
    peer_release(scene.peer, 4);
    sender_expect_last(first, 201, "executed");
    sender_expect_last(second, 201, "executed");
    sender_expect_last(other, 201, "executed");
    EXPECT(post_with("3", OF("a"), "x"), 201, "executed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 4);
    rig_end(&scene);
}
END_TEST

START_TEST(rule_4_10_repeats_and_queries_are_served_over_the_quota_and_use_nothing_of_it)
{
    struct caller running;
    QUOTA_START("--log-level", "debug", SET("tenant_rate=1/h"), SET("tenant_burst=5"), SET("replay_cache=0"));
    EXPECT(post("done", "x"), 200, "executed");
    ck_assert_int_eq(void_key("gone", "")->status, 200);
    peer_script_default(scene.peer, reset);
    EXPECT(post("lost", "x"), 504, "unknown");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&running, "running");
    for (int i = 0; i < 2; i++) { /* with a token left that stays, and with none */
        EXPECT(post("done", "x"), 200, "replayed");
        EXPECT_PROBLEM(post("done", "y"), 422, "refused", "key-reused");
        EXPECT_PROBLEM(post("gone", "x"), 422, "refused", "key-voided");
        EXPECT_PROBLEM(post("lost", "x"), 504, "unknown", "outcome-unknown");
        EXPECT_PROBLEM(post("running", "x"), 409, "in-progress", "in-progress");
        ck_assert_int_eq(get_status("done", "")->status, 200);
        ck_assert_int_eq(get_response("done")->status, 200);
        ck_assert_int_eq(void_key("gone", "")->status, 200);
        EXPECT_PROBLEM(void_key("done", ""), 422, "", "not-voidable");
        if (i == 0) {
            ck_assert_int_eq(void_key("last", "")->status, 200);
        }
        expect_over(post("new", "x"), "refused", "\"rate\"", "3600");
    }
    int waiting = begin("running", "Content-Type: application/json\r\nPrefer: wait=20\r\n");
    ck_assert(daemon_wait_logged(&scene.nonbis, "waits for the end"));
    peer_release(scene.peer, 1);
    EXPECT(join(&running), 201, "executed");
    sender_expect_last(waiting, 201, "replayed");
    EXPECT_RUNS("new", 0);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 3);
    rig_end(&scene);
}
END_TEST

START_TEST(rule_4_10_a_released_key_that_comes_again_and_a_void_are_new_work)
{
    QUOTA_START(SET("tenant_rate=1/h"), SET("tenant_burst=2"));
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("free", "x"), 429, "not-executed");
    EXPECT(post("free", "x"), 429, "not-executed");
    const struct http_answer *over = post("free", "x");
    expect_over(over, "refused", "\"rate\"", "3600");
    EXPECT_FIELD(over, "Link", field_of(get_status("free", ""), "Link")); /* its record is there */
    expect_over(void_key("free", ""), "", "\"rate\"", "3600");
    expect_over(void_key("unseen", ""), "", "\"rate\"", "3600");
    EXPECT_PROBLEM(get_status("unseen", ""), 404, "", "key-not-seen");
    EXPECT_RUNS("free", 2);
    clock_hand_pass(&scene.clock, MOVED_HOUR);
    ck_assert_int_eq(void_key("unseen", "")->status, 200);
    expect_over(post("free", "x"), "refused", "\"rate\"", "3600");
    rig_end(&scene);
}
END_TEST

START_TEST(rule_4_10_without_a_tenant_field_all_callers_and_all_routes_share_one_quota)
{
    QUOTA_START("--route", "POST /orders", "--route", "PATCH /*", SET("tenant_rate=1/m"), SET("tenant_burst=2"));
    EXPECT(post_with("1", OF("a"), "x"), 200, "executed");
    EXPECT(ask("PATCH", "/other", "Idempotency-Key: 2\r\n" OF("b"), "x"), 200, "executed");
    expect_over(post_with("3", OF("c"), "x"), "refused", "\"rate\"", "60");
    EXPECT(ask("POST", "/elsewhere", "", "x"), 200, ""); /* what passes through has no quota */
    rig_end(&scene);
}
END_TEST

START_TEST(rule_4_10_a_drain_is_told_before_the_quota_and_the_quota_before_the_limits)
{
    struct caller running;
    QUOTA_START(SET("tenant_rate=1/h"), SET("tenant_burst=1"), SET("running_max=1"));
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&running, "running");
    expect_over(post("new", "x"), "refused", "\"rate\"", "3600");
    daemon_signal(&scene.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    const struct http_answer *draining = post("new", "x");
    EXPECT_PROBLEM(draining, 503, "refused", "unavailable");
    ck_assert_str_eq(member_of(draining, "reason"), "\"draining\"");
    peer_release(scene.peer, 1);
    EXPECT(join(&running), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    EXPECT_RUNS("new", 0);
    peer_free(scene.peer);
}
END_TEST

SUITE(contract_quota)
{
    Suite *suite = suite_create("contract/04c-quota");
    RULE_ALONE(suite, rule_4_10_new_commands_over_the_rate_of_a_tenant_are_refused_until_there_is_room);
    RULE_ALONE(suite, rule_4_10_more_than_a_tenant_may_have_under_way_are_refused);
    RULE_ALONE(suite, rule_4_10_repeats_and_queries_are_served_over_the_quota_and_use_nothing_of_it);
    RULE_ALONE(suite, rule_4_10_a_released_key_that_comes_again_and_a_void_are_new_work);
    RULE_ALONE(suite, rule_4_10_without_a_tenant_field_all_callers_and_all_routes_share_one_quota);
    RULE_ALONE(suite, rule_4_10_a_drain_is_told_before_the_quota_and_the_quota_before_the_limits);
    return suite;
}
