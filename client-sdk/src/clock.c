/* clock.c - the system's clocks; see clock.h. */
#include "client-sdk/src/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>

static int64_t clock_read_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_monotonic_ms(struct clock *clock)
{
    (void) clock;
    return clock_read_ms(CLOCK_MONOTONIC);
}

static int64_t system_wall_ms(struct clock *clock)
{
    (void) clock;
    return clock_read_ms(CLOCK_REALTIME);
}

static enum clock_wait system_wait_until(struct clock *clock, int64_t until_ms, struct waker *waker)
{
    for (;;) {
        int64_t left_ms = until_ms - system_monotonic_ms(clock);
        if (left_ms < 0) {
            left_ms = 0;
        }
        /* poll may return up to a millisecond early by our truncated clock: the loop looks again. */
        struct pollfd bell = { .fd = waker->fd, .events = POLLIN };
        int ready = poll(&bell, 1, left_ms > INT_MAX ? INT_MAX : (int) left_ms);
        if (ready > 0) {
            waker_quiet(waker);
            return CLOCK_WOKEN;
        }
        if (ready < 0 && errno != EINTR) {
            return CLOCK_WOKEN; /* out of memory in the kernel: the caller looks around and comes back */
        }
        if (system_monotonic_ms(clock) >= until_ms) {
            return CLOCK_DUE;
        }
    }
}

struct clock *clock_system(void)
{
    static struct clock system_clock = { .monotonic_ms = system_monotonic_ms,
                                         .wall_ms = system_wall_ms,
                                         .wait_until = system_wait_until };
    return &system_clock;
}
