/* s09_retention_test.c - docs/contract.md section 9: for how long what is remembered. Time passes by scene_pass_time. */
#include "tests/contract/disk.h"
#include "tests/contract/scene.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

static const char *const long_off[] = { "--set", "max_downtime=365d", NULL };
static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

START_TEST(rule_9_1_an_answer_is_replayed_for_ttl_then_refused_until_tombstone_ttl_then_the_key_is_free)
{
    SCENE_START(NULL);
    const struct http_answer *first = post("k", "x");
    EXPECT(first, 200, "executed");
    scene_pass_time(23 * HOUR_MS, long_off);
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(2 * HOUR_MS, long_off);
    for (int i = 0; i < 2; i++) {
        const struct http_answer *expired = post("k", "x");
        EXPECT_PROBLEM(expired, 422, "refused", "key-expired");
        ck_assert_str_eq(member_of(expired, "executed"), "\"yes\"");
        EXPECT_PROBLEM(post("k", "y"), 422, "refused", "key-reused");
        const struct http_answer *status = get_status("k", "");
        ck_assert_str_eq(member_of(status, "state"), "\"expired\"");
        ck_assert_str_ne(member_of(status, "completed_at"), "null");
        if (i == 0) {
            scene_pass_time(28 * DAY_MS, long_off);
        }
    }
    scene_pass_time(DAY_MS, long_off); /* 30 days and an hour */
    EXPECT_PROBLEM(get_status("k", ""), 404, "", "key-not-seen");
    const struct http_answer *anew = post("k", "y");
    EXPECT(anew, 200, "executed");
    ck_assert_str_ne(command_path_of(anew), command_path_of(first));
    ck_assert_str_eq(handler_saw_field(2, "Nonbis-Execution"), "1");
    EXPECT_RUNS("k", 2);
    scene_end();
}
END_TEST

START_TEST(rule_9_2_an_unknown_outcome_stays_unknown_and_then_a_tombstone_for_as_long_again)
{
    SCENE_START(NULL);
    peer_script_default(scene.peer, reset);
    EXPECT(post("k", "x"), 504, "unknown");
    ck_assert(daemon_wait_logged(&scene.nonbis, " warn  exchange result=unknown")); /* a line in the log */
    scene_pass_time(29 * DAY_MS, long_off);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    scene_pass_time(2 * DAY_MS, long_off);
    for (int i = 0; i < 2; i++) {
        const struct http_answer *expired = post("k", "x");
        EXPECT_PROBLEM(expired, 422, "refused", "key-expired");
        ck_assert_str_eq(member_of(expired, "executed"), "\"unknown\"");
        if (i == 0) {
            scene_pass_time(28 * DAY_MS, long_off);
        }
    }
    scene_pass_time(2 * DAY_MS, long_off); /* 61 days */
    EXPECT_RUNS("k", 1);
    handler_answers("HTTP/1.1 201 Created\r\n" EMPTY);
    EXPECT(post("k", "y"), 201, "executed");
    scene_end();
}
END_TEST

START_TEST(rule_9_2_a_start_tells_how_many_it_found_in_progress)
{
    struct caller callers[3];
    SCENE_START(NULL);
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    for (int i = 0; i < 3; i++) {
        caller_start(&callers[i], scene.address, text("k-%d", i));
    }
    ck_assert(peer_wait_stalled(scene.peer, 3));
    daemon_kill(&scene.nonbis);
    for (int i = 0; i < 3; i++) {
        (void) join(&callers[i]);
    }
    peer_release(scene.peer, 3);
    SCENE_RESTART(NULL);
    ck_assert(daemon_logged(&scene.nonbis, "3 commands were in progress when the last run ended"));
    scene_end();
}
END_TEST

START_TEST(rule_9_3_released_is_kept_for_ttl_and_voided_for_tombstone_ttl)
{
    SCENE_START(NULL);
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("free", "x"), 429, "not-executed");
    EXPECT(void_key("void", ""), 200, "");
    scene_pass_time(23 * HOUR_MS, long_off);
    EXPECT_PROBLEM(post("free", "y"), 422, "refused", "key-reused");
    scene_pass_time(2 * HOUR_MS, long_off);
    EXPECT_PROBLEM(get_status("free", ""), 404, "", "key-not-seen");
    EXPECT(post("free", "y"), 429, "not-executed");
    ck_assert_str_eq(handler_saw_field(2, "Nonbis-Execution"), "1");
    scene_pass_time(28 * DAY_MS, long_off);
    EXPECT_PROBLEM(post("void", "x"), 422, "refused", "key-voided");
    scene_pass_time(DAY_MS, long_off);
    EXPECT_PROBLEM(get_status("void", ""), 404, "", "key-not-seen");
    EXPECT(post("void", "x"), 429, "not-executed");
    scene_end();
}
END_TEST

