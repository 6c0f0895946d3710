/* sqlite_sweep.c - the clean-up of the SQLite store: writes down what time has done to the records that are due (docs/contract.md section 9). Owns the
 * order, which is that of their times, over blocks of rows that the map of what is due names (due_map.h). What time does is told by record_state_at.
 * One thread at a time.
 *
 * A row that is damaged is told once, and stepped over: it stays as it is, its key stays taken, and its block is not read for its sake again before the
 * next start. So is a whole block where the file is damaged, but for the one sweep that met it, which is undone. Else one of them would keep everything
 * else from being cleaned up for ever. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"
#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 32 /* that one sweep reads: 8,192 rows, some milliseconds */ };

struct due_row {
    int64_t due_ms;
    struct sqlite_row row;
};

struct sweeping {
    struct sqlite_store *sqlite;
    struct store_sweep *sweep;
    int64_t now_ms;
    struct due_block
        blocks[BLOCKS_MAX]; /* that were read; their times: of the rows that this sweep leaves as they are */
    unsigned block_count;
    int64_t unread_ms;   /* time of the first whose time has come and that was not read; 0: none */
    struct due_row *due; /* the oldest that were found, up to one over the limit; room for a block more */
    unsigned due_count;
};

static int due_row_compare(const void *a, const void *b)
{
    const struct due_row *left = a, *right = b;
    if (left->due_ms != right->due_ms) {
        return left->due_ms < right->due_ms ? -1 : 1;
    }
    return (left->row.row > right->row.row) - (left->row.row < right->row.row);
}

/* A row of this number will be due then, and is not before. */
static void block_note(struct sweeping *sweeping, int64_t row, int64_t due_ms)
{
    for (unsigned i = 0; i < sweeping->block_count; i++) {
        struct due_block *block = &sweeping->blocks[i];
        if (block->number == due_map_block_of(row)) {
            block->due_ms = due_ms < block->due_ms ? due_ms : block->due_ms;
        }
    }
}

/* --- damage --- */

static bool damage_is_among(const int64_t *items, unsigned count, int64_t item)
{
    for (unsigned i = 0; i < count && i < SQLITE_DAMAGE_TOLD; i++) {
        if (items[i] == item) {
            return true;
        }
    }
    return false;
}

/* The rest of each sentence. */
static const char damage_end[] =
    "stays as it is, and the keys in it stay taken; the rest is cleaned up. nonbisd --check-store "
    "tells of all damage, once this server is stopped";

/* Once for each row, and once for all that there is no room for. */
static void damage_step_over(struct sqlite_store *sqlite, int64_t row, const char *why)
{
    unsigned *count = &sqlite->damaged_row_count;
    if (*count > SQLITE_DAMAGE_TOLD || damage_is_among(sqlite->damaged_rows, *count, row)) {
        return;
    }
    if (*count < SQLITE_DAMAGE_TOLD) {
        sqlite->damaged_rows[*count] = row;
        log_message(LOG_ERROR, "sweep", "command row %lld of %s is due and cannot be cleaned up: %s. It %s",
                    (long long) row, sqlite->path, why, damage_end);
    } else {
        log_message(LOG_ERROR, "sweep",
                    "more damaged rows are met in %s and stepped over: they are not told one by one", sqlite->path);
    }
    (*count)++;
}

/* The file could not give or take a row. SQLite writes nothing more in this transaction (docs/facts.md 68): it is undone, and the next sweep leaves the
 * block alone. One for which there is no room is met again. */
static void damage_leave_block(struct sqlite_store *sqlite, int64_t number, int code)
{
    if ((code & 0xFF) != SQLITE_CORRUPT || sqlite->damaged_block_count == SQLITE_DAMAGE_TOLD) {
        return;
    }
    int64_t first = number * DUE_BLOCK_ROWS;
    sqlite->damaged_blocks[sqlite->damaged_block_count++] = number;
    log_message(
        LOG_ERROR, "sweep",
        "command rows %lld to %lld of %s cannot be cleaned up: %s (%d). From the next sweep on what lies there %s",
        (long long) first, (long long) first + DUE_BLOCK_ROWS - 1, sqlite->path, sqlite3_errstr(code), code,
        damage_end);
}

