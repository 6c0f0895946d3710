/* walk_store.c - see walk_store.h. */
#include "tests/model/walk_store.h"

static const struct retention retention = { .ttl_ms = WALK_TTL_MS, .tombstone_ttl_ms = WALK_TOMBSTONE_MS };

void walk_violation(struct walk_store *store, const char *text)
{
    if (store->violation == NULL) {
        store->violation = text;
    }
}

void walk_store_begin(struct walk_store *store, const struct decision_table *decisions)
{
    memset(store, 0, sizeof(*store));
    store->decisions = decisions;
    store->now_ms = 1000;
}

void walk_store_submit(struct walk_store *store, unsigned exchange, const struct walk_task *task)
{
    if (store->tasks[exchange].queued || store->flying[exchange].queued) {
        walk_violation(store, "an exchange asked the store twice at once");
        return;
    }
    store->tasks[exchange] = *task;
    store->tasks[exchange].queued = true;
}

static void post(struct walk_store *store, const struct walk_message *message)
{
    if (store->count == WALK_MESSAGES) {
        walk_violation(store, "the queue of the loop overflowed");
        return;
    }
    store->messages[(store->first + store->count++) % WALK_MESSAGES] = *message;
}

static void post_end(struct walk_store *store, unsigned key, uint32_t execution, const struct record_outcome *outcome,
                     bool recorded)
{
    struct walk_end end = { .execution = execution,
                            .told = recorded,
                            .released = recorded && outcome->kind == OUTCOME_NOT_EXECUTED,
                            .answer = outcome->kind == OUTCOME_UNKNOWN ? 0 : outcome->response_status };
    post(store, &(struct walk_message){ .exchange = -1, .key = key, .end = end });
}

bool walk_store_take(struct walk_store *store, struct walk_message *message)
{
    if (store->count == 0) {
        return false;
    }
    *message = store->messages[store->first];
    store->first = (store->first + 1) % WALK_MESSAGES;
    store->count--;
    return true;
}

bool walk_store_will_tell(const struct walk_store *store, unsigned key, uint32_t execution)
{
    for (unsigned i = 0; i < store->count; i++) {
        const struct walk_message *message = &store->messages[(store->first + i) % WALK_MESSAGES];
        if (message->exchange < 0 && message->key == key && message->end.execution == execution) {
            return true;
        }
    }
    return false;
}

bool walk_store_has_ended(const struct walk_store *store, unsigned key, uint32_t execution)
{
    const struct record *record = &store->durable[key];
    return record->state != RECORD_IN_PROGRESS || record->execution != execution;
}

bool walk_store_has_released(const struct walk_store *store, unsigned key, uint32_t execution)
{
    const struct record *record = &store->durable[key];
    return record->execution > execution || /* only a released command is claimed again */
           (record->execution == execution && (record->state == RECORD_RELEASED || record->state == RECORD_VOIDED));
}

/* The atomic step of a claim, on the batch: look up, decide, claim. */
static void apply_claim(struct walk_store *store, struct walk_task *task)
{
    struct record *record = &store->batch[task->key];
    struct asked asked = { &task->fingerprint, &task->credential, task->may_wait };
    task->decision = decide_by(store->decisions, record, &asked, store->now_ms);
    task->executed = record_executed_at(record, store->now_ms);
    task->response_status = record->response_status;
    store->verdicts[task->decision.verdict]++;
    switch (task->decision.verdict) {
    case VERDICT_IMPOSSIBLE:
        walk_violation(store, "decide() met an impossible cell");
        break;
    case VERDICT_FORWARD:
        task->event = EVENT_FOUND; /* a refusal, when new work is not taken */
        if (task->may_claim) {
            uint8_t id[COMMAND_ID_BYTES] = { 0 };
            memcpy(id, &store->ids, sizeof(store->ids));
            store->ids++;
            if (!record_claim(record, id, &task->fingerprint, &task->credential, WALK_RUN_MS, store->now_ms)) {
                walk_violation(store, "decide() forwards a key whose record cannot be claimed");
            }
            task->execution = record->execution;
            task->event = EVENT_CLAIMED;
        }
        break;
    case VERDICT_WAIT:
        task->event = EVENT_MUST_WAIT;
        task->execution = record->execution;
        break;
    default:
        task->event = EVENT_FOUND;
        break;
    }
}

