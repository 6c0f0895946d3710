/* waiting_test.c - repeats and status queries that wait for a running command (docs/contract.md 6.18, 7.3, 10.15), and the limits on them. Every
 * request has a connection of its own, so with several loops they land on different ones. */
#include "tests/support/rig.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step held_and_reset[] = {
    { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END
};
static const struct peer_step held_and_busy[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_WAIT, NULL, 0 },
    { PEER_SEND, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nX-Shop: shut\r\nContent-Length: 4\r\n\r\nbusy",
      0 },
    PEER_END
};

#define DEBUG_LOG "--log-level", "debug"
#define SET(text) "--set", text
#define WITH(rig, ...) rig_start((rig), (const char *const[]){ DEBUG_LOG, __VA_ARGS__, NULL })

/* Sends one keyed POST and leaves its answer for later. */
static int post(const struct rig *rig, const char *key, const char *fields)
{
    char request[512];
    int fd = http_connect(rig->address);
    ck_assert_int_ge(fd, 0);
    int len = snprintf(request, sizeof request,
                       "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: %s\r\n%sContent-Length: 1\r\n\r\nx", key,
                       fields);
    ck_assert(http_send(fd, request, (size_t) len));
    return fd;
}

static int query(const struct rig *rig, const char *target, const char *fields)
{
    char request[512];
    int fd = http_connect(rig->address);
    ck_assert_int_ge(fd, 0);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", target, fields);
    ck_assert(http_send(fd, request, (size_t) len));
    return fd;
}

static void expect(int fd, int status, const char *word)
{
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
    close(fd);
}

/* A first caller whose command the handler has. */
static int start(struct rig *rig, const char *key, const struct peer_step *steps)
{
    peer_script_default(rig->peer, steps);
    int fd = post(rig, key, "");
    ck_assert(peer_wait_stalled(rig->peer, 1));
    return fd;
}

static void wait_for_waiters(const struct rig *rig, int count)
{
    ck_assert(daemon_wait_logged_times(&rig->nonbis, "waits for the end", count));
}

enum { CROWD = 48 };

