/* ways.h - the ways in which one sending can end, by what they prove in truth (docs/contract.md section 6, read by a person), and what
 * outcome_of() makes of every exchange of each way. Pure. */
#ifndef NONBIS_TESTS_PROOF_MODEL_WAYS_H
#define NONBIS_TESTS_PROOF_MODEL_WAYS_H

#include "server/core/outcome.h"

enum way {
    WAY_NOT_SENT, /* no byte was handed over: proved not executed */
    WAY_DECLARED, /* the handler says that it did nothing and will not */
    WAY_ANSWERED, /* a complete, final answer */
    WAY_OPEN,     /* it may have acted, and may act yet */
    WAY_ABORTED,  /* we stopped listening: hard_timeout, end of a drain */
    WAY_COUNT
};

/* Bits (1 << kind) of the outcomes that the code names for exchanges of this way: one bit, when it is right. */
unsigned way_outcomes(enum way way);

const char *way_name(enum way way); /* "not-sent", ... */

#endif
