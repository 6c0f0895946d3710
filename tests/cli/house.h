/* house.h - the order handler and a nonbisd in front of it, as programs of their own. The ledger of the handler is the judge of what
 * was executed, never the word of those in between. */
#ifndef NONBIS_TESTS_CLI_HOUSE_H
#define NONBIS_TESTS_CLI_HOUSE_H

#include "tests/support/daemon.h"

struct house {
    struct daemon handler, nonbis;
    char store[600], listen[64], url[128]; /* of nonbisd: its store, its address, "http://ADDRESS/orders" */
    int keeper;                            /* of its port, while it is down */
};

/* `more`: further arguments of nonbisd, NULL-terminated; may be NULL. */
void house_begin(struct house *house, const char *const *more);
void house_end(struct house *house);
/* nonbisd on the address and the store that it had; it must not be running. */
void house_start_nonbis(struct house *house, const char *const *more);
/* Until the server's memory began more than a second ago on its own clock of whole seconds: of what is sent from now on it can say
 * that it would remember it (contract 7.4). */
void house_wait_memory(const struct house *house);

/* What the handler has for a key; NULL: for all. */
void house_count(const struct house *house, const char *key, int *arrivals, int *executions);
int house_executions(const struct house *house, const char *key);
/* Until the handler has the order: an event of the handler, asked for again and again. */
void house_wait_arrival(const struct house *house, const char *key);

#endif
