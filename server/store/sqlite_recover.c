/* sqlite_recover.c - what was running when the process ended is unknown from the next start on: a claim means "may have
 * been sent" (docs/contract.md section 6). Owns that one transaction; what a failure means for the start decides
 * sqlite_open.c. Used at start, before there are threads. */
#include "server/store/sqlite_store.h"

#include "server/base/memory.h"

#include <stdlib.h>

enum { RECOVER_CHUNK = 256 /* rows at once */ };

static enum store_result recover_count(struct sqlite_store *sqlite, int64_t *running)
{
    sqlite3_stmt *statement = NULL;
    int code =
        sqlite3_prepare_v2(sqlite->db, "SELECT count(*) FROM commands WHERE due_ms IS NULL", -1, &statement, NULL);
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    *running = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void) sqlite3_finalize(statement);
    return code == SQLITE_ROW ? STORE_OK : sqlite_failed(sqlite, "count running commands", code);
}

static enum store_result recover_row(struct sqlite_store *sqlite, struct sqlite_row *row,
                                     const struct retention *retention, int64_t now_ms)
{
    const struct record_outcome crash = { .kind = OUTCOME_UNKNOWN, .cause = CAUSE_CRASH };
    bool changed = false;
    enum record_state state_before = row->record.state;
    if (!record_finish(&row->record, row->record.execution, &crash, retention, now_ms)) {
        return STORE_FAILED;
    }
    int code = sqlite_row_update(sqlite, row, row->record.execution, &changed);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "make a running command unknown", code);
    }
    store_note_move(&sqlite->store, state_before, row->record.state);
    return changed ? STORE_OK : STORE_FAILED;
}

static enum store_result recover_rows(struct sqlite_store *sqlite, const struct retention *retention)
{
    struct sqlite_row *rows = memory_new(RECOVER_CHUNK * sizeof *rows);
    int64_t now_ms = store_now(&sqlite->store);
    unsigned count = 0;
    enum store_result result = STORE_OK;
    do {
        int code = sqlite_row_list_running(sqlite, rows, RECOVER_CHUNK, &count);
        result = code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "list running commands", code);
        for (unsigned i = 0; result == STORE_OK && i < count; i++) {
            result = recover_row(sqlite, &rows[i], retention, now_ms);
        }
    } while (result == STORE_OK && count == RECOVER_CHUNK);
    free(rows);
    return result;
}

enum store_result sqlite_recover(struct sqlite_store *sqlite, const struct retention *retention, int64_t *running)
{
    struct store *store = &sqlite->store;
    sqlite->full_told = true; /* who opens tells it, and better; the first commit that finds room takes it back */
    *running = 0;
    enum store_result result = store_begin(store);
    result = result == STORE_OK ? recover_count(sqlite, running) : result;
    result = result == STORE_OK ? recover_rows(sqlite, retention) : result;
    result = result == STORE_OK ? store_touch(store) : result;
    result = result == STORE_OK ? store_commit(store) : result;
    if (result == STORE_OK) {
        store->info.recovered = (unsigned) *running;
    } else if (result == STORE_FULL) {
        store_rollback(store);
    }
    return result;
}
