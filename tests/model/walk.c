/* walk.c - see walk.h. The world around the conductor plays unfair: clients leave, the handler acts late, batches fail, the
 * process is killed. */
#include "tests/model/walk_world.h"

/* The one send ends in one of the ways of section 6; the handler is honest in what it says. */
static void upstream_finish(struct world *world, struct exchange *x)
{
    static const int declined[] = { 401, 425, 429, 503 };
    static const int gateway[] = { 408, 502, 503, 504 };
    static const enum attempt_end broken[] = { ATTEMPT_RESET, ATTEMPT_CUT, ATTEMPT_GARBAGE, ATTEMPT_CLOSE_DELIMITED };
    struct attempt attempt = { .end = ATTEMPT_COMPLETE, .status = x->acted ? 201 : 422 };
    bool may_act_later = false;
    unsigned way = below(world, 10);
    if (way < 2 && !x->acted) {
        attempt.end = ATTEMPT_NOT_SENT;
    } else if (way < 4 && !x->acted) {
        attempt.status = declined[below(world, 4)];
        attempt.retry_after = attempt.status == 503;
    } else if (way == 4) {
        attempt.status = gateway[below(world, 4)];
        may_act_later = true;
    } else if (way == 5) {
        attempt.end = broken[below(world, 4)];
        may_act_later = true;
    }
    walk_upstream_end(world, x, may_act_later);
    struct outcome outcome = outcome_of(&attempt, NULL);
    x->outcome = (struct record_outcome){ .kind = outcome.kind, .cause = outcome.cause };
    if (outcome.kind != OUTCOME_UNKNOWN) {
        x->outcome.response_status = ++world->tokens; /* each answer of its own, to be told apart */
        truth_of(world, x)->answers[x->execution % WALK_ANSWERS] = x->outcome.response_status;
    }
    if (outcome.kind == OUTCOME_COMPLETED) {
        truth_of(world, x)->answered = true;
    }
    walk_feed(world, x, EVENT_UPSTREAM_DONE);
}

static void upstream_step(struct world *world, struct exchange *x)
{
    if (!x->acted && chance(world, 30)) {
        x->acted = true;
        walk_store_act(&world->store, x->key);
        world->figures.effects++;
    } else if (chance(world, 40)) {
        upstream_finish(world, x);
    }
}

static void client_step(struct world *world, struct exchange *x)
{
    bool gone = chance(world, x->phase == PHASE_WAITING ? 5 : 15);
    switch (x->client) {
    case CLIENT_SENDING:
        if (!gone && !chance(world, 5)) {
            x->client = CLIENT_HERE;
            walk_feed(world, x, EVENT_BODY_WHOLE);
            break;
        }
        x->client = CLIENT_HERE;
        walk_feed(world, x, gone ? EVENT_CLIENT_GONE : EVENT_REFUSED);
        break;
    case CLIENT_HERE:
        if (gone) {
            walk_feed(world, x, EVENT_CLIENT_GONE);
        }
        break;
    case CLIENT_ANSWERING:
        if (x->waiter.waited && !gone && chance(world, 85)) {
            break; /* it reads slowly, so that its rival ends behind its answer */
        }
        walk_feed(world, x, gone ? EVENT_CLIENT_GONE : EVENT_ANSWERED);
        break;
    case CLIENT_AWAY:
        break;
    }
}

/* Whether anything can still move it; asked at every step, so that nothing is lost unseen. */
static bool can_move(const struct exchange *x)
{
    switch (x->phase) {
    case PHASE_READING:
        return x->client == CLIENT_SENDING;
    case PHASE_CLAIMING:
    case PHASE_RECORDING:
        return x->task_out;
    case PHASE_FORWARDING:
        return x->running;
    case PHASE_WAITING:
        return x->waiter.joined && x->answer_timer; /* one that only the timer ends has missed its wake-up */
    case PHASE_REPLYING:
        return x->client == CLIENT_ANSWERING || x->due_answered;
    default:
        return false;
    }
}

/* A deadline, or the end of the drain, has come and changed nothing. */
static bool overdue(const struct world *world, const struct exchange *x)
{
    switch (x->phase) {
    case PHASE_READING:
        return world->stopping && x->stop_given;
    case PHASE_FORWARDING:
        return (world->stopping && x->stop_given) || !x->hard_timer || (!x->answer_timer && x->client == CLIENT_HERE);
    case PHASE_WAITING:
        return (world->stopping && x->stop_given) || (x->client == CLIENT_AWAY && !x->due_gone);
    default:
        return false;
    }
}

static bool answer_timer_fires(struct world *world, const struct exchange *x)
{
    return x->answer_timer && (x->waiter.waited ? world->store.now_ms >= x->waiter.timer_ms : chance(world, 8));
}

static void exchange_step(struct world *world, struct exchange *x)
{
    walk_waiter_check(world, x);
    if (!can_move(x)) {
        violate(world, "an exchange is stuck");
    } else if (overdue(world, x)) {
        violate(world, "an exchange goes on after its end");
    } else if (x->due_answered || x->due_gone) {
        enum event event = x->due_answered ? EVENT_ANSWERED : EVENT_CLIENT_GONE;
        x->due_answered = x->due_gone = false;
        walk_feed(world, x, event);
    } else if (world->stopping && !x->stop_given && chance(world, 60)) {
        x->stop_given = true; /* walk_feed() takes it back when the phase changes */
        walk_feed(world, x, EVENT_STOP);
    } else if (answer_timer_fires(world, x)) {
        x->answer_timer = false;
        walk_feed(world, x, EVENT_ANSWER_DEADLINE);
    } else if (x->hard_timer && chance(world, 6)) {
        x->hard_timer = false;
        walk_feed(world, x, EVENT_HARD_DEADLINE);
    } else if (x->running && chance(world, 60)) {
        upstream_step(world, x);
    } else {
        client_step(world, x);
    }
}

