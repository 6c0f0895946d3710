/* journal_place.c - the journal's directory: found, made, checked, opened. See journal_files.h.
 *
 * It is made with 0700 whatever the umask, must belong to who runs this, and must not be writable by others: whoever writes
 * there decides what is sent. A given path is made only in its last part, since a journal that silently begins anew where a
 * disk is not mounted has forgotten its keys; the default place is made from the home directory on. */
#include "client-sdk/src/journal_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char lock_name[] = "lock";

const char *journal_place_name(enum journal_place place)
{
    static const char *const names[JOURNAL_PLACES] = { "new", "sent", "done", "tmp" };
    return names[place];
}

/* ---- paths -------------------------------------------------------------------------------------------------------- */

static char *path_join(const char *base, const char *rest)
{
    char *path = NULL;
    return asprintf(&path, "%s%s", base, rest) >= 0 ? path : NULL;
}

/* The default place and how many of its parts may have to be made. */
static char *path_default(unsigned *parts)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    if (state != NULL && state[0] == '/') { /* others are to be ignored, says the XDG specification */
        *parts = 3;
        return path_join(state, "/nonbis/journal");
    }
    const char *home = secure_getenv("HOME");
    if (home == NULL || home[0] != '/') {
        (void) journal_say("there is no place for the journal: neither XDG_STATE_HOME nor HOME is an absolute path; "
                           "name a directory");
        return NULL;
    }
    *parts = 4;
    return path_join(home, "/.local/state/nonbis/journal");
}

static void path_trim(char *path)
{
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--) {
        path[len - 1] = '\0';
    }
}

/* Cuts the last part off; "." and "/" where nothing is left. */
static void path_cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        path[0] = '.';
        path[1] = '\0';
    } else {
        slash[slash == path ? 1 : 0] = '\0';
        path_trim(path);
    }
}

/* ---- making ------------------------------------------------------------------------------------------------------- */

static bool place_say(const char *what, const char *path)
{
    (void) journal_say("cannot %s the journal's directory %s: %s", what, path, strerror(errno));
    return false;
}

static bool place_sync_path(struct journal_directory *directory, const char *path, bool must)
{
    int fd = directory->calls->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) {
        /* Not ours and not to be read: then somebody else has made what is in it, long ago. */
        return (!must && errno == EACCES) || place_say("open (to make it durable)", path);
    }
    bool synced = directory->calls->fsync(fd) == 0 || place_say("fsync", path);
    (void) close(fd);
    return synced;
}

/* One directory: there afterwards, with 0700 when it was missing. */
static bool place_make(struct journal_directory *directory, int dir, const char *name, const char *path, bool *made)
{
    *made = directory->calls->mkdirat(dir, name, 0700) == 0;
    if (!*made && errno != EEXIST) {
        return place_say("make", path);
    }
    return !*made || directory->calls->fchmodat(dir, name, 0700, 0) == 0 || place_say("chmod", path);
}

/* The last `parts` parts of the path, from the top. What was made, or `fresh` (a start before this one may have died between
 * making and syncing), is then made durable. */
static bool place_make_path(struct journal_directory *directory, unsigned parts, bool fresh)
{
    for (; parts > 0; parts--) {
        bool made = false;
        char *path = path_join(directory->path, "");
        if (path == NULL) {
            return place_say("name", directory->path);
        }
        for (unsigned i = 1; i < parts; i++) {
            path_cut(path);
        }
        bool good = place_make(directory, AT_FDCWD, path, path, &made);
        if (good && (made || fresh)) {
            path_cut(path);
            good = place_sync_path(directory, path, made);
        }
        free(path);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static bool place_check(struct journal_directory *directory, int fd, const char *path)
{
    struct stat status;
    if (directory->calls->fstat(fd, &status) != 0) {
        return place_say("look at", path);
    }
    if (status.st_uid != geteuid()) {
        (void) journal_say("the journal %s belongs to user %u and not to user %u, who runs this: choose a directory "
                           "of your own",
                           path, (unsigned) status.st_uid, (unsigned) geteuid());
        return false;
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        (void) journal_say("the journal %s can be written by others (mode %04o): `chmod go-w` it, or choose another "
                           "directory",
                           path, (unsigned) status.st_mode & 07777);
        return false;
    }
    return true;
}

static bool place_open_one(struct journal_directory *directory, enum journal_place place)
{
    const char *name = journal_place_name(place);
    bool made = false;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory->path, name) < 0) {
        return place_say("name", name);
    }
    bool good = place_make(directory, directory->root, name, path, &made);
    if (good) {
        int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
        directory->places[place] = directory->calls->openat(directory->root, name, flags, 0);
        good = directory->places[place] >= 0 ? place_check(directory, directory->places[place], path)
                                             : place_say("open", path);
    }
    free(path);
    return good;
}

static bool place_open_lock(struct journal_directory *directory)
{
    struct stat status;
    directory->lock = directory->calls->openat(directory->root, lock_name,
                                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    bool good = directory->lock >= 0 && directory->calls->fstat(directory->lock, &status) == 0;
    if (good && (status.st_mode & 07777) != 0600) {
        good = directory->calls->fchmodat(directory->root, lock_name, 0600, 0) == 0;
    }
    if (!good) {
        (void) journal_say("cannot open the journal's lock file %s/%s: %s", directory->path, lock_name,
                           strerror(errno));
        return false;
    }
    directory->lock_dev = status.st_dev;
    directory->lock_ino = status.st_ino;
    return true;
}

bool journal_place_open(struct journal_directory *directory, const char *path)
{
    struct stat status;
    unsigned parts = 1;
    directory->path = path != NULL ? path_join(path, "") : path_default(&parts);
    if (directory->path == NULL) {
        return path == NULL ? false : place_say("name", path);
    }
    if (directory->path[0] == '\0') {
        (void) journal_say("the path of the journal is empty: name a directory");
        return false;
    }
    path_trim(directory->path);
    /* The lock file is made last. So where it is, all before it was made durable, and need not be again. */
    char *lock_path = NULL;
    if (asprintf(&lock_path, "%s/%s", directory->path, lock_name) < 0) {
        return place_say("name", directory->path);
    }
    bool fresh = directory->calls->fstatat(AT_FDCWD, lock_path, &status, AT_SYMLINK_NOFOLLOW) != 0;
    free(lock_path);
    if (!place_make_path(directory, parts, fresh)) {
        return false;
    }
    directory->root = directory->calls->openat(AT_FDCWD, directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory->root < 0) {
        return place_say("open", directory->path);
    }
    if (!place_check(directory, directory->root, directory->path)) {
        return false;
    }
    for (enum journal_place place = JOURNAL_PLACE_NEW; place < JOURNAL_PLACES; place++) {
        if (!place_open_one(directory, place)) {
            return false;
        }
    }
    if (fresh && directory->calls->fsync(directory->root) != 0) {
        return place_say("fsync", directory->path);
    }
    return place_open_lock(directory);
}

void journal_place_close(struct journal_directory *directory)
{
    for (enum journal_place place = JOURNAL_PLACE_NEW; place < JOURNAL_PLACES; place++) {
        if (directory->places[place] >= 0) {
            (void) close(directory->places[place]);
        }
    }
    if (directory->lock >= 0) {
        (void) close(directory->lock);
    }
    if (directory->root >= 0) {
        (void) close(directory->root);
    }
    free(directory->path);
}
