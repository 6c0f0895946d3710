/* small_disk.h - a small file system of a test's own, in a mount namespace of its own: however the test ends, nothing stays mounted. An ext4 in a file when
 * this machine allows it, else one in memory. Only for a test process that has no other threads yet. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_SMALL_DISK_H
#define NONBIS_TESTS_PROOF_FAULTS_SMALL_DISK_H

#include <stdbool.h>

bool small_disk_allowed(void); /* takes the namespace; false: this machine lets nobody mount */
/* Mounts 8 MB at `folder`: the kind's name, or NULL. */
const char *small_disk_mount(const char *folder);
void small_disk_fill(const char *folder); /* to the last byte that is given */
void small_disk_make_room(const char *folder);
void small_disk_end(const char *folder);

#endif
