/* step.h - steps of the other side by their names, for tables. Each is an initialiser of a struct lab_step. */
#ifndef NONBIS_TESTS_CLIENT_STEP_H
#define NONBIS_TESTS_CLIENT_STEP_H

#define PJ "Content-Type: application/problem+json"
#define JSON "Content-Type: application/json"
#define PROBLEM(name, rest) "{\"type\":\"urn:nonbis:problem:" name "\",\"status\":400," rest "}"
#define STATE(state, executed) "{\"id\":\"0123\",\"key\":\"k\",\"state\":\"" state "\",\"executed\":\"" executed "\"}"
#define RETRY "\"retryable\":true"
#define NEVER "\"retryable\":false"
#define MEMBER(name, value) ",\"" name "\":\"" value "\""
#define DIFFERS(part) ",\"differs\":[\"" part "\"]"

/* clang-format off */
/* Bare answers, and none. */
#define ANSWER(number)            { .status = number }
#define ANSWER_FIELDS(number, f)  { .status = number, .fields = f }
#define LOST                      { .code = 52 }
#define TIMED_OUT                 { .code = 28 }
#define NOT_SENT(curl_code)       { .code = curl_code, .hooks = -1 }
/* With a word of Idempotency-Status. */
#define SAYS(number, word)        { .status = number, .fields = "Idempotency-Status: " word }
#define SAYS_CUT(number, word)    { .status = number, .code = 18, .fields = "Idempotency-Status: " word }
/* A problem of nonbis: with a word and Retry-After, with a word, without. */
#define WAITS(number, word, s, name)    { .status = number, .fields = PJ "\nIdempotency-Status: " word "\nRetry-After: " s, .body = PROBLEM(name, RETRY) }
#define REFUSES(number, word, name, r)  { .status = number, .fields = PJ "\nIdempotency-Status: " word, .body = PROBLEM(name, r) }
#define TELLS(number, name, r)          { .status = number, .fields = PJ, .body = PROBLEM(name, r) }
#define KEY_REUSED(part)                REFUSES(422, "refused", "key-reused", NEVER DIFFERS(part))
/* The status resource. */
#define IS(state, executed)       { .fields = JSON, .body = STATE(state, executed) }
#define IS_RUNNING                { .fields = JSON "\nRetry-After: 1", .body = STATE("in_progress", "unknown") }
#define IS_COMPLETED              IS("completed", "yes")
#define NOT_SEEN                  TELLS(404, "key-not-seen", RETRY MEMBER("window_start", "2026-11-01T00:00:00.000Z"))
#define ROUTE(protected)          { .fields = JSON, .body = "{\"version\":1,\"method\":\"POST\",\"protected\":" protected ",\"key\":null,\"window_start\":\"2026-11-01T00:00:00.000Z\"}" }
#define REPLAY                    { .status = 201, .fields = "Idempotent-Replayed: true", .body = "{\"order\":1}" }
/* clang-format on */

#endif
