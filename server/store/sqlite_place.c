/* sqlite_place.c - are the files of the store still where it opened them? Somebody may remove, replace or move them while
 * it runs: this process would then go on with files that no start finds again, and a second process could open
 * the place anew. Owns the verdict and its message, and what the lock file says about the log. The store thread. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/store/filesystem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PLACE_LOOK_MS = 1000 };

/* What is wrong with the file at `path`, which was `inode`; NULL: nothing. */
static const char *place_fault(const char *path, ino_t inode)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return strerror(errno);
    }
    return status.st_ino == inode ? NULL : "another file lies there now";
}

static const char *place_database_fault(struct sqlite_store *sqlite)
{
    int moved = 0;
    if (sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved == 0) {
        return NULL;
    }
    struct stat status;
    return stat(sqlite->path, &status) != 0 ? strerror(errno) : "another file lies there now";
}

static const char *place_lock_fault(const struct sqlite_store *sqlite)
{
    struct stat held;
    return fstat(sqlite->lock.fd, &held) != 0 ? strerror(errno) : place_fault(sqlite->lock_path, held.st_ino);
}

/* The log is made by the first commit and then stays until the store is closed. */
static const char *place_log_fault(struct sqlite_store *sqlite)
{
    struct stat status;
    if (sqlite->log_inode != 0) {
        return place_fault(sqlite->log_path, sqlite->log_inode);
    }
    if (stat(sqlite->log_path, &status) == 0) {
        sqlite->log_inode = status.st_ino;
    }
    return NULL;
}

void sqlite_place_set(struct sqlite_store *sqlite, char *path, char *lock_path)
{
    size_t room = strlen(path) + sizeof "-wal";
    sqlite->path = path;
    sqlite->lock_path = lock_path;
    sqlite->log_path = memory_new(room);
    (void) snprintf(sqlite->log_path, room, "%s-wal", path);
    const char *volatile_kind = filesystem_volatile(path);
    if (volatile_kind != NULL) {
        log_message(LOG_WARN, "store", "%s is in memory (%s): a power loss or a reboot forgets every key", path,
                    volatile_kind);
    }
}

void sqlite_place_free(struct sqlite_store *sqlite)
{
    free(sqlite->path);
    free(sqlite->lock_path);
    free(sqlite->log_path);
}

bool sqlite_place_holds(struct sqlite_store *sqlite, int64_t monotonic_ms)
{
    if (sqlite->path == NULL || monotonic_ms < sqlite->place_again_ms) {
        return true;
    }
    sqlite->place_again_ms = monotonic_ms + PLACE_LOOK_MS;
    const char *path = sqlite->path;
    const char *fault = place_database_fault(sqlite);
    if (fault == NULL) {
        path = sqlite->lock_path;
        fault = place_lock_fault(sqlite);
    }
    if (fault == NULL) {
        path = sqlite->log_path;
        fault = place_log_fault(sqlite);
    }
    if (fault == NULL) {
        return true;
    }
    log_message(
        LOG_ERROR, "store",
        "%s is not the file that this process opened any more: %s. No new command is claimed: what is stored from "
        "here on would not be found by the next start. Bring the store's files back before that",
        path, fault);
    return false;
}

/* What this process wrote last is durable: a commit that failed takes it back, and no transaction is open where the lock file is written. */
void sqlite_place_note_time(struct sqlite_store *sqlite)
{
    if (sqlite->time_recorded_ms > sqlite->lock.time_ms) {
        sqlite->lock.time_ms = sqlite->time_recorded_ms;
    }
}

bool sqlite_place_mark(struct sqlite_store *sqlite, enum lock_state state)
{
    /* Behind a write that failed nobody knows what the file says: it may be the word that was refused. */
    if (sqlite->path == NULL || (sqlite->lock.state == state && !sqlite->mark_told)) {
        return true;
    }
    sqlite_place_note_time(sqlite);
    if (lock_file_write(&sqlite->lock, sqlite->path, NULL, state)) {
        sqlite->mark_told = false;
        return true;
    }
    log_message(
        sqlite->mark_told ? LOG_DEBUG : LOG_WARN, "store",
        "could not write the lock file %s: %s. Nothing is lost; a lost log would not be noticed by the next start",
        sqlite->lock_path, strerror(errno));
    sqlite->mark_told = true;
    return false;
}
