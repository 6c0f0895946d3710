/* sqlite_room_test.c - a disk that is full, and the room that is kept on it for the outcomes of running commands (docs/contract.md 11.5). The disk is a small
 * one of the test's own. */
#include "server/store/batch.h"
#include "server/store/sqlite_store.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/store_file.h"
#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { KEPT = 512 * 1024, RUNNING = 6, BODY = 40 * 1024, CHURN = 100 };

static char reserve_path[96];
static char body[BODY];

static struct store_options begin(void)
{
    struct store_options options = start();
    (void) snprintf(reserve_path, sizeof reserve_path, "%s.reserve", path);
    options.reserve_bytes = KEPT;
    return options;
}

/* Bytes of the disk that the file takes up; -1: it is not there. */
static int64_t taken_by(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? (int64_t) status.st_blocks * 512 : -1;
}

/* Of one claim in a batch of its own, as the store thread runs it. */
static enum store_result run_claim(struct store *store, const char *key, struct store_found *found)
{
    struct store_batch batch;
    struct store_task task = { .kind = STORE_TASK_CLAIM, .claim = fixture_claim(key, 1, 0) };
    bool wrote;
    store_batch_init(&batch);
    list_append(&batch.claims, &task.message.node);
    (void) store_batch_run(store, &batch, false, &wrote);
    *found = task.found;
    return task.result;
}

static enum store_result run_finish(struct store *store, const char *key, const struct store_found *claimed)
{
    struct store_batch batch;
    struct store_task task = { .kind = STORE_TASK_FINISH, .finish = fixture_finish(key, claimed, OUTCOME_COMPLETED) };
    bool wrote;
    task.finish.body = view_make(body, sizeof body);
    task.finish.outcome.response_bytes = sizeof body;
    store_batch_init(&batch);
    list_append(&batch.outcomes, &task.message.node);
    (void) store_batch_run(store, &batch, false, &wrote);
    return task.result;
}

static const char *key_of(const char *name, int number)
{
    static char key[32];
    (void) snprintf(key, sizeof key, "%s-%d", name, number);
    return key;
}

static void claim_all(struct store *store, struct store_found found[RUNNING])
{
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(run_claim(store, key_of("run", i), &found[i]), STORE_OK);
        ck_assert(found[i].claimed);
    }
}

/* The disk is full, and that was met: what the files have of room is used up by claims, which are then refused. */
static void fill_up(struct store *store)
{
    struct store_found found;
    enum store_result result = STORE_OK;
    small_disk_fill(directory);
    for (int i = 0; i < 1000 && result == STORE_OK; i++) {
        result = run_claim(store, key_of("last", i), &found);
    }
    ck_assert_int_eq(result, STORE_FULL);
    small_disk_fill(directory);
}

START_TEST(on_a_full_disk_every_running_command_has_its_outcome_recorded_and_none_is_claimed)
{
    struct store_found found[RUNNING], fresh;
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    claim_all(store, found);
    fill_up(store);
    ck_assert_int_eq(taken_by(reserve_path), KEPT); /* a claim does not touch it */
    ck_assert(store_takes_claims(store));
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(run_finish(store, key_of("run", i), &found[i]), STORE_OK);
    }
    ck_assert_int_eq(taken_by(reserve_path), 0);
    ck_assert(!store_takes_claims(store));
    ck_assert_int_eq(run_claim(store, "new", &fresh), STORE_FULL); /* although there would be room for it */
    ck_assert(!fresh.claimed);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert(!store_takes_claims(store));
    small_disk_make_room(directory);
    fixture_advance(2000);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert(store_takes_claims(store));
    ck_assert_int_eq(taken_by(reserve_path), KEPT);
    ck_assert_int_eq(run_claim(store, "new", &fresh), STORE_OK);
    ck_assert(fresh.claimed);
    store->down = true; /* a crash */
    store_close(store);
    store = fixture_open(&options);
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(fixture_state(store, key_of("run", i)), RECORD_COMPLETED);
    }
    ck_assert_int_eq(fixture_state(store, "new"), RECORD_UNKNOWN);
    store_close(store);
    disk_unmount();
}
END_TEST

