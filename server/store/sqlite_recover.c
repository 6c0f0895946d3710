/* sqlite_recover.c - what was running when the process ended is unknown from the next start on: a claim means "may have
 * been sent" (docs/contract.md section 6). Owns that one transaction, and the line in the log about each of these commands; which
 * they are tells sqlite_scan.c, what a failure means for the start decides sqlite_open.c. Used at start, before there are threads. */
#include "server/store/sqlite_store.h"

#include "common/http_time.h"
#include "server/base/log.h"

#include <stdio.h>
#include <string.h>

enum { RECOVER_PATH_MAX = 256 }; /* of a target in the log, as in the line about a request */

/* By the names that other lines have for it: its own line would have come when it ended. The path comes last, since it may be long. */
static void recover_tell_row(const struct sqlite_store *sqlite, sqlite3_stmt *statement)
{
    char key[DIGEST_LOG_NAME_BYTES], command[2 * COMMAND_ID_BYTES + 1] = "", created[RFC3339_BYTES];
    struct view id = sqlite_column_view(statement, 4), target = sqlite_column_view(statement, 3);
    struct log_line line;
    for (size_t i = 0; i < id.len && i < COMMAND_ID_BYTES; i++) {
        (void) snprintf(command + 2 * i, 3, "%02x", (unsigned) (uint8_t) id.ptr[i]);
    }
    digest_log_name(sqlite->store.info.guard_key, sqlite_column_view(statement, 0), sqlite_column_view(statement, 1),
                    key);
    rfc3339_write(sqlite3_column_int64(statement, 6) + sqlite->store.told_offset_ms, created);
    log_begin(&line, LOG_WARN, "recovery");
    log_text(&line, "result", "unknown");
    log_text(&line, "cause", "crash");
    log_view(&line, "method", sqlite_column_view(statement, 2));
    log_text(&line, "key", key);
    log_text(&line, "command", command);
    log_int(&line, "execution", sqlite3_column_int64(statement, 5));
    log_text(&line, "created", created);
    log_view(&line, "path", view_make(target.ptr, target.len < RECOVER_PATH_MAX ? target.len : RECOVER_PATH_MAX));
    log_end(&line);
}

/* Before it is recorded: a start that is cut short here tells it again at the next one, which is better than never (contract 9.2). */
static enum store_result recover_tell(struct sqlite_store *sqlite, const struct sqlite_scan *scan)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_READ_NAMES];
    for (size_t i = 0; i < scan->count; i++) {
        (void) sqlite3_bind_int64(statement, 1, scan->running[i]);
        int code = sqlite3_step(statement);
        if (code == SQLITE_ROW) {
            recover_tell_row(sqlite, statement);
        }
        int reset = sqlite3_reset(statement);
        if (code != SQLITE_ROW) {
            return sqlite_failed(sqlite, "read a running command", reset != SQLITE_OK ? reset : SQLITE_CORRUPT);
        }
    }
    return STORE_OK;
}

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
    enum store_result result = recover_tell(sqlite, scan);
    if (result != STORE_OK) {
        return result;
    }
    result = recover_once(sqlite, scan, retention);
    return result == STORE_FULL && scan->count > 0 && sqlite_room_make(&sqlite->store)
               ? recover_once(sqlite, scan, retention)
               : result;
}