START_TEST(rule_9_4_what_is_in_progress_is_never_removed_by_age)
{
    struct caller caller;
    SCENE_START("--set", "ttl=1s", "--set", "tombstone_ttl=1s");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    daemon_kill(&scene.nonbis);
    (void) join(&caller);
    peer_release(scene.peer, 1);
    const char *const more[] = { "--set", "max_downtime=365d", NULL };
    scene_pass_time(364 * DAY_MS, more);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_9_5_both_ends_are_stored_and_never_shortened)
{
    const char *const shorter[] = {
        "--set", "ttl=1s", "--set", "tombstone_ttl=1s", "--set", "max_downtime=365d", NULL
    };
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    scene_pass_time(23 * HOUR_MS, shorter);
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(28 * DAY_MS, shorter);
    EXPECT_PROBLEM(post("k", "x"), 422, "refused", "key-expired");
    scene_end();
}
END_TEST

START_TEST(rule_9_5_what_was_promised_while_it_was_released_counts_when_it_is_completed)
{
    const char *const shorter[] = {
        "--set", "ttl=1s", "--set", "tombstone_ttl=1s", "--set", "max_downtime=365d", NULL
    };
    SCENE_START(NULL);
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("k", "x"), 429, "not-executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    scene_restart(shorter);
    handler_answers("HTTP/1.1 201 Created\r\n" EMPTY);
    EXPECT(post("k", "x"), 201, "executed");
    scene_pass_time(HOUR_MS, shorter);
    EXPECT(post("k", "x"), 201, "replayed");
    EXPECT_RUNS("k", 2);
    scene_end();
}
END_TEST

/* Posts new commands until the full disk has refused some; how many were executed before. */
static int post_until_refused(void)
{
    int executed = 0, refused = 0;
    for (int i = 0; i < 400 && refused < 3; i++) { /* the first ones fit into what the files have of room */
        const struct http_answer *answer = post(text("fill-%d", i), "x");
        if (answer->status == 503) {
            EXPECT_PROBLEM(answer, 503, "refused", "unavailable");
            ck_assert_str_eq(member_of(answer, "reason"), "\"store\"");
            refused++;
        } else {
            EXPECT(answer, 200, "executed");
            executed++;
        }
    }
    ck_assert_int_eq(refused, 3);
    return executed;
}

START_TEST(rule_9_6_a_live_record_is_never_pushed_out_new_commands_are_refused_instead)
{
    if (!disk_start(NULL)) {
        return;
    }
    EXPECT(post("k", "x"), 200, "executed");
    disk_fill();
    int executed = post_until_refused();
    EXPECT(post("k", "x"), 200, "replayed");
    for (int i = 0; i < executed; i++) {
        EXPECT(post(text("fill-%d", i), "x"), 200, "replayed");
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), (unsigned) executed + 1);
    disk_end();
}
END_TEST

START_TEST(rule_9_7_what_counts_is_the_stored_time_whether_the_clean_up_has_come_by_or_not)
{
    enum { MANY = 12 };
    SCENE_START(NULL);
    for (int i = 0; i < MANY; i++) {
        EXPECT(post(text("k-%d", i), "x"), 200, "executed");
    }
    const char *const more[] = { "--set", "max_downtime=365d", "--set", "sweep_batch=1", "--log-level", "debug", NULL };
    scene_pass_time(25 * HOUR_MS, more);
    for (int i = 0; i < MANY; i++) {
        EXPECT_PROBLEM(post(text("k-%d", i), "x"), 422, "refused", "key-expired");
    }
    ck_assert(daemon_wait_logged_times(&scene.nonbis, "expired=1 ", 3)); /* in small steps, behind it */
    scene_end();
}
END_TEST

static void damage_record(const char *sql)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(scene.store, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_changes(db), 1);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

