/* sqlite_check_rows.c - the rows of a store, each held against what this program would have written. All SQL of it stands at the top. Owns
 * nothing; writes nothing. */
#include "server/store/sqlite_check.h"

#include "schema/limits.h"

#include <stdio.h>

enum {
    FINGERPRINT_BLOB_BYTES = sizeof(struct fingerprint) /* without padding: server/digest/fingerprint_make.c */
};

/* In the order in which check_read takes them. The last seven are of its response: a command that is stored as in progress and has one
 * of its execution is completed. */
static const char commands_sql[] =
    "SELECT c.row_id, c.hash, c.tenant, c.key, c.command_id, c.state, c.execution, c.fingerprint, c.credential, "
    "c.cause,"
    " c.tombstone, c.due_ms, c.expires_ms, c.forget_ms, r.row_id, r.execution, r.expires_ms, r.status, r.bytes,"
    " r.kept, length(r.body)"
    " FROM commands AS c LEFT JOIN responses AS r ON r.row_id = c.row_id ORDER BY c.row_id";
static const char lost_responses_sql[] =
    "SELECT r.row_id FROM responses AS r WHERE NOT EXISTS (SELECT 1 FROM commands AS c WHERE c.row_id = r.row_id)";
static const char same_key_sql[] = "SELECT 1 FROM commands AS a, commands AS b WHERE a.row_id = ?1 AND b.row_id = ?2"
                                   " AND a.tenant = b.tenant AND a.key = b.key";

/* A row as it stands there. */
struct check_row {
    int64_t row;
    struct view hash, tenant, key, id, fingerprint, credential; /* until the statement goes on */
    int64_t state, execution, cause, tombstone, due_ms, expires_ms, forget_ms;
    bool has_response;
    int64_t response_execution, response_expires_ms, response_status, response_bytes, response_kept, body_bytes;
};

static struct view column_view(sqlite3_stmt *statement, int column)
{
    const char *bytes = sqlite3_column_blob(statement, column);
    return view_make(bytes, (size_t) sqlite3_column_bytes(statement, column));
}

static void check_read(sqlite3_stmt *statement, struct check_row *row)
{
    *row = (struct check_row){
        .row = sqlite3_column_int64(statement, 0),
        .hash = column_view(statement, 1),
        .tenant = column_view(statement, 2),
        .key = column_view(statement, 3),
        .id = column_view(statement, 4),
        .state = sqlite3_column_int64(statement, 5),
        .execution = sqlite3_column_int64(statement, 6),
        .fingerprint = column_view(statement, 7),
        .credential = column_view(statement, 8),
        .cause = sqlite3_column_int64(statement, 9),
        .tombstone = sqlite3_column_int64(statement, 10),
        .due_ms = sqlite3_column_int64(statement, 11),
        .expires_ms = sqlite3_column_int64(statement, 12),
        .forget_ms = sqlite3_column_int64(statement, 13),
        .has_response = sqlite3_column_type(statement, 14) != SQLITE_NULL,
        .response_execution = sqlite3_column_int64(statement, 15),
        .response_expires_ms = sqlite3_column_int64(statement, 16),
        .response_status = sqlite3_column_int64(statement, 17),
        .response_bytes = sqlite3_column_int64(statement, 18),
        .response_kept = sqlite3_column_int64(statement, 19),
        .body_bytes = sqlite3_column_int64(statement, 20),
    };
}

/* --- one row --- */

static void check_key(struct checking *checking, const struct check_row *row)
{
    struct sqlite_store *sqlite = checking->sqlite;
    uint8_t hash[SQLITE_HASH_BYTES];
    long long number = row->row;
    if (row->key.len < 1 || row->key.len > LIMIT_KEY_BYTES || row->tenant.len > LIMIT_TENANT_BYTES) {
        check_find(checking, "row %lld: its key has %zu bytes and its tenant %zu", number, row->key.len,
                   row->tenant.len);
        return;
    }
    sqlite_row_hash(sqlite, row->tenant, row->key, hash);
    if (!view_equal(row->hash, view_make((const char *) hash, sizeof hash))) {
        check_find(checking, "row %lld: its hash is not that of its tenant and key, so that the key is not found",
                   number);
    }
    if (row->row >= 1 && row->row <= KEY_INDEX_ROW_MAX) {
        key_index_add(sqlite->keys, hash, row->row);
        key_index_settle(sqlite->keys);
    }
}

