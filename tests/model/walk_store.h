/* walk_store.h - the store of the random walk: a few keys, one batch, and the difference between what was decided and what is
 * durable. Stands in for server/store/worker.h; uses the real record and a decision table that is given.
 *
 * It also keeps the books that no program has: how often each command really took effect. */
#ifndef NONBIS_TESTS_WALK_STORE_H
#define NONBIS_TESTS_WALK_STORE_H

#include "server/core/decision.h"
#include "server/core/exchange.h"
#include "tests/support/suite.h"

enum { WALK_KEYS = 2, WALK_EXCHANGES = 6, WALK_MESSAGES = 64, WALK_ANSWERS = 64 };

enum { WALK_TTL_MS = 10 * 1000 * 1000, WALK_TOMBSTONE_MS = 3 * WALK_TTL_MS, WALK_RUN_MS = 400 };

/* What an exchange asks of the store, and what comes back. */
struct walk_task {
    bool queued;
    bool finish; /* else: look up and claim */
    unsigned key;
    struct fingerprint fingerprint;
    struct credential credential;
    bool may_wait, may_claim;
    uint32_t execution;            /* in: to finish. out: that was claimed, or is waited for */
    struct record_outcome outcome; /* in: of the execution. out: what counts */
    /* out */
    struct decision decision;
    enum executed executed; /* what the record allows to be told */
    int response_status;
    enum event event; /* as which it is told */
};

/* How an execution has ended. */
struct walk_end {
    uint32_t execution;
    bool told;     /* false: its outcome could not be recorded, or that is not certain */
    bool released; /* durably */
    int answer;    /* of the handler; 0: none that counts */
};

/* From the store to the loop, first in, first out. `exchange` -1: an execution of `key` has ended. */
struct walk_message {
    int exchange;
    unsigned key;
    struct walk_task task;
    struct walk_end end;
};

/* The truth about one key, for as long as it is remembered. */
struct walk_truth {
    unsigned effects;          /* how often the handler acted */
    unsigned loose;            /* forwarded requests that may still act, though nobody listens */
    unsigned running;          /* forwarded requests that are listened to */
    uint32_t forwarded;        /* highest execution that was forwarded */
    int answers[WALK_ANSWERS]; /* what the newest executions gave, by their number; 0: nothing that counts */
    int told_status;           /* completed was told with this status; 0: not yet */
    bool answered;             /* the handler gave an answer that counts as completed */
    bool told_voided;
    bool retry; /* an outcome that could not be stored, kept in memory */
    uint32_t retry_execution;
    struct record_outcome retry_outcome;
};

struct walk_store {
    const struct decision_table *decisions;
    struct record durable[WALK_KEYS], batch[WALK_KEYS];
    struct walk_truth truth[WALK_KEYS];
    bool in_flight;                          /* a batch was applied and is not yet durable */
    bool down;                               /* UNCERTAIN: refuses everything until restart */
    struct walk_task tasks[WALK_EXCHANGES];  /* queued */
    struct walk_task flying[WALK_EXCHANGES]; /* in the batch; queued=true marks them */
    struct walk_message messages[WALK_MESSAGES];
    unsigned first, count;
    unsigned ids;
    int64_t now_ms;
    const char *violation;
    unsigned verdicts[VERDICT_COUNT];
};

void walk_store_begin(struct walk_store *store, const struct decision_table *decisions);

void walk_store_submit(struct walk_store *store, unsigned exchange, const struct walk_task *task);

/* Applies what is queued to a batch, or ends the batch one way or another. False: nothing to do. */
bool walk_store_step(struct walk_store *store, struct suite_random *random, bool may_fail);

/* Stores an outcome that was kept in memory, or voids a key, or lets a loose request act. */
void walk_store_aside(struct walk_store *store, struct suite_random *random);

bool walk_store_take(struct walk_store *store, struct walk_message *message);

/* The end of an execution is on its way to the loop. */
bool walk_store_will_tell(const struct walk_store *store, unsigned key, uint32_t execution);

/* An execution does not run any more, as far as the disk knows. */
bool walk_store_has_ended(const struct walk_store *store, unsigned key, uint32_t execution);

/* An execution was released, and the disk knows. */
bool walk_store_has_released(const struct walk_store *store, unsigned key, uint32_t execution);

/* Crash and restart: whatever is not durable is gone, what was in progress is unknown. */
void walk_store_restart(struct walk_store *store, struct suite_random *random);

/* Time passes while no request is under way; keys may be forgotten by it. */
void walk_store_pass(struct walk_store *store, int64_t span_ms);

/* Another key takes the place of one that nobody asks for. False: not now. */
bool walk_store_renew(struct walk_store *store, unsigned key);

/* The handler acts on a key. */
void walk_store_act(struct walk_store *store, unsigned key);

void walk_violation(struct walk_store *store, const char *text); /* the first one stays */

#endif
