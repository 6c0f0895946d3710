/* reserve.c - see reserve.h. */
#include "server/store/reserve.h"

#include "common/buf.h"
#include "server/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512 }; /* the unit of st_blocks, whatever the file system's is */

static void open_file(struct reserve *reserve, int create)
{
    /* It may lie where others may write: neither a link is followed nor a pipe waited for. */
    reserve->fd = open(reserve->path, O_RDWR | create | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

void reserve_open(struct reserve *reserve, const char *path, int64_t bytes)
{
    struct stat status;
    *reserve = (struct reserve){ .path = memory_text(view_of(path)), .bytes = bytes, .fd = -1, .held = bytes == 0 };
    if (bytes == 0) {
        (void) unlink(path);
        return;
    }
    open_file(reserve, 0);
    if (reserve->fd < 0 || fstat(reserve->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
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

int reserve_hold(struct reserve *reserve)
{
    if (reserve->held) {
        return 0;
    }
    if (reserve->fd < 0) {
        open_file(reserve, O_CREAT);
        if (reserve->fd < 0) {
            return errno;
        }
    }
    /* A file system without fallocate has the blocks written by the C library. */
    int error = has_room(reserve->fd, reserve->bytes) ? posix_fallocate(reserve->fd, 0, reserve->bytes) : ENOSPC;
    if (error != 0) {
        (void) !ftruncate(reserve->fd, 0); /* what it took before it failed */
        return error;
    }
    reserve->held = true;
    return 0;
}

bool reserve_give_up(struct reserve *reserve)
{
    if (!reserve->held || reserve->fd < 0 || ftruncate(reserve->fd, 0) != 0) {
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
