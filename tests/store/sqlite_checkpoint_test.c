/* sqlite_checkpoint_test.c - a checkpoint that fails: which errors leave every commit as durable as it was, so that the store goes on, and which do not
 * (the table in server/store/sqlite_log.c; docs/contract.md 11.4, 11.5). What is durable is read by a start after a crash. */
#include "server/store/sqlite_store.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/store_file.h"

enum { KEYS = 12, BODY_BYTES = 20000 }; /* more than one write of the database (sqlite_gather.c) */

/* Commits `count` keys more. */
static void commit_some(struct store *store, int *committed, int count)
{
    for (int i = 0; i < count; i++) {
        static const char body[BODY_BYTES];
        char key[16];
        struct record after;
        (void) snprintf(key, sizeof key, "k-%d", (*committed)++);
        struct store_found found = fixture_claim_now(store, key, 1, 0);
        ck_assert(found.claimed);
        struct store_finish finish = fixture_finish(key, &found, OUTCOME_COMPLETED);
        finish.body = view_make(body, sizeof body);
        finish.retention = (struct retention){ 1000000, 1000000 };
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        ck_assert_int_eq(store_commit(store), STORE_OK);
    }
}

static void expect_all(const struct store_options *options, int committed)
{
    struct store *store = fixture_open(options);
    char said[256];
    ck_assert_msg(sqlite_pragma_check(sqlite_store_of(store)->db, said, sizeof said), "%s", said);
    for (int i = 0; i < committed; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        ck_assert_msg(fixture_state(store, key) == RECORD_COMPLETED, "%s of %d is not there", key, committed);
    }
    store_close(store);
}

static void let_checkpoint_be_due(struct store *store)
{
    ck_assert_int_gt(sqlite_store_of(store)->wal_pages, 0);
    fixture_advance(2000);
}

/* The store is as before, the next try waits its time, and then the log is brought home. `committed` goes on meanwhile. */
static void expect_goes_on(struct store *store, int *committed)
{
    int pages = sqlite_store_of(store)->wal_pages;
    commit_some(store, committed, 2);
    ck_assert_int_gt(sqlite_store_of(store)->wal_pages, pages);
    fixture_advance(9999);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_gt(sqlite_store_of(store)->wal_pages, pages);
    fixture_advance(1);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_eq(sqlite_store_of(store)->wal_pages, 0);
    commit_some(store, committed, 2); /* over the log of before */
}

/* --- errors of the disk --- */

static const struct failure {
    const char *what;
    enum fault_operation operation;
    enum fault_target target;
    unsigned nth;
    int code, torn;
    enum store_result result;
} failures[] = {
    { "database full", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_FULL, 0, STORE_FULL },
    { "database full in mid-write", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_FULL, 1, STORE_FULL },
    { "database full at its second write", FAULT_WRITE, FAULT_DATABASE, 2, SQLITE_FULL, 1, STORE_FULL },
    { "database not written", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_IOERR_WRITE, 0, STORE_FAILED },
    { "database half written", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_IOERR_WRITE, 1, STORE_FAILED },
    { "database half written later", FAULT_WRITE, FAULT_DATABASE, 2, SQLITE_IOERR_WRITE, 1, STORE_FAILED },
    { "database not cut", FAULT_TRUNCATE, FAULT_DATABASE, 1, SQLITE_IOERR_TRUNCATE, 0, STORE_FAILED },
    { "no memory", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_NOMEM, 0, STORE_FAILED },
    { "no memory for a file", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_IOERR_NOMEM, 0, STORE_FAILED },
    { "busy", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_BUSY, 0, STORE_OK }, /* SQLite calls that well */
    { "locked", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_LOCKED, 0, STORE_FAILED },
    { "database not synced", FAULT_SYNC, FAULT_DATABASE, 1, SQLITE_IOERR_FSYNC, 0, STORE_UNCERTAIN },
    { "log not synced", FAULT_SYNC, FAULT_LOG, 1, SQLITE_IOERR_FSYNC, 0, STORE_UNCERTAIN },
    { "log not read", FAULT_READ, FAULT_LOG, 1, SQLITE_IOERR_READ, 0, STORE_UNCERTAIN },
    { "log too short", FAULT_READ, FAULT_LOG, 1, SQLITE_IOERR_SHORT_READ, 0, STORE_UNCERTAIN },
    { "damage", FAULT_READ, FAULT_LOG, 1, SQLITE_CORRUPT, 0, STORE_UNCERTAIN },
    { "read-only", FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_READONLY, 0, STORE_UNCERTAIN },
};
enum { FAILURES = sizeof failures / sizeof failures[0] };

