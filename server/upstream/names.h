/* names.h - the look-up of the handler's name, which may take its time: the C library's resolver in a thread of its own, so that the
 * loop goes on. Private to server/upstream. One thread: the loop's.
 *
 * There is one name, so one look-up serves all connections that wait for it, and its answer serves those that come within a minute. */
#ifndef NONBIS_SERVER_UPSTREAM_NAMES_H
#define NONBIS_SERVER_UPSTREAM_NAMES_H

#include "server/base/loop.h"
#include "server/upstream/addresses.h"

struct names;

/* Waits for the answer; the storage is its owner's. Called from the loop, once, and then it waits no longer. */
struct name_waiter {
    struct list_node node;
    void (*known)(struct name_waiter *waiter, struct addresses *addresses); /* shared with whoever wants to keep it */
    void (*unknown)(struct name_waiter *waiter, const char *why);
};

struct names *names_new(struct loop *loop, const struct upstream_target *target, struct buf *error);
void names_free(struct names *names); /* nobody waits any more; look-ups that run are left to themselves */

/* What is known without waiting, or NULL. Shared: to be released. */
struct addresses *names_known(struct names *names);
/* Never calls back at once. */
void names_ask(struct names *names, struct name_waiter *waiter);
void names_forget(struct names *names, struct name_waiter *waiter); /* may be called of one that does not wait */
/* None of them could be reached: the next connection asks again. */
void names_doubt(struct names *names, const struct addresses *addresses);

#endif
