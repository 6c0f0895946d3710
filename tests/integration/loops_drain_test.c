/* loops_drain_test.c - how a server of several loops ends (docs/contract.md section 11, server/flow/stop.h): the drain waits for every loop, and each
 * goes on with what a drain allows until the last one is done. Executions are counted at the handler. */
#include "tests/support/sender.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOPS_MAX = 4, BURSTS = 30, BURST_CLIENTS = 8, BURST_MAX = 4096 };

static const int loop_counts[] = { 2, 4 };
enum { LOOP_COUNTS = sizeof loop_counts / sizeof loop_counts[0] };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

#define WAITS "Prefer: wait=20\r\n"
#define STATUS "/_nonbis/v1/command"

static struct rig rig;
static int running[LOOPS_MAX]; /* one command on each loop: "k-0" on the first */

/* `more`: a value for --set, or NULL. */
static void start(int loops, const char *more)
{
    char setting[32];
    (void) snprintf(setting, sizeof setting, "server.loops=%d", loops);
    const char *const arguments[] = { "--set", setting, "--log-level", "debug", more != NULL ? "--set" : NULL,
                                      more,    NULL };
    rig_start(&rig, arguments);
}

static void restart(void)
{
    rig_restart(&rig, NULL);
}

/* The next connections of this test go to the loops from the first on again. */
static void start_running(int loops)
{
    char key[16];
    peer_script_default(rig.peer, held);
    for (int i = 0; i < loops; i++) {
        (void) snprintf(key, sizeof key, "k-%d", i);
        running[i] = sender_post(rig.address, key, "");
    }
    ck_assert(peer_wait_stalled(rig.peer, (unsigned) loops));
}

static void begin_drain(void)
{
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, "new commands are refused"));
}

START_TEST(a_drain_waits_for_every_loop_and_idle_loops_go_on_with_replays)
{
    int loops = loop_counts[_i], idle[LOOPS_MAX];
    start(loops, NULL);
    for (int i = 0; i < loops; i++) {
        idle[i] = sender_post(rig.address, "done", "");
        sender_expect(idle[i], 200, i == 0 ? "executed" : "replayed");
    }
    peer_script_default(rig.peer, held);
    int last = sender_post(rig.address, "k", ""); /* on the first loop alone */
    ck_assert(peer_wait_stalled(rig.peer, 1));
    begin_drain();
    for (int i = loops - 1; i >= 0; i--) {
        for (int turn = 0; turn < 3; turn++) {
            ck_assert(sender_post_on(idle[i], "done", ""));
            sender_expect(idle[i], 200, "replayed");
        }
        ck_assert(sender_post_on(idle[i], "k", ""));
        sender_expect(idle[i], 409, "in-progress");
        ck_assert(sender_get_on(idle[i], STATUS, "Idempotency-Key: k\r\n"));
        sender_expect(idle[i], 200, "");
    }
    for (int i = 0; i < loops; i++) { /* and new connections are taken, on every loop */
        sender_expect_last(sender_post(rig.address, "done", ""), 200, "replayed");
        sender_expect_last(sender_post(rig.address, "new", ""), 503, "refused");
    }
    peer_release(rig.peer, 1);
    sender_expect(last, 201, "executed");
    for (int i = 0; i < loops; i++) {
        ck_assert(http_closes(idle[i]));
        close(idle[i]);
    }
    ck_assert(http_closes(last));
    close(last);
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    restart();
    ck_assert(daemon_logged(&rig.nonbis, "recovered=0"));
    rig_end(&rig);
}
END_TEST

START_TEST(a_drain_lets_every_loop_finish)
{
    int loops = loop_counts[_i], waiting[LOOPS_MAX];
    start(loops, NULL);
    start_running(loops);
    for (int i = 0; i < loops; i++) { /* on every loop somebody waits for the first one's */
        waiting[i] = sender_post(rig.address, "k-0", WAITS);
    }
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", loops));
    begin_drain();
    for (int i = loops - 1; i >= 0; i--) { /* the handler lets go in an order of its own */
        peer_release(rig.peer, 1);
    }
    for (int i = 0; i < loops; i++) {
        sender_expect_last(running[i], 201, "executed");
        sender_expect_last(waiting[i], 201, "replayed");
    }
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) loops);
    restart();
    ck_assert(daemon_logged(&rig.nonbis, "recovered=0"));
    sender_expect_last(sender_post(rig.address, "k-1", ""), 201, "replayed");
    rig_end(&rig);
}
END_TEST

START_TEST(a_second_signal_ends_all_loops_at_once)
{
    int loops = loop_counts[_i];
    start(loops, NULL);
    start_running(loops);
    begin_drain();
    daemon_signal(&rig.nonbis, SIGINT);
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 1);
    for (int i = 0; i < loops; i++) {
        ck_assert(http_closes(running[i]));
        close(running[i]);
    }
    peer_release(rig.peer, (unsigned) loops);
    restart();
    ck_assert(daemon_logged(&rig.nonbis, loops == 2 ? "recovered=2" : "recovered=4"));
    sender_expect_last(sender_post(rig.address, "k-1", ""), 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) loops);
    rig_end(&rig);
}
END_TEST

