/* tenants_ledger.h - what 50 tenants that use the same 20 keys have done and been told, and whether an answer can be true of its own tenant
 * (docs/contract.md section 3). Every judgement rests on what this tenant itself has sent, and on what the scripted handler received: never on
 * another answer's word about somebody else.
 *
 * Functions may be called from any thread. What is wrong is noted (the first of it) and told by ledger_fault: an assertion of Check
 * belongs to the test's own thread. */
#ifndef NONBIS_TESTS_TENANTS_LEDGER_H
#define NONBIS_TESTS_TENANTS_LEDGER_H

#include "tests/peer/peer.h"
#include "tests/support/http_client.h"

enum { LEDGER_TENANTS = 50, LEDGER_KEYS = 20 };

/* What is done with a key, by its number: the same for every tenant. */
enum ledger_role {
    ROLE_LONELY,   /* one client alone, one attempt after the other: never 409, never 422 */
    ROLE_PLAIN,    /* any client, one payload: never 422 */
    ROLE_MIXED,    /* two payloads */
    ROLE_LOST,     /* the handler resets: unknown */
    ROLE_BUSY,     /* the handler says 429: released, and executed again */
    ROLE_VOIDABLE, /* attempts and voids */
    ROLE_CUT       /* only requests that are cut before their end: never anything */
};
enum ledger_role ledger_role(int key);

struct ledger_command {
    int tenant, key, payload; /* payload 0, or 1 for ROLE_MIXED */
};

/* What kind of answer it was, for the counts. */
enum ledger_seen {
    SEEN_EXECUTED,
    SEEN_REPLAYED,
    SEEN_IN_PROGRESS,
    SEEN_OTHER_PAYLOAD,
    SEEN_VOIDED,
    SEEN_UNKNOWN,
    SEEN_RELEASED,
    SEEN_NOT_VOIDABLE,
    SEEN_STATUS,
    SEEN_NOT_SEEN,
    SEEN_WRONG,
    SEEN_COUNT
};
const char *ledger_seen_name(enum ledger_seen seen);

/* "t07", "k-03", and the body of the request: the same for every second tenant, naming the tenant for the others. */
void ledger_names(const struct ledger_command *command, char tenant[8], char key[8], char body[64]);

/* Before an attempt or a void is sent. */
void ledger_begin_attempt(const struct ledger_command *command);
void ledger_begin_void(const struct ledger_command *command);
/* Whether an answer has shown that the record exists: from then on 404 is wrong. To be asked before a query is sent. */
bool ledger_is_known(const struct ledger_command *command);
/* The command id of it; false when no answer has told it yet. */
bool ledger_id(const struct ledger_command *command, char id[33]);

enum ledger_seen ledger_judge_attempt(const struct ledger_command *command, const struct http_answer *answer);
enum ledger_seen ledger_judge_status(const struct ledger_command *command, bool was_known,
                                     const struct http_answer *answer);
enum ledger_seen ledger_judge_response(const struct ledger_command *command, bool was_known,
                                       const struct http_answer *answer);
enum ledger_seen ledger_judge_void(const struct ledger_command *command, const struct http_answer *answer);
/* The answer to a question about somebody else's command id. */
enum ledger_seen ledger_judge_stranger(const struct http_answer *answer);

/* The server starts again: how far the wall clock is ahead of store time is then measured anew, to the millisecond (7.2), so times that were told before
 * may be told a millisecond apart. */
void ledger_note_restart(void);

/* Afterwards: everything that reached the handler is one tenant's own, once. Returns the executions. */
unsigned ledger_judge_handler(struct peer *peer);
/* ... and the final status of a command (not in progress) follows from it. */
void ledger_judge_end(const struct ledger_command *command, const struct http_answer *status);
/* No two commands have one id. */
void ledger_judge_ids(void);

/* NULL: nothing was wrong. */
const char *ledger_fault(void);
void ledger_fini(void);

#endif
