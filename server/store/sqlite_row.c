/* sqlite_row.c - records as rows: reading and writing the tables commands and responses. Knows columns, no rule of a
 * record's life. Whoever reads a record by its hash or its row checks tenant and key again (docs/contract.md section
 * 3). */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"
#include "server/base/memory.h"

#include <stdio.h>
#include <string.h>

enum { FINGERPRINT_BLOB_BYTES = 1 + FINGERPRINT_BYTES + FINGERPRINT_PART_COUNT * FINGERPRINT_PART_BYTES };

void sqlite_row_hash(const struct sqlite_store *sqlite, struct view tenant, struct view key,
                     uint8_t hash[SQLITE_HASH_BYTES])
{
    digest_keyed_short(sqlite->hash_key, (const struct view[]){ tenant, key }, 2, hash);
}

/* --- reading --- */

static struct view column_view(sqlite3_stmt *statement, int column)
{
    const char *bytes = sqlite3_column_blob(statement, column);
    return view_make(bytes, (size_t) sqlite3_column_bytes(statement, column));
}

/* Exactly `len` bytes, or nothing and *there false. */
static bool column_bytes(sqlite3_stmt *statement, int column, void *out, size_t len, bool *there)
{
    struct view bytes = column_view(statement, column);
    *there = bytes.len > 0;
    if (bytes.len == len) {
        memcpy(out, bytes.ptr, len);
    }
    return bytes.len == len || bytes.len == 0;
}

/* The row on which a statement with ROW_COLUMNS stands. False: no version of this program wrote it. */
static bool row_read(sqlite3_stmt *statement, struct sqlite_row *row)
{
    struct record *record = &row->record;
    uint8_t fingerprint[FINGERPRINT_BLOB_BYTES] = { 0 };
    bool hash, id, finger;
    row->row = sqlite3_column_int64(statement, 0);
    int state = sqlite3_column_int(statement, 5);
    bool sound = column_bytes(statement, 1, row->hash, sizeof row->hash, &hash) && hash;
    sound = column_bytes(statement, 4, record->command_id, sizeof record->command_id, &id) && id && sound;
    sound = column_bytes(statement, 7, fingerprint, sizeof fingerprint, &finger) && sound;
    sound = column_bytes(statement, 8, record->credential.digest, sizeof record->credential.digest,
                         &record->credential.present) &&
            sound;
    sound = state > RECORD_ABSENT && state < RECORD_STATE_COUNT && sound;
    record->state = (enum record_state) state;
    record->execution = (uint32_t) sqlite3_column_int64(statement, 6);
    record->fingerprint.version = fingerprint[0];
    memcpy(record->fingerprint.digest, fingerprint + 1, FINGERPRINT_BYTES);
    memcpy(record->fingerprint.parts, fingerprint + 1 + FINGERPRINT_BYTES, sizeof record->fingerprint.parts);
    record->cause = (enum cause) sqlite3_column_int(statement, 9);
    record->tombstone = (enum executed) sqlite3_column_int(statement, 10);
    record->created_ms = sqlite3_column_int64(statement, 11);
    record->deadline_ms = sqlite3_column_int64(statement, 12);
    record->completed_ms = sqlite3_column_int64(statement, 13);
    record->expires_ms = sqlite3_column_int64(statement, 14);
    record->forget_ms = sqlite3_column_int64(statement, 15);
    record->response_status = sqlite3_column_int(statement, 16);
    record->response_bytes = (uint64_t) sqlite3_column_int64(statement, 17);
    record->response_kept = sqlite3_column_int(statement, 18) != 0;
    return sound;
}

