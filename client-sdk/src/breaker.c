/* breaker.c - see breaker.h. */
#include "client-sdk/src/breaker.h"

void breaker_init(struct breaker *breaker, int64_t failures_max, int64_t open_ms)
{
    *breaker = (struct breaker){ .failures_max = failures_max, .open_ms = open_ms };
}

int64_t breaker_closed_until(const struct breaker *breaker, int64_t now_ms)
{
    if (breaker->failures_max == 0 || breaker->open_until_ms == 0) {
        return 0;
    }
    if (now_ms < breaker->open_until_ms) {
        return breaker->open_until_ms;
    }
    return breaker->probing && now_ms < breaker->probe_until_ms ? breaker->probe_until_ms : 0;
}

void breaker_begin(struct breaker *breaker, int64_t now_ms)
{
    if (breaker->open_until_ms != 0) {
        breaker->probing = true;
        breaker->probe_until_ms = now_ms + breaker->open_ms;
    }
}

void breaker_report(struct breaker *breaker, int64_t now_ms, bool success)
{
    breaker->probing = false;
    if (breaker->failures_max == 0) {
        return;
    }
    if (success) {
        breaker->failures = 0;
        breaker->open_until_ms = 0;
        return;
    }
    breaker->failures++;
    if (breaker->open_until_ms != 0 || breaker->failures >= breaker->failures_max) {
        breaker->open_until_ms = now_ms + breaker->open_ms;
    }
}

void breaker_forget(struct breaker *breaker)
{
    breaker->probing = false;
}
