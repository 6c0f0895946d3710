/* quotas.c - see quotas.h. */
#include "server/flow/quotas.h"

#include "schema/limits.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct quotas {
    pthread_mutex_t lock;
    uint8_t secret[DIGEST_KEY_BYTES]; /* nobody can name two tenants that share a bucket */
    struct quota quota;
    struct quota_bucket *buckets;
};

enum { PER_SECOND = 3600 }; /* as a rate per hour */

/* A bucket that holds what comes in a second, unless it was said otherwise. */
static int64_t burst_of(const struct settings *settings)
{
    int64_t second = (settings->tenant_rate + PER_SECOND - 1) / PER_SECOND;
    return settings->tenant_burst > 0 ? settings->tenant_burst : second > 0 ? second : 1;
}

struct quotas *quotas_new(const struct settings *settings)
{
    const struct quota_limits limits = {
        .per_hour = settings->tenant_rate,
        .burst = burst_of(settings),
        .in_flight = (unsigned) settings->tenant_in_flight,
    };
    if (limits.per_hour == 0 && limits.in_flight == 0) {
        return NULL;
    }
    /* Whoever is under way is one of running_max, or, on each loop, one that asks whether it may be. So the table is never full of busy ones. */
    unsigned many = LIMIT_QUOTA_TENANTS + (unsigned) settings->running_max + (unsigned) settings->loops;
    unsigned room = settings->tenant_field.len > 0 ? many : 1;
    struct quotas *quotas = memory_new(sizeof *quotas);
    (void) pthread_mutex_init(&quotas->lock, NULL); /* with default attributes it cannot fail */
    digest_random(quotas->secret, sizeof quotas->secret);
    quotas->buckets = memory_new(room * sizeof quotas->buckets[0]);
    quota_init(&quotas->quota, &limits, quotas->buckets, room);
    return quotas;
}

void quotas_free(struct quotas *quotas)
{
    if (quotas != NULL) {
        (void) pthread_mutex_destroy(&quotas->lock);
        free(quotas->buckets);
        free(quotas);
    }
}

bool quotas_enter(struct quotas *quotas, struct view tenant, struct quota_place *place)
{
    *place = (struct quota_place){ .answer = QUOTA_TAKEN };
    if (quotas == NULL) {
        return true;
    }
    uint8_t digest[DIGEST_SHORT_BYTES];
    int64_t wait_us = 0;
    digest_keyed_short(quotas->secret, &tenant, 1, digest);
    memcpy(&place->tenant, digest, sizeof place->tenant);
    (void) pthread_mutex_lock(&quotas->lock);
    place->answer = quota_take(&quotas->quota, place->tenant, clock_monotonic_us(), &wait_us);
    (void) pthread_mutex_unlock(&quotas->lock);
    place->wait_s = (unsigned) ((wait_us + 999999) / 1000000);
    place->held = place->answer == QUOTA_TAKEN;
    return place->held;
}

void quotas_leave(struct quotas *quotas, struct quota_place *place, bool claimed)
{
    if (!place->held) {
        return;
    }
    place->held = false;
    (void) pthread_mutex_lock(&quotas->lock);
    quota_leave(&quotas->quota, place->tenant, clock_monotonic_us(), !claimed);
    (void) pthread_mutex_unlock(&quotas->lock);
}

unsigned quotas_tracked(struct quotas *quotas)
{
    if (quotas == NULL) {
        return 0;
    }
    (void) pthread_mutex_lock(&quotas->lock);
    quota_forget_full(&quotas->quota, clock_monotonic_us(), UINT32_MAX);
    unsigned tracked = quotas->quota.count;
    (void) pthread_mutex_unlock(&quotas->lock);
    return tracked;
}
