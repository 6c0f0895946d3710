/* plan_step.c - the steps that the planner's rows are made of, and the limits in their order (plan_retry_after). See
 * plan_step.h. Owns nothing. */
#include "client-sdk/src/plan_step.h"

#include "client-sdk/src/backoff.h"

/* ---- small questions ---------------------------------------------------------------------------------------------- */

/* Whether the server can be asked about the command at all. */
bool plan_can_ask(const struct plan_input *in)
{
    const struct history *h = in->history;
    int64_t server = plan_value(in, NONBIS_SERVER);
    return h->safety == SAFETY_KEYED && !h->no_status_resource && h->evidence != EVIDENCE_IGNORES &&
           (server == NONBIS_SERVER_DETECT || server == NONBIS_SERVER_NONBIS);
}

/* Whether a further sending can do no harm. The header alone makes no endpoint safe: somebody must have said, or the server
 * shown, that it deduplicates. */
bool plan_is_safe(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->safety != SAFETY_KEYED) {
        return h->safety == SAFETY_REPEATABLE || h->exchanges == 0;
    }
    if (h->standing == STANDING_UNSENT) {
        return true;
    }
    if (h->evidence == EVIDENCE_IGNORES) {
        return false;
    }
    switch ((enum nonbis_server) plan_value(in, NONBIS_SERVER)) {
    case NONBIS_SERVER_NONBIS:
    case NONBIS_SERVER_KEYED:
        return true;
    case NONBIS_SERVER_DETECT:
        return h->evidence == EVIDENCE_CONTRACT || h->standing == STANDING_NOT_APPLIED;
    case NONBIS_SERVER_PLAIN:
        break;
    }
    return false;
}

bool plan_may_send(const struct plan_input *in)
{
    return in->history->goal == GOAL_RUN;
}

/* Past this age "absent" says nothing: the server may have forgotten the key, and a sending would be a new command. */
bool plan_key_is_too_old(const struct plan_input *in)
{
    const struct history *h = in->history;
    return h->safety == SAFETY_KEYED && h->first_sent_wall_ms != 0 && !h->in_window &&
           in->wall_ms - h->first_sent_wall_ms >= plan_value(in, NONBIS_RETENTION_MS);
}

bool plan_is_open(const struct plan_input *in)
{
    const struct history *h = in->history;
    return h->standing == STANDING_AMBIGUOUS || h->standing == STANDING_RUNNING ||
           (h->standing == STANDING_COMPLETED && !h->answered);
}

static bool last_was_question(const struct history *h)
{
    return h->last >= FINDING_TOLD_COMPLETED;
}

int64_t plan_floor_left(const struct plan_input *in)
{
    return in->history->floor_ms > in->now_ms ? in->history->floor_ms - in->now_ms : 0;
}

/* ---- steps -------------------------------------------------------------------------------------------------------- */

struct plan plan_stop(const struct plan_input *in, enum nonbis_stop stop, enum reason reason)
{
    return (struct plan){ .action = PLAN_STOP,
                          .reason = reason,
                          .outcome = standing_outcome(in->history->standing),
                          .stop = stop,
                          .retry_after_s = -1,
                          .server_delay_ms = -1 };
}

struct plan plan_stop_later(const struct plan_input *in, int64_t wait_ms, enum reason reason)
{
    struct plan plan = plan_stop(in, NONBIS_STOP_RETRY_LATER, reason);
    plan.retry_after_s = wait_ms <= 1000 ? 1 : wait_ms / 1000 + (wait_ms % 1000 != 0 ? 1 : 0);
    return plan;
}

struct plan plan_stop_untold(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_NO_STATUS);
}

static bool needs_fresh_connection(const struct history *h)
{
    return h->has_last && (h->last == FINDING_LOST || h->last == FINDING_CUT || h->last == FINDING_REPLAY_CUT ||
                           h->last == FINDING_RESEND_BLOCKED || h->last == FINDING_TOLD_NOTHING);
}

