/* sqlite_check.h - what the two files of the check share. Private to sqlite_check*.c. */
#ifndef NONBIS_SERVER_STORE_SQLITE_CHECK_H
#define NONBIS_SERVER_STORE_SQLITE_CHECK_H

#include "server/store/sqlite_store.h"

struct checking {
    struct sqlite_store *sqlite; /* connection, statements, keys of meta; never a store that is open */
    struct buf *out;
    uint64_t findings;
    int64_t running_from;                  /* below this row a command in progress has a response */
    uint64_t commands[RECORD_STATE_COUNT]; /* as they count, with a response that was recorded */
};

/* One line of what is wrong; only the first ones are written. */
__attribute__((format(printf, 2, 3))) void check_find(struct checking *checking, const char *format, ...);

/* sqlite_check_rows.c: every row of commands and responses. */
void check_rows(struct checking *checking);

#endif
