/* journal_calls.c - the system's own calls, see journal_files.h. The variadic ones get one shape here. */
#include "client-sdk/src/journal_files.h"

#include <stdio.h>
#include <unistd.h>

static int system_openat(int dir, const char *name, int flags, mode_t mode)
{
    return openat(dir, name, flags, mode);
}

static int system_lock(int fd, int command, struct flock *range)
{
    return fcntl(fd, command, range);
}

const struct journal_calls journal_calls_system = { .openat = system_openat,
                                                    .mkdirat = mkdirat,
                                                    .fchmodat = fchmodat,
                                                    .read = read,
                                                    .write = write,
                                                    .fstat = fstat,
                                                    .fstatat = fstatat,
                                                    .fsync = fsync,
                                                    .renameat = renameat,
                                                    .unlinkat = unlinkat,
                                                    .lock = system_lock,
                                                    .readdir = readdir };
