/* backoff.h - how long to wait before the next attempt. Pure integer arithmetic; chance comes in as a word. Any thread.
 *
 * The window is min(cap, base * 2^n), n = 0 for the wait behind the first attempt, and saturates. Source: M. Brooker,
 * "Exponential Backoff And Jitter". */
#ifndef NONBIS_CLIENT_BACKOFF_H
#define NONBIS_CLIENT_BACKOFF_H

#include <stdint.h>

enum backoff_jitter {
    BACKOFF_NONE, /* the window itself: for comparison only (nonbis sim); base == cap is a fixed delay, base 0 none */
    BACKOFF_FULL, /* these three are enum nonbis_jitter */
    BACKOFF_EQUAL,
    BACKOFF_DECORRELATED,
    BACKOFF_JITTER_COUNT
};

struct backoff {
    enum backoff_jitter jitter;
    int64_t base_ms, cap_ms;
};

/* Long-lived connections: decorrelated, 500 ms, 30 s; starts anew after `BACKOFF_RECONNECT_STABLE_MS` without a break. */
extern const struct backoff backoff_reconnect;
#define BACKOFF_RECONNECT_STABLE_MS 60000

int64_t backoff_window_ms(const struct backoff *backoff, unsigned n);

/* Uniform in [0, bound) from one word; 0 for a bound of 0 or less. */
int64_t backoff_below(int64_t bound_ms, uint64_t random);

/* `previous_ms` is the last delay (decorrelated only; 0 or less: there was none, base is used). */
int64_t backoff_delay_ms(const struct backoff *backoff, unsigned n, int64_t previous_ms, uint64_t random);

#endif
