/* loops_test.c - several loops are one server (setting server.loops; docs/contract.md 4.7, 5.6, 7.2, 10.15): one execution wherever the copies land,
 * limits and counts over all loops, connections dealt evenly. Executions are counted at the handler. How it ends: loops_drain_test.c. */
#include "tests/support/crowd.h"
#include "tests/support/sender.h"

#include <unistd.h>

enum { CLIENTS = 64, KEYS = 8, ROUNDS = 50, LOOPS_MAX = 4 };

#define STATUS "/_nonbis/v1/command"

static const int loop_counts[] = { 2, 4 };
enum { LOOP_COUNTS = sizeof loop_counts / sizeof loop_counts[0] };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

static struct rig rig;

/* `more`: NULL-terminated. */
static void start(int loops, const char *const *more)
{
    char setting[32];
    const char *arguments[16] = { "--set", setting };
    int count = 2;
    (void) snprintf(setting, sizeof setting, "server.loops=%d", loops);
    for (; *more != NULL; more++) {
        arguments[count++] = *more;
    }
    rig_start(&rig, arguments);
}
#define START(loops, ...) start((loops), (const char *const[]){ __VA_ARGS__, NULL })

static const char *key_of(char *key, const char *name, int number)
{
    (void) snprintf(key, 64, "%s-%d", name, number);
    return key;
}

/* --- one execution --- */

START_TEST(of_64_copies_on_all_loops_one_is_executed)
{
    struct http_answer answers[CLIENTS];
    int fds[CLIENTS], executed = 0, in_progress = 0;
    START(loop_counts[_i], NULL);
    peer_script_default(rig.peer, held);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = sender_post(rig.address, "k", "");
    }
    ck_assert_int_eq(sender_gather(fds, CLIENTS, CLIENTS - 1, answers), CLIENTS - 1); /* before the handler answers */
    for (int i = 0; i < CLIENTS; i++) {
        if (answers[i].status != 0) {
            RIG_EXPECT(answers[i], 409, "in-progress");
            in_progress++;
            continue;
        }
        ck_assert(peer_wait_stalled(rig.peer, 1));
        peer_release(rig.peer, 1);
        sender_expect(fds[i], 201, "executed");
        executed++;
    }
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert(sender_post_on(fds[i], "k", ""));
        sender_expect_last(fds[i], 201, "replayed");
        http_answer_free(&answers[i]);
    }
    FIGURE("loops=%d, one key, %d clients: executed=%d in_progress_409=%d executions_at_handler=%u", loop_counts[_i],
           CLIENTS, executed, in_progress, peer_count_requests(rig.peer));
    ck_assert_int_eq(executed, 1);
    ck_assert_int_eq(in_progress, CLIENTS - 1);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

struct round_counts {
    int executed, replayed, in_progress, reused;
};

static void count_answer(const struct http_answer *answer, struct round_counts *counts)
{
    ck_assert_msg(answer->status == 200 || answer->status == 409 || answer->status == 422, "status %d", answer->status);
    counts->executed += http_field_is(answer, "Idempotency-Status", "executed");
    counts->replayed += http_field_is(answer, "Idempotency-Status", "replayed");
    counts->in_progress += answer->status == 409;
    counts->reused += answer->status == 422;
}

