/* fault_vfs.c - see fault_vfs.h. Every method goes to the real VFS but for the one that is armed. One thread. */
#include "tests/store/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>

struct fault_file {
    sqlite3_file base;
    enum fault_target target;
    int watched;
    sqlite3_file *real; /* directly behind this struct */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;
static struct {
    int armed, code, torn;
    enum fault_operation operation;
    enum fault_target target;
    unsigned left, hits;
} fault;
static unsigned syncs[2], writes[2]; /* by target */

void fault_vfs_arm(enum fault_operation operation, enum fault_target target, unsigned nth, int code, int torn)
{
    fault.armed = 1;
    fault.operation = operation;
    fault.target = target;
    fault.left = nth;
    fault.code = code;
    fault.torn = torn;
    fault.hits = 0;
}

void fault_vfs_disarm(void)
{
    fault.armed = 0;
}

unsigned fault_vfs_hits(void)
{
    return fault.hits;
}

unsigned fault_vfs_syncs(enum fault_target target)
{
    return syncs[target];
}

unsigned fault_vfs_writes(enum fault_target target)
{
    return writes[target];
}

static int fault_meets(const struct fault_file *file, enum fault_operation operation)
{
    if (!fault.armed || !file->watched || file->target != fault.target || operation != fault.operation) {
        return 0;
    }
    if (fault.left > 1) {
        fault.left--;
        return 0;
    }
    fault.hits++;
    if (fault.code == FAULT_KILL) {
        (void) raise(SIGKILL);
    }
    return 1;
}

static struct fault_file *fault_of(sqlite3_file *file)
{
    return (struct fault_file *) (void *) file;
}

static int file_close(sqlite3_file *file)
{
    return fault_of(file)->real->pMethods->xClose(fault_of(file)->real);
}

static int file_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    if (fault_meets(fault_of(file), FAULT_READ)) {
        return fault.code;
    }
    return fault_of(file)->real->pMethods->xRead(fault_of(file)->real, bytes, len, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    sqlite3_file *real = fault_of(file)->real;
    if (fault_meets(fault_of(file), FAULT_WRITE)) {
        if (fault.torn && len > 1) {
            (void) real->pMethods->xWrite(real, bytes, len / 2, at);
        }
        return fault.code;
    }
    writes[fault_of(file)->target] += fault_of(file)->watched ? 1 : 0;
    return real->pMethods->xWrite(real, bytes, len, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (fault_meets(fault_of(file), FAULT_TRUNCATE)) {
        return fault.code;
    }
    return fault_of(file)->real->pMethods->xTruncate(fault_of(file)->real, size);
}

static int file_sync(sqlite3_file *file, int flags)
{
    if (fault_meets(fault_of(file), FAULT_SYNC)) {
        return fault.code;
    }
    syncs[fault_of(file)->target] += fault_of(file)->watched ? 1 : 0;
    return fault_of(file)->real->pMethods->xSync(fault_of(file)->real, flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return fault_of(file)->real->pMethods->xFileSize(fault_of(file)->real, size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return fault_of(file)->real->pMethods->xLock(fault_of(file)->real, level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return fault_of(file)->real->pMethods->xUnlock(fault_of(file)->real, level);
}

static int file_check_lock(sqlite3_file *file, int *reserved)
{
    return fault_of(file)->real->pMethods->xCheckReservedLock(fault_of(file)->real, reserved);
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    return fault_of(file)->real->pMethods->xFileControl(fault_of(file)->real, operation, argument);
}

static int file_sector(sqlite3_file *file)
{
    return fault_of(file)->real->pMethods->xSectorSize(fault_of(file)->real);
}

static int file_traits(sqlite3_file *file)
{
    return fault_of(file)->real->pMethods->xDeviceCharacteristics(fault_of(file)->real);
}

/* Version 1: no shared memory, so a log works only in exclusive mode. A store that forgot it would not open here. */
static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct fault_file *opened = fault_of(file);
    (void) vfs;
    opened->real = (sqlite3_file *) (void *) (opened + 1);
    opened->watched = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)) != 0;
    opened->target = (flags & SQLITE_OPEN_WAL) != 0 ? FAULT_LOG : FAULT_DATABASE;
    int code = real_vfs->xOpen(real_vfs, name, opened->real, flags, out);
    opened->base.pMethods = opened->real->pMethods != NULL ? &file_methods : NULL;
    return code;
}

void fault_vfs_install(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    fault_vfs = *real_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.szOsFile = (int) sizeof(struct fault_file) + real_vfs->szOsFile;
    fault_vfs.xOpen = vfs_open;
    (void) sqlite3_vfs_register(&fault_vfs, 1);
}
