/* quotas.h - the quotas of all tenants (tenant_rate, tenant_burst, tenant_in_flight; docs/contract.md 4.10), shared by all loops: the table of
 * server/core/quota.h behind a lock that is held for a few steps. Any thread. Where no quota is set there is no table, and nothing is asked. */
#ifndef NONBIS_SERVER_FLOW_QUOTAS_H
#define NONBIS_SERVER_FLOW_QUOTAS_H

#include "common/view.h"
#include "server/config/settings.h"
#include "server/core/quota.h"

struct quotas;

/* What one request has asked of its tenant's quota. Zeroed: nothing. */
struct quota_place {
    uint64_t tenant;
    enum quota_answer answer; /* to the last quotas_enter */
    bool held;
    unsigned wait_s; /* NO_TOKEN: until there is one, at least 1 */
};

/* NULL: no quota is set. */
struct quotas *quotas_new(const struct settings *settings);
void quotas_free(struct quotas *quotas);

/* One more that may claim. False: over the quota, `place->answer` tells which. `quotas` may be NULL. */
bool quotas_enter(struct quotas *quotas, struct view tenant, struct quota_place *place);
/* It has ended; `claimed` false: it was no new command after all. Nothing for a place that is not held. */
void quotas_leave(struct quotas *quotas, struct quota_place *place, bool claimed);

/* Tenants that have something under way, or whose bucket is not full. */
unsigned quotas_tracked(struct quotas *quotas);

#endif
