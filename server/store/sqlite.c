/* sqlite.c - the operations of the SQLite store. Owns: transactions, what an error of SQLite means, the log's
 * checkpoint. Not: opening (sqlite_open.c), columns (sqlite_row.c). Every change of a record's state is made by
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

enum {
    CHECKPOINT_PAGES = 4000,         /* 16 MiB of log: measured best between stalls and growth */
    CHECKPOINT_QUIET_MS = 2000,      /* a log at rest is brought home after this */
    CHECKPOINT_FULL_AGAIN_MS = 10000 /* between tries on a full disk */
};

/* --- errors and transactions --- */

static bool sqlite_is_full(int code)
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

/* After FULL, IOERR or NOMEM SQLite may have undone the whole transaction by itself; whatever ran then would commit
 * alone. */
static bool sqlite_transaction_lost(struct sqlite_store *sqlite)
{
    return sqlite3_get_autocommit(sqlite->db) != 0;
}

static enum store_result sqlite_begin(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    int code = sqlite_statement_run(sqlite, SQL_BEGIN);
    if (code != SQLITE_DONE) {
        return sqlite_failed(sqlite, "begin a transaction", code);
    }
    sqlite->changes_before = sqlite3_total_changes64(sqlite->db);
    key_index_settle(sqlite->keys);
    return STORE_OK;
}

static void sqlite_rollback(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    if (!sqlite_transaction_lost(sqlite)) {
        int code = sqlite_statement_run(sqlite, SQL_ROLLBACK);
        if (code != SQLITE_DONE) {
            (void) sqlite_failed(sqlite, "roll back", code);
        }
    }
    key_index_undo(sqlite->keys);
    /* What this transaction may have written of them is gone: the next one writes them again. */
    sqlite->time_recorded_ms = 0;
    sqlite->window_recorded_ms = 0;
    sqlite->ahead_recorded = false;
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
    if (sqlite_transaction_lost(sqlite)) {
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
                                    struct sqlite_row *row, struct store_found *found)
{
    if (sqlite_transaction_lost(sqlite)) {
        return STORE_FAILED;
    }
    int code = sqlite_row_find(sqlite, 0, tenant, key, row);
    if (code != SQLITE_OK) {
        return sqlite_failed(sqlite, "look a key up", code);
    }
    sqlite_note_seen(sqlite, row, now_ms, found);
    return STORE_OK;
}

/* Writes found->record, which was claimed or voided: over the row that was seen, or as a new row in place of one
 * that time has freed. */
static enum store_result sqlite_put(struct sqlite_store *sqlite, const struct store_claim *claim,
                                    struct sqlite_row *row, struct store_found *found)
{
    uint32_t execution_before = row->record.execution;
    enum record_state state_before = row->record.state; /* ABSENT: there is no row */
    int code;
    if (found->row != 0) {
        bool changed = false;
        row->record = found->record;
        code = sqlite_row_update(sqlite, row, execution_before, &changed);
        if (code == SQLITE_OK && !changed) {
            code = SQLITE_CORRUPT; /* it was read in this transaction */
        }
    } else {
        code = row->row != 0 ? sqlite_row_delete(sqlite, row) : SQLITE_OK;
        row->record = found->record;
        if (code == SQLITE_OK) {
            code = sqlite_row_insert(sqlite, claim, row);
            memcpy(found->record.command_id, row->record.command_id, COMMAND_ID_BYTES);
        }
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
    enum store_result result = sqlite_see(sqlite, claim->tenant, claim->key, now_ms, &row, found);
    if (result != STORE_OK) {
        return result;
    }
    found->decision = decide(found->row != 0 ? &found->record : NULL, &asked, now_ms);
    if (found->decision.verdict == VERDICT_REPLAY) {
        int code = sqlite_response_find(sqlite, &row, &found->response);
        return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "read a response", code);
    }
    if (found->decision.verdict != VERDICT_FORWARD || !store_may_write(claim)) {
        return STORE_OK;
    }
    if (!record_claim(&found->record, claim->command_id, &claim->fingerprint, &claim->credential, claim->run_ms_max,
                      now_ms)) {
        return STORE_FAILED;
    }
    return sqlite_put(sqlite, claim, &row, found);
}

static enum store_result sqlite_finish(struct store *store, const struct store_finish *finish, int64_t now_ms,
                                       struct record *after)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    if (sqlite_transaction_lost(sqlite)) {
        return STORE_FAILED;
    }
    int code = finish->row == 0 ? SQLITE_OK : sqlite_row_find(sqlite, finish->row, finish->tenant, finish->key, &row);
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
    code = sqlite_row_update(sqlite, &row, finish->execution, &changed);
    if (code == SQLITE_OK && !changed) {
        return STORE_STALE;
    }
    store_note_move(store, state_before, row.record.state);
    if (code == SQLITE_OK && row.record.state == RECORD_COMPLETED) {
        code =
            sqlite_response_insert(sqlite, row.row, finish->fields, row.record.response_kept ? finish->body : VIEW(""));
    }
    return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "write an outcome", code);
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
    enum store_result result = sqlite_see(sqlite, tenant, key, now_ms, &row, found);
    return result == STORE_OK ? sqlite_add_request(sqlite, &row, found) : result;
}

