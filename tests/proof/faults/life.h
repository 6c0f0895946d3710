/* life.h - a short life of nonbisd, the same each time, for faults that are planted at its n-th step: a start on an empty folder, new commands, repeats,
 * queries of status, a stop. Afterwards another one on the same store, without the fault, shows what is true. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_LIFE_H
#define NONBIS_TESTS_PROOF_FAULTS_LIFE_H

#include "tests/proof/faults/shop.h"

struct life_ends { /* how so many processes ended */
    unsigned well, refused_start, store_failed, aborted, other;
    char codes[64]; /* of starts that were refused: " 73 74" */
};

struct lives {
    unsigned points; /* in which the fault was met */
    unsigned acked, restarts_refused;
    unsigned killed;
    struct life_ends ends;
    struct shop_wrongs wrongs;
};

/* What a life is told to be. */
struct life_way {
    const char *refusals; /* the codes by which a start may be refused, " 73 74"; any other end is `other`, and told */
    bool
        killed; /* at the first order that got no final answer, once its status was asked for: what is true then is on the disk alone */
    void (*started)(void *context); /* or NULL: called once nonbisd serves */
    void *context;
};

/* Runs it, with the fault armed by the caller, before or in `started`. */
void life_run(struct shop *shop, struct lives *lives, const struct life_way *way);
/* The truth, after the caller has disarmed the fault; what was seen is added to `lives`. */
void life_judge(struct shop *shop, struct lives *lives, const char *what, unsigned nth);

#endif
