/* sqlite.c - the operations of the SQLite store. Owns: transactions, what an error of SQLite means.
 * Not: opening (sqlite_open.c), the log's checkpoint (sqlite_log.c), columns (sqlite_row.c, sqlite_response.c), the clean-up (sqlite_sweep.c). Every change of a record's state is made by
 * server/core/record.c or is what time has done. One thread at a time.
 *
 * What a failed COMMIT means (docs/facts.md 17): SQLITE_FULL comes only from writing to the log, whose last frame is
 * then not whole, so nothing of the transaction can come back: STORE_FULL. Any other error may have met a log that
 * is complete on the disk: STORE_UNCERTAIN. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"
#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* --- errors and transactions --- */

bool sqlite_is_full(int code)
{
    return (code & 0xFF) == SQLITE_FULL;
}

enum store_result sqlite_failed(struct sqlite_store *sqlite, const char *tried, int code)
{
    enum store_result result = sqlite_is_full(code) ? STORE_FULL : STORE_FAILED;
    bool told = result == STORE_FULL && sqlite->full_told; /* once, until there is room again */
    sqlite->full_told = sqlite->full_told || result == STORE_FULL;
    log_message(told ? LOG_DEBUG : LOG_ERROR, "store", "could not %s: %s (%d: %s); the transaction is undone", tried,
                sqlite3_errstr(code), code, sqlite3_errmsg(sqlite->db));
    return result;
}

bool sqlite_transaction_holds(const struct sqlite_store *sqlite)
{
    return sqlite3_get_autocommit(sqlite->db) == 0;
}

/* --- what is kept in memory about the rows --- */

static void sqlite_memory_settle(struct sqlite_store *sqlite)
{
    key_index_settle(sqlite->keys);
    due_map_settle(sqlite->due);
    running_settle(sqlite->running);
}

static void sqlite_memory_undo(struct sqlite_store *sqlite)
{
    key_index_undo(sqlite->keys);
    due_map_undo(sqlite->due);
    running_undo(sqlite->running);
}

static enum store_result sqlite_begin(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    /* One may be left open by a rollback that had no memory. */
    int code = sqlite_transaction_holds(sqlite) ? sqlite_statement_run(sqlite, SQL_ROLLBACK) : SQLITE_DONE;
    code = code == SQLITE_DONE ? sqlite_statement_run(sqlite, SQL_BEGIN) : code;
    if (code != SQLITE_DONE) {
        return sqlite_failed(sqlite, "begin a transaction", code);
    }
    sqlite->changes_before = sqlite3_total_changes64(sqlite->db);
    sqlite_memory_settle(sqlite);
    return STORE_OK;
}

static void sqlite_rollback(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    if (sqlite_transaction_holds(sqlite)) {
        int code = sqlite_statement_run(sqlite, SQL_ROLLBACK);
        if (code != SQLITE_DONE) {
            (void) sqlite_failed(sqlite, "roll back", code);
        }
    }
    sqlite_memory_undo(sqlite);
    /* What this transaction may have written of them is gone: the next one writes them again. */
    sqlite->time_recorded_ms = 0;
    sqlite->window_recorded_ms = 0;
    sqlite->ahead_recorded = false;
    sqlite->running_recorded = INT64_MAX;
}

/* Everything that runs stands from that row on: the lowest that runs, or the next to be claimed. */
static int sqlite_record_running(struct sqlite_store *sqlite)
{
    int64_t lowest = running_lowest(sqlite->running, sqlite->next_row);
    if (lowest == sqlite->running_recorded) {
        return SQLITE_DONE;
    }
    int code = sqlite_meta_set_number(sqlite, "oldest_running_row", lowest);
    sqlite->running_recorded = lowest;
    return code;
}

enum store_result sqlite_record_time(struct sqlite_store *sqlite, int64_t now_ms)
{
    const struct store_clock *clock = sqlite->store.clock;
    int64_t window_ms = sqlite->store.info.window_start_ms;
    int code = sqlite_meta_set_number(sqlite, "last_time_ms", now_ms);
    if (code == SQLITE_DONE) {
        code = sqlite_meta_set_number(sqlite, "last_wall_ms", clock->wall_ms(clock->context));
    }
    if (code == SQLITE_DONE && window_ms != sqlite->window_recorded_ms) {
        code = sqlite_meta_set_number(sqlite, "window_start_ms", window_ms);
    }
    if (code == SQLITE_DONE && !sqlite->ahead_recorded) {
        code = sqlite_meta_set_number(sqlite, "wall_ahead_ms", sqlite->store.wall_ahead_ms);
        if (code == SQLITE_DONE) {
            code = sqlite_meta_set_number(sqlite, "told_offset_ms", sqlite->store.told_offset_ms);
        }
    }
    if (code == SQLITE_DONE) {
        code = sqlite_record_running(sqlite);
    }
    if (code != SQLITE_DONE) {
        return sqlite_failed(sqlite, "record the store's time", code);
    }
    sqlite->time_recorded_ms = now_ms;
    sqlite->window_recorded_ms = window_ms;
    sqlite->ahead_recorded = true;
    return STORE_OK;
}

