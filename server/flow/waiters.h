/* waiters.h - who on this loop waits for the end of somebody else's execution, and the limits on that over all loops (docs/contract.md 10.15).
 * A waiter holds no claim and no place among the running ones: it only wants to be told. The store thread says when (server/store/waited.h).
 *
 * The table belongs to the loop's thread; the counts are shared and have a lock of their own. */
#ifndef NONBIS_SERVER_FLOW_WAITERS_H
#define NONBIS_SERVER_FLOW_WAITERS_H

#include "common/list.h"
#include "common/view.h"
#include "server/config/settings.h"
#include "server/store/worker.h"

struct waiters;      /* of one loop */
struct waiter_count; /* of all loops */

/* Lives inside its owner. */
struct waiter {
    struct list_node node;
    uint64_t key_hash, tenant_hash;
    uint32_t execution; /* that is waited for */
    bool waiting;
    /* It has ended: this waiter has left the table already. Loop thread. */
    void (*ended)(struct waiter *waiter, const struct store_ended *ended);
};

struct waiter_count *waiter_count_new(const struct settings *settings);
void waiter_count_free(struct waiter_count *count);
unsigned waiter_count_now(struct waiter_count *count); /* any thread */

struct waiters *waiters_new(struct waiter_count *count);
void waiters_free(struct waiters *waiters);

/* `task` said `waited`; `tenant` is empty where there are none. False: over a limit (waiters_per_key, waiters_per_tenant, waiters_max). */
bool waiters_join(struct waiters *waiters, struct waiter *waiter, const struct store_task *task, struct view tenant);
/* Does nothing for one that does not wait. */
void waiters_leave(struct waiters *waiters, struct waiter *waiter);

/* For store_desk_open: the context is the struct waiters. */
void waiters_on_ended(void *waiters, const struct store_ended *ended);

#endif
