/* worker.c - the store thread. Owns the store, the queue and the table of who waits. Not: what a
 * batch means for its tasks (batch.c), what a claim or an outcome is (the store), or whom it concerns (the owners of the tasks).
 *
 * A batch whose result is UNCERTAIN is the last: every later task is told DOWN, and failed() is called once.
 *
 * Threads: submit, figures and probe from any; everything that touches the store from the store thread alone. */
#include "server/store/worker.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/store/backlog.h"
#include "server/store/batch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IDLE_TICK_MS = 2000, /* housekeeping looks in at least this often */
    DESK_TASKS = 32, /* a loop hands over so many at once, even in mid-turn: then both threads work at the same time */
    WAIT_MAX_MS = 30000, /* store_worker_options.wait_max_ms, when it is 0 */
};

const struct metrics_bounds store_commit_bounds = {
    METRICS_MICROSECONDS,
    14,
    { 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000 },
};
const struct metrics_bounds store_batch_bounds = { 1, 11, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 } };

struct store_worker {
    struct store *store;
    struct store_worker_options options;
    pthread_t thread;

    pthread_mutex_t lock; /* of everything down to the blank line */
    pthread_cond_t wake;
    struct store_batch queued;
    bool probe, stop;
    struct store_worker_figures figures;
    int64_t last_commit_ms; /* monotonic */
    struct backlog backlog; /* of the sweep */

    /* budgets: handed in, and not taken yet; without the lock */
    atomic_uint claims_waiting, reads_waiting;

    /* store thread only */
    int64_t sweep_at_ms; /* monotonic */
    struct waited *waited;
    bool told; /* failed() was called */
};

/* --- the thread --- */

/* Tells the owner of the process once, and keeps the figures. */
static void worker_note(struct store_worker *worker, enum store_result result, size_t tasks, bool wrote)
{
    bool down = result == STORE_UNCERTAIN || result == STORE_DOWN;
    pthread_mutex_lock(&worker->lock);
    struct store_worker_figures *figures = &worker->figures;
    figures->tasks += tasks;
    if (tasks > 0) {
        metrics_observe(&figures->batch_tasks, &store_batch_bounds, tasks);
    }
    figures->largest_batch = tasks > figures->largest_batch ? tasks : figures->largest_batch;
    figures->down = figures->down || down;
    figures->no_room = !store_takes_claims(worker->store);
    figures->waited_keys = (unsigned) waited_count(worker->waited);
    if (result == STORE_OK && wrote) {
        figures->commits++;
        metrics_observe(&figures->commit_time, &store_commit_bounds, (uint64_t) worker->store->commit_us);
        worker->last_commit_ms = clock_monotonic_ms();
    }
    pthread_mutex_unlock(&worker->lock);
    if (down && !worker->told) {
        worker->told = true;
        log_message(LOG_ERROR, "store", "the store is down until a restart: new commands are refused");
        if (worker->options.failed != NULL) {
            worker->options.failed(worker->options.context);
        }
    }
}

static void worker_sweep(struct store_worker *worker)
{
    struct store_sweep sweep = { .limit = worker->options.sweep_batch };
    int64_t now_ms = clock_monotonic_ms(); /* before it looks: what becomes due meanwhile is for the next one */
    enum store_result result = store_begin(worker->store);
    if (result == STORE_OK) {
        result = store_sweep_some(worker->store, &sweep);
        if (result == STORE_OK) {
            result = store_commit(worker->store);
        } else {
            store_rollback(worker->store);
        }
    }
    int64_t tell_ms = 0;
    /* While there is more it goes on between the batches; after an error it waits its time. */
    worker->sweep_at_ms = result == STORE_OK && sweep.more ? now_ms : now_ms + worker->options.sweep_every_ms;
    pthread_mutex_lock(&worker->lock);
    if (result == STORE_OK || sweep.found_due_ms != 0) {
        tell_ms = backlog_note(&worker->backlog, result == STORE_OK ? sweep.left_due_ms : sweep.found_due_ms,
                               store_now(worker->store));
    }
    if (result == STORE_OK) {
        worker->figures.sweep_expired += sweep.expired;
        worker->figures.sweep_forgotten += sweep.forgotten;
    }
    pthread_mutex_unlock(&worker->lock);
    if (sweep.expired + sweep.forgotten > 0) {
        log_message(LOG_DEBUG, "sweep", "expired=%u forgotten=%u result=%s", sweep.expired, sweep.forgotten,
                    store_result_name(result));
    }
    if (tell_ms > 0) {
        log_message(LOG_WARN, "sweep",
                    "the clean-up falls behind: its oldest record has been due for %lld s. The store grows; no answer "
                    "depends on it",
                    (long long) (tell_ms / 1000));
    }
    worker_note(worker, result, 0, sweep.expired + sweep.forgotten > 0);
}

