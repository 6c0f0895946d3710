/* walk_waiters.c - who waits for whom in the random walk, as a conductor must keep it (docs/contract.md sections 6 and 10), with the
 * mistakes of enum walk_fault on demand; and what must hold of whoever waits. */
#include "tests/model/walk_world.h"

static bool has_fault(const struct world *world, enum walk_fault fault)
{
    return world->rules->fault == fault;
}

void walk_waiter_join(struct world *world, struct exchange *x)
{
    struct waiter *waiter = &x->waiter;
    bool again = waiter->waited;
    int64_t now_ms = world->store.now_ms;
    if (again) {
        world->figures.waits_again++;
    } else {
        world->figures.waits++;
        waiter->span_ms = 1 + below(world, chance(world, 50) ? 40 : 400);
        waiter->ends_ms = waiter->promised_ms = now_ms + waiter->span_ms;
    }
    waiter->joined = waiter->waited = true;
    waiter->rival = x->task.execution;
    waiter->timer_ms = again && has_fault(world, WALK_FAULT_TIMER_WHOLE) ? now_ms + waiter->span_ms : waiter->ends_ms;
    x->answer_timer = !(again && has_fault(world, WALK_FAULT_TIMER_LOST));
    x->due_gone = x->client == CLIENT_AWAY;
}

static void wake(struct world *world, struct exchange *x, const struct walk_end *end)
{
    struct waiter *waiter = &x->waiter;
    waiter->joined = false;
    if (end->released) {
        waiter->shared = end->answer;
        walk_feed(world, x, EVENT_RIVAL_RELEASED);
        return;
    }
    if (x->phase == PHASE_WAITING && end->told) {
        waiter->awaited = end->answer;
    }
    walk_feed(world, x, EVENT_RIVAL_ENDED);
}

void walk_waiters_wake(struct world *world, unsigned key, const struct walk_end *end)
{
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        struct exchange *x = &world->exchanges[i];
        if (!x->live || !x->waiter.joined || x->key != key) {
            continue;
        }
        /* One that joined behind the next claim waits for that: this end is not its own. */
        bool own = x->waiter.rival == end->execution;
        bool by_key = end->released && has_fault(world, WALK_FAULT_RELEASED_BY_KEY);
        bool forgotten = has_fault(world, WALK_FAULT_END_NOT_TOLD) && chance(world, 10);
        if ((own || by_key) && !forgotten) {
            wake(world, x, end);
        }
    }
}

void walk_waiters_call(struct world *world, unsigned key)
{
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        struct exchange *x = &world->exchanges[i];
        if (x->live && x->waiter.joined && x->key == key) {
            wake(world, x, &(struct walk_end){ .execution = x->waiter.rival });
        }
    }
}

void walk_waiter_check(struct world *world, struct exchange *x)
{
    const struct waiter *waiter = &x->waiter;
    if (x->phase != PHASE_WAITING) {
        if (waiter->waited && x->answer_timer) {
            violate(world, "the end of a wait was not stopped with the wait");
        }
        return;
    }
    if (x->claimed || x->forwarded || x->running || x->task_out) {
        violate(world, "a waiter holds a claim");
    }
    if (waiter->timer_ms > waiter->promised_ms) {
        violate(world, "a wait was made longer than it was asked for");
    }
    const struct walk_store *store = &world->store;
    if (!store->down && walk_store_has_ended(store, x->key, waiter->rival) &&
        !walk_store_will_tell(store, x->key, waiter->rival)) {
        violate(world, "a waiter was not told that its rival has ended");
    }
}

void walk_waiter_tell_released(struct world *world, const struct exchange *x)
{
    const struct waiter *waiter = &x->waiter;
    if (x->claimed || x->forwarded) {
        violate(world, "a waiter was executed by itself");
    } else if (!walk_store_has_released(&world->store, x->key, waiter->rival)) {
        violate(world, "not executed was told to a waiter whose rival is not released");
    } else if (waiter->shared == 0 || waiter->shared != truth_of(world, x)->answers[waiter->rival % WALK_ANSWERS]) {
        violate(world, "a waiter was told another answer than its released rival");
    }
    world->figures.shared++;
}

void walk_waiter_tell_found(struct world *world, const struct exchange *x)
{
    const struct waiter *waiter = &x->waiter;
    if (!waiter->waited) {
        return;
    }
    /* A release that came between the wake-up and the look-up: not executed, and not claimed either. */
    if (x->task.decision.verdict == VERDICT_FORWARD && !walk_store_has_released(&world->store, x->key, waiter->rival)) {
        violate(world, "a waiter was told that nothing ran, and its rival is not released");
    }
    if (waiter->awaited == 0) {
        return;
    }
    if (x->task.decision.verdict != VERDICT_REPLAY || x->task.response_status != waiter->awaited ||
        waiter->awaited != truth_of(world, x)->answers[waiter->rival % WALK_ANSWERS]) {
        violate(world, "a waiter whose rival completed was not told its answer");
    }
    world->figures.replayed++;
}
