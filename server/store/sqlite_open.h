/* sqlite_open.h - one attempt to open the SQLite store: what sqlite_open.c and sqlite_open_place.c share, and nobody
 * else includes. Each step returns false once it has refused. Used at start, before there are threads. */
#ifndef NONBIS_SERVER_STORE_SQLITE_OPEN_H
#define NONBIS_SERVER_STORE_SQLITE_OPEN_H

#include "server/store/sqlite_store.h"

struct opening {
    const struct store_options *options;
    struct buf *error;
    int exit_code; /* 0: going well */
    char *directory, *path, *lock_path;
    bool there; /* there is a database file with something in it */
    bool fresh; /* there is nothing yet in the database */
    struct sqlite_store *sqlite;
    struct sqlite_scan scan;
};

/* The attempt ends here: why, in words behind "the store PATH cannot be used: ". Returns false. */
__attribute__((format(printf, 3, 4))) bool open_refuse(struct opening *opening, int exit_code, const char *format, ...);

/* sqlite_open_place.c, in this order */
bool open_find_directory(struct opening *opening); /* sets directory, path and lock_path */
bool open_check_place(struct opening *opening);
bool open_take_lock(struct opening *opening); /* sets `there` */
/* Again at the end of a start: who the store is, once that is known (16 bytes, or NULL), and what its log is worth. */
bool open_write_lock(struct opening *opening, const uint8_t *store_id, enum lock_state state);

#endif