START_TEST(a_drain_that_is_too_short_records_unknown_on_every_loop)
{
    int loops = loop_counts[_i], waiting[LOOPS_MAX];
    start(loops, "drain_timeout=100ms");
    start_running(loops);
    for (int i = 0; i < loops; i++) {
        waiting[i] = sender_post(rig.address, "k-1", WAITS);
    }
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", loops));
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    for (int i = 0; i < loops; i++) {
        sender_expect_last(running[i], 504, "unknown");
        sender_expect_last(waiting[i], 504, "unknown");
    }
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "1 command is recorded unknown"), loops);
    peer_release(rig.peer, (unsigned) loops);
    restart();
    ck_assert(daemon_logged(&rig.nonbis, "recovered=0"));
    for (int i = 0; i < loops; i++) {
        sender_expect_last(sender_post(rig.address, i == 0 ? "k-0" : "k-1", ""), 504, "unknown");
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) loops);
    rig_end(&rig);
}
END_TEST

/* Nobody will tell those that wait, since nothing is stored any more: they are answered, and do not hold the end back. In the second row the server was
 * asked to end before. */
START_TEST(a_store_that_fails_ends_all_loops_with_74)
{
    int loops = loop_counts[_i], waiting[LOOPS_MAX], queries[LOOPS_MAX];
    bool drains = _i == 1;
    start(loops, "wait_max=10m");
    start_running(loops);
    for (int i = 0; i < loops; i++) {
        waiting[i] = sender_post(rig.address, "k-0", "Prefer: wait=600\r\n");
        queries[i] = sender_get(rig.address, STATUS, "Idempotency-Key: k-0\r\nPrefer: wait=600\r\n");
    }
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", 2 * loops));
    if (drains) {
        begin_drain();
    }
    ck_assert_int_eq(unlink(rig.store), 0);
    ck_assert(daemon_wait_logged(&rig.nonbis, "the store failed, the truth is on the disk only"));
    for (int i = 0; i < loops; i++) {
        sender_expect_last(waiting[i], 409, "in-progress");
        sender_expect_last(queries[i], 200, "");
    }
    peer_release(rig.peer, (unsigned) loops);
    for (int i = 0; i < loops; i++) {
        sender_expect_last(running[i], 201, "unrecorded");
    }
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 74);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) loops);
    peer_free(rig.peer);
}
END_TEST

/* --- signals that come at a bad moment --- */

START_TEST(a_signal_right_after_the_start_ends_the_server)
{
    rig = (struct rig){ .peer = peer_new(), .store = "memory" };
    for (int i = 0; i < BURSTS; i++) {
        const char *const arguments[] = { "--set", i % 2 == 0 ? "server.loops=2" : "server.loops=4", NULL };
        rig_restart(&rig, arguments);
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    peer_free(rig.peer);
}
END_TEST

struct burst {
    pthread_t thread;
    int round, client, asked;
    int statuses[BURST_MAX]; /* of the key "b-ROUND-CLIENT-n"; 0: no answer */
};

static void burst_key(char key[64], const struct burst *burst, int number)
{
    (void) snprintf(key, 64, "b-%d-%d-%d", burst->round, burst->client, number);
}

/* A new command, or a request that passes through. */
static int burst_ask(const struct burst *burst, int fd)
{
    char key[64], field[128];
    burst_key(key, burst, burst->asked);
    (void) snprintf(field, sizeof field, "Idempotency-Key: %s\r\n", key);
    if (!(burst->client % 4 == 0 ? sender_post_on(fd, key, "") : sender_get_on(fd, "/", field))) {
        return 0;
    }
    struct http_answer answer = http_receive(fd, false, NULL);
    int status = answer.whole ? answer.status : 0;
    http_answer_free(&answer);
    return status;
}

/* New connections, each with a new request, until none is taken any more. */
static void *burst_run(void *context)
{
    struct burst *burst = context;
    for (burst->asked = 0; burst->asked < BURST_MAX; burst->asked++) {
        int fd = http_connect(rig.address);
        if (fd < 0) {
            break;
        }
        burst->statuses[burst->asked] = burst_ask(burst, fd);
        close(fd);
    }
    return NULL;
}

struct burst_counts {
    int answered, refused, cut;
};

/* Whoever was executed has the handler's answer; whoever was not answered, or refused, was not executed. */
static void burst_check(const struct burst *burst, struct burst_counts *counts)
{
    for (int i = 0; i < burst->asked; i++) {
        char key[64];
        int status = burst->statuses[i];
        burst_key(key, burst, i);
        unsigned executions = peer_count_key(rig.peer, key);
        ck_assert_msg(status == 200 || status == 503 || status == 0, "%s: status %d", key, status);
        ck_assert_msg(executions == (status == 200 ? 1 : 0), "%s: status %d and %u executions", key, status,
                      executions);
        counts->answered += status == 200;
        counts->refused += status == 503;
        counts->cut += status == 0;
    }
}

START_TEST(a_signal_in_a_burst_of_connections_loses_no_answer)
{
    static struct burst bursts[BURST_CLIENTS];
    struct burst_counts counts = { 0 };
    rig = (struct rig){ .peer = peer_new(), .store = "memory" };
    for (int round = 0; round < BURSTS; round++) {
        const char *const arguments[] = { "--set", round % 2 == 0 ? "server.loops=2" : "server.loops=4", NULL };
        unsigned before = peer_count_requests(rig.peer);
        rig_restart(&rig, arguments);
        for (int i = 0; i < BURST_CLIENTS; i++) {
            bursts[i].round = round;
            bursts[i].client = i;
            pthread_create(&bursts[i].thread, NULL, burst_run, &bursts[i]);
        }
        ck_assert(peer_wait_requests(rig.peer, before + 1 + (unsigned) round)); /* now sooner, now later */
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
        for (int i = 0; i < BURST_CLIENTS; i++) {
            pthread_join(bursts[i].thread, NULL);
        }
        for (int i = 0; i < BURST_CLIENTS; i++) {
            burst_check(&bursts[i], &counts);
        }
    }
    FIGURE("%d signals in bursts of connections: answered=%d refused_503=%d closed_without_an_answer=%d "
           "executions_at_handler=%u",
           BURSTS, counts.answered, counts.refused, counts.cut, peer_count_requests(rig.peer));
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) counts.answered);
    peer_free(rig.peer);
}
END_TEST

