/* batch.c - see batch.h. A batch runs as one transaction, and again with less when it failed but certainly left nothing:
 *
 *   EVERYTHING --FULL--> NO_NEW_CLAIMS --FULL--> the same in the room that is kept for outcomes --FULL--> READS_ONLY
 *        |                                        (it begins here while that room is not there)
 *        `----FAILED, also of a later one---> all of it again without the tasks whose rows cannot be read (these are told FAILED)
 *                                           --FAILED, or none is such a task--> OUTCOMES_ONLY --FULL--> the same in that room
 *                                           --FAILED--> each outcome in a transaction of its own
 *                                                 nobody fails with a stranger's damaged row
 *
 * Replays and look-ups go on without any room (contract 11.5).
 *
 * UNCERTAIN ends it: every task of the batch is told so. */
#include "server/store/batch.h"

#include <stdlib.h>
#include <string.h>

enum { HOMES_MAX = 64 }; /* loops that one posting round serves; more just take another wake-up */

enum pass { PASS_EVERYTHING, PASS_NO_NEW_CLAIMS, PASS_READS_ONLY, PASS_OUTCOMES_ONLY };

void store_batch_init(struct store_batch *batch)
{
    list_init(&batch->outcomes);
    list_init(&batch->claims);
    list_init(&batch->reads);
}

size_t store_batch_count(const struct store_batch *batch)
{
    return batch->outcomes.count + batch->claims.count + batch->reads.count;
}

void store_batch_splice(struct store_batch *to, struct store_batch *from)
{
    list_splice(&to->outcomes, &from->outcomes);
    list_splice(&to->claims, &from->claims);
    list_splice(&to->reads, &from->reads);
}

