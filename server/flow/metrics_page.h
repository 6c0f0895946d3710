/* metrics_page.h - the page that /metrics answers: what the loops have counted, added up, and the figures of store, handler connections and
 * process (docs/metrics.md). First loop's thread; the other loops and the store thread go on meanwhile. */
#ifndef NONBIS_SERVER_FLOW_METRICS_PAGE_H
#define NONBIS_SERVER_FLOW_METRICS_PAGE_H

#include "server/flow/shard.h"

struct metrics_facts {
    const struct shards *shards;
    bool ready;              /* as /readyz tells it */
    int64_t started_wall_ms; /* of the process */
};

void metrics_page_write(const struct metrics_facts *facts, struct buf *out);

#endif
