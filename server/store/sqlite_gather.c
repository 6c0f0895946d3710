/* sqlite_gather.c - see sqlite_gather.h. A file belongs to the thread that uses its store. */
#include "server/store/sqlite_gather.h"

#include "server/base/memory.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { GATHER_MAX = 120 * 1024 }; /* bytes; the unix VFS takes no more than 128 KiB - 1 in a call (docs/facts.md 66) */

struct gather_file {
    sqlite3_file base;
    sqlite3_file *real; /* of the VFS below */
    char *bytes;        /* gathered, not written yet */
    int len;
    sqlite3_int64 at; /* where they belong */
};

static sqlite3_vfs *below;
static sqlite3_vfs gather;

static struct gather_file *gather_of(sqlite3_file *file)
{
    return (struct gather_file *) (void *) file;
}

/* A quota that is used up is a full disk to whoever writes; the VFS below knows it as an error that may mean anything. */
static int write_below(struct gather_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    errno = 0;
    int code = file->real->pMethods->xWrite(file->real, bytes, len, at);
    return code == SQLITE_IOERR_WRITE && errno == EDQUOT ? SQLITE_FULL : code;
}

/* After an error what was gathered is gone: whoever is told undoes the transaction that it belongs to, or has a checkpoint that did not
 * happen: its pages are still in the log. */
static int flush(struct gather_file *file)
{
    int len = file->len;
    file->len = 0;
    return len == 0 ? SQLITE_OK : write_below(file, file->bytes, len, file->at);
}

static int gather_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 at)
{
    struct gather_file *file = gather_of(base);
    if (file->len > 0 && (at != file->at + file->len || len > GATHER_MAX - file->len)) {
        int code = flush(file);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    if (len > GATHER_MAX) {
        return write_below(file, bytes, len, at);
    }
    if (file->len == 0) {
        file->at = at;
    }
    memcpy(file->bytes + file->len, bytes, (size_t) len);
    file->len += len;
    return SQLITE_OK;
}

static int gather_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 at)
{
    struct gather_file *file = gather_of(base);
    /* Also when they lie behind what is read: a read over the end of the file would find it too early. */
    if (file->len > 0 && at + len > file->at) {
        int code = flush(file);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return file->real->pMethods->xRead(file->real, bytes, len, at);
}

static int gather_sync(sqlite3_file *base, int flags)
{
    struct gather_file *file = gather_of(base);
    int code = flush(file);
    return code == SQLITE_OK ? file->real->pMethods->xSync(file->real, flags) : code;
}

static int gather_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct gather_file *file = gather_of(base);
    int code = flush(file);
    return code == SQLITE_OK ? file->real->pMethods->xTruncate(file->real, size) : code;
}

static int gather_size(sqlite3_file *base, sqlite3_int64 *size)
{
    struct gather_file *file = gather_of(base);
    int code = flush(file);
    return code == SQLITE_OK ? file->real->pMethods->xFileSize(file->real, size) : code;
}

static int gather_close(sqlite3_file *base)
{
    struct gather_file *file = gather_of(base);
    int code = flush(file);
    int closed = file->real->pMethods->xClose(file->real);
    free(file->real);
    free(file->bytes);
    file->real = NULL;
    file->bytes = NULL;
    return code == SQLITE_OK ? closed : code;
}

/* --- passed on --- */

static int gather_lock(sqlite3_file *base, int level)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xLock(real, level);
}

static int gather_unlock(sqlite3_file *base, int level)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xUnlock(real, level);
}

static int gather_check_lock(sqlite3_file *base, int *reserved)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xCheckReservedLock(real, reserved);
}

static int gather_control(sqlite3_file *base, int operation, void *argument)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xFileControl(real, operation, argument);
}

static int gather_sector(sqlite3_file *base)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xSectorSize(real);
}

static int gather_traits(sqlite3_file *base)
{
    sqlite3_file *real = gather_of(base)->real;
    return real->pMethods->xDeviceCharacteristics(real);
}

/* Version 1: no shared memory and no mapped pages. The store keeps its database to itself, and never maps it. */
static const sqlite3_io_methods gather_methods = {
    .iVersion = 1,
    .xClose = gather_close,
    .xRead = gather_read,
    .xWrite = gather_write,
    .xTruncate = gather_truncate,
    .xSync = gather_sync,
    .xFileSize = gather_size,
    .xLock = gather_lock,
    .xUnlock = gather_unlock,
    .xCheckReservedLock = gather_check_lock,
    .xFileControl = gather_control,
    .xSectorSize = gather_sector,
    .xDeviceCharacteristics = gather_traits,
};

static int gather_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
    (void) vfs;
    if ((flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)) == 0) {
        return below->xOpen(below, name, base, flags, out);
    }
    struct gather_file *file = gather_of(base);
    file->base.pMethods = NULL; /* not to be closed, until it is open */
    file->real = memory_new((size_t) below->szOsFile);
    int code = below->xOpen(below, name, file->real, flags, out);
    if (code != SQLITE_OK) {
        if (file->real->pMethods != NULL) {
            (void) file->real->pMethods->xClose(file->real);
        }
        free(file->real);
        return code;
    }
    file->bytes = memory_resize(NULL, GATHER_MAX);
    file->len = 0;
    file->base.pMethods = &gather_methods;
    return SQLITE_OK;
}

const char *sqlite_gather_vfs(void)
{
    below = sqlite3_vfs_find(NULL);
    if (below == NULL) { /* SQLite could not be started */
        return NULL;
    }
    (void) sqlite3_vfs_unregister(&gather);
    gather = *below;
    gather.zName = "nonbis";
    gather.pNext = NULL;
    gather.xOpen = gather_open;
    if (gather.szOsFile < (int) sizeof(struct gather_file)) {
        gather.szOsFile = (int) sizeof(struct gather_file);
    }
    (void) sqlite3_vfs_register(&gather, 0);
    return gather.zName;
}
