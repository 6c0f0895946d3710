/* exit_code.c - see exit_code.h. Owns nothing. */
#include "client-sdk/cli/exit_code.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

static const struct exit_row rows[] = {
    { EXIT_CODE_DONE, "executed, and the final answer is 2xx, fresh or replayed; void: the key is voided", "go on" },
    { EXIT_CODE_USAGE, "the command line or the settings are wrong; nothing was sent", "repair it" },
    { EXIT_CODE_REDIRECT, "executed, and the final answer is 3xx (no redirect is followed)", "read the answer" },
    { EXIT_CODE_CLIENT_ERROR, "executed, and the final answer is 4xx", "read the answer" },
    { EXIT_CODE_SERVER_ERROR, "executed, and the final answer is 5xx", "read the answer" },
    { EXIT_CODE_NOT_SENT, "no byte of any attempt left this process", "anything may be done" },
    { EXIT_CODE_UNKNOWN, "it may have been executed, and nobody could say so", "go on with the same key only" },
    { EXIT_CODE_IN_PROGRESS, "still being executed, or executed and its answer is not in hand", "nonbis wait KEY" },
    { EXIT_CODE_KEY_REUSED, "the key was used with another payload", "a new intent needs a new key" },
    { EXIT_CODE_REFUSED, "refused before the handler was asked; void: too late, it was executed", "repair it" },
    { EXIT_CODE_NOT_APPLIED, "not executed, as the server says, or voided", "the same key again; voided: a new one" },
    { EXIT_CODE_RETRY_LATER, "not executed; the server asks for more patience than allowed", "the same key, later" },
    { EXIT_CODE_EXPIRED, "the key is older than the server's memory", "reconcile by hand" },
    { EXIT_CODE_INTERNAL, "nonbis itself failed: memory, random source; nothing was sent", "look at the machine" },
    { EXIT_CODE_JOURNAL, "the journal cannot be read or written; nothing was sent", "look at the disk" },
    { EXIT_CODE_INTERRUPTED, "interrupted (INT) before anything was sent; afterwards 11", "anything may be done" },
    { EXIT_CODE_TERMINATED, "ended (TERM) before anything was sent; afterwards 11", "anything may be done" },
};

