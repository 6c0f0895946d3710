/* planner.c - see planner.h: what each finding leads to (`rows`), how a run begins, how a wait goes on. The limits are in
 * plan_step.c. Owns nothing; nothing here acts. */
#include "client-sdk/src/plan_step.h"

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static struct plan row_cancelled(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_CANCELLED, REASON_CANCELLED);
}

static struct plan row_caller(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_CALLER, REASON_CALLER);
}

static struct plan row_local(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_LOCAL, REASON_LOCAL);
}

static struct plan row_completed(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_DONE, REASON_COMPLETED);
}

static struct plan row_final(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_DONE, in->history->last_status >= 400 ? REASON_NON_RETRYABLE : REASON_COMPLETED);
}

static struct plan row_declined(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_NON_RETRYABLE);
}

/* A refusal for good: but what became of earlier attempts? */
static struct plan row_refused(const struct plan_input *in)
{
    return plan_blocked(in, NONBIS_STOP_SERVER_SAID_NO, REASON_REFUSED);
}

static struct plan row_key_reused(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_REFUSED);
}

static struct plan row_key_expired(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_KEY_EXPIRED, REASON_KEY_EXPIRED);
}

static struct plan row_voided(const struct plan_input *in)
{
    bool wanted = in->history->goal == GOAL_VOID;
    return plan_stop(in, wanted ? NONBIS_STOP_DONE : NONBIS_STOP_SERVER_SAID_NO, REASON_VOIDED);
}

static struct plan row_retry(const struct plan_input *in)
{
    return plan_retry(in);
}

/* Nobody knows: ask first, then the same key again. The wait is there so that a crowd does not ask in step. */
static struct plan row_ambiguous(const struct plan_input *in)
{
    if (plan_can_ask(in) && plan_is_open(in)) {
        return plan_wait(in, plan_backoff_ms(in), PLAN_ASK, ASK_STATUS, REASON_OUTCOME_CHECK);
    }
    return plan_retry(in);
}

/* 408, 503: where the server deduplicates, the same request itself is the question. */
static struct plan row_busy(const struct plan_input *in)
{
    return plan_is_safe(in) ? plan_retry(in) : row_ambiguous(in);
}

static struct plan row_conflict(const struct plan_input *in)
{
    return in->history->answered ? row_final(in) : row_ambiguous(in);
}

static struct plan row_turned_away(const struct plan_input *in)
{
    return in->history->answered ? row_final(in) : plan_blocked(in, NONBIS_STOP_SERVER_SAID_NO, REASON_NON_RETRYABLE);
}

static struct plan row_running(const struct plan_input *in)
{
    enum ask ask = in->history->goal == GOAL_VOID ? ASK_VOID : ASK_STATUS;
    if (plan_can_ask(in)) {
        return plan_wait(in, plan_poll_ms(in), PLAN_ASK, ask, REASON_IN_PROGRESS);
    }
    return plan_retry_after(in, plan_poll_ms(in), REASON_IN_PROGRESS);
}

static struct plan row_said_unknown(const struct plan_input *in)
{
    if (plan_can_ask(in)) {
        return plan_ask(in, ASK_STATUS, REASON_OUTCOME_CHECK);
    }
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_OUTCOME_UNKNOWN);
}

static struct plan row_told_unknown(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_OUTCOME_UNKNOWN);
}

/* It is done: get the answer. A key that the caller made may be another payload's, and only a POST lets the server compare
 * (contract 7.5): there the repeat is the better question, if one is left. */
static struct plan row_fetch(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->goal == GOAL_VOID) {
        return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_COMPLETED);
    }
    if (h->asks > 0 && h->last_ask == ASK_RESPONSE) {
        /* It said so in place of the answer: ask again, but not in a hurry. */
        return plan_wait(in, plan_poll_ms(in), PLAN_ASK, ASK_RESPONSE, REASON_FETCH);
    }
    bool repeat = h->goal == GOAL_RUN && h->has_body && !plan_key_is_too_old(in) && in->has_token &&
                  h->attempts < plan_value(in, NONBIS_ATTEMPTS) && plan_is_safe(in);
    if (plan_can_ask(in) && (h->own_key || !repeat)) {
        return plan_ask(in, ASK_RESPONSE, REASON_FETCH);
    }
    return plan_retry_after(in, 0, REASON_FETCH);
}

