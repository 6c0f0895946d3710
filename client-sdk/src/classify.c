/* classify.c - see classify.h. The rows, in their order; the first that fits wins.
 *
 *  1 cancelled                      by whether the hook ran
 *  2 the hook never ran             not sent, whatever the code says
 *  3 the hook ran twice             libcurl wanted to send again and was stopped: ambiguous
 *  4 no head                        lost
 *  5 not whole                      cut. Before the words of row 6: a streamed answer says "executed" before it is recorded,
 *                                   and if it breaks off the command is unknown (contract 10.7). A cut replay was recorded
 *  6 Idempotency-Status             its word
 *  7 Idempotent-Replayed: true      final, whatever its status: the same key gives the same answer for ever
 *  8 a problem of nonbis            by its name, else by "retryable"
 *  9 the status                     2xx; 425, 429, 503 with Retry-After; 408, 503; 500, 502, 504; 409; 401 ...; the rest
 *
 * Owns nothing. Any thread. */
#include "client-sdk/src/classify.h"

#include "client-sdk/src/retry_after.h"
#include "schema/wire.h"

#include <errno.h>
#include <string.h>

/* CURLcodes, since only the transport includes libcurl; tests/client/classify_test.c holds them against curl.h. */
enum curl_code {
    CODE_UNSUPPORTED_PROTOCOL = 1,
    CODE_FAILED_INIT = 2,
    CODE_URL_MALFORMAT = 3,
    CODE_NOT_BUILT_IN = 4,
    CODE_WEIRD_SERVER_REPLY = 8,
    CODE_OUT_OF_MEMORY = 27,
    CODE_OPERATION_TIMEDOUT = 28,
    CODE_BAD_FUNCTION_ARGUMENT = 43,
    CODE_INTERFACE_FAILED = 45,
    CODE_SSL_ENGINE_NOTFOUND = 53,
    CODE_SSL_CERTPROBLEM = 58,
    CODE_SSL_CIPHER = 59,
    CODE_PEER_FAILED_VERIFICATION = 60,
    CODE_SSL_CACERT_BADFILE = 77
};

/* ---- rows 1 to 5 -------------------------------------------------------------------------------------------------- */

/* What patience does not repair. Only for attempts of which nothing was sent: code 1 is also garbage instead of HTTP. */
static bool code_is_local(int code)
{
    switch (code) {
    case CODE_UNSUPPORTED_PROTOCOL:
    case CODE_FAILED_INIT:
    case CODE_URL_MALFORMAT:
    case CODE_NOT_BUILT_IN:
    case CODE_OUT_OF_MEMORY:
    case CODE_BAD_FUNCTION_ARGUMENT:
    case CODE_INTERFACE_FAILED:
    case CODE_SSL_ENGINE_NOTFOUND:
    case CODE_SSL_CERTPROBLEM:
    case CODE_SSL_CIPHER:
    case CODE_PEER_FAILED_VERIFICATION:
    case CODE_SSL_CACERT_BADFILE:
        return true;
    default:
        return false;
    }
}

static enum finding finding_of_unsent(const struct transport_facts *facts)
{
    if (facts->hook_refused) {
        return FINDING_HELD_BACK;
    }
    if (code_is_local(facts->code)) {
        return FINDING_LOCAL;
    }
    bool offline = facts->os_errno == ENETUNREACH || facts->os_errno == ENETDOWN;
    return offline ? FINDING_OFFLINE : FINDING_NOT_SENT;
}

static bool is_replay(const struct answer *answer)
{
    const char *replayed = answer_field(answer, WIRE_REPLAYED);
    const char *word = answer_field(answer, WIRE_STATUS);
    return (replayed != NULL && view_equal_nocase(view_of(replayed), VIEW("true"))) ||
           (word != NULL && strcmp(word, WIRE_WORD_REPLAYED) == 0);
}

static bool is_whole(const struct transport_facts *facts)
{
    return facts->code == 0 && facts->answer.head_whole && (facts->answer.whole || facts->answer.by_close);
}

