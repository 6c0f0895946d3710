/* result.h - the one word that says how a request ended: in its line of the log, and as a label of the metrics. Pure. Any thread.
 *
 * Beside the words of its own a request may end with a problem (RESULT_PROBLEM and its number), or with the state that a query was told
 * (RESULT_STATE and its number). Some numbers share a word: "unknown" is a result and a state. */
#ifndef NONBIS_SERVER_FLOW_RESULT_H
#define NONBIS_SERVER_FLOW_RESULT_H

#include "server/core/problem.h"

enum result {
    RESULT_NONE, /* nothing has ended it yet */
    /* a keyed request on a protected route */
    RESULT_EXECUTED,
    RESULT_REPLAYED,
    RESULT_IN_PROGRESS,
    RESULT_UNKNOWN,
    RESULT_NOT_EXECUTED,
    RESULT_UNRECORDED,
    RESULT_REFUSED, /* which problem it was is told beside it */
    RESULT_UNAVAILABLE,
    RESULT_INCOMPLETE_REQUEST,
    RESULT_BUG,
    /* pass-through */
    RESULT_PASSED,
    RESULT_FAILED,
    RESULT_TIMEOUT,
    RESULT_CUT,
    RESULT_CLIENT_LEFT,
    RESULT_STOPPED,
    /* below /_nonbis */
    RESULT_CONTRACT,

    RESULT_PROBLEM, /* and the enum problem */
    RESULT_STATE = RESULT_PROBLEM + PROBLEM_COUNT,
    RESULT_COUNT = RESULT_STATE + RECORD_STATE_COUNT
};

static inline enum result result_of_problem(enum problem problem)
{
    return (enum result)(RESULT_PROBLEM + (int) problem);
}

static inline enum result result_of_state(enum record_state state)
{
    return (enum result)(RESULT_STATE + (int) state);
}

const char *result_name(enum result result);

#endif
