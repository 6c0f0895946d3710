/* outcome.h - what one upstream exchange proves (the table of docs/contract.md section 6). Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_OUTCOME_H
#define NONBIS_SERVER_CORE_OUTCOME_H

#include "server/core/record.h"
#include "server/core/status_set.h"

enum attempt_end {
    ATTEMPT_NOT_SENT, /* no request byte was handed to the connection */
    ATTEMPT_COMPLETE, /* a final response whose framing said that it is whole */
    ATTEMPT_RESET,    /* reset or closed before the first response byte */
    ATTEMPT_CUT,      /* closed or reset inside the response */
    ATTEMPT_GARBAGE, /* not HTTP, two framings, 101, a head over the limit, a response before the request was written */
    ATTEMPT_CLOSE_DELIMITED, /* ended only by close */
    ATTEMPT_TIMEOUT,         /* hard_timeout */
    ATTEMPT_SHUTDOWN,        /* the drain ended first */
    ATTEMPT_END_COUNT
};

enum handler_word { HANDLER_SAYS_NOTHING, HANDLER_SAYS_COMPLETED, HANDLER_SAYS_NOT_EXECUTED, HANDLER_SAYS_UNKNOWN };

struct attempt {
    enum attempt_end end;
    /* for ATTEMPT_COMPLETE */
    int status;
    bool retry_after; /* a Retry-After field is there */
    enum handler_word word;
};

/* Route options: statuses listed here are classed so, whatever the default; `unknown` wins. */
struct outcome_rules {
    struct status_set release, unknown;
};

struct outcome {
    enum outcome_kind kind;
    enum cause cause; /* CAUSE_NONE unless unknown */
    bool pass;        /* the handler's own answer goes to the client; else a problem does */
};

struct outcome outcome_of(const struct attempt *attempt, const struct outcome_rules *rules);

const char *attempt_end_name(enum attempt_end end);

#endif
