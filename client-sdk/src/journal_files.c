/* journal_files.c - entries as files: locked, written, moved, read. See journal_files.h. */
#include "client-sdk/src/journal_files.h"

#include "client-sdk/src/journal_digest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the message -------------------------------------------------------------------------------------------------- */

/* Of this thread, so that one thread's error is never told to another; asked for right behind the call that failed. */
static _Thread_local char said[1024];

int journal_say(const char *format, ...)
{
    char sentence[sizeof(said)];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(sentence, sizeof(sentence), format, arguments); /* `said` may be one of the arguments */
    va_end(arguments);
    memcpy(said, sentence, sizeof(said));
    return NONBIS_ERROR_JOURNAL;
}

const char *journal_said(void)
{
    return said;
}

int journal_say_failed(const struct journal_directory *directory, const char *what, enum journal_place place,
                       const char *name)
{
    return journal_say("cannot %s %s/%s%s%s: %s", what, directory->path, journal_place_name(place),
                       name[0] != '\0' ? "/" : "", name, strerror(errno));
}

/* ---- locks -------------------------------------------------------------------------------------------------------- */

/* The byte of the lock file that stands for a name: 62 bits of a hash. Should two names ever share one, they are not open at
 * the same time. */
static struct flock lock_range(const char *name)
{
    uint8_t digest[JOURNAL_DIGEST];
    uint64_t start = 0;
    journal_digest(name, strlen(name), digest);
    for (unsigned i = 0; i < 8; i++) {
        start = start << 8 | digest[i];
    }
    return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) (start >> 2), .l_len = 1 };
}

int journal_lock_take(struct journal_directory *directory, const char *name, int *lock)
{
    struct stat status;
    struct flock range = lock_range(name);
    int fd = directory->calls->openat(directory->root, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 || directory->calls->fstat(fd, &status) != 0) {
        int result = journal_say("cannot open the journal's lock file %s/lock: %s", directory->path, strerror(errno));
        journal_lock_drop(fd);
        return result;
    }
    if (status.st_dev != directory->lock_dev || status.st_ino != directory->lock_ino) {
        journal_lock_drop(fd);
        return journal_say("the journal's lock file %s/lock was replaced while it was in use: end all that use this "
                           "journal, then start again",
                           directory->path);
    }
    if (directory->calls->lock(fd, F_OFD_SETLK, &range) == 0) {
        *lock = fd;
        return NONBIS_OK;
    }
    bool taken = errno == EAGAIN || errno == EACCES;
    if (taken) {
        (void) journal_say("another process, or another operation of this one, works on the journal's entry %s", name);
    } else {
        (void) journal_say("cannot lock %s in the journal's lock file %s/lock: %s", name, directory->path,
                           strerror(errno));
    }
    journal_lock_drop(fd);
    return taken ? NONBIS_ERROR_LOCKED : NONBIS_ERROR_JOURNAL;
}

void journal_lock_drop(int lock)
{
    if (lock >= 0) {
        (void) close(lock);
    }
}