/* Rows 1 to 5; FINDING_COUNT when the answer is there and whole. */
static enum finding finding_of_exchange(const struct transport_facts *facts)
{
    bool sent = facts->hook_calls > 0 && !facts->hook_refused;
    if (facts->cancelled) {
        return sent ? FINDING_CANCELLED_SENT : FINDING_CANCELLED;
    }
    if (!sent) {
        return finding_of_unsent(facts);
    }
    if (facts->hook_calls > 1) {
        return FINDING_RESEND_BLOCKED;
    }
    if (!facts->answer.head_whole || facts->answer.status < 200) {
        return FINDING_LOST;
    }
    if (!is_whole(facts)) {
        return is_replay(&facts->answer) ? FINDING_REPLAY_CUT : FINDING_CUT;
    }
    return FINDING_COUNT;
}

/* ---- rows 6 to 8: the word of a nonbis server --------------------------------------------------------------------- */

static bool status_is_of_passing_trouble(int status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 || status == 503 ||
           status == 504;
}

/* "This attempt was not forwarded": why, and does patience help? */
static enum finding finding_of_refusal(const struct reading *reading)
{
    const struct told_problem *problem = &reading->problem;
    if (!reading->has_problem) {
        return status_is_of_passing_trouble(reading->http_status) ? FINDING_UNAVAILABLE : FINDING_REFUSED;
    }
    if (strcmp(problem->name, "key-reused") == 0) {
        return problem->differs_credentials ? FINDING_KEY_FOREIGN : FINDING_KEY_REUSED;
    }
    if (strcmp(problem->name, "key-expired") == 0) {
        return problem->executed == TOLD_EXECUTED_YES ? FINDING_KEY_EXPIRED_EXECUTED : FINDING_KEY_EXPIRED_UNKNOWN;
    }
    if (strcmp(problem->name, "key-voided") == 0) {
        return FINDING_KEY_VOIDED;
    }
    return problem->retryable ? FINDING_UNAVAILABLE : FINDING_REFUSED;
}

/* Released: the same request helps where nonbis says so, or where the handler's status speaks of passing trouble. A 401 is
 * released too, but repeating it with the same token is no use. */
static enum finding finding_of_release(const struct reading *reading)
{
    bool helps = reading->has_problem ? reading->problem.retryable : status_is_of_passing_trouble(reading->http_status);
    return helps ? FINDING_NOT_EXECUTED : FINDING_DECLINED;
}

static enum finding finding_of_word(const char *word, struct reading *reading)
{
    static const struct {
        const char *word;
        enum finding finding;
    } words[] = {
        { WIRE_WORD_EXECUTED, FINDING_EXECUTED },     { WIRE_WORD_REPLAYED, FINDING_REPLAYED },
        { WIRE_WORD_UNRECORDED, FINDING_UNRECORDED }, { WIRE_WORD_UNKNOWN, FINDING_SAID_UNKNOWN },
        { WIRE_WORD_IN_PROGRESS, FINDING_RUNNING },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i].word) == 0) {
            reading->shows_contract = true;
            return words[i].finding;
        }
    }
    if (strcmp(word, WIRE_WORD_REFUSED) == 0) {
        reading->shows_contract = true;
        return finding_of_refusal(reading);
    }
    if (strcmp(word, WIRE_WORD_NOT_EXECUTED) == 0) {
        reading->shows_contract = true;
        return finding_of_release(reading);
    }
    reading->ignores_key = strcmp(word, WIRE_WORD_IGNORED) == 0;
    return FINDING_COUNT; /* a word that we do not know tells nothing */
}

