/* sqlite_library.c - SQLite as a library: started once per process, and its own words in our log. Any thread. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"

#include <pthread.h>

static _Thread_local bool hushed;

static void sqlite_log(void *context, int code, const char *message)
{
    (void) context;
    /* Routine: the log of a crashed process was read. A full disk is told by sqlite_failed. */
    bool notice = (code & 0xFF) == SQLITE_NOTICE;
    bool told = hushed || (code & 0xFF) == SQLITE_FULL;
    log_message(notice ? LOG_INFO : told ? LOG_DEBUG : LOG_WARN, "sqlite", "%s (%d)", message, code);
}

static void library_start(void)
{
    if (sqlite3_config(SQLITE_CONFIG_LOG, sqlite_log, NULL) != SQLITE_OK) {
        log_message(LOG_WARN, "sqlite", "SQLite was started before its log could be set: its warnings are lost");
    }
    (void) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* counting costs a mutex per allocation */
    (void) sqlite3_initialize();
}

void sqlite_library_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, library_start);
}

void sqlite_library_hush(bool on)
{
    hushed = on;
}
