/* sqlite_check_test.c - the check of a store: what it says of a sound one and of each damage, and that no byte changes whatever it meets. */
#include "server/store/check.h"
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

#include <sys/wait.h>

static char out[16384], error[4096]; /* of the newest check */

/* One command in each state. */
static void fill(struct store *store)
{
    struct store_claim claim = fixture_claim("voided", 1, 1);
    struct store_found found = fixture_claim_now(store, "expired", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "expired", &found, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(FIXTURE_TTL_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 1);
    found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    found = fixture_claim_now(store, "free", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "free", &found, OUTCOME_NOT_EXECUTED), STORE_OK);
    found = fixture_claim_now(store, "lost", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "lost", &found, OUTCOME_UNKNOWN), STORE_OK);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    fixture_found_free(&found);
    (void) fixture_claim_now(store, "running", 1, 1);
    (void) fixture_claim_now(store, "running 2", 1, 0);
}

/* Closed cleanly: what ran is in the file as running, since only a start makes it unknown. */
static void make_store(void)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    fill(store);
    store_close(store);
}

/* As a crash leaves it: everything is in the log. */
static void make_crashed_store(void)
{
    struct store_options options = start();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fill(fixture_open(&options));
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* --- files, byte for byte --- */

static const char *const suffixes[] = { "", "-wal", ".lock", "-shm", "-journal" };
enum { FILES = sizeof suffixes / sizeof suffixes[0] };

struct image {
    char *bytes;
    long len; /* -1: not there */
};

static void image_take(struct image images[FILES])
{
    for (int i = 0; i < FILES; i++) {
        char name[128];
        (void) snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        FILE *file = fopen(name, "rb");
        images[i] = (struct image){ NULL, -1 };
        if (file != NULL) {
            ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
            images[i].len = ftell(file);
            rewind(file);
            images[i].bytes = malloc((size_t) images[i].len + 1);
            ck_assert_uint_eq(fread(images[i].bytes, 1, (size_t) images[i].len, file), (size_t) images[i].len);
            (void) fclose(file);
        }
    }
}

/* Checks, and holds every file against what it was. */
static int check(void)
{
    struct image before[FILES], after[FILES];
    struct buf text, why;
    buf_init(&text, sizeof out - 1);
    buf_init(&why, sizeof error - 1);
    image_take(before);
    int exit_code = store_check(path, &text, &why);
    image_take(after);
    (void) snprintf(out, sizeof out, "%.*s", VIEW_ARGS(buf_view(&text)));
    (void) snprintf(error, sizeof error, "%.*s", VIEW_ARGS(buf_view(&why)));
    buf_fini(&text);
    buf_fini(&why);
    for (int i = 0; i < FILES; i++) {
        ck_assert_msg(before[i].len == after[i].len, "%s%s had %ld bytes and has %ld", path, suffixes[i], before[i].len,
                      after[i].len);
        ck_assert_msg(before[i].len <= 0 || memcmp(before[i].bytes, after[i].bytes, (size_t) before[i].len) == 0,
                      "%s%s was changed", path, suffixes[i]);
        free(before[i].bytes);
        free(after[i].bytes);
    }
    return exit_code;
}

static void says(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "\"%s\" is not in: %s", words, text);
}

static void expect_sound(void)
{
    char last[256];
    int exit_code = check();
    ck_assert_msg(exit_code == 0, "%d: %s %s", exit_code, out, error);
    ck_assert_str_eq(error, "");
    (void) snprintf(last, sizeof last,
                    "in_progress  2\ncompleted    1\nunknown      1\nreleased     1\nexpired      1\nvoided       1\n"
                    "store %s: sound, 7 commands\n",
                    path);
    ck_assert_str_eq(out, last);
}