/* Now: an attempt, or a question. What is left of the deadline bounds it. */
struct plan plan_do(const struct plan_input *in, enum plan_action action, enum ask ask, enum reason reason)
{
    const struct history *h = in->history;
    int64_t left_ms = h->deadline_ms - in->now_ms;
    if (action == PLAN_ATTEMPT && !plan_may_send(in)) {
        return plan_stop_untold(in);
    }
    if (left_ms <= 0) {
        return plan_stop(in, NONBIS_STOP_DEADLINE, REASON_DEADLINE);
    }
    struct plan plan = { .action = action,
                         .reason = reason,
                         .ask = ask,
                         .fresh = needs_fresh_connection(h),
                         .server_delay_ms = -1,
                         .retry_after_s = -1 };
    if (action == PLAN_ATTEMPT) {
        plan.timeout_ms = plan_least(plan_value(in, NONBIS_ATTEMPT_MS), left_ms);
        return plan;
    }
    int64_t question_ms = plan_value(in, NONBIS_STATUS_MS);
    if (ask == ASK_STATUS && h->standing == STANDING_RUNNING) {
        int64_t room_ms = left_ms - question_ms - plan_value(in, NONBIS_MIN_ATTEMPT_MS);
        plan.hold_s = plan_most(plan_least(plan_value(in, NONBIS_HOLD_MS), room_ms) / 1000, 0);
    }
    plan.timeout_ms = plan_least(question_ms + plan.hold_s * 1000, left_ms);
    return plan;
}

/* A wait of `delay_ms` behind what the server asks for, if it can end in time. */
struct plan plan_wait(const struct plan_input *in, int64_t delay_ms, enum plan_action next, enum ask ask,
                      enum reason reason)
{
    const struct history *h = in->history;
    int64_t floor_ms = plan_floor_left(in),
            room_ms = h->deadline_ms - in->now_ms - plan_value(in, NONBIS_MIN_ATTEMPT_MS);
    if (floor_ms > plan_value(in, NONBIS_SERVER_WAIT_MS)) {
        return plan_stop_later(in, floor_ms, REASON_SERVER_WAIT_TOO_LONG);
    }
    if (floor_ms > 0 && floor_ms > room_ms) {
        /* Of a running command the next question is always a moment away: there it is our time that is up. */
        return reason == REASON_IN_PROGRESS ? plan_stop(in, NONBIS_STOP_DEADLINE, REASON_DEADLINE)
                                            : plan_stop_later(in, floor_ms, REASON_SERVER_WAIT_TOO_LONG);
    }
    if (delay_ms > room_ms - floor_ms) {
        /* A question is cheap and may settle everything: rather a shorter wait than none. */
        if (next != PLAN_ASK || room_ms <= floor_ms) {
            return plan_stop(in, NONBIS_STOP_DEADLINE, REASON_DEADLINE);
        }
        delay_ms = room_ms - floor_ms;
    }
    return (struct plan){ .action = PLAN_WAIT,
                          .reason = reason,
                          .delay_ms = floor_ms + delay_ms,
                          .due_ms = in->now_ms + floor_ms + delay_ms,
                          .server_delay_ms = floor_ms > 0 ? floor_ms : -1,
                          .next_action = next,
                          .ask = ask,
                          .retry_after_s = -1 };
}

int64_t plan_backoff_ms(const struct plan_input *in)
{
    const struct history *h = in->history;
    const struct backoff backoff = { .jitter = (enum backoff_jitter) plan_value(in, NONBIS_JITTER),
                                     .base_ms = plan_value(in, NONBIS_BASE_MS),
                                     .cap_ms = plan_value(in, NONBIS_CAP_MS) };
    /* Attempts that were no attempts (offline) widen the window too. */
    unsigned n = h->tries > 0 ? h->tries - 1 : 0;
    return backoff_delay_ms(&backoff, n, h->previous_delay_ms, in->random);
}

int64_t plan_poll_ms(const struct plan_input *in)
{
    /* A server that says when to come back has spread its crowd already: our part on top may be small. */
    bool asked = in->history->retry_after_ms >= 0;
    const struct backoff backoff = { .jitter = BACKOFF_FULL,
                                     .base_ms = plan_value(in, asked ? NONBIS_BASE_MS : NONBIS_POLL_MS),
                                     .cap_ms = plan_value(in, asked ? NONBIS_CAP_MS : NONBIS_POLL_CAP_MS) };
    return backoff_delay_ms(&backoff, in->history->polls, 0, in->random);
}

