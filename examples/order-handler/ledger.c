/* ledger.c - the SQLite file of the order handler; the only place here that knows SQLite. */
#include "examples/order-handler/ledger.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char schema[] =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS arrivals ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, key TEXT NOT NULL, command TEXT NOT NULL,"
    "  execution INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
    "CREATE INDEX IF NOT EXISTS arrivals_by_key ON arrivals (key);"
    "CREATE TABLE IF NOT EXISTS orders ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, key TEXT NOT NULL, command TEXT NOT NULL,"
    "  execution TEXT NOT NULL UNIQUE, item TEXT NOT NULL, amount INTEGER NOT NULL) STRICT;"
    "CREATE INDEX IF NOT EXISTS orders_by_key ON orders (key);";

enum statement { ADD_ARRIVAL, ADD_ORDER, FIND_ORDER, ORDERS_OF_KEY, EFFECTS_OF_KEY, EFFECTS_OF_ALL, STATEMENT_COUNT };

static const char *const statement_text[STATEMENT_COUNT] = {
    [ADD_ARRIVAL] = "INSERT INTO arrivals (at_ms, key, command, execution, body) VALUES (?, ?, ?, ?, ?)",
    [ADD_ORDER] = "INSERT INTO orders (at_ms, key, command, execution, item, amount) VALUES (?, ?, ?, ?, ?, ?)",
    [FIND_ORDER] = "SELECT id, execution, item, amount FROM orders WHERE id = ?",
    [ORDERS_OF_KEY] = "SELECT id, execution, item, amount FROM orders WHERE key = ? ORDER BY id",
    [EFFECTS_OF_KEY] = "SELECT (SELECT count(*) FROM arrivals WHERE key = ?1), count(*), count(DISTINCT key), count(*)"
                       " FROM orders WHERE key = ?1",
    [EFFECTS_OF_ALL] = "SELECT (SELECT count(*) FROM arrivals), coalesce(sum(n), 0), count(*), coalesce(max(n), 0)"
                       " FROM (SELECT count(*) AS n FROM orders GROUP BY CASE key WHEN '' THEN id ELSE key END)",
};

struct ledger {
    pthread_mutex_t mutex;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
};

static enum ledger_result ledger_complain(const struct ledger *ledger, const char *doing)
{
    fprintf(stderr, "order-handler: %s failed: %s; the request is answered with 500\n", doing,
            sqlite3_errmsg(ledger->db));
    return LEDGER_FAILED;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct ledger *ledger_open(const char *path)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (ledger == NULL) {
        fprintf(stderr, "order-handler: no memory for the ledger\n");
        return NULL;
    }
    pthread_mutex_init(&ledger->mutex, NULL);
    bool good = sqlite3_open_v2(path, &ledger->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                NULL) == SQLITE_OK &&
                sqlite3_exec(ledger->db, schema, NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; good && i < STATEMENT_COUNT; i++) {
        good = sqlite3_prepare_v3(ledger->db, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT, &ledger->statements[i],
                                  NULL) == SQLITE_OK;
    }
    if (!good) {
        fprintf(stderr, "order-handler: the ledger %s cannot be opened: %s\n", path, sqlite3_errmsg(ledger->db));
        ledger_close(ledger);
        return NULL;
    }
    return ledger;
}

void ledger_close(struct ledger *ledger)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(ledger->statements[i]);
    }
    sqlite3_close(ledger->db);
    pthread_mutex_destroy(&ledger->mutex);
    free(ledger);
}

static void bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
}

