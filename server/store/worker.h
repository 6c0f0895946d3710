/* worker.h - the store thread: one queue, one transaction per batch, results posted to the loops that asked.
 *
 * Takes everything queued at once; outcomes first, then claims and look-ups; one commit; then posts. No waiting to make batches larger. A result
 * is posted only after its batch is durable; when the batch fails, every task of it fails with it, look-ups too.
 * Budgets: a claim that finds its queue full is only looked up (may_claim becomes false), on the budget of the look-ups; what finds that one full
 * is refused, before anything was written; outcomes never are. Between batches it
 * sweeps expired records and does the store's housekeeping. */
#ifndef NONBIS_SERVER_STORE_WORKER_H
#define NONBIS_SERVER_STORE_WORKER_H

#include "server/base/loop.h"
#include "server/store/store.h"

struct store_worker;

enum store_task_kind { STORE_TASK_CLAIM, STORE_TASK_FINISH, STORE_TASK_LOOK_UP, STORE_TASK_VOID };

/* Lives inside its owner (an exchange), is submitted again and again but never twice at once. Views in `claim` and `finish` must stay
 * valid until `done`. */
struct store_task {
    struct loop_message message; /* private between submit and done */
    enum store_task_kind kind;
    struct loop *home; /* done() runs there */
    void (*done)(struct store_task *task);
    /* in */
    struct store_claim claim;   /* CLAIM, VOID; LOOK_UP uses tenant and key */
    bool look_up_id;            /* LOOK_UP: by claim.command_id instead of the key */
    struct store_finish finish; /* FINISH */
    struct retention retention; /* VOID */
    /* out */
    enum store_result result;
    struct store_found found; /* CLAIM, LOOK_UP, VOID; response, request and key go to the owner */
    struct record after;      /* FINISH */
};

struct store_worker_options {
    unsigned claims_max, reads_max; /* queued at most */
    unsigned sweep_batch;
    int64_t sweep_every_ms;
    void (*failed)(
        void *
            context); /* once, from the store thread: the store is down (UNCERTAIN); the process should drain and exit */
    void *context;
};

/* Live figures, readable from any thread. */
struct store_worker_figures {
    uint64_t commits, tasks, largest_batch, sweep_forgotten, sweep_expired;
    int64_t last_commit_age_ms; /* since the last transaction that wrote and was durable, or the probe below */
    unsigned queued;
    bool down;
};

/* Collects what one loop submits during a turn and hands it over before the loop waits: one wake-up of the store thread for all of it.
 * Own thread of the loop. */
struct store_desk;
struct store_desk *store_desk_open(struct store_worker *worker, struct loop *loop);
bool store_desk_submit(struct store_desk *desk, struct store_task *task); /* as store_worker_submit */
void store_desk_close(struct store_desk *desk);                           /* after loop_free */

struct store_worker *store_worker_start(struct store *store, const struct store_worker_options *options);
/* False: the budget of that kind is used up, nothing was queued. FINISH is never refused. Any thread. */
bool store_worker_submit(struct store_worker *worker, struct store_task *task);
void store_worker_figures(struct store_worker *worker, struct store_worker_figures *figures);
/* Makes a real durable commit soon, so that readiness can tell a living disk from a dead one. Any thread. */
void store_worker_probe(struct store_worker *worker);
/* Finishes what is queued, then ends the thread and closes the store. */
void store_worker_stop(struct store_worker *worker);

#endif
