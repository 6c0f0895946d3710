/* reserve.c - see reserve.h. The file begins with a line that tells what it is: another one of that name holds somebody's data, which nothing here touches.
 * That line is durable before the file grows, so that no crash leaves a file that is not known again. */
#include "server/store/reserve.h"

#include "common/buf.h"
#include "server/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char head[] = "nonbis room for outcomes 1\n";

enum {
    BLOCK_BYTES = 512, /* the unit of st_blocks, whatever the file system's is */
    HEAD_BYTES = sizeof head - 1
};

/* No longer than the line it may be what a loss of power has left of it. */
static bool is_own(int fd, const struct stat *status)
{
    char found[HEAD_BYTES];
    ssize_t len = S_ISREG(status->st_mode) ? pread(fd, found, sizeof found, 0) : -1;
    bool torn = status->st_size <= HEAD_BYTES;
    for (ssize_t i = 0; i < len; i++) {
        if (found[i] != head[i] && !(torn && found[i] == 0)) {
            return false;
        }
    }
    return len == HEAD_BYTES || (len >= 0 && torn);
}

/* 0, or an errno: EEXIST when what lies there is not ours. */
static int open_file(struct reserve *reserve, int create, struct stat *status)
{
    *status = (struct stat){ .st_size = 0 };
    /* It may lie where others may write: neither a link is followed nor a pipe waited for. */
    reserve->fd = open(reserve->path, O_RDWR | create | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    int error = reserve->fd < 0 || fstat(reserve->fd, status) != 0 ? errno : 0;
    error = error == 0 && !is_own(reserve->fd, status) ? EEXIST : error;
    if (error != 0 && reserve->fd >= 0) {
        (void) close(reserve->fd);
        reserve->fd = -1;
    }
    return error;
}

void reserve_open(struct reserve *reserve, const char *path, int64_t bytes)
{
    struct stat status;
    bytes = bytes > 0 && bytes < HEAD_BYTES ? HEAD_BYTES : bytes;
    *reserve = (struct reserve){ .path = memory_text(view_of(path)), .bytes = bytes, .fd = -1, .held = bytes == 0 };
    if (open_file(reserve, 0, &status) != 0) {
        return;
    }
    if (bytes == 0) {
        (void) unlink(path);
        (void) close(reserve->fd);
        reserve->fd = -1;
        return;
    }
    if (status.st_size > bytes && ftruncate(reserve->fd, bytes) != 0) {
        return;
    }
    reserve->held = status.st_size >= bytes && (int64_t) status.st_blocks * BLOCK_BYTES >= bytes;
}

/* Asked first, so that a disk that is nearly full is not filled for a moment, in the way of everybody on it. */
static bool has_room(int fd, int64_t bytes)
{
    struct statvfs room;
    return fstatvfs(fd, &room) != 0 || (uint64_t) room.f_bavail * room.f_frsize >= (uint64_t) bytes;
}

static int write_head(int fd)
{
    ssize_t put = pwrite(fd, head, HEAD_BYTES, 0);
    if (put >= 0 && put != HEAD_BYTES) {
        return ENOSPC;
    }
    return put < 0 || fdatasync(fd) != 0 ? errno : 0;
}

int reserve_hold(struct reserve *reserve)
{
    struct stat status;
    int error = 0;
    if (reserve->held) {
        return 0;
    }
    if (reserve->fd < 0 && (error = open_file(reserve, O_CREAT, &status)) != 0) {
        return error;
    }
    error = has_room(reserve->fd, reserve->bytes) ? write_head(reserve->fd) : ENOSPC;
    /* A file system without fallocate has the blocks written by the C library. */
    error = error == 0 ? posix_fallocate(reserve->fd, 0, reserve->bytes) : error;
    if (error != 0) {
        (void) !ftruncate(reserve->fd, 0); /* what it took before it failed */
        return error;
    }
    reserve->held = true;
    return 0;
}

bool reserve_give_up(struct reserve *reserve)
{
    struct stat status;
    /* It may be there and not hold what is wanted by now. */
    if (reserve->fd < 0 || fstat(reserve->fd, &status) != 0 || status.st_size == 0 || ftruncate(reserve->fd, 0) != 0) {
        return false;
    }
    reserve->held = false;
    return true;
}

void reserve_close(struct reserve *reserve)
{
    if (reserve->fd >= 0) {
        (void) close(reserve->fd);
    }
    free(reserve->path);
    *reserve = (struct reserve){ .fd = -1 };
}
