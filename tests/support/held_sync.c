/* held_sync.c - a sync of the disk that waits until a test lets it begin (held_sync.h). With it beside the server's own main.o that becomes
 * build/nonbisd-held: SQLite finds this fdatasync before that of the C library. Nothing else of the server is different. Not part of any test
 * program.
 *
 * So a commit can be looked at from outside while it is not durable yet. Any thread. */
#include "tests/support/held_sync.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd);

static struct held_sync *held;

/* Before main, and so before there are threads. */
__attribute__((constructor)) static void held_sync_open(void)
{
    const char *path = getenv(HELD_SYNC_FILE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void) fprintf(stderr, "could not map the file %s of the environment variable %s: this program is for tests\n",
                       path != NULL ? path : "(none)", HELD_SYNC_FILE);
        _exit(70);
    }
    (void) close(fd);
    held = mapped;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    uint32_t number = __atomic_add_fetch(&held->arrived, 1, __ATOMIC_ACQ_REL);
    (void) syscall(SYS_futex, &held->arrived, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (uint32_t allowed; (allowed = __atomic_load_n(&held->allowed, __ATOMIC_ACQUIRE)) < number;) {
        (void) syscall(SYS_futex, &held->allowed, FUTEX_WAIT, allowed, NULL, NULL, 0);
    }
    return (int) syscall(SYS_fdatasync, fd);
}
