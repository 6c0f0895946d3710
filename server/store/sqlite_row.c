/* sqlite_row.c - records as rows: reading and writing the table commands. Knows columns, no rule of a record's life. Whoever
 * reads a record by its hash or its row checks tenant and key again (docs/contract.md section 3). Not: what a response
 * adds to a record (sqlite_response.c), the scan of a start (sqlite_scan.c). */
#include "server/store/sqlite_store.h"

#include "schema/limits.h"
#include "server/base/log.h"
#include "server/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINGERPRINT_BLOB_BYTES = 1 + FINGERPRINT_BYTES + FINGERPRINT_PART_COUNT * FINGERPRINT_PART_BYTES };

void sqlite_row_hash(const struct sqlite_store *sqlite, struct view tenant, struct view key,
                     uint8_t hash[SQLITE_HASH_BYTES])
{
    digest_keyed_short(sqlite->hash_key, (const struct view[]){ tenant, key }, 2, hash);
}

/* --- reading --- */

struct view sqlite_column_view(sqlite3_stmt *statement, int column)
{
    const char *bytes = sqlite3_column_blob(statement, column);
    return view_make(bytes, (size_t) sqlite3_column_bytes(statement, column));
}

/* Exactly `len` bytes, or nothing and *there false. */
static bool column_bytes(sqlite3_stmt *statement, int column, void *out, size_t len, bool *there)
{
    struct view bytes = sqlite_column_view(statement, column);
    *there = bytes.len > 0;
    if (bytes.len == len) {
        memcpy(out, bytes.ptr, len);
    }
    return bytes.len == len || bytes.len == 0;
}

/* Reads the blobs of the row. False: one of them has a length that no version of this program wrote. */
static bool row_read_bytes(sqlite3_stmt *statement, struct sqlite_row *row)
{
    struct record *record = &row->record;
    uint8_t fingerprint[FINGERPRINT_BLOB_BYTES] = { 0 };
    bool hash, id, finger;
    bool sound = column_bytes(statement, 1, row->hash, sizeof row->hash, &hash) && hash;
    sound = column_bytes(statement, 2, record->command_id, sizeof record->command_id, &id) && id && sound;
    sound = column_bytes(statement, 16, fingerprint, sizeof fingerprint, &finger) && sound;
    sound = column_bytes(statement, 17, record->credential.digest, sizeof record->credential.digest,
                         &record->credential.present) &&
            sound;
    record->fingerprint.version = fingerprint[0];
    memcpy(record->fingerprint.digest, fingerprint + 1, FINGERPRINT_BYTES);
    memcpy(record->fingerprint.parts, fingerprint + 1 + FINGERPRINT_BYTES, sizeof record->fingerprint.parts);
    return sound;
}

bool sqlite_row_take(sqlite3_stmt *statement, struct sqlite_row *row)
{
    struct record *record = &row->record;
    int state = sqlite3_column_int(statement, SQLITE_ROW_STATE);
    row->row = sqlite3_column_int64(statement, 0);
    row->due_ms = sqlite3_column_int64(statement, SQLITE_ROW_DUE);
    record->state = (enum record_state) state;
    record->execution = (uint32_t) sqlite3_column_int64(statement, 5);
    record->cause = (enum cause) sqlite3_column_int(statement, 6);
    record->tombstone = (enum executed) sqlite3_column_int(statement, 7);
    record->created_ms = sqlite3_column_int64(statement, 8);
    record->deadline_ms = sqlite3_column_int64(statement, 9);
    record->completed_ms = sqlite3_column_int64(statement, 10);
    record->expires_ms = sqlite3_column_int64(statement, 11);
    record->forget_ms = sqlite3_column_int64(statement, 12);
    record->response_status = sqlite3_column_int(statement, 13);
    record->response_bytes = (uint64_t) sqlite3_column_int64(statement, 14);
    record->response_kept = sqlite3_column_int(statement, 15) != 0;
    return row_read_bytes(statement, row) && state > RECORD_ABSENT && state < RECORD_STATE_COUNT;
}