bool journal_lock_is_taken(struct journal_directory *directory, const char *name)
{
    struct flock range = lock_range(name);
    return directory->calls->lock(directory->lock, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static bool file_write_all(const struct journal_calls *calls, int fd, const struct buf *text)
{
    size_t written = 0;
    while (written < text->len) {
        ssize_t now = calls->write(fd, text->ptr + written, text->len - written);
        if (now == 0) {
            errno = ENOSPC;
        }
        if (now > 0) {
            written += (size_t) now;
        } else if (now == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* A new file in tmp, where only the holder of the name's lock writes: what is there already is from a crash. */
static int file_create(struct journal_directory *directory, const char *name)
{
    const struct journal_calls *calls = directory->calls;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int tmp = directory->places[JOURNAL_PLACE_TMP];
    int fd = calls->openat(tmp, name, flags, 0600);
    if (fd < 0 && errno == EEXIST && calls->unlinkat(tmp, name, 0) == 0) {
        fd = calls->openat(tmp, name, flags, 0600);
    }
    return fd;
}

static int file_fill(struct journal_directory *directory, const char *name, const struct buf *text)
{
    const struct journal_calls *calls = directory->calls;
    const char *what = NULL;
    int fd = file_create(directory, name);
    if (fd < 0) {
        return journal_say_failed(directory, "create", JOURNAL_PLACE_TMP, name);
    }
    if (calls->fchmodat(directory->places[JOURNAL_PLACE_TMP], name, 0600, 0) != 0) { /* the umask may have taken some */
        what = "chmod";
    } else if (!file_write_all(calls, fd, text)) {
        what = "write";
    } else if (calls->fsync(fd) != 0) {
        what = "fsync";
    }
    int result = what == NULL ? NONBIS_OK : journal_say_failed(directory, what, JOURNAL_PLACE_TMP, name);
    (void) close(fd);
    if (result != NONBIS_OK) {
        (void) calls->unlinkat(directory->places[JOURNAL_PLACE_TMP], name, 0);
    }
    return result;
}

int journal_file_write(struct journal_directory *directory, const char *name, const struct journal_record *record)
{
    struct buf text;
    buf_init(&text, JOURNAL_TEXT_MAX);
    journal_text_write(record, &text);
    int result = NONBIS_OK;
    if (text.failed) {
        (void) journal_say("the journal cannot keep %s: out of memory, or over %d bytes", name, JOURNAL_TEXT_MAX);
        result = NONBIS_ERROR_MEMORY;
    } else {
        result = file_fill(directory, name, &text);
    }
    buf_fini(&text);
    return result;
}

int journal_file_move(struct journal_directory *directory, const char *name, enum journal_place from,
                      enum journal_place to)
{
    if (directory->calls->renameat(directory->places[from], name, directory->places[to], name) == 0) {
        return NONBIS_OK;
    }
    return journal_say("cannot move %s/%s/%s to %s/%s: %s", directory->path, journal_place_name(from), name,
                       directory->path, journal_place_name(to), strerror(errno));
}

int journal_file_remove(struct journal_directory *directory, const char *name, enum journal_place place)
{
    return directory->calls->unlinkat(directory->places[place], name, 0) == 0
               ? NONBIS_OK
               : journal_say_failed(directory, "remove", place, name);
}

int journal_place_sync(struct journal_directory *directory, enum journal_place place)
{
    return directory->calls->fsync(directory->places[place]) == 0 ? NONBIS_OK
                                                                  : journal_say_failed(directory, "fsync", place, "");
}

/* ---- finding ------------------------------------------------------------------------------------------------------ */

int journal_file_settle(struct journal_directory *directory, const char *name, enum journal_place *place)
{
    static const enum journal_place furthest_first[] = { JOURNAL_PLACE_DONE, JOURNAL_PLACE_SENT, JOURNAL_PLACE_NEW };
    struct stat status;
    bool found = false;
    for (size_t i = 0; i < 3; i++) {
        enum journal_place at = furthest_first[i];
        if (directory->calls->fstatat(directory->places[at], name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno != ENOENT) {
                return journal_say_failed(directory, "look for", at, name);
            }
        } else if (!found) {
            found = true;
            *place = at;
        } else {
            int result = journal_file_remove(directory, name, at);
            if (result == NONBIS_OK) {
                result = journal_place_sync(directory, at); /* lest it comes back when the other is gone */
            }
            if (result != NONBIS_OK) {
                return result;
            }
        }
    }
    if (!found) {
        (void) journal_say("the journal %s has no entry %s", directory->path, name);
    }
    return found ? NONBIS_OK : NONBIS_ERROR_NOT_FOUND;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* As many bytes as the file said it has, or as are there. Negative: errno. */
static ssize_t file_read_all(const struct journal_calls *calls, int fd, char *bytes, size_t len)
{
    size_t have = 0;
    while (have < len) {
        ssize_t now = calls->read(fd, bytes + have, len - have);
        if (now == 0) {
            break;
        }
        if (now > 0) {
            have += (size_t) now;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (ssize_t) have;
}

static int file_say_damaged(const struct journal_directory *directory, enum journal_place place, const char *name,
                            const char *why)
{
    return journal_say("the journal's entry %s/%s/%s cannot be used: %s; it is left as it is", directory->path,
                       journal_place_name(place), name, why);
}

static int file_parse(const struct journal_directory *directory, enum journal_place place, const char *name,
                      struct journal_text *text, char *bytes, size_t len)
{
    const char *why = NULL;
    char again[JOURNAL_NAME_SIZE];
    enum journal_text_result result = journal_text_read(text, bytes, len, &why);
    if (result == JOURNAL_TEXT_MEMORY) {
        (void) journal_say("out of memory while reading the journal's entry %s", name);
        return NONBIS_ERROR_MEMORY;
    }
    if (result != JOURNAL_TEXT_OK) {
        return file_say_damaged(directory, place, name, why);
    }
    if (!journal_name_make(text->record.key, again) || strcmp(again, name) != 0) {
        journal_text_fini(text);
        return file_say_damaged(directory, place, name, "it is the entry of another key");
    }
    return NONBIS_OK;
}

static int file_read_open(struct journal_directory *directory, const char *name, enum journal_place place, int fd,
                          struct journal_text *text, int64_t *changed_wall_ms)
{
    struct stat status;
    if (directory->calls->fstat(fd, &status) != 0) {
        return journal_say_failed(directory, "look at", place, name);
    }
    if (S_ISREG(status.st_mode) && changed_wall_ms != NULL) {
        *changed_wall_ms = (int64_t) status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000;
    }
    if (!S_ISREG(status.st_mode) || status.st_size > JOURNAL_TEXT_MAX) {
        return file_say_damaged(directory, place, name,
                                S_ISREG(status.st_mode) ? "it is too large" : "it is no regular file");
    }
    size_t len = (size_t) status.st_size;
    char *bytes = malloc(len + 1);
    if (bytes == NULL) {
        (void) journal_say("out of memory while reading the journal's entry %s", name);
        return NONBIS_ERROR_MEMORY;
    }
    ssize_t have = file_read_all(directory->calls, fd, bytes, len);
    if (have < 0) {
        free(bytes);
        return journal_say_failed(directory, "read", place, name);
    }
    return file_parse(directory, place, name, text, bytes, (size_t) have);
}

int journal_file_read(struct journal_directory *directory, const char *name, enum journal_place place,
                      struct journal_text *text, int64_t *changed_wall_ms)
{
    /* Not blocking: somebody may have laid a FIFO there. */
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = directory->calls->openat(directory->places[place], name, flags, 0);
    if (fd < 0) {
        int result = errno == ENOENT ? NONBIS_ERROR_NOT_FOUND : NONBIS_ERROR_JOURNAL;
        (void) journal_say_failed(directory, "open", place, name);
        return result;
    }
    int result = file_read_open(directory, name, place, fd, text, changed_wall_ms);
    (void) close(fd);
    return result;
}
