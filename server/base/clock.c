/* clock.c - see clock.h. */
#include "server/base/clock.h"

#include <time.h>

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