/* Waits until there is something to do, and takes all of it. False: stopped, and nothing is left. */
static bool worker_take(struct store_worker *worker, struct store_batch *batch, bool *touch)
{
    int64_t sweep_ms = worker->sweep_at_ms - clock_monotonic_ms();
    struct timespec until = clock_wait_until(sweep_ms < IDLE_TICK_MS ? sweep_ms : IDLE_TICK_MS);
    pthread_mutex_lock(&worker->lock);
    int waited = 0;
    while (store_batch_count(&worker->queued) == 0 && !worker->probe && !worker->stop && waited == 0) {
        waited = pthread_cond_timedwait(&worker->wake, &worker->lock, &until);
    }
    store_batch_splice(batch, &worker->queued);
    atomic_fetch_sub(&worker->claims_waiting, (unsigned) batch->claims.count);
    atomic_fetch_sub(&worker->reads_waiting, (unsigned) batch->reads.count);
    *touch = worker->probe;
    worker->probe = false;
    bool more = store_batch_count(batch) > 0 || !worker->stop;
    pthread_mutex_unlock(&worker->lock);
    return more;
}

static void *worker_main(void *context)
{
    struct store_worker *worker = context;
    struct store_batch batch;
    bool touch;
    store_batch_init(&batch);
    while (worker_take(worker, &batch, &touch)) {
        size_t tasks = store_batch_count(&batch);
        if (tasks > 0 || touch) {
            bool wrote;
            enum store_result result = store_batch_run(worker->store, &batch, touch, &wrote);
            if (result == STORE_OK) {
                store_batch_settle_waiting(&batch, worker->waited, clock_monotonic_ms());
            }
            worker_note(worker, result, tasks, wrote);
            store_batch_post(&batch);
        }
        if (worker->told) {
            worker->sweep_at_ms = INT64_MAX; /* nothing more is stored */
            continue;
        }
        int64_t now_ms = clock_monotonic_ms();
        if (now_ms >= worker->sweep_at_ms) {
            worker_sweep(worker);
        }
        waited_tidy(worker->waited, now_ms);
        worker_note(worker, store_idle(worker->store), 0, false);
    }
    return NULL;
}

/* --- from any thread --- */

struct store_worker *store_worker_start(struct store *store, const struct store_worker_options *options)
{
    struct store_worker *worker = memory_new(sizeof *worker);
    pthread_condattr_t monotonic;
    worker->store = store;
    worker->options = *options;
    store_batch_init(&worker->queued);
    worker->last_commit_ms = clock_monotonic_ms();
    worker->sweep_at_ms = worker->last_commit_ms + options->sweep_every_ms;
    worker->figures.down = store->down;
    worker->figures.no_room = !store_takes_claims(store);
    worker->waited = waited_new(options->wait_max_ms > 0 ? options->wait_max_ms : WAIT_MAX_MS);
    int failed = pthread_mutex_init(&worker->lock, NULL);
    failed = failed != 0 ? failed : pthread_condattr_init(&monotonic);
    failed = failed != 0 ? failed : pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    failed = failed != 0 ? failed : pthread_cond_init(&worker->wake, &monotonic);
    failed = failed != 0 ? failed : pthread_create(&worker->thread, NULL, worker_main, worker);
    if (failed != 0) {
        log_message(LOG_ERROR, "store", "could not start the store thread: %s; the process ends", strerror(failed));
        abort();
    }
    (void) pthread_condattr_destroy(&monotonic);
    return worker;
}

