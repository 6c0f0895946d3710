/* sweep_damage_test.c - the clean-up meets a row that it cannot take, or a part of the file that it cannot read: told once, stepped over, left as it is,
 * and everything else is cleaned up (docs/contract.md 9.7). */
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

#include <fcntl.h>

static char log_path[96];

static struct store_options begin(void)
{
    struct store_options options = start();
    (void) snprintf(log_path, sizeof log_path, "%s/log", directory);
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void) close(fd);
    log_setup(LOG_WARN, LOG_TEXT);
    return options;
}

static const char *logged(void)
{
    static char text[100000];
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, text, sizeof text - 1);
    (void) close(fd);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

static unsigned times_logged(const char *words)
{
    unsigned count = 0;
    for (const char *at = logged(); (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

static void run_sql(struct store *store, const char *sql)
{
    char *error = NULL;
    ck_assert_msg(sqlite3_exec(sqlite_store_of(store)->db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
}

static int number(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(sqlite_store_of(store)->db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int value = sqlite3_column_int(statement, 0);
    (void) sqlite3_finalize(statement);
    return value;
}

static void complete(struct store *store, const char *key)
{
    struct store_found found = fixture_claim_now(store, key, 1, 1);
    ck_assert(found.claimed);
    ck_assert_int_eq(fixture_finish_now(store, key, &found, OUTCOME_COMPLETED), STORE_OK);
}

static void expect_refused(struct store *store, const char *key)
{
    struct store_claim claim = fixture_claim(key, 1, 1);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FAILED);
    ck_assert(!found.claimed);
    store_rollback(store);
}

/* --- a row --- */

static const struct damage {
    const char *sql, *why;
} damages[] = {
    { "UPDATE commands SET fingerprint = x'01' WHERE key = 'bad'", "no version of this program wrote it" },
    { "UPDATE commands SET credential = x'01' WHERE key = 'bad'", "no version of this program wrote it" },
    { "UPDATE commands SET state = 7 WHERE key = 'bad'", "no version of this program wrote it" },
    { "UPDATE commands SET state = 0 WHERE key = 'bad'", "no version of this program wrote it" },
    { "UPDATE commands SET state = -1 WHERE key = 'bad'", "no version of this program wrote it" },
    { "UPDATE responses SET execution = 0 WHERE row_id = 1", "its response is that of another execution" },
};
enum { DAMAGES = sizeof damages / sizeof damages[0] };

/* What must stay of it. */
static const char kept_sql[] = "CREATE TEMP TABLE kept AS SELECT * FROM commands WHERE key = 'bad';"
                               "CREATE TEMP TABLE kept_answer AS SELECT * FROM responses WHERE row_id = 1";
static const char kept_count[] =
    "SELECT count(*) FROM (SELECT 1 FROM (SELECT * FROM kept INTERSECT SELECT * FROM commands)"
    " UNION ALL SELECT 1 FROM (SELECT * FROM kept_answer INTERSECT SELECT * FROM responses))";

static void expect_stepped_over(struct store *store, const struct damage *damage, unsigned told)
{
    ck_assert_uint_eq(times_logged("command row 1 of "), told);
    ck_assert_uint_eq(times_logged(damage->why), told);
    ck_assert_int_eq(number(store, kept_count), 2);
    expect_refused(store, "bad");
}

/* The time that the clean-up goes by says so, and those of the record do not: nothing has happened to it, and its answer stays. */
START_TEST(a_row_whose_own_times_say_that_it_is_not_due_keeps_its_answer)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "late", 1, 1), repeat;
    ck_assert_int_eq(fixture_finish_now(store, "late", &found, OUTCOME_UNKNOWN), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "late", &found, OUTCOME_COMPLETED), STORE_OK);
    run_sql(store, "UPDATE commands SET due_ms = 1");
    store_close(store);
    store = fixture_open(&options);
    struct store_sweep sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_uint_eq(times_logged("its own times say that it is not due"), 1);
    repeat = fixture_claim_now(store, "late", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    free(repeat.response);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_damaged_row_is_told_once_and_stepped_over_and_the_rest_is_swept)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    complete(store, "bad"); /* the oldest */
    complete(store, "a");
    complete(store, "b");
    run_sql(store, damages[_i].sql);
    run_sql(store, kept_sql);
    fixture_advance(FIXTURE_TTL_MS);
    complete(store, "later");
    struct store_sweep sweep = { .limit = 1 };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_OK);
    ck_assert_uint_eq(sweep.expired, 1); /* it takes no place of another */
    ck_assert(sweep.more);
    store_rollback(store); /* undone: it comes again, and is not told again */
    sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.expired, 2);
    ck_assert_uint_eq(sweep.forgotten, 0);
    ck_assert(!sweep.more);
    ck_assert_int_eq(sweep.left_due_ms, 0); /* nor does it count as behind */
    expect_stepped_over(store, &damages[_i], 1);
    ck_assert_int_eq(fixture_state(store, "a"), RECORD_EXPIRED);
    sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_int_eq(sweep.found_due_ms, 0);
    fixture_advance(FIXTURE_TOMBSTONE_MS); /* its block is read again for the others, and is empty but for it at last */
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 3);
    complete(store, "new");
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 1);
    expect_stepped_over(store, &damages[_i], 1);
    ck_assert_uint_eq(times_logged("--check-store"), 1);
    store_close(store);
    store = fixture_open(&options); /* another process tells it anew */
    run_sql(store, kept_sql);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 0);
    expect_stepped_over(store, &damages[_i], 2);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 0);
    expect_stepped_over(store, &damages[_i], 2);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- many rows --- */

