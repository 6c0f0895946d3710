/* gate_store.h - a memory store whose begin and commit can be held, so that a test decides whether the store thread is busy, not time. One at a time. */
#ifndef NONBIS_TESTS_STORE_GATE_STORE_H
#define NONBIS_TESTS_STORE_GATE_STORE_H

#include "server/store/store.h"

struct store *gate_open(const struct store_clock *clock);
void gate_hold(bool held);         /* the next begin waits until it is let go */
void gate_wait(unsigned n);        /* until the store thread stands in its n-th begin, or has passed it */
unsigned gate_begins(void);        /* so far */
void gate_hold_commit(bool held);  /* the next commit waits until it is let go: what it would write is not there yet */
void gate_wait_commit(unsigned n); /* until the store thread stands in its n-th commit, or has passed it */
unsigned gate_commits(void);

#endif