/* 64 clients on 8 keys, half of those of a key with another payload. The payload that claimed it is the only one that is not refused. */
static void run_round(struct crowd *crowd, int round, struct round_counts *counts)
{
    static struct crowd_member members[CLIENTS];
    int winner[KEYS] = { 0 };
    for (int i = 0; i < CLIENTS; i++) {
        members[i] = (struct crowd_member){ .address = rig.address };
        (void) snprintf(members[i].key, sizeof members[i].key, "r%d-k%d", round, i % KEYS);
        (void) snprintf(members[i].body, sizeof members[i].body, "{\"amount\":%d}", 1 + (i / KEYS) % 2);
    }
    crowd_round(crowd, members);
    for (int i = 0; i < CLIENTS; i++) {
        int payload = 1 + (i / KEYS) % 2;
        count_answer(&members[i].answer, counts);
        if (members[i].answer.status != 422) {
            ck_assert_msg(winner[i % KEYS] == 0 || winner[i % KEYS] == payload, "both payloads of a key were taken");
            winner[i % KEYS] = payload;
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        bool won = 1 + (i / KEYS) % 2 == winner[i % KEYS];
        ck_assert_msg(won == (members[i].answer.status != 422), "the other payload was not refused");
        ck_assert_uint_eq(peer_count_key(rig.peer, members[i].key), 1);
    }
    crowd_free(members, CLIENTS);
}

START_TEST(of_two_payloads_on_all_loops_one_wins_every_time)
{
    struct round_counts counts = { 0 };
    START(loop_counts[_i], NULL);
    struct crowd *crowd = crowd_gather(CLIENTS);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(crowd, round, &counts);
    }
    crowd_leave(crowd);
    FIGURE("loops=%d, two payloads, %d rounds of %d clients on %d keys: executed=%d replayed=%d in_progress_409=%d "
           "reused_422=%d executions_at_handler=%u",
           loop_counts[_i], ROUNDS, CLIENTS, KEYS, counts.executed, counts.replayed, counts.in_progress, counts.reused,
           peer_count_requests(rig.peer));
    ck_assert_uint_eq(peer_count_requests(rig.peer), ROUNDS * KEYS);
    ck_assert_int_eq(counts.executed, ROUNDS * KEYS);
    ck_assert_int_eq(counts.reused, ROUNDS * CLIENTS / 2);
    ck_assert_int_gt(counts.in_progress, 0);
    rig_end(&rig);
}
END_TEST

/* --- limits over all loops --- */

/* `count` new commands at once, of which `limit` find room. Then they end, and their room is free again. */
static void expect_running(int round, int count, int limit)
{
    struct http_answer answers[CLIENTS];
    int fds[CLIENTS] = { 0 };
    char key[64], name[16];
    (void) snprintf(name, sizeof name, "r%d", round);
    for (int i = 0; i < count; i++) {
        fds[i] = sender_post(rig.address, key_of(key, name, i), "");
    }
    ck_assert_int_eq(sender_gather(fds, count, count - limit, answers), count - limit);
    ck_assert(peer_wait_stalled(rig.peer, (unsigned) limit));
    for (int i = 0; i < count; i++) {
        if (answers[i].status != 0) {
            RIG_EXPECT(answers[i], 503, "refused");
            ck_assert_ptr_nonnull(strstr(answers[i].body, "\"reason\":\"overloaded\""));
        }
    }
    peer_release(rig.peer, (unsigned) limit);
    for (int i = 0; i < count; i++) {
        if (answers[i].status == 0) {
            sender_expect(fds[i], 201, "executed");
        }
        http_answer_free(&answers[i]);
    }
    sender_close_all(fds, count);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) (round * limit));
}

START_TEST(running_max_holds_over_all_loops)
{
    START(loop_counts[_i], "--set", "running_max=5");
    peer_script_default(rig.peer, held);
    expect_running(1, 6, 5);
    expect_running(2, CLIENTS, 5);
    expect_running(3, CLIENTS, 5);
    rig_end(&rig);
}
END_TEST

START_TEST(connections_max_holds_over_all_loops)
{
    int fds[CLIENTS], taken[10], takers = 0;
    START(loop_counts[_i], "--set", "connections_max=10");
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = sender_get(rig.address, "/", "");
    }
    for (int i = 0; i < CLIENTS; i++) {
        struct http_answer answer = http_receive(fds[i], false, NULL);
        ck_assert_msg(answer.status == 200 || answer.status == 503, "status %d", answer.status);
        if (answer.status == 200) {
            ck_assert_int_lt(takers, 10);
            taken[takers++] = fds[i];
        } else {
            ck_assert(http_field_is(&answer, "Retry-After", "1"));
            close(fds[i]);
        }
        http_answer_free(&answer);
    }
    ck_assert_int_eq(takers, 10);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 10);
    /* Who was let in stays; who leaves makes room for exactly one, on whatever loop. */
    for (int i = 0; i < takers; i++) {
        int status = 503;
        close(taken[i]);
        for (int turn = 0; turn < 1000 && status == 503; turn++) {
            taken[i] = sender_get(rig.address, "/", "");
            struct http_answer answer = http_receive(taken[i], false, NULL);
            status = answer.status;
            http_answer_free(&answer);
            if (status != 200) {
                close(taken[i]);
            }
        }
        ck_assert_int_eq(status, 200);
        sender_expect_last(sender_get(rig.address, "/", ""), 503, "");
    }
    sender_close_all(taken, takers);
    rig_end(&rig);
}
END_TEST

