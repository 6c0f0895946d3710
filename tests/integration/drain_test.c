/* drain_test.c - how the server ends (docs/contract.md section 11, server/flow/stop.h): running requests are answered, nothing is unknown afterwards,
 * the exit code is 0; and what happens when the drain is too short. */
#include "tests/support/rig.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { RUNNING = 32 };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

struct caller {
    pthread_t thread;
    const char *address, *method, *target;
    char key[32];
    struct http_answer answer;
};

static void *caller_run(void *context)
{
    struct caller *caller = context;
    char fields[128];
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", caller->key);
    caller->answer =
        http_request(caller->address, caller->method, caller->target, caller->key[0] != '\0' ? fields : NULL,
                     strcmp(caller->method, "POST") == 0 ? "x" : NULL);
    return NULL;
}

static void callers_start(struct caller *callers, int count, const char *address)
{
    for (int i = 0; i < count; i++) {
        callers[i] = (struct caller){ .address = address, .method = "POST", .target = "/orders" };
        (void) snprintf(callers[i].key, sizeof callers[i].key, "k-%d", i);
        pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]);
    }
}

START_TEST(a_drain_answers_what_runs_refuses_what_is_new_and_leaves_nothing_unknown)
{
    struct caller callers[RUNNING + 1];
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, held);
    struct http_answer ready = http_request(rig.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_int_eq(ready.status, 200);
    http_answer_free(&ready);
    callers_start(callers, RUNNING, rig.address);
    callers[RUNNING] = (struct caller){ .address = rig.address, .method = "GET", .target = "/download" };
    pthread_create(&callers[RUNNING].thread, NULL, caller_run, &callers[RUNNING]);
    ck_assert(peer_wait_stalled(rig.peer, RUNNING + 1));
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, "drain"));
    /* Readiness is off, life is not; a new command is refused, a repeat of a running one still gets its answer. */
    ready = http_request(rig.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_int_eq(ready.status, 503);
    ck_assert_ptr_nonnull(strstr(ready.body, "draining"));
    struct http_answer alive = http_request(rig.nonbis.admin, "GET", "/livez", NULL, NULL);
    ck_assert_int_eq(alive.status, 200);
    struct http_answer fresh = http_post(rig.address, "/orders", "new", "x");
    RIG_EXPECT(fresh, 503, "refused");
    ck_assert_ptr_nonnull(strstr(fresh.body, "\"reason\":\"draining\""));
    ck_assert_int_eq(http_field_count(&fresh, "Retry-After"), 1);
    struct http_answer repeat = http_request(rig.address, "POST", "/orders", "Idempotency-Key: k-0\r\n", "x");
    RIG_EXPECT(repeat, 409, "in-progress");
    peer_release(rig.peer, RUNNING + 1);
    for (int i = 0; i <= RUNNING; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].answer.status, 201);
        ck_assert(callers[i].answer.whole);
        http_answer_free(&callers[i].answer);
    }
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    ck_assert(daemon_logged(&rig.nonbis, "exit message=\"code 0\""));
    ck_assert_int_eq(http_connect(rig.address), -1);
    http_answer_free(&ready);
    http_answer_free(&alive);
    http_answer_free(&fresh);
    http_answer_free(&repeat);
    rig_restart(&rig, NULL);
    ck_assert(daemon_logged(&rig.nonbis, "recovered=0"));
    for (int i = 0; i < RUNNING; i++) {
        char fields[64];
        (void) snprintf(fields, sizeof fields, "Idempotency-Key: k-%d\r\n", i);
        struct http_answer replay = http_request(rig.address, "POST", "/orders", fields, "x");
        RIG_EXPECT(replay, 201, "replayed");
        http_answer_free(&replay);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), RUNNING + 1);
    rig_end(&rig);
}
END_TEST

