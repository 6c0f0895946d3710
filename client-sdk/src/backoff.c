/* backoff.c - see backoff.h. */
#include "client-sdk/src/backoff.h"

const struct backoff backoff_reconnect = { .jitter = BACKOFF_DECORRELATED, .base_ms = 500, .cap_ms = 30000 };

int64_t backoff_window_ms(const struct backoff *backoff, unsigned n)
{
    int64_t window = backoff->base_ms;
    /* Doubled only as long as it stays below the cap, so nothing overflows however large n is. */
    for (; n > 0 && window > 0 && window < backoff->cap_ms; n--) {
        window = window > INT64_MAX / 2 ? backoff->cap_ms : window * 2;
    }
    return window < backoff->cap_ms ? window : backoff->cap_ms;
}

int64_t backoff_below(int64_t bound_ms, uint64_t random)
{
    if (bound_ms <= 0) {
        return 0;
    }
    /* The upper half of bound * random / 2^64, in two steps of 32 bits: no modulo, so no bias worth the name. */
    uint64_t bound = (uint64_t) bound_ms;
    uint64_t high = (bound >> 32) * (random >> 32);
    uint64_t middle = (bound >> 32) * (random & UINT32_MAX);
    uint64_t low = (bound & UINT32_MAX) * (random >> 32);
    uint64_t carry = ((bound & UINT32_MAX) * (random & UINT32_MAX)) >> 32;
    uint64_t sum = (middle & UINT32_MAX) + (low & UINT32_MAX) + carry;
    return (int64_t) (high + (middle >> 32) + (low >> 32) + (sum >> 32));
}

int64_t backoff_delay_ms(const struct backoff *backoff, unsigned n, int64_t previous_ms, uint64_t random)
{
    int64_t window = backoff_window_ms(backoff, n);
    switch (backoff->jitter) {
    case BACKOFF_FULL:
        return backoff_below(window, random);
    case BACKOFF_EQUAL:
        return window / 2 + backoff_below(window - window / 2, random);
    case BACKOFF_DECORRELATED: {
        int64_t previous = previous_ms > 0 ? previous_ms : backoff->base_ms;
        int64_t most = previous > INT64_MAX / 3 ? INT64_MAX : previous * 3;
        int64_t delay = backoff->base_ms + backoff_below(most - backoff->base_ms, random);
        return delay < backoff->cap_ms ? delay : backoff->cap_ms;
    }
    case BACKOFF_NONE:
    case BACKOFF_JITTER_COUNT:
        break;
    }
    return window;
}
