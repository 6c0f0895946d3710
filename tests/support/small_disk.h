/* small_disk.h - a small file system of a test's own, in a mount namespace of its own: however the test ends, nothing stays mounted. What fills it lies
 * in its file `ballast`. Only for a test process that has no other threads yet; what it starts then sees the file system too. */
#ifndef NONBIS_TESTS_SUPPORT_SMALL_DISK_H
#define NONBIS_TESTS_SUPPORT_SMALL_DISK_H

#include <stdbool.h>

/* Takes the namespace. False, and a figure: this machine lets nobody mount, and the test ends. */
bool small_disk_allowed(void);
/* The same, and mounts so much memory ("4m") at `folder`, which it makes unless it is there. */
bool small_disk_open(const char *folder, const char *size);
/* Mounts 8 MB at `folder`, which is there: an ext4 in a file when this machine allows it, else memory. The kind's name; NULL: neither. */
const char *small_disk_open_any(const char *folder);
void small_disk_fill(const char *folder); /* to the last byte that is given; again: what has become free since */
void small_disk_make_room(const char *folder);
void small_disk_end(const char *folder);

#endif