START_TEST(a_crowd_that_waits_gets_the_answer_of_the_one_execution)
{
    int waiters[CROWD];
    struct rig rig;
    WITH(&rig, SET("server.loops=2"));
    int first = start(&rig, "k", held);
    for (int i = 0; i < CROWD; i++) {
        waiters[i] = post(&rig, "k", "Prefer: wait=20\r\n");
    }
    wait_for_waiters(&rig, CROWD);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    for (int i = 0; i < CROWD; i++) {
        struct http_answer answer = http_receive(waiters[i], false, NULL);
        RIG_EXPECT(answer, 201, "replayed");
        ck_assert_str_eq(answer.body, "ok");
        http_answer_free(&answer);
        close(waiters[i]);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    FIGURE("%d waiters on 2 loops: executions_at_handler=%u", CROWD, peer_count_requests(rig.peer));
    rig_end(&rig);
}
END_TEST

START_TEST(waiters_of_a_released_command_share_the_answer_that_released_it)
{
    int waiters[8];
    struct rig rig;
    WITH(&rig, SET("server.loops=2"));
    int first = start(&rig, "k", held_and_busy);
    for (int i = 0; i < 8; i++) {
        waiters[i] = post(&rig, "k", "Prefer: wait=20\r\n");
    }
    wait_for_waiters(&rig, 8);
    peer_release(rig.peer, 1);
    expect(first, 429, "not-executed");
    for (int i = 0; i < 8; i++) {
        struct http_answer answer = http_receive(waiters[i], false, NULL);
        RIG_EXPECT(answer, 429, "not-executed");
        ck_assert_str_eq(answer.body, "busy");
        ck_assert(http_field_is(&answer, "Retry-After", "7"));
        ck_assert(http_field_is(&answer, "X-Shop", "shut"));
        ck_assert_int_eq(http_field_count(&answer, "Link"), 1);
        ck_assert_int_eq(http_field_count(&answer, "Idempotent-Replayed"), 0);
        http_answer_free(&answer);
        close(waiters[i]);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1); /* none of them went in its place */
    peer_script_default(rig.peer, held);
    peer_release(rig.peer, 1);
    expect(post(&rig, "k", ""), 201, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(waiters_of_a_released_command_get_no_body_that_was_too_long_to_keep)
{
    static const struct peer_step long_and_busy[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_WAIT, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2000\r\n\r\n", 0 },
        { PEER_SEND, "xy", 1000 },
        PEER_END
    };
    struct rig rig;
    WITH(&rig, SET("response_keep_max=1KiB"));
    int first = start(&rig, "k", long_and_busy);
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 1);
    peer_release(rig.peer, 1);
    struct http_answer answer = http_receive(first, false, NULL);
    RIG_EXPECT(answer, 429, "not-executed");
    ck_assert_uint_eq(answer.body_len, 2000);
    http_answer_free(&answer);
    answer = http_receive(waiter, false, NULL);
    RIG_EXPECT(answer, 429, "not-executed");
    ck_assert_uint_eq(answer.body_len, 0);
    ck_assert(http_field_is(&answer, "Nonbis-Body", "not-kept"));
    http_answer_free(&answer);
    close(first);
    close(waiter);
    rig_end(&rig);
}
END_TEST

/* The handler speaks no TLS: its connection is open for as long as the peer likes, and nothing is ever sent. */
START_TEST(waiters_of_a_command_that_could_not_be_sent_are_told_so)
{
    static const struct peer_step silent[] = { { PEER_WAIT, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };
    char url[64];
    struct rig rig = { .peer = peer_new() };
    const char *const more[] = { DEBUG_LOG, SET("connect_timeout=60s"), NULL };
    (void) snprintf(url, sizeof url, "https://127.0.0.1:%u", peer_port(rig.peer));
    peer_script_for_connection(rig.peer, 1, silent);
    daemon_start(&rig.nonbis, url, "memory", more);
    rig.address = rig.nonbis.listen;
    int first = post(&rig, "k", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 1);
    peer_release(rig.peer, 1);
    expect(first, 502, "not-executed");
    struct http_answer answer = http_receive(waiter, false, NULL);
    RIG_EXPECT(answer, 502, "not-executed");
    ck_assert_ptr_nonnull(strstr(answer.body, "upstream-not-reached"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"executed\":\"no\""));
    http_answer_free(&answer);
    close(waiter);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    peer_free(rig.peer);
}
END_TEST

START_TEST(a_waiter_is_told_that_the_outcome_is_unknown)
{
    struct rig rig;
    rig_start(&rig, (const char *const[]){ DEBUG_LOG, NULL });
    int first = start(&rig, "k", held_and_reset);
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 1);
    peer_release(rig.peer, 1);
    expect(first, 504, "unknown");
    expect(waiter, 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(a_mismatch_and_a_stranger_do_not_wait)
{
    struct rig rig;
    rig_start(&rig, (const char *const[]){ DEBUG_LOG, NULL });
    int first = start(&rig, "k", held);
    int other = http_connect(rig.address);
    static const char mismatch[] = "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nPrefer: wait=20\r\n"
                                   "Content-Length: 1\r\n\r\ny";
    ck_assert(http_send(other, mismatch, sizeof mismatch - 1));
    expect(other, 422, "refused");
    expect(post(&rig, "k", "Prefer: wait=20\r\nAuthorization: b\r\n"), 422, "refused");
    expect(query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\nAuthorization: b\r\n"), 404,
           "");
    ck_assert(!daemon_logged(&rig.nonbis, "waits for the end"));
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    rig_end(&rig);
}
END_TEST

static const struct {
    const char *fields;
    int least_ms; /* the wait; 0: none */
} ends[] = {
    { "Prefer: wait=1\r\n", 1000 },
    { "Prefer: respond-async, wait=1\r\n", 1000 },
    { "Prefer: respond-async\r\nprefer: WAIT=\"1\";x\r\n", 1000 },
    { "", 300 }, /* the route's */
    { "Prefer: wait=x\r\n", 300 },
    { "Prefer: wait=0\r\n", 0 },
    { "Prefer: wait=99999999999999999999\r\n", 1200 }, /* wait_max */
};

START_TEST(a_wait_ends_with_its_time)
{
    struct rig rig;
    WITH(&rig, SET("wait_max=1200ms"), "--route", "POST /orders in_flight_wait=300ms");
    int first = start(&rig, "k", held);
    int64_t before_ms = suite_now_ms();
    struct http_answer answer = http_receive(post(&rig, "k", ends[_i].fields), false, NULL);
    int64_t took_ms = suite_now_ms() - before_ms;
    RIG_EXPECT(answer, 409, "in-progress");
    ck_assert_ptr_nonnull(strstr(answer.body, "in-progress"));
    ck_assert_int_eq(http_field_count(&answer, "Retry-After"), 1);
    ck_assert_msg(took_ms >= ends[_i].least_ms, "waited %d ms", (int) took_ms);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "waits for the end"), ends[_i].least_ms > 0);
    http_answer_free(&answer);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    rig_end(&rig);
}
END_TEST

/* Between the wait's end and the outcome it may repeat, and wait again. */
START_TEST(a_waiter_may_come_again)
{
    struct rig rig;
    rig_start(&rig, (const char *const[]){ DEBUG_LOG, NULL });
    int first = start(&rig, "k", held);
    expect(post(&rig, "k", "Prefer: wait=1\r\n"), 409, "in-progress");
    int again = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 2);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    expect(again, 201, "replayed");
    rig_end(&rig);
}
END_TEST

START_TEST(a_client_that_leaves_gives_its_place_to_the_next)
{
    struct rig rig;
    WITH(&rig, SET("waiters_max=1"));
    int first = start(&rig, "k", held);
    for (int i = 1; i <= 3; i++) {
        int leaver = post(&rig, "k", "Prefer: wait=20\r\n");
        wait_for_waiters(&rig, i);
        if (i == 2) {
            struct linger reset = { .l_onoff = 1 };
            (void) setsockopt(leaver, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close(leaver);
        ck_assert(daemon_wait_logged_times(&rig.nonbis, "result=in-progress", i));
    }
    /* Whoever only stops sending gets the answer that there is. */
    int half = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 4);
    (void) shutdown(half, SHUT_WR);
    expect(half, 409, "in-progress");
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(the_first_caller_may_leave_before_its_waiters_are_answered)
{
    struct rig rig;
    rig_start(&rig, (const char *const[]){ DEBUG_LOG, NULL });
    int first = start(&rig, "k", held);
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    wait_for_waiters(&rig, 1);
    close(first);
    peer_release(rig.peer, 1);
    expect(waiter, 201, "replayed");
    rig_end(&rig);
}
END_TEST

/* --- status --- */

START_TEST(a_status_query_waits_for_the_outcome)
{
    char target[128], link[128];
    struct rig rig;
    WITH(&rig, SET("server.loops=2"));
    int first = start(&rig, "k", held);
    struct http_answer running =
        http_request(rig.address, "GET", "/_nonbis/v1/command", "Idempotency-Key: k\r\n", NULL);
    ck_assert(http_field(&running, "Link", link, sizeof link));
    ck_assert_int_eq(http_field_count(&running, "Preference-Applied"), 0);
    ck_assert_int_eq(sscanf(link, "<%127[^>]>", target), 1);
    http_answer_free(&running);
    int by_key = query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n");
    int by_id = query(&rig, target, "Prefer: wait=99999\r\n");
    wait_for_waiters(&rig, 2);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    const int fds[] = { by_key, by_id };
    static const char *const applied[] = { "wait=20", "wait=30" };
    for (int i = 0; i < 2; i++) {
        struct http_answer answer = http_receive(fds[i], false, NULL);
        RIG_EXPECT(answer, 200, "");
        ck_assert_ptr_nonnull(strstr(answer.body, "\"state\":\"completed\""));
        ck_assert(http_field_is(&answer, "Preference-Applied", applied[i]));
        http_answer_free(&answer);
        close(fds[i]);
    }
    rig_end(&rig);
}
END_TEST

START_TEST(a_status_query_tells_after_its_time_that_the_command_runs)
{
    struct rig rig;
    rig_start(&rig, (const char *const[]){ DEBUG_LOG, NULL });
    int first = start(&rig, "k", held);
    int64_t before_ms = suite_now_ms();
    struct http_answer answer =
        http_receive(query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=1\r\n"), false, NULL);
    ck_assert_int_ge((int) (suite_now_ms() - before_ms), 1000);
    RIG_EXPECT(answer, 200, "");
    ck_assert_ptr_nonnull(strstr(answer.body, "\"state\":\"in_progress\""));
    ck_assert(http_field_is(&answer, "Preference-Applied", "wait=1"));
    http_answer_free(&answer);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    expect(query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n"), 200, ""); /* at once */
    expect(query(&rig, "/_nonbis/v1/command", "Idempotency-Key: other\r\nPrefer: wait=20\r\n"), 404, "");
    rig_end(&rig);
}
END_TEST

START_TEST(a_status_query_whose_client_leaves_gives_its_place_to_the_next)
{
    struct rig rig;
    WITH(&rig, SET("waiters_per_key=1"));
    int first = start(&rig, "k", held);
    int leaver = query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n");
    wait_for_waiters(&rig, 1);
    struct http_answer over =
        http_request(rig.address, "GET", "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n", NULL);
    ck_assert_int_eq(over.status, 200); /* at once, and without the claim to have waited */
    ck_assert_int_eq(http_field_count(&over, "Preference-Applied"), 0);
    http_answer_free(&over);
    close(leaver);
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "result=in_progress", 2));
    int next = query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n");
    wait_for_waiters(&rig, 2);
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    expect(next, 200, "");
    rig_end(&rig);
}
END_TEST

/* --- drain --- */

START_TEST(a_drain_lets_waiters_have_the_outcome)
{
    struct rig rig;
    WITH(&rig, SET("server.loops=2"));
    int first = start(&rig, "k", held);
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    int status = query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n");
    wait_for_waiters(&rig, 2);
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, "drain"));
    peer_release(rig.peer, 1);
    expect(first, 201, "executed");
    expect(waiter, 201, "replayed");
    expect(status, 200, "");
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    peer_free(rig.peer);
}
END_TEST

START_TEST(the_end_of_a_drain_answers_waiters_with_unknown)
{
    struct rig rig;
    WITH(&rig, SET("server.loops=2"), SET("drain_timeout=100ms"));
    int first = start(&rig, "k", held);
    int waiter = post(&rig, "k", "Prefer: wait=20\r\n");
    int status = query(&rig, "/_nonbis/v1/command", "Idempotency-Key: k\r\nPrefer: wait=20\r\n");
    wait_for_waiters(&rig, 2);
    daemon_signal(&rig.nonbis, SIGTERM);
    expect(first, 504, "unknown");
    struct http_answer answer = http_receive(waiter, false, NULL);
    RIG_EXPECT(answer, 504, "unknown");
    ck_assert_ptr_nonnull(strstr(answer.body, "outcome-unknown"));
    ck_assert_int_eq(http_field_count(&answer, "Link"), 1);
    http_answer_free(&answer);
    answer = http_receive(status, false, NULL);
    ck_assert_int_eq(answer.status, 200);
    http_answer_free(&answer);
    close(waiter);
    close(status);
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    peer_free(rig.peer);
}
END_TEST

SUITE(waiting)
{
    Suite *suite = suite_create("integration/waiting");
    CASE(suite, a_crowd_that_waits_gets_the_answer_of_the_one_execution);
    CASE(suite, waiters_of_a_released_command_share_the_answer_that_released_it);
    CASE(suite, waiters_of_a_released_command_get_no_body_that_was_too_long_to_keep);
    CASE(suite, waiters_of_a_command_that_could_not_be_sent_are_told_so);
    CASE(suite, a_waiter_is_told_that_the_outcome_is_unknown);
    CASE(suite, a_mismatch_and_a_stranger_do_not_wait);
    CASE_LOOP(suite, a_wait_ends_with_its_time, sizeof ends / sizeof ends[0]);
    CASE(suite, a_waiter_may_come_again);
    CASE(suite, a_client_that_leaves_gives_its_place_to_the_next);
    CASE(suite, the_first_caller_may_leave_before_its_waiters_are_answered);
    CASE(suite, a_status_query_waits_for_the_outcome);
    CASE(suite, a_status_query_tells_after_its_time_that_the_command_runs);
    CASE(suite, a_status_query_whose_client_leaves_gives_its_place_to_the_next);
    CASE(suite, a_drain_lets_waiters_have_the_outcome);
    CASE(suite, the_end_of_a_drain_answers_waiters_with_unknown);
    return suite;
}
