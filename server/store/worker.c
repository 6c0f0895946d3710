/* worker.c - the store thread. Owns the store, the three queues and what a failed batch means for its tasks. Not:
 * what a claim or an outcome is (the store), or whom it concerns (the owners of the tasks).
 *
 * A batch runs as one transaction, and again with less when it failed but certainly left nothing:
 *
 *   EVERYTHING --FULL--> NO_NEW_CLAIMS --FULL--> READS_ONLY     outcomes first keep what room is left; replays and
 *        |                                                      look-ups go on without any (contract section 11)
 *        `----FAILED---> OUTCOMES_ONLY                          an outcome does not fail with a stranger's damaged row
 *
 * UNCERTAIN ends it: every task of the batch is told so, every later one DOWN, and failed() is called once.
 *
 * Threads: submit, figures and probe from any; everything that touches the store from the store thread alone. */
#include "server/store/worker.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IDLE_TICK_MS = 2000, /* housekeeping looks in at least this often */
    DESK_TASKS = 32, /* a loop hands over so many at once, even in mid-turn: then both threads work at the same time */
    HOMES_MAX = 64   /* loops that one posting round serves; more just take another wake-up */
};

enum pass { PASS_EVERYTHING, PASS_NO_NEW_CLAIMS, PASS_READS_ONLY, PASS_OUTCOMES_ONLY };

/* The three queues, or one batch of them: outcomes run first. */
struct task_queues {
    struct list outcomes, claims, reads;
};

struct store_worker {
    struct store *store;
    struct store_worker_options options;
    pthread_t thread;

    pthread_mutex_t lock; /* of everything down to the blank line */
    pthread_cond_t wake;
    struct task_queues queued;
    bool probe, stop;
    struct store_worker_figures figures;
    int64_t last_commit_ms; /* monotonic */

    /* budgets: handed in, and not taken yet; without the lock */
    atomic_uint claims_waiting, reads_waiting;

    /* store thread only */
    int64_t sweep_at_ms; /* monotonic */
    bool told;           /* failed() was called */
};

static void task_queues_init(struct task_queues *queues)
{
    list_init(&queues->outcomes);
    list_init(&queues->claims);
    list_init(&queues->reads);
}

static size_t task_queues_count(const struct task_queues *queues)
{
    return queues->outcomes.count + queues->claims.count + queues->reads.count;
}

static struct store_task *task_of(struct list_node *node)
{
    return LIST_ITEM(node, struct store_task, message.node);
}

static void task_deliver(struct loop_message *message)
{
    struct store_task *task = LIST_ITEM(message, struct store_task, message);
    task->done(task);
}

/* --- one task --- */

/* Forgets what an earlier pass found. */
static void task_clear(struct store_task *task, enum store_result result)
{
    free(task->found.response);
    free(task->found.request);
    free(task->found.key);
    memset(&task->found, 0, sizeof task->found);
    memset(&task->after, 0, sizeof task->after);
    task->result = result;
}

/* A claim or void of a pass that may not write: FULL when it would have. */
static enum store_result task_run_unwritten(struct store *store, struct store_task *task)
{
    struct store_claim claim = task->claim;
    claim.may_claim = false;
    if (task->kind == STORE_TASK_CLAIM) {
        enum store_result result = store_claim_key(store, &claim, &task->found);
        bool wanted = task->claim.may_claim && task->found.decision.verdict == VERDICT_FORWARD;
        return result == STORE_OK && wanted ? STORE_FULL : result;
    }
    enum store_result result = store_void_key(store, &claim, &task->retention, &task->found);
    enum record_state state = record_state_at(&task->found.record, store_now(store));
    bool wanted = task->claim.may_claim && (state == RECORD_ABSENT || state == RECORD_RELEASED);
    return result == STORE_OK && wanted ? STORE_FULL : result;
}

static enum store_result task_run(struct store *store, struct store_task *task, bool may_claim)
{
    switch (task->kind) {
    case STORE_TASK_FINISH:
        return store_finish_command(store, &task->finish, &task->after);
    case STORE_TASK_LOOK_UP:
        return task->look_up_id ? store_look_up_id(store, task->claim.tenant, task->claim.command_id, &task->found)
                                : store_look_up(store, task->claim.tenant, task->claim.key, &task->found);
    case STORE_TASK_CLAIM:
        return may_claim ? store_claim_key(store, &task->claim, &task->found) : task_run_unwritten(store, task);
    case STORE_TASK_VOID:
        return may_claim ? store_void_key(store, &task->claim, &task->retention, &task->found)
                         : task_run_unwritten(store, task);
    }
    return STORE_FAILED;
}

/* --- one batch --- */

/* Runs a list within the transaction. STORE_FULL of task_run_unwritten concerns its task alone. */
static enum store_result batch_run_list(struct store_worker *worker, struct list *tasks, bool may_claim, bool *wrote)
{
    for (struct list_node *node = tasks->head.next; node != &tasks->head; node = node->next) {
        struct store_task *task = task_of(node);
        task->result = task_run(worker->store, task, may_claim);
        bool alone = task->result == STORE_FULL && !may_claim && task->kind != STORE_TASK_FINISH;
        if (task->result != STORE_OK && task->result != STORE_STALE && !alone) {
            return task->result;
        }
        *wrote = *wrote || task->found.claimed || (task->kind == STORE_TASK_FINISH && task->result == STORE_OK);
    }
    return STORE_OK;
}