static struct plan row_replay_cut(const struct plan_input *in)
{
    return plan_can_ask(in) ? plan_wait(in, plan_backoff_ms(in), PLAN_ASK, ASK_RESPONSE, REASON_FETCH) : plan_retry(in);
}

/* "Not seen" by a server of which we do not know whether the command goes to it at all: it is asked that on the way of the
 * command itself. */
static bool wants_route(const struct plan_input *in)
{
    const struct history *h = in->history;
    return h->last == FINDING_TOLD_NOT_SEEN_DOUBTFUL && h->goal == GOAL_RUN && h->evidence == EVIDENCE_NONE &&
           !h->route_told && h->standing == STANDING_AMBIGUOUS && plan_value(in, NONBIS_SERVER) == NONBIS_SERVER_DETECT;
}

/* Then "not seen" is worth something, and by now it may be seen. */
static struct plan row_protected(const struct plan_input *in)
{
    return plan_ask(in, ASK_STATUS, REASON_OUTCOME_CHECK);
}

static struct plan row_unprotected(const struct plan_input *in)
{
    return plan_blocked(in, NONBIS_STOP_NOT_REPLAYABLE, REASON_NOT_RETRY_SAFE);
}

/* Not there, or released: the same key again; the wait was before the question. */
static struct plan row_not_there(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->standing == STANDING_UNKNOWN) {
        return row_told_unknown(in); /* it knew more before: a repeat would only be told the same */
    }
    if (wants_route(in)) {
        return plan_ask(in, ASK_ROUTE, REASON_OUTCOME_CHECK);
    }
    switch (h->goal) {
    case GOAL_WAIT:
        return plan_stop(in, NONBIS_STOP_DONE, REASON_NOT_SEEN);
    case GOAL_VOID:
        return h->last_ask == ASK_VOID ? plan_wait(in, plan_poll_ms(in), PLAN_ASK, ASK_VOID, REASON_VOID)
                                       : plan_ask(in, ASK_VOID, REASON_VOID);
    case GOAL_RUN:
        break;
    }
    enum reason reason = h->last == FINDING_TOLD_RELEASED ? REASON_BACKOFF_JITTER : REASON_NOT_SEEN;
    return plan_retry_after(in, h->rested ? 0 : plan_backoff_ms(in), reason);
}

static struct plan row_no_resource(const struct plan_input *in)
{
    if (!plan_may_send(in)) {
        return plan_stop_untold(in);
    }
    if (in->history->standing == STANDING_UNKNOWN) {
        return row_told_unknown(in);
    }
    return plan_retry_after(in, in->history->rested ? 0 : plan_backoff_ms(in), REASON_BACKOFF_JITTER);
}

static struct plan row_told_turned_away(const struct plan_input *in)
{
    return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_NON_RETRYABLE);
}

/* The question was not answered: the same key again is a question too; else ask until time is up. */
static struct plan row_told_nothing(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->goal == GOAL_VOID) {
        return plan_wait(in, plan_poll_ms(in), PLAN_ASK, h->last_ask, REASON_VOID);
    }
    if (h->goal == GOAL_WAIT || h->standing == STANDING_COMPLETED || h->standing == STANDING_UNKNOWN) {
        enum ask ask = h->standing == STANDING_COMPLETED ? ASK_RESPONSE : ASK_STATUS;
        return plan_wait(in, plan_poll_ms(in), PLAN_ASK, ask, REASON_OUTCOME_CHECK);
    }
    return plan_retry(in);
}

