/* moved_clock.c - another server/base/clock.h, which reads what a test has written (moved_clock.h). With it in place of clock.c the server's own
 * main.o becomes build/nonbisd-moved; nothing else of it is different. Not part of any test program.
 *
 * Waiting goes by the real clock: a server whose clock stands still still wakes up. Any thread. */
#include "tests/support/moved_clock.h"

#include "server/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct moved_clock *moved;

/* Before main, and so before there are threads. */
__attribute__((constructor)) static void moved_clock_open(void)
{
    const char *path = getenv(MOVED_CLOCK_FILE);
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *moved, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void) fprintf(stderr, "could not map the clock %s of the environment variable %s: this program is for tests\n",
                       path != NULL ? path : "(none)", MOVED_CLOCK_FILE);
        _exit(70);
    }
    (void) close(fd);
    moved = mapped;
}

int64_t clock_wall_ms(void)
{
    return __atomic_load_n(&moved->wall_ms, __ATOMIC_ACQUIRE);
}

int64_t clock_monotonic_ms(void)
{
    return __atomic_load_n(&moved->monotonic_ms, __ATOMIC_ACQUIRE);
}

int64_t clock_monotonic_us(void)
{
    return clock_monotonic_ms() * 1000;
}

struct timespec clock_wait_until(int64_t after_ms)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    after_ms = (after_ms > 0 ? after_ms : 0) + until.tv_nsec / 1000000;
    until.tv_sec += after_ms / 1000;
    until.tv_nsec = after_ms % 1000 * 1000000;
    return until;
}
