/* store_time_test.c - the time that retention goes by (docs/contract.md 9.8), through the whole server: wall clocks that are wrong, set while it
 * runs or while it is off. Both clocks stand still but where a test moves them; a restart also begins a new monotonic clock, as a reboot does. */
#include "tests/support/rig.h"

#define STATUS "/_nonbis/v1/command"
#define CONTRACT "/_nonbis/v1"

#define START "2030-01-10T00:00:00Z"

static struct rig rig;

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static void expect_body(const char *target, const char *key, const char *text)
{
    char fields[128];
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
    struct http_answer answer = http_request(rig.address, "GET", target, fields, NULL);
    ck_assert_msg(strstr(answer.body, text) != NULL, "%s is not in %s", text, answer.body);
    http_answer_free(&answer);
}

static void expect_window(const char *time)
{
    char text[128];
    (void) snprintf(text, sizeof text, "\"window_start\":\"%s\"", time);
    expect_body(CONTRACT, "k", text);
    expect_body(STATUS, "unused", text);
}

/* The wall clock moves by `wall_ms` while the server is off. */
static void restart_after(int64_t wall_ms, bool crash, const char *const *more)
{
    if (crash) {
        daemon_kill(&rig.nonbis);
    } else {
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    clock_hand_step_wall(&rig.clock, wall_ms);
    clock_hand_set_monotonic(&rig.clock, 17 * MOVED_SECOND);
    rig_restart(&rig, more);
}

/* --- while it runs --- */

START_TEST(a_wall_clock_that_is_set_while_the_server_runs_changes_nothing_for_a_record)
{
    static const int64_t steps[] = { -5 * MOVED_DAY,  10 * MOVED_YEAR,  -20 * MOVED_YEAR,
                                     10 * MOVED_YEAR, 5 * MOVED_DAY,    -1,
                                     2 * MOVED_YEAR,  -10 * MOVED_YEAR, 8 * MOVED_YEAR + 1 };
    enum { STEPS = sizeof steps / sizeof steps[0] }; /* in all: none */
    char key[16];
    rig_start_at(&rig, START, NULL);
    post("k", 200, "executed");
    for (int i = 0; i < STEPS; i++) {
        clock_hand_step_wall(&rig.clock, steps[i]);
        clock_hand_pass(&rig.clock, 2 * MOVED_HOUR); /* so that a sweep is due, too */
        (void) snprintf(key, sizeof key, "k-%d", i);
        post(key, 200, "executed"); /* records the time, also the wall clock's */
        post("k", 200, "replayed");
        expect_body(STATUS, "k",
                    "\"created_at\":\"2030-01-10T00:00:00.000Z\",\"completed_at\":\"2030-01-10T00:00:00.000Z\","
                    "\"expires_at\":\"2030-01-11T00:00:00.000Z\"");
    }
    expect_body(STATUS, "k-3", "\"created_at\":\"2030-01-10T08:00:00.000Z\"");
    expect_body(STATUS, "k-8", "\"created_at\":\"2030-01-10T18:00:00.000Z\"");
    restart_after(0, false, NULL); /* the last word of the wall clock was right: nothing is lost or gained */
    clock_hand_pass(&rig.clock, 6 * MOVED_HOUR - 1);
    post("k", 200, "replayed");
    clock_hand_pass(&rig.clock, 1);
    post("k", 422, "refused");
    post("k-0", 200, "replayed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 1);
    rig_end(&rig);
}
END_TEST

/* --- over a restart --- */

/* Claimed 10 January 00:00, kept for 48 h; the server runs for an hour and is off while the wall clock moves so. `left_ms` later the answer is
 * still replayed, and a millisecond later not any more. `expires_at` is told by the wall clock as the start found it. */
static const struct absence {
    const char *what;
    int64_t wall_ms;
    const char *max_downtime;
    int64_t left_ms;
    const char *expires_at;
} absences[] = {
    { "a stop of three hours", 3 * MOVED_HOUR, "24h", 44 * MOVED_HOUR, "2030-01-12T00:00:00.000Z" },
    { "a stop of a day", MOVED_DAY, "24h", 23 * MOVED_HOUR, "2030-01-12T00:00:00.000Z" },
    { "a stop of ten days: what is over a day does not count", 10 * MOVED_DAY, "24h", 23 * MOVED_HOUR,
      "2030-01-21T00:00:00.000Z" },
    { "a stop of three hours, none counts", 3 * MOVED_HOUR, "0s", 47 * MOVED_HOUR, "2030-01-12T03:00:00.000Z" },
    { "a clock set ahead by years", 7 * MOVED_YEAR, "24h", 23 * MOVED_HOUR, "2037-01-09T00:00:00.000Z" },
    { "a clock set ahead by years, an hour counts", 7 * MOVED_YEAR, "1h", 46 * MOVED_HOUR, "2037-01-09T23:00:00.000Z" },
    { "a clock set back by 3 days in a stop of 2 h: late by the stop at most", 2 * MOVED_HOUR - 3 * MOVED_DAY, "24h",
      47 * MOVED_HOUR, "2030-01-09T02:00:00.000Z" },
    { "a clock set back by 1 h in a stop of 3 h", 2 * MOVED_HOUR, "24h", 45 * MOVED_HOUR, "2030-01-12T00:00:00.000Z" },
    { "a clock set back by years", -7 * MOVED_YEAR, "24h", 47 * MOVED_HOUR, "2023-01-14T00:00:00.000Z" },
};
enum { ABSENCES = sizeof absences / sizeof absences[0] };

/* Index: row, and whether the server was stopped or killed. */
START_TEST(over_a_restart_store_time_moves_by_what_the_wall_clock_says_within_bounds)
{
    const struct absence *row = &absences[_i / 2];
    char downtime[64], expires_at[64];
    const char *const more[] = { "--set", "ttl=48h", "--set", downtime, NULL };
    (void) snprintf(downtime, sizeof downtime, "max_downtime=%s", row->max_downtime);
    (void) snprintf(expires_at, sizeof expires_at, "\"expires_at\":\"%s\"", row->expires_at);
    rig_start_at(&rig, START, more);
    post("k", 200, "executed");
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    post("later", 200, "executed"); /* a kill finds this time recorded */
    restart_after(row->wall_ms, _i % 2 == 1, more);
    expect_body(STATUS, "k", expires_at);
    restart_after(0, _i % 2 == 1, more); /* what did not count is not caught up by another start */
    clock_hand_pass(&rig.clock, row->left_ms - 1);
    post("k", 200, "replayed");
    clock_hand_pass(&rig.clock, 1);
    post("k", 422, "refused");
    post("later", 200, "replayed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 1);
    rig_end(&rig);
}
END_TEST

/* The clock is wrong in one run and right again in the next: what it only catches up is no time that went by, and frees nothing early. Index: set
 * back while the server was off, or while it ran and recorded times; then stopped, or killed. */
START_TEST(a_clock_that_was_set_back_and_is_put_right_takes_nothing_from_a_record)
{
    bool while_running = _i % 2 == 1, crash = _i / 2 == 1;
    rig_start_at(&rig, START, NULL);
    post("k", 200, "executed");
    if (while_running) {
        clock_hand_step_wall(&rig.clock, -5 * MOVED_DAY);
    } else {
        restart_after(-5 * MOVED_DAY, crash, NULL);
    }
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    post("wrong", 200, "executed");
    restart_after(5 * MOVED_DAY + MOVED_HOUR, crash, NULL); /* right again, after an hour off */
    clock_hand_pass(&rig.clock, 22 * MOVED_HOUR - 1);
    post("k", 200, "replayed");
    clock_hand_pass(&rig.clock, 1);
    post("k", 422, "refused");
    expect_body(STATUS, "wrong", "\"created_at\":\"2030-01-10T01:00:00.000Z\"");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 1);
    rig_end(&rig);
}
END_TEST

/* A clock that is ahead at every other start takes max_downtime once, not every time. */
START_TEST(a_clock_that_is_ahead_again_and_again_takes_a_day_once)
{
    static const char *const more[] = { "--set", "ttl=48h", NULL };
    rig_start_at(&rig, START, more);
    post("k", 200, "executed");
    for (int i = 0; i < 4; i++) {
        restart_after(3 * MOVED_YEAR, i % 2 == 1, more);
        restart_after(-3 * MOVED_YEAR, false, more);
    }
    clock_hand_pass(&rig.clock, MOVED_DAY - 1);
    post("k", 200, "replayed");
    clock_hand_pass(&rig.clock, 1);
    post("k", 422, "refused");
    rig_end(&rig);
}
END_TEST

/* A machine without a clock of its own begins every time in the year 2000. Every run lasts a minute; odd ones are killed. */
START_TEST(many_restarts_with_a_clock_that_is_always_behind_never_take_store_time_back)
{
    enum { RUNS = 12 };
    static const char *const created[RUNS] = {
        "1999-12-31T23:50:00.000Z", "1999-12-31T23:51:00.000Z", "1999-12-31T23:52:00.000Z", "1999-12-31T23:53:00.000Z",
        "1999-12-31T23:54:00.000Z", "1999-12-31T23:55:00.000Z", "1999-12-31T23:56:00.000Z", "1999-12-31T23:57:00.000Z",
        "1999-12-31T23:58:00.000Z", "1999-12-31T23:59:00.000Z", "2000-01-01T00:00:00.000Z", "2000-01-01T00:01:00.000Z",
    };
    static const char *const more[] = { "--set", "ttl=11m", NULL };
    char key[16], text[64];
    rig_start_at(&rig, START, more);
    for (int i = 0; i < RUNS; i++) {
        clock_hand_pass(&rig.clock, MOVED_MINUTE);
        (void) snprintf(key, sizeof key, "k-%d", i);
        post(key, 200, "executed");
        post("k-0", i < 11 ? 200 : 422, i == 0 ? "replayed" : i < 11 ? "replayed" : "refused");
        if (i < RUNS - 1) {
            restart_after(0, i % 2 == 1, more);
            clock_hand_set_wall(&rig.clock, "2000-01-01T00:00:00Z");
            restart_after(0, i % 4 >= 2, more);
        }
    }
    for (int i = 0; i < RUNS; i++) {
        (void) snprintf(key, sizeof key, "k-%d", i);
        (void) snprintf(text, sizeof text, "\"created_at\":\"%s\"", created[i]);
        expect_body(STATUS, key, text);
        ck_assert_uint_eq(peer_count_key(rig.peer, key), 1);
    }
    rig_end(&rig);
}
END_TEST

/* --- since when every key is remembered (7.6) --- */

static const char *const short_times[] = {
    "--set", "ttl=1h", "--set", "tombstone_ttl=2h", "--log-level", "debug", NULL
};

START_TEST(window_start_moves_to_the_last_command_that_was_forgotten)
{
    rig_start_at(&rig, START, short_times);
    expect_window("2030-01-10T00:00:00.000Z");
    clock_hand_pass(&rig.clock, MOVED_MINUTE);
    post("a", 200, "executed");
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    post("b", 200, "executed");
    expect_window("2030-01-10T00:00:00.000Z");
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    expect_body(STATUS, "a", "\"window_start\":\"2030-01-10T00:01:00.001Z\"");
    expect_window("2030-01-10T00:01:00.001Z");
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    expect_body(STATUS, "b", "\"window_start\":\"2030-01-10T01:01:00.001Z\"");
    clock_hand_step_wall(&rig.clock, -10 * MOVED_DAY);
    expect_window("2030-01-10T01:01:00.001Z");
    rig_end(&rig);
}
END_TEST

/* Whoever was told a time in one run must not meet an earlier one in a later run: he would take "not seen" for "never executed". */
START_TEST(window_start_never_moves_back_whatever_the_wall_clock_does_between_runs)
{
    rig_start_at(&rig, START, short_times);
    post("a", 200, "executed");
    clock_hand_pass(&rig.clock, 2 * MOVED_HOUR);
    expect_body(STATUS, "a", "\"window_start\":\"2030-01-10T00:00:00.001Z\"");
    /* A look-up alone writes nothing: what it found out is durable with the sweep behind it, at the latest. */
    ck_assert(daemon_wait_logged(&rig.nonbis, "forgotten=1 "));
    restart_after(-3 * MOVED_DAY, false, short_times); /* set back */
    expect_window("2030-01-10T00:00:00.001Z");
    post("b", 200, "executed");
    clock_hand_pass(&rig.clock, 2 * MOVED_HOUR);
    expect_body(STATUS, "b", "\"window_start\":\"2030-01-10T02:00:00.001Z\""); /* as told without the step */
    ck_assert(daemon_wait_logged(&rig.nonbis, "forgotten=1 "));
    restart_after(3 * MOVED_DAY, true, short_times);
    expect_window("2030-01-10T02:00:00.001Z");
    /* Off for ten days, of which one counts: store time is nine days behind the wall clock from now on. */
    restart_after(10 * MOVED_DAY, false, short_times);
    expect_window("2030-01-19T02:00:00.001Z");
    restart_after(-9 * MOVED_DAY, true, short_times);
    expect_window("2030-01-19T02:00:00.001Z");
    restart_after(0, false, short_times);
    expect_window("2030-01-19T02:00:00.001Z");
    rig_end(&rig);
}
END_TEST

SUITE(store_time)
{
    Suite *suite = suite_create("integration/store_time");
    CASE(suite, a_wall_clock_that_is_set_while_the_server_runs_changes_nothing_for_a_record);
    CASE_LOOP(suite, over_a_restart_store_time_moves_by_what_the_wall_clock_says_within_bounds, 2 * ABSENCES);
    CASE_LOOP(suite, a_clock_that_was_set_back_and_is_put_right_takes_nothing_from_a_record, 4);
    CASE(suite, a_clock_that_is_ahead_again_and_again_takes_a_day_once);
    CASE(suite, many_restarts_with_a_clock_that_is_always_behind_never_take_store_time_back);
    CASE(suite, window_start_moves_to_the_last_command_that_was_forgotten);
    CASE(suite, window_start_never_moves_back_whatever_the_wall_clock_does_between_runs);
    return suite;
}
