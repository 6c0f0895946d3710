/* filesystem.h - is this a place where a lock and an fsync mean something? Any thread. */
#ifndef NONBIS_SERVER_STORE_FILESYSTEM_H
#define NONBIS_SERVER_STORE_FILESYSTEM_H

#include <stddef.h>
#include <sys/types.h>

/* NULL when it is, else the name of the network file system ("nfs", "fuse.sshfs"). `magic` is statfs f_type,
 * `fuse_type` the type that /proc/self/mountinfo gives a FUSE mount ("" when it is not known). */
const char *filesystem_refused_kind(unsigned long magic, const char *fuse_type);

/* The same for the directory at `path`. A directory that cannot be asked is not refused here. */
const char *filesystem_refused(const char *path);

/* The type of the mount with this device, as /proc/self/mountinfo has it; "" when it is not there, or does not fit. */
void filesystem_mount_type(dev_t device, char *type, size_t room);

/* "tmpfs" or "ramfs" for a place that a power loss or a reboot empties, else NULL. */
const char *filesystem_volatile_kind(unsigned long magic);
const char *filesystem_volatile(const char *path);

#endif
