/* outcome.c - the table of docs/contract.md section 6. Owns nothing. What does not prove that the handler has answered, or has
 * not begun, is unknown. */
#include "server/core/outcome.h"

#include <stddef.h>

static struct outcome outcome_unknown(enum cause cause, bool pass)
{
    return (struct outcome){ .kind = OUTCOME_UNKNOWN, .cause = cause, .pass = pass };
}

static struct outcome outcome_known(enum outcome_kind kind)
{
    return (struct outcome){ .kind = kind, .cause = CAUSE_NONE, .pass = true };
}

/* Of a complete response in which the handler says nothing about the outcome itself. */
static struct outcome outcome_of_status(int status, bool retry_after, const struct outcome_rules *rules)
{
    if (rules != NULL && status_set_has(&rules->unknown, status)) {
        return outcome_unknown(CAUSE_STATUS, true);
    }
    if (rules != NULL && status_set_has(&rules->release, status)) {
        return outcome_known(OUTCOME_NOT_EXECUTED);
    }
    switch (status) {
    case 401:
    case 425:
    case 429:
        return outcome_known(OUTCOME_NOT_EXECUTED);
    case 503:
        /* With Retry-After it is load shedding; without, also what timeouts of frameworks answer while the handler still runs. */
        return retry_after ? outcome_known(OUTCOME_NOT_EXECUTED) : outcome_unknown(CAUSE_STATUS, true);
    case 408:
    case 502:
    case 504:
        return outcome_unknown(CAUSE_STATUS, true);
    default:
        return outcome_known(OUTCOME_COMPLETED);
    }
}

static struct outcome outcome_of_response(const struct attempt *attempt, const struct outcome_rules *rules)
{
    if (attempt->status < 200) {
        return outcome_unknown(CAUSE_GARBAGE, false); /* 1xx is never final; 101 leaves HTTP */
    }
    switch (attempt->word) {
    case HANDLER_SAYS_COMPLETED:
        return outcome_known(OUTCOME_COMPLETED);
    case HANDLER_SAYS_NOT_EXECUTED:
        return outcome_known(OUTCOME_NOT_EXECUTED);
    case HANDLER_SAYS_UNKNOWN:
        return outcome_unknown(CAUSE_HANDLER, true);
    case HANDLER_SAYS_NOTHING:
        break;
    }
    return outcome_of_status(attempt->status, attempt->retry_after, rules);
}

struct outcome outcome_of(const struct attempt *attempt, const struct outcome_rules *rules)
{
    switch (attempt->end) {
    case ATTEMPT_NOT_SENT:
        return (struct outcome){ .kind = OUTCOME_NOT_EXECUTED, .cause = CAUSE_NONE, .pass = false };
    case ATTEMPT_COMPLETE:
        return outcome_of_response(attempt, rules);
    case ATTEMPT_RESET:
        return outcome_unknown(CAUSE_RESET, false);
    case ATTEMPT_CUT:
        return outcome_unknown(CAUSE_CUT, false);
    case ATTEMPT_CLOSE_DELIMITED:
        return outcome_unknown(CAUSE_CLOSE_DELIMITED, false);
    case ATTEMPT_TIMEOUT:
        return outcome_unknown(CAUSE_TIMEOUT, false);
    case ATTEMPT_SHUTDOWN:
        return outcome_unknown(CAUSE_SHUTDOWN, false);
    case ATTEMPT_GARBAGE:
    case ATTEMPT_END_COUNT:
        break;
    }
    return outcome_unknown(CAUSE_GARBAGE, false);
}

const char *attempt_end_name(enum attempt_end end)
{
    static const char *const names[ATTEMPT_END_COUNT] = {
        [ATTEMPT_NOT_SENT] = "not-sent", [ATTEMPT_COMPLETE] = "complete", [ATTEMPT_RESET] = "reset",
        [ATTEMPT_CUT] = "cut",           [ATTEMPT_GARBAGE] = "garbage",   [ATTEMPT_CLOSE_DELIMITED] = "close-delimited",
        [ATTEMPT_TIMEOUT] = "timeout",   [ATTEMPT_SHUTDOWN] = "shutdown",
    };
    return (unsigned) end < ATTEMPT_END_COUNT ? names[end] : "garbage";
}