static enum store_result sqlite_commit(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    if (!sqlite_transaction_holds(sqlite)) {
        sqlite_rollback(store); /* of what is kept in memory */
        return STORE_FAILED;
    }
    bool wrote = sqlite3_total_changes64(sqlite->db) != sqlite->changes_before;
    int64_t now_ms = store_now(store);
    /* Store time once a second, beside other writes; the window at once, before what it told of is gone from the
     * table. */
    if (wrote &&
        (now_ms - sqlite->time_recorded_ms >= 1000 || store->info.window_start_ms != sqlite->window_recorded_ms)) {
        enum store_result result = sqlite_record_time(sqlite, now_ms);
        if (result != STORE_OK) {
            sqlite_rollback(store);
            return result;
        }
    }
    int code = sqlite_statement_run(sqlite, SQL_COMMIT);
    if (code == SQLITE_DONE) {
        if (wrote) {
            sqlite->full_told = false;
            sqlite->wal_commits++;
            sqlite->wal_written_ms = store->clock->monotonic_ms(store->clock->context);
        }
        if (sqlite->wal_pages > 0) { /* done at start, but where there was no room */
            (void) sqlite_place_mark(sqlite, LOCK_RUNNING);
        }
        return STORE_OK;
    }
    if (sqlite_is_full(code)) {
        enum store_result result = sqlite_failed(sqlite, "commit", code);
        sqlite_rollback(store);
        return result;
    }
    log_message(LOG_ERROR, "store",
                "commit failed: %s (%d). Whether it is on the disk only a restart can tell: nothing more is stored",
                sqlite3_errmsg(sqlite->db), code);
    sqlite_rollback(store);
    return STORE_UNCERTAIN;
}

/* --- operations on one key --- */

/* One that time has freed counts as none. */
static void sqlite_note_seen(struct sqlite_store *sqlite, const struct sqlite_row *row, int64_t now_ms,
                             struct store_found *found)
{
    if (row->row == 0) {
        return;
    }
    if (record_state_at(&row->record, now_ms) == RECORD_ABSENT) {
        store_window_close(&sqlite->store, &row->record);
        return;
    }
    found->record = row->record;
    found->row = row->row;
}

/* The row of a key as it counts now: one that time has freed reads as none (`found` without record); it is in `row`
 * all the same. */
static enum store_result sqlite_see(struct sqlite_store *sqlite, struct view tenant, struct view key, int64_t now_ms,
                                    struct sqlite_row *row, struct store_found *found,
                                    struct stored_response **response)
{
    if (!sqlite_transaction_holds(sqlite)) {
        return STORE_FAILED;
    }
    int code = sqlite_row_find(sqlite, 0, tenant, key, row, response);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "look a key up", code);
    }
    sqlite_note_seen(sqlite, row, now_ms, found);
    return STORE_OK;
}

/* The command runs from now on. What runs in an old row, after a release, must stand within what a later start looks up: that is written with it. */
static int sqlite_note_claim(struct sqlite_store *sqlite, const struct sqlite_row *row)
{
    struct running_command command = { .row = row->row, .due_ms = row->due_ms, .record = row->record };
    memcpy(command.hash, row->hash, sizeof command.hash);
    running_add(sqlite->running, &command);
    int code = row->row < sqlite->running_recorded ? sqlite_record_running(sqlite) : SQLITE_DONE;
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Over the row that was seen, or as a new row in place of one that time has freed. */
static int sqlite_put_row(struct sqlite_store *sqlite, const struct store_claim *claim, struct sqlite_row *row,
                          struct store_found *found)
{
    uint32_t execution_before = row->record.execution;
    if (found->row != 0) {
        bool changed = false;
        row->record = found->record;
        int code = sqlite_row_update(sqlite, row, execution_before, &changed);
        return code == SQLITE_OK && !changed ? SQLITE_CORRUPT : code; /* it was read in this transaction */
    }
    int code = row->row != 0 ? sqlite_row_delete(sqlite, row) : SQLITE_OK;
    row->record = found->record;
    code = code == SQLITE_OK ? sqlite_row_insert(sqlite, claim, row) : code;
    memcpy(found->record.command_id, row->record.command_id, COMMAND_ID_BYTES);
    return code;
}

/* Writes found->record, which was claimed or voided. */
static enum store_result sqlite_put(struct sqlite_store *sqlite, const struct store_claim *claim,
                                    struct sqlite_row *row, struct store_found *found)
{
    enum record_state state_before = row->record.state; /* ABSENT: there is no row */
    int64_t created_ms = found->record.created_ms;
    row->due_ms = claim->ttl_ms > INT64_MAX - created_ms ? INT64_MAX : created_ms + claim->ttl_ms;
    int code = sqlite_put_row(sqlite, claim, row, found);
    if (code == SQLITE_OK && row->record.state == RECORD_IN_PROGRESS) {
        code = sqlite_note_claim(sqlite, row);
    }
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "write a claim", code);
    }
    store_note_move(&sqlite->store, state_before, row->record.state);
    found->row = row->row;
    found->claimed = true;
    return STORE_OK;
}

