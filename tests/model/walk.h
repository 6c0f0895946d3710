/* walk.h - a random walk of several exchanges through the tables of server/core, with a simulated store, handler and clients.
 * The tables are parameters, so that faults can be planted in copies and the walk be seen to find them. */
#ifndef NONBIS_TESTS_WALK_H
#define NONBIS_TESTS_WALK_H

#include "server/core/decision.h"
#include "server/core/exchange.h"

struct walk_figures {
    unsigned events[EVENT_COUNT], deeds[DEED_COUNT], verdicts[VERDICT_COUNT];
    unsigned cells[PHASE_COUNT][EVENT_COUNT];
    unsigned exchanges, keys, effects, restarts;
    unsigned steps; /* until the end or the violation */
};

/* NULL when nothing was violated in `steps` steps and every exchange came to its end afterwards, else what was, as text that
 * stays valid. `figures` may be NULL. */
const char *walk(const struct exchange_table *exchanges, const struct decision_table *decisions, unsigned seed,
                 unsigned steps, struct walk_figures *figures);

#endif
