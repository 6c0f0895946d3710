/* sqlite_response.c - answers as rows: reading and writing the table responses. The response of a command that stands in its row as in progress is its
 * outcome as well: whoever reads such a row joins both, and a record is never seen without it. Knows columns, no rule of a record's life. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"

int sqlite_response_read(sqlite3_stmt *statement, int at, struct sqlite_row *row)
{
    struct record *record = &row->record;
    if (sqlite3_column_type(statement, at) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    if (sqlite3_column_int64(statement, at) != (sqlite3_int64) record->execution) {
        log_message(LOG_ERROR, "store", "command row %lld has the response of another execution: it is not used",
                    (long long) row->row);
        return SQLITE_CORRUPT;
    }
    if (record->state == RECORD_IN_PROGRESS) {
        record->state = RECORD_COMPLETED;
        record->cause = CAUSE_NONE;
        record->tombstone = EXECUTED_YES;
        record->completed_ms = sqlite3_column_int64(statement, at + 1);
        record->expires_ms = sqlite3_column_int64(statement, at + SQLITE_RESPONSE_EXPIRES);
        record->forget_ms = sqlite3_column_int64(statement, at + 3);
        record->response_status = sqlite3_column_int(statement, at + 4);
        record->response_bytes = (uint64_t) sqlite3_column_int64(statement, at + 5);
        record->response_kept = sqlite3_column_int(statement, at + 6) != 0;
    }
    return SQLITE_OK;
}

/* Whether it can be what was recorded: a replay is that, or nothing. */
static bool response_is_whole(const struct sqlite_row *row, struct view body)
{
    const struct record *record = &row->record;
    if (record->response_status >= RESPONSE_STATUS_MIN && record->response_status <= RESPONSE_STATUS_MAX &&
        body.len == (record->response_kept ? record->response_bytes : 0)) {
        return true;
    }
    log_message(LOG_ERROR, "store",
                "command row %lld has a damaged response (status %d, bytes: %zu of %llu): it is not used",
                (long long) row->row, record->response_status, body.len, (unsigned long long) record->response_bytes);
    return false;
}

/* The statement stands on the response, or there is none. */
static int response_take(struct sqlite_store *sqlite, sqlite3_stmt *statement, bool there, struct sqlite_row *row,
                         struct stored_response **response)
{
    if (!there) {
        /* What ran before this process is unknown since its start. */
        if (row->record.state == RECORD_IN_PROGRESS && running_find(sqlite->running, row->row) != NULL) {
            return SQLITE_OK;
        }
        log_message(LOG_ERROR, "store", "command row %lld is completed and its response is not there",
                    (long long) row->row);
        return SQLITE_CORRUPT;
    }
    int code = sqlite_response_read(statement, 0, row);
    if (code == SQLITE_OK && response != NULL) {
        struct view body = sqlite_column_view(statement, SQLITE_RESPONSE_COLUMNS + 1);
        if (!response_is_whole(row, body)) {
            return SQLITE_CORRUPT;
        }
        *response = stored_response_new(&row->record, sqlite_column_view(statement, SQLITE_RESPONSE_COLUMNS), body);
    }
    return code;
}

int sqlite_response_join(struct sqlite_store *sqlite, struct sqlite_row *row, struct stored_response **response)
{
    enum record_state state = row->record.state;
    if (state != RECORD_IN_PROGRESS && (state != RECORD_COMPLETED || response == NULL)) {
        return SQLITE_OK;
    }
    sqlite3_stmt *statement = sqlite->statements[response != NULL ? SQL_RESPONSE_FIND : SQL_RESPONSE_HEAD];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    int code = sqlite3_step(statement);
    int taken = code == SQLITE_ROW || code == SQLITE_DONE
                    ? response_take(sqlite, statement, code == SQLITE_ROW, row, response)
                    : code;
    int reset = sqlite3_reset(statement);
    return reset != SQLITE_OK ? reset : taken;
}

int sqlite_response_there(struct sqlite_store *sqlite, int64_t row, bool *there)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_RESPONSE_HEAD];
    (void) sqlite3_bind_int64(statement, 1, row);
    *there = sqlite3_step(statement) == SQLITE_ROW;
    return sqlite3_reset(statement);
}

int sqlite_response_insert(struct sqlite_store *sqlite, const struct sqlite_row *row, enum record_state stored,
                           struct view fields, struct view body, bool *changed)
{
    const struct record *record = &row->record;
    sqlite3_stmt *statement = sqlite->statements[SQL_RESPONSE_INSERT];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    (void) sqlite3_bind_int64(statement, 2, record->execution);
    (void) sqlite3_bind_int64(statement, 3, record->completed_ms);
    (void) sqlite3_bind_int64(statement, 4, record->expires_ms);
    (void) sqlite3_bind_int64(statement, 5, record->forget_ms);
    (void) sqlite3_bind_int(statement, 6, record->response_status);
    (void) sqlite3_bind_int64(statement, 7, (sqlite3_int64) record->response_bytes);
    (void) sqlite3_bind_int(statement, 8, record->response_kept ? 1 : 0);
    (void) sqlite3_bind_blob64(statement, 9, fields.len > 0 ? fields.ptr : "", fields.len, SQLITE_STATIC);
    (void) sqlite3_bind_blob64(statement, 10, body.len > 0 ? body.ptr : "", body.len, SQLITE_STATIC);
    (void) sqlite3_bind_int(statement, 11, (int) stored);
    int code = sqlite_statement_run(sqlite, SQL_RESPONSE_INSERT);
    *changed = code == SQLITE_DONE && sqlite3_changes(sqlite->db) == 1;
    if (code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_ROWID) {
        return SQLITE_OK; /* that statement alone is undone */
    }
    if (*changed) {
        due_map_lower(sqlite->due, row->row, store_record_due(record));
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_response_delete(struct sqlite_store *sqlite, int64_t row)
{
    (void) sqlite3_bind_int64(sqlite->statements[SQL_RESPONSE_DELETE], 1, row);
    int code = sqlite_statement_run(sqlite, SQL_RESPONSE_DELETE);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
