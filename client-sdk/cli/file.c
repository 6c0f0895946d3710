/* file.c - see file.h. */
#include "client-sdk/cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t wrote = write(fd, at, len);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        if (wrote > 0) {
            at += wrote;
            len -= (size_t) wrote;
        }
    }
    return true;
}

bool file_write_patiently(int fd, const void *bytes, size_t len, int patience_ms, bool (*is_over)(void))
{
    const char *at = bytes;
    while (len > 0) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        int ready = poll(&room, 1, patience_ms);
        if (ready < 0 && errno == EINTR && !is_over()) {
            continue;
        }
        if (ready <= 0) {
            errno = ready == 0 ? ETIMEDOUT : errno;
            return false;
        }
        size_t piece = len < PIPE_BUF ? len : PIPE_BUF; /* what a pipe takes that says it has room */
        if (!file_write(fd, at, piece)) {
            return false;
        }
        at += piece;
        len -= piece;
    }
    return true;
}

bool file_read(int fd, struct buf *out)
{
    enum { PIECE = 65536 };
    char *piece = malloc(PIECE);
    if (piece == NULL) {
        errno = ENOMEM;
        return false;
    }
    ssize_t got = 0;
    while (!out->failed) {
        got = read(fd, piece, PIECE);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        buf_append_bytes(out, piece, got > 0 ? (size_t) got : 0);
    }
    bool fits = got <= 0 || (size_t) got <= out->max - out->len;
    int error = !out->failed ? errno : fits ? ENOMEM : EFBIG;
    free(piece);
    errno = error;
    return got == 0 && !out->failed;
}

bool file_read_path(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool whole = file_read(fd, out);
    int error = errno;
    close(fd);
    errno = error;
    return whole;
}

/* ---- replacing ---------------------------------------------------------------------------------------------------- */

/* Where `path` really lies; a name that is not there yet stays as it is. */
static bool resolve(const char *path, char out[PATH_MAX])
{
    if (realpath(path, out) != NULL) {
        return true;
    }
    return errno == ENOENT && snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
}

static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

static void folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t) (slash - path);
    (void) snprintf(out, PATH_MAX, "%.*s", len > 0 ? (int) len : 1, len > 0 ? path : ".");
}

bool file_can_replace(const char *path)
{
    char target[PATH_MAX], folder[PATH_MAX];
    struct stat about;
    if (!resolve(path, target)) {
        return false;
    }
    if (stat(target, &about) == 0 && !S_ISREG(about.st_mode)) {
        errno = S_ISDIR(about.st_mode) ? EISDIR : 0;
        return !S_ISDIR(about.st_mode) && access(target, W_OK) == 0;
    }
    folder_of(target, folder);
    return access(folder, W_OK | X_OK) == 0;
}

static bool write_parts(int fd, const struct view *parts, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        good = file_write(fd, parts[i].ptr, parts[i].len);
    }
    return good;
}

static bool write_special(const char *path, const struct view *parts, size_t count)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool wrote = write_parts(fd, parts, count);
    int error = errno;
    close(fd);
    errno = error;
    return wrote;
}

/* Of the file that is replaced, which may be private; of a new one as the umask says. */
static mode_t mode_for(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0) {
        return about.st_mode & 0777;
    }
    mode_t mask = umask(0);
    (void) umask(mask);
    return 0666 & ~mask;
}

bool file_replace(const char *path, const struct view *parts, size_t count)
{
    char target[PATH_MAX], folder[PATH_MAX], beside[PATH_MAX];
    if (!resolve(path, target)) {
        return false;
    }
    if (is_special(target)) {
        return write_special(target, parts, count);
    }
    folder_of(target, folder); /* a name of its own: a long one has no room for more */
    if (snprintf(beside, sizeof beside, "%s/.nonbis.XXXXXX", folder) >= (int) sizeof beside) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = fchmod(fd, mode_for(target)) == 0 && write_parts(fd, parts, count) && fsync(fd) == 0;
    int error = errno;
    if (close(fd) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && rename(beside, target) != 0) {
        good = false;
        error = errno;
    }
    if (!good) {
        (void) unlink(beside);
        errno = error;
    }
    return good;
}