START_TEST(a_crash_on_a_full_disk_is_recovered_in_the_room_that_is_kept)
{
    struct store_found found[RUNNING];
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    claim_all(store, found);
    fill_up(store);
    store->down = true;
    store_close(store);
    small_disk_fill(directory);
    store = fixture_open(&options);
    ck_assert_uint_ge(store->info.recovered, RUNNING);
    ck_assert(!store_takes_claims(store));
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(fixture_state(store, key_of("run", i)), RECORD_UNKNOWN);
    }
    store_close(store);
    disk_unmount();
}
END_TEST

/* What is kept was made for a setting that has grown, or shrunk, since. */
START_TEST(a_crash_on_a_full_disk_is_recovered_in_the_room_of_another_setting)
{
    static const int64_t wanted[] = { 2 * KEPT, KEPT / 2, 0 };
    struct store_found found[RUNNING];
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    claim_all(store, found);
    fill_up(store);
    store->down = true;
    store_close(store);
    small_disk_fill(directory);
    options.reserve_bytes = wanted[_i];
    store = fixture_open(&options);
    ck_assert_uint_ge(store->info.recovered, RUNNING);
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(fixture_state(store, key_of("run", i)), RECORD_UNKNOWN);
    }
    store_close(store);
    disk_unmount();
}
END_TEST

/* An outcome does not fail with a stranger's damaged row, also where it needs the room that is kept. Met by which look at that row: of the batch as it
 * came, of the one without new claims, of that one in the room that is kept. */
START_TEST(on_a_full_disk_a_damaged_row_keeps_no_outcome_out_of_the_room_that_is_kept)
{
    struct store_found found[RUNNING];
    struct store_options options = begin();
    struct store_task outcome = { .kind = STORE_TASK_FINISH }, claim = { .kind = STORE_TASK_CLAIM };
    struct store_batch batch;
    bool wrote;
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    claim_all(store, found);
    fill_up(store);
    outcome.finish = fixture_finish(key_of("run", 0), &found[0], OUTCOME_COMPLETED);
    outcome.finish.body = view_make(body, sizeof body);
    outcome.finish.outcome.response_bytes = sizeof body;
    claim.claim = fixture_claim("damaged", 1, 0);
    store_batch_init(&batch);
    list_append(&batch.outcomes, &outcome.message.node);
    list_append(&batch.claims, &claim.message.node);
    store_fault_plant(store, STORE_FAULT_CLAIM, (unsigned) _i + 1, STORE_FAILED, false);
    (void) store_batch_run(store, &batch, false, &wrote);
    ck_assert_int_eq(outcome.result, STORE_OK);
    ck_assert_int_eq(claim.result, STORE_FAILED);
    ck_assert_int_eq(taken_by(reserve_path), 0);
    store->down = true; /* a crash */
    store_close(store);
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "run-0"), RECORD_COMPLETED);
    store_close(store);
    disk_unmount();
}
END_TEST

/* A store in which old answers have left free pages. */
static struct store *churned(const struct store_options *options)
{
    struct store_found fresh;
    struct store_sweep sweep = { .limit = 10 * CHURN };
    struct store *store = fixture_open(options);
    for (int i = 0; i < CHURN; i++) {
        ck_assert_int_eq(run_claim(store, key_of("old", i), &fresh), STORE_OK);
        ck_assert_int_eq(run_finish(store, key_of("old", i), &fresh), STORE_OK);
        ck_assert_int_eq(store_idle(store), STORE_OK);
    }
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_uint_eq(sweep.expired, CHURN);
    store_close(store); /* the log is gone, and what it took */
    return fixture_open(options);
}

