/* fault_vfs.h - an SQLite VFS that fails on command: the n-th coming read, write, sync or cut of the log or of the
 * database. */
#ifndef NONBIS_TESTS_FAULT_VFS_H
#define NONBIS_TESTS_FAULT_VFS_H

enum fault_operation { FAULT_WRITE, FAULT_SYNC, FAULT_READ, FAULT_TRUNCATE };
enum fault_target { FAULT_LOG, FAULT_DATABASE };
enum { FAULT_KILL = -1 }; /* as a code: SIGKILL, instead of the operation */

/* Makes it the default VFS of this process; before the first open. */
void fault_vfs_install(void);
/* The n-th such operation from now (1: the next) and every one after it returns `code`, until it is disarmed.
 * `torn`: a failing write still writes its first half. */
void fault_vfs_arm(enum fault_operation operation, enum fault_target target, unsigned nth, int code, int torn);
void fault_vfs_disarm(void);
unsigned fault_vfs_hits(void);                      /* operations that failed since it was armed */
unsigned fault_vfs_syncs(enum fault_target target); /* so far */
unsigned fault_vfs_writes(enum fault_target target);

#endif