/* A question at once, unless the server asked for patience. */
struct plan plan_ask(const struct plan_input *in, enum ask ask, enum reason reason)
{
    return plan_floor_left(in) > 0 ? plan_wait(in, 0, PLAN_ASK, ask, reason) : plan_do(in, PLAN_ASK, ask, reason);
}

/* ---- sending again: the limits in their order --------------------------------------------------------------------- */

/* A limit forbids to send again. What is still open is asked for until it is decided or time is up; then we stop for the
 * limit's reason. */
struct plan plan_blocked(const struct plan_input *in, enum nonbis_stop stop, enum reason reason)
{
    const struct history *h = in->history;
    bool told = last_was_question(h) && h->last != FINDING_TOLD_NOTHING && h->last != FINDING_TOLD_RUNNING;
    if (!plan_is_open(in) || !plan_can_ask(in) || told) {
        return plan_stop(in, stop, reason);
    }
    enum ask ask = h->standing == STANDING_COMPLETED ? ASK_RESPONSE : ASK_STATUS;
    if (!last_was_question(h)) {
        return plan_wait(in, plan_backoff_ms(in), PLAN_ASK, ask, REASON_OUTCOME_CHECK);
    }
    return plan_wait(in, plan_poll_ms(in), PLAN_ASK, ask, REASON_OUTCOME_CHECK);
}

static enum reason wait_reason(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->last == FINDING_OFFLINE) {
        return REASON_OFFLINE;
    }
    if (h->last_status == 429 && !last_was_question(h)) {
        return REASON_RATE_LIMIT;
    }
    return plan_floor_left(in) > 0 ? REASON_SERVER_DELAY : REASON_BACKOFF_JITTER;
}

/* Sends again after `delay_ms`, or tells which limit forbids it. */
struct plan plan_retry_after(const struct plan_input *in, int64_t delay_ms, enum reason reason)
{
    const struct history *h = in->history;
    if (!plan_may_send(in)) {
        return plan_stop_untold(in);
    }
    if (h->attempts >= plan_value(in, NONBIS_ATTEMPTS)) {
        return plan_blocked(in, NONBIS_STOP_ATTEMPTS, REASON_MAX_ATTEMPTS);
    }
    if (plan_key_is_too_old(in)) {
        return plan_blocked(in, NONBIS_STOP_KEY_EXPIRED, REASON_KEY_EXPIRED);
    }
    if (!plan_is_safe(in)) {
        return plan_blocked(in, NONBIS_STOP_NOT_REPLAYABLE, REASON_NOT_RETRY_SAFE);
    }
    if (!h->has_body) {
        return plan_blocked(in, NONBIS_STOP_NOT_REPLAYABLE, REASON_NOT_REPLAYABLE);
    }
    struct plan plan = plan_wait(in, delay_ms, PLAN_ATTEMPT, ASK_STATUS, reason);
    if (plan.action == PLAN_STOP) {
        return plan;
    }
    if (in->breaker_until_ms > plan.due_ms) {
        if (in->breaker_until_ms + plan_value(in, NONBIS_MIN_ATTEMPT_MS) > h->deadline_ms) {
            return plan_stop_later(in, in->breaker_until_ms - in->now_ms, REASON_CIRCUIT_OPEN);
        }
        plan.due_ms = in->breaker_until_ms;
        plan.delay_ms = plan.due_ms - in->now_ms;
        plan.reason = REASON_CIRCUIT_OPEN;
    }
    bool pays = h->last != FINDING_OFFLINE; /* nobody is burdened by a request that cannot leave */
    if (pays && !in->has_token) {
        return plan_blocked(in, NONBIS_STOP_BUDGET, REASON_BUDGET);
    }
    if (plan.delay_ms == 0 && delay_ms == 0) {
        plan = plan_do(in, PLAN_ATTEMPT, ASK_STATUS, reason);
    }
    plan.pays = pays && plan.action != PLAN_STOP;
    return plan;
}

struct plan plan_retry(const struct plan_input *in)
{
    return plan_retry_after(in, plan_backoff_ms(in), wait_reason(in));
}
