/* small_disk.c - see small_disk.h. */
#include "tests/support/small_disk.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DISK_BYTES = 8 * 1024 * 1024, PATH_ROOM = 800 };

extern char **environ;

bool small_disk_allowed(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0) {
        return true;
    }
    FIGURE("a small file system is not tried: this machine lets nobody mount");
    return false;
}

bool small_disk_open(const char *folder, const char *size)
{
    char options[64];
    if (!small_disk_allowed()) {
        return false;
    }
    (void) snprintf(options, sizeof options, "size=%s,mode=0700", size);
    ck_assert(mkdir(folder, 0700) == 0 || errno == EEXIST);
    ck_assert_msg(mount("tmpfs", folder, "tmpfs", 0, options) == 0, "no file system of %s can be mounted at %s: %s",
                  size, folder, strerror(errno));
    return true;
}

/* A tool of the system, silently: whether it did it. */
static bool run(char *const *argv)
{
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t silent;
    posix_spawn_file_actions_init(&silent);
    posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&silent, 2, "/dev/null", O_WRONLY, 0);
    bool started = posix_spawnp(&pid, argv[0], &silent, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&silent);
    return started && waitpid(pid, &status, 0) == pid && status == 0;
}

const char *small_disk_open_any(const char *folder)
{
    char image[PATH_ROOM], at[PATH_ROOM];
    (void) snprintf(image, sizeof image, "%s.ext4", folder);
    (void) snprintf(at, sizeof at, "%s", folder);
    int fd = open(image, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, DISK_BYTES), 0);
    close(fd);
    /* Blocks for root alone would be there for a server that runs as root, and for no other. */
    char *const make[] = { "mkfs.ext4", "-q", "-F", "-m", "0", image, NULL };
    char *const loop[] = { "mount", "-o", "loop", image, at, NULL };
    if (run(make) && run(loop)) {
        return "ext4";
    }
    return mount("tmpfs", folder, "tmpfs", 0, "size=8m,mode=0700") == 0 ? "tmpfs" : NULL;
}

static int open_ballast(const char *folder)
{
    char path[PATH_ROOM];
    (void) snprintf(path, sizeof path, "%s/ballast", folder);
    return open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

void small_disk_fill(const char *folder)
{
    static char block[65536];
    int fd = open_ballast(folder);
    ck_assert_int_ge(fd, 0);
    for (size_t size = sizeof block; size > 0; size /= 4) {
        while (write(fd, block, size) > 0) {
        }
    }
    (void) fsync(fd); /* what ext4 allocates late is taken now */
    close(fd);
}

void small_disk_make_room(const char *folder)
{
    char path[PATH_ROOM];
    (void) snprintf(path, sizeof path, "%s/ballast", folder);
    ck_assert_int_eq(unlink(path), 0);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A journalled file system gives freed blocks out again when its journal was written. */
    ck_assert_int_eq(syncfs(fd), 0);
    close(fd);
}

void small_disk_end(const char *folder)
{
    ck_assert_int_eq(umount(folder), 0);
}
