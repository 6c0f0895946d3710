/* walk.c - see walk.h. The conductor here does the deeds and knows no rule, as server/flow/command.c does; what surrounds it
 * plays unfair: clients leave, the handler acts late, batches fail, the process is killed. */
#include "tests/model/walk.h"

#include "server/core/outcome.h"
#include "tests/model/walk_store.h"

enum client { CLIENT_SENDING, CLIENT_HERE, CLIENT_ANSWERING, CLIENT_AWAY };

/* What the conductor could say if it had to answer now. */
enum say { SAY_NOTHING, SAY_REFUSED, SAY_FOUND, SAY_OUTCOME };

struct exchange {
    bool live;
    enum phase phase;
    enum client client;
    enum say say;
    struct walk_task task; /* what it asks, and what came back */
    bool task_out;
    bool claimed, forwarded, recorded, record_failed, answered;
    bool running, acted; /* the handler has it; it has acted */
    bool answer_timer, hard_timer;
    bool joined; /* among the waiters */
    bool due_answered, due_gone;
    bool stop_given; /* in this phase */
    struct attempt attempt;
    struct record_outcome outcome;
    unsigned key;
    uint32_t execution;
};

struct world {
    const struct exchange_table *table;
    struct walk_store store;
    struct exchange exchanges[WALK_EXCHANGES];
    struct suite_random random;
    struct walk_figures figures;
    bool draining, stopping; /* no new claims; the drain is over */
    bool retiring[WALK_KEYS]; /* nobody asks for it any more: another key takes its place */
    int tokens;
};

static unsigned below(struct world *world, unsigned bound)
{
    return suite_random_below(&world->random, bound);
}

static bool chance(struct world *world, unsigned percent)
{
    return below(world, 100) < percent;
}

static void violate(struct world *world, const char *text)
{
    walk_violation(&world->store, text);
}

static struct walk_truth *truth_of(struct world *world, const struct exchange *x)
{
    return &world->store.truth[x->key];
}

/* The connection to the handler ends, or is ended: what was not done yet may still be done. */
static void upstream_end(struct world *world, struct exchange *x, bool may_act_later)
{
    struct walk_truth *truth = truth_of(world, x);
    truth->running--;
    if (may_act_later && !x->acted) {
        truth->loose++;
    }
    x->running = false;
}

/* ---- what is told, against what is recorded ---- */

static void tell_found(struct world *world, const struct exchange *x)
{
    const struct record *record = &world->store.durable[x->key];
    struct walk_truth *truth = truth_of(world, x);
    switch (x->task.decision.verdict) {
    case VERDICT_REPLAY:
        if (record->state != RECORD_COMPLETED || record->response_status != x->task.response_status) {
            violate(world, "a replay of what is not durable");
        }
        if (fingerprint_differs(&record->fingerprint, &x->task.fingerprint) != 0 ||
            credential_differs(&record->credential, &x->task.credential)) {
            violate(world, "a replay to another payload or caller");
        }
        if (x->client == CLIENT_HERE) {
            truth->told_status = record->response_status;
        }
        break;
    case VERDICT_KEY_EXPIRED:
        if (x->task.executed == EXECUTED_NO || (x->task.executed == EXECUTED_YES && !truth->answered)) {
            violate(world, "a tombstone told what nobody knows");
        }
        break;
    case VERDICT_KEY_VOIDED:
        if (x->task.executed != EXECUTED_NO || truth->effects > 0) {
            violate(world, "voided was told of a command that acted");
        }
        break;
    default: /* says unknown, or nothing about the command */
        break;
    }
}

static void tell_outcome(struct world *world, const struct exchange *x)
{
    const struct record *record = &world->store.durable[x->key];
    if (!x->recorded) {
        violate(world, "an outcome was told before it was durable");
        return;
    }
    switch (x->outcome.kind) {
    case OUTCOME_COMPLETED:
        if (record->state != RECORD_COMPLETED || record->response_status != x->outcome.response_status) {
            violate(world, "completed was told, and the record says otherwise");
        } else if (x->client == CLIENT_HERE) {
            truth_of(world, x)->told_status = record->response_status;
        }
        break;
    case OUTCOME_NOT_EXECUTED: /* by now it may be claimed again, or voided */
        if (record->execution == x->execution && record->state != RECORD_RELEASED && record->state != RECORD_VOIDED) {
            violate(world, "not executed was told, and the record says otherwise");
        }
        break;
    case OUTCOME_UNKNOWN:
        if (record->state != RECORD_UNKNOWN) {
            violate(world, "unknown was told, and the record says otherwise");
        }
        break;
    }
}

