/* walk_world.h - what walk.c (the world) and walk_conductor.c (who does the deeds) share. */
#ifndef NONBIS_TESTS_WALK_WORLD_H
#define NONBIS_TESTS_WALK_WORLD_H

#include "server/core/outcome.h"
#include "tests/model/walk.h"
#include "tests/model/walk_store.h"

enum client { CLIENT_SENDING, CLIENT_HERE, CLIENT_ANSWERING, CLIENT_AWAY };

/* What the conductor could say if it had to answer now. */
enum say { SAY_NOTHING, SAY_REFUSED, SAY_FOUND, SAY_OUTCOME };

struct exchange {
    bool live;
    enum phase phase;
    enum client client;
    enum say say;
    struct walk_task task; /* what it asks, and what came back */
    bool task_out;
    bool claimed, forwarded, recorded, record_failed, answered;
    bool running, acted; /* the handler has it; it has acted */
    bool answer_timer, hard_timer;
    bool joined; /* among the waiters */
    bool due_answered, due_gone;
    bool stop_given; /* in this phase */
    struct attempt attempt;
    struct record_outcome outcome;
    unsigned key;
    uint32_t execution;
};

struct world {
    const struct exchange_table *table;
    struct walk_store store;
    struct exchange exchanges[WALK_EXCHANGES];
    struct suite_random random;
    struct walk_figures figures;
    bool draining, stopping;  /* no new claims; the drain is over */
    bool retiring[WALK_KEYS]; /* nobody asks for it any more: another key takes its place */
    int tokens;
};

/* Gives one event to one exchange and does the deed that the table names. */
void walk_feed(struct world *world, struct exchange *x, enum event event);

/* The connection to the handler ends, or is ended. `may_act_later`: what was not done yet may still be done. */
void walk_upstream_end(struct world *world, struct exchange *x, bool may_act_later);

static inline unsigned below(struct world *world, unsigned bound)
{
    return suite_random_below(&world->random, bound);
}

static inline bool chance(struct world *world, unsigned percent)
{
    return below(world, 100) < percent;
}

static inline void violate(struct world *world, const char *text)
{
    walk_violation(&world->store, text);
}

static inline struct walk_truth *truth_of(struct world *world, const struct exchange *x)
{
    return &world->store.truth[x->key];
}

#endif