static void write_file(const char *suffix, const char *text)
{
    char name[128];
    (void) snprintf(name, sizeof name, "%s%s", path, suffix);
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void expect_refused(int exit_code, const char *words)
{
    int got = check();
    ck_assert_msg(got == exit_code, "%s: exit code %d: %s%s", words, got, out, error);
    says(error, words);
    says(error, "cannot be checked");
    ck_assert_str_eq(out, "");
}

/* --- sound ones --- */

START_TEST(a_store_that_was_closed_is_sound_and_no_byte_of_it_changes)
{
    make_store();
    expect_sound();
    expect_sound();
    char lock[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(unlink(lock), 0);
    expect_sound();
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_whose_process_was_killed_is_sound_with_what_its_log_says)
{
    make_crashed_store();
    expect_sound();
    expect_sound();
    struct store_options options = fixture_options(path);
    struct store *store = fixture_open(&options); /* and it was recovered by nobody */
    ck_assert_uint_eq(store->info.recovered, 2);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_without_commands_is_sound)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    ck_assert_int_eq(check(), 0);
    says(out, ": sound, 0 commands\n");
    fixture_remove(directory);
}
END_TEST

/* --- each damage --- */

static const struct damage_row {
    const char *sql;
    const char *says; /* beside exit code 74 */
    unsigned findings;
} damages[] = {
    { "UPDATE commands SET hash = zeroblob(16) WHERE key = 'done'",
      "row 2: its hash is not that of its tenant and key, so that the key is not found\n", 1 },
    { "UPDATE commands SET key = 'another' WHERE key = 'done'", "row 2: its hash is not that", 1 },
    { "UPDATE commands SET tenant = '' WHERE key = 'done'", "row 2: its hash is not that", 1 },
    { "UPDATE commands SET key = '' WHERE key = 'done'", "row 2: its key has 0 bytes and its tenant 1\n", 1 },
    { "UPDATE commands SET key = hex(zeroblob(5000)) WHERE key = 'done'", "row 2: its key has 10000 bytes", 1 },
    { "UPDATE commands SET tenant = hex(zeroblob(5000)) WHERE key = 'done'", "and its tenant 10000\n", 1 },
    { "UPDATE commands SET key = 'done', hash = (SELECT hash FROM commands WHERE key = 'done') WHERE key = 'lost'",
      "rows 2 and 4: two commands have the same key\n", 1 },
    { "UPDATE commands SET command_id = x'01' WHERE key = 'done'", "row 2: its command id has 1 bytes\n", 1 },
    { "UPDATE commands SET command_id = (SELECT command_id FROM commands WHERE key = 'lost') WHERE key = 'done'",
      "row 2: its command id leads to row 4\n", 1 },
    { "UPDATE commands SET command_id = zeroblob(16) WHERE key = 'done'", "row 2: its command id leads to row ", 1 },
    { "UPDATE commands SET state = 7 WHERE key = 'done'", "row 2: state 7 does not exist\n", 1 },
    { "UPDATE commands SET state = 0 WHERE key = 'done'", "row 2: state 0 does not exist\n", 1 },
    { "UPDATE commands SET state = -1 WHERE key = 'done'", "row 2: state -1 does not exist\n", 1 },
    { "UPDATE commands SET execution = 0 WHERE key = 'lost'", "row 4: execution 0 cannot be\n", 1 },
    { "UPDATE commands SET execution = -1 WHERE key = 'voided'", "row 5: execution -1 cannot be\n", 1 },
    { "UPDATE commands SET execution = 4294967296 WHERE key = 'lost'", "row 4: execution 4294967296 cannot be\n", 1 },
    { "UPDATE commands SET fingerprint = x'01' WHERE key = 'free'", "row 3: its fingerprint has 1 bytes\n", 1 },
    { "UPDATE commands SET fingerprint = NULL WHERE key = 'running'", "row 6: its fingerprint has 0 bytes\n", 1 },
    { "UPDATE commands SET credential = x'01' WHERE key = 'running'", "row 6: its credential has 1 bytes\n", 1 },
    { "UPDATE commands SET cause = 99 WHERE key = 'lost'", "row 4: cause 99 and tombstone ", 1 },
    { "UPDATE commands SET tombstone = 3 WHERE key = 'expired'", "tombstone 3 do not exist\n", 1 },
    { "UPDATE commands SET due_ms = due_ms + 1 WHERE key = 'expired'", "row 1: the clean-up looks at it at ", 1 },
    { "UPDATE commands SET due_ms = 0 WHERE key = 'lost'", "row 4: the clean-up looks at it at 0, and it is due at ",
      1 },
    { "UPDATE commands SET due_ms = 9223372036854775807 WHERE key = 'done'",
      "row 2: the clean-up looks at it at 9223372036854775807, and it is due at ", 1 },
    { "DELETE FROM responses", "row 2: it is completed, and its response is not there\n", 1 },
    { "UPDATE responses SET status = 199", "row 2: its response has status 199\n", 1 },
    { "UPDATE responses SET status = 1000", "row 2: its response has status 1000\n", 1 },
    { "UPDATE responses SET bytes = 5", "row 2: its response had 5 bytes, kept: 1, and 4 are there\n", 1 },
    { "UPDATE responses SET bytes = -1", "row 2: its response had -1 bytes, kept: 1, and 4 are there\n", 1 },
    { "UPDATE responses SET kept = 0", "row 2: its response had 4 bytes, kept: 0, and 4 are there\n", 1 },
    { "UPDATE responses SET kept = 2", "row 2: its response had 4 bytes, kept: 2, and 4 are there\n", 1 },
    { "UPDATE responses SET body = x''", "row 2: its response had 4 bytes, kept: 1, and 0 are there\n", 1 },
    { "UPDATE responses SET row_id = 99", "row 99: there is a response without a command\n", 2 },
    { "UPDATE responses SET row_id = 4", "row 4: it has a response, and its state is unknown\n", 2 },
    { "DELETE FROM commands WHERE key = 'done'", "row 2: there is a response without a command\n", 1 },
    { "UPDATE commands SET row_id = 17592186044416 WHERE key = 'running'",
      "row 17592186044416: its number is out of range\n", 2 },
    { "UPDATE commands SET row_id = -6 WHERE key = 'running'", "row -6: its number is out of range\n", 3 },
    { "DELETE FROM meta WHERE name = 'hash_key'", "meta: hash_key is missing, or has not 32 bytes\n", 1 },
    { "UPDATE meta SET value = x'01' WHERE name = 'id_key'", "meta: id_key is missing, or has not 16 bytes\n", 1 },
    { "UPDATE meta SET value = 'x' WHERE name = 'last_time_ms'", "meta: last_time_ms is missing, or not a number\n",
      1 },
    { "DELETE FROM meta WHERE name = 'guard'", "meta: guard is missing\n", 1 },
    { "UPDATE meta SET value = zeroblob(16) WHERE name = 'store_id'", "it is another store than the one that ", 1 },
    { "DROP TABLE responses", "its tables are not as they should be: no such table: ", 1 },
    { "PRAGMA ignore_check_constraints = ON; UPDATE commands SET hash = x'01' WHERE key = 'done'",
      "integrity_check: CHECK constraint failed in commands\n", 2 },
};

START_TEST(a_damage_is_told_with_its_row_and_exit_code_74)
{
    const struct damage_row *row = &damages[_i];
    char count[64];
    make_store();
    alter(row->sql);
    int exit_code = check();
    ck_assert_msg(exit_code == 74, "%s: exit code %d, %s%s", row->sql, exit_code, out, error);
    says(out, row->says);
    (void) snprintf(count, sizeof count, "is damaged (what is wrong: %u, above)", row->findings);
    says(error, count);
    says(error, path);
    ck_assert_msg(strstr(out, "sound") == NULL, "it is called sound: %s", out);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_page_that_was_overwritten_is_told)
{
    static const char junk[2048] = { 1, 2, 3 };
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    make_store();
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'commands'", -1, &statement, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int page = sqlite3_column_int(statement, 0);
    ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, (page - 1) * 2048L, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(junk, 1, sizeof junk, file), sizeof junk);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(check(), 74);
    says(out, "integrity_check: ");
    says(error, "is damaged");
    fixture_remove(directory);
}
END_TEST