static void deed_answer(struct world *world, struct exchange *x, bool unrecorded)
{
    if (x->answered) {
        violate(world, "an exchange answered twice");
    }
    x->answered = true;
    if (unrecorded) {
        if (!x->record_failed) {
            violate(world, "unrecorded was told of what did not fail");
        }
    } else if (x->say == SAY_OUTCOME) {
        tell_outcome(world, x);
    } else if (x->claimed || x->say == SAY_NOTHING) {
        violate(world, "an answer was given that nothing supports");
    } else if (x->say == SAY_FOUND) {
        tell_found(world, x);
    }
    if (x->client == CLIENT_HERE || x->client == CLIENT_SENDING) {
        x->client = CLIENT_ANSWERING;
    } else if (x->client == CLIENT_AWAY) {
        x->due_answered = true; /* it could not */
    } /* else still-running is on its way, and its end will be the end */
}

/* ---- the other deeds ---- */

static void deed_claim(struct world *world, struct exchange *x)
{
    x->task.finish = false;
    x->task.key = x->key;
    x->task.may_wait = chance(world, 60);
    x->task.may_claim = !world->draining;
    x->task_out = true;
    walk_store_submit(&world->store, (unsigned) (x - world->exchanges), &x->task);
}

static void deed_forward(struct world *world, struct exchange *x)
{
    struct walk_truth *truth = truth_of(world, x);
    const struct record *record = &world->store.durable[x->key];
    if (!x->claimed) {
        violate(world, "forwarded before the claim was durable");
    } else if (record->state != RECORD_IN_PROGRESS || record->execution != x->execution) {
        violate(world, "forwarded under a claim that is not on the disk");
    } else if (truth->forwarded >= x->execution) {
        violate(world, "two forwards for one claim");
    }
    truth->forwarded = x->execution;
    truth->running++;
    x->forwarded = x->running = true;
    x->answer_timer = x->hard_timer = true;
}

static void deed_record(struct world *world, struct exchange *x, bool unknown)
{
    if (unknown && x->running) {
        upstream_end(world, x, true);
    }
    if (x->running || !x->forwarded || x->say != SAY_OUTCOME) {
        violate(world, "an outcome was recorded before there was one");
    }
    x->task.finish = true;
    x->task.key = x->key;
    x->task.execution = x->execution;
    x->task.outcome = x->outcome;
    x->task_out = true;
    walk_store_submit(&world->store, (unsigned) (x - world->exchanges), &x->task);
}

static void deed_free(struct world *world, struct exchange *x, enum event event)
{
    if (x->running) {
        violate(world, event == EVENT_CLIENT_GONE ? "a client that left cancelled a forwarded command"
                                                  : "freed while the handler has the command");
    }
    if (x->task_out) {
        violate(world, "freed while the store has its task");
    }
    if (x->claimed && !x->recorded && !x->record_failed) {
        violate(world, "a claimed command was left without an outcome");
    }
    x->live = false;
}

static void deed_do(struct world *world, struct exchange *x, enum deed deed, enum event event)
{
    switch (deed) {
    case DEED_CLAIM:
        deed_claim(world, x);
        break;
    case DEED_FORWARD:
        deed_forward(world, x);
        break;
    case DEED_WAIT:
        x->joined = x->answer_timer = true;
        x->due_gone = x->client == CLIENT_AWAY;
        break;
    case DEED_RECORD:
    case DEED_RECORD_UNKNOWN:
        deed_record(world, x, deed == DEED_RECORD_UNKNOWN);
        break;
    case DEED_ANSWER:
    case DEED_ANSWER_UNRECORDED:
        deed_answer(world, x, deed == DEED_ANSWER_UNRECORDED);
        break;
    case DEED_TELL_STILL_RUNNING:
        if (!x->running) {
            violate(world, "still-running was told of what does not run");
        }
        x->client = x->client == CLIENT_HERE ? CLIENT_ANSWERING : x->client;
        break;
    case DEED_DETACH:
        x->client = CLIENT_AWAY;
        break;
    case DEED_FREE:
        deed_free(world, x, event);
        break;
    case DEED_NONE:
        break;
    default:
        violate(world, "an event met an impossible cell");
        break;
    }
}

/* ---- events ---- */

/* What an event teaches the conductor, before its deed. */
static void learn(struct exchange *x, enum event event)
{
    switch (event) {
    case EVENT_REFUSED:
    case EVENT_CLAIM_FAILED:
        x->say = SAY_REFUSED;
        break;
    case EVENT_FOUND:
        x->say = SAY_FOUND;
        break;
    case EVENT_CLAIMED:
        x->claimed = true;
        x->execution = x->task.execution;
        break;
    case EVENT_UPSTREAM_DONE:
        x->say = SAY_OUTCOME;
        break;
    case EVENT_HARD_DEADLINE:
    case EVENT_STOP:
    case EVENT_ANSWER_DEADLINE:
        if (x->phase == PHASE_FORWARDING && event != EVENT_ANSWER_DEADLINE) {
            x->outcome = (struct record_outcome){ .kind = OUTCOME_UNKNOWN, .cause = CAUSE_TIMEOUT };
            x->say = SAY_OUTCOME;
        } else if (x->phase == PHASE_READING || x->phase == PHASE_WAITING) {
            x->say = SAY_REFUSED;
        }
        break;
    case EVENT_RECORDED:
        x->recorded = true;
        break;
    case EVENT_RECORD_FAILED:
        x->record_failed = true;
        break;
    default:
        break;
    }
}