/* Whether the task may be queued, and where: over the claims' budget a claim is only looked up. */
static struct list *worker_admit(struct store_worker *worker, struct store_task *task, struct store_batch *queues)
{
    task->result = STORE_FAILED;
    memset(&task->found, 0, sizeof task->found);
    memset(&task->after, 0, sizeof task->after);
    task->waited = false;
    task->key_hash = 0;
    task->listener = NULL;
    if (task->kind == STORE_TASK_FINISH) {
        return &queues->outcomes;
    }
    bool query = task->kind == STORE_TASK_LOOK_UP || (task->kind == STORE_TASK_CLAIM && task->claim.any_payload);
    if (!query) {
        if (atomic_fetch_add(&worker->claims_waiting, 1) < worker->options.claims_max) {
            return &queues->claims;
        }
        atomic_fetch_sub(&worker->claims_waiting, 1);
        task->claim.may_claim = false; /* no new work, but a repeat still gets its answer: on the readers' budget */
    }
    if (atomic_fetch_add(&worker->reads_waiting, 1) < worker->options.reads_max) {
        return &queues->reads;
    }
    atomic_fetch_sub(&worker->reads_waiting, 1);
    return NULL;
}

bool store_worker_submit(struct store_worker *worker, struct store_task *task)
{
    struct list *queue = worker_admit(worker, task, &worker->queued);
    if (queue == NULL) {
        return false;
    }
    pthread_mutex_lock(&worker->lock);
    bool first = store_batch_count(&worker->queued) == 0;
    list_append(queue, &task->message.node);
    if (first) {
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
    return true;
}

/* --- the desk of a loop --- */

struct store_desk {
    struct store_worker *worker;
    struct waited_listener listener;
    struct store_batch collected;
};

static void desk_hand_over(void *context)
{
    struct store_desk *desk = context;
    if (store_batch_count(&desk->collected) == 0) {
        return;
    }
    struct store_worker *worker = desk->worker;
    pthread_mutex_lock(&worker->lock);
    bool first = store_batch_count(&worker->queued) == 0;
    store_batch_splice(&worker->queued, &desk->collected);
    if (first) {
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
}

struct store_desk *store_desk_open(struct store_worker *worker, struct loop *loop,
                                   void (*ended)(void *context, const struct store_ended *ended), void *context)
{
    struct store_desk *desk = memory_new(sizeof *desk);
    desk->worker = worker;
    store_batch_init(&desk->collected);
    loop_on_idle(loop, desk_hand_over, desk);
    if (ended != NULL) {
        waited_listen(worker->waited, &desk->listener, loop, ended, context);
    }
    return desk;
}

bool store_desk_submit(struct store_desk *desk, struct store_task *task)
{
    struct list *queue = worker_admit(desk->worker, task, &desk->collected);
    if (queue == NULL) {
        return false;
    }
    task->listener = desk->listener.ended != NULL ? &desk->listener : NULL;
    list_append(queue, &task->message.node);
    if (store_batch_count(&desk->collected) >= DESK_TASKS) {
        desk_hand_over(desk);
    }
    return true;
}

void store_desk_close(struct store_desk *desk)
{
    if (desk->listener.ended != NULL) {
        waited_listener_fini(&desk->listener);
    }
    free(desk);
}

void store_worker_figures(struct store_worker *worker, struct store_worker_figures *figures)
{
    pthread_mutex_lock(&worker->lock);
    *figures = worker->figures;
    figures->queued = (unsigned) store_batch_count(&worker->queued);
    figures->queued_outcomes = (unsigned) worker->queued.outcomes.count;
    figures->queued_claims = (unsigned) worker->queued.claims.count;
    figures->queued_reads = (unsigned) worker->queued.reads.count;
    figures->last_commit_age_ms = clock_monotonic_ms() - worker->last_commit_ms;
    figures->sweep_behind_ms = backlog_behind_ms(&worker->backlog, store_now(worker->store));
    pthread_mutex_unlock(&worker->lock);
}

void store_worker_probe(struct store_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->probe = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

void store_worker_stop(struct store_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    (void) pthread_join(worker->thread, NULL);
    store_close(worker->store);
    waited_free(worker->waited);
    (void) pthread_cond_destroy(&worker->wake);
    (void) pthread_mutex_destroy(&worker->lock);
    free(worker);
}
