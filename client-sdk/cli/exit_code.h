/* exit_code.h - what the process tells its shell: the one table, and how an ending becomes a row of it. Pure.
 *
 * The question behind every row: what may a script do now? So a code never says more than is known: whatever may have been
 * executed is never 10, and 0 means executed, with a final 2xx in hand. */
#ifndef NONBIS_CLI_EXIT_CODE_H
#define NONBIS_CLI_EXIT_CODE_H

#include "client-sdk/include/nonbis.h"

#include <stddef.h>

enum exit_code {
    EXIT_CODE_DONE = 0,
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_REDIRECT = 3,
    EXIT_CODE_CLIENT_ERROR = 4,
    EXIT_CODE_SERVER_ERROR = 5,
    EXIT_CODE_NOT_SENT = 10,
    EXIT_CODE_UNKNOWN = 11,
    EXIT_CODE_IN_PROGRESS = 12,
    EXIT_CODE_KEY_REUSED = 13,
    EXIT_CODE_REFUSED = 14,
    EXIT_CODE_NOT_APPLIED = 15,
    EXIT_CODE_RETRY_LATER = 16,
    EXIT_CODE_EXPIRED = 17,
    EXIT_CODE_INTERNAL = 70,
    EXIT_CODE_JOURNAL = 73,
    EXIT_CODE_INTERRUPTED = 130,
    EXIT_CODE_TERMINATED = 143
};

struct exit_row {
    enum exit_code code;
    const char *meaning;
    const char *may; /* what a script may do */
};

/* The rows in their order; `*count` of them. */
const struct exit_row *exit_rows(size_t *count);

/* How an operation ended, as far as the code depends on it. */
struct ending {
    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
    int final;           /* nonbis_op_is_final */
    int http_status;     /* of the last answer, 0: none */
    unsigned marks;      /* of enum nonbis_mark */
    const char *attempt; /* class of the last attempt, "" when there was none in this process */
    int local_error;     /* STOP_LOCAL */
    int signal;          /* that cancelled us, 0: none */
};

enum exit_code exit_code_of(const struct ending *ending);
/* Of `nonbis void`, whose question is another: 0 only when the key is voided. */
enum exit_code exit_code_of_void(const struct ending *ending);
/* Of one question for the status; `first_sent_ms` is what the journal knows of the first sending, 0: nothing. */
enum exit_code exit_code_of_status(const struct nonbis_status *status, int64_t first_sent_ms);
/* Of a call of the library that did nothing. */
enum exit_code exit_code_of_error(int error);
/* Of several endings at once: the one that needs most care. */
enum exit_code exit_code_worse(enum exit_code a, enum exit_code b);

#endif
