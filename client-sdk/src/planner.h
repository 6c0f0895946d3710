/* planner.h - what to do next. A pure function: history, policy, now and a random word in, one step out. No I/O, no state:
 * asked twice with the same input it says the same.
 *
 *   ATTEMPT     send the command now (timeout_ms); `pays`: first take a token, and ask again without tokens when there is none
 *   WAIT        until due_ms, then ask again; `next_action`, `reason` tell why. `pays` as above. history_apply_wait keeps it
 *   ASK         ask the server about the command now (ask, timeout_ms, hold_s)
 *   STOP        outcome, stop, reason, retry_after_s
 *
 * Nothing is sent but for GOAL_RUN: whoever only waits or voids gets questions, or a stop (plan_may_send).
 *
 * Limits, in the order in which they are met: attempts, safety of sending again, the body, the key's age, the server's
 * patience, the deadline, the breaker, the budget. An ambiguous command is asked for before any of them ends the run, where
 * asking is possible. */
#ifndef NONBIS_CLIENT_PLANNER_H
#define NONBIS_CLIENT_PLANNER_H

#include "client-sdk/src/history.h"
#include "client-sdk/src/policy.h"

enum plan_action { PLAN_ATTEMPT, PLAN_WAIT, PLAN_ASK, PLAN_STOP };

/* Why; reason_text gives the words. */
enum reason {
    REASON_NONE,
    REASON_FIRST, /* "first-attempt" */
    REASON_COMPLETED,
    REASON_MAX_ATTEMPTS,
    REASON_NON_RETRYABLE,  /* "non-retryable-error:KIND" */
    REASON_NOT_RETRY_SAFE, /* "operation-not-retry-safe" */
    REASON_NOT_REPLAYABLE, /* "body-not-replayable" */
    REASON_DEADLINE,
    REASON_SERVER_DELAY,
    REASON_BACKOFF_JITTER,
    REASON_RATE_LIMIT, /* "server-rate-limit" */
    REASON_SERVER_WAIT_TOO_LONG,
    REASON_BUDGET, /* "retry-budget-exhausted" */
    REASON_CIRCUIT_OPEN,
    REASON_OFFLINE,
    REASON_OUTCOME_CHECK, /* ambiguous: ask before sending again */
    REASON_IN_PROGRESS,   /* "command-in-progress" */
    REASON_FETCH,         /* "command-completed": its answer is to be had */
    REASON_NOT_SEEN,
    REASON_KEY_EXPIRED,
    REASON_REFUSED,
    REASON_OUTCOME_UNKNOWN,
    REASON_NO_STATUS, /* "no-status-resource": only a run could tell, and a run was not asked for */
    REASON_VOID,      /* "voiding" */
    REASON_VOIDED,
    REASON_CANCELLED,
    REASON_CALLER, /* "stopped-by-caller" */
    REASON_LOCAL,  /* "local-error" */
    REASON_COUNT
};

struct plan_input {
    const struct nonbis_policy *policy;
    const struct history *history;
    int64_t now_ms, wall_ms;
    uint64_t random;
    bool has_token;           /* budget_has, or false after budget_take failed */
    int64_t breaker_until_ms; /* breaker_closed_until */
};

struct plan {
    enum plan_action action;
    enum reason reason;
    bool pays;
    int64_t timeout_ms;           /* ATTEMPT, ASK */
    bool fresh;                   /* no kept connection */
    enum ask ask;                 /* ASK, or behind a WAIT */
    int64_t hold_s;               /* ASK: Prefer: wait; 0 none */
    int64_t due_ms;               /* WAIT: monotonic */
    int64_t delay_ms;             /* WAIT: from now */
    int64_t server_delay_ms;      /* the part of it that the server asked for; -1 none */
    enum plan_action next_action; /* WAIT: what for */
    enum nonbis_outcome outcome;  /* STOP */
    enum nonbis_stop stop;
    int64_t retry_after_s; /* RETRY_LATER; else -1 */
};

struct plan plan_next(const struct plan_input *input);

/* Remembers a WAIT (and what it paid), so that the next call goes on from there. */
void history_apply_wait(struct history *history, const struct plan *plan);

const char *reason_text(enum reason reason);

#endif
