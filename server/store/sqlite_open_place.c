/* sqlite_open_place.c - where the store lies, before anything of it is opened: its directory, what kind of file is there,
 * its lock, and whether the log that its last run left is there. Refuses in words (sqlite_open.h). Not: whether the files
 * stay where they were (sqlite_place.c). Used at start, before there are threads. */
#include "server/store/sqlite_open.h"

#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/store/filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_HEADER_BYTES = 32 /* of the -wal file; only what is after it can be a commit */ };

bool open_find_directory(struct opening *opening)
{
    char *copy = memory_text(view_of(opening->options->path));
    char *base_copy = memory_text(view_of(opening->options->path));
    const char *name = dirname(copy), *base = basename(base_copy);
    char resolved[PATH_MAX];
    bool found = realpath(name, resolved) != NULL;
    int error = errno;
    if (!found) {
        (void) open_refuse(opening, STORE_EXIT_CANNOT_CREATE,
                           "its directory %s: %s. Create the directory, or name another file with --store", name,
                           strerror(error));
    } else {
        /* Resolved, because SQLite is told to follow no link at all. */
        size_t room = strlen(resolved) + strlen(base) + 8;
        opening->directory = memory_text(view_of(resolved));
        opening->path = memory_new(room);
        opening->lock_path = memory_new(room);
        (void) snprintf(opening->path, room, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, base);
        (void) snprintf(opening->lock_path, room, "%s.lock", opening->path);
    }
    free(copy);
    free(base_copy);
    return found;
}

bool open_check_place(struct opening *opening)
{
    struct stat status;
    if (stat(opening->directory, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "%s is not a directory", opening->directory);
    }
    const char *network = filesystem_refused(opening->directory);
    if (network != NULL) {
        return open_refuse(
            opening, STORE_EXIT_CANNOT_CREATE,
            "%s is on a network file system (%s), where neither locks nor the log can be trusted. Name a "
            "file on a local disk with --store",
            opening->directory, network);
    }
    if (lstat(opening->path, &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "it is a directory. Name a file in it with --store");
        }
        if (!S_ISREG(status.st_mode)) {
            return open_refuse(opening, STORE_EXIT_CANNOT_CREATE,
                               "it is not a regular file (a link, or a device). Name the file itself with --store");
        }
        if (faccessat(AT_FDCWD, opening->path, R_OK | W_OK, AT_EACCESS) != 0) {
            return open_refuse(opening, STORE_EXIT_CANNOT_CREATE,
                               "it may not be read and written: %s. Give the file to the user of this process (uid %u)",
                               strerror(errno), (unsigned) geteuid());
        }
    }
    if (faccessat(AT_FDCWD, opening->directory, W_OK | X_OK, AT_EACCESS) != 0) {
        return open_refuse(
            opening, STORE_EXIT_CANNOT_CREATE,
            "the directory %s is not writable: %s. Give it to the user of this process (uid %u), or name "
            "another file with --store",
            opening->directory, strerror(errno), (unsigned) geteuid());
    }
    return true;
}

/* Says who has the store now, and which one it is. A full disk does not keep an existing store away: what the file
 * says already stays true, and the next commit tries again (sqlite_place_mark). */
bool open_write_lock(struct opening *opening, const uint8_t *store_id, enum lock_state state)
{
    if (lock_file_write(&opening->sqlite->lock, opening->path, store_id, state)) {
        return true;
    }
    int error = errno;
    if (!opening->there || (error != ENOSPC && error != EDQUOT)) {
        return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "its lock file %s: %s", opening->lock_path,
                           strerror(error));
    }
    log_message(LOG_WARN, "store", "could not write the lock file %s: %s; it stays as it is", opening->lock_path,
                strerror(error));
    return true;
}

/* A run that did not end cleanly leaves its newest commits in the log. Without the log SQLite opens the database as
 * it was at the last checkpoint, and says nothing (docs/facts.md 57): claims would be forgotten. */
static bool open_check_log(struct opening *opening)
{
    struct stat status;
    char log_path[PATH_MAX + 8];
    (void) snprintf(log_path, sizeof log_path, "%s-wal", opening->path);
    bool found = stat(log_path, &status) == 0;
    if (opening->sqlite->lock.state != LOCK_RUNNING || (found && status.st_size > LOG_HEADER_BYTES)) {
        return true;
    }
    return open_refuse(
        opening, STORE_EXIT_UNUSABLE,
        "its last run did not end cleanly, as %s says, and its log %s is %s. Commits may be missing with it, and their "
        "keys would be executed again. Bring that -wal file back. If it is lost (or another program, such as a sqlite3 "
        "shell, has opened the database since and emptied it: then nothing is missing), remove the lock file to go on, "
        "knowing that keys claimed lately may be executed again",
        opening->lock_path, log_path, found ? "empty" : "missing");
}

bool open_take_lock(struct opening *opening)
{
    struct lock_file *lock = &opening->sqlite->lock;
    switch (lock_file_take(lock, opening->lock_path)) {
    case LOCK_TAKEN:
        break;
    case LOCK_HELD:
        return open_refuse(
            opening, STORE_EXIT_UNUSABLE,
            "it is locked by process %ld, as %s says, or by a --check-store, which does not say so there. "
            "Stop that process first, or give each its own store",
            lock->pid, opening->lock_path);
    case LOCK_REFUSED:
        return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "its lock file %s: %s", opening->lock_path,
                           strerror(errno));
    }
    struct stat status;
    opening->there = stat(opening->path, &status) == 0 && status.st_size > 0;
    if (!opening->there && lock->remembers) {
        return open_refuse(
            opening, STORE_EXIT_UNUSABLE,
            "it is missing, but %s remembers it. Bring it back. To start anew on purpose remove the lock "
            "file too: every key is then forgotten, and a repeat of an old request is executed again",
            opening->lock_path);
    }
    return (!opening->there || open_check_log(opening)) && open_write_lock(opening, NULL, lock->state);
}
