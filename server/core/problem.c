/* problem.c - the table of docs/contract.md section 5. Owns nothing. */
#include "server/core/problem.h"

#include "schema/wire.h"

#include <stddef.h>

const struct problem_row problem_table[PROBLEM_COUNT] = {
    [PROBLEM_REQUEST_MALFORMED] = { .name = "request-malformed",
                                    .status = 400,
                                    .title = "The request is malformed.",
                                    .executed = PROBLEM_TELLS_UNKNOWN },
    [PROBLEM_KEY_MISSING] = { .name = "key-missing",
                              .status = 400,
                              .title = "This resource needs an Idempotency-Key.",
                              .executed = PROBLEM_TELLS_UNKNOWN },
    [PROBLEM_KEY_MALFORMED] = { .name = "key-malformed",
                                .status = 400,
                                .title = "The Idempotency-Key is malformed.",
                                .executed = PROBLEM_TELLS_UNKNOWN,
                                .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_TENANT_MISSING] = { .name = "tenant-missing",
                                 .status = 401,
                                 .title = "The tenant of the request is not known.",
                                 .executed = PROBLEM_TELLS_UNKNOWN },
    [PROBLEM_BODY_TOO_LARGE] = { .name = "body-too-large",
                                 .status = 413,
                                 .title = "The request body is too large.",
                                 .executed = PROBLEM_TELLS_UNKNOWN,
                                 .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_KEY_REUSED] = { .name = "key-reused",
                             .status = 422,
                             .title = "The Idempotency-Key was used for another request.",
                             .executed = PROBLEM_TELLS_NOTHING,
                             .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_KEY_EXPIRED] = { .name = "key-expired",
                              .status = 422,
                              .title = "The outcome of this command is no longer kept.",
                              .executed = PROBLEM_TELLS_RECORD,
                              .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_KEY_VOIDED] = { .name = "key-voided",
                             .status = 422,
                             .title = "The command was voided before it was executed.",
                             .executed = PROBLEM_TELLS_NO,
                             .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_NOT_VOIDABLE] = { .name = "not-voidable",
                               .status = 422,
                               .title = "The command can no longer be voided.",
                               .executed = PROBLEM_TELLS_RECORD },
    [PROBLEM_IN_PROGRESS] = { .name = "in-progress",
                              .status = 409,
                              .title = "The command is being executed.",
                              .retryable = true,
                              .retry_after = true,
                              .executed = PROBLEM_TELLS_UNKNOWN,
                              .idempotency_status = WIRE_WORD_IN_PROGRESS },
    [PROBLEM_STILL_RUNNING] = { .name = "still-running",
                                .status = 504,
                                .title = "The command is still being executed.",
                                .retryable = true,
                                .retry_after = true,
                                .executed = PROBLEM_TELLS_UNKNOWN,
                                .idempotency_status = WIRE_WORD_IN_PROGRESS },
    [PROBLEM_OUTCOME_UNKNOWN] = { .name = "outcome-unknown",
                                  .status = 504,
                                  .title = "It is not known whether the command was executed.",
                                  .executed = PROBLEM_TELLS_UNKNOWN,
                                  .idempotency_status = WIRE_WORD_UNKNOWN },
    [PROBLEM_UPSTREAM_NOT_REACHED] = { .name = "upstream-not-reached",
                                       .status = 502,
                                       .title = "The handler could not be reached.",
                                       .retryable = true,
                                       .retry_after = true,
                                       .executed = PROBLEM_TELLS_NO,
                                       .idempotency_status = WIRE_WORD_NOT_EXECUTED },
    [PROBLEM_UNAVAILABLE] = { .name = "unavailable",
                              .status = 503,
                              .title = "New commands are not accepted at the moment.",
                              .retryable = true,
                              .retry_after = true,
                              .executed = PROBLEM_TELLS_UNKNOWN,
                              .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_QUOTA_EXCEEDED] = { .name = "quota-exceeded",
                                 .status = 429,
                                 .title = "The tenant has used up its quota.",
                                 .retryable = true,
                                 .retry_after = true,
                                 .executed = PROBLEM_TELLS_UNKNOWN,
                                 .idempotency_status = WIRE_WORD_REFUSED },
    [PROBLEM_KEY_NOT_SEEN] = { .name = "key-not-seen",
                               .status = 404,
                               .title = "No command with this key is known.",
                               .retryable = true,
                               .executed = PROBLEM_TELLS_UNKNOWN },
    [PROBLEM_UPSTREAM_FAILED] = { .name = "upstream-failed",
                                  .status = 502,
                                  .title = "The handler gave no usable answer.",
                                  .executed = PROBLEM_TELLS_NOTHING },
    [PROBLEM_UPSTREAM_TIMEOUT] = { .name = "upstream-timeout",
                                   .status = 504,
                                   .title = "The handler did not answer in time.",
                                   .executed = PROBLEM_TELLS_NOTHING },
    [PROBLEM_NOT_FOUND] = { .name = "not-found",
                            .status = 404,
                            .title = "There is no such resource.",
                            .executed = PROBLEM_TELLS_NOTHING },
    [PROBLEM_METHOD_NOT_ALLOWED] = { .name = "method-not-allowed",
                                     .status = 405,
                                     .title = "The resource does not allow this method.",
                                     .executed = PROBLEM_TELLS_NOTHING },
    [PROBLEM_LOOP_DETECTED] = { .name = "loop-detected",
                                .status = 508,
                                .title = "The request came back to this proxy.",
                                .executed = PROBLEM_TELLS_UNKNOWN },
};

enum problem problem_of_verdict(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_WAIT: /* a wait that has ended without an outcome */
    case VERDICT_IN_PROGRESS:
        return PROBLEM_IN_PROGRESS;
    case VERDICT_KEY_REUSED:
        return PROBLEM_KEY_REUSED;
    case VERDICT_KEY_EXPIRED:
        return PROBLEM_KEY_EXPIRED;
    case VERDICT_KEY_VOIDED:
        return PROBLEM_KEY_VOIDED;
    case VERDICT_OUTCOME_UNKNOWN:
        return PROBLEM_OUTCOME_UNKNOWN;
    case VERDICT_FORWARD:
    case VERDICT_REPLAY:
    case VERDICT_IMPOSSIBLE:
    case VERDICT_COUNT:
        break;
    }
    return PROBLEM_UNAVAILABLE;
}

unsigned problem_retry_after_s(int64_t latency_ms, uint32_t random)
{
    /* Capped before it is spread, so that a slow route's clients are spread too: 40 s gives 20 to 60. */
    enum { LATENCY_MS_MAX = 40 * 1000 };
    uint64_t base_ms = latency_ms <= 0 ? 0 : (uint64_t) latency_ms;
    if (base_ms > LATENCY_MS_MAX) {
        base_ms = LATENCY_MS_MAX;
    }
    uint64_t spread_ms = base_ms / 2 + ((base_ms * random) >> 32);
    uint64_t seconds = (spread_ms + 999) / 1000;
    return seconds < 1 ? 1 : (unsigned) seconds;
}
