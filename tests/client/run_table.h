/* run_table.h - the rows of run_test.c: what the other side does, step by step, and how the run must end. */
#ifndef NONBIS_TESTS_CLIENT_RUN_TABLE_H
#define NONBIS_TESTS_CLIENT_RUN_TABLE_H

#include "tests/client/lab.h"
#include "tests/client/step.h"

/* clang-format off */
#define DETECT NONBIS_SERVER_DETECT
#define NONBIS NONBIS_SERVER_NONBIS
#define KEYED  NONBIS_SERVER_KEYED
#define PLAIN  NONBIS_SERVER_PLAIN

/* The last step is played again and again. Attempts and questions are counted at the other side; with a deadline, questions are
 * as many as there was time for. */
static const struct flow {
    const char *what;
    enum nonbis_server server;
    int attempts_max; /* 0: 4 */
    struct lab_step steps[7];
    int step_count;
    size_t attempts, questions;
    const char *end; /* outcome/stop, status of the last answer, reason */
} flows[] = {
    { "2xx", DETECT, 0, { ANSWER(201) }, 1, 1, 0, "completed/done 201 completed" },
    /* Stops after one attempt. */
    { "400", KEYED, 0, { ANSWER(400) }, 1, 1, 0, "completed/done 400 non-retryable-error:validation" },
    { "401", KEYED, 0, { ANSWER(401) }, 1, 1, 0, "completed/done 401 non-retryable-error:authn" },
    { "403", KEYED, 0, { ANSWER(403) }, 1, 1, 0, "completed/done 403 non-retryable-error:authz" },
    { "404", KEYED, 0, { ANSWER(404) }, 1, 1, 0, "completed/done 404 non-retryable-error:http" },
    { "422", KEYED, 0, { ANSWER(422) }, 1, 1, 0, "completed/done 422 non-retryable-error:validation" },
    { "409", KEYED, 0, { ANSWER(409) }, 1, 1, 0, "completed/done 409 non-retryable-error:concurrency" },
    { "400 by a nonbis", NONBIS, 0, { SAYS(400, "executed") }, 1, 1, 0, "completed/done 400 completed" },
    { "401 released", NONBIS, 0, { SAYS(401, "not-executed") }, 1, 1, 0,
      "not-applied/server-said-no 401 non-retryable-error:authn" },
    { "replayed 500", NONBIS, 0, { SAYS(500, "replayed") }, 1, 1, 0, "completed/done 500 completed" },
    { "replayed 500 elsewhere", KEYED, 0, { ANSWER_FIELDS(500, "Idempotent-Replayed: true") }, 1, 1, 0,
      "completed/done 500 completed" },
    { "one attempt is one", KEYED, 1, { ANSWER(503) }, 1, 1, 0, "unknown/attempts 503 max-attempts-reached" },
    { "one attempt, lost", KEYED, 1, { LOST }, 1, 1, 0, "unknown/attempts 0 max-attempts-reached" },
    { "one attempt, not sent", KEYED, 1, { NOT_SENT(7) }, 1, 0, 0, "not-sent/attempts 0 max-attempts-reached" },
    /* Again, where it helps. */
    { "refused, then there", DETECT, 0, { NOT_SENT(7), ANSWER(201) }, 2, 1, 0, "completed/done 201 completed" },
    { "429 twice", DETECT, 0, { ANSWER(429), ANSWER(429), ANSWER(201) }, 3, 3, 0, "completed/done 201 completed" },
    { "503 for ever", KEYED, 0, { ANSWER(503) }, 1, 4, 0, "unknown/attempts 503 max-attempts-reached" },
    { "503 with Retry-After for ever", KEYED, 0, { ANSWER_FIELDS(503, "Retry-After: 1") }, 1, 4, 0,
      "not-applied/attempts 503 max-attempts-reached" },
    { "not there for ever", NONBIS, 0, { NOT_SENT(7) }, 1, 0, 0, "not-sent/attempts 0 max-attempts-reached" },
    { "500 elsewhere", KEYED, 0, { ANSWER(500), ANSWER(201) }, 2, 2, 0, "completed/done 201 completed" },
    { "released, then done", NONBIS, 0, { WAITS(502, "not-executed", "1", "upstream-not-reached"), SAYS(201, "executed") }, 2, 2, 0, "completed/done 201 completed" },
    /* Ambiguous: asked before anything is sent again. */
    { "lost, completed", NONBIS, 0, { LOST, IS_COMPLETED, REPLAY }, 3, 1, 2, "completed/done 201 completed" },
    { "lost, completed, detected", DETECT, 0, { LOST, IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    { "lost, not seen, sent again", NONBIS, 0, { TIMED_OUT, NOT_SEEN, SAYS(201, "executed") }, 3, 2, 1,
      "completed/done 201 completed" },
    /* A nonbis that has not seen the key: does it stand where the command went? The question about the route tells. */
    { "lost, not seen, where the route says nothing", DETECT, 0, { TIMED_OUT, NOT_SEEN, ANSWER(200) }, 3, 1, 2,
      "unknown/not-replayable 0 operation-not-retry-safe" },
    { "lost, not seen, where OPTIONS is refused", DETECT, 0, { TIMED_OUT, NOT_SEEN, ANSWER(405) }, 3, 1, 2,
      "unknown/not-replayable 0 operation-not-retry-safe" },
    { "lost, not seen, where OPTIONS fails", DETECT, 0, { TIMED_OUT, NOT_SEEN, ANSWER(503) }, 3, 1, 2,
      "unknown/not-replayable 0 operation-not-retry-safe" },
    { "lost, not seen, not protected", DETECT, 0, { TIMED_OUT, NOT_SEEN, ROUTE("false") }, 3, 1, 2,
      "unknown/not-replayable 0 operation-not-retry-safe" },
    { "lost, not seen, protected, still not seen", DETECT, 0,
      { TIMED_OUT, NOT_SEEN, ROUTE("true"), NOT_SEEN, SAYS(201, "executed") }, 5, 2, 3, "completed/done 201 completed" },
    { "lost, not seen, protected, seen by now", DETECT, 0,
      { TIMED_OUT, NOT_SEEN, ROUTE("true"), IS_COMPLETED, REPLAY }, 5, 1, 4, "completed/done 201 completed" },
    { "the last attempt is lost, not seen, protected", DETECT, 1, { LOST, NOT_SEEN, ROUTE("true"), NOT_SEEN }, 4, 1, 3,
      "not-applied/attempts 0 max-attempts-reached" },
    { "lost, not seen, and the word about the route is lost once", DETECT, 0,
      { LOST, NOT_SEEN, LOST, NOT_SEEN, ROUTE("true"), NOT_SEEN, SAYS(201, "executed") }, 7, 2, 5,
      "completed/done 201 completed" },
    { "lost, and no nonbis", DETECT, 0, { LOST, ANSWER(404) }, 2, 1, 1,
      "unknown/not-replayable 0 operation-not-retry-safe" },
    { "lost, and said to deduplicate", KEYED, 0, { LOST, ANSWER(201) }, 2, 2, 0, "completed/done 201 completed" },
    { "lost, and said not to", PLAIN, 0, { LOST }, 1, 1, 0, "unknown/not-replayable 0 operation-not-retry-safe" },
    { "a second sending was stopped", NONBIS, 0, { { .code = 42, .hooks = 2 }, IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    { "cut, completed", NONBIS, 0, { SAYS_CUT(201, "executed"), IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    { "a cut replay is fetched", NONBIS, 0, { SAYS_CUT(201, "replayed"), REPLAY }, 2, 1, 1,
      "completed/done 201 completed" },
    { "lost, status unknown", NONBIS, 0, { LOST, IS("unknown", "unknown") }, 2, 1, 1,
      "unknown/server-said-no 0 outcome-unknown" },
    { "outcome-unknown", NONBIS, 0, { SAYS(504, "unknown"), IS("unknown", "unknown") }, 2, 1, 1,
      "unknown/server-said-no 504 outcome-unknown" },
    { "outcome-unknown, found out since", NONBIS, 0, { SAYS(504, "unknown"), IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    { "lost, released, sent again", NONBIS, 0, { LOST, IS("released", "no"), SAYS(201, "executed") }, 3, 2, 1,
      "completed/done 201 completed" },
    { "lost, voided by somebody", NONBIS, 0, { LOST, IS("voided", "no") }, 2, 1, 1,
      "not-applied/server-said-no 0 voided" },
    { "the last attempt is lost, and asked for", NONBIS, 1, { LOST, IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    { "the last attempt is lost, not seen", NONBIS, 1, { LOST, NOT_SEEN }, 2, 1, 1,
      "not-applied/attempts 0 max-attempts-reached" },
    { "no answer to the question: the same key is one too", NONBIS, 0, { LOST, NOT_SENT(7), SAYS(201, "replayed") },
      3, 2, 1, "completed/done 201 completed" },
    { "500 of a nonbis' front", NONBIS, 0, { ANSWER(502), IS_COMPLETED, REPLAY }, 3, 1, 2,
      "completed/done 201 completed" },
    /* Running: waited for. */
    { "in progress, then completed", DETECT, 0, { WAITS(409, "in-progress", "1", "in-progress"), IS_RUNNING,
      IS_COMPLETED, REPLAY }, 4, 1, 3, "completed/done 201 completed" },
    { "in progress for ever", NONBIS, 0, { WAITS(409, "in-progress", "1", "in-progress"), IS_RUNNING }, 2, 1, 0,
      "in-progress/deadline 409 deadline-exceeded" },
    /* A 401 says nothing about the attempt before it. */
    { "lost, then turned away", KEYED, 0, { LOST, ANSWER(401) }, 2, 2, 0,
      "unknown/server-said-no 401 non-retryable-error:authn" },
    { "lost, then a conflict", KEYED, 0, { LOST, ANSWER(409), ANSWER(201) }, 3, 3, 0,
      "completed/done 201 completed" },
    { "lost, then throttled for ever", KEYED, 0, { LOST, ANSWER(429) }, 2, 4, 0,
      "unknown/attempts 429 max-attempts-reached" },
    { "lost, then refused a connection for ever", KEYED, 0, { LOST, NOT_SENT(7) }, 2, 1, 0,
      "unknown/attempts 0 max-attempts-reached" },
    { "lost, then the key is another's payload", NONBIS, 0, { LOST, NOT_SEEN, KEY_REUSED("body") }, 3, 2, 1,
      "rejected/server-said-no 422 refused" },
    /* Refusals. */
    { "key reused", NONBIS, 0, { KEY_REUSED("body") }, 1, 1, 0, "rejected/server-said-no 422 refused" },
    { "key expired, executed", NONBIS, 0, { REFUSES(422, "refused", "key-expired", NEVER MEMBER("executed", "yes")) },
      1, 1, 0, "completed/key-expired 422 key-expired" },
    { "draining, then gone", NONBIS, 2, { WAITS(503, "refused", "1", "unavailable") }, 1, 2, 0,
      "not-applied/attempts 503 max-attempts-reached" },
    { "the key is ignored, and the answer lost", NONBIS, 0, { SAYS(500, "ignored") }, 1, 1, 0,
      "unknown/not-replayable 500 operation-not-retry-safe" },
    { "not even begun", NONBIS, 0, { { .fails = true } }, 1, 0, 0, "not-sent/local 0 local-error" },
    { "certificate not trusted", NONBIS, 0, { NOT_SENT(60) }, 1, 0, 0, "not-sent/local 0 local-error" },
    { "the attempt hangs for ever", KEYED, 0, { { .takes_ms = 1000000 } }, 1, 3, 0,
      "unknown/deadline 0 deadline-exceeded" },
};
/* clang-format on */

#endif
