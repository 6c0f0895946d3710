/* waker.h - the bell of one operation: whoever rings it ends a wait or a transfer of that operation.
 *
 * Owns an eventfd that is in the poll set of whatever the operation's thread sleeps in. waker_cancel and waker_hurry are an
 * atomic store and one write(2): any thread and any signal handler, while the operation is alive. All others: the thread
 * that runs the operation. */
#ifndef NONBIS_CLIENT_WAKER_H
#define NONBIS_CLIENT_WAKER_H

#include <stdatomic.h>
#include <stdbool.h>

struct waker {
    int fd; /* readable: somebody rang */
    atomic_bool cancelled, hurried;
};

bool waker_init(struct waker *waker); /* false: no descriptor */
void waker_fini(struct waker *waker);

void waker_cancel(struct waker *waker);
void waker_hurry(struct waker *waker);

bool waker_is_cancelled(const struct waker *waker);
bool waker_take_hurry(struct waker *waker); /* true once per ring or several */
void waker_uncancel(struct waker *waker);

/* Empties the descriptor so that it can be polled again. The flags stay. */
void waker_quiet(struct waker *waker);

#endif