static void feed(struct world *world, struct exchange *x, enum event event)
{
    struct step step = exchange_next_by(world->table, x->phase, event);
    world->figures.events[event]++;
    world->figures.cells[x->phase][event]++;
    world->figures.deeds[step.deed]++;
    learn(x, event);
    if (x->phase != step.next) {
        x->stop_given = false;
        if (x->phase == PHASE_WAITING) {
            x->answer_timer = false;
        }
    }
    x->phase = step.next;
    deed_do(world, x, step.deed, event);
    if ((x->phase == PHASE_CLOSED) == x->live) {
        violate(world, "closed and freed do not go together");
    }
}

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
    upstream_end(world, x, may_act_later);
    struct outcome outcome = outcome_of(&attempt, NULL);
    x->outcome = (struct record_outcome){ .kind = outcome.kind, .cause = outcome.cause };
    if (outcome.kind == OUTCOME_COMPLETED) {
        truth_of(world, x)->answered = true;
        x->outcome.response_status = ++world->tokens; /* each answer of its own, to be told apart */
    }
    feed(world, x, EVENT_UPSTREAM_DONE);
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
    bool gone = chance(world, 15);
    switch (x->client) {
    case CLIENT_SENDING:
        if (!gone && !chance(world, 5)) {
            x->client = CLIENT_HERE;
            feed(world, x, EVENT_BODY_WHOLE);
            break;
        }
        x->client = CLIENT_HERE;
        feed(world, x, gone ? EVENT_CLIENT_GONE : EVENT_REFUSED);
        break;
    case CLIENT_HERE:
        if (gone) {
            feed(world, x, EVENT_CLIENT_GONE);
        }
        break;
    case CLIENT_ANSWERING:
        feed(world, x, gone ? EVENT_CLIENT_GONE : EVENT_ANSWERED);
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
        return x->joined && x->answer_timer; /* one that only the timer ends has missed its wake-up */
    case PHASE_REPLYING:
        return x->client == CLIENT_ANSWERING || x->due_answered;
    default:
        return false;
    }
}

static void exchange_step(struct world *world, struct exchange *x)
{
    if (!can_move(x)) {
        violate(world, "an exchange is stuck");
    } else if (x->due_answered || x->due_gone) {
        enum event event = x->due_answered ? EVENT_ANSWERED : EVENT_CLIENT_GONE;
        x->due_answered = x->due_gone = false;
        feed(world, x, event);
    } else if (world->stopping && !x->stop_given && chance(world, 30)) {
        x->stop_given = true; /* feed() takes it back when the phase changes */
        feed(world, x, EVENT_STOP);
    } else if (x->answer_timer && chance(world, 8)) {
        x->answer_timer = false;
        feed(world, x, EVENT_ANSWER_DEADLINE);
    } else if (x->hard_timer && chance(world, 6)) {
        x->hard_timer = false;
        feed(world, x, EVENT_HARD_DEADLINE);
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
        x->task.fingerprint = (struct fingerprint){ .version = 1, .digest = { chance(world, 85) ? 1 : 2 } };
        x->task.credential = (struct credential){ .present = true, .digest = { chance(world, 85) ? 1 : 2 } };
        world->figures.exchanges++;
        return;
    }
}

static void message_step(struct world *world)
{
    struct walk_message message;
    if (!walk_store_take(&world->store, &message)) {
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
        }
        feed(world, x, message.task.event);
        return;
    }
    for (unsigned i = 0; i < WALK_EXCHANGES; i++) {
        struct exchange *x = &world->exchanges[i];
        if (x->live && x->joined && x->key == message.key) {
            x->joined = false;
            feed(world, x, EVENT_RIVAL_ENDED);
        }
    }
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
        world->draining = below(world, 200) == 0;
    } else if (!world->stopping) {
        world->stopping = below(world, 60) == 0;
    }
    if (world->stopping && live_count(world) == 0) {
        restart(world);
        static const int64_t spans[] = { 1, WALK_TTL_MS / 2, WALK_TTL_MS, WALK_TOMBSTONE_MS, 2 * WALK_TOMBSTONE_MS + 1 };
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

const char *walk(const struct exchange_table *exchanges, const struct decision_table *decisions, unsigned seed, unsigned steps,
                 struct walk_figures *figures)
{
    enum { WINDING_UP_STEPS = 20000 };
    static struct world world; /* large; one walk at a time */
    memset(&world, 0, sizeof(world));
    world.table = exchanges;
    suite_random_start(&world.random, seed);
    walk_store_begin(&world.store, decisions);
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
