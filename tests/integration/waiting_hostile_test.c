/* waiting_hostile_test.c - clients that leave while their request waits for a running command (docs/contract.md 7.3, 10.15), at every moment, and many of
 * them: nobody keeps a place, an answer or memory for them, and nothing is executed for them. Executions are counted at the handler. */
#include "tests/integration/waiting_scene.h"
#include "tests/support/process_memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 16 };

/* --- leaving --- */

enum way { WAY_CLOSE, WAY_RESET, WAY_HALF, WAY_COUNT };

static void leave(int fd, enum way way)
{
    if (way == WAY_RESET) {
        sender_reset(fd);
        return;
    }
    if (way == WAY_HALF) {
        (void) shutdown(fd, SHUT_WR);
    }
    close(fd);
}

/* What was sent when the client leaves, and whether the server is given time to act on it; the key "k" is running. */
static const struct {
    const char *text;
    bool settled;
} phases[] = {
    { "", false },
    { "POST /orders HTT", false },
    { HEAD("POST", "/orders", "1.1",
           "Idempotency-Key: k\r\n" WAITS "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"),
      false },
    { HEAD("POST", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 5\r\n\r\nab"), false },
    { HEAD("POST", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\n\r\nx"), false },
    { HEAD("POST", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\n\r\nx"), true },
    { HEAD("POST", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\n\r\nx") "POST /or", true },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "\r\n"), false },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "\r\n"), true },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n\r\n"), false },
};
enum { PHASES = sizeof phases / sizeof phases[0], LEAVERS = 4 };

START_TEST(whoever_leaves_in_whatever_phase_leaves_nothing_behind)
{
    int fds[LEAVERS];
    scene_start("debug", "waiters_max=8");
    int first = scene_start_command("k");
    for (int i = 0; i < PHASES * WAY_COUNT; i++) {
        for (int j = 0; j < LEAVERS; j++) {
            fds[j] = scene_send(phases[i / WAY_COUNT].text);
        }
        if (phases[i / WAY_COUNT].settled) {
            scene_round_trip("k");
        }
        for (int j = 0; j < LEAVERS; j++) {
            leave(fds[j], (enum way)(i % WAY_COUNT));
        }
    }
    int waited = daemon_count_logged(&rig.nonbis, "waits for the end");
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    scene_expect_free_places("k-2", 8);
    FIGURE("%d clients left, in %d phases in %d ways, %d while they waited: executions_at_handler=%u",
           PHASES * WAY_COUNT * LEAVERS, PHASES, WAY_COUNT, waited, peer_count_requests(rig.peer));
    ck_assert_int_ge(waited, 3 * WAY_COUNT); /* at least one each time where they were given the time to */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(connections_that_come_and_go_at_once_leave_nothing_behind)
{
    enum { COMERS = 2000, PLACES = 32 };
    int fds[PLACES];
    scene_start("info", "connections_max=32");
    for (int i = 0; i < COMERS; i++) {
        int fd = http_connect(rig.address);
        ck_assert_int_ge(fd, 0);
        leave(fd, (enum way)(i % WAY_COUNT));
    }
    for (int i = 0; i < PLACES; i++) { /* all places are free again */
        struct http_answer answer = { 0 };
        for (int turn = 0; turn < 1000 && answer.status != 200; turn++) {
            http_answer_free(&answer);
            fds[i] = sender_get(rig.address, "/", "");
            answer = http_receive(fds[i], false, NULL);
            if (answer.status != 200) {
                close(fds[i]);
            }
        }
        ck_assert_int_eq(answer.status, 200);
        http_answer_free(&answer);
    }
    sender_expect_last(sender_get(rig.address, "/", ""), 503, "");
    sender_close_all(fds, PLACES);
    rig_end(&rig);
}
END_TEST

/* --- leaving at the moment of the outcome --- */

enum { MOMENTS = 200 };

/* Half of them are repeats, half are queries, on both loops. */
static int moment_ask(const char *key, int number)
{
    char field[128];
    (void) snprintf(field, sizeof field, "Idempotency-Key: %s\r\n" WAITS, key);
    return number / SCENE_LOOPS % 2 == 0 ? sender_post(rig.address, key, WAITS)
                                         : sender_get(rig.address, STATUS, field);
}

struct moment_counts {
    int replayed, told, left, half_replayed, half_told, half_lost;
};

/* `half`: it has closed its sending side, and may be told that the command runs. The one whose end comes between the answer and libmicrohttpd's next read
 * is closed without it (docs/facts.md 51). */
static void moment_expect(int fd, bool half, struct moment_counts *counts)
{
    struct http_answer answer = http_receive(fd, false, NULL);
    bool completed = answer.status == 201 || (answer.body != NULL && strstr(answer.body, "\"state\":\"completed\""));
    bool runs = answer.status == 409 || (answer.body != NULL && strstr(answer.body, "\"state\":\"in_progress\""));
    bool lost = half && answer.status == 0;
    ck_assert_msg(lost || (answer.whole && (completed || (half && runs))), "status %d: %s", answer.status,
                  answer.body != NULL ? answer.body : "no answer");
    counts->half_lost += lost;
    counts->replayed += completed && !half && answer.status == 201;
    counts->told += completed && !half && answer.status == 200;
    counts->half_replayed += completed && half;
    counts->half_told += runs && half;
    http_answer_free(&answer);
    close(fd);
}

static void moment_run(int round, struct suite_random *random, struct moment_counts *counts)
{
    int fds[CROWD], order[CROWD];
    bool half[CROWD] = { false };
    char key[64];
    (void) snprintf(key, sizeof key, "m-%d", round);
    int first = scene_start_command(key);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = moment_ask(key, i);
        order[i] = i;
    }
    for (int i = CROWD - 1; i > 0; i--) {
        int j = (int) suite_random_below(random, (unsigned) i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    if (suite_random_below(random, 2) == 0) {
        scene_round_trip(key); /* all of them wait; else some are still on their way */
    }
    unsigned leavers = suite_random_below(random, CROWD + 1), release = suite_random_below(random, leavers + 1);
    for (unsigned i = 0; i < CROWD; i++) {
        if (i == release) {
            peer_release(rig.peer, 1);
        }
        if (i < leavers) {
            enum way way = (enum way) suite_random_below(random, WAY_COUNT);
            half[order[i]] = way == WAY_HALF;
            if (way == WAY_HALF) {
                (void) shutdown(fds[order[i]], SHUT_WR);
                continue;
            }
            leave(fds[order[i]], way);
            fds[order[i]] = -1;
            counts->left++;
        }
    }
    if (release == CROWD) {
        peer_release(rig.peer, 1);
    }
    sender_expect_last(first, 201, "executed");
    for (int i = 0; i < CROWD; i++) {
        if (fds[i] >= 0) {
            moment_expect(fds[i], half[i], counts);
        }
    }
    ck_assert_uint_eq(peer_count_key(rig.peer, key), 1);
}

START_TEST(whoever_leaves_when_the_outcome_comes_disturbs_nobody)
{
    struct suite_random random;
    struct moment_counts counts = { 0 };
    unsigned seed = suite_seed();
    suite_random_start(&random, seed);
    FIGURE("leaving at the moment of the outcome: seed=%u", seed);
    scene_start("info", "waiters_max=64");
    for (int round = 0; round < MOMENTS; round++) {
        moment_run(round, &random, &counts);
    }
    scene_expect_free_places("after", 64);
    FIGURE("%d outcomes for %d each: repeats_replayed=%d queries_told=%d left=%d half_closed_told_the_outcome=%d "
           "half_closed_told_that_it_runs=%d half_closed_not_answered=%d executions_at_handler=%u",
           MOMENTS, CROWD, counts.replayed, counts.told, counts.left, counts.half_replayed, counts.half_told,
           counts.half_lost, peer_count_requests(rig.peer));
    ck_assert_int_le(counts.half_lost, 5);
    ck_assert_uint_eq(peer_count_requests(rig.peer), MOMENTS + 1);
    rig_end(&rig);
}
END_TEST

/* --- a full queue, and memory --- */

/* The queue takes one task at a time: who was told to wait may be refused when all of them ask again at once, and then repeats. */
START_TEST(waiters_that_find_the_queue_full_are_refused_and_executed_by_nobody)
{
    enum { MANY = 48 };
    int fds[MANY], waiting = 0, replayed = 0, refused = 0;
    scene_start("debug", "store_queue_max=1");
    int first = scene_start_command("k");
    while (waiting < MANY) {
        fds[waiting] = sender_post(rig.address, "k", WAITS);
        struct pollfd one = { .fd = fds[waiting], .events = POLLIN };
        int before = daemon_count_logged(&rig.nonbis, "waits for the end");
        while (before <= waiting && poll(&one, 1, 0) == 0) {
            before = daemon_count_logged(&rig.nonbis, "waits for the end");
        }
        if (before > waiting) {
            waiting++;
        } else {
            sender_expect_last(fds[waiting], 503, "refused");
        }
    }
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    for (int i = 0; i < MANY; i++) {
        struct http_answer answer = http_receive(fds[i], false, NULL);
        if (answer.status == 503) {
            RIG_EXPECT(answer, 503, "refused");
            ck_assert_ptr_nonnull(strstr(answer.body, "\"retryable\":true"));
            refused++;
        } else {
            RIG_EXPECT(answer, 201, "replayed");
            replayed++;
        }
        http_answer_free(&answer);
        close(fds[i]);
    }
    FIGURE("store_queue_max=1, %d waiters: replayed=%d refused_503=%d executions_at_handler=%u", MANY, replayed,
           refused, peer_count_requests(rig.peer));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    sender_expect_last(sender_post(rig.address, "k", ""), 201, "replayed");
    rig_end(&rig);
}
END_TEST

enum { WAITS_EACH = 100, WAIT_ROUNDS = 100 };

/* In every second round the outcome comes, in the others everybody leaves. */
static void wait_round(int round)
{
    int fds[WAITS_EACH];
    char key[64];
    (void) snprintf(key, sizeof key, "w-%d", round);
    int first = scene_start_command(key);
    for (int i = 0; i < WAITS_EACH; i++) {
        fds[i] = sender_post(rig.address, key, WAITS);
    }
    scene_round_trip(key);
    if (round % 2 == 1) {
        sender_close_all(fds, WAITS_EACH);
    }
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    for (int i = 0; i < WAITS_EACH && round % 2 == 0; i++) {
        sender_expect_last(fds[i], 201, "replayed");
    }
}

enum { WAIT_TENTHS = 10, LEAK_BYTES = 256 };

static int long_order(const void *a, const void *b)
{
    long left = *(const long *) a, right = *(const long *) b;
    return left < right ? -1 : left > right;
}

/* What is forgotten after each wait grows in every tenth alike; a crowd that was larger than any before it, in one tenth alone. So it is the
 * median of the tenths that tells. */
START_TEST(ten_thousand_waits_leave_no_memory_behind)
{
    scene_start("warn", "waiters_per_key=1000");
    long before_kb = 0, grown_kb[WAIT_TENTHS];
    for (int tenth = 0; tenth < WAIT_TENTHS; tenth++) {
        for (int round = 0; round < WAIT_ROUNDS / WAIT_TENTHS; round++) {
            wait_round(tenth * (WAIT_ROUNDS / WAIT_TENTHS) + round);
        }
        long now_kb = process_memory_own_kb(rig.nonbis.pid);
        grown_kb[tenth] = now_kb - before_kb;
        before_kb = now_kb;
    }
    qsort(grown_kb, WAIT_TENTHS, sizeof grown_kb[0], long_order);
    FIGURE("%d waits: %ld KiB after all; growth per tenth: median %ld KiB, largest but the first %ld KiB",
           WAIT_ROUNDS * WAITS_EACH, before_kb, grown_kb[WAIT_TENTHS / 2], grown_kb[WAIT_TENTHS - 2]);
    if (strstr(suite_out(), "san-") == NULL) { /* sanitizers keep what was freed, and find small leaks themselves */
        ck_assert_int_lt(grown_kb[WAIT_TENTHS / 2], LEAK_BYTES * WAITS_EACH * WAIT_ROUNDS / WAIT_TENTHS / 1024);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), WAIT_ROUNDS);
    rig_end(&rig);
}
END_TEST

SUITE(waiting_hostile)
{
    Suite *suite = suite_create("integration/waiting_hostile");
    CASE(suite, whoever_leaves_in_whatever_phase_leaves_nothing_behind);
    CASE(suite, connections_that_come_and_go_at_once_leave_nothing_behind);
    CASE(suite, whoever_leaves_when_the_outcome_comes_disturbs_nobody);
    CASE(suite, waiters_that_find_the_queue_full_are_refused_and_executed_by_nobody);
    CASE(suite, ten_thousand_waits_leave_no_memory_behind);
    return suite;
}