/* Of `count` that would wait for `key`, `limit` do: the others are answered at once. Returns those that wait, through `waiting`. */
static void expect_waiting(const char *key, const char *fields, int count, int limit, int *waiting)
{
    struct http_answer answers[CLIENTS];
    int fds[CLIENTS] = { 0 }, waits = 0;
    for (int i = 0; i < count; i++) {
        fds[i] = sender_post(rig.address, key, fields);
    }
    ck_assert_int_eq(sender_gather(fds, count, count - limit, answers), count - limit);
    for (int i = 0; i < count; i++) {
        if (answers[i].status == 0) {
            waiting[waits++] = fds[i];
            continue;
        }
        RIG_EXPECT(answers[i], 409, "in-progress");
        http_answer_free(&answers[i]);
        close(fds[i]);
    }
    ck_assert_int_eq(waits, limit);
}

#define OF(tenant) "X-Tenant: " tenant "\r\n"
#define WAITS "Prefer: wait=20\r\n"

START_TEST(limits_on_waiters_hold_over_all_loops)
{
    int waiting[16], firsts[3];
    START(loop_counts[_i], "--set", "tenant=header:X-Tenant", "--set", "waiters_per_key=3", "--set",
          "waiters_per_tenant=5", "--set", "waiters_max=7");
    peer_script_default(rig.peer, held);
    for (int round = 0; round < 3; round++) { /* nothing is left behind by a round */
        char a[64], b[64];
        key_of(a, "a", round);
        key_of(b, "b", round);
        firsts[0] = sender_post(rig.address, a, OF("one"));
        firsts[1] = sender_post(rig.address, b, OF("one"));
        firsts[2] = sender_post(rig.address, a, OF("two"));
        ck_assert(peer_wait_stalled(rig.peer, 3));
        expect_waiting(a, OF("one") WAITS, 12, 3, waiting);     /* per key */
        expect_waiting(b, OF("one") WAITS, 12, 2, waiting + 3); /* per tenant: 5 */
        expect_waiting(a, OF("two") WAITS, 12, 2, waiting + 5); /* over all: 7 */
        peer_release(rig.peer, 3);
        for (int i = 0; i < 3; i++) {
            sender_expect_last(firsts[i], 201, "executed");
        }
        for (int i = 0; i < 7; i++) {
            sender_expect_last(waiting[i], 201, "replayed");
        }
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 9);
    rig_end(&rig);
}
END_TEST

/* --- what is counted and learned over all loops --- */

