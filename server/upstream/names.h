/* names.h - the look-up of the handler's name, which may take its time: the C library's resolver in a thread of its own, so that the
 * loop goes on. Private to server/upstream. One thread: the loop's.
 *
 * There is one name, so one look-up serves all connections that wait for it, and its answer serves those that come within a minute.
 * When a look-up fails, or is slow, the addresses that the name had are used for up to a day (names.c). */
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

/* `failing`: shared by the loops of one server, so that one of them tells that look-ups fail, and that they work again; NULL: not shared. */
struct names *names_new(struct loop *loop, const struct upstream_target *target, atomic_bool *failing,
                        struct buf *error);
void names_free(struct names *names); /* nobody waits any more; look-ups that run are left to themselves */

/* What is known without waiting, or NULL. Shared: to be released. */
struct addresses *names_known(struct names *names);
/* Are there addresses that could be used without an answer? Whoever has another way waits for less long. */
bool names_have_old(const struct names *names);
/* Who waited for so long waits no longer (names_forget), and takes the addresses of names_have_old, as others do from now on, until there
 * is an answer. NULL: there are none. Shared: to be released. */
struct addresses *names_late(struct names *names, int64_t waited_ms);
/* Never calls back at once. */
void names_ask(struct names *names, struct name_waiter *waiter);
void names_forget(struct names *names, struct name_waiter *waiter); /* may be called of one that does not wait */
/* None of them could be reached: the next connection asks again, and waits for it. */
void names_doubt(struct names *names, const struct addresses *addresses);

#endif