/* Reads row `at` when it has row->hash; row->row is 0 otherwise. */
static int row_find_at(struct sqlite_store *sqlite, int64_t at, struct view tenant, struct view key,
                       struct sqlite_row *row)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_FIND_ROW];
    (void) sqlite3_bind_int64(statement, 1, at);
    (void) sqlite3_bind_blob(statement, 2, row->hash, sizeof row->hash, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        code = SQLITE_DONE;
        if (!row_read(statement, row)) {
            log_message(LOG_ERROR, "store", "command row %lld is damaged: it is not used", (long long) row->row);
            code = SQLITE_CORRUPT;
        } else if (!view_equal(column_view(statement, 2), tenant) || !view_equal(column_view(statement, 3), key)) {
            log_message(LOG_ERROR, "store", "command row %lld has the hash of another key: the request is refused",
                        (long long) row->row);
            code = SQLITE_CORRUPT;
        }
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

int sqlite_row_find(struct sqlite_store *sqlite, int64_t at, struct view tenant, struct view key,
                    struct sqlite_row *row)
{
    memset(row, 0, sizeof *row);
    sqlite_row_hash(sqlite, tenant, key, row->hash);
    if (at != 0) {
        return row_find_at(sqlite, at, tenant, key, row);
    }
    int code = SQLITE_OK;
    size_t cursor = 0;
    int64_t candidate;
    while (code == SQLITE_OK && row->row == 0 && (candidate = key_index_next(sqlite->keys, row->hash, &cursor)) != 0) {
        code = row_find_at(sqlite, candidate, tenant, key, row);
    }
    return code;
}

/* The id leads to its row; that row counts when the whole id stands in it and it is this tenant's. */
int sqlite_row_find_id(struct sqlite_store *sqlite, struct view tenant, const uint8_t command_id[COMMAND_ID_BYTES],
                       struct sqlite_row *row, char **key)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_FIND_ID];
    memset(row, 0, sizeof *row);
    (void) sqlite3_bind_int64(statement, 1, command_id_row(sqlite->id_key, command_id));
    (void) sqlite3_bind_blob(statement, 2, command_id, COMMAND_ID_BYTES, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        code = SQLITE_DONE;
        if (!row_read(statement, row)) {
            log_message(LOG_ERROR, "store", "command row %lld is damaged: it is not used", (long long) row->row);
            code = SQLITE_CORRUPT;
        } else if (view_equal(column_view(statement, 2), tenant)) {
            *key = memory_text(column_view(statement, 3));
        } else {
            memset(row, 0, sizeof *row);
        }
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

static bool rows_have_same_hash(void *context, int64_t a, int64_t b)
{
    struct sqlite_store *sqlite = context;
    sqlite3_stmt *statement = sqlite->statements[SQL_SAME_HASH];
    (void) sqlite3_bind_int64(statement, 1, a);
    (void) sqlite3_bind_int64(statement, 2, b);
    bool same = sqlite3_step(statement) == SQLITE_ROW;
    (void) sqlite3_reset(statement);
    return same;
}

int sqlite_row_index_all(struct sqlite_store *sqlite, const char **wrong)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_ALL_KEYS];
    int code;
    *wrong = NULL;
    sqlite->next_row = 1;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        int64_t row = sqlite3_column_int64(statement, 0);
        struct view hash = column_view(statement, 1), id = column_view(statement, 2);
        int state = sqlite3_column_int(statement, 3);
        if (hash.len != SQLITE_HASH_BYTES || id.len != COMMAND_ID_BYTES) {
            code = SQLITE_CORRUPT;
            break;
        }
        if (row < 1 || row > KEY_INDEX_ROW_MAX) {
            *wrong =
                "the number of a row is out of range (1 to 17592186044415), which no version of this program wrote";
            code = SQLITE_DONE;
            break;
        }
        key_index_add(sqlite->keys, (const uint8_t *) hash.ptr, row);
        key_index_settle(sqlite->keys);
        sqlite->next_row = row + 1;
        if (state > RECORD_ABSENT && state < RECORD_STATE_COUNT) { /* else the row is refused when it is read */
            store_note_there(&sqlite->store, (enum record_state) state);
        }
    }
    int reset = sqlite3_reset(statement);
    if (code == SQLITE_DONE && *wrong == NULL && key_index_any_twins(sqlite->keys, rows_have_same_hash, sqlite)) {
        *wrong = "two commands have the same key";
    }
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

