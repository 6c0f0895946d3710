/* commons.c - see commons.h. */
#include "server/flow/commons.h"

#include "server/base/memory.h"
#include "server/digest/digest.h"
#include "server/flow/replays.h"
#include "server/flow/waiters.h"

#include <stdio.h>
#include <stdlib.h>

enum { LATENCY_WEIGHT = 8 }; /* the newest answer counts for one of so many */

void commons_init(struct commons *commons, const struct settings *settings, const struct store *store)
{
    const uint8_t *id = store->info.store_id;
    *commons = (struct commons){ .settings = settings, .store_offset_ms = store->told_offset_ms };
    commons->store = store->info;
    commons->live = store;
    commons->replays = replays_new();
    commons->waiter_count = waiter_count_new(settings);
    commons->quotas = quotas_new(settings);
    commons->route_latency_ms = memory_new(settings->routes.count * sizeof commons->route_latency_ms[0]);
    (void) snprintf(commons->via_name, sizeof commons->via_name, "nonbis-%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
    (void) snprintf(commons->instance_prefix, sizeof commons->instance_prefix, "%08x-", digest_random32());
}

void commons_fini(struct commons *commons)
{
    replays_free(commons->replays);
    waiter_count_free(commons->waiter_count);
    quotas_free(commons->quotas);
    free(commons->route_latency_ms);
}

bool commons_enter_running(struct commons *commons, struct view tenant, struct quota_place *place)
{
    if (!quotas_enter(commons->quotas, tenant, place)) {
        return false;
    }
    if (atomic_fetch_add(&commons->running, 1) < (unsigned) commons->settings->running_max) {
        return true;
    }
    commons_leave_running(commons, place, false);
    return false;
}

void commons_leave_running(struct commons *commons, struct quota_place *place, bool claimed)
{
    atomic_fetch_sub(&commons->running, 1);
    quotas_leave(commons->quotas, place, claimed);
}

void commons_observe_latency(struct commons *commons, const struct route *route, int64_t seen_ms)
{
    _Atomic int64_t *average_ms = &commons->route_latency_ms[route->index];
    int64_t before_ms = atomic_load_explicit(average_ms, memory_order_relaxed);
    int64_t after_ms = before_ms == 0 ? seen_ms : (before_ms * (LATENCY_WEIGHT - 1) + seen_ms) / LATENCY_WEIGHT;
    atomic_store_explicit(average_ms, after_ms, memory_order_relaxed);
}

int64_t commons_latency_ms(const struct commons *commons, const struct route *route)
{
    return atomic_load_explicit(&commons->route_latency_ms[route->index], memory_order_relaxed);
}