static enum finding finding_of_problem(struct reading *reading)
{
    const char *name = reading->problem.name;
    reading->shows_contract = reading->problem.certain;
    if (strcmp(name, "in-progress") == 0 || strcmp(name, "still-running") == 0) {
        return FINDING_RUNNING;
    }
    if (strcmp(name, "outcome-unknown") == 0) {
        return FINDING_SAID_UNKNOWN;
    }
    if (strcmp(name, "upstream-not-reached") == 0) {
        return FINDING_NOT_EXECUTED;
    }
    if (strcmp(name, "upstream-failed") == 0 || strcmp(name, "upstream-timeout") == 0) {
        reading->shows_contract = false; /* it passed through: no key was looked at on this route (contract 5.5) */
        return FINDING_FAULT;
    }
    return finding_of_refusal(reading);
}

/* ---- row 9 -------------------------------------------------------------------------------------------------------- */

static enum finding finding_of_status(int status, bool asks_for_patience)
{
    switch (status) {
    case 425:
    case 429:
        return FINDING_THROTTLED;
    case 503:
        return asks_for_patience ? FINDING_THROTTLED : FINDING_BUSY; /* contract 6.2, 6.3 */
    case 408:
        return FINDING_BUSY;
    case 500:
    case 502:
    case 504:
    case 520: /* what front ends say of the server behind them */
    case 521:
    case 522:
    case 523:
    case 524:
    case 598:
    case 599:
        return FINDING_FAULT;
    case 409:
        return FINDING_CONFLICT;
    case 401:
    case 403:
    case 407:
    case 413:
    case 414:
    case 417:
    case 421:
    case 426:
    case 428:
    case 431:
    case 511:
        return FINDING_TURNED_AWAY;
    default:
        return status / 100 == 2 ? FINDING_SUCCESS : FINDING_FINAL;
    }
}

/* ---- both kinds --------------------------------------------------------------------------------------------------- */

static void reading_begin(const struct transport_facts *facts, struct reading *reading)
{
    const struct answer *answer = &facts->answer;
    memset(reading, 0, sizeof(*reading));
    reading->retry_after_ms = -1;
    reading->timed_out = facts->code == CODE_OPERATION_TIMEDOUT;
    reading->garbled = facts->code == CODE_UNSUPPORTED_PROTOCOL || facts->code == CODE_WEIRD_SERVER_REPLY;
    if (!answer->head_whole || facts->hook_calls == 0) {
        return;
    }
    reading->http_status = answer->status;
    reading->retry_after_ms = retry_after_ms(answer, facts->arrived_wall_ms);
    reading->skew_ms = retry_after_skew_ms(answer, facts->arrived_wall_ms);
    reading->replayed = is_replay(answer);
    const char *kept = answer_field(answer, WIRE_BODY_NOT_KEPT);
    reading->body_lost = kept != NULL && strcmp(kept, WIRE_BODY_NOT_KEPT_VALUE) == 0;
    reading->body_doubtful = !answer->whole;
    if (is_whole(facts)) {
        reading->has_problem = told_problem_read(answer, &reading->problem);
        reading->window_start_ms = reading->problem.window_start_ms;
    }
}

void classify_attempt(const struct transport_facts *facts, struct reading *reading)
{
    reading_begin(facts, reading);
    enum finding finding = finding_of_exchange(facts);
    const char *word = answer_field(&facts->answer, WIRE_STATUS);
    if (finding == FINDING_COUNT && word != NULL) {
        finding = finding_of_word(word, reading);
    }
    if (finding == FINDING_COUNT && reading->replayed) {
        finding = FINDING_REPLAYED;
    }
    if (finding == FINDING_COUNT && reading->has_problem) {
        finding = finding_of_problem(reading);
    }
    if (finding == FINDING_COUNT) {
        finding = finding_of_status(reading->http_status, reading->retry_after_ms >= 0);
    }
    reading->finding = finding;
}

static enum finding finding_of_state(const char *state, bool executed)
{
    static const struct {
        const char *state;
        enum finding finding;
    } states[] = {
        { "completed", FINDING_TOLD_COMPLETED }, { "in_progress", FINDING_TOLD_RUNNING },
        { "unknown", FINDING_TOLD_UNKNOWN },     { "released", FINDING_TOLD_RELEASED },
        { "voided", FINDING_TOLD_VOIDED },
    };
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(state, states[i].state) == 0) {
            return states[i].finding;
        }
    }
    if (strcmp(state, "expired") == 0) {
        return executed ? FINDING_TOLD_EXPIRED_EXECUTED : FINDING_TOLD_EXPIRED_UNKNOWN;
    }
    return FINDING_TOLD_NOTHING; /* a state that we do not know */
}

