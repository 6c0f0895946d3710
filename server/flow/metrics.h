/* metrics.h - what one loop counts of its requests. Its thread alone writes, a handful of relaxed stores a request and no allocation; whoever
 * reads adds the loops up (metrics_page.c). */
#ifndef NONBIS_SERVER_FLOW_METRICS_H
#define NONBIS_SERVER_FLOW_METRICS_H

#include "server/base/metrics.h"
#include "server/core/route.h"
#include "server/flow/result.h"

enum { METRICS_LINE_BYTES = 64 };

/* Where a request is counted. */
enum metrics_row {
    METRICS_NOWHERE, /* refused before a route was looked for */
    METRICS_PASS_THROUGH,
    METRICS_OWN,   /* at and below /_nonbis */
    METRICS_ROUTES /* and the index of the route */
};

struct metrics {
    char before[METRICS_LINE_BYTES]; /* no other thread's memory shares a cache line with the counters */
    uint64_t connections;            /* that this loop was given */
    uint64_t cached;                 /* repeats that were answered without asking the store */
    uint64_t unknown[CAUSE_COUNT];   /* executions of this loop whose outcome nobody knows, or the store does not */
    struct metrics_histogram added, replay; /* by metrics_answer_bounds */
    uint64_t requests[];                    /* rows of RESULT_COUNT, and METRICS_LINE_BYTES behind them */
};
extern const struct metrics_bounds metrics_answer_bounds;

struct metrics *metrics_new(unsigned route_count);
void metrics_free(struct metrics *metrics);

static inline enum metrics_row metrics_row_of(const struct route *route)
{
    return (enum metrics_row)(METRICS_ROUTES + (int) route->index);
}

void metrics_count_request(struct metrics *metrics, enum metrics_row row, enum result result);
/* Any thread. */
uint64_t metrics_requests(const struct metrics *metrics, enum metrics_row row, enum result result);
void metrics_count_unknown(struct metrics *metrics, enum cause cause);
/* Times below nothing are as nothing. */
void metrics_observe_answer(struct metrics_histogram *histogram, int64_t took_us);

#endif