bool sqlite_row_read(sqlite3_stmt *statement, struct sqlite_row *row)
{
    bool sound = sqlite_row_take(statement, row);
    if (!sound) {
        log_message(LOG_ERROR, "store", "command row %lld is damaged: it is not used", (long long) row->row);
    }
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
        if (!sqlite_row_read(statement, row)) {
            code = SQLITE_CORRUPT;
        } else if (!view_equal(sqlite_column_view(statement, 18), tenant) ||
                   !view_equal(sqlite_column_view(statement, 19), key)) {
            log_message(LOG_ERROR, "store", "command row %lld has the hash of another key: the request is refused",
                        (long long) row->row);
            code = SQLITE_CORRUPT;
        }
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

int sqlite_row_find(struct sqlite_store *sqlite, int64_t at, struct view tenant, struct view key,
                    struct sqlite_row *row, struct stored_response **response)
{
    int code = SQLITE_OK;
    size_t cursor = 0;
    int64_t candidate;
    memset(row, 0, sizeof *row);
    sqlite_row_hash(sqlite, tenant, key, row->hash);
    if (at != 0) {
        code = row_find_at(sqlite, at, tenant, key, row);
    }
    while (at == 0 && code == SQLITE_OK && row->row == 0 &&
           (candidate = key_index_next(sqlite->keys, row->hash, &cursor)) != 0) {
        code = row_find_at(sqlite, candidate, tenant, key, row);
    }
    return code == SQLITE_OK && row->row != 0 ? sqlite_response_join(sqlite, row, response) : code;
}

/* Whether tenant and key are those that the row was made for. */
static bool row_is_of(const struct sqlite_store *sqlite, const struct sqlite_row *row, struct view tenant,
                      struct view key)
{
    uint8_t hash[SQLITE_HASH_BYTES];
    if (key.len > LIMIT_KEY_BYTES) {
        return false;
    }
    sqlite_row_hash(sqlite, tenant, key, hash);
    return memcmp(hash, row->hash, sizeof hash) == 0;
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
        if (!sqlite_row_read(statement, row)) {
            code = SQLITE_CORRUPT;
        } else if (!view_equal(sqlite_column_view(statement, 18), tenant)) {
            memset(row, 0, sizeof *row);
        } else if (!row_is_of(sqlite, row, tenant, sqlite_column_view(statement, 19))) {
            log_message(LOG_ERROR, "store", "command row %lld has another key than its own: it is not used",
                        (long long) row->row);
            code = SQLITE_CORRUPT;
        } else {
            *key = memory_text(sqlite_column_view(statement, 19));
        }
    }
    int reset = sqlite3_reset(statement);
    code = code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
    code = code == SQLITE_OK && row->row != 0 ? sqlite_response_join(sqlite, row, NULL) : code;
    if (code != SQLITE_OK) {
        free(*key);
        *key = NULL;
    }
    return code;
}

int sqlite_row_request(struct sqlite_store *sqlite, const struct sqlite_row *row, char **request)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_FIND_REQUEST];
    (void) sqlite3_bind_int64(statement, 1, row->row);
    (void) sqlite3_bind_blob(statement, 2, row->hash, sizeof row->hash, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        struct view method = sqlite_column_view(statement, 0), target = sqlite_column_view(statement, 1);
        size_t room = method.len + target.len + 2;
        *request = memory_new(room);
        (void) snprintf(*request, room, "%.*s %.*s", VIEW_ARGS(method), VIEW_ARGS(target));
        code = SQLITE_DONE;
    }
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : code;
}

/* --- writing --- */

/* The columns that change in a command's life: parameters 1 to 14 of SQL_INSERT and SQL_UPDATE. `fingerprint` is
 * room that must live as long as the statement runs. */
static void row_bind(sqlite3_stmt *statement, const struct sqlite_row *row, uint8_t fingerprint[FINGERPRINT_BLOB_BYTES])
{
    const struct record *record = &row->record;
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
    bool runs = record->state == RECORD_IN_PROGRESS;
    (void) sqlite3_bind_int64(statement, 11, runs ? row->due_ms : store_record_due(record));
    (void) sqlite3_bind_int(statement, 12, record->response_status);
    (void) sqlite3_bind_int64(statement, 13, (sqlite3_int64) record->response_bytes);
    (void) sqlite3_bind_int(statement, 14, record->response_kept ? 1 : 0);
}

static void bind_text(sqlite3_stmt *statement, int index, struct view text)
{
    (void) sqlite3_bind_text64(statement, index, text.len > 0 ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* What runs is due once it has an outcome, which is written here too, or by sqlite_response_insert. */
static void row_note_due(struct sqlite_store *sqlite, const struct sqlite_row *row)
{
    if (row->record.state != RECORD_IN_PROGRESS) {
        due_map_lower(sqlite->due, row->row, store_record_due(&row->record));
    }
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
    row_bind(statement, row, fingerprint);
    (void) sqlite3_bind_int64(statement, 15, row->row);
    (void) sqlite3_bind_blob(statement, 16, row->hash, sizeof row->hash, SQLITE_STATIC);
    bind_text(statement, 17, claim->tenant);
    bind_text(statement, 18, claim->key);
    bind_text(statement, 19, claim->method);
    bind_text(statement, 20, claim->target);
    (void) sqlite3_bind_blob(statement, 21, row->record.command_id, COMMAND_ID_BYTES, SQLITE_STATIC);
    (void) sqlite3_bind_int64(statement, 22, row->record.created_ms);
    int code = sqlite_statement_run(sqlite, SQL_INSERT);
    if (code == SQLITE_DONE) {
        key_index_add(sqlite->keys, row->hash, row->row);
        row_note_due(sqlite, row);
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_row_update(struct sqlite_store *sqlite, const struct sqlite_row *row, uint32_t execution, bool *changed)
{
    uint8_t fingerprint[FINGERPRINT_BLOB_BYTES];
    sqlite3_stmt *statement = sqlite->statements[SQL_UPDATE];
    row_bind(statement, row, fingerprint);
    (void) sqlite3_bind_int64(statement, 15, row->row);
    (void) sqlite3_bind_blob(statement, 16, row->hash, sizeof row->hash, SQLITE_STATIC);
    (void) sqlite3_bind_int64(statement, 17, execution);
    int code = sqlite_statement_run(sqlite, SQL_UPDATE);
    *changed = code == SQLITE_DONE && sqlite3_changes(sqlite->db) == 1;
    if (*changed) {
        row_note_due(sqlite, row);
    }
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