START_TEST(rule_9_7_a_damaged_record_is_told_and_left_and_the_rest_is_cleaned_up)
{
    const char *const more[] = { "--set", "max_downtime=365d", "--set", "sweep_batch=1", "--log-level", "debug", NULL };
    SCENE_START(NULL);
    EXPECT(post("damaged", "x"), 200, "executed");
    EXPECT(post("k-1", "x"), 200, "executed");
    EXPECT(post("k-2", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    damage_record("UPDATE commands SET fingerprint = x'00' WHERE key = 'damaged'");
    scene_pass_time(25 * HOUR_MS, more);
    ck_assert(daemon_wait_logged_times(&scene.nonbis, "expired=1 ", 2));
    ck_assert(daemon_logged(&scene.nonbis, "command row 1 of "));
    ck_assert(daemon_logged(&scene.nonbis, " is due and cannot be cleaned up: "));
    ck_assert(daemon_logged(&scene.nonbis, "--check-store tells of all damage"));
    const struct http_answer *refused = post("damaged", "x");
    EXPECT_PROBLEM(refused, 503, "refused", "unavailable");
    ck_assert_str_eq(member_of(refused, "reason"), "\"store\"");
    EXPECT_PROBLEM(post("k-2", "x"), 422, "refused", "key-expired");
    EXPECT_RUNS("damaged", 1);
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0); /* not scene_end: errors were logged */
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_9_8_store_time_moves_by_max_downtime_at_most_while_the_server_is_off)
{
    const char *const an_hour[] = { "--set", "max_downtime=1h", NULL };
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    scene_pass_time(365 * DAY_MS, an_hour);
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(365 * DAY_MS, an_hour);
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(30 * DAY_MS, NULL); /* the default is a day */
    EXPECT_PROBLEM(post("k", "x"), 422, "refused", "key-expired");
    scene_end();
}
END_TEST

START_TEST(rule_9_8_store_time_never_moves_backwards)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    scene_pass_time(-48 * HOUR_MS, long_off); /* the clock was set back */
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(25 * HOUR_MS, long_off); /* it catches up, which is no time that has passed */
    EXPECT(post("k", "x"), 200, "replayed");
    scene_pass_time(48 * HOUR_MS, long_off);
    EXPECT_PROBLEM(post("k", "x"), 422, "refused", "key-expired");
    scene_end();
}
END_TEST

/* --- 9.9 --- */