START_TEST(replays_are_counted_over_all_loops)
{
    int loops = loop_counts[_i];
    char replays[32];
    START(loops, NULL);
    sender_expect_last(sender_post(rig.address, "k", ""), 200, "executed");
    for (int i = 0; i < 3 * loops; i++) { /* three on each loop */
        sender_expect_last(sender_post(rig.address, "k", ""), 200, "replayed");
    }
    (void) snprintf(replays, sizeof replays, "\"replays\":%d,", loops == 2 ? 6 : 12);
    for (int i = 0; i < loops; i++) { /* told by each loop */
        struct http_answer answer = http_request(rig.address, "GET", STATUS, "Idempotency-Key: k\r\n", NULL);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_msg(strstr(answer.body, replays) != NULL, "expected %s in %s", replays, answer.body);
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

/* The first command takes 2.2 s or more, measured by a repeat of it that waits so long. From then on Retry-After is half to one and a half of what it
 * took, in whole seconds, 2 at least, and no 1 as where nothing was learned. */
START_TEST(how_long_the_handler_takes_is_learned_once_for_all_loops)
{
    static const char now[] = "Prefer: wait=0\r\n";
    enum { LOOPS = 4 };
    START(LOOPS, "--route", "POST /orders in_flight_wait=2200ms");
    peer_script_default(rig.peer, held);
    int64_t begin_ms = suite_now_ms();
    int first = sender_post(rig.address, "k", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    struct http_answer before = http_receive(sender_post(rig.address, "k", now), false, NULL);
    RIG_EXPECT(before, 409, "in-progress");
    ck_assert(http_field_is(&before, "Retry-After", "1"));
    sender_expect_last(sender_post(rig.address, "k", ""), 409, "in-progress"); /* after 2.2 s */
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    long most_s = (long) ((suite_now_ms() - begin_ms) * 3 / 2 + 999) / 1000;
    int second = sender_post(rig.address, "k-2", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    for (int i = 0; i < LOOPS; i++) {
        char after[16] = "";
        struct http_answer answer = http_receive(sender_post(rig.address, "k-2", now), false, NULL);
        RIG_EXPECT(answer, 409, "in-progress");
        ck_assert(http_field(&answer, "Retry-After", after, sizeof after));
        ck_assert_msg(strtol(after, NULL, 10) >= 2 && strtol(after, NULL, 10) <= most_s, "Retry-After: %s, at most %ld",
                      after, most_s);
        http_answer_free(&answer);
    }
    peer_release(rig.peer, 1);
    sender_expect_last(second, 201, "executed");
    http_answer_free(&before);
    rig_end(&rig);
}
END_TEST

/* --- dealing --- */

enum { CONNECTIONS = 400 };

/* Each loop keeps a connection of its own to the handler, and one is enough for requests one after another. The handler's answers name the connection
 * on which they were asked for, so the clients see which loop serves them. */
START_TEST(connections_are_dealt_evenly)
{
    static struct peer_step steps[LOOPS_MAX][2 * CONNECTIONS + 1];
    static char texts[LOOPS_MAX][80];
    int loops = loop_counts[_i], served[LOOPS_MAX] = { 0 }, fds[CONNECTIONS], least = CONNECTIONS, most = 0;
    START(loops, "--set", "upstream_idle=10m");
    for (int loop = 0; loop < loops; loop++) {
        (void) snprintf(texts[loop], sizeof texts[loop], "HTTP/1.1 200 OK\r\nX-Loop: %d\r\nContent-Length: 0\r\n\r\n",
                        loop);
        for (int i = 0; i < CONNECTIONS; i++) {
            steps[loop][2 * i] = (struct peer_step){ .op = PEER_READ };
            steps[loop][2 * i + 1] = (struct peer_step){ .op = PEER_SEND, .text = texts[loop] };
        }
        peer_script_for_connection(rig.peer, (unsigned) loop + 1, steps[loop]);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        char name[16] = "";
        char key[64];
        fds[i] = sender_post(rig.address, key_of(key, "k", i), "");
        struct http_answer answer = http_receive(fds[i], false, NULL);
        RIG_EXPECT(answer, 200, "executed");
        ck_assert(http_field(&answer, "X-Loop", name, sizeof name));
        served[strtol(name, NULL, 10)]++;
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_connections(rig.peer), (unsigned) loops);
    for (int loop = 0; loop < loops; loop++) {
        least = served[loop] < least ? served[loop] : least;
        most = served[loop] > most ? served[loop] : most;
    }
    FIGURE("loops=%d, %d connections: least=%d most=%d max/min=%.3f", loops, CONNECTIONS, least, most,
           (double) most / least);
    ck_assert_int_gt(least, 0);
    ck_assert_msg((double) most / least <= 1.01, "%d to %d per loop", least, most);
    sender_close_all(fds, CONNECTIONS);
    rig_end(&rig);
}
END_TEST

SUITE(loops)
{
    Suite *suite = suite_create("integration/loops");
    CASE_LOOP(suite, of_64_copies_on_all_loops_one_is_executed, LOOP_COUNTS);
    CASE_LOOP(suite, of_two_payloads_on_all_loops_one_wins_every_time, LOOP_COUNTS);
    CASE_LOOP(suite, running_max_holds_over_all_loops, LOOP_COUNTS);
    CASE_LOOP(suite, connections_max_holds_over_all_loops, LOOP_COUNTS);
    CASE_LOOP(suite, limits_on_waiters_hold_over_all_loops, LOOP_COUNTS);
    CASE_LOOP(suite, replays_are_counted_over_all_loops, LOOP_COUNTS);
    CASE(suite, how_long_the_handler_takes_is_learned_once_for_all_loops);
    CASE_LOOP(suite, connections_are_dealt_evenly, LOOP_COUNTS);
    return suite;
}