/* --- finding --- */

/* As a whole record; NULL, or why it cannot be. */
static const char *due_row_read(sqlite3_stmt *statement, struct sqlite_row *row, int64_t now_ms)
{
    if (!sqlite_row_take(statement, row)) {
        return "no version of this program wrote it";
    }
    if (row->record.state != RECORD_IN_PROGRESS) {
        bool due = record_state_at(&row->record, now_ms) != row->record.state;
        return due ? NULL : "its own times say that it is not due";
    }
    if (sqlite3_column_int64(statement, SQLITE_ROW_COLUMNS) != (sqlite3_int64) row->record.execution) {
        return "its response is that of another execution";
    }
    (void) sqlite_response_read(statement, SQLITE_ROW_COLUMNS, row); /* it refuses nothing else */
    return NULL;
}

/* The row on which SQL_READ_BLOCK stands. */
static void block_take_row(struct sweeping *sweeping, sqlite3_stmt *statement)
{
    int64_t row = sqlite3_column_int64(statement, 0), due_ms = sqlite3_column_int64(statement, SQLITE_ROW_DUE);
    if (sqlite3_column_int(statement, SQLITE_ROW_STATE) == RECORD_IN_PROGRESS) {
        if (sqlite3_column_type(statement, SQLITE_ROW_COLUMNS) == SQLITE_NULL) {
            return; /* it runs: never by age, and whoever writes its outcome lowers the time of its block */
        }
        due_ms = sqlite3_column_int64(statement, SQLITE_ROW_COLUMNS + SQLITE_RESPONSE_EXPIRES);
    }
    if (due_ms > sweeping->now_ms) {
        block_note(sweeping, row, due_ms);
        return;
    }
    struct due_row *due = &sweeping->due[sweeping->due_count];
    memset(due, 0, sizeof *due);
    due->due_ms = due_ms;
    const char *why = due_row_read(statement, &due->row, sweeping->now_ms);
    if (why != NULL) {
        damage_step_over(sweeping->sqlite, row, why);
        return;
    }
    int64_t *found_ms = &sweeping->sweep->found_due_ms;
    *found_ms = *found_ms == 0 || due_ms < *found_ms ? due_ms : *found_ms;
    sweeping->due_count++;
}

static int block_read(struct sweeping *sweeping, int64_t number)
{
    sqlite3_stmt *statement = sweeping->sqlite->statements[SQL_READ_BLOCK];
    int code = SQLITE_ROW;
    sweeping->blocks[sweeping->block_count++] = (struct due_block){ number, DUE_NEVER };
    if (damage_is_among(sweeping->sqlite->damaged_blocks, sweeping->sqlite->damaged_block_count, number)) {
        return SQLITE_OK;
    }
    (void) sqlite3_bind_int64(statement, 1, number * DUE_BLOCK_ROWS);
    (void) sqlite3_bind_int64(statement, 2, number * DUE_BLOCK_ROWS + DUE_BLOCK_ROWS - 1);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        block_take_row(sweeping, statement);
    }
    int reset = sqlite3_reset(statement);
    if (code != SQLITE_DONE) {
        damage_leave_block(sweeping->sqlite, number, code);
        return reset != SQLITE_OK ? reset : code;
    }
    qsort(sweeping->due, sweeping->due_count, sizeof *sweeping->due, due_row_compare);
    while (sweeping->due_count > sweeping->sweep->limit + 1) {
        const struct due_row *left = &sweeping->due[--sweeping->due_count];
        block_note(sweeping, left->row.row, left->due_ms);
    }
    return SQLITE_OK;
}