/* Old answers have left free pages in the database. The room that the log took up comes back although nobody frees any. */
START_TEST(room_that_expired_answers_have_left_becomes_the_room_that_is_kept)
{
    struct store_found found[RUNNING];
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = churned(&options);
    claim_all(store, found);
    fill_up(store);
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(run_finish(store, key_of("run", i), &found[i]), STORE_OK);
    }
    ck_assert(!store_takes_claims(store));
    fixture_advance(2000);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert(store_takes_claims(store));
    ck_assert_int_eq(taken_by(reserve_path), KEPT);
    store->down = true; /* a crash behind a log that was emptied on the way */
    store_close(store);
    store = fixture_open(&options);
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(fixture_state(store, key_of("run", i)), RECORD_COMPLETED);
    }
    store_close(store);
    disk_unmount();
}
END_TEST

/* The clean-up writes too, as much as there is to clean up. The room that was given up is for outcomes. */
START_TEST(a_clean_up_on_a_full_disk_leaves_the_room_to_outcomes)
{
    enum { OLD = 3000 };
    struct store_found found[RUNNING], fresh;
    struct store_sweep sweep = { .limit = 50 };
    unsigned swept = 0;
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    for (int i = 0; i < OLD; i++) {
        ck_assert_int_eq(run_claim(store, key_of("old", i), &fresh), STORE_OK);
        struct store_finish finish = fixture_finish(key_of("old", i), &fresh, OUTCOME_COMPLETED);
        finish.body = view_make(body, 400);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_finish_command(store, &finish, &fresh.record), STORE_OK);
        ck_assert_int_eq(store_commit(store), STORE_OK);
        ck_assert_int_eq(store_idle(store), STORE_OK);
    }
    store_close(store);
    store = fixture_open(&options);
    claim_all(store, found);
    fill_up(store);
    ck_assert_int_eq(run_finish(store, key_of("run", 0), &found[0]), STORE_OK);
    ck_assert(!store_takes_claims(store));
    fixture_advance(FIXTURE_TTL_MS);
    while (swept < OLD) { /* as the store thread does, every second, and on while there is more */
        ck_assert_int_eq(store_begin(store), STORE_OK);
        enum store_result result = store_sweep_some(store, &sweep);
        result = result == STORE_OK ? store_commit(store) : result;
        ck_assert_int_eq(result, STORE_OK);
        ck_assert_int_eq(store_idle(store), STORE_OK);
        ck_assert(!store_takes_claims(store));
        swept += sweep.expired + sweep.forgotten;
        ck_assert(sweep.more || sweep.left_due_ms > 0 || swept >= OLD);
        fixture_advance(sweep.more ? 0 : 1000);
    }
    for (int i = 1; i < RUNNING; i++) {
        ck_assert_int_eq(run_finish(store, key_of("run", i), &found[i]), STORE_OK);
    }
    store_close(store);
    disk_unmount();
}
END_TEST

/* The room that a log of the life before takes up comes back as well, although this one has written nothing to it. */
START_TEST(room_that_the_log_of_a_crash_takes_up_becomes_the_room_that_is_kept)
{
    struct store_found found[RUNNING];
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    struct store *store = churned(&options);
    claim_all(store, found);
    fill_up(store);
    for (int i = 0; i < RUNNING; i++) {
        ck_assert_int_eq(run_finish(store, key_of("run", i), &found[i]), STORE_OK);
    }
    store->down = true;
    store_close(store);
    store = fixture_open(&options); /* what the last claims left running */
    store->down = true;
    store_close(store);
    small_disk_fill(directory);
    options.reserve_bytes = KEPT / 4;
    store = fixture_open(&options);
    ck_assert(!store_takes_claims(store));
    ck_assert_int_eq(sqlite_store_of(store)->wal_pages, 0); /* there was no room to write */
    fixture_advance(2000);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert(store_takes_claims(store));
    store_close(store);
    disk_unmount();
}
END_TEST

