/* clock.h - time as the client sees it: now, and waiting. The one seam through which tests bring a virtual clock.
 *
 * Monotonic milliseconds are for deadlines and waits; wall milliseconds (since 1970, UTC) for what outlives the process or
 * is compared with dates of a server. A clock is shared by all operations of a client: implementations are thread-safe. */
#ifndef NONBIS_CLIENT_CLOCK_H
#define NONBIS_CLIENT_CLOCK_H

#include "client-sdk/src/waker.h"

#include <stdint.h>

enum clock_wait {
    CLOCK_DUE,   /* the moment has come */
    CLOCK_WOKEN, /* somebody rang: look at the waker's flags */
};

struct clock {
    int64_t (*monotonic_ms)(struct clock *clock);
    int64_t (*wall_ms)(struct clock *clock);
    /* Returns at `until_ms` (monotonic) or soon after, never earlier, unless the waker rings. Rung before the call counts. */
    enum clock_wait (*wait_until)(struct clock *clock, int64_t until_ms, struct waker *waker);
};

/* The system's clocks; lives for ever. */
struct clock *clock_system(void);

#endif