static struct plan (*const rows[FINDING_COUNT])(const struct plan_input *in) = {
    [FINDING_CANCELLED] = row_cancelled,
    [FINDING_HELD_BACK] = row_caller,
    [FINDING_LOCAL] = row_local,
    [FINDING_OFFLINE] = row_retry,
    [FINDING_NOT_SENT] = row_retry,
    [FINDING_CANCELLED_SENT] = row_cancelled,
    [FINDING_RESEND_BLOCKED] = row_ambiguous,
    [FINDING_LOST] = row_ambiguous,
    [FINDING_CUT] = row_ambiguous,
    [FINDING_REPLAY_CUT] = row_replay_cut,
    [FINDING_EXECUTED] = row_completed,
    [FINDING_REPLAYED] = row_completed,
    [FINDING_UNRECORDED] = row_completed,
    [FINDING_NOT_EXECUTED] = row_retry,
    [FINDING_DECLINED] = row_declined,
    [FINDING_SAID_UNKNOWN] = row_said_unknown,
    [FINDING_RUNNING] = row_running,
    [FINDING_UNAVAILABLE] = row_retry,
    [FINDING_REFUSED] = row_refused,
    [FINDING_KEY_REUSED] = row_key_reused,
    [FINDING_KEY_FOREIGN] = row_key_reused,
    [FINDING_KEY_EXPIRED_EXECUTED] = row_key_expired,
    [FINDING_KEY_EXPIRED_UNKNOWN] = row_key_expired,
    [FINDING_KEY_VOIDED] = row_voided,
    [FINDING_SUCCESS] = row_completed,
    [FINDING_THROTTLED] = row_retry,
    [FINDING_BUSY] = row_busy,
    [FINDING_FAULT] = row_ambiguous,
    [FINDING_CONFLICT] = row_conflict,
    [FINDING_TURNED_AWAY] = row_turned_away,
    [FINDING_FINAL] = row_final,
    [FINDING_TOLD_COMPLETED] = row_fetch,
    [FINDING_TOLD_ANSWER] = row_completed,
    [FINDING_TOLD_RUNNING] = row_running,
    [FINDING_TOLD_UNKNOWN] = row_told_unknown,
    [FINDING_TOLD_RELEASED] = row_not_there,
    [FINDING_TOLD_VOIDED] = row_voided,
    [FINDING_TOLD_EXPIRED_EXECUTED] = row_key_expired,
    [FINDING_TOLD_EXPIRED_UNKNOWN] = row_key_expired,
    [FINDING_TOLD_NOT_SEEN] = row_not_there,
    [FINDING_TOLD_NOT_SEEN_DOUBTFUL] = row_not_there,
    [FINDING_TOLD_FORGOTTEN] = row_key_expired,
    [FINDING_TOLD_NO_RESOURCE] = row_no_resource,
    [FINDING_TOLD_TURNED_AWAY] = row_told_turned_away,
    [FINDING_TOLD_NOTHING] = row_told_nothing,
    [FINDING_TOLD_PROTECTED] = row_protected,
    [FINDING_TOLD_UNPROTECTED] = row_unprotected,
    [FINDING_TOLD_NO_ROUTE] = row_unprotected,
};

/* ---- beginning and going on --------------------------------------------------------------------------------------- */

/* The first attempt of a run: free of charge, but within the other limits. */
static struct plan plan_first_attempt(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (!plan_may_send(in)) {
        return plan_stop_untold(in);
    }
    if (!h->has_body) {
        return plan_stop(in, NONBIS_STOP_NOT_REPLAYABLE, REASON_NOT_REPLAYABLE);
    }
    if (plan_key_is_too_old(in)) {
        return plan_stop(in, NONBIS_STOP_KEY_EXPIRED, REASON_KEY_EXPIRED);
    }
    if (!plan_is_safe(in)) {
        return plan_stop(in, NONBIS_STOP_NOT_REPLAYABLE, REASON_NOT_RETRY_SAFE);
    }
    if (in->breaker_until_ms > in->now_ms) {
        if (in->breaker_until_ms + plan_value(in, NONBIS_MIN_ATTEMPT_MS) > h->deadline_ms) {
            return plan_stop_later(in, in->breaker_until_ms - in->now_ms, REASON_CIRCUIT_OPEN);
        }
        return plan_wait(in, in->breaker_until_ms - in->now_ms, PLAN_ATTEMPT, ASK_STATUS, REASON_CIRCUIT_OPEN);
    }
    return plan_do(in, PLAN_ATTEMPT, ASK_STATUS, REASON_FIRST);
}

