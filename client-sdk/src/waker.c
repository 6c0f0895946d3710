/* waker.c - see waker.h. */
#include "client-sdk/src/waker.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool waker_init(struct waker *waker)
{
    waker->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_init(&waker->cancelled, false);
    atomic_init(&waker->hurried, false);
    return waker->fd >= 0;
}

void waker_fini(struct waker *waker)
{
    if (waker->fd >= 0) {
        (void) close(waker->fd);
        waker->fd = -1;
    }
}

/* In a signal handler: errno is left as it was. A full counter rings all the same. */
static void waker_ring(struct waker *waker)
{
    int saved = errno;
    const uint64_t one = 1;
    while (write(waker->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    errno = saved;
}

void waker_cancel(struct waker *waker)
{
    atomic_store(&waker->cancelled, true);
    waker_ring(waker);
}

void waker_hurry(struct waker *waker)
{
    atomic_store(&waker->hurried, true);
    waker_ring(waker);
}

bool waker_is_cancelled(const struct waker *waker)
{
    return atomic_load(&waker->cancelled);
}

bool waker_take_hurry(struct waker *waker)
{
    return atomic_exchange(&waker->hurried, false);
}

void waker_uncancel(struct waker *waker)
{
    atomic_store(&waker->cancelled, false);
    waker_quiet(waker);
}

void waker_quiet(struct waker *waker)
{
    uint64_t rings = 0;
    while (read(waker->fd, &rings, sizeof(rings)) < 0 && errno == EINTR) {
    }
}
