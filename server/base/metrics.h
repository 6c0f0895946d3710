/* metrics.h - counting without a lock, and the text in which Prometheus reads it (exposition format 0.0.4). Knows no metric of ours: those are in
 * server/flow/metrics.h.
 *
 * A counter is a number that one thread alone writes and any thread may read: plain loads and stores that are relaxed, no locked instruction. What
 * several threads count is counted apart and added up by whoever reads. A histogram that is read while it is written may have one observation more in
 * its buckets than in its sum; its count is the sum of its buckets, so that those never disagree. */
#ifndef NONBIS_SERVER_BASE_METRICS_H
#define NONBIS_SERVER_BASE_METRICS_H

#include "common/buf.h"

/* --- counting --- */

/* The one thread that writes it. */
static inline void metrics_add(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

/* Of what may also shrink. Likewise. */
static inline void metrics_take(uint64_t *gauge, uint64_t less)
{
    __atomic_store_n(gauge, __atomic_load_n(gauge, __ATOMIC_RELAXED) - less, __ATOMIC_RELAXED);
}

/* Any thread. */
static inline uint64_t metrics_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

enum { METRICS_BOUNDS_MAX = 16, METRICS_MICROSECONDS = 1000000 };

/* What the buckets of a histogram hold at most, in whole parts of its unit, and ascending. */
struct metrics_bounds {
    uint64_t
        parts; /* of which `upper` and what is observed are so many per unit: METRICS_MICROSECONDS for seconds, or 1 */
    unsigned count;
    uint64_t upper[METRICS_BOUNDS_MAX];
};

struct metrics_histogram {
    uint64_t counts[METRICS_BOUNDS_MAX + 1]; /* the last one in use: over every bound */
    uint64_t sum;                            /* in parts */
};

void metrics_observe(struct metrics_histogram *histogram, const struct metrics_bounds *bounds, uint64_t parts);
/* Adds what is in `live`, which another thread may write, to `total`, which nobody else has. */
void metrics_histogram_add(struct metrics_histogram *total, const struct metrics_histogram *live);

/* --- the text --- */

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics_family {
    const char *name;
    const char *type; /* "counter", "gauge", "histogram" */
    const char *help;
};

struct metrics_label {
    const char *name;
    struct view value; /* any bytes; UTF-8 as the format wants it is the caller's */
};

/* HELP and TYPE: once, before the samples of the family, which follow one another. */
void metrics_write_family(struct buf *out, const struct metrics_family *family);
/* One line: parts / per, exactly, as a decimal; `per` is a power of ten. */
void metrics_write_sample(struct buf *out, const struct metrics_family *family, const struct metrics_label *labels,
                          size_t label_count, uint64_t parts, uint64_t per);
/* The lines of a histogram without labels of its own. */
void metrics_write_histogram(struct buf *out, const struct metrics_family *family, const struct metrics_bounds *bounds,
                             const struct metrics_histogram *histogram);

#endif