/* Reads blocks in the order of their times until no other block can hold anything older than what was found. */
static int sweep_find(struct sweeping *sweeping)
{
    struct due_block block = DUE_BLOCK_BEFORE_ALL;
    int code = SQLITE_OK;
    while (code == SQLITE_OK && due_map_next(sweeping->sqlite->due, &block) && block.due_ms <= sweeping->now_ms) {
        bool enough = sweeping->due_count > sweeping->sweep->limit;
        if (enough && block.due_ms > sweeping->due[sweeping->due_count - 1].due_ms) {
            break;
        }
        if (sweeping->block_count == BLOCKS_MAX) {
            sweeping->unread_ms = block.due_ms;
            break;
        }
        code = block_read(sweeping, block.number);
    }
    return code;
}

/* Writes down what time has done to one row. */
static int sweep_age(struct sweeping *sweeping, struct sqlite_row *row)
{
    struct sqlite_store *sqlite = sweeping->sqlite;
    enum record_state state_before = row->record.state;
    row->record.state = record_state_at(&row->record, sweeping->now_ms);
    store_note_move(&sqlite->store, state_before, row->record.state);
    if (row->record.state == RECORD_ABSENT) {
        store_window_close(&sqlite->store, &row->record);
        sweeping->sweep->forgotten++;
        return sqlite_row_delete(sqlite, row);
    }
    bool changed;
    int code = sqlite_row_update(sqlite, row, row->record.execution, &changed);
    sweeping->sweep->expired++;
    block_note(sweeping, row->row, store_record_due(&row->record));
    return code == SQLITE_OK ? sqlite_response_delete(sqlite, row->row) : code;
}

static int sweep_write(struct sweeping *sweeping)
{
    struct store_sweep *sweep = sweeping->sweep;
    unsigned count = sweeping->due_count < sweep->limit ? sweeping->due_count : sweep->limit;
    int code = SQLITE_OK;
    for (unsigned i = 0; i < count && code == SQLITE_OK; i++) {
        code = sweep_age(sweeping, &sweeping->due[i].row);
        damage_leave_block(sweeping->sqlite, due_map_block_of(sweeping->due[i].row.row), code);
    }
    if (sweeping->due_count > count) {
        const struct due_row *left = &sweeping->due[count];
        sweep->left_due_ms = left->due_ms;
        block_note(sweeping, left->row.row, left->due_ms);
    }
    if (sweeping->unread_ms != 0 && (sweep->left_due_ms == 0 || sweeping->unread_ms < sweep->left_due_ms)) {
        sweep->left_due_ms = sweeping->unread_ms;
    }
    sweep->more = count >= sweep->limit || sweeping->unread_ms != 0;
    for (unsigned i = 0; i < sweeping->block_count && code == SQLITE_OK; i++) {
        due_map_raise(sweeping->sqlite->due, sweeping->blocks[i].number, sweeping->blocks[i].due_ms);
    }
    return code;
}

enum store_result sqlite_sweep(struct store *store, struct store_sweep *sweep, int64_t now_ms)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct sweeping sweeping = { .sqlite = sqlite, .sweep = sweep, .now_ms = now_ms };
    if (!sqlite_transaction_holds(sqlite)) {
        return STORE_FAILED;
    }
    if (sqlite_room_is_for_outcomes(sqlite)) { /* it goes on once the log was copied */
        struct due_block first = DUE_BLOCK_BEFORE_ALL;
        bool behind = due_map_next(sqlite->due, &first) && first.due_ms <= now_ms;
        sweep->left_due_ms = behind ? first.due_ms : 0;
        return STORE_OK;
    }
    sweeping.due = memory_new((sweep->limit + 1 + DUE_BLOCK_ROWS) * sizeof *sweeping.due);
    int code = sweep_find(&sweeping);
    code = code == SQLITE_OK ? sweep_write(&sweeping) : code;
    free(sweeping.due);
    return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "sweep expired records", code);
}