/* Twice: a crash behind the failed checkpoint, and one behind the next that is well. */
START_TEST(a_checkpoint_that_fails_ends_the_store_only_where_a_commit_may_be_lost)
{
    const struct failure *row = &failures[_i];
    fault_vfs_install();
    struct store_options options = start();
    int committed = 0;
    for (int life = 0; life < 2; life++) {
        struct store *store = fixture_open(&options);
        commit_some(store, &committed, KEYS);
        let_checkpoint_be_due(store);
        fault_vfs_arm(row->operation, row->target, row->nth, row->code, row->torn);
        enum store_result result = store_idle(store);
        ck_assert_msg(fault_vfs_hits() > 0, "%s: it was not met", row->what);
        fault_vfs_disarm();
        ck_assert_msg(result == row->result, "%s: %s", row->what, store_result_name(result));
        ck_assert(store->down == (row->result == STORE_UNCERTAIN));
        if (store->down) {
            ck_assert_int_eq(store_begin(store), STORE_DOWN);
            ck_assert_int_eq(store_idle(store), STORE_DOWN);
        } else if (life == 1) {
            expect_goes_on(store, &committed);
        }
        crash(store);
        fixture_advance(1);
        expect_all(&options, committed);
    }
    fixture_remove(directory);
}
END_TEST

/* --- no memory --- */

static sqlite3_mem_methods memory;
static bool starving;
static unsigned allocations, given; /* while it is starving; how many are given before */

static void *memory_give(int bytes)
{
    return starving && allocations++ >= given ? NULL : memory.xMalloc(bytes);
}

static void *memory_give_more(void *at, int bytes)
{
    return starving && allocations++ >= given ? NULL : memory.xRealloc(at, bytes);
}

static void memory_take_over(void)
{
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
    sqlite3_mem_methods ours = memory;
    ours.xMalloc = memory_give;
    ours.xRealloc = memory_give_more;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
}

START_TEST(a_checkpoint_without_memory_leaves_the_log_for_a_later_one)
{
    memory_take_over();
    struct store_options options = start();
    int committed = 0;
    unsigned failed = 0;
    for (bool met = true; met; given++) {
        struct store *store = fixture_open(&options);
        commit_some(store, &committed, KEYS);
        let_checkpoint_be_due(store);
        allocations = 0;
        starving = true;
        enum store_result result = store_idle(store);
        starving = false;
        met = allocations > given;
        failed += met ? 1 : 0;
        ck_assert_int_eq(result, met ? STORE_FAILED : STORE_OK);
        if (met) {
            expect_goes_on(store, &committed);
        }
        crash(store);
        fixture_advance(1);
        expect_all(&options, committed);
    }
    FIGURE("store: each of %u allocations of a checkpoint failed once", failed);
    ck_assert_uint_ge(failed, 2);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_checkpoint)
{
    Suite *suite = suite_create("store/sqlite_checkpoint");
    CASE_LOOP(suite, a_checkpoint_that_fails_ends_the_store_only_where_a_commit_may_be_lost, FAILURES);
    CASE(suite, a_checkpoint_without_memory_leaves_the_log_for_a_later_one);
    return suite;
}