/* ---- the rest of the world ---- */

static void arrive(struct world *world)
{
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        struct exchange *x = &world->exchanges[i];
        if (x->live) {
            continue;
        }
        unsigned key = below(world, WALK_KEYS);
        if (world->retiring[key]) {
            return;
        }
        *x = (struct exchange){ .live = true, .phase = PHASE_READING, .key = key };
        x->task.fingerprint = (struct fingerprint){ .version = 1, .digest = { chance(world, 93) ? 1 : 2 } };
        x->task.credential = (struct credential){ .present = true, .digest = { chance(world, 93) ? 1 : 2 } };
        world->figures.exchanges++;
        return;
    }
}

static void message_step(struct world *world)
{
    struct walk_message message;
    if (!walk_store_take(&world->store, &message)) {
        if (chance(world, 5)) {
            walk_waiters_call(world, below(world, WALK_KEYS));
        }
        return;
    }
    if (message.exchange >= 0) {
        struct exchange *x = &world->exchanges[message.exchange];
        x->task = message.task;
        x->task_out = false;
        if (x->task.finish && x->task.event == EVENT_RECORD_FAILED) { /* kept in memory, tried again */
            struct walk_truth *truth = truth_of(world, x);
            truth->retry = true;
            truth->retry_execution = x->execution;
            truth->retry_outcome = x->outcome;
            if (chance(world, 50)) { /* its waiters may be told, or left to the end of their wait */
                walk_waiters_wake(world, x->key, &(struct walk_end){ .execution = x->execution });
            }
        }
        walk_feed(world, x, message.task.event);
        return;
    }
    walk_waiters_wake(world, message.key, &message.end);
}

/* Killed: the exchanges are gone with the process, their requests are not. */
static void restart(struct world *world)
{
    memset(world->exchanges, 0, sizeof(world->exchanges));
    walk_store_restart(&world->store, &world->random);
    world->draining = world->stopping = false;
    world->figures.restarts++;
}

static unsigned live_count(const struct world *world)
{
    unsigned count = 0;
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        count += world->exchanges[i].live;
    }
    return count;
}

static void key_step(struct world *world)
{
    unsigned key = below(world, WALK_KEYS);
    if (!world->retiring[key]) {
        world->retiring[key] = below(world, 4) == 0;
        return;
    }
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        if (world->exchanges[i].live && world->exchanges[i].key == key) {
            return;
        }
    }
    if (walk_store_renew(&world->store, key)) {
        world->retiring[key] = false;
        world->figures.keys++;
    }
}

static void era_step(struct world *world)
{
    if (world->store.down) {
        world->draining = world->stopping = true;
    } else if (!world->draining) {
        world->draining = below(world, 120) == 0;
    } else if (!world->stopping) {
        world->stopping = below(world, 20) == 0;
    }
    if (world->stopping && live_count(world) == 0) {
        restart(world);
        static const int64_t spans[] = { 1, WALK_TTL_MS / 2, WALK_TTL_MS, WALK_TOMBSTONE_MS,
                                         2 * WALK_TOMBSTONE_MS + 1 };
        walk_store_pass(&world->store, spans[below(world, 5)]);
    } else if (below(world, 1500) == 0) {
        restart(world);
    }
}

static void world_step(struct world *world, bool winding_up)
{
    world->store.now_ms++;
    unsigned what = below(world, 100);
    if (what < 12 && !world->stopping) {
        arrive(world);
    } else if (what < 30) {
        (void) walk_store_step(&world->store, &world->random, !winding_up);
    } else if (what < 50) {
        message_step(world);
    } else if (what < 54) {
        walk_store_aside(&world->store, &world->random);
    } else if (what < 56 && !winding_up) {
        era_step(world);
    } else if (what < 62 && !winding_up) {
        key_step(world);
    } else {
        struct exchange *x = &world->exchanges[below(world, WALK_EXCHANGES)];
        if (x->live) {
            exchange_step(world, x);
        }
    }
}

const char *walk(const struct walk_rules *rules, unsigned seed, unsigned steps, struct walk_figures *figures)
{
    enum { WINDING_UP_STEPS = 20000 };
    static struct world world; /* large; one walk at a time */
    memset(&world, 0, sizeof(world));
    world.rules = rules;
    suite_random_start(&world.random, seed);
    walk_store_begin(&world.store, rules->decisions);
    for (; world.figures.steps < steps && world.store.violation == NULL; world.figures.steps++) {
        world_step(&world, false);
    }
    world.draining = world.stopping = true;
    for (unsigned i = 0; i < WINDING_UP_STEPS && live_count(&world) > 0 && world.store.violation == NULL; i++) {
        world_step(&world, true);
    }
    if (live_count(&world) > 0) {
        violate(&world, "an exchange did not come to its end");
    }
    memcpy(world.figures.verdicts, world.store.verdicts, sizeof(world.figures.verdicts));
    if (figures != NULL) {
        *figures = world.figures;
    }
    return world.store.violation;
}