START_TEST(of_many_damages_the_first_20_are_told_and_all_are_counted)
{
    char key[16];
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    for (int i = 0; i < 50; i++) {
        (void) snprintf(key, sizeof key, "k%d", i);
        (void) fixture_claim_now(store, key, 1, 1);
    }
    store_close(store);
    alter("UPDATE commands SET cause = 99");
    ck_assert_int_eq(check(), 74);
    says(out, "row 20: cause 99");
    says(out, "... and 30 more\n");
    says(out, "in_progress  50\n");
    ck_assert_ptr_null(strstr(out, "row 21:"));
    says(error, "(what is wrong: 50, above)");
    fixture_remove(directory);
}
END_TEST

/* --- refusals --- */

START_TEST(a_log_that_is_missing_after_a_crash_is_told)
{
    char log[96];
    make_crashed_store();
    (void) snprintf(log, sizeof log, "%s-wal", path);
    write_file("-wal", "");
    expect_refused(74, "store.db-wal is empty: commits may be missing");
    ck_assert_int_eq(unlink(log), 0);
    expect_refused(74, "store.db-wal is missing: commits may be missing");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_somebody_has_open_is_not_checked)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    char lock[96];
    struct buf text, why;
    fill(store);
    buf_init(&text, 1024);
    buf_init(&why, 1024);
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(store_check(path, &text, &why), 74);
    buf_append(&why, VIEW("\0"));
    says(why.ptr, "it is locked by process ");
    ck_assert_uint_eq(text.len, 0);
    buf_clear(&why);
    ck_assert_int_eq(unlink(lock), 0); /* then SQLite's lock holds */
    ck_assert_int_eq(store_check(path, &text, &why), 74);
    buf_append(&why, VIEW("\0"));
    says(why.ptr, "another program has the database open");
    ck_assert_int_ne(access(lock, F_OK), 0);
    buf_fini(&text);
    buf_fini(&why);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(what_is_no_store_of_this_version_is_refused)
{
    (void) start();
    expect_refused(74, "No such file");
    write_file("", "");
    expect_refused(74, "it is empty");
    for (int i = 0; i < 2; i++) {
        write_file("", "this is not a database, it is a letter to a friend, and it is long enough to be read as one; "
                       "it goes on and on and on, and tells nothing, and nobody has ever read it to its end so far");
        expect_refused(74, "not a database");
    }
    fixture_remove(directory);
    make_store();
    alter("PRAGMA user_version = 99");
    expect_refused(74, "it has format 99");
    alter("PRAGMA user_version = 1; PRAGMA application_id = 7");
    expect_refused(74, "another application (application_id 0x00000007");
    alter("PRAGMA application_id = 1312966995");
    expect_sound();
    write_file("-journal", "x");
    expect_refused(74, "store.db-journal is there");
    fixture_remove(directory);
    (void) snprintf(path, sizeof path, "%s", "/dev/null");
    expect_refused(73, "not a regular file");
    (void) snprintf(path, sizeof path, "%s", "/dev/null/store.db");
    expect_refused(73, "Not a directory");
}
END_TEST

SUITE(store_sqlite_check)
{
    Suite *suite = suite_create("store/sqlite_check");
    CASE(suite, a_store_that_was_closed_is_sound_and_no_byte_of_it_changes);
    CASE(suite, a_store_whose_process_was_killed_is_sound_with_what_its_log_says);
    CASE(suite, a_store_without_commands_is_sound);
    CASE_LOOP(suite, a_damage_is_told_with_its_row_and_exit_code_74, sizeof damages / sizeof damages[0]);
    CASE(suite, a_page_that_was_overwritten_is_told);
    CASE(suite, of_many_damages_the_first_20_are_told_and_all_are_counted);
    CASE(suite, a_log_that_is_missing_after_a_crash_is_told);
    CASE(suite, a_store_that_somebody_has_open_is_not_checked);
    CASE(suite, what_is_no_store_of_this_version_is_refused);
    return suite;
}