static void batch_clear_list(struct list *tasks, enum store_result result)
{
    for (struct list_node *node = tasks->head.next; node != &tasks->head; node = node->next) {
        task_clear(task_of(node), result);
    }
}

static void batch_clear(struct task_queues *batch, enum store_result result)
{
    batch_clear_list(&batch->outcomes, result);
    batch_clear_list(&batch->claims, result);
    batch_clear_list(&batch->reads, result);
}

static enum store_result batch_run_tasks(struct store_worker *worker, struct task_queues *batch, enum pass pass,
                                         bool *wrote)
{
    enum store_result result = STORE_OK;
    if (pass != PASS_READS_ONLY) {
        result = batch_run_list(worker, &batch->outcomes, true, wrote);
    }
    if (pass != PASS_OUTCOMES_ONLY) {
        if (result == STORE_OK) {
            result = batch_run_list(worker, &batch->claims, pass == PASS_EVERYTHING, wrote);
        }
        if (result == STORE_OK) {
            result = batch_run_list(worker, &batch->reads, true, wrote);
        }
    }
    return result;
}

static enum store_result batch_pass(struct store_worker *worker, struct task_queues *batch, enum pass pass, bool touch,
                                    bool *wrote)
{
    struct store *store = worker->store;
    *wrote = false;
    batch_clear(batch, pass == PASS_READS_ONLY ? STORE_FULL : STORE_FAILED); /* for what this pass leaves out */
    enum store_result result = store_begin(store);
    if (result != STORE_OK) {
        return result;
    }
    result = batch_run_tasks(worker, batch, pass, wrote);
    if (result == STORE_OK && touch && pass == PASS_EVERYTHING) {
        result = store_touch(store);
        *wrote = true;
    }
    if (result == STORE_OK) {
        return store_commit(store);
    }
    store_rollback(store);
    return result;
}

/* Afterwards every task has its result. */
static enum store_result batch_run(struct store_worker *worker, struct task_queues *batch, bool touch, bool *wrote)
{
    enum store_result result = batch_pass(worker, batch, PASS_EVERYTHING, touch, wrote);
    if (result == STORE_FULL) {
        result = batch_pass(worker, batch, PASS_NO_NEW_CLAIMS, touch, wrote);
        if (result == STORE_FULL) {
            result = batch_pass(worker, batch, PASS_READS_ONLY, touch, wrote);
        }
    } else if (result == STORE_FAILED && batch->outcomes.count > 0 &&
               task_queues_count(batch) > batch->outcomes.count) {
        result = batch_pass(worker, batch, PASS_OUTCOMES_ONLY, touch, wrote);
    }
    if (result != STORE_OK) {
        batch_clear(batch, result);
    }
    return result;
}

/* Hands every task to the loop that it came from: one wake-up per loop. */
static void batch_post(struct task_queues *batch)
{
    struct list rest;
    list_init(&rest);
    list_splice(&rest, &batch->outcomes);
    list_splice(&rest, &batch->claims);
    list_splice(&rest, &batch->reads);
    while (rest.count > 0) {
        struct loop *homes[HOMES_MAX];
        struct list messages[HOMES_MAX], later;
        size_t count = 0;
        list_init(&later);
        for (struct list_node *node; (node = list_take_first(&rest)) != NULL;) {
            struct store_task *task = task_of(node);
            size_t at = 0;
            while (at < count && homes[at] != task->home) {
                at++;
            }
            if (at == count && count < HOMES_MAX) {
                homes[count] = task->home;
                list_init(&messages[count++]);
            }
            task->message.deliver = task_deliver;
            list_append(at < count ? &messages[at] : &later, node);
        }
        for (size_t i = 0; i < count; i++) {
            loop_post_list(homes[i], &messages[i]);
        }
        list_splice(&rest, &later);
    }
}

/* --- the thread --- */