static enum store_result sqlite_look_up_id(struct store *store, struct view tenant,
                                           const uint8_t command_id[COMMAND_ID_BYTES], int64_t now_ms,
                                           struct store_found *found)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sqlite_row row;
    if (sqlite_transaction_lost(sqlite)) {
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
    enum store_result result = sqlite_see(sqlite, claim->tenant, claim->key, now_ms, &row, found);
    if (result == STORE_OK && store_may_write(claim) &&
        record_void(&found->record, claim->command_id, &claim->credential, retention, now_ms)) {
        result = sqlite_put(sqlite, claim, &row, found);
    }
    return result == STORE_OK ? sqlite_add_request(sqlite, &row, found) : result;
}

/* --- housekeeping --- */

/* Writes down what time has done to one row. */
static int sqlite_age(struct sqlite_store *sqlite, struct sqlite_row *row, int64_t now_ms, struct store_sweep *sweep)
{
    enum record_state state_before = row->record.state;
    row->record.state = record_state_at(&row->record, now_ms);
    store_note_move(&sqlite->store, state_before, row->record.state);
    if (row->record.state == RECORD_ABSENT) {
        store_window_close(&sqlite->store, &row->record);
        sweep->forgotten++;
        return sqlite_row_delete(sqlite, row);
    }
    bool changed;
    int code = sqlite_row_update(sqlite, row, row->record.execution, &changed);
    sweep->expired++;
    return code == SQLITE_OK ? sqlite_response_delete(sqlite, row->row) : code;
}

static enum store_result sqlite_sweep(struct store *store, struct store_sweep *sweep, int64_t now_ms)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    unsigned count = 0;
    if (sqlite_transaction_lost(sqlite)) {
        return STORE_FAILED;
    }
    struct sqlite_row *rows = memory_new((sweep->limit + 1) * sizeof *rows);
    int code = sqlite_row_oldest_due(sqlite, now_ms, &sweep->found_due_ms); /* first: known whatever fails then */
    if (code == SQLITE_OK && sweep->found_due_ms != 0) {
        code = sqlite_row_list_due(sqlite, now_ms, rows, sweep->limit, &count);
    }
    for (unsigned i = 0; i < count && code == SQLITE_OK; i++) {
        code = sqlite_age(sqlite, &rows[i], now_ms, sweep);
    }
    free(rows);
    sweep->more = count >= sweep->limit;
    if (code == SQLITE_OK && sweep->more) {
        code = sqlite_row_oldest_due(sqlite, now_ms, &sweep->left_due_ms);
    }
    return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "sweep expired records", code);
}

static enum store_result sqlite_touch(struct store *store, int64_t now_ms)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    return sqlite_transaction_lost(sqlite) ? STORE_FAILED : sqlite_record_time(sqlite, now_ms);
}

/* Copies the log into the database, from this thread only: with one connection nothing is in the way, so the next
 * commit starts the log from its beginning again (docs/facts.md 16, 21b). */
static enum store_result sqlite_idle(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    int64_t monotonic_ms = store->clock->monotonic_ms(store->clock->context);
    if (!sqlite_place_holds(sqlite, monotonic_ms)) {
        return STORE_UNCERTAIN;
    }
    bool due = sqlite->wal_pages >= CHECKPOINT_PAGES ||
               (sqlite->wal_pages > 0 && monotonic_ms - sqlite->wal_written_ms >= CHECKPOINT_QUIET_MS);
    if (!due || monotonic_ms < sqlite->checkpoint_again_ms) {
        return STORE_OK;
    }
    int in_log = -1, copied = -1;
    int code = sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
    if (code == SQLITE_OK && in_log == copied) {
        sqlite->wal_pages = 0;
        return STORE_OK;
    }
    if (code == SQLITE_OK || sqlite_is_full(code)) {
        sqlite->checkpoint_again_ms = monotonic_ms + CHECKPOINT_FULL_AGAIN_MS;
        log_message(LOG_ERROR, "store",
                    "the checkpoint copied %d of %d pages: %s; nothing is lost, the log grows, the next try is in %d s",
                    copied, in_log, sqlite3_errstr(code), CHECKPOINT_FULL_AGAIN_MS / 1000);
        return code == SQLITE_OK ? STORE_OK : STORE_FULL;
    }
    log_message(LOG_ERROR, "store", "the checkpoint failed: %s (%d); nothing more is stored, a restart reads the log",
                sqlite3_errmsg(sqlite->db), code);
    return STORE_UNCERTAIN;
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
    sqlite_place_free(sqlite);
    free(sqlite);
}

/* Empties the log into the database. The lock file says `closing` before: a process killed between the two leaves an
 * empty log, and nothing is lost by it. False: the log is still needed, and must stay. */
static bool sqlite_bring_home(struct sqlite_store *sqlite)
{
    if (sqlite->lock.state == LOCK_RUNNING && !sqlite_place_mark(sqlite, LOCK_CLOSING)) {
        return false;
    }
    int code = sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (code == SQLITE_OK) {
        (void) sqlite_place_mark(sqlite, LOCK_STOPPED);
        return true;
    }
    log_message(LOG_ERROR, "store", "the last checkpoint failed: %s; the next start reads the log",
                sqlite3_errmsg(sqlite->db));
    (void) sqlite_place_mark(sqlite, LOCK_RUNNING);
    return false;
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
        home = result != STORE_UNCERTAIN && sqlite_bring_home(sqlite);
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
    .close = sqlite_close,
};
