/* run_message.c - the sentence about how a run ended: what was tried, on what, why it ended, what may be done now. */
#include "client-sdk/src/run.h"

#include <stdio.h>
#include <string.h>

enum { ENDPOINT_SHOWN = 160 }; /* so that a long one leaves room for what is to be told */

/* What a void has come to. NULL: as for every run. */
static const char *void_sentence(const struct nonbis_op *op)
{
    switch (op->outcome) {
    case NONBIS_COMPLETED:
        return "too late to void: it was executed";
    case NONBIS_IN_PROGRESS:
        return "not voided: still being executed";
    case NONBIS_NOT_APPLIED:
        return op->history.standing == STANDING_VOIDED ? NULL : "not executed, and not voided yet";
    case NONBIS_UNKNOWN:
        return "not voided: it may have been executed";
    default:
        return NULL;
    }
}

static const char *outcome_sentence(const struct nonbis_op *op)
{
    const char *voiding = op->history.goal == GOAL_VOID ? void_sentence(op) : NULL;
    if (voiding != NULL) {
        return voiding;
    }
    switch (op->outcome) {
    case NONBIS_COMPLETED:
        return "completed";
    case NONBIS_REJECTED:
        return "refused before the handler was asked";
    case NONBIS_NOT_SENT:
        return "nothing was sent";
    case NONBIS_NOT_APPLIED:
        return op->history.standing == STANDING_VOIDED ? "not executed, and never will be" : "not executed";
    case NONBIS_IN_PROGRESS:
        return "still being executed";
    case NONBIS_UNKNOWN:
        break;
    }
    return "it may have been executed";
}

/* The word, with what went wrong behind it where they say so. */
static void reason_write(struct nonbis_op *op, const struct plan *plan)
{
    struct reading last = { .finding = op->history.last,
                            .http_status = op->history.last_status,
                            .timed_out = op->history.last_timed_out };
    const char *kind = op->history.has_last ? reading_kind(&last) : "";
    (void) snprintf(op->reason_text, sizeof(op->reason_text), "%s%s%s", reason_text(plan->reason),
                    plan->reason == REASON_NON_RETRYABLE && kind[0] != '\0' ? ":" : "",
                    plan->reason == REASON_NON_RETRYABLE ? kind : "");
}

/* Executed, and the answer is not here. */
static const char *advice_without_answer(const struct nonbis_op *op)
{
    if (op->history.goal == GOAL_VOID) {
        return "; wait for it to have its answer";
    }
    if ((op->marks & NONBIS_MARK_CREDENTIALS) != 0) {
        return "; its answer belongs to other credentials";
    }
    if (op->stop == NONBIS_STOP_KEY_EXPIRED || (op->marks & NONBIS_MARK_BODY_LOST) != 0) {
        return "; its answer is kept no more";
    }
    return op->reason == REASON_NO_STATUS ? "; run it again with the same key to have its answer"
                                          : "; its answer could not be fetched: wait for it later";
}

static const char *advice(const struct nonbis_op *op)
{
    if (op->reason == REASON_NO_STATUS && op->outcome != NONBIS_COMPLETED) {
        return "; without a status resource only a run with the same key can tell";
    }
    switch (op->outcome) {
    case NONBIS_COMPLETED:
        if ((op->marks & NONBIS_MARK_UNRECORDED) != 0) {
            return "; warning: the server could not record it, do not send it again";
        }
        if ((op->marks & NONBIS_MARK_IGNORED) != 0) {
            return "; warning: the server ignores the key on this route, a repeat would be executed again";
        }
        return op->history.answered ? "" : advice_without_answer(op);
    case NONBIS_REJECTED:
        return (op->marks & NONBIS_MARK_CREDENTIALS) != 0 ? "; the key belongs to other credentials"
                                                          : "; repair the request and use a new key";
    case NONBIS_NOT_SENT:
        return op->resumed ? "; it stays in the journal" : "; it may be tried anew";
    case NONBIS_NOT_APPLIED:
        return op->history.standing == STANDING_VOIDED ? "" : "; run it again with the same key, or void the key first";
    case NONBIS_IN_PROGRESS:
        return "; wait for it with the same key";
    case NONBIS_UNKNOWN:
        break;
    }
    if (op->stop == NONBIS_STOP_NOT_REPLAYABLE && op->reason == REASON_NOT_RETRY_SAFE && op->key[0] != '\0') {
        return "; the server has not shown that it deduplicates here: say server=nonbis or server=keyed if it does, "
               "and run it again with the same key";
    }
    if (op->stop == NONBIS_STOP_KEY_EXPIRED) {
        return "; the key is older than the server's memory: reconcile by hand, a repeat could be executed again";
    }
    if (op->stop == NONBIS_STOP_SERVER_SAID_NO && op->reason == REASON_OUTCOME_UNKNOWN) {
        return "; the server cannot know either and does not send it again: reconcile by hand, no new key before that";
    }
    return op->key[0] != '\0' ? "; go on with the same key only, ask for its status, or reconcile by hand"
                              : "; it had no key: find out by other means before sending it again";
}

