/* disk.c - see disk.h. */
#include "tests/contract/disk.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const struct peer_step disk_held_large[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 500000\r\n\r\n", 0 },
                                             { PEER_SEND, "0123456789", 50000 },
                                             PEER_END };

static char disk[600];

bool disk_start(const char *const *more)
{
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    ck_assert_int_eq(mkdir(disk, 0700), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=4m,mode=0700") != 0) {
        FIGURE("a full disk: not tested, this machine lets nobody mount");
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
    ck_assert_int_eq(umount(disk), 0);
}

void disk_fill(void)
{
    static char block[4096];
    int fd = open(text("%s/ballast", disk), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    while (write(fd, block, sizeof block) > 0) {
    }
    close(fd);
}

void disk_make_room(void)
{
    ck_assert_int_eq(unlink(text("%s/ballast", disk)), 0);
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
