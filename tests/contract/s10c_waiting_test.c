/* s10c_waiting_test.c - docs/contract.md 6.18, 7.3 and 10.15: whoever waits for a running command. */
#include "tests/contract/scene.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"

/* Sends a request and leaves its answer for later. */
static int begin(const char *method, const char *target, const char *fields, const char *body)
{
    int fd = http_connect(scene.address);
    const char *bytes = text("%s %s HTTP/1.1\r\nHost: test.example\r\n%s%s\r\n%s", method, target, fields,
                             body[0] != '\0' ? text("Content-Length: %zu\r\n", strlen(body)) : "", body);
    ck_assert(fd >= 0 && http_send(fd, bytes, strlen(bytes)));
    return fd;
}

static int begin_post(const char *key, const char *fields)
{
    return begin("POST", "/orders", text("Idempotency-Key: %s\r\n%s", key, fields), "x");
}

static const struct http_answer *end(int fd)
{
    const struct http_answer *answer = keep_answer(http_receive(fd, false, NULL));
    close(fd);
    return answer;
}

static void see_waiters(int count)
{
    ck_assert(daemon_wait_logged_times(&scene.nonbis, "waits for the end", count));
}

static int first_caller(const char *key, const char *answer)
{
    handler_holds(answer);
    int fd = begin_post(key, "");
    ck_assert(peer_wait_stalled(scene.peer, 1));
    return fd;
}

START_TEST(rule_10_15_a_repeat_that_prefers_to_wait_gets_the_outcome)
{
    SCENE_START("--log-level", "debug");
    int first = first_caller("k", CREATED);
    int waiter = begin_post("k", "Prefer: wait=20\r\n");
    see_waiters(1);
    peer_release(scene.peer, 1);
    EXPECT(end(first), 201, "executed");
    EXPECT(end(waiter), 201, "replayed");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_10_15_without_a_wish_the_route_counts_and_zero_is_a_wish)
{
    SCENE_START("--log-level", "debug", "--route", "POST /orders in_flight_wait=200ms");
    int first = first_caller("k", CREATED);
    EXPECT_PROBLEM(end(begin_post("k", "Prefer: wait=0\r\n")), 409, "in-progress", "in-progress");
    ck_assert(!daemon_logged(&scene.nonbis, "waits for the end"));
    EXPECT_PROBLEM(end(begin_post("k", "")), 409, "in-progress", "in-progress");
    see_waiters(1);
    peer_release(scene.peer, 1);
    EXPECT(end(first), 201, "executed");
    scene_end();
}
END_TEST

START_TEST(rule_10_15_a_waiter_learns_that_the_outcome_is_unknown)
{
    SCENE_START("--log-level", "debug");
    int first = first_caller("k", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\no");
    int waiter = begin_post("k", "Prefer: wait=20\r\n");
    see_waiters(1);
    peer_release(scene.peer, 1);
    peer_free(scene.peer); /* the answer is cut */
    scene.peer = NULL;
    EXPECT_PROBLEM(end(first), 504, "unknown", "outcome-unknown");
    EXPECT_PROBLEM(end(waiter), 504, "unknown", "outcome-unknown");
    scene_end();
}
END_TEST

/* The limits are on repeats and queries together. */
START_TEST(rule_10_15_waiters_are_bounded_together_with_queries)
{
    SCENE_START("--log-level", "debug", "--set", "waiters_per_key=1");
    int first = first_caller("k", CREATED);
    int query = begin("GET", "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n", "");
    see_waiters(1);
    EXPECT_PROBLEM(end(begin_post("k", "Prefer: wait=20\r\n")), 409, "in-progress", "in-progress");
    peer_release(scene.peer, 1);
    EXPECT(end(first), 201, "executed");
    EXPECT_HOLDS(end(query), "\"state\":\"completed\"");
    scene_end();
}
END_TEST

START_TEST(rule_10_15_a_client_that_stops_sending_while_it_waits_is_answered_at_once)
{
    SCENE_START("--log-level", "debug");
    int first = first_caller("k", CREATED);
    int waiter = begin_post("k", "Prefer: wait=20\r\n");
    see_waiters(1);
    (void) shutdown(waiter, SHUT_WR);
    EXPECT_PROBLEM(end(waiter), 409, "in-progress", "in-progress");
    peer_release(scene.peer, 1);
    EXPECT(end(first), 201, "executed");
    scene_end();
}
END_TEST

START_TEST(rule_6_18_waiters_share_the_answer_that_releases_the_command)
{
    SCENE_START("--log-level", "debug");
    int first = first_caller("k", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nbusy");
    int waiter = begin_post("k", "Prefer: wait=20\r\n");
    see_waiters(1);
    peer_release(scene.peer, 1);
    EXPECT(end(first), 429, "not-executed");
    const struct http_answer *shared = end(waiter);
    EXPECT(shared, 429, "not-executed");
    EXPECT_FIELD(shared, "Retry-After", "9");
    ck_assert_str_eq(shared->body, "busy");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_6_18_of_a_body_that_is_not_kept_they_get_status_and_fields)
{
    SCENE_START("--log-level", "debug", "--set", "response_keep_max=3");
    int first = first_caller("k", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nbusy");
    int waiter = begin_post("k", "Prefer: wait=20\r\n");
    see_waiters(1);
    peer_release(scene.peer, 1);
    ck_assert_str_eq(end(first)->body, "busy");
    const struct http_answer *shared = end(waiter);
    EXPECT(shared, 429, "not-executed");
    EXPECT_FIELD(shared, "Nonbis-Body", "not-kept");
    ck_assert_uint_eq(shared->body_len, 0);
    scene_end();
}
END_TEST

START_TEST(rule_7_3_a_query_that_prefers_to_wait_is_held_and_told_so)
{
    SCENE_START("--log-level", "debug", "--set", "wait_max=10s");
    int first = first_caller("k", CREATED);
    int query = begin("GET", "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n", "");
    see_waiters(1);
    peer_release(scene.peer, 1);
    EXPECT(end(first), 201, "executed");
    const struct http_answer *told = end(query);
    EXPECT_HOLDS(told, "\"state\":\"completed\"");
    EXPECT_FIELD(told, "Preference-Applied", "wait=10");
    EXPECT_HOLDS(ask("GET", "/_nonbis/v1", NULL, NULL), "\"wait_max\":10,");
    scene_end();
}
END_TEST

SUITE(contract_waiting)
{
    Suite *suite = suite_create("contract/waiting");
    RULE_ALONE(suite, rule_10_15_a_repeat_that_prefers_to_wait_gets_the_outcome);
    RULE_ALONE(suite, rule_10_15_without_a_wish_the_route_counts_and_zero_is_a_wish);
    RULE_ALONE(suite, rule_10_15_a_waiter_learns_that_the_outcome_is_unknown);
    RULE_ALONE(suite, rule_10_15_waiters_are_bounded_together_with_queries);
    RULE_ALONE(suite, rule_10_15_a_client_that_stops_sending_while_it_waits_is_answered_at_once);
    RULE_ALONE(suite, rule_6_18_waiters_share_the_answer_that_releases_the_command);
    RULE_ALONE(suite, rule_6_18_of_a_body_that_is_not_kept_they_get_status_and_fields);
    RULE_ALONE(suite, rule_7_3_a_query_that_prefers_to_wait_is_held_and_told_so);
    return suite;
}
