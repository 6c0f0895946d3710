/* lock_file.h - the file beside the database that says who uses the store and remembers which store it is.
 *
 *   nonbis store lock 1
 *   state running           is it in use (below)? All of one length, so that a change needs no room on the disk
 *   time 00000001893456000000   how far the store's time had come in the database, durably: one whose time is behind that is an
 *                           older copy of it. In ms, of one length too; absent in files of the first version
 *   store 0f3a...            32 hex; absent until the store was made
 *   path /var/lib/nonbis/nonbis.db
 *   pid 4711                 means nothing once the lock is free
 *
 * Held by flock for as long as it is open. It is a file of its own because opening and closing the database file by
 * hand would drop the lock that SQLite holds on it (docs/facts.md 19); and it stays when the store is closed, so
 * that a store that vanished is noticed. */
#ifndef NONBIS_SERVER_STORE_LOCK_FILE_H
#define NONBIS_SERVER_STORE_LOCK_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* What the log of the database is worth when nobody holds the lock. A file without the line: stopped. */
enum lock_state {
    LOCK_STOPPED, /* closed cleanly, or nothing was written yet: everything is in the database */
    LOCK_RUNNING, /* commits may lie in the log alone: a start without the log would not know them */
    LOCK_CLOSING  /* the log is being brought home: it may be empty already, and then nothing is lost */
};

struct lock_file {
    int fd; /* -1: not held */
    bool remembers;
    uint8_t store_id[16];  /* when it remembers one */
    long pid;              /* of the last owner, as written; 0: unknown */
    enum lock_state state; /* as last read or written */
    int64_t time_ms;       /* as last read, or to be written with the next change; 0: none is known */
};

enum lock_result {
    LOCK_TAKEN,
    LOCK_HELD,   /* another process has it: `pid` */
    LOCK_REFUSED /* errno says why */
};

enum lock_result lock_file_take(struct lock_file *lock, const char *path);
/* Writes owner, identity (16 bytes; NULL: the one that is remembered, if any) and state, durably. False: errno says
 * why, and `state` is as it was. */
bool lock_file_write(struct lock_file *lock, const char *database_path, const uint8_t *store_id, enum lock_state state);
void lock_file_release(struct lock_file *lock); /* also when it is not held */

#endif
