/* fault_statement.c - see fault_statement.h. One thread.
 *
 * A statement that begins is traced, and an interrupt from within the trace ends it at its first jump; the next one begins without. One that is prepared
 * asks the authorizer. */
#include "tests/store/fault_statement.h"

#include "server/store/sqlite_store.h"

static struct {
    enum fault_statement_kind kind;
    unsigned left; /* 0: not armed, or past */
    int hit;
} fault;

static int fault_meets(enum fault_statement_kind kind)
{
    if (fault.left == 0 || fault.kind != kind || --fault.left > 0) {
        return 0;
    }
    fault.hit = 1;
    return 1;
}

static int on_run(unsigned event, void *context, void *statement, void *sql)
{
    (void) event;
    (void) context;
    (void) sql;
    if (fault_meets(FAULT_RUN)) {
        sqlite3_interrupt(sqlite3_db_handle(statement));
    }
    return 0;
}

/* Once for each statement, as far as ours go: reading a column asks too. */
static int on_prepare(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void) context;
    (void) a;
    (void) b;
    (void) c;
    (void) d;
    return action != SQLITE_READ && action != SQLITE_FUNCTION && fault_meets(FAULT_PREPARE) ? SQLITE_DENY : SQLITE_OK;
}

static int on_open(sqlite3 *db, char **error, const void *api)
{
    (void) error;
    (void) api;
    (void) sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_run, NULL);
    (void) sqlite3_set_authorizer(db, on_prepare, NULL);
    return SQLITE_OK;
}

void fault_statement_install(void)
{
    sqlite_library_start();
    (void) sqlite3_auto_extension((void (*)(void)) on_open);
}

void fault_statement_arm(enum fault_statement_kind kind, unsigned nth)
{
    fault.kind = kind;
    fault.left = nth;
    fault.hit = 0;
}

int fault_statement_disarm(void)
{
    fault.left = 0;
    return fault.hit;
}
