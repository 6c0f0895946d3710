/* sqlite_damage_test.c - files and rows that no version of this program wrote: what is refused at start and in which words, what is not used later, and
 * what a lock file says that is not as it should be (docs/contract.md 9.9, 11.4). */
#include "server/store/batch.h"
#include "server/store/filesystem.h"
#include "server/store/lock_file.h"
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static void run_sql(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
}

/* A store with one completed command and one that runs. It is closed cleanly, so that all of it is in the one file. */
static void make_store(const struct store_options *options)
{
    struct store *store = fixture_open(options);
    struct store_found found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    (void) fixture_claim_now(store, "running", 1, 1);
    store_close(store);
}

/* --- at start --- */

static const struct {
    const char *sql;
    const char *says; /* the refusal, with exit code 74 */
} files[] = {
    { "DELETE FROM meta WHERE name = 'store_id'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'guard_key'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'hash_key'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'id_key'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'fingerprint_version'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'window_start_ms'", "meta lacks a name" },
    { "UPDATE meta SET value = x'01' WHERE name = 'store_id'", "meta lacks a name" },
    { "UPDATE meta SET value = x'' WHERE name = 'guard_key'", "meta lacks a name" },
    { "DELETE FROM meta WHERE name = 'tenant_source'", "made with tenant \"\"" },
    { "DELETE FROM meta WHERE name = 'guard'", "made with guard \"\"" },
    { "DELETE FROM meta WHERE name = 'last_time_ms'", "reading its time" },
    { "DELETE FROM meta WHERE name = 'last_wall_ms'", "reading its time" },
    { "UPDATE commands SET command_id = x'01'", "reading its keys" },
    { "UPDATE commands SET command_id = x''", "reading its keys" },
    { "UPDATE commands SET row_id = 0 WHERE key = 'done'", "number of a row is out of range" },
    { "UPDATE commands SET row_id = -7 WHERE key = 'done'", "number of a row is out of range" },
    { "UPDATE commands SET row_id = 17592186044416 WHERE key = 'done'", "number of a row is out of range" },
    { "UPDATE commands SET fingerprint = x'01' WHERE key = 'running'", "making running commands unknown" },
    { "PRAGMA application_id = 7", "another application" },
    { "PRAGMA application_id = 0", "another application" },
    { "PRAGMA application_id = 0; PRAGMA user_version = 0", "another application" },
};

START_TEST(a_file_that_lacks_something_is_refused_with_74_and_left_alone)
{
    struct store_options options = start();
    make_store(&options);
    alter(files[_i].sql);
    for (int i = 0; i < 2; i++) {
        char said[4096];
        struct buf error;
        int exit_code = 0;
        buf_init(&error, sizeof said - 1);
        struct store *store = store_open_sqlite(&options, &error, &exit_code);
        (void) snprintf(said, sizeof said, "%.*s", VIEW_ARGS(buf_view(&error)));
        buf_fini(&error);
        ck_assert_msg(store == NULL, "%s: it was opened", files[_i].sql);
        ck_assert_msg(exit_code == 74 && strstr(said, files[_i].says) != NULL, "%s: exit code %d, %s", files[_i].sql,
                      exit_code, said);
        ck_assert_msg(strstr(said, path) != NULL, "the store is not named: %s", said);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_row_in_a_state_that_does_not_exist_is_not_counted_and_not_used)
{
    struct store_options options = start();
    make_store(&options);
    alter("UPDATE commands SET state = 7 WHERE key = 'done'");
    struct store *store = fixture_open(&options);
    struct store_claim claim = fixture_claim("done", 1, 1);
    struct store_found found;
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), 0);
    ck_assert_uint_eq(store_records(store, RECORD_UNKNOWN), 1);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FAILED);
    store_rollback(store);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- while it runs --- */

