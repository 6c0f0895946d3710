/* sqlite_scan.c - what a start reads of every row: fills what the store keeps in memory about its rows. One walk over the table commands in its order,
 * which is that of the file; of the table responses only what may say whether one of the newest commands still ran. Used at start, before there are
 * threads. */
#include "server/store/sqlite_store.h"

#include "server/base/memory.h"

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

static void scan_note_running(struct sqlite_scan *scan, int64_t row)
{
    if (scan->count == scan->room) {
        scan->room = scan->room == 0 ? 64 : scan->room * 2;
        scan->running = memory_resize(scan->running, scan->room * sizeof *scan->running);
    }
    scan->running[scan->count++] = row;
}

/* What counts of a row that stands as in progress. A response of another execution is damage, which whoever reads the record will meet. */
static int scan_in_progress(struct sqlite_store *sqlite, struct sqlite_scan *scan, int64_t row, int *state)
{
    bool there = row < sqlite->running_recorded;
    int code = there ? SQLITE_OK : sqlite_response_there(sqlite, row, &there);
    if (code == SQLITE_OK && !there) {
        scan_note_running(scan, row);
    } else {
        *state = RECORD_COMPLETED;
    }
    return code;
}

static int scan_row(struct sqlite_store *sqlite, struct sqlite_scan *scan, struct key_index_load *load,
                    sqlite3_stmt *statement)
{
    int64_t row = sqlite3_column_int64(statement, 0);
    struct view hash = sqlite_column_view(statement, 1);
    int state = sqlite3_column_int(statement, 3);
    if (hash.len != SQLITE_HASH_BYTES || sqlite3_column_bytes(statement, 2) != COMMAND_ID_BYTES) {
        return SQLITE_CORRUPT;
    }
    if (row < 1 || row > KEY_INDEX_ROW_MAX) {
        scan->wrong =
            "the number of a row is out of range (1 to 17592186044415), which no version of this program wrote";
        return SQLITE_OK;
    }
    key_index_load_add(load, (const uint8_t *) hash.ptr, row);
    due_map_lower(sqlite->due, row, sqlite3_column_int64(statement, 4));
    int code = state == RECORD_IN_PROGRESS ? scan_in_progress(sqlite, scan, row, &state) : SQLITE_OK;
    if (state > RECORD_ABSENT && state < RECORD_STATE_COUNT) { /* else the row is refused when it is read */
        store_note_there(&sqlite->store, (enum record_state) state);
    }
    return code;
}

static int scan_next_row(struct sqlite_store *sqlite)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_HIGHEST];
    if (sqlite3_step(statement) == SQLITE_ROW) {
        sqlite->next_row = sqlite3_column_int64(statement, 0) + 1;
    }
    return sqlite3_reset(statement);
}

int sqlite_scan(struct sqlite_store *sqlite, struct sqlite_scan *scan)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_SCAN];
    int code = scan_next_row(sqlite), read = SQLITE_OK;
    sqlite->keys = key_index_new();
    sqlite->due = due_map_new();
    sqlite->running = running_new();
    if (!sqlite_meta_get_number(sqlite, "oldest_running_row", &sqlite->running_recorded)) {
        sqlite->running_recorded = 0; /* every row in progress is looked up */
    }
    if (code != SQLITE_OK) {
        return code;
    }
    struct key_index_load *load = key_index_load_begin(sqlite->keys);
    while (read == SQLITE_OK && scan->wrong == NULL && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        read = scan_row(sqlite, scan, load, statement);
    }
    key_index_load_end(load);
    int reset = sqlite3_reset(statement);
    if (scan->wrong != NULL) {
        return SQLITE_OK;
    }
    if (read != SQLITE_OK || code != SQLITE_DONE) {
        return read != SQLITE_OK ? read : reset != SQLITE_OK ? reset : code;
    }
    if (scan->wrong == NULL && key_index_any_twins(sqlite->keys, rows_have_same_hash, sqlite)) {
        scan->wrong = "two commands have the same key";
    }
    return SQLITE_OK;
}

int sqlite_scan_newest_ms(struct sqlite_store *sqlite, int64_t *newest_ms)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_NEWEST];
    *newest_ms = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return sqlite3_reset(statement);
}