static struct plan plan_begin(const struct plan_input *in)
{
    const struct history *h = in->history;
    switch (h->standing) {
    case STANDING_VOIDED:
        return row_voided(in);
    case STANDING_REJECTED:
        return plan_stop(in, NONBIS_STOP_SERVER_SAID_NO, REASON_REFUSED);
    case STANDING_COMPLETED:
        if (h->answered) {
            return plan_stop(in, NONBIS_STOP_DONE, REASON_COMPLETED);
        }
        break;
    default:
        break;
    }
    if (h->goal == GOAL_VOID) {
        /* Of what was sent the status first: a key from before the server's memory can be executed and yet be voided. */
        enum ask ask = h->standing == STANDING_UNSENT ? ASK_VOID : ASK_STATUS;
        return plan_can_ask(in) ? plan_do(in, PLAN_ASK, ask, REASON_VOID) : plan_stop_untold(in);
    }
    if (h->standing == STANDING_COMPLETED) {
        return row_fetch(in);
    }
    /* Of an old key the server's own word counts: it may remember longer than the policy says. */
    bool sent = h->standing != STANDING_UNSENT && h->standing != STANDING_NOT_APPLIED;
    if (plan_can_ask(in) && (sent || h->goal == GOAL_WAIT || plan_key_is_too_old(in))) {
        return plan_do(in, PLAN_ASK, ASK_STATUS, REASON_OUTCOME_CHECK);
    }
    return plan_first_attempt(in);
}

/* A wait is under way, or over. Whoever is in a hurry may shorten our part of it, not the server's. */
static struct plan plan_pending(const struct plan_input *in)
{
    const struct history *h = in->history;
    int64_t due_ms = h->due_ms;
    if (h->hurried) {
        due_ms = plan_least(due_ms, plan_most(h->floor_ms, in->now_ms));
    }
    if (in->now_ms < due_ms) {
        return (struct plan){ .action = PLAN_WAIT,
                              .reason = (enum reason) h->wait_reason,
                              .delay_ms = due_ms - in->now_ms,
                              .due_ms = due_ms,
                              .server_delay_ms = plan_floor_left(in) > 0 ? plan_floor_left(in) : -1,
                              .next_action = (enum plan_action) h->next_action,
                              .ask = (enum ask) h->next_ask,
                              .retry_after_s = -1 };
    }
    return plan_do(in, (enum plan_action) h->next_action, (enum ask) h->next_ask, (enum reason) h->wait_reason);
}

struct plan plan_next(const struct plan_input *in)
{
    const struct history *h = in->history;
    if (h->cancelled) {
        /* A cancel that comes with the final answer changes nothing. */
        return h->answered && h->has_last ? rows[h->last](in) : row_cancelled(in);
    }
    if (h->local_error != 0) {
        return row_local(in);
    }
    if (h->caller_stop) {
        return h->answered && h->has_last ? rows[h->last](in) : row_caller(in);
    }
    if (h->waiting) {
        return plan_pending(in);
    }
    return h->has_last ? rows[h->last](in) : plan_begin(in);
}

void history_apply_wait(struct history *history, const struct plan *plan)
{
    history->waiting = true;
    history->rested = true;
    history->hurried = false;
    history->due_ms = plan->due_ms;
    history->delay_ms = plan->delay_ms;
    history->next_action = plan->next_action;
    history->next_ask = plan->ask;
    history->wait_reason = plan->reason;
    history->previous_delay_ms = plan->delay_ms - (plan->server_delay_ms > 0 ? plan->server_delay_ms : 0);
}
