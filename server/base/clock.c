/* clock.c - see clock.h. */
#include "server/base/clock.h"

static int64_t clock_read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return clock_read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_monotonic_ms(void)
{
    return clock_read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

struct timespec clock_wait_until(int64_t after_ms)
{
    int64_t until_ms = clock_monotonic_ms() + (after_ms > 0 ? after_ms : 0);
    return (struct timespec){ .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
}
