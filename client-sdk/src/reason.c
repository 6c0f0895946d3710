/* reason.c - the words for reasons; the public list is at nonbis_op_reason. */
#include "client-sdk/src/planner.h"

const char *reason_text(enum reason reason)
{
    static const char *const texts[REASON_COUNT] = {
        [REASON_NONE] = "",
        [REASON_FIRST] = "first-attempt",
        [REASON_COMPLETED] = "completed",
        [REASON_MAX_ATTEMPTS] = "max-attempts-reached",
        [REASON_NON_RETRYABLE] = "non-retryable-error",
        [REASON_NOT_RETRY_SAFE] = "operation-not-retry-safe",
        [REASON_NOT_REPLAYABLE] = "body-not-replayable",
        [REASON_DEADLINE] = "deadline-exceeded",
        [REASON_SERVER_DELAY] = "server-delay",
        [REASON_BACKOFF_JITTER] = "backoff-jitter",
        [REASON_RATE_LIMIT] = "server-rate-limit",
        [REASON_SERVER_WAIT_TOO_LONG] = "server-wait-too-long",
        [REASON_BUDGET] = "retry-budget-exhausted",
        [REASON_CIRCUIT_OPEN] = "circuit-open",
        [REASON_OFFLINE] = "offline",
        [REASON_OUTCOME_CHECK] = "outcome-check",
        [REASON_IN_PROGRESS] = "command-in-progress",
        [REASON_FETCH] = "command-completed",
        [REASON_NOT_SEEN] = "not-seen",
        [REASON_KEY_EXPIRED] = "key-expired",
        [REASON_REFUSED] = "refused",
        [REASON_OUTCOME_UNKNOWN] = "outcome-unknown",
        [REASON_NO_STATUS] = "no-status-resource",
        [REASON_VOID] = "voiding",
        [REASON_VOIDED] = "voided",
        [REASON_CANCELLED] = "cancelled",
        [REASON_CALLER] = "stopped-by-caller",
        [REASON_LOCAL] = "local-error",
    };
    return (unsigned) reason < REASON_COUNT ? texts[reason] : "";
}
