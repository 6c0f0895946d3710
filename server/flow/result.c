/* result.c - see result.h. */
#include "server/flow/result.h"

const char *result_name(enum result result)
{
    static const char *const names[RESULT_PROBLEM] = {
        [RESULT_NONE] = "none",
        [RESULT_EXECUTED] = "executed",
        [RESULT_REPLAYED] = "replayed",
        [RESULT_IN_PROGRESS] = "in-progress",
        [RESULT_UNKNOWN] = "unknown",
        [RESULT_NOT_EXECUTED] = "not-executed",
        [RESULT_UNRECORDED] = "unrecorded",
        [RESULT_REFUSED] = "refused",
        [RESULT_UNAVAILABLE] = "unavailable",
        [RESULT_INCOMPLETE_REQUEST] = "incomplete-request",
        [RESULT_BUG] = "bug",
        [RESULT_PASSED] = "passed",
        [RESULT_FAILED] = "failed",
        [RESULT_TIMEOUT] = "timeout",
        [RESULT_CUT] = "cut",
        [RESULT_CLIENT_LEFT] = "client-left",
        [RESULT_STOPPED] = "stopped",
        [RESULT_CONTRACT] = "contract",
    };
    if (result < RESULT_PROBLEM) {
        return names[result];
    }
    if (result < RESULT_STATE) {
        return problem_table[result - RESULT_PROBLEM].name;
    }
    return result < RESULT_COUNT ? record_state_name((enum record_state)(result - RESULT_STATE)) : "none";
}