static const char *const rows[] = {
    "UPDATE commands SET fingerprint = x'01'",
    "UPDATE commands SET credential = x'01'",
    "UPDATE commands SET state = 7",
    "UPDATE commands SET state = 0",
    "UPDATE responses SET execution = 0",
    "UPDATE commands SET state = -1",
    "PRAGMA ignore_check_constraints = ON; UPDATE commands SET hash = x''",
};

START_TEST(a_row_that_cannot_be_right_is_neither_found_by_its_id_nor_swept_away)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "done", 1, 1), found;
    struct store_sweep sweep = { .limit = 5 };
    ck_assert_int_eq(fixture_finish_now(store, "done", &claimed, OUTCOME_COMPLETED), STORE_OK);
    run_sql(sqlite_store_of(store)->db, rows[_i]);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, VIEW("t"), claimed.record.command_id, &found), STORE_FAILED);
    ck_assert_ptr_null(found.key);
    ck_assert_int_eq(found.record.state, RECORD_ABSENT);
    store_rollback(store);
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_OK);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), 1);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

static const char *const names[] = {
    "UPDATE commands SET key = 'other'", "UPDATE commands SET key = ''",
    "UPDATE commands SET key = hex(zeroblob(2000))", /* longer than a key can be */
};

/* Nobody is told of a key that is not that of the command. */
START_TEST(a_row_with_another_key_than_its_own_is_not_found_by_its_id)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "running", 1, 1), found;
    run_sql(sqlite_store_of(store)->db, names[_i]);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, VIEW("t"), claimed.record.command_id, &found), STORE_FAILED);
    ck_assert_ptr_null(found.key);
    ck_assert_int_eq(found.record.state, RECORD_ABSENT);
    store_rollback(store);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

static const char *const responses[] = {
    "UPDATE responses SET status = 0", "UPDATE responses SET status = 100", "UPDATE responses SET status = 99999",
    "UPDATE responses SET body = x''", "UPDATE responses SET bytes = -1",   "UPDATE responses SET bytes = 3",
    "UPDATE responses SET kept = 0",
};

