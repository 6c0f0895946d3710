/* walk_world.h - what walk.c (the world), walk_conductor.c (who does the deeds) and walk_waiters.c (who waits for whom) share. */
#ifndef NONBIS_TESTS_WALK_WORLD_H
#define NONBIS_TESTS_WALK_WORLD_H

#include "server/core/outcome.h"
#include "tests/model/walk.h"
#include "tests/model/walk_store.h"

enum client { CLIENT_SENDING, CLIENT_HERE, CLIENT_ANSWERING, CLIENT_AWAY };

/* What the conductor could say if it had to answer now. */
enum say { SAY_NOTHING, SAY_REFUSED, SAY_FOUND, SAY_OUTCOME, SAY_RELEASED };

/* Of an exchange that waits, or did. */
struct waiter {
    bool joined;         /* among the waiters */
    bool waited;         /* at least once */
    uint32_t rival;      /* the execution it waits for */
    int64_t span_ms;     /* how long it would wait */
    int64_t ends_ms;     /* what is left runs until here: for the conductor */
    int64_t timer_ms;    /* when the timer fires, while answer_timer is set */
    int64_t promised_ms; /* the same, as the client counts it: for the checks */
    int shared;          /* the answer of the released rival */
    int awaited;         /* the answer of the completed rival, which must be replayed; 0: none */
};

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
    struct waiter waiter;
    bool due_answered, due_gone;
    bool stop_given; /* in this phase */
    struct attempt attempt;
    struct record_outcome outcome;
    unsigned key;
    uint32_t execution;
};

struct world {
    const struct walk_rules *rules;
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

/* Joins the waiters of the execution that was seen to run, and arms the end of the wait with what is left of it. */
void walk_waiter_join(struct world *world, struct exchange *x);

/* An execution has ended: its waiters are told. */
void walk_waiters_wake(struct world *world, unsigned key, const struct walk_end *end);

/* The waiters of a key look again, for nothing. */
void walk_waiters_call(struct world *world, unsigned key);

/* Whether a waiter is as it must be; asked at every step. */
void walk_waiter_check(struct world *world, struct exchange *x);

/* It answers with the answer of its released rival. */
void walk_waiter_tell_released(struct world *world, const struct exchange *x);

/* It answers with what its look-up found. */
void walk_waiter_tell_found(struct world *world, const struct exchange *x);

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
