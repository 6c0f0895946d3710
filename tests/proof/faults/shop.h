/* shop.h - orders that are placed through nonbisd while something breaks, and what became of each: what its client was told, what its repeats are told, and
 * how often it ran, counted at the handler (tests/peer). The handler answers an execution with a number that no other one gets.
 *
 * Nothing is asserted here but that the scene works. Violations are counted, so that a control can want them.
 *
 * Threads: a rush has threads of its own; everything else is for the test's. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_SHOP_H
#define NONBIS_TESTS_PROOF_FAULTS_SHOP_H

#include "tests/peer/peer.h"
#include "tests/support/daemon.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <pthread.h>

enum { SHOP_ORDERS_MAX = 60000, SHOP_WRITERS_MAX = 16 };

struct order {
    unsigned number;
    unsigned executions;       /* at the handler, as of the last shop_tally */
    unsigned ran_as;           /* the number that the handler answered the last of them with */
    bool acked;                /* the handler's answer was told, by an answer that is recorded */
    unsigned answer;           /* its number */
    bool unrecorded;           /* told so */
    unsigned attempts, denied; /* of them, told that they were not forwarded, or not executed */
    bool unknown;              /* told so after the fault */
    bool lost, forgotten;      /* counted already */
    bool absent;               /* a status query behind the last attempt was told 404 */
};

struct shop_wrongs {
    unsigned lost;      /* acknowledged, and a repeat gets something else */
    unsigned twice;     /* ran more than once */
    unsigned liar;      /* told "not forwarded" or "not executed" of an attempt that ran */
    unsigned forgotten; /* unknown, or run without an answer, and executed again or told absent later */
    unsigned ghosts;    /* told absent by a status query, and there after a restart */
};

struct shop {
    struct peer *peer;
    struct daemon nonbis;
    char folder[600], store[700];
    const char *const *more; /* further arguments of nonbisd */
    const char *program;     /* "nonbisd" */
    const char *body;        /* of every order */
    bool running;
    struct order *orders;
    unsigned count, tallied;
    struct shop_wrongs wrongs;

    pthread_mutex_t lock; /* of a rush */
    pthread_cond_t changed;
    pthread_t writers[SHOP_WRITERS_MAX];
    pthread_t holders[SHOP_WRITERS_MAX];
    unsigned writer_count, holder_count, answered;
};

void shop_open(struct shop *shop); /* handler and an empty folder */
void shop_close(struct shop *shop);
/* A shim for the programs that are started from here on, build/tests/shim_NAME.so; NULL: none any more. False: this build cannot (sanitizers). */
bool shop_shim(const char *name);
void shop_start(struct shop *shop); /* fails the test when nonbisd does not start */
/* False: it refused, with this exit code (or -signal). */
bool shop_try(struct shop *shop, int *exit_code);
int shop_stop(struct shop *shop); /* TERM: its exit code */
void shop_kill(struct shop *shop);

/* All of a crowd at once, each with a new order and no patience but that of http_client.h; returns when all have an answer or none. */
void shop_crowd(struct shop *shop, unsigned count);

/* POST of an order that may be a new one. Puts into it what its client was told; the status is returned (0: no answer). */
int shop_post(struct shop *shop, struct order *order);
struct order *shop_new(struct shop *shop);
/* The status of its key: 200, 404, 503 ... */
int shop_query(struct shop *shop, struct order *order);

/* New orders from so many clients without pause; returns when `answers` of them were acknowledged. The clients stop when one of theirs gets none. */
void shop_rush(struct shop *shop, unsigned writers, unsigned answers);
void shop_rush_end(struct shop *shop); /* after nonbisd has ended: joins them */

/* So many new orders, which the handler has and does not answer yet; every second one by 500,000 bytes. */
void shop_hold(struct shop *shop, unsigned count);
void shop_let_go(struct shop *shop); /* those: the handler answers, and their clients are joined */

/* Reads the handler's ledger as far as it was written. */
void shop_tally(struct shop *shop);
/* After a restart: repeats those from `first` on, acknowledged or not, and counts what is wrong. */
void shop_judge(struct shop *shop, unsigned first);
unsigned shop_count_acked(const struct shop *shop);
unsigned shop_count_unknown(const struct shop *shop);
/* Fails the test unless nothing was wrong. */
void shop_expect_right(const struct shop *shop);

#endif