static void apply_finish(struct walk_store *store, struct walk_task *task)
{
    struct record *record = &store->batch[task->key];
    /* Told as unknown from its deadline on: a not-executed that comes later leaves it so (section 6). */
    bool too_late = task->outcome.kind == OUTCOME_NOT_EXECUTED && store->now_ms >= record->deadline_ms;
    task->event = EVENT_RECORDED;
    if (!record_finish(record, task->execution, &task->outcome, &retention, store->now_ms)) {
        task->event = EVENT_RECORD_FAILED;
        walk_violation(store, "an execution that holds the command could not be finished");
    }
    if (record_outcome_counts(record, task->outcome.kind) == too_late) {
        walk_violation(store, "not executed was not recorded as what it counts for");
    }
    task->outcome.kind = too_late ? OUTCOME_UNKNOWN : task->outcome.kind; /* what counts */
}

static void batch_apply(struct walk_store *store)
{
    memcpy(store->batch, store->durable, sizeof(store->batch));
    for (int finishes = 1; finishes >= 0; finishes--) { /* outcomes first */
        for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
            if (!store->tasks[i].queued || store->tasks[i].finish != (finishes == 1)) {
                continue;
            }
            store->flying[i] = store->tasks[i];
            store->tasks[i].queued = false;
            if (finishes == 1) {
                apply_finish(store, &store->flying[i]);
            } else {
                apply_claim(store, &store->flying[i]);
            }
        }
    }
    store->in_flight = true;
}

/* What was told is never taken back, and voided means never. */
static void durable_check(struct walk_store *store)
{
    for (unsigned key = 0; key < WALK_KEYS; key++) {
        const struct walk_truth *truth = &store->truth[key];
        const struct record *record = &store->durable[key];
        if (truth->told_status != 0 &&
            (record->state != RECORD_COMPLETED || record->response_status != truth->told_status)) {
            walk_violation(store, "an outcome that was told is not recorded any more");
        }
        if (truth->told_voided && record->state != RECORD_VOIDED) {
            walk_violation(store, "a voided key came back");
        }
        if ((record->state == RECORD_RELEASED || record->state == RECORD_VOIDED) &&
            truth->effects + truth->loose + truth->running > 0) {
            walk_violation(store, "recorded as not executed, but it acted or still may");
        }
    }
}

static void batch_end(struct walk_store *store, bool durable, bool told)
{
    if (durable) {
        memcpy(store->durable, store->batch, sizeof(store->durable));
        durable_check(store);
    }
    store->in_flight = false;
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        struct walk_task *task = &store->flying[i];
        if (!task->queued) {
            continue;
        }
        task->queued = false;
        if (!told) { /* look-ups fail with their batch too */
            task->event = task->finish ? EVENT_RECORD_FAILED : EVENT_CLAIM_FAILED;
        }
        post(store, &(struct walk_message){ .exchange = (int) i, .key = task->key, .task = *task });
    }
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        const struct walk_task *task = &store->flying[i];
        if (task->finish && task->event == EVENT_RECORDED && told) {
            post_end(store, task->key, task->execution, &task->outcome, true);
        }
        store->flying[i] = (struct walk_task){ 0 };
    }
}

bool walk_store_step(struct walk_store *store, struct suite_random *random, bool may_fail)
{
    bool any = false;
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        any = any || store->tasks[i].queued;
    }
    if (store->in_flight) {
        unsigned luck = may_fail ? suite_random_below(random, 200) : 199;
        if (luck >= 12) {
            batch_end(store, true, true);
        } else if (luck >= 2) {
            batch_end(store, false, false);
        } else { /* UNCERTAIN: on the disk or not, told as failed, and the store is down */
            store->down = true;
            batch_end(store, luck == 0, false);
        }
        return true;
    }
    if (any && store->down) {
        memcpy(store->flying, store->tasks, sizeof(store->flying));
        memset(store->tasks, 0, sizeof(store->tasks));
        batch_end(store, false, false);
        return true;
    }
    if (any) {
        batch_apply(store);
    }
    return any;
}

