/* ways.c - see ways.h. Asks outcome_of() about every end, status, Retry-After and word of the handler. */
#include "tests/proof/model/ways.h"

#include <stddef.h>

static enum way way_of_status(int status, bool retry_after)
{
    static const int declared[] = { 401, 425, 429 }, open[] = { 408, 502, 504 };
    for (size_t i = 0; i < sizeof(declared) / sizeof(declared[0]); i++) {
        if (status == declared[i]) {
            return WAY_DECLARED;
        }
        if (status == open[i]) {
            return WAY_OPEN;
        }
    }
    return status != 503 ? WAY_ANSWERED : retry_after ? WAY_DECLARED : WAY_OPEN;
}

static enum way way_of(const struct attempt *attempt)
{
    switch (attempt->end) {
    case ATTEMPT_NOT_SENT:
        return WAY_NOT_SENT;
    case ATTEMPT_TIMEOUT:
    case ATTEMPT_SHUTDOWN:
        return WAY_ABORTED;
    case ATTEMPT_COMPLETE:
        break;
    default:
        return WAY_OPEN;
    }
    if (attempt->status < 200 || attempt->word == HANDLER_SAYS_UNKNOWN) {
        return WAY_OPEN;
    }
    if (attempt->word != HANDLER_SAYS_NOTHING) {
        return attempt->word == HANDLER_SAYS_COMPLETED ? WAY_ANSWERED : WAY_DECLARED;
    }
    return way_of_status(attempt->status, attempt->retry_after);
}

unsigned way_outcomes(enum way way)
{
    unsigned kinds = 0;
    for (int end = 0; end < ATTEMPT_END_COUNT; end++) {
        for (int status = 100; status < 600; status++) {
            for (int more = 0; more < 8; more++) { /* Retry-After or not, and the handler's word */
                struct attempt attempt = { .end = (enum attempt_end) end,
                                           .status = status,
                                           .retry_after = more % 2 == 1,
                                           .word = (enum handler_word)(more / 2) };
                if (way_of(&attempt) == way) {
                    kinds |= 1U << outcome_of(&attempt, NULL).kind;
                }
            }
        }
    }
    return kinds;
}

const char *way_name(enum way way)
{
    static const char *const names[WAY_COUNT] = {
        [WAY_NOT_SENT] = "not-sent", [WAY_DECLARED] = "declared", [WAY_ANSWERED] = "answered",
        [WAY_OPEN] = "open",         [WAY_ABORTED] = "aborted",
    };
    return names[way];
}