/* A repeat is refused; what the command came to is still told. */
START_TEST(an_answer_that_cannot_be_what_was_recorded_is_not_replayed)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "done", 1, 1), found;
    struct store_claim repeat = fixture_claim("done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &claimed, OUTCOME_COMPLETED), STORE_OK);
    run_sql(sqlite_store_of(store)->db, responses[_i]);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &repeat, &found), STORE_FAILED);
    ck_assert_ptr_null(found.response);
    store_rollback(store);
    ck_assert_int_eq(fixture_state(store, "done"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_row_that_is_gone_is_an_outcome_that_comes_too_late)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "k", 1, 1);
    run_sql(sqlite_store_of(store)->db, "DELETE FROM commands");
    ck_assert_int_eq(fixture_finish_now(store, "k", &claimed, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Whoever repeats the key of a damaged row is refused, and nobody else: what came with it is as if it had come alone. */
START_TEST(a_damaged_row_fails_those_who_ask_for_it_and_nobody_who_came_with_them)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found running = fixture_claim_now(store, "running", 1, 1), damaged;
    struct store_task outcome = { .kind = STORE_TASK_FINISH };
    struct store_task claims[] = { { .kind = STORE_TASK_CLAIM },
                                   { .kind = STORE_TASK_CLAIM },
                                   { .kind = STORE_TASK_VOID } };
    struct store_task reads[] = { { .kind = STORE_TASK_LOOK_UP }, { .kind = STORE_TASK_LOOK_UP } };
    struct store_batch batch;
    bool wrote;
    damaged = fixture_claim_now(store, "damaged", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "damaged", &damaged, OUTCOME_COMPLETED), STORE_OK);
    run_sql(sqlite_store_of(store)->db, "UPDATE commands SET fingerprint = x'01' WHERE key = 'damaged'");
    outcome.finish = fixture_finish("running", &running, OUTCOME_COMPLETED);
    claims[0].claim = fixture_claim("damaged", 1, 1);
    claims[1].claim = fixture_claim("new", 1, 1);
    claims[2].claim = fixture_claim("void", 1, 1);
    claims[2].retention = (struct retention){ FIXTURE_TTL_MS, FIXTURE_TTL_MS };
    reads[0].claim = fixture_claim("running", 1, 1);
    reads[1].claim = fixture_claim("damaged", 1, 1);
    store_batch_init(&batch);
    list_append(&batch.outcomes, &outcome.message.node);
    for (int i = 0; i < 3; i++) {
        list_append(&batch.claims, &claims[i].message.node);
    }
    list_append(&batch.reads, &reads[0].message.node);
    list_append(&batch.reads, &reads[1].message.node);
    ck_assert_int_eq(store_batch_run(store, &batch, false, &wrote), STORE_OK);
    ck_assert(wrote);
    ck_assert_uint_eq(store_batch_count(&batch), 6); /* each is posted */
    ck_assert_int_eq(outcome.result, STORE_OK);
    ck_assert_int_eq(claims[0].result, STORE_FAILED);
    ck_assert_int_eq(claims[1].result, STORE_OK);
    ck_assert(claims[1].found.claimed);
    ck_assert_int_eq(claims[2].result, STORE_OK);
    ck_assert(claims[2].found.claimed);
    ck_assert_int_eq(reads[0].result, STORE_OK);
    ck_assert_int_eq(reads[0].found.record.state, RECORD_COMPLETED);
    ck_assert_int_eq(reads[1].result, STORE_FAILED);
    free(claims[2].found.request);
    free(reads[0].found.request);
    crash(store); /* all of it is durable */
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "running"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "new"), RECORD_UNKNOWN); /* it ran */
    ck_assert_int_eq(fixture_state(store, "void"), RECORD_VOIDED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* A late answer of a command whose row is damaged; that of another one comes with it, before it or behind it. */
START_TEST(an_outcome_whose_row_is_damaged_keeps_no_other_outcome_from_being_recorded)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found[3];
    struct store_task outcomes[3] = { { .kind = STORE_TASK_FINISH },
                                      { .kind = STORE_TASK_FINISH },
                                      { .kind = STORE_TASK_FINISH } };
    static const char *const keys[] = { "a", "b", "c" };
    struct store_batch batch;
    bool wrote;
    for (int i = 0; i < 3; i++) {
        found[i] = fixture_claim_now(store, keys[i], 1, 1);
        ck_assert_int_eq(fixture_finish_now(store, keys[i], &found[i], OUTCOME_UNKNOWN), STORE_OK);
    }
    run_sql(sqlite_store_of(store)->db, "UPDATE commands SET fingerprint = x'01' WHERE key = 'b'");
    store_batch_init(&batch);
    for (int i = 0; i < 3; i++) {
        outcomes[i].finish = fixture_finish(keys[i], &found[i], OUTCOME_COMPLETED);
        list_append(&batch.outcomes, &outcomes[i].message.node);
    }
    ck_assert_int_eq(store_batch_run(store, &batch, false, &wrote), STORE_OK);
    ck_assert(wrote);
    ck_assert_int_eq(outcomes[0].result, STORE_OK);
    ck_assert_int_eq(outcomes[1].result, STORE_FAILED);
    ck_assert_int_eq(outcomes[2].result, STORE_OK);
    ck_assert_int_eq(fixture_state(store, "a"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "c"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* After SQLite undid a transaction by itself. */
START_TEST(nothing_runs_in_a_transaction_that_is_gone)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "k", 1, 1), found;
    struct store_finish finish = fixture_finish("k", &claimed, OUTCOME_COMPLETED);
    struct store_sweep sweep = { .limit = 5 };
    struct record after;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(store_begin(store), STORE_OK);
        run_sql(sqlite_store_of(store)->db, "ROLLBACK");
        enum store_result result = i == 0   ? store_finish_command(store, &finish, &after)
                                   : i == 1 ? store_look_up_id(store, VIEW("t"), claimed.record.command_id, &found)
                                   : i == 2 ? store_sweep_some(store, &sweep)
                                            : store_touch(store);
        ck_assert_msg(result == STORE_FAILED, "%d: %s", i, store_result_name(result));
        store_rollback(store);
    }
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- lock files --- */

#define ID "000102030405060708090a0b0c0d0e0f"

static const struct {
    const char *text;
    bool remembers;
    enum lock_state state;
    long pid;
    int64_t time_ms;
} locks[] = {
    { "nonbis store lock 1\nstate running\ntime 00000001893456000000\nstore " ID "\npath /p\npid 7\n", true,
      LOCK_RUNNING, 7, 1893456000000 },
    { "nonbis store lock 1\nstate stopped\ntime 09223372036854775808\nstore " ID "\npid 7\n", true, LOCK_STOPPED, 7,
      0 },
    { "nonbis store lock 1\nstate stopped\ntime -0000000000000000001\nstore " ID "\npid 7\n", true, LOCK_STOPPED, 7,
      0 },
    { "nonbis store lock 1\nstate stopped\nstore " ID "\npath /p\ntime 00000001893456000000\n", true, LOCK_STOPPED, 0,
      0 },
    { "", false, LOCK_STOPPED, 0, 0 },
    { "nonbis store lock 1", false, LOCK_STOPPED, 0, 0 },
    { "nonbis store lock 2\nstate running\nstore " ID "\npid 7\n", false, LOCK_STOPPED, 0, 0 },
    { "nonbis store lock 1\nstate running\nstore " ID "\npath /p\npid 7\n", true, LOCK_RUNNING, 7, 0 },
    { "nonbis store lock 1\nstate closing\nstore " ID "\npath /p\npid 7\n", true, LOCK_CLOSING, 7, 0 },
    { "nonbis store lock 1\nstate stopped\nstore " ID "\npath /x\nstore zz/n.db\npid 7\n", true, LOCK_STOPPED, 7, 0 },
    { "nonbis store lock 1\nstate stopped\npath /x\nstore " ID "\npid 7\n", false, LOCK_STOPPED, 7, 0 },
    { "nonbis store lock 1\nstate asleep\nstore " ID "\npath /p\npid 7\n", true, LOCK_STOPPED, 7, 0 },
    { "nonbis store lock 1\nstore " ID "\nstate running\n", true, LOCK_STOPPED, 0, 0 },
    { "nonbis store lock 1\nstate running\npath /p\npid 7\n", false, LOCK_RUNNING, 7, 0 },
    { "nonbis store lock 1\nstate running\nstore 00\npid x\n", false, LOCK_RUNNING, 0, 0 },
    { "nonbis store lock 1\nstate running\nstore g00102030405060708090a0b0c0d0e0f\n", false, LOCK_RUNNING, 0, 0 },
    { "nonbis store lock 1\nstate running\nstore 0/0102030405060708090a0b0c0d0e0f\n", false, LOCK_RUNNING, 0, 0 },
    { "nonbis store lock 1\nstate running\nstore 0A0102030405060708090a0b0c0d0e0f\n", false, LOCK_RUNNING, 0, 0 },
    { "nonbis store lock 1\nstate running\nstore 00010203:405060708090a0b0c0d0e0f\n", false, LOCK_RUNNING, 0, 0 },
};

START_TEST(a_lock_file_says_what_can_be_read_in_it)
{
    static const uint8_t id[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    struct lock_file lock;
    (void) start();
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(locks[_i].text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(lock_file_take(&lock, path), LOCK_TAKEN);
    ck_assert_int_eq(lock.remembers, locks[_i].remembers);
    ck_assert_int_eq(lock.state, locks[_i].state);
    ck_assert_int_eq(lock.pid, locks[_i].pid);
    ck_assert_int_eq(lock.time_ms, locks[_i].time_ms);
    if (lock.remembers) {
        ck_assert_mem_eq(lock.store_id, id, sizeof id);
    }
    lock_file_release(&lock);
    lock_file_release(&lock);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_lock_file_that_cannot_be_written_whole_says_why_and_keeps_its_state)
{
    static char long_path[9000];
    struct lock_file lock;
    (void) start();
    ck_assert_int_eq(lock_file_take(&lock, path), LOCK_TAKEN);
    memset(long_path, 'p', sizeof long_path - 1);
    ck_assert(!lock_file_write(&lock, long_path, NULL, LOCK_RUNNING));
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_int_eq(lock.state, LOCK_STOPPED);
    (void) signal(SIGXFSZ, SIG_IGN);
    (void) setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10, RLIM_INFINITY }); /* Check writes to a file as well */
    bool written = lock_file_write(&lock, "/p", NULL, LOCK_RUNNING);       /* ten bytes of it */
    int error = errno;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
    ck_assert(!written);
    ck_assert_int_eq(error, ENOSPC);
    lock_file_release(&lock);
    lock.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    ck_assert(!lock_file_write(&lock, "/p", NULL, LOCK_RUNNING));
    ck_assert_int_eq(errno, ENOSPC);
    (void) close(lock.fd);
    lock.fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* takes all, and has no length */
    ck_assert(!lock_file_write(&lock, "/p", NULL, LOCK_RUNNING));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(lock.state, LOCK_STOPPED);
    lock_file_release(&lock);
    ck_assert_int_eq(lock_file_take(&lock, "/no/such/place/x.lock"), LOCK_REFUSED);
    fixture_remove(directory);
}
END_TEST

/* --- file systems --- */

START_TEST(the_kind_of_a_mount_is_read_from_the_kernels_list)
{
    struct stat status;
    char type[64];
    ck_assert_int_eq(stat("/proc", &status), 0);
    filesystem_mount_type(status.st_dev, type, sizeof type);
    ck_assert_str_eq(type, "proc");
    filesystem_mount_type(status.st_dev, type, 4); /* does not fit */
    ck_assert_str_eq(type, "");
    filesystem_mount_type((dev_t) -1, type, sizeof type);
    ck_assert_str_eq(type, "");
    ck_assert_ptr_null(filesystem_refused("/proc"));
    ck_assert_ptr_null(filesystem_refused("/no/such/place"));
}
END_TEST

SUITE(store_sqlite_damage)
{
    Suite *suite = suite_create("store/sqlite_damage");
    CASE_LOOP(suite, a_file_that_lacks_something_is_refused_with_74_and_left_alone, sizeof files / sizeof files[0]);
    CASE(suite, a_row_in_a_state_that_does_not_exist_is_not_counted_and_not_used);
    CASE_LOOP(suite, a_row_that_cannot_be_right_is_neither_found_by_its_id_nor_swept_away,
              sizeof rows / sizeof rows[0]);
    CASE_LOOP(suite, a_row_with_another_key_than_its_own_is_not_found_by_its_id, sizeof names / sizeof names[0]);
    CASE_LOOP(suite, an_answer_that_cannot_be_what_was_recorded_is_not_replayed,
              sizeof responses / sizeof responses[0]);
    CASE(suite, a_row_that_is_gone_is_an_outcome_that_comes_too_late);
    CASE(suite, a_damaged_row_fails_those_who_ask_for_it_and_nobody_who_came_with_them);
    CASE(suite, an_outcome_whose_row_is_damaged_keeps_no_other_outcome_from_being_recorded);
    CASE(suite, nothing_runs_in_a_transaction_that_is_gone);
    CASE_LOOP(suite, a_lock_file_says_what_can_be_read_in_it, sizeof locks / sizeof locks[0]);
    CASE(suite, a_lock_file_that_cannot_be_written_whole_says_why_and_keeps_its_state);
    CASE(suite, the_kind_of_a_mount_is_read_from_the_kernels_list);
    return suite;
}
