/* disk.c - see disk.h. */
#include "tests/contract/disk.h"

#include "tests/support/small_disk.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

const struct peer_step disk_held_large[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 500000\r\n\r\n", 0 },
                                             { PEER_SEND, "0123456789", 50000 },
                                             PEER_END };

static char disk[600];

bool disk_start(const char *const *more)
{
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    if (!small_disk_open(disk, "4m")) {
        return false;
    }
    scene.peer = peer_new();
    (void) snprintf(scene.store, sizeof scene.store, "%.500s/n.db", disk);
    ck_assert_int_eq(setenv("NONBIS_STORE_RESERVE", "256KiB", 1), 0); /* the default is for larger disks */
    scene_restart(more);
    return true;
}

void disk_end(void)
{
    if (scene.nonbis.pid > 0) {
        ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    }
    peer_free(scene.peer);
    small_disk_end(disk);
}

void disk_fill(void)
{
    small_disk_fill(disk);
}

void disk_make_room(void)
{
    small_disk_make_room(disk);
}

/* Where a write passes the limit of a process's files the kernel refuses it: an error of the disk, as far as the store can tell. It also sends
 * SIGXFSZ, unless that is ignored, which a program inherits. */
void disk_start_breakable(void)
{
    (void) signal(SIGXFSZ, SIG_IGN);
    scene_start(NULL);
}

void disk_break(void)
{
    const struct rlimit limit = { 16 * 1024, 16 * 1024 };
    ck_assert_int_eq(prlimit(scene.nonbis.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}