/* Each id leads to its own row: then no two are the same. */
static void check_id(struct checking *checking, const struct check_row *row)
{
    if (row->id.len != COMMAND_ID_BYTES) {
        check_find(checking, "row %lld: its command id has %zu bytes", (long long) row->row, row->id.len);
        return;
    }
    int64_t leads = command_id_row(checking->sqlite->id_key, (const uint8_t *) row->id.ptr);
    if (leads != row->row) {
        check_find(checking, "row %lld: its command id leads to row %lld", (long long) row->row, (long long) leads);
    }
}

static void check_record(struct checking *checking, const struct check_row *row)
{
    long long number = row->row;
    bool sent = row->state == RECORD_IN_PROGRESS || row->state == RECORD_COMPLETED || row->state == RECORD_UNKNOWN;
    if (row->execution < 0 || row->execution > UINT32_MAX || (row->execution == 0 && row->state != RECORD_VOIDED)) {
        check_find(checking, "row %lld: execution %lld cannot be", number, (long long) row->execution);
    }
    if (row->fingerprint.len != FINGERPRINT_BLOB_BYTES && (row->fingerprint.len != 0 || sent)) {
        check_find(checking, "row %lld: its fingerprint has %zu bytes", number, row->fingerprint.len);
    }
    if (row->credential.len != 0 && row->credential.len != CREDENTIAL_BYTES) {
        check_find(checking, "row %lld: its credential has %zu bytes", number, row->credential.len);
    }
    if (row->cause < 0 || row->cause >= CAUSE_COUNT || row->tombstone < EXECUTED_NO ||
        row->tombstone > EXECUTED_UNKNOWN) {
        check_find(checking, "row %lld: cause %lld and tombstone %lld do not exist", number, (long long) row->cause,
                   (long long) row->tombstone);
    }
}

/* The state that counts, after the response was held against it. */
static int64_t check_response(struct checking *checking, const struct check_row *row)
{
    long long number = row->row;
    bool recorded = row->state == RECORD_IN_PROGRESS && (row->has_response || row->row < checking->running_from);
    if (row->has_response && row->response_execution != row->execution) {
        check_find(checking, "row %lld: its response is of execution %lld, and its command of %lld", number,
                   (long long) row->response_execution, (long long) row->execution);
    } else if (row->has_response && row->state != RECORD_COMPLETED && !recorded) {
        check_find(checking, "row %lld: it has a response, and its state is %s", number,
                   record_state_name((enum record_state) row->state));
    } else if (!row->has_response && (row->state == RECORD_COMPLETED || recorded)) {
        check_find(checking, "row %lld: it is completed, and its response is not there", number);
    }
    return recorded ? RECORD_COMPLETED : row->state;
}

/* What would be replayed. */
static void check_answer(struct checking *checking, const struct check_row *row)
{
    bool kept = row->response_kept == 1;
    if (!row->has_response) {
        return;
    }
    if (row->response_status < RESPONSE_STATUS_MIN || row->response_status > RESPONSE_STATUS_MAX) {
        check_find(checking, "row %lld: its response has status %lld", (long long) row->row,
                   (long long) row->response_status);
    }
    if ((!kept && row->response_kept != 0) || row->response_bytes < 0 ||
        row->body_bytes != (kept ? row->response_bytes : 0)) {
        check_find(checking, "row %lld: its response had %lld bytes, kept: %lld, and %lld are there",
                   (long long) row->row, (long long) row->response_bytes, (long long) row->response_kept,
                   (long long) row->body_bytes);
    }
}