START_TEST(a_drain_that_is_too_short_records_unknown_and_tells_the_callers_so)
{
    const char *const more[] = { "--set", "drain_timeout=100ms", NULL };
    struct caller callers[RUNNING];
    struct rig rig;
    rig_start(&rig, more);
    peer_script_default(rig.peer, held);
    callers_start(callers, RUNNING, rig.address);
    ck_assert(peer_wait_stalled(rig.peer, RUNNING));
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    for (int i = 0; i < RUNNING; i++) {
        pthread_join(callers[i].thread, NULL);
        RIG_EXPECT(callers[i].answer, 504, "unknown");
        ck_assert_ptr_nonnull(strstr(callers[i].answer.body, "outcome-unknown"));
        http_answer_free(&callers[i].answer);
    }
    peer_release(rig.peer, RUNNING);
    rig_restart(&rig, NULL);
    ck_assert(daemon_logged(&rig.nonbis, "recovered=0")); /* recorded, not left for the recovery */
    struct http_answer repeat = http_request(rig.address, "POST", "/orders", "Idempotency-Key: k-0\r\n", "x");
    RIG_EXPECT(repeat, 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), RUNNING);
    http_answer_free(&repeat);
    rig_end(&rig);
}
END_TEST

START_TEST(a_second_signal_ends_the_process_at_once_and_loses_nothing_durable)
{
    struct caller callers[2];
    struct rig rig;
    rig_start(&rig, NULL);
    struct http_answer first = http_post(rig.address, "/orders", "done", "x");
    RIG_EXPECT(first, 200, "executed");
    peer_script_default(rig.peer, held);
    callers_start(callers, 2, rig.address);
    ck_assert(peer_wait_stalled(rig.peer, 2));
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, "drain"));
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].answer.status, 0);
        http_answer_free(&callers[i].answer);
    }
    peer_release(rig.peer, 2);
    rig_restart(&rig, NULL);
    ck_assert(daemon_logged(&rig.nonbis, "recovered=2"));
    struct http_answer replay = http_post(rig.address, "/orders", "done", "x");
    RIG_EXPECT(replay, 200, "replayed");
    struct http_answer unknown = http_request(rig.address, "POST", "/orders", "Idempotency-Key: k-1\r\n", "x");
    RIG_EXPECT(unknown, 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    http_answer_free(&first);
    http_answer_free(&replay);
    http_answer_free(&unknown);
    rig_end(&rig);
}
END_TEST

START_TEST(idle_connections_and_half_sent_requests_do_not_hold_a_drain)
{
    struct timespec start, end;
    struct rig rig;
    rig_start(&rig, NULL);
    int idle = http_connect(rig.address);
    ck_assert(http_send(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27));
    struct http_answer answer = http_receive(idle, false, NULL);
    ck_assert_int_eq(answer.status, 200);
    int half = http_connect(rig.address);
    static const char head[] =
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    ck_assert(http_send(half, head, sizeof head - 1));
    char line[26] = "";
    ck_assert_int_gt(read(half, line, 25), 0); /* 100 Continue: it is being read */
    int silent = http_connect(rig.address);
    clock_gettime(CLOCK_MONOTONIC, &start);
    daemon_signal(&rig.nonbis, SIGHUP); /* not a reason to end */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_lt(end.tv_sec - start.tv_sec, 10); /* drain_timeout is 30 s */
    ck_assert(daemon_logged(&rig.nonbis, "0 running ones"));
    ck_assert(http_closes(idle));
    ck_assert(http_closes(half));
    ck_assert(http_closes(silent));
    close(idle);
    close(half);
    close(silent);
    http_answer_free(&answer);
    ck_assert_uint_eq(peer_count_key(rig.peer, "h"), 0);
    peer_free(rig.peer);
}
END_TEST

SUITE(drain)
{
    Suite *suite = suite_create("integration/drain");
    CASE(suite, a_drain_answers_what_runs_refuses_what_is_new_and_leaves_nothing_unknown);
    CASE(suite, a_drain_that_is_too_short_records_unknown_and_tells_the_callers_so);
    CASE(suite, a_second_signal_ends_the_process_at_once_and_loses_nothing_durable);
    CASE(suite, idle_connections_and_half_sent_requests_do_not_hold_a_drain);
    return suite;
}
