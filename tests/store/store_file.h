/* store_file.h - the SQLite store in a file of a test's own: where it lies, how it starts, crashes and is
 * altered. One store at a time; its names are
 * short, since a file of tests is all they are for. Header only, since the clock of store_fixture.h is. */
#ifndef NONBIS_TESTS_STORE_FILE_H
#define NONBIS_TESTS_STORE_FILE_H

#include "tests/store/store_fixture.h"
#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <sqlite3.h>

static char directory[64], path[80];

/* In a new directory. */
static inline struct store_options start(void)
{
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    return fixture_options(path);
}

/* Ends as a crash would: no last commit, the log left as it is. */
static inline void crash(struct store *store)
{
    store->down = true;
    store_close(store);
}

/* Another program does this to the database. */
static inline void alter(const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        ck_abort_msg("%s: %s", sql, error);
    }
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static inline void write_at(const char *file, off_t at, const void *bytes, size_t len)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, len, at), (ssize_t) len);
    ck_assert_int_eq(close(fd), 0);
}

/* --- on a small disk of its own --- */

/* Over the directory; `size` and the result as in small_disk_open. */
static inline bool disk_mount(const char *size)
{
    if (small_disk_open(directory, size)) {
        return true;
    }
    fixture_remove(directory);
    return false;
}

static inline void disk_unmount(void)
{
    fixture_remove(directory);
    small_disk_end(directory);
    fixture_remove(directory);
}

#endif
