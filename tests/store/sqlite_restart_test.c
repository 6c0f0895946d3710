/* sqlite_restart_test.c - how the time of the SQLite store and its running commands come through a restart (docs/contract.md sections 3, 6, 9). */
#include "tests/store/store_file.h"

#include <signal.h>
#include <sys/wait.h>

START_TEST(what_was_committed_survives_a_kill_and_what_ran_is_unknown)
{
    struct store_options options = start();
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = fixture_open(&options);
        struct store_found done = fixture_claim_now(store, "done", 1, 0), found;
        (void) fixture_claim_now(store, "running", 1, 7);
        ck_assert_int_eq(fixture_finish_now(store, "done", &done, OUTCOME_COMPLETED), STORE_OK);
        struct store_claim claim = fixture_claim("uncommitted", 1, 0);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
        (void) !write(ready[1], "x", 1);
        for (;;) {
            (void) pause();
        }
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    fixture_advance(100);
    struct store *store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 1);
    ck_assert_int_eq(fixture_state(store, "done"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "uncommitted"), RECORD_ABSENT);
    struct store_found seen = fixture_look_up(store, "running");
    ck_assert_int_eq(seen.record.state, RECORD_UNKNOWN);
    ck_assert_int_eq(seen.record.cause, CAUSE_CRASH);
    ck_assert_int_eq(seen.record.completed_ms, 1000100);
    ck_assert_int_eq(seen.record.expires_ms, 1050100);
    ck_assert_int_eq(seen.record.forget_ms, 1100100);
    ck_assert(seen.record.credential.present);
    fixture_found_free(&seen);
    store_close(store);
    store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 0);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(more_running_commands_than_one_chunk_are_all_recovered)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (int i = 0; i < 512; i++) {
        char key[16];
        struct store_found found;
        (void) snprintf(key, sizeof key, "key-%d", i);
        struct store_claim claim = fixture_claim(key, 1, 0);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    }
    ck_assert_int_eq(store_commit(store), STORE_OK);
    crash(store);
    store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 512);
    ck_assert_int_eq(fixture_state(store, "key-0"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "key-511"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Store time runs from 1000000 to 1003000, then the process is down while the wall clock moves so. */
START_TEST(store_time_moves_over_a_restart_with_the_wall_clock_but_never_back_or_too_far)
{
    static const struct {
        int64_t wall_moves_ms, store_time_ms;
    } rows[] = {
        { 5000, 1008000 }, { 0, 1003000 }, { -400000, 1003000 }, { 100000, 1103000 }, { 99999999, 1103000 },
    };
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1000000);
    fixture_monotonic_ms += 3000; /* while running only the monotonic clock counts */
    fixture_wall_ms += 12345678;
    ck_assert_int_eq(store_now(store), 1003000);
    store_close(store);
    fixture_wall_ms += rows[_i].wall_moves_ms;
    fixture_monotonic_ms = 17; /* a reboot */
    store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms);
    fixture_monotonic_ms += 1;
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms + 1);
    store_close(store);
    store = fixture_open(&options); /* what was clamped is not caught up at the next start */
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms + 1);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(store_time_after_a_crash_is_at_least_the_newest_time_in_the_commands)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "a", 1, 0);
    fixture_monotonic_ms += 999; /* time is recorded once a second */
    (void) fixture_claim_now(store, "b", 1, 0);
    crash(store);
    fixture_wall_ms -= 500000;
    store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1000999);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(the_window_of_remembered_keys_survives_a_crash)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "a", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &found, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(400);
    found = fixture_claim_now(store, "b", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "b", &found, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(FIXTURE_TOMBSTONE_MS - 400);
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1000001);
    fixture_advance(400); /* within the second in which time was recorded: the window does not wait for the next */
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1000401);
    crash(store);
    store = fixture_open(&options);
    ck_assert_int_eq(store_window_start(store), 1000401);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_restart)
{
    Suite *suite = suite_create("store/sqlite_restart");
    CASE(suite, what_was_committed_survives_a_kill_and_what_ran_is_unknown);
    CASE(suite, more_running_commands_than_one_chunk_are_all_recovered);
    CASE_LOOP(suite, store_time_moves_over_a_restart_with_the_wall_clock_but_never_back_or_too_far, 5);
    CASE(suite, store_time_after_a_crash_is_at_least_the_newest_time_in_the_commands);
    CASE(suite, the_window_of_remembered_keys_survives_a_crash);
    return suite;
}