const struct exit_row *exit_rows(size_t *count)
{
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

static enum exit_code of_http_status(int status)
{
    switch (status / 100) {
    case 2:
        return EXIT_CODE_DONE;
    case 3:
        return EXIT_CODE_REDIRECT;
    case 4:
        return EXIT_CODE_CLIENT_ERROR;
    case 5:
        return EXIT_CODE_SERVER_ERROR;
    default:
        return status == 0 ? EXIT_CODE_IN_PROGRESS : EXIT_CODE_SERVER_ERROR;
    }
}

static enum exit_code of_completed(const struct ending *ending)
{
    if (ending->stop == NONBIS_STOP_KEY_EXPIRED) {
        return EXIT_CODE_EXPIRED;
    }
    if (!ending->final && (ending->marks & NONBIS_MARK_CREDENTIALS) != 0) {
        return EXIT_CODE_REFUSED; /* its answer belongs to somebody else */
    }
    return ending->final ? of_http_status(ending->http_status) : EXIT_CODE_IN_PROGRESS;
}

/* Nothing left this process: was it us, somebody's wish, or the other side? */
static enum exit_code of_unsent(const struct ending *ending)
{
    if (ending->stop == NONBIS_STOP_CANCELLED && ending->signal != 0) {
        return ending->signal == SIGTERM ? EXIT_CODE_TERMINATED : EXIT_CODE_INTERRUPTED;
    }
    if (ending->stop == NONBIS_STOP_LOCAL && ending->local_error != NONBIS_ERROR_TRANSPORT) {
        return exit_code_of_error(ending->local_error);
    }
    return ending->stop == NONBIS_STOP_RETRY_LATER ? EXIT_CODE_RETRY_LATER : EXIT_CODE_NOT_SENT;
}

enum exit_code exit_code_of(const struct ending *ending)
{
    switch (ending->outcome) {
    case NONBIS_COMPLETED:
        return of_completed(ending);
    case NONBIS_REJECTED:
        return strcmp(ending->attempt, "key-reused") == 0 ? EXIT_CODE_KEY_REUSED : EXIT_CODE_REFUSED;
    case NONBIS_NOT_SENT:
        return of_unsent(ending);
    case NONBIS_NOT_APPLIED:
        if (ending->stop == NONBIS_STOP_KEY_EXPIRED) {
            return EXIT_CODE_EXPIRED;
        }
        return ending->stop == NONBIS_STOP_RETRY_LATER ? EXIT_CODE_RETRY_LATER : EXIT_CODE_NOT_APPLIED;
    case NONBIS_IN_PROGRESS:
        return EXIT_CODE_IN_PROGRESS;
    case NONBIS_UNKNOWN:
        break;
    }
    return ending->stop == NONBIS_STOP_KEY_EXPIRED ? EXIT_CODE_EXPIRED : EXIT_CODE_UNKNOWN;
}

enum exit_code exit_code_of_void(const struct ending *ending)
{
    if ((ending->marks & NONBIS_MARK_VOIDED) != 0 && ending->outcome == NONBIS_NOT_APPLIED) {
        return EXIT_CODE_DONE;
    }
    return ending->outcome == NONBIS_COMPLETED ? EXIT_CODE_REFUSED : exit_code_of(ending);
}

enum exit_code exit_code_of_status(const struct nonbis_status *status, int64_t first_sent_ms)
{
    if (!status->answered) {
        return EXIT_CODE_UNKNOWN;
    }
    if (!status->seen) {
        /* Not seen is not never, unless it was sent before the server's memory begins: then nobody can say any more. */
        bool forgotten = first_sent_ms != 0 && status->window_start_ms != 0 && first_sent_ms < status->window_start_ms;
        return forgotten ? EXIT_CODE_EXPIRED : EXIT_CODE_UNKNOWN;
    }
    static const struct {
        const char *state;
        enum exit_code code;
    } states[] = {
        { "in_progress", EXIT_CODE_IN_PROGRESS }, { "unknown", EXIT_CODE_UNKNOWN },
        { "released", EXIT_CODE_NOT_APPLIED },    { "voided", EXIT_CODE_NOT_APPLIED },
        { "expired", EXIT_CODE_EXPIRED },
    };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(status->state, states[i].state) == 0) {
            return states[i].code;
        }
    }
    return strcmp(status->state, "completed") == 0 ? of_http_status(status->response_status) : EXIT_CODE_UNKNOWN;
}

enum exit_code exit_code_of_error(int error)
{
    switch (error) {
    case NONBIS_OK:
        return EXIT_CODE_DONE;
    case NONBIS_ERROR_RANGE:
    case NONBIS_ERROR_KEY:
    case NONBIS_ERROR_FIELD:
    case NONBIS_ERROR_URL:
    case NONBIS_ERROR_POLICY:
    case NONBIS_ERROR_NAME:
    case NONBIS_ERROR_NOT_FOUND:
    case NONBIS_ERROR_EXISTS:
    case NONBIS_ERROR_LACKS:
        return EXIT_CODE_USAGE;
    case NONBIS_ERROR_LOCKED: /* another process works on this key */
        return EXIT_CODE_IN_PROGRESS;
    case NONBIS_ERROR_JOURNAL:
        return EXIT_CODE_JOURNAL;
    default:
        return EXIT_CODE_INTERNAL;
    }
}

enum exit_code exit_code_worse(enum exit_code a, enum exit_code b)
{
    static const enum exit_code order[] = {
        EXIT_CODE_DONE,       EXIT_CODE_REDIRECT,    EXIT_CODE_CLIENT_ERROR, EXIT_CODE_SERVER_ERROR,
        EXIT_CODE_REFUSED,    EXIT_CODE_KEY_REUSED,  EXIT_CODE_NOT_SENT,     EXIT_CODE_INTERRUPTED,
        EXIT_CODE_TERMINATED, EXIT_CODE_NOT_APPLIED, EXIT_CODE_RETRY_LATER,  EXIT_CODE_USAGE,
        EXIT_CODE_INTERNAL,   EXIT_CODE_JOURNAL,     EXIT_CODE_IN_PROGRESS,  EXIT_CODE_EXPIRED,
        EXIT_CODE_UNKNOWN,
    };
    size_t rank_a = 0, rank_b = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        rank_a = order[i] == a ? i : rank_a;
        rank_b = order[i] == b ? i : rank_b;
    }
    return rank_a >= rank_b ? a : b;
}
