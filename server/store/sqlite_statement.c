/* sqlite_statement.c - every statement of the SQLite store, prepared once. */
#include "server/store/sqlite_store.h"

/* In the order in which sqlite_row.c reads them. */
#define ROW_COLUMNS                                                                                                    \
    "commands.row_id, hash, command_id, state, due_ms, commands.execution, cause, tombstone, created_ms, "             \
    "deadline_ms, commands.completed_ms, commands.expires_ms, commands.forget_ms, response_status, response_bytes, "   \
    "response_kept, fingerprint, credential"
#define WHOSE_COLUMNS ", tenant, key"
/* In the order in which sqlite_response.c reads them. */
#define RESPONSE_COLUMNS                                                                                               \
    "responses.execution, responses.completed_ms, responses.expires_ms, responses.forget_ms, status, bytes, kept"

static const char *const statement_sql[SQL_STATEMENT_COUNT] = {
    /* IMMEDIATE: a read that turns into a write later may fail (docs/facts.md 20). Without a write its commit costs
     * no sync. */
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_FIND_ROW] = "SELECT " ROW_COLUMNS WHOSE_COLUMNS " FROM commands WHERE row_id = ?1 AND hash = ?2",
    [SQL_FIND_ID] = "SELECT " ROW_COLUMNS WHOSE_COLUMNS " FROM commands WHERE row_id = ?1 AND command_id = ?2",
    [SQL_READ_ROW] = "SELECT " ROW_COLUMNS " FROM commands WHERE row_id = ?1",
    [SQL_READ_BLOCK] = "SELECT " ROW_COLUMNS ", " RESPONSE_COLUMNS
                       " FROM commands LEFT JOIN responses ON responses.row_id = commands.row_id AND state = 1"
                       " WHERE commands.row_id BETWEEN ?1 AND ?2 ORDER BY commands.row_id",
    [SQL_READ_NAMES] = "SELECT tenant, key, method, target, command_id, execution, created_ms FROM commands"
                       " WHERE row_id = ?1",
    [SQL_SCAN] = "SELECT row_id, hash, command_id, state, due_ms FROM commands ORDER BY row_id",
    [SQL_SAME_HASH] =
        "SELECT 1 FROM commands AS a, commands AS b WHERE a.row_id = ?1 AND b.row_id = ?2 AND a.hash = b.hash",
    [SQL_FIND_REQUEST] = "SELECT method, target FROM commands WHERE row_id = ?1 AND hash = ?2",
    [SQL_INSERT] = "INSERT INTO commands (state, execution, fingerprint, credential, cause, tombstone, deadline_ms,"
                   " completed_ms, expires_ms, forget_ms, due_ms, response_status, response_bytes, response_kept,"
                   " row_id, hash, tenant, key, method, target, command_id, created_ms)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,"
                   " ?21, ?22)",
    [SQL_UPDATE] = "UPDATE commands SET state = ?1, execution = ?2, fingerprint = ?3, credential = ?4, cause = ?5,"
                   " tombstone = ?6, deadline_ms = ?7, completed_ms = ?8, expires_ms = ?9, forget_ms = ?10,"
                   " due_ms = ?11, response_status = ?12, response_bytes = ?13, response_kept = ?14"
                   " WHERE row_id = ?15 AND hash = ?16 AND execution = ?17",
    [SQL_DELETE] = "DELETE FROM commands WHERE row_id = ?1 AND hash = ?2",
    [SQL_RESPONSE_FIND] = "SELECT " RESPONSE_COLUMNS ", fields, body FROM responses WHERE row_id = ?1",
    [SQL_RESPONSE_HEAD] = "SELECT " RESPONSE_COLUMNS " FROM responses WHERE row_id = ?1",
    /* Nothing, unless the command is there as that execution. */
    [SQL_RESPONSE_INSERT] = "INSERT INTO responses (row_id, execution, completed_ms, expires_ms, forget_ms, status,"
                            " bytes, kept, fields, body) SELECT row_id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10"
                            " FROM commands WHERE row_id = ?1 AND execution = ?2 AND state = ?11",
    [SQL_RESPONSE_DELETE] = "DELETE FROM responses WHERE row_id = ?1",
    [SQL_META_GET] = "SELECT value FROM meta WHERE name = ?1",
    [SQL_META_SET] = "INSERT INTO meta (name, value) VALUES (?1, ?2)"
                     " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [SQL_NEWEST] = "SELECT max(ms) FROM (SELECT max(created_ms, completed_ms) AS ms FROM"
                   " (SELECT created_ms, completed_ms FROM commands ORDER BY row_id DESC LIMIT 1000)"
                   " UNION ALL SELECT * FROM (SELECT completed_ms FROM responses ORDER BY row_id DESC LIMIT 1000))",
    /* Over both tables: nothing that was left in one of them is met again. */
    [SQL_HIGHEST] = "SELECT max((SELECT ifnull(max(row_id), 0) FROM commands),"
                    " (SELECT ifnull(max(row_id), 0) FROM responses))",
};
_Static_assert(RECORD_IN_PROGRESS == 1, "SQL_READ_BLOCK says so");

bool sqlite_statement_prepare(struct sqlite_store *sqlite, struct buf *why)
{
    for (int i = 0; i < SQL_STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(sqlite->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &sqlite->statements[i],
                               NULL) != SQLITE_OK) {
            buf_printf(why, "its tables are not as they should be: %s", sqlite3_errmsg(sqlite->db));
            return false;
        }
    }
    return true;
}

int sqlite_statement_run(struct sqlite_store *sqlite, enum sqlite_statement which)
{
    int code = sqlite3_step(sqlite->statements[which]);
    int reset = sqlite3_reset(sqlite->statements[which]);
    return code == SQLITE_DONE || reset == SQLITE_OK ? code : reset;
}
