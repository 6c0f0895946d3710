/* sqlite_recover.c - what was running when the process ended is unknown from the next start on: a claim means "may have
 * been sent" (docs/contract.md section 6). Owns that one transaction; which commands these are tells sqlite_scan.c, what a
 * failure means for the start decides sqlite_open.c. Used at start, before there are threads. */
#include "server/store/sqlite_store.h"

#include <string.h>

static int recover_read(struct sqlite_store *sqlite, int64_t at, struct sqlite_row *row)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_READ_ROW];
    (void) sqlite3_bind_int64(statement, 1, at);
    memset(row, 0, sizeof *row);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        code = sqlite_row_read(statement, row) ? SQLITE_OK : SQLITE_CORRUPT;
    }
    int reset = sqlite3_reset(statement);
    return reset != SQLITE_OK ? reset : code == SQLITE_DONE ? SQLITE_CORRUPT : code; /* the scan has seen it */
}

static enum store_result recover_row(struct sqlite_store *sqlite, int64_t at, const struct retention *retention,
                                     int64_t now_ms)
{
    const struct record_outcome crash = { .kind = OUTCOME_UNKNOWN, .cause = CAUSE_CRASH };
    struct sqlite_row row;
    bool changed = false;
    int code = recover_read(sqlite, at, &row);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "read a running command", code);
    }
    enum record_state state_before = row.record.state;
    if (!record_finish(&row.record, row.record.execution, &crash, retention, now_ms)) {
        return STORE_FAILED;
    }
    code = sqlite_row_update(sqlite, &row, row.record.execution, &changed);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "make a running command unknown", code);
    }
    store_note_move(&sqlite->store, state_before, row.record.state);
    return changed ? STORE_OK : STORE_FAILED;
}

static enum store_result recover_once(struct sqlite_store *sqlite, const struct sqlite_scan *scan,
                                      const struct retention *retention)
{
    struct store *store = &sqlite->store;
    int64_t now_ms = store_now(store);
    sqlite->full_told = true; /* who opens tells it, and better; the first commit that finds room takes it back */
    enum store_result result = store_begin(store);
    for (size_t i = 0; result == STORE_OK && i < scan->count; i++) {
        result = recover_row(sqlite, scan->running[i], retention, now_ms);
    }
    result = result == STORE_OK ? store_touch(store) : result;
    result = result == STORE_OK ? store_commit(store) : result;
    if (result == STORE_OK) {
        store->info.recovered = (unsigned) scan->count;
    } else if (result == STORE_FULL) {
        store_rollback(store);
    }
    return result;
}

enum store_result sqlite_recover(struct sqlite_store *sqlite, const struct sqlite_scan *scan,
                                 const struct retention *retention)
{
    enum store_result result = recover_once(sqlite, scan, retention);
    return result == STORE_FULL && scan->count > 0 && sqlite_room_make(&sqlite->store)
               ? recover_once(sqlite, scan, retention)
               : result;
}