/* Tells the owner of the process once, and keeps the figures. */
static void worker_note(struct store_worker *worker, enum store_result result, size_t tasks, bool wrote)
{
    bool down = result == STORE_UNCERTAIN || result == STORE_DOWN;
    pthread_mutex_lock(&worker->lock);
    struct store_worker_figures *figures = &worker->figures;
    figures->tasks += tasks;
    figures->largest_batch = tasks > figures->largest_batch ? tasks : figures->largest_batch;
    figures->down = figures->down || down;
    if (result == STORE_OK && wrote) {
        figures->commits++;
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
    enum store_result result = store_begin(worker->store);
    if (result == STORE_OK) {
        result = store_sweep_some(worker->store, &sweep);
        if (result == STORE_OK) {
            result = store_commit(worker->store);
        } else {
            store_rollback(worker->store);
        }
    }
    int64_t now_ms = clock_monotonic_ms();
    /* While there is more it goes on between the batches; after an error it waits its time. */
    worker->sweep_at_ms = result == STORE_OK && sweep.more ? now_ms : now_ms + worker->options.sweep_every_ms;
    if (result == STORE_OK) {
        pthread_mutex_lock(&worker->lock);
        worker->figures.sweep_expired += sweep.expired;
        worker->figures.sweep_forgotten += sweep.forgotten;
        pthread_mutex_unlock(&worker->lock);
    }
    if (sweep.expired + sweep.forgotten > 0) {
        log_message(LOG_DEBUG, "sweep", "expired=%u forgotten=%u result=%s", sweep.expired, sweep.forgotten,
                    store_result_name(result));
    }
    worker_note(worker, result, 0, sweep.expired + sweep.forgotten > 0);
}

/* Waits until there is something to do, and takes all of it. False: stopped, and nothing is left. */
static bool worker_take(struct store_worker *worker, struct task_queues *batch, bool *touch)
{
    int64_t until_ms = clock_monotonic_ms() + IDLE_TICK_MS;
    until_ms = worker->sweep_at_ms < until_ms ? worker->sweep_at_ms : until_ms;
    struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
    pthread_mutex_lock(&worker->lock);
    int waited = 0;
    while (task_queues_count(&worker->queued) == 0 && !worker->probe && !worker->stop && waited == 0) {
        waited = pthread_cond_timedwait(&worker->wake, &worker->lock, &until);
    }
    list_splice(&batch->outcomes, &worker->queued.outcomes);
    list_splice(&batch->claims, &worker->queued.claims);
    list_splice(&batch->reads, &worker->queued.reads);
    atomic_fetch_sub(&worker->claims_waiting, (unsigned) batch->claims.count);
    atomic_fetch_sub(&worker->reads_waiting, (unsigned) batch->reads.count);
    *touch = worker->probe;
    worker->probe = false;
    bool more = task_queues_count(batch) > 0 || !worker->stop;
    pthread_mutex_unlock(&worker->lock);
    return more;
}

static void *worker_main(void *context)
{
    struct store_worker *worker = context;
    struct task_queues batch;
    bool touch;
    task_queues_init(&batch);
    while (worker_take(worker, &batch, &touch)) {
        size_t tasks = task_queues_count(&batch);
        if (tasks > 0 || touch) {
            bool wrote;
            enum store_result result = batch_run(worker, &batch, touch, &wrote);
            worker_note(worker, result, tasks, wrote);
            batch_post(&batch);
        }
        if (worker->told) {
            worker->sweep_at_ms = INT64_MAX; /* nothing more is stored */
            continue;
        }
        if (clock_monotonic_ms() >= worker->sweep_at_ms) {
            worker_sweep(worker);
        }
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
    task_queues_init(&worker->queued);
    worker->last_commit_ms = clock_monotonic_ms();
    worker->sweep_at_ms = worker->last_commit_ms + options->sweep_every_ms;
    worker->figures.down = store->down;
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
static struct list *worker_admit(struct store_worker *worker, struct store_task *task, struct task_queues *queues)
{
    task->result = STORE_FAILED;
    memset(&task->found, 0, sizeof task->found);
    memset(&task->after, 0, sizeof task->after);
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
    bool first = task_queues_count(&worker->queued) == 0;
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
    struct task_queues collected;
};

static void desk_hand_over(void *context)
{
    struct store_desk *desk = context;
    if (task_queues_count(&desk->collected) == 0) {
        return;
    }
    struct store_worker *worker = desk->worker;
    pthread_mutex_lock(&worker->lock);
    bool first = task_queues_count(&worker->queued) == 0;
    list_splice(&worker->queued.outcomes, &desk->collected.outcomes);
    list_splice(&worker->queued.claims, &desk->collected.claims);
    list_splice(&worker->queued.reads, &desk->collected.reads);
    if (first) {
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
}

struct store_desk *store_desk_open(struct store_worker *worker, struct loop *loop)
{
    struct store_desk *desk = memory_new(sizeof *desk);
    desk->worker = worker;
    task_queues_init(&desk->collected);
    loop_on_idle(loop, desk_hand_over, desk);
    return desk;
}

bool store_desk_submit(struct store_desk *desk, struct store_task *task)
{
    struct list *queue = worker_admit(desk->worker, task, &desk->collected);
    if (queue == NULL) {
        return false;
    }
    list_append(queue, &task->message.node);
    if (task_queues_count(&desk->collected) >= DESK_TASKS) {
        desk_hand_over(desk);
    }
    return true;
}

void store_desk_close(struct store_desk *desk)
{
    free(desk);
}

void store_worker_figures(struct store_worker *worker, struct store_worker_figures *figures)
{
    pthread_mutex_lock(&worker->lock);
    *figures = worker->figures;
    figures->queued = (unsigned) task_queues_count(&worker->queued);
    figures->last_commit_age_ms = clock_monotonic_ms() - worker->last_commit_ms;
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
    (void) pthread_cond_destroy(&worker->wake);
    (void) pthread_mutex_destroy(&worker->lock);
    free(worker);
}