/* What stands for the part of the endpoint that is not shown. */
static const char *endpoint_rest(const struct nonbis_op *op)
{
    return strlen(op->endpoint) > ENDPOINT_SHOWN ? "..." : "";
}

/* "A, B and C"; cut where it does not fit. */
static void lacks_write(const struct nonbis_op *op, char *out, size_t size)
{
    const struct op_lacks *lacks = &op->lacks;
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < lacks->count && len < size; i++) {
        const char *before = i == 0 ? "" : i + 1 == lacks->count ? " and " : ", ";
        int more = snprintf(out + len, size - len, "%s%s", before, lacks->names[i]);
        len += more > 0 ? (size_t) more : 0;
    }
}

void run_message_lacks(struct nonbis_op *op)
{
    char names[256];
    lacks_write(op, names, sizeof(names));
    (void) snprintf(
        op->message, sizeof(op->message),
        "%s %.*s%s: nothing was sent: it was made with %s, which the journal does not keep; without %s it would be "
        "another request: set %s again, then run it",
        op->method, ENDPOINT_SHOWN, op->endpoint, endpoint_rest(op), names, op->lacks.count == 1 ? "it" : "them",
        op->lacks.count == 1 ? "it" : "them");
}

/* A question that went without its credentials may have been answered to another caller. */
static void lacks_add(struct nonbis_op *op)
{
    const enum finding last = op->history.last;
    char names[256];
    bool doubtful = last == FINDING_TOLD_NOT_SEEN_DOUBTFUL || last == FINDING_TOLD_TURNED_AWAY;
    if (op->lacks.count > 0 && op->history.has_last && doubtful) {
        size_t len = strlen(op->message);
        lacks_write(op, names, sizeof(names));
        (void) snprintf(op->message + len, sizeof(op->message) - len, "; asked without %s, which it was sent with",
                        names);
    }
}

void run_message(struct nonbis_op *op, const struct plan *plan)
{
    const struct history *history = &op->history;
    char answered[64] = "", later[64] = "";
    const char *why = op->facts.message;
    if (why[0] == '\0' && plan->outcome != NONBIS_COMPLETED) {
        why = op->attempt_message; /* what was asked since went well, and told no more */
    }
    reason_write(op, plan);
    if (history->goal == GOAL_VOID && op->told.response_status != 0) {
        (void) snprintf(answered, sizeof(answered), ", answered %d", op->told.response_status);
    } else if (op->answer.status != 0 && history->exchanges > 0) {
        (void) snprintf(answered, sizeof(answered), ", last answer %d", op->answer.status);
    }
    if (plan->stop == NONBIS_STOP_RETRY_LATER) {
        (void) snprintf(later, sizeof(later), " for %lld s", (long long) plan->retry_after_s);
    }
    (void) snprintf(op->message, sizeof(op->message), "%s %.*s%s: %s (%u attempt%s%s%s%s; %s%s)%s", op->method,
                    ENDPOINT_SHOWN, op->endpoint, endpoint_rest(op), outcome_sentence(op), history->exchanges,
                    history->exchanges == 1 ? "" : "s", answered, why[0] != '\0' ? ", " : "", why, op->reason_text,
                    later, advice(op));
    if (history->local_error != 0 && op->facts.message[0] == '\0') {
        size_t len = strlen(op->message);
        (void) snprintf(op->message + len, sizeof(op->message) - len, "; %s", nonbis_error_text(history->local_error));
    }
    lacks_add(op);
}
