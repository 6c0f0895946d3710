/* ledger.h - what really happened, in the handler's own SQLite file.
 *
 * arrivals   every POST /orders, durable before the handler acts on it
 * orders     one row per execution: the effect that must not happen twice
 *
 * The witness of the demonstration and of the tests: nonbis never sees this file. One connection behind one mutex; any
 * thread. Every write is one transaction with synchronous=FULL. */
#ifndef ORDER_HANDLER_LEDGER_H
#define ORDER_HANDLER_LEDGER_H

#include "examples/order-handler/order.h"

struct ledger;

struct arrival {
    const char *key;     /* "" when the request had none */
    const char *command; /* Nonbis-Command-Id, "" without */
    int64_t execution;   /* Nonbis-Execution, 0 without */
    struct view body;
};

struct effects {
    int64_t arrivals, executions;
    int64_t keys;            /* that were executed at least once; of all */
    int64_t executions_most; /* of one key; more than 1 is what must not be */
};

enum ledger_result { LEDGER_OK, LEDGER_MISSING, LEDGER_FAILED };

/* NULL when it cannot be opened; stderr says why, as for every LEDGER_FAILED. */
struct ledger *ledger_open(const char *path);
void ledger_close(struct ledger *ledger);

enum ledger_result ledger_log_arrival(struct ledger *ledger, const struct arrival *arrival);

/* Writes the order and gives it its id. */
enum ledger_result ledger_add_order(struct ledger *ledger, const struct arrival *arrival, struct order *order);

enum ledger_result ledger_find_order(struct ledger *ledger, int64_t id, struct order *order);

/* Counts of one key and a call for each of its orders, in their order; with key NULL the counts of all, and no calls. */
enum ledger_result ledger_read_effects(struct ledger *ledger, const char *key, struct effects *effects,
                                       void (*each)(const struct order *order, void *context), void *context);

#endif