/* One that the sweep would come by too late, or never. Of a command in progress the time in its row may be too early (sqlite_store.h). */
static void check_due(struct checking *checking, const struct check_row *row)
{
    bool runs = row->state == RECORD_IN_PROGRESS;
    struct record record = { .state = (enum record_state) row->state,
                             .expires_ms = row->expires_ms,
                             .forget_ms = row->forget_ms };
    int64_t due_ms = runs ? row->response_expires_ms : store_record_due(&record);
    if (runs ? row->has_response && row->due_ms > due_ms : row->due_ms != due_ms) {
        check_find(checking, "row %lld: the clean-up looks at it at %lld, and it is due at %lld", (long long) row->row,
                   (long long) row->due_ms, (long long) due_ms);
    }
}

static void check_row(struct checking *checking, const struct check_row *row)
{
    if (row->row < 1 || row->row > KEY_INDEX_ROW_MAX) {
        check_find(checking, "row %lld: its number is out of range", (long long) row->row);
    }
    check_key(checking, row);
    check_id(checking, row);
    if (row->state <= RECORD_ABSENT || row->state >= RECORD_STATE_COUNT) {
        check_find(checking, "row %lld: state %lld does not exist", (long long) row->row, (long long) row->state);
        return;
    }
    check_record(checking, row);
    check_due(checking, row);
    check_answer(checking, row);
    checking->commands[check_response(checking, row)]++;
}

/* --- all of them --- */

/* NULL: told. */
static sqlite3_stmt *check_prepare(struct checking *checking, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(checking->sqlite->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        check_find(checking, "its tables are not as they should be: %s", sqlite3_errmsg(checking->sqlite->db));
    }
    return statement;
}

static void check_end(struct checking *checking, sqlite3_stmt *statement, const char *tried)
{
    if (sqlite3_reset(statement) != SQLITE_OK) {
        check_find(checking, "reading %s ended early: %s", tried, sqlite3_errmsg(checking->sqlite->db));
    }
    (void) sqlite3_finalize(statement);
}

static void check_commands(struct checking *checking)
{
    sqlite3_stmt *statement = check_prepare(checking, commands_sql);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        struct check_row row;
        check_read(statement, &row);
        check_row(checking, &row);
    }
    check_end(checking, statement, "the commands");
}

static void check_lost_responses(struct checking *checking)
{
    sqlite3_stmt *statement = check_prepare(checking, lost_responses_sql);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        check_find(checking, "row %lld: there is a response without a command",
                   (long long) sqlite3_column_int64(statement, 0));
    }
    check_end(checking, statement, "the responses");
}

struct twins {
    struct checking *checking;
    sqlite3_stmt *statement;
};

/* Two rows whose hashes agree in the table of keys. It never says that they are the same, so that all are seen. */
static bool check_twins(void *context, int64_t a, int64_t b)
{
    struct twins *twins = context;
    (void) sqlite3_bind_int64(twins->statement, 1, a);
    (void) sqlite3_bind_int64(twins->statement, 2, b);
    if (sqlite3_step(twins->statement) == SQLITE_ROW) {
        check_find(twins->checking, "rows %lld and %lld: two commands have the same key", (long long) (a < b ? a : b),
                   (long long) (a < b ? b : a));
    }
    (void) sqlite3_reset(twins->statement);
    return false;
}

void check_rows(struct checking *checking)
{
    checking->sqlite->keys = key_index_new();
    if (!sqlite_meta_get_number(checking->sqlite, "oldest_running_row", &checking->running_from)) {
        checking->running_from = 0;
    }
    check_commands(checking);
    check_lost_responses(checking);
    struct twins twins = { checking, check_prepare(checking, same_key_sql) };
    (void) key_index_any_twins(checking->sqlite->keys, check_twins, &twins);
    (void) sqlite3_finalize(twins.statement);
}
