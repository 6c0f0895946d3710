/* health.h - the operators' listener: /livez, /readyz and /metrics. First loop's thread. */
#ifndef NONBIS_SERVER_FLOW_HEALTH_H
#define NONBIS_SERVER_FLOW_HEALTH_H

#include "server/flow/shard.h"

struct health {
    const struct shards *shards;
    struct flow *flow;       /* of the first loop */
    const char *store_path;  /* "memory": no room is looked for */
    int64_t started_wall_ms; /* of the process, for /metrics */
    struct loop_timer probe;
    bool unready; /* as the log was told */
};

/* The handler to make the admin listener's edge with; its context is the health. */
extern const struct edge_handler health_handler;

/* Also keeps the figure "age of the last durable commit" fresh on an idle server, by a tiny commit every HEALTH_PROBE_MS, and tells the
 * log when readiness changes (but for a drain, which has a line of its own). */
void health_init(struct health *health, const struct shards *shards, const char *store_path, int64_t started_wall_ms);
void health_fini(struct health *health);

/* Ready: a real commit within HEALTH_COMMIT_AGE_MAX_MS, room on the disk, store up, not draining. The upstream is not part of it: replays
 * go on without it. `why` gets one word per line that speaks against it, or "ok". */
bool health_is_ready(const struct health *health, struct buf *why);

#endif