/* The server stands still while they connect and send, so that it finds them, and the signal, at once. */
START_TEST(requests_that_come_with_the_signal_are_answered_or_not_begun)
{
    enum { STOPS = 10, COMERS = 32 };
    int fds[COMERS], answered = 0, cut = 0;
    rig = (struct rig){ .peer = peer_new(), .store = "memory" };
    for (int round = 0; round < STOPS; round++) {
        const char *const arguments[] = { "--set", round % 2 == 0 ? "server.loops=2" : "server.loops=4", NULL };
        int status;
        rig_restart(&rig, arguments);
        daemon_signal(&rig.nonbis, SIGSTOP);
        ck_assert_int_eq(waitpid(rig.nonbis.pid, &status, WUNTRACED), rig.nonbis.pid);
        for (int i = 0; i < COMERS; i++) {
            char field[64];
            (void) snprintf(field, sizeof field, "Idempotency-Key: s-%d-%d\r\n", round, i);
            fds[i] = sender_get(rig.address, "/", field);
        }
        daemon_signal(&rig.nonbis, SIGTERM);
        daemon_signal(&rig.nonbis, SIGCONT);
        ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
        for (int i = 0; i < COMERS; i++) {
            char key[64];
            (void) snprintf(key, sizeof key, "s-%d-%d", round, i);
            struct http_answer answer = http_receive(fds[i], false, NULL);
            ck_assert_msg(peer_count_key(rig.peer, key) == (answer.status == 200 ? 1 : 0),
                          "%s: status %d and %u executions", key, answer.status, peer_count_key(rig.peer, key));
            answered += answer.status == 200;
            cut += answer.status == 0;
            http_answer_free(&answer);
            close(fds[i]);
        }
    }
    FIGURE("%d requests that came with the signal: answered=%d closed_without_an_answer=%d executions_at_handler=%u",
           STOPS * COMERS, answered, cut, peer_count_requests(rig.peer));
    peer_free(rig.peer);
}
END_TEST

SUITE(loops_drain)
{
    Suite *suite = suite_create("integration/loops_drain");
    CASE_LOOP(suite, a_drain_waits_for_every_loop_and_idle_loops_go_on_with_replays, LOOP_COUNTS);
    CASE_LOOP(suite, a_drain_lets_every_loop_finish, LOOP_COUNTS);
    CASE_LOOP(suite, a_second_signal_ends_all_loops_at_once, LOOP_COUNTS);
    CASE_LOOP(suite, a_drain_that_is_too_short_records_unknown_on_every_loop, LOOP_COUNTS);
    CASE_LOOP(suite, a_store_that_fails_ends_all_loops_with_74, LOOP_COUNTS);
    CASE(suite, a_signal_right_after_the_start_ends_the_server);
    CASE(suite, a_signal_in_a_burst_of_connections_loses_no_answer);
    CASE(suite, requests_that_come_with_the_signal_are_answered_or_not_begun);
    return suite;
}
