/* migrate_sqlite.c - brings a database to the newest format: schema/sqlite/NNNN_*.sql in order, compiled in. The
 * number of the last one applied is the file's user_version. */
#include "server/store/sqlite_store.h"

#include <stdio.h>

struct migration {
    int number;
    const char *name;
    const char *sql;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" /* a migration is one literal; gcc and clang have no bound */
static const struct migration migrations[] = {
#include "migrations_sqlite.h"
};
#pragma GCC diagnostic pop

enum { MIGRATION_COUNT = sizeof migrations / sizeof migrations[0] };

int sqlite_migration_newest(void)
{
    return migrations[MIGRATION_COUNT - 1].number;
}

bool sqlite_migrate(sqlite3 *db, int from, struct buf *why)
{
    for (int i = 0; i < MIGRATION_COUNT; i++) {
        const struct migration *migration = &migrations[i];
        char version[64];
        if (migration->number <= from) {
            continue;
        }
        (void) snprintf(version, sizeof version, "PRAGMA user_version = %d", migration->number);
        if (sqlite3_exec(db, migration->sql, NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(db, version, NULL, NULL, NULL) != SQLITE_OK) {
            buf_printf(why, "the step %s failed: %s", migration->name, sqlite3_errmsg(db));
            return false;
        }
    }
    return true;
}
