/* worker.h - the store thread: one queue, one transaction per batch, results posted to the loops that asked.
 *
 * Takes everything queued at once; outcomes first, then claims and look-ups; one commit; then posts. No waiting to make batches larger. A result
 * is posted only after its batch is durable; when the batch fails, every task of it fails with it, look-ups too.
 * Budgets: a claim that finds its queue full is only looked up (may_claim becomes false), on the budget of the look-ups; what finds that one full
 * is refused, before anything was written; outcomes never are. Between batches it
 * sweeps expired records and does the store's housekeeping.
 *
 * Waiting: what a desk submitted may find that its command is in progress (`waited`); then ended() comes to that desk. Order on the loop is what
 * loses no wake-up: the result that waits is posted before anything of the next batch, and within a batch what ended is posted before the results,
 * so that a task which waits is never told of an execution before its own. Nobody waits longer than wait_max_ms for it: the loop has a timer. */
#ifndef NONBIS_SERVER_STORE_WORKER_H
#define NONBIS_SERVER_STORE_WORKER_H

#include "server/base/loop.h"
#include "server/base/metrics.h"
#include "server/store/store.h"
#include "server/store/waited.h"

struct store_worker;

enum store_task_kind { STORE_TASK_CLAIM, STORE_TASK_FINISH, STORE_TASK_LOOK_UP, STORE_TASK_VOID };

/* Lives inside its owner (an exchange), is submitted again and again but never twice at once. Views in `claim`, `finish` and `answer`
 * must stay valid until `done`. */
struct store_task {
    struct loop_message message;      /* private between submit and done */
    struct waited_listener *listener; /* private */
    enum store_task_kind kind;
    struct loop *home; /* done() runs there */
    void (*done)(struct store_task *task);
    /* in */
    struct store_claim claim;   /* CLAIM, VOID; LOOK_UP uses tenant, key and may_wait */
    bool look_up_id;            /* LOOK_UP: by claim.command_id instead of the key */
    struct store_finish finish; /* FINISH */
    struct store_answer answer; /* FINISH, not executed: for those who wait */
    struct retention retention; /* VOID */
    /* out */
    enum store_result result;
    struct store_found found; /* CLAIM, LOOK_UP, VOID; response, request and key go to the owner */
    struct record after;      /* FINISH */
    /* CLAIM and LOOK_UP with claim.may_wait: the command is in progress, and ended() will come to the desk that submitted the task, after done(),
     * with the same key_hash. */
    bool waited;
    uint64_t key_hash;
};

struct store_worker_options {
    unsigned claims_max, reads_max; /* queued at most */
    unsigned sweep_batch;
    int64_t sweep_every_ms;
    int64_t wait_max_ms; /* a key that was waited for so long is forgotten; 0: 30 s */
    void (*failed)(
        void *
            context); /* once, from the store thread: the store is down (UNCERTAIN); the process should drain and exit */
    void *context;
};

/* Live figures, readable from any thread. */
struct store_worker_figures {
    uint64_t commits, tasks, largest_batch, sweep_forgotten, sweep_expired;
    int64_t last_commit_age_ms; /* since the last transaction that wrote and was durable, or the probe below */
    unsigned queued, queued_outcomes, queued_claims, queued_reads; /* not taken yet; the first is all of them */
    unsigned waited_keys;
    int64_t
        sweep_behind_ms; /* for how long the oldest record that the last sweep left has been due; 0: none was left */
    bool down;
    bool no_room;                         /* that which is kept for outcomes is not there: nothing is claimed */
    struct metrics_histogram commit_time; /* of the commits above that wrote, by store_commit_bounds */
    struct metrics_histogram batch_tasks; /* tasks per batch, by store_batch_bounds */
};
extern const struct metrics_bounds store_commit_bounds, store_batch_bounds;

/* Collects what one loop submits during a turn and hands it over before the loop waits: one wake-up of the store thread for all of it.
 * Own thread of the loop. */
struct store_desk;
/* `ended` may be NULL: then nothing that it submits waits. A desk that listens is one of 64 at most (waited.h); the 65th is as without. */
struct store_desk *store_desk_open(struct store_worker *worker, struct loop *loop,
                                   void (*ended)(void *context, const struct store_ended *ended), void *context);
/* As store_worker_submit; task->home is the loop of the desk. */
bool store_desk_submit(struct store_desk *desk, struct store_task *task);
void store_desk_close(struct store_desk *desk); /* after store_worker_stop and loop_free */

struct store_worker *store_worker_start(struct store *store, const struct store_worker_options *options);
/* False: the budget of that kind is used up, nothing was queued. FINISH is never refused. Any thread. */
bool store_worker_submit(struct store_worker *worker, struct store_task *task);
void store_worker_figures(struct store_worker *worker, struct store_worker_figures *figures);
/* Makes a real durable commit soon, so that readiness can tell a living disk from a dead one. Any thread. */
void store_worker_probe(struct store_worker *worker);
/* Finishes what is queued, then ends the thread and closes the store. */
void store_worker_stop(struct store_worker *worker);

#endif
