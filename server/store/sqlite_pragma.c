/* sqlite_pragma.c - the settings of SQLite that the promise rests on (docs/contract.md section 11): set, then read
 * back, since SQLite answers an impossible pragma with silence. A table; nothing else. */
#include "server/store/sqlite_store.h"

#include <stdio.h>
#include <string.h>

struct pragma {
    const char *name;
    const char *set;  /* value as set */
    const char *read; /* value as it must read back */
};

/* One connection that keeps everybody else out never meets the corruption of docs/facts.md 14, and needs no shared
 * memory. Only before the first access of the log does this hold. */
static const struct pragma pragmas_lock[] = {
    { "locking_mode", "EXCLUSIVE", "exclusive" },
};

static const struct pragma pragmas[] = {
    { "journal_mode", "WAL", "wal" },
    { "synchronous", "FULL", "2" },                   /* one fdatasync per commit (facts 15) */
    { "wal_autocheckpoint", "0", "0" },               /* its errors are thrown away (facts 16) */
    { "mmap_size", "0", "0" },                        /* an I/O error would be a crash */
    { "temp_store", "MEMORY", "2" },                  /* no second disk that can be full */
    { "cell_size_check", "ON", "1" },                 /* damage is seen sooner */
    { "trusted_schema", "OFF", "0" },                 /* nothing in the file is run */
    { "cache_size", "-16384", "-16384" },             /* KiB at most; grows with use, nothing is set aside */
    { "journal_size_limit", "67108864", "67108864" }, /* bytes that a log may keep after it was emptied */
    { "busy_timeout", "250", "250" },                 /* only while opening can anybody be in the way */
};

/* The value of a pragma as text; empty when there is none. */
static void pragma_read(sqlite3 *db, const char *name, char *out, size_t room)
{
    char sql[64];
    sqlite3_stmt *statement = NULL;
    out[0] = '\0';
    (void) snprintf(sql, sizeof sql, "PRAGMA %s", name);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        (void) snprintf(out, room, "%s", (const char *) sqlite3_column_text(statement, 0));
    }
    (void) sqlite3_finalize(statement);
}

static bool pragma_apply(sqlite3 *db, const struct pragma *table, size_t count, struct buf *why)
{
    for (size_t i = 0; i < count; i++) {
        char sql[96], value[64];
        (void) snprintf(sql, sizeof sql, "PRAGMA %s = %s", table[i].name, table[i].set);
        if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
            buf_printf(why, "PRAGMA %s = %s failed: %s", table[i].name, table[i].set, sqlite3_errmsg(db));
            return false;
        }
        pragma_read(db, table[i].name, value, sizeof value);
        if (strcmp(value, table[i].read) != 0) {
            buf_printf(why, "PRAGMA %s was set to %s and reads back as \"%s\" instead of \"%s\"", table[i].name,
                       table[i].set, value, table[i].read);
            return false;
        }
    }
    return true;
}

bool sqlite_pragma_lock(sqlite3 *db, struct buf *why)
{
    return pragma_apply(db, pragmas_lock, sizeof pragmas_lock / sizeof pragmas_lock[0], why);
}

bool sqlite_pragma_apply(sqlite3 *db, bool fresh, struct buf *why)
{
    /* A commit writes the last pages of two tables again, and those above them: small pages are fewer bytes on the disk (docs/performance.md), and large
     * bodies cost hardly more. Nothing rests on it: a file that has pages keeps their size. */
    if (fresh && sqlite3_exec(db, "PRAGMA page_size = 2048", NULL, NULL, NULL) != SQLITE_OK) {
        buf_printf(why, "PRAGMA page_size = 2048 failed: %s", sqlite3_errmsg(db));
        return false;
    }
    return pragma_apply(db, pragmas, sizeof pragmas / sizeof pragmas[0], why);
}

bool sqlite_pragma_number(sqlite3 *db, const char *name, int64_t *value)
{
    char sql[64];
    sqlite3_stmt *statement = NULL;
    (void) snprintf(sql, sizeof sql, "PRAGMA %s", name);
    bool read = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW;
    *value = read ? sqlite3_column_int64(statement, 0) : 0;
    return sqlite3_finalize(statement) == SQLITE_OK && read;
}

bool sqlite_pragma_check(sqlite3 *db, char *said, size_t room)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        (void) snprintf(said, room, "%s", (const char *) sqlite3_column_text(statement, 0));
    } else {
        (void) snprintf(said, room, "%s", sqlite3_errmsg(db));
    }
    (void) sqlite3_finalize(statement);
    (void) sqlite3_db_release_memory(db);
    return strcmp(said, "ok") == 0;
}

void sqlite_pragma_describe(sqlite3 *db, char *out, size_t room)
{
    static const char *const levels[] = { "OFF", "NORMAL", "FULL", "EXTRA" };
    char journal[16], lock[16];
    int64_t level = 0;
    pragma_read(db, "journal_mode", journal, sizeof journal);
    pragma_read(db, "locking_mode", lock, sizeof lock);
    (void) sqlite_pragma_number(db, "synchronous", &level);
    (void) snprintf(out, room, "sqlite %s, file, synchronous=%s, journal_mode=%s, locking_mode=%s",
                    sqlite3_libversion(), level >= 0 && level <= 3 ? levels[level] : "?", journal, lock);
}
