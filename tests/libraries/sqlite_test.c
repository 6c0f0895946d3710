/* sqlite_test.c - what SQLite does that the store was built around (docs/facts.md 14 to 20, 38). */
#include "tests/support/suite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char folder[64], file[96], wal[96], shm[96];
};

static void place_make(struct place *place)
{
    (void) snprintf(place->folder, sizeof place->folder, "/tmp/nonbis-sqlite-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place->folder));
    (void) snprintf(place->file, sizeof place->file, "%s/f.db", place->folder);
    (void) snprintf(place->wal, sizeof place->wal, "%s/f.db-wal", place->folder);
    (void) snprintf(place->shm, sizeof place->shm, "%s/f.db-shm", place->folder);
}

static void place_remove(const struct place *place)
{
    (void) unlink(place->wal);
    (void) unlink(place->shm);
    (void) unlink(place->file);
    ck_assert_int_eq(rmdir(place->folder), 0);
}

static sqlite3 *open_file(const char *file)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_extended_result_codes(db, 1), SQLITE_OK);
    return db;
}

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void must(sqlite3 *db, const char *sql)
{
    ck_assert_msg(run(db, sql) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

static int number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

START_TEST(fact_14_exclusive_locking_before_wal_makes_no_shared_memory_file_and_keeps_others_out)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1);");
    ck_assert_int_eq(access(place.wal, F_OK), 0);
    ck_assert_int_ne(access(place.shm, F_OK), 0);
    sqlite3 *other = open_file(place.file);
    ck_assert_int_eq(run(other, "SELECT * FROM t") & 0xff, SQLITE_BUSY);
    sqlite3_close(other);
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

/* --- 15: how often a commit reaches the disk --- */

static int syncs;
static sqlite3_io_methods counted;
static const sqlite3_io_methods *plain;
static int (*plain_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);

static int counting_sync(sqlite3_file *file, int flags)
{
    syncs++;
    return plain->xSync(file, flags);
}

static int counting_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int code = plain_open(vfs, name, file, flags, out);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
        plain = file->pMethods;
        counted = *plain;
        counted.xSync = counting_sync;
        file->pMethods = &counted;
    }
    return code;
}

static const struct {
    const char *level;
    int syncs; /* for 20 commits */
} levels[] = { { "PRAGMA synchronous=FULL", 20 }, { "PRAGMA synchronous=NORMAL", 0 } };

START_TEST(fact_15_a_commit_in_wal_is_synced_once_with_full_and_never_with_normal)
{
    struct place place;
    place_make(&place);
    static sqlite3_vfs vfs;
    vfs = *sqlite3_vfs_find(NULL);
    plain_open = vfs.xOpen;
    vfs.xOpen = counting_open;
    vfs.zName = "counting";
    vfs.pNext = NULL;
    ck_assert_int_eq(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(0);");
    must(db, levels[_i].level);
    syncs = 0;
    for (int i = 0; i < 20; i++) {
        must(db, "INSERT INTO t VALUES(1)");
    }
    ck_assert_int_eq(syncs, levels[_i].syncs);
    sqlite3_close(db);
    ck_assert_int_eq(sqlite3_vfs_unregister(&vfs), SQLITE_OK);
    place_remove(&place);
}
END_TEST

START_TEST(fact_16_without_autocheckpoint_the_wal_is_left_alone_until_asked)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a);");
    must(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) INSERT INTO t SELECT "
             "randomblob(4000) FROM n;");
    struct stat before, after;
    ck_assert_int_eq(stat(place.file, &before), 0);
    ck_assert_int_lt(before.st_size, 100000);
    int frames = 0, done = 0;
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &frames, &done), SQLITE_OK);
    ck_assert_int_eq(stat(place.file, &after), 0);
    ck_assert_int_gt(after.st_size, 8000000);
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

START_TEST(fact_18_max_page_count_says_full_while_deleting_still_works)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); PRAGMA max_page_count=50;");
    int code = SQLITE_OK;
    for (int i = 0; i < 1000 && code == SQLITE_OK; i++) {
        code = run(db, "INSERT INTO t VALUES(randomblob(2000))");
    }
    ck_assert_int_eq(code, SQLITE_FULL);
    must(db, "DELETE FROM t WHERE rowid < 20");
    must(db, "INSERT INTO t VALUES(randomblob(2000))");
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

/* Asks the kernel, from another process; SQLite itself would remember the lock across fork(). */
static bool file_is_locked(const char *file)
{
    enum { LOCK_BYTES_START = 0x40000000, LOCK_BYTES = 512 }; /* of SQLite's file format */
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTES_START, .l_len = LOCK_BYTES
        };
        int fd = open(file, O_RDWR | O_CLOEXEC);
        _exit(fcntl(fd, F_GETLK, &lock) != 0 ? 2 : lock.l_type == F_UNLCK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

START_TEST(fact_19_opening_and_closing_the_file_drops_the_lock_of_sqlite)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a);");
    ck_assert(file_is_locked(place.file));
    int fd = open(place.file, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert(!file_is_locked(place.file));
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

START_TEST(fact_20_a_deferred_read_that_becomes_a_write_fails_at_once)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file), *other = open_file(place.file);
    must(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a);");
    (void) sqlite3_busy_timeout(db, 5000);
    must(db, "BEGIN");
    ck_assert_int_eq(number_of(db, "SELECT count(*) FROM t"), 0);
    must(other, "INSERT INTO t VALUES(1)");
    ck_assert_int_eq(run(db, "INSERT INTO t VALUES(2)"), SQLITE_BUSY_SNAPSHOT);
    must(db, "ROLLBACK");
    sqlite3_close(other);
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

START_TEST(fact_20_a_select_that_was_not_reset_pins_the_wal)
{
    struct place place;
    place_make(&place);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2);");
    sqlite3_stmt *select;
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &select, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(select), SQLITE_ROW);
    ck_assert_int_ne(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_reset(select), SQLITE_OK);
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
    sqlite3_finalize(select);
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

static const struct {
    mode_t mask, mode;
} masks[] = { { 0022, 0644 }, { 0077, 0600 } };

START_TEST(fact_38_the_file_is_readable_by_all_unless_the_umask_says_otherwise)
{
    struct place place;
    struct stat status;
    place_make(&place);
    mode_t before = umask(masks[_i].mask);
    sqlite3 *db = open_file(place.file);
    must(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a);");
    (void) umask(before);
    ck_assert_int_eq(stat(place.file, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, masks[_i].mode);
    ck_assert_int_eq(stat(place.wal, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, masks[_i].mode);
    sqlite3_close(db);
    place_remove(&place);
}
END_TEST

SUITE(sqlite)
{
    Suite *suite = suite_create("libraries/sqlite");
    CASE(suite, fact_14_exclusive_locking_before_wal_makes_no_shared_memory_file_and_keeps_others_out);
    CASE_LOOP(suite, fact_15_a_commit_in_wal_is_synced_once_with_full_and_never_with_normal,
              sizeof levels / sizeof levels[0]);
    CASE(suite, fact_16_without_autocheckpoint_the_wal_is_left_alone_until_asked);
    CASE(suite, fact_18_max_page_count_says_full_while_deleting_still_works);
    CASE(suite, fact_19_opening_and_closing_the_file_drops_the_lock_of_sqlite);
    CASE(suite, fact_20_a_deferred_read_that_becomes_a_write_fails_at_once);
    CASE(suite, fact_20_a_select_that_was_not_reset_pins_the_wal);
    CASE_LOOP(suite, fact_38_the_file_is_readable_by_all_unless_the_umask_says_otherwise,
              sizeof masks / sizeof masks[0]);
    return suite;
}
