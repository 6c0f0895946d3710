/* disk.h - scenes whose store meets a disk that is full, or that fails: the first lies on a small file system of the case's own. */
#ifndef NONBIS_TESTS_CONTRACT_DISK_H
#define NONBIS_TESTS_CONTRACT_DISK_H

#include "tests/contract/scene.h"

/* As scene_start. False, and a figure, where this machine lets nobody mount: the case then ends. */
bool disk_start(const char *const *more);
void disk_end(void);       /* nonbisd must have ended well, or a test has ended it */
void disk_fill(void);      /* to the last byte */
void disk_make_room(void); /* what was filled is free again */

/* --- a disk that fails: it needs no file system of its own --- */

void disk_start_breakable(void); /* as SCENE_START(NULL) */
/* From now on every write of nonbisd behind the first 16 KiB of a file fails: less than its store has, more than its log will have. */
void disk_break(void);

extern const struct peer_step disk_held_large[]; /* PEER_WAIT, then a 201 with 500,000 bytes */

#endif
