/* problem.h - the answers that nonbis makes itself, as data (the table of docs/contract.md section 5). Rendering them as JSON is
 * server/api/problem_body.h. Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_PROBLEM_H
#define NONBIS_SERVER_CORE_PROBLEM_H

#include "server/core/decision.h"

enum problem {
    PROBLEM_REQUEST_MALFORMED,
    PROBLEM_KEY_MISSING,
    PROBLEM_KEY_MALFORMED,
    PROBLEM_TENANT_MISSING,
    PROBLEM_BODY_TOO_LARGE,
    PROBLEM_KEY_REUSED,
    PROBLEM_KEY_EXPIRED,
    PROBLEM_KEY_VOIDED,
    PROBLEM_NOT_VOIDABLE,
    PROBLEM_IN_PROGRESS,
    PROBLEM_STILL_RUNNING,
    PROBLEM_OUTCOME_UNKNOWN,
    PROBLEM_UPSTREAM_NOT_REACHED,
    PROBLEM_UNAVAILABLE,
    PROBLEM_QUOTA_EXCEEDED,
    PROBLEM_KEY_NOT_SEEN,
    PROBLEM_UPSTREAM_FAILED,
    PROBLEM_UPSTREAM_TIMEOUT,
    PROBLEM_NOT_FOUND,
    PROBLEM_METHOD_NOT_ALLOWED,
    PROBLEM_LOOP_DETECTED,
    PROBLEM_COUNT
};

enum problem_executed {
    PROBLEM_TELLS_UNKNOWN,
    PROBLEM_TELLS_NO,
    PROBLEM_TELLS_RECORD, /* as the record that was read */
    PROBLEM_TELLS_NOTHING /* the member is left out */
};

struct problem_row {
    const char *name;  /* behind urn:nonbis:problem: */
    int status;        /* default; request-malformed brings its own */
    const char *title; /* one short sentence, the same for every instance (RFC 9457 section 3.1.3) */
    bool retryable;
    bool retry_after;
    enum problem_executed executed;
    const char *idempotency_status; /* NULL: the field is not sent */
};
extern const struct problem_row problem_table[PROBLEM_COUNT];

/* The problem that a verdict is answered with; not for FORWARD and REPLAY (PROBLEM_UNAVAILABLE then, and for IMPOSSIBLE). */
enum problem problem_of_verdict(enum verdict verdict);

/* Retry-After in whole seconds, at least 1: what the route's observed latency suggests, spread by half to one and a half
 * of it with `random`, so that a herd does not come back together. At most 60. */
unsigned problem_retry_after_s(int64_t latency_ms, uint32_t random);

#endif