enum { MANY = 100, MANY_TOLD = 64 };

START_TEST(many_damaged_rows_are_not_told_without_end)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    for (int i = 0; i < MANY; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        complete(store, key);
    }
    run_sql(store, "UPDATE commands SET state = 7");
    complete(store, "good");
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 1);
    ck_assert_uint_eq(times_logged("cannot be cleaned up"), MANY_TOLD);
    ck_assert_uint_eq(times_logged("more damaged rows are met"), 1);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1); /* and meets all of them again */
    ck_assert_uint_eq(times_logged("cannot be cleaned up"), MANY_TOLD);
    ck_assert_uint_eq(times_logged("more damaged rows are met"), 1);
    ck_assert_int_eq(number(store, "SELECT count(*) FROM commands WHERE state = 7"), MANY);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- a page --- */

enum { KEYS = 1023, PAGE_BYTES = 4096 }; /* rows 1 to 1023 are blocks 0 to 3 */

/* Spoils the page of the file on which the key stands, behind the back of SQLite, which has forgotten what it read. */
static void spoil_page_of(struct store *store, const char *key)
{
    static char page[PAGE_BYTES];
    unsigned spoilt = 0;
    fixture_advance(2000);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_eq(sqlite_store_of(store)->wal_pages, 0);
    ck_assert_int_eq(sqlite3_db_release_memory(sqlite_store_of(store)->db), SQLITE_OK);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (off_t at = PAGE_BYTES; pread(fd, page, sizeof page, at) == PAGE_BYTES; at += PAGE_BYTES) {
        if (memmem(page, sizeof page, key, strlen(key)) != NULL) {
            ck_assert_int_eq(page[0], 0x0D); /* a leaf of a table */
            ck_assert_int_eq(pwrite(fd, "\xFF", 1, at), 1);
            spoilt++;
        }
    }
    ck_assert_int_eq(close(fd), 0);
    ck_assert_uint_eq(spoilt, 1);
}

START_TEST(rows_that_the_file_cannot_give_are_told_once_and_the_other_blocks_are_swept)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    for (int i = 1; i <= KEYS; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "key-%04d", i);
        complete(store, key);
    }
    spoil_page_of(store, "key-0384"); /* in the middle of block 1 */
    fixture_advance(FIXTURE_TTL_MS);
    struct store_sweep sweep = { .limit = 2000 };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_FAILED); /* SQLite writes nothing more in this one */
    store_rollback(store);
    sweep = fixture_sweep(store, 2000);
    ck_assert_uint_eq(sweep.expired, 767); /* 255 of block 0, and 256 each of the blocks 2 and 3 */
    ck_assert(!sweep.more);
    ck_assert_int_eq(sweep.left_due_ms, 0);
    sweep = fixture_sweep(store, 2000);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_uint_eq(times_logged("command rows 256 to 511 of "), 1);
    ck_assert_uint_eq(times_logged("--check-store"), 1);
    expect_refused(store, "key-0384");
    ck_assert_int_eq(fixture_state(store, "key-0001"), RECORD_EXPIRED);
    store->down = true; /* nothing of that file is worth a last checkpoint */
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sweep_damage)
{
    Suite *suite = suite_create("store/sweep_damage");
    CASE(suite, a_row_whose_own_times_say_that_it_is_not_due_keeps_its_answer);
    CASE_LOOP(suite, a_damaged_row_is_told_once_and_stepped_over_and_the_rest_is_swept, DAMAGES);
    CASE(suite, many_damaged_rows_are_not_told_without_end);
    CASE(suite, rows_that_the_file_cannot_give_are_told_once_and_the_other_blocks_are_swept);
    return suite;
}