static enum finding told_by_problem(const struct reading *reading)
{
    const struct told_problem *problem = &reading->problem;
    bool executed = problem->executed == TOLD_EXECUTED_YES;
    static const struct {
        const char *name;
        enum finding finding;
    } names[] = {
        { "key-not-seen", FINDING_TOLD_NOT_SEEN },     { "in-progress", FINDING_TOLD_RUNNING },
        { "outcome-unknown", FINDING_TOLD_UNKNOWN },   { "key-voided", FINDING_TOLD_VOIDED },
        { "key-reused", FINDING_TOLD_TURNED_AWAY },    { "key-missing", FINDING_TOLD_TURNED_AWAY },
        { "key-malformed", FINDING_TOLD_TURNED_AWAY }, { "tenant-missing", FINDING_TOLD_TURNED_AWAY },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(problem->name, names[i].name) == 0) {
            return names[i].finding;
        }
    }
    if (strcmp(problem->name, "key-expired") == 0) {
        return finding_of_state("expired", executed);
    }
    if (strcmp(problem->name, "not-voidable") == 0) {
        return finding_of_state(problem->state, executed);
    }
    return problem->retryable ? FINDING_TOLD_NOTHING : FINDING_TOLD_NO_RESOURCE;
}

/* Only the document itself counts: whatever else is answered there is the answer of somebody who knows nothing of it. */
static enum finding finding_of_route(const struct transport_facts *facts, struct reading *reading)
{
    bool is_protected = false;
    if (reading->http_status != 200 || !told_route_read(&facts->answer, &is_protected)) {
        return FINDING_TOLD_NO_ROUTE;
    }
    reading->ignores_key = !is_protected;
    return is_protected ? FINDING_TOLD_PROTECTED : FINDING_TOLD_UNPROTECTED;
}

static enum finding finding_of_told(enum ask ask, const struct transport_facts *facts, struct reading *reading)
{
    int status = reading->http_status;
    if (ask == ASK_ROUTE) {
        return finding_of_route(facts, reading);
    }
    if (ask == ASK_RESPONSE && reading->replayed) {
        return FINDING_TOLD_ANSWER;
    }
    if (reading->has_problem) {
        return told_by_problem(reading);
    }
    if (ask != ASK_RESPONSE && status == 200 && told_status_read(&facts->answer, &reading->status)) {
        return finding_of_state(reading->status.state, strcmp(reading->status.executed, "yes") == 0);
    }
    if (status == 401 || status == 403 || status == 407) {
        return FINDING_TOLD_TURNED_AWAY;
    }
    return status_is_of_passing_trouble(status) || (status >= 520 && status <= 599) ? FINDING_TOLD_NOTHING
                                                                                    : FINDING_TOLD_NO_RESOURCE;
}

void classify_answer(enum ask ask, const struct transport_facts *facts, struct reading *reading)
{
    reading_begin(facts, reading);
    reading->ask = ask;
    if (facts->cancelled) {
        reading->finding = FINDING_CANCELLED; /* a question that was asked or not changes nothing */
    } else if (facts->hook_calls != 1 || facts->hook_refused || !is_whole(facts) || facts->answer.status < 200) {
        reading->finding = FINDING_TOLD_NOTHING;
    } else {
        reading->finding = finding_of_told(ask, facts, reading);
        /* A record shows that the key counts on this route, or the word about the route itself: "not seen" is also said of
         * one that is not protected. */
        reading->shows_contract =
            (reading->finding >= FINDING_TOLD_COMPLETED && reading->finding <= FINDING_TOLD_EXPIRED_UNKNOWN) ||
            reading->finding == FINDING_TOLD_PROTECTED;
    }
}
