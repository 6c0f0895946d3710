/* metrics.c - see metrics.h. */
#include "server/flow/metrics.h"

#include "server/base/memory.h"

#include <stdlib.h>

const struct metrics_bounds metrics_answer_bounds = {
    METRICS_MICROSECONDS,
    15,
    { 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000 },
};

struct metrics *metrics_new(unsigned route_count)
{
    size_t counters = ((size_t) METRICS_ROUTES + route_count) * RESULT_COUNT;
    return memory_new(sizeof(struct metrics) + counters * sizeof(uint64_t) + METRICS_LINE_BYTES);
}

void metrics_free(struct metrics *metrics)
{
    free(metrics);
}

static size_t place_of(enum metrics_row row, enum result result)
{
    return (size_t) row * RESULT_COUNT + (size_t) result;
}

void metrics_count_request(struct metrics *metrics, enum metrics_row row, enum result result)
{
    metrics_add(&metrics->requests[place_of(row, result)], 1);
}

uint64_t metrics_requests(const struct metrics *metrics, enum metrics_row row, enum result result)
{
    return metrics_read(&metrics->requests[place_of(row, result)]);
}

void metrics_count_unknown(struct metrics *metrics, enum cause cause)
{
    metrics_add(&metrics->unknown[cause], 1);
}

void metrics_observe_answer(struct metrics_histogram *histogram, int64_t took_us)
{
    metrics_observe(histogram, &metrics_answer_bounds, took_us > 0 ? (uint64_t) took_us : 0);
}