static int row_list(sqlite3_stmt *statement, struct sqlite_row *rows, unsigned limit, unsigned *count)
{
    int code = SQLITE_DONE;
    *count = 0;
    while (*count < limit && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        memset(&rows[*count], 0, sizeof *rows);
        if (!row_read(statement, &rows[*count])) {
            log_message(LOG_ERROR, "store", "command row %lld is damaged: it is not used",
                        (long long) rows[*count].row);
            code = SQLITE_CORRUPT;
            break;
        }
        (*count)++;
        code = SQLITE_DONE;
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

int sqlite_row_list_due(struct sqlite_store *sqlite, int64_t now_ms, struct sqlite_row *rows, unsigned limit,
                        unsigned *count)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_DUE];
    (void) sqlite3_bind_int64(statement, 1, now_ms);
    (void) sqlite3_bind_int64(statement, 2, limit);
    return row_list(statement, rows, limit, count);
}

int sqlite_row_oldest_due(struct sqlite_store *sqlite, int64_t now_ms, int64_t *due_ms)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_OLDEST_DUE];
    (void) sqlite3_bind_int64(statement, 1, now_ms);
    *due_ms = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return sqlite3_reset(statement);
}

int sqlite_row_list_running(struct sqlite_store *sqlite, struct sqlite_row *rows, unsigned limit, unsigned *count)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_RUNNING];
    (void) sqlite3_bind_int64(statement, 1, limit);
    return row_list(statement, rows, limit, count);
}

int sqlite_row_request(struct sqlite_store *sqlite, const struct sqlite_row *row, char **request)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_FIND_REQUEST];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    (void) sqlite3_bind_blob(statement, 2, row->hash, sizeof row->hash, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        struct view method = column_view(statement, 0), target = column_view(statement, 1);
        size_t room = method.len + target.len + 2;
        *request = memory_new(room);
        (void) snprintf(*request, room, "%.*s %.*s", VIEW_ARGS(method), VIEW_ARGS(target));
        code = SQLITE_DONE;
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

int sqlite_row_newest_ms(struct sqlite_store *sqlite, int64_t *newest_ms)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_NEWEST];
    *newest_ms = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return sqlite3_reset(statement);
}

/* --- writing --- */

/* The columns that change in a command's life: parameters 1 to 14 of SQL_INSERT and SQL_UPDATE. `fingerprint` is
 * room that must live as long as the statement runs. */
static void row_bind(sqlite3_stmt *statement, const struct record *record, uint8_t fingerprint[FINGERPRINT_BLOB_BYTES])
{
    (void) sqlite3_bind_int(statement, 1, (int) record->state);
    (void) sqlite3_bind_int64(statement, 2, record->execution);
    if (record->fingerprint.version != 0) {
        fingerprint[0] = record->fingerprint.version;
        memcpy(fingerprint + 1, record->fingerprint.digest, FINGERPRINT_BYTES);
        memcpy(fingerprint + 1 + FINGERPRINT_BYTES, record->fingerprint.parts, sizeof record->fingerprint.parts);
        (void) sqlite3_bind_blob(statement, 3, fingerprint, FINGERPRINT_BLOB_BYTES, SQLITE_STATIC);
    } else {
        (void) sqlite3_bind_null(statement, 3);
    }
    if (record->credential.present) {
        (void) sqlite3_bind_blob(statement, 4, record->credential.digest, CREDENTIAL_BYTES, SQLITE_STATIC);
    } else {
        (void) sqlite3_bind_null(statement, 4);
    }
    (void) sqlite3_bind_int(statement, 5, (int) record->cause);
    (void) sqlite3_bind_int(statement, 6, (int) record->tombstone);
    (void) sqlite3_bind_int64(statement, 7, record->deadline_ms);
    (void) sqlite3_bind_int64(statement, 8, record->completed_ms);
    (void) sqlite3_bind_int64(statement, 9, record->expires_ms);
    (void) sqlite3_bind_int64(statement, 10, record->forget_ms);
    int64_t due_ms = store_record_due(record);
    if (due_ms != 0) {
        (void) sqlite3_bind_int64(statement, 11, due_ms);
    } else {
        (void) sqlite3_bind_null(statement, 11);
    }
    (void) sqlite3_bind_int(statement, 12, record->response_status);
    (void) sqlite3_bind_int64(statement, 13, (sqlite3_int64) record->response_bytes);
    (void) sqlite3_bind_int(statement, 14, record->response_kept ? 1 : 0);
}