static struct store_task *task_of(struct list_node *node)
{
    return LIST_ITEM(node, struct store_task, message.node);
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
static enum store_result batch_run_list(struct store *store, struct list *tasks, bool may_claim, bool *wrote)
{
    for (struct list_node *node = tasks->head.next; node != &tasks->head; node = node->next) {
        struct store_task *task = task_of(node);
        task->result = task_run(store, task, may_claim);
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

static void batch_clear(struct store_batch *batch, enum store_result result)
{
    batch_clear_list(&batch->outcomes, result);
    batch_clear_list(&batch->claims, result);
    batch_clear_list(&batch->reads, result);
}

static enum store_result batch_run_tasks(struct store *store, struct store_batch *batch, enum pass pass, bool *wrote)
{
    enum store_result result = STORE_OK;
    if (pass != PASS_READS_ONLY) {
        result = batch_run_list(store, &batch->outcomes, true, wrote);
    }
    if (pass != PASS_OUTCOMES_ONLY) {
        if (result == STORE_OK) {
            result = batch_run_list(store, &batch->claims, pass == PASS_EVERYTHING, wrote);
        }
        if (result == STORE_OK) {
            result = batch_run_list(store, &batch->reads, true, wrote);
        }
    }
    return result;
}

static enum store_result batch_pass(struct store *store, struct store_batch *batch, enum pass pass, bool touch,
                                    bool *wrote)
{
    *wrote = false;
    batch_clear(batch, pass == PASS_READS_ONLY ? STORE_FULL : STORE_FAILED); /* for what this pass leaves out */
    enum store_result result = store_begin(store);
    if (result != STORE_OK) {
        return result;
    }
    result = batch_run_tasks(store, batch, pass, wrote);
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

static enum store_result batch_run_whole(struct store *store, struct store_batch *batch, bool touch, bool *wrote)
{
    enum pass first = store_takes_claims(store) ? PASS_EVERYTHING : PASS_NO_NEW_CLAIMS;
    enum store_result result = batch_pass(store, batch, first, touch, wrote);
    if (result == STORE_FULL) {
        result = first == PASS_EVERYTHING ? batch_pass(store, batch, PASS_NO_NEW_CLAIMS, touch, wrote) : result;
        if (result == STORE_FULL && store_make_room(store)) {
            result = batch_pass(store, batch, PASS_NO_NEW_CLAIMS, touch, wrote);
        }
        if (result == STORE_FULL) {
            result = batch_pass(store, batch, PASS_READS_ONLY, touch, wrote);
        }
    }
    return result;
}

/* --- one that fails alone --- */

/* Takes out what fails also when it is only looked up, in a transaction of its own (docs/facts.md 68) that writes nothing. */
static void batch_leave_out(struct store *store, struct list *tasks, struct list *left_out)
{
    struct list kept;
    list_init(&kept);
    for (struct list_node *node; (node = list_take_first(tasks)) != NULL;) {
        struct store_task *task = task_of(node);
        task_clear(task, STORE_FAILED); /* the pass that failed may have found something for it */
        enum store_result result = store_begin(store);
        if (result == STORE_OK) {
            result = task_run(store, task, false);
            store_rollback(store);
        }
        task_clear(task, STORE_FAILED);
        list_append(result == STORE_FAILED ? left_out : &kept, node);
    }
    list_splice(tasks, &kept);
}

/* OK: at least one of them is written. */
static enum store_result batch_run_each_outcome(struct store *store, struct store_batch *batch, bool *wrote)
{
    struct list_node *end = &batch->outcomes.head;
    *wrote = false;
    for (struct list_node *node = end->next; node != end; node = node->next) {
        struct store_task *task = task_of(node);
        task_clear(task, STORE_FAILED);
        enum store_result result = store_begin(store);
        if (result == STORE_OK) {
            task->result = task_run(store, task, true);
            bool good = task->result == STORE_OK || task->result == STORE_STALE;
            result = good ? store_commit(store) : task->result;
            store_rollback(store);
        }
        if (result != STORE_OK) {
            task_clear(task, result);
        }
        if (result == STORE_UNCERTAIN) {
            return result;
        }
        *wrote = *wrote || task->result == STORE_OK;
    }
    return *wrote ? STORE_OK : STORE_FAILED;
}

static enum store_result batch_run_outcomes(struct store *store, struct store_batch *batch, bool *wrote)
{
    enum store_result result = batch_pass(store, batch, PASS_OUTCOMES_ONLY, false, wrote);
    if (result == STORE_FULL && store_make_room(store)) {
        result = batch_pass(store, batch, PASS_OUTCOMES_ONLY, false, wrote);
    }
    return result;
}

enum store_result store_batch_run(struct store *store, struct store_batch *batch, bool touch, bool *wrote)
{
    struct list left_out;
    list_init(&left_out);
    enum store_result result = batch_run_whole(store, batch, touch, wrote);
    if (result == STORE_FAILED && batch->claims.count + batch->reads.count > 0 && store_batch_count(batch) > 1) {
        batch_leave_out(store, &batch->claims, &left_out);
        batch_leave_out(store, &batch->reads, &left_out);
        result = left_out.count > 0 ? batch_run_whole(store, batch, touch, wrote) : result;
    }
    if (result == STORE_FAILED && batch->outcomes.count > 0 && store_batch_count(batch) > batch->outcomes.count) {
        result = batch_run_outcomes(store, batch, wrote);
    }
    if (result == STORE_FAILED && batch->outcomes.count > 1) {
        result = batch_run_each_outcome(store, batch, wrote);
    }
    list_splice(&batch->claims, &left_out);
    if (result != STORE_OK) {
        batch_clear(batch, result);
    }
    return result;
}

/* --- who waits --- */

static bool task_waits(const struct store_task *task)
{
    if (task->listener == NULL || task->result != STORE_OK || !task->claim.may_wait) {
        return false;
    }
    if (task->kind == STORE_TASK_CLAIM) {
        return task->found.decision.verdict == VERDICT_WAIT;
    }
    /* Past its deadline a record in progress is told as unknown, which is an answer. */
    return task->kind == STORE_TASK_LOOK_UP &&
           record_state_at(&task->found.record, task->found.now_ms) == RECORD_IN_PROGRESS;
}

static void batch_take_down(struct list *tasks, struct waited *waited, int64_t now_ms)
{
    for (struct list_node *node = tasks->head.next; node != &tasks->head; node = node->next) {
        struct store_task *task = task_of(node);
        if (task_waits(task)) {
            struct view key = task->found.key != NULL ? view_of(task->found.key) : task->claim.key;
            task->key_hash = waited_hash(waited, task->claim.tenant, key);
            task->waited = waited_add(waited, task->key_hash, task->listener, now_ms);
        }
    }
}

/* Outcomes ran first: whoever found its command in progress within the same batch waits for a later execution, and must not be told of these. That
 * the messages go out before the results keeps them apart on the loop as well. */
void store_batch_settle_waiting(struct store_batch *batch, struct waited *waited, int64_t now_ms)
{
    struct list *outcomes = &batch->outcomes;
    for (struct list_node *node = outcomes->head.next; node != &outcomes->head; node = node->next) {
        const struct store_task *task = task_of(node);
        if (task->result == STORE_OK && waited_count(waited) > 0) {
            enum outcome_kind kind = task->finish.outcome.kind;
            struct store_ended ended = {
                .key_hash = waited_hash(waited, task->finish.tenant, task->finish.key),
                .execution = task->finish.execution,
                .outcome = record_outcome_counts(&task->after, kind) ? kind : OUTCOME_UNKNOWN,
                .answer = task->answer,
            };
            waited_end(waited, &ended);
        }
    }
    batch_take_down(&batch->claims, waited, now_ms);
    batch_take_down(&batch->reads, waited, now_ms);
}

/* --- posting --- */

static void task_deliver(struct loop_message *message)
{
    struct store_task *task = LIST_ITEM(message, struct store_task, message);
    task->done(task);
}

void store_batch_post(struct store_batch *batch)
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