static enum store_result sqlite_claim(struct store *store, const struct store_claim *claim, int64_t now_ms,
                                      struct store_found *found)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct asked asked = store_asked(claim);
    struct sqlite_row row;
    enum store_result result = sqlite_see(sqlite, claim->tenant, claim->key, now_ms, &row, found, &found->response);
    if (result != STORE_OK) {
        return result;
    }
    found->decision = decide(found->row != 0 ? &found->record : NULL, &asked, now_ms);
    if (found->decision.verdict == VERDICT_REPLAY) {
        return STORE_OK;
    }
    free(found->response);
    found->response = NULL;
    if (found->decision.verdict != VERDICT_FORWARD || !store_may_write(claim)) {
        return STORE_OK;
    }
    if (!record_claim(&found->record, claim->command_id, &claim->fingerprint, &claim->credential, claim->run_ms_max,
                      now_ms)) {
        return STORE_OK; /* its executions are used up: nobody may claim it */
    }
    return sqlite_put(sqlite, claim, &row, found);
}

/* The command that an outcome is of; `row->row` is 0 when that row is not this key's. What runs is known without a look at the disk. */
static int sqlite_find_ended(struct sqlite_store *sqlite, const struct store_finish *finish, struct sqlite_row *row)
{
    const struct running_command *command = running_find(sqlite->running, finish->row);
    if (command == NULL) {
        return sqlite_row_find(sqlite, finish->row, finish->tenant, finish->key, row, NULL);
    }
    memset(row, 0, sizeof *row);
    sqlite_row_hash(sqlite, finish->tenant, finish->key, row->hash);
    if (memcmp(row->hash, command->hash, sizeof row->hash) == 0) {
        row->row = command->row;
        row->due_ms = command->due_ms;
        row->record = command->record;
    }
    return SQLITE_OK;
}

/* What completes a command in progress is its response alone; anything else is written over the row. (A response that would be due before its row is,
 * which no setting of one route makes, would be found too late after a restart.) */
static int sqlite_write_outcome(struct sqlite_store *sqlite, const struct store_finish *finish,
                                enum record_state state_before, const struct sqlite_row *row, bool *changed)
{
    bool completed = row->record.state == RECORD_COMPLETED;
    bool alone = completed && state_before == RECORD_IN_PROGRESS && store_record_due(&row->record) >= row->due_ms;
    int code = SQLITE_OK;
    *changed = true;
    if (!alone) {
        code = sqlite_row_update(sqlite, row, finish->execution, changed);
    }
    if (code == SQLITE_OK && completed && *changed) {
        code = sqlite_response_insert(sqlite, row, alone ? RECORD_IN_PROGRESS : RECORD_COMPLETED, finish->fields,
                                      row->record.response_kept ? finish->body : VIEW(""), changed);
        code = code == SQLITE_OK && !alone && !*changed ? SQLITE_CORRUPT : code; /* an answer that nobody had given */
    }
    return code;
}

static enum store_result sqlite_finish(struct store *store, const struct store_finish *finish, int64_t now_ms,
                                       struct record *after)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    if (!sqlite_transaction_holds(sqlite)) {
        return STORE_FAILED;
    }
    int code = finish->row == 0 ? SQLITE_OK : sqlite_find_ended(sqlite, finish, &row);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "find a running command", code);
    }
    if (finish->row == 0 || row.row == 0 || record_state_at(&row.record, now_ms) == RECORD_ABSENT) {
        return STORE_STALE;
    }
    enum record_state state_before = row.record.state;
    bool changed = record_finish(&row.record, finish->execution, &finish->outcome, &finish->retention, now_ms);
    *after = row.record;
    if (!changed) {
        return STORE_STALE;
    }
    code = sqlite_write_outcome(sqlite, finish, state_before, &row, &changed);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "write an outcome", code);
    }
    running_remove(sqlite->running, row.row);
    if (!changed) {
        return STORE_STALE;
    }
    store_note_move(store, state_before, row.record.state);
    return STORE_OK;
}

