/* sqlite_open_test.c - what the SQLite store opens as, and what it keeps over a restart. What it refuses to open: sqlite_refusal_test.c; what a crash and
 * time do to it: sqlite_restart_test.c. */
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

START_TEST(the_pragmas_that_the_promise_rests_on_read_back)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        { "locking_mode", "exclusive" },    { "journal_mode", "wal" }, { "synchronous", "2" },
        { "wal_autocheckpoint", "0" },      { "mmap_size", "0" },      { "temp_store", "2" },
        { "cell_size_check", "1" },         { "trusted_schema", "0" }, { "cache_size", "-16384" },
        { "application_id", "1312966995" }, { "user_version", "1" },   { "page_size", "2048" },
    };
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    sqlite3 *db = sqlite_store_of(store)->db;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[64];
        sqlite3_stmt *statement;
        (void) snprintf(sql, sizeof sql, "PRAGMA %s", rows[i].name);
        ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
        ck_assert_msg(strcmp((const char *) sqlite3_column_text(statement, 0), rows[i].value) == 0, "%s reads %s",
                      rows[i].name, (const char *) sqlite3_column_text(statement, 0));
        ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    }
    ck_assert_ptr_nonnull(strstr(store->info.description, "synchronous=FULL"));
    ck_assert_ptr_nonnull(strstr(store->info.description, "journal_mode=wal"));
    ck_assert_ptr_nonnull(strstr(store->info.description, "locking_mode=exclusive"));
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(every_file_of_the_store_is_for_its_owner_alone_and_there_is_no_shared_memory)
{
    struct store_options options = start();
    mode_t mask = umask(0);
    struct store *store = fixture_open(&options);
    (void) umask(mask);
    (void) fixture_claim_now(store, "k", 1, 0);
    static const char *const suffixes[] = { "", "-wal", ".lock" };
    for (int i = 0; i < 3; i++) {
        char file[96];
        struct stat status;
        (void) snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        ck_assert_msg(stat(file, &status) == 0, "%s is not there", file);
        ck_assert_msg((status.st_mode & 07777) == 0600, "%s has mode %o", file, status.st_mode & 07777);
    }
    char shared[96];
    (void) snprintf(shared, sizeof shared, "%s-shm", path);
    ck_assert_int_ne(access(shared, F_OK), 0);
    store_close(store);
    /* A file that somebody opened up is closed again. */
    ck_assert_int_eq(chmod(path, 0644), 0);
    store = fixture_open(&options);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0600);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_keeps_its_identity_its_records_and_its_responses_over_a_restart)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_info first = store->info;
    struct store_found found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    store = fixture_open(&options);
    ck_assert_mem_eq(store->info.store_id, first.store_id, 16);
    ck_assert_mem_eq(store->info.guard_key, first.guard_key, 32);
    ck_assert_int_eq(store->info.window_start_ms, 1000000);
    ck_assert_uint_eq(store->info.recovered, 0);
    struct store_found repeat = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(repeat.response->body, VIEW("done")));
    ck_assert(view_equal(repeat.response->fields, VIEW("Content-Type: text/plain\r\n")));
    fixture_found_free(&repeat);
    store_close(store);
    /* A lock file that was lost is made again; nothing else depends on it. */
    char lock[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(unlink(lock), 0);
    store = fixture_open(&options);
    ck_assert_mem_eq(store->info.store_id, first.store_id, 16);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* As whoever runs VACUUM with another page size makes it, and as the first builds made them. */
START_TEST(a_store_with_pages_of_another_size_goes_on_with_them)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    alter("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM");
    store = fixture_open(&options);
    int64_t bytes = 0;
    ck_assert(sqlite_pragma_number(sqlite_store_of(store)->db, "page_size", &bytes));
    ck_assert_int_eq(bytes, 4096);
    struct store_found repeat = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(repeat.response->body, VIEW("done")));
    fixture_found_free(&repeat);
    found = fixture_claim_now(store, "more", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "more", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(two_stores_have_different_ids_and_keys)
{
    struct store_options options = start();
    struct store *one = fixture_open(&options);
    char other_path[96];
    (void) snprintf(other_path, sizeof other_path, "%s/other.db", directory);
    options.path = other_path;
    struct store *two = fixture_open(&options);
    ck_assert_mem_ne(one->info.store_id, two->info.store_id, 16);
    ck_assert_mem_ne(one->info.guard_key, two->info.guard_key, 32);
    ck_assert_mem_ne(sqlite_store_of(one)->hash_key, sqlite_store_of(two)->hash_key, 32);
    store_close(one);
    store_close(two);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_creation_that_was_cut_short_starts_over)
{
    struct store_options options = start();
    write_at(path, 0, "", 0); /* created, and no more */
    struct store *store = fixture_open(&options);
    store_close(store);
    ck_assert_int_eq(unlink(path), 0);
    char lock[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(unlink(lock), 0);
    alter("PRAGMA journal_mode = WAL"); /* a header, and no table */
    store = fixture_open(&options);
    (void) fixture_claim_now(store, "k", 1, 0);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_open)
{
    Suite *suite = suite_create("store/sqlite_open");
    CASE(suite, the_pragmas_that_the_promise_rests_on_read_back);
    CASE(suite, every_file_of_the_store_is_for_its_owner_alone_and_there_is_no_shared_memory);
    CASE(suite, a_store_keeps_its_identity_its_records_and_its_responses_over_a_restart);
    CASE(suite, a_store_with_pages_of_another_size_goes_on_with_them);
    CASE(suite, two_stores_have_different_ids_and_keys);
    CASE(suite, a_creation_that_was_cut_short_starts_over);
    return suite;
}
