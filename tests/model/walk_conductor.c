/* walk_conductor.c - the conductor of the random walk: does the deeds and knows no rule, as server/flow/command.c does, and
 * checks each deed against what is durable and against what really happened. */
#include "tests/model/walk_world.h"

void walk_upstream_end(struct world *world, struct exchange *x, bool may_act_later)
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
    walk_waiter_tell_found(world, x);
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
    } else if (x->say == SAY_RELEASED) {
        walk_waiter_tell_released(world, x);
    }
    if (x->client == CLIENT_HERE || x->client == CLIENT_SENDING) {
        x->client = CLIENT_ANSWERING;
    } else if (x->client == CLIENT_AWAY) {
        x->due_answered = true; /* it could not */
    }                           /* else still-running is on its way, and its end will be the end */
}

/* ---- the other deeds ---- */

static void deed_claim(struct world *world, struct exchange *x, enum event event)
{
    if (event != EVENT_BODY_WHOLE && event != EVENT_RIVAL_ENDED) {
        violate(world, "a claim that nobody asked for");
    }
    x->task.finish = false;
    x->task.key = x->key;
    bool again = x->waiter.waited; /* who waited may wait for what is left, and claims nothing */
    x->task.may_wait = again ? world->store.now_ms < x->waiter.ends_ms : chance(world, 60);
    x->task.may_claim = !world->draining && (!again || world->rules->fault == WALK_FAULT_WAITER_CLAIMS);
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
    truth->answers[x->execution % WALK_ANSWERS] = 0;
    truth->running++;
    x->forwarded = x->running = true;
    x->answer_timer = x->hard_timer = true;
}

static void deed_record(struct world *world, struct exchange *x, bool unknown)
{
    if (unknown && x->running) {
        walk_upstream_end(world, x, true);
    }
    if (x->running || !x->forwarded || x->say != SAY_OUTCOME) {
        violate(world, "an outcome was recorded before there was one");
    }
    if (x->outcome.kind == OUTCOME_NOT_EXECUTED && world->rules->fault == WALK_FAULT_RELEASED_EARLY) {
        struct walk_end end = { x->execution, true, true, x->outcome.response_status };
        walk_waiters_wake(world, x->key, &end);
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
    if (x->client != CLIENT_AWAY && event != EVENT_CLIENT_GONE && event != EVENT_ANSWERED) {
        violate(world, "a client was left without an answer");
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
        deed_claim(world, x, event);
        break;
    case DEED_FORWARD:
        deed_forward(world, x);
        break;
    case DEED_WAIT:
        if (event != EVENT_MUST_WAIT) {
            violate(world, "a wait for what was not seen to run");
        }
        walk_waiter_join(world, x);
        break;
    case DEED_RECORD:
    case DEED_RECORD_UNKNOWN:
        if ((deed == DEED_RECORD) != (event == EVENT_UPSTREAM_DONE) ||
            (deed == DEED_RECORD_UNKNOWN && event != EVENT_HARD_DEADLINE && event != EVENT_STOP)) {
            violate(world, "what was recorded is not what was seen");
        }
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
        if (event != EVENT_CLIENT_GONE && event != EVENT_ANSWERED) {
            violate(world, "a client that is there was let go");
        }
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
static void learn(struct world *world, struct exchange *x, enum event event)
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
        if (x->waiter.waited) {
            violate(world, "a waiter claimed by itself");
        }
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
    case EVENT_RIVAL_RELEASED:
        if (x->phase == PHASE_WAITING) { /* else it comes late, and the answer is on its way */
            x->say = SAY_RELEASED;
        }
        break;
    case EVENT_RECORDED:
        x->recorded = true;
        x->outcome = x->task.outcome;
        break;
    case EVENT_RECORD_FAILED:
        x->record_failed = true;
        break;
    default:
        break;
    }
}

void walk_feed(struct world *world, struct exchange *x, enum event event)
{
    struct step step = exchange_next_by(world->rules->exchanges, x->phase, event);
    world->figures.events[event]++;
    world->figures.cells[x->phase][event]++;
    world->figures.deeds[step.deed]++;
    learn(world, x, event);
    if (x->phase != step.next) {
        x->stop_given = false;
        if (x->phase == PHASE_WAITING && world->rules->fault != WALK_FAULT_TIMER_RUNS_ON) {
            x->answer_timer = false;
        }
    }
    x->phase = step.next;
    deed_do(world, x, step.deed, event);
    if (x->live && x->client != CLIENT_AWAY && (event == EVENT_CLIENT_GONE || event == EVENT_ANSWERED)) {
        violate(world, "a client that is gone was kept");
    }
    if ((x->phase == PHASE_CLOSED) == x->live) {
        violate(world, "closed and freed do not go together");
    }
}