/* Adds the request of the record that was found or written. */
static enum store_result sqlite_add_request(struct sqlite_store *sqlite, const struct sqlite_row *row,
                                            struct store_found *found)
{
    int code = found->row != 0 ? sqlite_row_request(sqlite, row, &found->request) : SQLITE_OK;
    return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "read what a command asked for", code);
}

static enum store_result sqlite_look_up(struct store *store, struct view tenant, struct view key, int64_t now_ms,
                                        struct store_found *found)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    enum store_result result = sqlite_see(sqlite, tenant, key, now_ms, &row, found, NULL);
    return result == STORE_OK ? sqlite_add_request(sqlite, &row, found) : result;
}

static enum store_result sqlite_look_up_id(struct store *store, struct view tenant,
                                           const uint8_t command_id[COMMAND_ID_BYTES], int64_t now_ms,
                                           struct store_found *found)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    if (!sqlite_transaction_holds(sqlite)) {
        return STORE_FAILED;
    }
    int code = sqlite_row_find_id(sqlite, tenant, command_id, &row, &found->key);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "look a command up", code);
    }
    sqlite_note_seen(sqlite, &row, now_ms, found);
    return sqlite_add_request(sqlite, &row, found);
}

static enum store_result sqlite_void_key(struct store *store, const struct store_claim *claim,
                                         const struct retention *retention, int64_t now_ms, struct store_found *found)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    enum store_result result = sqlite_see(sqlite, claim->tenant, claim->key, now_ms, &row, found, NULL);
    if (result == STORE_OK && store_may_write(claim) &&
        record_void(&found->record, claim->command_id, &claim->credential, retention, now_ms)) {
        result = sqlite_put(sqlite, claim, &row, found);
    }
    return result == STORE_OK ? sqlite_add_request(sqlite, &row, found) : result;
}

/* --- housekeeping --- */

static enum store_result sqlite_touch(struct store *store, int64_t now_ms)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    return sqlite_transaction_holds(sqlite) ? sqlite_record_time(sqlite, now_ms) : STORE_FAILED;
}

static enum store_result sqlite_idle(struct store *store)
{
    enum store_result result = sqlite_log_tend(store);
    if (result != STORE_UNCERTAIN) {
        sqlite_room_tend(sqlite_store_of(store), store->clock->monotonic_ms(store->clock->context));
    }
    return result;
}

void sqlite_store_free(struct sqlite_store *sqlite)
{
    for (int i = 0; i < SQL_STATEMENT_COUNT; i++) {
        (void) sqlite3_finalize(sqlite->statements[i]);
    }
    if (sqlite->db != NULL && sqlite3_close(sqlite->db) != SQLITE_OK) {
        log_message(LOG_ERROR, "store", "could not close the database: %s", sqlite3_errmsg(sqlite->db));
    }
    lock_file_release(&sqlite->lock);
    key_index_free(sqlite->keys);
    due_map_free(sqlite->due);
    running_free(sqlite->running);
    reserve_close(&sqlite->reserve);
    sqlite_place_free(sqlite);
    free(sqlite);
}

static void sqlite_close(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    bool home = false;
    if (!store->down) {
        enum store_result result = sqlite_begin(store);
        if (result == STORE_OK) {
            result = sqlite_record_time(sqlite, store_now(store));
            result = result == STORE_OK ? sqlite_commit(store) : result;
        }
        if (result != STORE_OK) {
            sqlite_rollback(store);
        }
        home = result != STORE_UNCERTAIN && sqlite_log_bring_home(sqlite);
    }
    if (!home) {
        /* The truth is in the log: closing must not touch it. */
        (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    sqlite_store_free(sqlite);
}

const struct store_class sqlite_class = {
    .name = "sqlite",
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .claim = sqlite_claim,
    .finish = sqlite_finish,
    .look_up = sqlite_look_up,
    .look_up_id = sqlite_look_up_id,
    .void_key = sqlite_void_key,
    .sweep = sqlite_sweep,
    .touch = sqlite_touch,
    .idle = sqlite_idle,
    .takes_claims = sqlite_room_takes_claims,
    .make_room = sqlite_room_make,
    .close = sqlite_close,
};
