/* commons.h - what the loops of one server share: the store, the limits that hold over all loops, what is counted over all of them. Any thread;
 * nothing here waits for anything. */
#ifndef NONBIS_SERVER_FLOW_COMMONS_H
#define NONBIS_SERVER_FLOW_COMMONS_H

#include "server/config/settings.h"
#include "server/flow/quotas.h"
#include "server/store/worker.h"

#include <stdatomic.h>

struct commons {
    /* written once, before the first loop runs */
    const struct settings *settings;
    const struct store *live; /* for what is any thread's: its time, store_window_told */
    struct store_info store;
    int64_t store_offset_ms; /* added to store time where a client is told a time (9.10) */
    struct store_worker *worker;
    char via_name[32];        /* this nonbis in Via: loops are found by it */
    char instance_prefix[16]; /* of request ids: "95e8ff43-" */
    struct replays *replays;  /* per command, for its status */
    struct waiter_count *waiter_count;
    struct quotas *quotas; /* of tenants; NULL: none is set */

    _Atomic uint64_t request_count;    /* of request ids */
    atomic_uint running;               /* exchanges that hold, or may get, a claim: bounded by running_max */
    atomic_uint connections;           /* of clients: bounded by connections_max */
    atomic_bool handler_distrusted;    /* upstream_options.distrusted */
    atomic_bool handler_name_fails;    /* upstream_options.name_fails */
    _Atomic int64_t *route_latency_ms; /* by route index: moving average of the handler's answers */
};

/* `worker` is set by the caller before the first request. */
void commons_init(struct commons *commons, const struct settings *settings, const struct store *store);
void commons_fini(struct commons *commons);

/* One more that holds, or may get, a claim. False: it is over the tenant's quota, as `place` tells, or running_max are there already. */
bool commons_enter_running(struct commons *commons, struct view tenant, struct quota_place *place);
/* `claimed` false: it got none, and the tenant's quota is as it was. */
void commons_leave_running(struct commons *commons, struct quota_place *place, bool claimed);

/* A handler's answer took `seen_ms`. Two loops at once may lose one of two: it is an average. */
void commons_observe_latency(struct commons *commons, const struct route *route, int64_t seen_ms);
int64_t commons_latency_ms(const struct commons *commons, const struct route *route);

#endif