void walk_store_act(struct walk_store *store, unsigned key)
{
    if (++store->truth[key].effects > 1) {
        walk_violation(store, "a command took effect twice");
    }
    if (store->truth[key].told_voided) {
        walk_violation(store, "a voided command took effect");
    }
}

static void aside_void(struct walk_store *store, unsigned key)
{
    struct record *record = &store->durable[key];
    uint8_t id[COMMAND_ID_BYTES] = { 0xFF };
    struct credential credential = { .present = true, .digest = { 1 } };
    if (record_void(record, id, &credential, &retention, store->now_ms)) {
        store->truth[key].told_voided = true;
        durable_check(store);
    }
}

void walk_store_aside(struct walk_store *store, struct suite_random *random)
{
    unsigned key = suite_random_below(random, WALK_KEYS);
    struct walk_truth *truth = &store->truth[key];
    bool idle = !store->in_flight && !store->down;
    unsigned luck = suite_random_below(random, 40);
    if (truth->loose > 0 && luck < 20) {
        truth->loose--;
        if (truth->effects == 0 && luck < 10) { /* a copy that comes late, or behind a gateway */
            walk_store_act(store, key);
        }
    } else if (truth->retry && idle) {
        truth->retry = false;
        bool done = record_finish(&store->durable[key], truth->retry_execution, &truth->retry_outcome, &retention,
                                  store->now_ms);
        durable_check(store);
        if (done && !record_outcome_counts(&store->durable[key], truth->retry_outcome.kind)) {
            truth->retry_outcome = (struct record_outcome){ .kind = OUTCOME_UNKNOWN };
        }
        post_end(store, key, truth->retry_execution, &truth->retry_outcome, done);
    } else if (idle && luck >= 37) {
        aside_void(store, key);
    }
}

void walk_store_restart(struct walk_store *store, struct suite_random *random)
{
    static const struct record_outcome crash = { .kind = OUTCOME_UNKNOWN, .cause = CAUSE_CRASH };
    if (store->in_flight && suite_random_below(random, 2) == 0) {
        memcpy(store->durable, store->batch, sizeof(store->durable));
    }
    for (unsigned key = 0; key < WALK_KEYS; key++) {
        struct record *record = &store->durable[key];
        if (record->state == RECORD_IN_PROGRESS) {
            (void) record_finish(record, record->execution, &crash, &retention, store->now_ms);
        }
        store->truth[key].retry = false;
        store->truth[key].loose += store->truth[key].running;
        store->truth[key].running = 0;
    }
    store->in_flight = store->down = false;
    memset(store->tasks, 0, sizeof(store->tasks));
    memset(store->flying, 0, sizeof(store->flying));
    store->count = 0;
    durable_check(store);
}

void walk_store_pass(struct walk_store *store, int64_t span_ms)
{
    store->now_ms += span_ms;
    for (unsigned key = 0; key < WALK_KEYS; key++) {
        if (record_state_at(&store->durable[key], store->now_ms) == RECORD_ABSENT) {
            /* Retention outlasts every request in the network and in the handler, so nothing is loose any more. */
            store->truth[key] = (struct walk_truth){ 0 };
        }
    }
}

bool walk_store_renew(struct walk_store *store, unsigned key)
{
    if (store->in_flight || store->down) {
        return false;
    }
    for (unsigned i = 0; i < store->count; i++) {
        if (store->messages[(store->first + i) % WALK_MESSAGES].key == key) {
            return false;
        }
    }
    store->durable[key] = (struct record){ .state = RECORD_ABSENT };
    store->truth[key] = (struct walk_truth){ 0 };
    return true;
}
