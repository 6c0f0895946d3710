/* sqlite_meta.c - the names and values of table meta: who this store is, and how far its time has come. */
#include "server/store/sqlite_store.h"

#include "server/base/memory.h"

#include <string.h>

/* Stands on the value, or returns NULL and is reset. */
static sqlite3_stmt *meta_find(struct sqlite_store *sqlite, const char *name)
{
    sqlite3_stmt *statement = sqlite->statements[SQL_META_GET];
    (void) sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        return statement;
    }
    (void) sqlite3_reset(statement);
    return NULL;
}

bool sqlite_meta_get_number(struct sqlite_store *sqlite, const char *name, int64_t *value)
{
    sqlite3_stmt *statement = meta_find(sqlite, name);
    if (statement == NULL) {
        return false;
    }
    bool number = sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
    *value = sqlite3_column_int64(statement, 0);
    (void) sqlite3_reset(statement);
    return number;
}

bool sqlite_meta_get_bytes(struct sqlite_store *sqlite, const char *name, void *bytes, size_t len)
{
    sqlite3_stmt *statement = meta_find(sqlite, name);
    if (statement == NULL) {
        return false;
    }
    const void *blob = sqlite3_column_blob(statement, 0);
    bool fits = blob != NULL && (size_t) sqlite3_column_bytes(statement, 0) == len;
    if (fits) {
        memcpy(bytes, blob, len);
    }
    (void) sqlite3_reset(statement);
    return fits;
}

char *sqlite_meta_get_text(struct sqlite_store *sqlite, const char *name)
{
    sqlite3_stmt *statement = meta_find(sqlite, name);
    if (statement == NULL) {
        return NULL;
    }
    const char *text = (const char *) sqlite3_column_text(statement, 0);
    char *copy = memory_text(view_make(text, (size_t) sqlite3_column_bytes(statement, 0)));
    (void) sqlite3_reset(statement);
    return copy;
}

static int meta_set(struct sqlite_store *sqlite, const char *name)
{
    (void) sqlite3_bind_text(sqlite->statements[SQL_META_SET], 1, name, -1, SQLITE_STATIC);
    return sqlite_statement_run(sqlite, SQL_META_SET);
}

int sqlite_meta_set_number(struct sqlite_store *sqlite, const char *name, int64_t value)
{
    (void) sqlite3_bind_int64(sqlite->statements[SQL_META_SET], 2, value);
    return meta_set(sqlite, name);
}

int sqlite_meta_set_bytes(struct sqlite_store *sqlite, const char *name, const void *bytes, size_t len)
{
    (void) sqlite3_bind_blob64(sqlite->statements[SQL_META_SET], 2, bytes, len, SQLITE_STATIC);
    return meta_set(sqlite, name);
}

int sqlite_meta_set_text(struct sqlite_store *sqlite, const char *name, struct view text)
{
    (void) sqlite3_bind_text64(sqlite->statements[SQL_META_SET], 2, text.len > 0 ? text.ptr : "", text.len,
                               SQLITE_STATIC, SQLITE_UTF8);
    return meta_set(sqlite, name);
}

bool sqlite_meta_make_identity(struct sqlite_store *sqlite, const struct store_identity_settings *identity,
                               int64_t wall_ms)
{
    struct store_info *info = &sqlite->store.info;
    digest_random(info->store_id, sizeof info->store_id);
    digest_random(info->guard_key, sizeof info->guard_key);
    digest_random(sqlite->hash_key, sizeof sqlite->hash_key);
    digest_random(sqlite->id_key, sizeof sqlite->id_key);
    return sqlite_meta_set_bytes(sqlite, "store_id", info->store_id, sizeof info->store_id) == SQLITE_DONE &&
           sqlite_meta_set_bytes(sqlite, "guard_key", info->guard_key, sizeof info->guard_key) == SQLITE_DONE &&
           sqlite_meta_set_bytes(sqlite, "hash_key", sqlite->hash_key, sizeof sqlite->hash_key) == SQLITE_DONE &&
           sqlite_meta_set_bytes(sqlite, "id_key", sqlite->id_key, sizeof sqlite->id_key) == SQLITE_DONE &&
           sqlite_meta_set_text(sqlite, "tenant_source", identity->tenant_source) == SQLITE_DONE &&
           sqlite_meta_set_text(sqlite, "guard", identity->guard) == SQLITE_DONE &&
           sqlite_meta_set_number(sqlite, "fingerprint_version", identity->fingerprint_version) == SQLITE_DONE &&
           sqlite_meta_set_number(sqlite, "window_start_ms", wall_ms) == SQLITE_DONE &&
           sqlite_meta_set_number(sqlite, "last_time_ms", wall_ms) == SQLITE_DONE &&
           sqlite_meta_set_number(sqlite, "last_wall_ms", wall_ms) == SQLITE_DONE;
}

void sqlite_meta_start_offset(struct sqlite_store *sqlite)
{
    int64_t before_ms = 0;
    bool known = sqlite_meta_get_number(sqlite, "told_offset_ms", &before_ms); /* not by an older version */
    store_offset_start(&sqlite->store, known ? &before_ms : NULL);
}
