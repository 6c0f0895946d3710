/* told.h - JSON of a nonbis server, read: problems (docs/contract.md section 5) and the status resource (section 7). The
 * only file of the library that knows cJSON. Owns copies. One thread at a time. */
#ifndef NONBIS_CLIENT_TOLD_H
#define NONBIS_CLIENT_TOLD_H

#include "client-sdk/include/nonbis.h"
#include "client-sdk/src/answer.h"

enum { TOLD_NAME_BYTES = 40, TOLD_TEXT_BYTES = 256, TOLD_TARGET_BYTES = 4096 };

enum told_executed { TOLD_EXECUTED_NOT_SAID, TOLD_EXECUTED_NO, TOLD_EXECUTED_YES, TOLD_EXECUTED_UNKNOWN };

/* A problem that nonbis made. The prefix of its type is a setting of the server, so it is known by its name behind the last
 * of ":/#" and by the member "retryable", which no other problem is expected to have. */
struct told_problem {
    char name[TOLD_NAME_BYTES];
    char detail[TOLD_TEXT_BYTES];
    char state[TOLD_NAME_BYTES]; /* of not-voidable */
    bool certain;                /* its type has the prefix that nonbis has by default */
    bool retryable;
    enum told_executed executed;
    bool differs_credentials; /* of key-reused */
    int64_t window_start_ms;  /* of key-not-seen; 0: not told */
};

/* False when the body is no problem of nonbis. */
bool told_problem_read(const struct answer *answer, struct told_problem *problem);

/* What is said of a route (contract 7.7); false when the body does not say it. */
bool told_route_read(const struct answer *answer, bool *is_protected);

/* The status document, as nonbis_op_status gives it; the texts lie here. */
struct told_status {
    char state[TOLD_NAME_BYTES], executed[TOLD_NAME_BYTES], cause[TOLD_NAME_BYTES], id[TOLD_NAME_BYTES];
    char request_method[TOLD_NAME_BYTES], request_target[TOLD_TARGET_BYTES];
    int64_t executions, replays, created_ms, completed_ms, expires_ms;
    int response_status;
    int64_t response_length;
    bool response_kept, resolved;
};

/* False when the body is no status document (no JSON object with a text "state"). */
bool told_status_read(const struct answer *answer, struct told_status *status);

#endif