static void bind_text(sqlite3_stmt *statement, int index, struct view text)
{
    (void) sqlite3_bind_text64(statement, index, text.len > 0 ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

int sqlite_row_insert(struct sqlite_store *sqlite, const struct store_claim *claim, struct sqlite_row *row)
{
    uint8_t fingerprint[FINGERPRINT_BLOB_BYTES];
    sqlite3_stmt *statement = sqlite->statements[SQL_INSERT];
    if (sqlite->next_row > KEY_INDEX_ROW_MAX) {
        log_message(LOG_ERROR, "store", "the store has used up its rows: no new command is taken");
        return SQLITE_FULL;
    }
    row->row = sqlite->next_row++;
    command_id_make(sqlite->id_key, row->row, row->record.command_id);
    row_bind(statement, &row->record, fingerprint);
    (void) sqlite3_bind_blob(statement, 15, row->hash, sizeof row->hash, SQLITE_STATIC);
    bind_text(statement, 16, claim->tenant);
    bind_text(statement, 17, claim->key);
    bind_text(statement, 18, claim->method);
    bind_text(statement, 19, claim->target);
    (void) sqlite3_bind_blob(statement, 20, row->record.command_id, COMMAND_ID_BYTES, SQLITE_STATIC);
    (void) sqlite3_bind_int64(statement, 21, row->record.created_ms);
    (void) sqlite3_bind_int64(statement, 22, row->row);
    int code = sqlite_statement_run(sqlite, SQL_INSERT);
    if (code == SQLITE_DONE) {
        key_index_add(sqlite->keys, row->hash, row->row);
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_row_update(struct sqlite_store *sqlite, const struct sqlite_row *row, uint32_t execution, bool *changed)
{
    uint8_t fingerprint[FINGERPRINT_BLOB_BYTES];
    sqlite3_stmt *statement = sqlite->statements[SQL_UPDATE];
    row_bind(statement, &row->record, fingerprint);
    (void) sqlite3_bind_int64(statement, 15, row->row);
    (void) sqlite3_bind_blob(statement, 16, row->hash, sizeof row->hash, SQLITE_STATIC);
    (void) sqlite3_bind_int64(statement, 17, execution);
    int code = sqlite_statement_run(sqlite, SQL_UPDATE);
    *changed = code == SQLITE_DONE && sqlite3_changes(sqlite->db) == 1;
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_row_delete(struct sqlite_store *sqlite, const struct sqlite_row *row)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_DELETE];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    (void) sqlite3_bind_blob(statement, 2, row->hash, sizeof row->hash, SQLITE_STATIC);
    int code = sqlite_statement_run(sqlite, SQL_DELETE);
    if (code == SQLITE_DONE) {
        (void) key_index_remove(sqlite->keys, row->hash, row->row);
    }
    return code == SQLITE_DONE ? sqlite_response_delete(sqlite, row->row) : code;
}

/* --- responses --- */

int sqlite_response_find(struct sqlite_store *sqlite, const struct sqlite_row *row, struct stored_response **response)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_RESPONSE_FIND];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *response = stored_response_new(&row->record, column_view(statement, 0), column_view(statement, 1));
    } else if (code == SQLITE_DONE) {
        log_message(LOG_ERROR, "store", "command row %lld is completed and its response is not there",
                    (long long) row->row);
        code = SQLITE_CORRUPT;
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_ROW ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

int sqlite_response_insert(struct sqlite_store *sqlite, int64_t row, struct view fields, struct view body)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_RESPONSE_INSERT];
    (void) sqlite3_bind_int64(statement, 1, row);
    (void) sqlite3_bind_blob64(statement, 2, fields.len > 0 ? fields.ptr : "", fields.len, SQLITE_STATIC);
    (void) sqlite3_bind_blob64(statement, 3, body.len > 0 ? body.ptr : "", body.len, SQLITE_STATIC);
    int code = sqlite_statement_run(sqlite, SQL_RESPONSE_INSERT);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_response_delete(struct sqlite_store *sqlite, int64_t row)
{
    (void) sqlite3_bind_int64(sqlite->statements[SQL_RESPONSE_DELETE], 1, row);
    int code = sqlite_statement_run(sqlite, SQL_RESPONSE_DELETE);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