/* A kill in mid-run, while the log is emptied, and then that log gets lost. Where commits were in it alone the next start has to notice. */
START_TEST(a_log_that_is_lost_after_a_kill_while_it_was_emptied_is_noticed_or_nothing_is_lost)
{
    static const struct {
        enum fault_operation operation;
        enum fault_target target;
        bool starts;
    } rows[] = { { FAULT_SYNC, FAULT_LOG, false },
                 { FAULT_WRITE, FAULT_DATABASE, false },
                 { FAULT_SYNC, FAULT_DATABASE, false },
                 { FAULT_TRUNCATE, FAULT_LOG, true } };
    struct store_found found[RUNNING];
    struct buf error;
    char room[1024], log_path[96];
    int status, exit_code = 0;
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    fault_vfs_install();
    (void) snprintf(log_path, sizeof log_path, "%s-wal", path);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = churned(&options);
        claim_all(store, found);
        fill_up(store);
        (void) run_finish(store, "run-0", &found[0]);
        fixture_advance(2000);
        (void) run_finish(store, "run-1", &found[1]); /* and the time */
        (void) store_idle(store);
        (void) run_finish(store, "run-2", &found[2]);
        fixture_advance(2000);
        fault_vfs_arm(rows[_i].operation, rows[_i].target, 1, FAULT_KILL, 0);
        sqlite_store_of(store)->reserve.held = false;
        (void) store_idle(store);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(unlink(log_path), 0);
    char ballast[96];
    (void) snprintf(ballast, sizeof ballast, "%s/ballast", directory);
    (void) unlink(ballast);
    buf_init(&error, sizeof room);
    struct store *store = store_open_sqlite(&options, &error, &exit_code);
    ck_assert_int_eq(store != NULL, rows[_i].starts);
    ck_assert_int_eq(exit_code, rows[_i].starts ? 0 : 74);
    for (int i = 0; store != NULL && i < 3; i++) {
        ck_assert_int_eq(fixture_state(store, key_of("run", i)), RECORD_COMPLETED);
    }
    buf_fini(&error);
    store_close(store);
    disk_unmount();
}
END_TEST

START_TEST(a_store_that_finds_no_room_to_keep_opens_and_claims_nothing_until_there_is_some)
{
    struct store_found found;
    struct store_options options = begin();
    if (!disk_mount("16m")) {
        return;
    }
    options.reserve_bytes = 0;
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(run_claim(store, "k", &found), STORE_OK);
    ck_assert_int_eq(run_finish(store, "k", &found), STORE_OK);
    store_close(store);
    options.reserve_bytes = 17 * 1048576; /* more than the disk has */
    store = fixture_open(&options);
    ck_assert(!store_takes_claims(store));
    ck_assert_int_eq(run_claim(store, "new", &found), STORE_FULL);
    ck_assert_int_eq(run_claim(store, "k", &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    fixture_found_free(&found);
    ck_assert_int_eq(taken_by(reserve_path), 0);
    store_close(store);
    options.reserve_bytes = KEPT;
    store = fixture_open(&options);
    ck_assert_int_eq(run_claim(store, "new", &found), STORE_OK);
    store_close(store);
    disk_unmount();
}
END_TEST

SUITE(store_sqlite_room)
{
    Suite *suite = suite_create("store/sqlite_room");
    CASE(suite, on_a_full_disk_every_running_command_has_its_outcome_recorded_and_none_is_claimed);
    CASE(suite, a_crash_on_a_full_disk_is_recovered_in_the_room_that_is_kept);
    CASE_LOOP(suite, a_crash_on_a_full_disk_is_recovered_in_the_room_of_another_setting, 3);
    CASE_LOOP(suite, on_a_full_disk_a_damaged_row_keeps_no_outcome_out_of_the_room_that_is_kept, 3);
    CASE(suite, room_that_expired_answers_have_left_becomes_the_room_that_is_kept);
    CASE(suite, a_clean_up_on_a_full_disk_leaves_the_room_to_outcomes);
    CASE(suite, room_that_the_log_of_a_crash_takes_up_becomes_the_room_that_is_kept);
    CASE_LOOP(suite, a_log_that_is_lost_after_a_kill_while_it_was_emptied_is_noticed_or_nothing_is_lost, 4);
    CASE(suite, a_store_that_finds_no_room_to_keep_opens_and_claims_nothing_until_there_is_some);
    return suite;
}
