/* sqlite_sweep.c - the clean-up of the SQLite store: writes down what time has done to the records that are due (docs/contract.md section 9). Owns the
 * order, which is that of their times, over blocks of rows that the map of what is due names (due_map.h). What time does is told by record_state_at.
 * One thread at a time. */
#include "server/store/sqlite_store.h"

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

/* The row on which SQL_READ_BLOCK stands. */
static int block_take_row(struct sweeping *sweeping, sqlite3_stmt *statement)
{
    int64_t row = sqlite3_column_int64(statement, 0), due_ms = sqlite3_column_int64(statement, SQLITE_ROW_DUE);
    if (sqlite3_column_int(statement, SQLITE_ROW_STATE) == RECORD_IN_PROGRESS) {
        if (sqlite3_column_type(statement, SQLITE_ROW_COLUMNS) == SQLITE_NULL) {
            return SQLITE_OK; /* it runs: never by age, and whoever writes its outcome lowers the time of its block */
        }
        due_ms = sqlite3_column_int64(statement, SQLITE_ROW_COLUMNS + SQLITE_RESPONSE_EXPIRES);
    }
    if (due_ms > sweeping->now_ms) {
        block_note(sweeping, row, due_ms);
        return SQLITE_OK;
    }
    int64_t *found_ms = &sweeping->sweep->found_due_ms;
    *found_ms = *found_ms == 0 || due_ms < *found_ms ? due_ms : *found_ms;
    struct due_row *due = &sweeping->due[sweeping->due_count++];
    memset(due, 0, sizeof *due);
    due->due_ms = due_ms;
    if (!sqlite_row_read(statement, &due->row)) {
        return SQLITE_CORRUPT;
    }
    return due->row.record.state == RECORD_IN_PROGRESS ? sqlite_response_read(statement, SQLITE_ROW_COLUMNS, &due->row)
                                                       : SQLITE_OK;
}

static int block_read(struct sweeping *sweeping, int64_t number)
{
    sqlite3_stmt *statement = sweeping->sqlite->statements[SQL_READ_BLOCK];
    int code = SQLITE_ROW, taken = SQLITE_OK;
    sweeping->blocks[sweeping->block_count++] = (struct due_block){ number, DUE_NEVER };
    (void) sqlite3_bind_int64(statement, 1, number * DUE_BLOCK_ROWS);
    (void) sqlite3_bind_int64(statement, 2, number * DUE_BLOCK_ROWS + DUE_BLOCK_ROWS - 1);
    while (taken == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        taken = block_take_row(sweeping, statement);
    }
    int reset = sqlite3_reset(statement);
    if (taken != SQLITE_OK || code != SQLITE_DONE) {
        return taken != SQLITE_OK ? taken : reset != SQLITE_OK ? reset : code;
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
    sweeping.due = memory_new((sweep->limit + 1 + DUE_BLOCK_ROWS) * sizeof *sweeping.due);
    int code = sweep_find(&sweeping);
    code = code == SQLITE_OK ? sweep_write(&sweeping) : code;
    free(sweeping.due);
    return code == SQLITE_OK ? STORE_OK : sqlite_failed(sqlite, "sweep expired records", code);
}