/* Runs one writing statement: by itself it is a transaction, so when this returns LEDGER_OK the row is durable. */
static enum ledger_result ledger_write(struct ledger *ledger, sqlite3_stmt *statement, const char *doing)
{
    enum ledger_result result = LEDGER_OK;
    if (sqlite3_step(statement) != SQLITE_DONE) {
        result = ledger_complain(ledger, doing);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result;
}

enum ledger_result ledger_log_arrival(struct ledger *ledger, const struct arrival *arrival)
{
    pthread_mutex_lock(&ledger->mutex);
    sqlite3_stmt *statement = ledger->statements[ADD_ARRIVAL];
    sqlite3_bind_int64(statement, 1, now_ms());
    bind_text(statement, 2, arrival->key);
    bind_text(statement, 3, arrival->command);
    sqlite3_bind_int64(statement, 4, arrival->execution);
    sqlite3_bind_blob64(statement, 5, arrival->body.len == 0 ? "" : arrival->body.ptr, arrival->body.len,
                        SQLITE_STATIC);
    enum ledger_result result = ledger_write(ledger, statement, "logging an arrival");
    pthread_mutex_unlock(&ledger->mutex);
    return result;
}

enum ledger_result ledger_add_order(struct ledger *ledger, const struct arrival *arrival, struct order *order)
{
    pthread_mutex_lock(&ledger->mutex);
    sqlite3_stmt *statement = ledger->statements[ADD_ORDER];
    sqlite3_bind_int64(statement, 1, now_ms());
    bind_text(statement, 2, arrival->key);
    bind_text(statement, 3, arrival->command);
    bind_text(statement, 4, order->execution);
    bind_text(statement, 5, order->item);
    sqlite3_bind_int64(statement, 6, order->amount);
    enum ledger_result result = ledger_write(ledger, statement, "writing an order");
    order->id = sqlite3_last_insert_rowid(ledger->db);
    pthread_mutex_unlock(&ledger->mutex);
    return result;
}

static void read_order(sqlite3_stmt *row, struct order *order)
{
    order->id = sqlite3_column_int64(row, 0);
    snprintf(order->execution, sizeof order->execution, "%s", (const char *) sqlite3_column_text(row, 1));
    snprintf(order->item, sizeof order->item, "%s", (const char *) sqlite3_column_text(row, 2));
    order->amount = sqlite3_column_int64(row, 3);
}

enum ledger_result ledger_find_order(struct ledger *ledger, int64_t id, struct order *order)
{
    pthread_mutex_lock(&ledger->mutex);
    sqlite3_stmt *statement = ledger->statements[FIND_ORDER];
    sqlite3_bind_int64(statement, 1, id);
    enum ledger_result result = LEDGER_MISSING;
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW) {
        read_order(statement, order);
        result = LEDGER_OK;
    } else if (step != SQLITE_DONE) {
        result = ledger_complain(ledger, "reading an order");
    }
    sqlite3_reset(statement);
    pthread_mutex_unlock(&ledger->mutex);
    return result;
}

static bool ledger_read_counts(struct ledger *ledger, const char *key, struct effects *effects)
{
    sqlite3_stmt *statement = ledger->statements[key == NULL ? EFFECTS_OF_ALL : EFFECTS_OF_KEY];
    if (key != NULL) {
        bind_text(statement, 1, key);
    }
    bool good = sqlite3_step(statement) == SQLITE_ROW;
    if (good) {
        effects->arrivals = sqlite3_column_int64(statement, 0);
        effects->executions = sqlite3_column_int64(statement, 1);
        effects->keys = sqlite3_column_int64(statement, 2);
        effects->executions_most = sqlite3_column_int64(statement, 3);
    }
    sqlite3_reset(statement);
    return good;
}

enum ledger_result ledger_read_effects(struct ledger *ledger, const char *key, struct effects *effects,
                                       void (*each)(const struct order *order, void *context), void *context)
{
    pthread_mutex_lock(&ledger->mutex);
    bool good = ledger_read_counts(ledger, key, effects);
    if (good && key != NULL) {
        sqlite3_stmt *statement = ledger->statements[ORDERS_OF_KEY];
        bind_text(statement, 1, key);
        int step;
        while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
            struct order order;
            read_order(statement, &order);
            each(&order, context);
        }
        good = step == SQLITE_DONE;
        sqlite3_reset(statement);
    }
    enum ledger_result result = good ? LEDGER_OK : ledger_complain(ledger, "counting effects");
    pthread_mutex_unlock(&ledger->mutex);
    return result;
}
