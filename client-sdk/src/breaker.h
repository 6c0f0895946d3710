/* breaker.h - the optional circuit breaker: after so many failures in a row nothing is tried for a while, then one probe.
 *
 *     closed --failures--> open --time--> half open --success--> closed
 *                            ^                |
 *                            `---failure------'
 *
 * Off by default, and not for payments. Time comes in. Not thread-safe: the client holds a lock around it. */
#ifndef NONBIS_CLIENT_BREAKER_H
#define NONBIS_CLIENT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker {
    int64_t failures_max; /* 0: off */
    int64_t open_ms;
    int64_t failures;       /* in a row */
    int64_t open_until_ms;  /* monotonic; 0: closed */
    bool probing;           /* half open, and somebody tries */
    int64_t probe_until_ms; /* a probe that never reports frees its place then */
};

void breaker_init(struct breaker *breaker, int64_t failures_max, int64_t open_ms);

/* When the next attempt may begin: 0 for now, else a monotonic time. Looks only. */
int64_t breaker_closed_until(const struct breaker *breaker, int64_t now_ms);

/* An attempt begins (takes the probe's place when half open); its result. Not cancelled ones: breaker_forget. */
void breaker_begin(struct breaker *breaker, int64_t now_ms);
void breaker_report(struct breaker *breaker, int64_t now_ms, bool success);
void breaker_forget(struct breaker *breaker);

#endif
