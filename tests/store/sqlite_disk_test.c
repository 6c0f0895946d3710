/* sqlite_disk_test.c - the SQLite store against its disk: errors at every single write and sync, a full disk,
 * damaged rows, the bound of the log, the bytes that a key costs (docs/contract.md section 11; docs/facts.md 16 to
 * 18). */
#include "server/store/sqlite_store.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/store_file.h"

/* A claim of `key` up to its commit. */
static enum store_result try_claim(struct store *store, const char *key)
{
    struct store_claim claim = fixture_claim(key, 1, 0);
    struct store_found found;
    enum store_result result = store_begin(store);
    if (result == STORE_OK) {
        result = store_claim_key(store, &claim, &found);
    }
    if (result == STORE_OK) {
        return store_commit(store);
    }
    store_rollback(store);
    return result;
}

/* --- what is waited for --- */

START_TEST(every_commit_is_one_sync_of_the_log_and_a_read_is_none)
{
    fault_vfs_install();
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    unsigned before = fault_vfs_syncs(FAULT_LOG);
    struct store_found found = fixture_claim_now(store, "first", 1, 0);
    ck_assert_uint_eq(fault_vfs_syncs(FAULT_LOG), before + 1);
    ck_assert_int_eq(fixture_finish_now(store, "first", &found, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_uint_eq(fault_vfs_syncs(FAULT_LOG), before + 2);
    ck_assert_int_eq(fixture_state(store, "first"), RECORD_COMPLETED);
    ck_assert_uint_eq(fault_vfs_syncs(FAULT_LOG), before + 2);
    (void) fixture_claim_now(store, "second", 1, 0);
    ck_assert_uint_eq(fault_vfs_syncs(FAULT_LOG), before + 3);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- errors --- */

START_TEST(a_sync_that_fails_at_commit_is_uncertain_and_the_claim_may_be_there_after_a_restart)
{
    fault_vfs_install();
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "before", 1, 0);
    fault_vfs_arm(FAULT_SYNC, FAULT_LOG, 1, SQLITE_IOERR_FSYNC, 0);
    ck_assert_int_eq(try_claim(store, "ghost"), STORE_UNCERTAIN);
    ck_assert_uint_eq(fault_vfs_hits(), 1);
    fault_vfs_disarm();
    ck_assert_int_eq(try_claim(store, "after"), STORE_DOWN);
    store_close(store);
    store = fixture_open(&options);
    /* The log was whole although its sync failed: "not there" would have been a lie. */
    ck_assert_int_eq(fixture_state(store, "ghost"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "before"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "after"), RECORD_ABSENT);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Which error at which operation means what; then a crash, and what may be there. Index: row. */
static const struct fault_row {
    const char *what;
    enum fault_operation operation;
    int code, torn;
    enum store_result result;
    bool may_be_there;
} fault_rows[] = {
    { "disk full", FAULT_WRITE, SQLITE_FULL, 0, STORE_FULL, false },
    { "disk full in mid-write", FAULT_WRITE, SQLITE_FULL, 1, STORE_FULL, false },
    { "write error", FAULT_WRITE, SQLITE_IOERR_WRITE, 0, STORE_UNCERTAIN, true },
    { "write error in mid-write", FAULT_WRITE, SQLITE_IOERR_WRITE, 1, STORE_UNCERTAIN, true },
    { "sync error", FAULT_SYNC, SQLITE_IOERR_FSYNC, 0, STORE_UNCERTAIN, true },
};
enum { FAULT_ROWS = sizeof fault_rows / sizeof fault_rows[0] };

START_TEST(an_error_at_any_write_or_sync_of_a_commit_is_told_as_what_it_proves)
{
    const struct fault_row *row = &fault_rows[_i];
    fault_vfs_install();
    struct store_options options = start();
    store_close(fixture_open(&options));
    unsigned step = 0, there = 0;
    for (bool met = true; met;) {
        char key[16];
        (void) snprintf(key, sizeof key, "key-%u", ++step);
        struct store *store = fixture_open(&options);
        (void) fixture_claim_now(store, "warm", 1, 0);
        fault_vfs_arm(row->operation, FAULT_LOG, step, row->code, row->torn);
        enum store_result result = try_claim(store, key);
        met = fault_vfs_hits() > 0;
        fault_vfs_disarm();
        ck_assert_msg(result == (met ? row->result : STORE_OK), "%s at step %u: %s", row->what, step,
                      store_result_name(result));
        if (result == STORE_FULL) { /* not down, and nothing is there now */
            ck_assert_int_eq(fixture_state(store, key), RECORD_ABSENT);
        }
        crash(store);
        store = fixture_open(&options);
        enum record_state state = fixture_state(store, key);
        if (!met) {
            ck_assert_int_eq(state, RECORD_UNKNOWN);
        } else if (!row->may_be_there) {
            ck_assert_int_eq(state, RECORD_ABSENT);
        } else {
            ck_assert(state == RECORD_ABSENT || state == RECORD_UNKNOWN);
            there += state == RECORD_UNKNOWN;
        }
        store_close(store);
    }
    FIGURE("store: %s at each of %u steps of a commit: %s; there after a crash: %u", row->what, step - 1,
           store_result_name(row->result), there);
    ck_assert_uint_ge(step, 2);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_was_full_goes_on_when_there_is_room_again)
{
    fault_vfs_install();
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    fault_vfs_arm(FAULT_WRITE, FAULT_LOG, 1, SQLITE_FULL, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(try_claim(store, "new"), STORE_FULL);
        ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS); /* look-ups go on */
    }
    fault_vfs_disarm();
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(try_claim(store, "new"), STORE_OK);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_limit_met_in_mid_transaction_is_full_and_undoes_it)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "PRAGMA max_page_count = 12", NULL, NULL, NULL),
                     SQLITE_OK);
    enum store_result result = STORE_OK;
    int made = 0;
    while (result == STORE_OK && made < 10000) {
        char key[16];
        struct store_found found;
        ck_assert_int_eq(store_begin(store), STORE_OK);
        for (int i = 0; i < 10 && result == STORE_OK; i++) {
            (void) snprintf(key, sizeof key, "key-%d", made + i);
            struct store_claim claim = fixture_claim(key, 1, 0);
            result = store_claim_key(store, &claim, &found);
        }
        if (result == STORE_OK) {
            ck_assert_int_eq(store_commit(store), STORE_OK);
            made += 10;
        } else {
            store_rollback(store);
        }
    }
    ck_assert_int_eq(result, STORE_FULL);
    ck_assert_int_gt(made, 0);
    char key[16];
    (void) snprintf(key, sizeof key, "key-%d", made);
    ck_assert_int_eq(fixture_state(store, key), RECORD_ABSENT); /* the first of the batch that failed */
    ck_assert_int_eq(fixture_state(store, "key-0"), RECORD_IN_PROGRESS);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_checkpoint_that_fails_is_not_thrown_away)
{
    fault_vfs_install();
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_gt(sqlite_store_of(store)->wal_pages, 0);
    fixture_advance(1999);
    fault_vfs_arm(FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_FULL, 0);
    ck_assert_int_eq(store_idle(store), STORE_OK); /* the log has not been at rest for long */
    ck_assert_uint_eq(fault_vfs_hits(), 0);
    fixture_advance(1);
    ck_assert_int_eq(store_idle(store), STORE_FULL);
    ck_assert_int_eq(store_idle(store), STORE_OK); /* the next try waits */
    ck_assert_int_eq(try_claim(store, "k2"), STORE_OK);
    fixture_advance(10000);
    fault_vfs_disarm();
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_eq(sqlite_store_of(store)->wal_pages, 0);
    ck_assert_int_eq(try_claim(store, "k3"), STORE_OK);
    fixture_advance(2000);
    fault_vfs_arm(FAULT_SYNC, FAULT_DATABASE, 1, SQLITE_IOERR_FSYNC, 0);
    ck_assert_int_eq(store_idle(store), STORE_UNCERTAIN);
    fault_vfs_disarm();
    ck_assert_int_eq(try_claim(store, "k4"), STORE_DOWN);
    store_close(store);
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "k2"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "k3"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- rows that are not as they should be --- */

static const struct damage_row {
    const char *what, *sql;
} damage_rows[] = {
    { "another key under this hash", "UPDATE commands SET key = 'another'" },
    { "another tenant under this hash", "UPDATE commands SET tenant = 'u'" },
    { "a state that does not exist", "UPDATE commands SET state = 7" },
    { "no state", "UPDATE commands SET state = 0" },
    { "a fingerprint cut short", "UPDATE commands SET fingerprint = x'01'" },
    { "an id cut short", "UPDATE commands SET command_id = x'01'" },
    { "no response", "DELETE FROM responses" },
    { "the response of another execution", "UPDATE responses SET execution = 2" },
};
enum { DAMAGE_ROWS = sizeof damage_rows / sizeof damage_rows[0] };

START_TEST(a_row_that_cannot_be_right_is_never_used)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, damage_rows[_i].sql, NULL, NULL, NULL), SQLITE_OK);
    struct store_claim claim = fixture_claim("k", 1, 0);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    enum store_result result = store_claim_key(store, &claim, &found);
    ck_assert_msg(result == STORE_FAILED, "%s: %s", damage_rows[_i].what, store_result_name(result));
    ck_assert(!found.claimed);
    ck_assert_ptr_null(found.response);
    store_rollback(store);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(an_open_transaction_that_sqlite_undid_by_itself_takes_nothing_more)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FAILED);
    ck_assert_int_eq(store_commit(store), STORE_FAILED);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(store_commit(store), STORE_FAILED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* At the commit the last; what the store keeps in memory goes with it. */
START_TEST(what_sqlite_undid_before_the_commit_is_not_remembered)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found claimed = fixture_claim_now(store, "k", 1, 0), lost;
    struct store_finish finish = fixture_finish("k", &claimed, OUTCOME_COMPLETED);
    struct store_claim claim = fixture_claim("lost", 1, 0);
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &lost), STORE_OK);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(store_commit(store), STORE_FAILED);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    ck_assert_int_eq(fixture_state(store, "lost"), RECORD_ABSENT);
    ck_assert_uint_eq(key_index_count(sqlite_store_of(store)->keys), 1);
    ck_assert_uint_eq(running_count(sqlite_store_of(store)->running), 1);
    ck_assert_int_eq(fixture_finish_now(store, "k", &claimed, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

static int64_t count_rows(struct store *store, const char *table)
{
    char sql[64];
    sqlite3_stmt *statement;
    (void) snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    ck_assert_int_eq(sqlite3_prepare_v2(sqlite_store_of(store)->db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    return count;
}

START_TEST(what_has_expired_or_is_forgotten_leaves_the_tables)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found swept = fixture_claim_now(store, "swept", 1, 0);
    struct store_found taken = fixture_claim_now(store, "taken anew", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "swept", &swept, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "taken anew", &taken, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(count_rows(store, "responses"), 2);
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_uint_eq(fixture_sweep(store, 1).expired, 1);
    ck_assert_int_eq(count_rows(store, "responses"), 1);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    ck_assert(fixture_claim_now(store, "taken anew", 1, 0).claimed);
    ck_assert_int_eq(count_rows(store, "responses"), 0);
    ck_assert_int_eq(count_rows(store, "commands"), 2);
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(count_rows(store, "commands"), 1);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- size --- */

static char fields_text[140], body_text[300];

/* `count` keys of 36 bytes, claimed and finished in batches of 64; returns the largest log seen, in bytes. */
static off_t run_load(struct store *store, int first, int count)
{
    char log[96], keys[64][48];
    struct store_found found[64];
    off_t largest = 0;
    memset(fields_text, 'f', sizeof fields_text);
    memset(body_text, 'b', sizeof body_text);
    (void) snprintf(log, sizeof log, "%s-wal", path);
    for (int at = first; at < first + count; at += 64) {
        int batch = first + count - at < 64 ? first + count - at : 64;
        ck_assert_int_eq(store_begin(store), STORE_OK);
        for (int i = 0; i < batch; i++) {
            (void) snprintf(keys[i], sizeof keys[i], "3f2b8a1e-0000-4000-8000-%012d", at + i);
            struct store_claim claim = fixture_claim(keys[i], 1, 1);
            ck_assert_int_eq(store_claim_key(store, &claim, &found[i]), STORE_OK);
            ck_assert(found[i].claimed);
        }
        ck_assert_int_eq(store_commit(store), STORE_OK);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        for (int i = 0; i < batch; i++) {
            struct store_finish finish = fixture_finish(keys[i], &found[i], OUTCOME_COMPLETED);
            struct record after;
            finish.fields = view_make(fields_text, sizeof fields_text);
            finish.body = view_make(body_text, sizeof body_text);
            finish.outcome.response_bytes = sizeof body_text;
            ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        }
        ck_assert_int_eq(store_commit(store), STORE_OK);
        ck_assert_int_eq(store_idle(store), STORE_OK);
        struct stat status;
        ck_assert_int_eq(stat(log, &status), 0);
        largest = status.st_size > largest ? status.st_size : largest;
    }
    return largest;
}

START_TEST(a_key_costs_at_most_850_bytes_of_disk)
{
    struct store_options options = start();
    fixture_wall_ms = 1780000000000; /* times as long as real ones */
    struct store *store = fixture_open(&options);
    (void) run_load(store, 0, 10000);
    store_close(store);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    FIGURE("store: %.1f bytes per key (36 B key, 140 B fields, 300 B body)", (double) status.st_size / 10000);
    ck_assert_int_le(status.st_size / 10000, 850);
    char log[96];
    (void) snprintf(log, sizeof log, "%s-wal", path);
    ck_assert_int_ne(access(log, F_OK), 0); /* brought home and gone */
    fixture_remove(directory);
}
END_TEST

/* Eight outcomes, in another order than their claims, and eight claims in each commit: 3.6 KB of answers and 2 KB of claims. */
START_TEST(a_commit_writes_the_ends_of_two_tables_and_little_else)
{
    enum { BATCH = 8, COMMITS = 200 };
    static char keys[2][BATCH][48];
    static struct store_found found[2][BATCH];
    struct store_options options = start();
    fixture_wall_ms = 1780000000000;
    struct store *store = fixture_open(&options);
    int before = sqlite_store_of(store)->wal_pages;
    for (int at = 0; at < COMMITS; at++) {
        int now = at % 2, old = 1 - now;
        ck_assert_int_eq(store_begin(store), STORE_OK);
        for (int i = 0; i < BATCH && at > 0; i++) {
            struct record after;
            int one = i * 3 % BATCH;
            struct store_finish finish = fixture_finish(keys[old][one], &found[old][one], OUTCOME_COMPLETED);
            finish.fields = view_make(fields_text, sizeof fields_text);
            finish.body = view_make(body_text, sizeof body_text);
            ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        }
        for (int i = 0; i < BATCH; i++) {
            (void) snprintf(keys[now][i], sizeof keys[now][i], "3f2b8a1e-0000-4000-8000-%012d", at * BATCH + i);
            struct store_claim claim = fixture_claim(keys[now][i], 1, 1);
            ck_assert_int_eq(store_claim_key(store, &claim, &found[now][i]), STORE_OK);
        }
        ck_assert_int_eq(store_commit(store), STORE_OK);
    }
    double pages = (double) (sqlite_store_of(store)->wal_pages - before) / COMMITS;
    FIGURE("store: %.2f pages of 2 KiB for a commit of 8 claims and 8 outcomes", pages);
    ck_assert(pages <= 9); /* 3 are new */
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(the_log_stays_bounded_under_load)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    off_t largest = 0;
    unsigned checkpoints = 0;
    int pages_before = 0;
    for (int i = 0; i < 64; i++) {
        off_t log = run_load(store, i * 512, 512);
        largest = log > largest ? log : largest;
        checkpoints += sqlite_store_of(store)->wal_pages < pages_before;
        pages_before = sqlite_store_of(store)->wal_pages;
    }
    FIGURE("store: 32768 keys, at least %u checkpoints, log at most %.1f MiB", checkpoints, (double) largest / 1048576);
    ck_assert_uint_ge(checkpoints, 2);
    ck_assert_int_le(largest, 20 * 1048576); /* 8000 pages and a batch or two over them */
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_disk)
{
    Suite *suite = suite_create("store/sqlite_disk");
    CASE(suite, every_commit_is_one_sync_of_the_log_and_a_read_is_none);
    CASE(suite, a_sync_that_fails_at_commit_is_uncertain_and_the_claim_may_be_there_after_a_restart);
    CASE_LOOP(suite, an_error_at_any_write_or_sync_of_a_commit_is_told_as_what_it_proves, FAULT_ROWS);
    CASE(suite, a_store_that_was_full_goes_on_when_there_is_room_again);
    CASE(suite, a_limit_met_in_mid_transaction_is_full_and_undoes_it);
    CASE(suite, a_checkpoint_that_fails_is_not_thrown_away);
    CASE_LOOP(suite, a_row_that_cannot_be_right_is_never_used, DAMAGE_ROWS);
    CASE(suite, an_open_transaction_that_sqlite_undid_by_itself_takes_nothing_more);
    CASE(suite, what_sqlite_undid_before_the_commit_is_not_remembered);
    CASE(suite, what_has_expired_or_is_forgotten_leaves_the_tables);
    CASE(suite, a_key_costs_at_most_850_bytes_of_disk);
    CASE(suite, a_commit_writes_the_ends_of_two_tables_and_little_else);
    CASE(suite, the_log_stays_bounded_under_load);
    return suite;
}
