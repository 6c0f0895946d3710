/* walk.h - a random walk of several exchanges through the tables of server/core, with a simulated store, handler and clients.
 * The tables (and some mistakes of who uses them) are parameters, so that faults can be planted in copies and the walk be seen to find them. */
#ifndef NONBIS_TESTS_WALK_H
#define NONBIS_TESTS_WALK_H

#include "server/core/decision.h"
#include "server/core/exchange.h"

struct walk_figures {
    unsigned events[EVENT_COUNT], deeds[DEED_COUNT], verdicts[VERDICT_COUNT];
    unsigned cells[PHASE_COUNT][EVENT_COUNT];
    unsigned exchanges, keys, effects, restarts;
    unsigned waits, waits_again; /* joined the waiters: for the first time, after a look that changed nothing */
    unsigned shared;             /* answers of a released execution that its waiters got */
    unsigned replayed;           /* answers of a completed one that its waiters got */
    unsigned steps;              /* until the end or the violation */
};

/* What no table holds: mistakes of a conductor that lets requests wait. */
enum walk_fault {
    WALK_FAULT_NONE,
    WALK_FAULT_RELEASED_BY_KEY, /* a release is told to all waiters of its key */
    WALK_FAULT_RELEASED_EARLY,  /* a release is told before it is durable */
    WALK_FAULT_WAITER_CLAIMS,   /* the look-up after a wait may claim */
    WALK_FAULT_END_NOT_TOLD,    /* a waiter is forgotten */
    WALK_FAULT_TIMER_RUNS_ON,   /* the end of a wait is not stopped with the wait */
    WALK_FAULT_TIMER_LOST,      /* the end of a wait is not armed again */
    WALK_FAULT_TIMER_WHOLE,     /* it is armed again with the whole of it */
    WALK_FAULT_COUNT
};

struct walk_rules {
    const struct exchange_table *exchanges;
    const struct decision_table *decisions;
    enum walk_fault fault;
};

/* NULL when nothing was violated in `steps` steps and every exchange came to its end afterwards, else what was, as text that
 * stays valid. `figures` may be NULL. */
const char *walk(const struct walk_rules *rules, unsigned seed, unsigned steps, struct walk_figures *figures);

#endif