START_TEST(rule_9_9_a_store_that_is_missing_where_there_was_one_does_not_start)
{
    const char *said;
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    ck_assert_int_eq(unlink(scene.store), 0);
    ck_assert_int_eq(scene_refusal(NULL, &said), 74);
    const char *lock = text("%s.lock", scene.store);
    ck_assert_ptr_nonnull(strstr(said, lock));
    ck_assert_int_eq(unlink(lock), 0); /* the way to go on all the same */
    SCENE_RESTART(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    scene_end();
}
END_TEST

START_TEST(rule_9_9_a_log_that_is_gone_after_a_crash_is_noticed)
{
    const char *said;
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    daemon_kill(&scene.nonbis);
    ck_assert_int_eq(unlink(text("%s-wal", scene.store)), 0);
    ck_assert_int_eq(scene_refusal(NULL, &said), 74);
    ck_assert_ptr_nonnull(strstr(said, "-wal"));
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_9_9_files_that_vanish_under_a_running_server_end_it)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    ck_assert_int_eq(unlink(scene.store), 0);
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 74);
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_9_9_a_start_on_a_full_disk_works_and_refuses_new_commands_until_there_is_room)
{
    if (!disk_start(NULL)) {
        return;
    }
    EXPECT(post("k", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    disk_fill();
    SCENE_RESTART(NULL);
    EXPECT(post("k", "x"), 200, "replayed");
    (void) post_until_refused();
    disk_make_room();
    const struct http_answer *fresh = post("new", "x");
    for (int i = 0; i < 200 && fresh->status == 503; i++) { /* a write that succeeds is what tells */
        fresh = post("new", "x");
    }
    EXPECT(fresh, 200, "executed");
    disk_end();
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    static char bytes[4 * 1024 * 1024];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t len = read(in, bytes, sizeof bytes);
    ck_assert_int_gt(len, 0);
    ck_assert_int_eq(write(out, bytes, (size_t) len), len);
    close(in);
    close(out);
}

START_TEST(rule_9_9_a_restored_backup_does_not_start_until_the_lock_file_is_removed_and_then_forgets_what_came_since)
{
    int exit_code = 0;
    SCENE_START(NULL);
    EXPECT(post("before", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    const char *backup = text("%s.backup", scene.store);
    copy_file(scene.store, backup);
    SCENE_RESTART(NULL);
    EXPECT(post("since", "x"), 200, "executed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    copy_file(backup, scene.store);
    const char *const again[] = { "--listen",           "127.0.0.1:0", "--admin",   "127.0.0.1:0", "--upstream",
                                  peer_url(scene.peer), "--store",     scene.store, NULL };
    ck_assert(!daemon_try(&scene.nonbis, "nonbisd", again, &exit_code));
    ck_assert_int_eq(exit_code, 74);
    ck_assert(daemon_logged(&scene.nonbis, "it is an older copy"));
    ck_assert_int_eq(unlink(text("%s.lock", scene.store)), 0);
    SCENE_RESTART(NULL);
    EXPECT(post("before", "x"), 200, "replayed");
    EXPECT(post("since", "x"), 200, "executed");
    EXPECT_RUNS("since", 2);
    scene_end();
}
END_TEST

/* --- 9.10 --- */

/* What the wall clock does while the server is off, and the end of the record as it is told from then on. */
static const struct told_end {
    int64_t wall_ms;
    const char *field, *member;
} told_ends[] = {
    { -1, "Fri, 04 Jan 2030 00:00:00 GMT", "\"2030-01-04T00:00:00.000Z\"" },
    { 3 * MOVED_HOUR, "Fri, 04 Jan 2030 00:00:00 GMT", "\"2030-01-04T00:00:00.000Z\"" }, /* that went by */
    { -2000, "Fri, 04 Jan 2030 00:00:00 GMT", "\"2030-01-04T00:00:00.000Z\"" },
    { -1, "Thu, 03 Jan 2030 23:59:57 GMT", "\"2030-01-03T23:59:57.999Z\"" }, /* now more than two seconds: it was set */
    { 2001, "Fri, 04 Jan 2030 00:00:00 GMT", "\"2030-01-04T00:00:00.000Z\"" },
    { 26 * MOVED_HOUR, "Fri, 04 Jan 2030 02:00:00 GMT", "\"2030-01-04T02:00:00.000Z\"" }, /* of 26 hours 24 count */
};

START_TEST(rule_9_10_a_record_is_told_with_the_same_times_over_restarts_unless_the_wall_clock_was_set)
{
    const char *const three_days[] = { "--set", "ttl=72h", NULL };
    rig_start_at(&scene, "2030-01-01T00:00:00Z", three_days);
    EXPECT(post("k", "x"), 200, "executed");
    for (size_t i = 0; i < sizeof told_ends / sizeof told_ends[0]; i++) {
        if (i % 2 == 0) {
            ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
        } else {
            daemon_kill(&scene.nonbis);
        }
        clock_hand_step_wall(&scene.clock, told_ends[i].wall_ms);
        rig_restart(&scene, three_days);
        const struct http_answer *replay = post("k", "x");
        EXPECT(replay, 200, "replayed");
        EXPECT_FIELD(replay, "Idempotency-Expires", told_ends[i].field);
        ck_assert_str_eq(member_of(get_status("k", ""), "expires_at"), told_ends[i].member);
    }
    scene_end();
}
END_TEST

SUITE(contract_retention)
{
    Suite *suite = suite_create("contract/09-retention");
    RULE_ALONE(suite, rule_9_1_an_answer_is_replayed_for_ttl_then_refused_until_tombstone_ttl_then_the_key_is_free);
    RULE_ALONE(suite, rule_9_2_an_unknown_outcome_stays_unknown_and_then_a_tombstone_for_as_long_again);
    RULE_ALONE(suite, rule_9_2_a_start_tells_how_many_it_found_in_progress);
    RULE_ALONE(suite, rule_9_3_released_is_kept_for_ttl_and_voided_for_tombstone_ttl);
    RULE_ALONE(suite, rule_9_4_what_is_in_progress_is_never_removed_by_age);
    RULE_ALONE(suite, rule_9_5_both_ends_are_stored_and_never_shortened);
    RULE_ALONE(suite, rule_9_5_what_was_promised_while_it_was_released_counts_when_it_is_completed);
    RULE_ALONE(suite, rule_9_6_a_live_record_is_never_pushed_out_new_commands_are_refused_instead);
    RULE_ALONE(suite, rule_9_7_what_counts_is_the_stored_time_whether_the_clean_up_has_come_by_or_not);
    RULE_ALONE(suite, rule_9_7_a_damaged_record_is_told_and_left_and_the_rest_is_cleaned_up);
    RULE_ALONE(suite, rule_9_8_store_time_moves_by_max_downtime_at_most_while_the_server_is_off);
    RULE_ALONE(suite, rule_9_8_store_time_never_moves_backwards);
    RULE_ALONE(suite, rule_9_9_a_store_that_is_missing_where_there_was_one_does_not_start);
    RULE_ALONE(suite, rule_9_9_a_log_that_is_gone_after_a_crash_is_noticed);
    RULE_ALONE(suite, rule_9_9_files_that_vanish_under_a_running_server_end_it);
    RULE_ALONE(suite, rule_9_9_a_start_on_a_full_disk_works_and_refuses_new_commands_until_there_is_room);
    RULE_ALONE(
        suite,
        rule_9_9_a_restored_backup_does_not_start_until_the_lock_file_is_removed_and_then_forgets_what_came_since);
    RULE_ALONE(suite, rule_9_10_a_record_is_told_with_the_same_times_over_restarts_unless_the_wall_clock_was_set);
    return suite;
}
