/* connection_plain.c - connections by a socket of our own: `http://` over TCP, and `unix:`.
 *
 *   begin -> NAMING -> TRYING -> ... next address ... -> MADE -> owner hears opened()
 *              |         |  ^          |
 *              |         |  +- CROWDED: the queue of a Unix socket is full; the same address again
 *              v         v             v
 *           the name is unknown,  no address left: FAILED, or the time is over -> owner hears failed()
 *
 * The addresses of a name are tried in turn: the next one at once when one refuses, or when it has been silent for half of the time
 * that is left. `connect_timeout` is the time for all of it, the look-up included, which has half of it where old addresses are known.
 *
 * One timer leads: whatever is decided inside a function that others call is told by it, from the loop. */
#include "server/base/memory.h"
#include "server/upstream/connection_ways.h"
#include "server/upstream/names.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CROWDED_PAUSE_MS = 5, PLAIN_REASON_MAX = 200 };

struct plain_connections {
    struct connections base;
    struct names *names;
};

enum plain_stage { PLAIN_NAMING, PLAIN_TRYING, PLAIN_CROWDED, PLAIN_MADE, PLAIN_FAILED };

struct plain_connection {
    struct connection base;
    int fd; /* -1: none */
    int os_error;
    /* While connecting: */
    enum plain_stage stage;
    struct loop_timer timer;
    int64_t deadline_ms;
    struct name_waiter waiter;
    struct addresses *addresses; /* NULL: not known yet, or not needed any more */
    unsigned from, tried;        /* the one that is tried now: from + tried - 1, round the list */
};

static struct plain_connections *plain_all_of(const struct connection *connection)
{
    return LIST_ITEM(connection->connections, struct plain_connections, base);
}

static struct plain_connection *plain_of(struct connection *connection)
{
    return LIST_ITEM(connection, struct plain_connection, base);
}

static unsigned plain_place(const struct plain_connection *plain)
{
    return (plain->from + plain->tried - 1) % plain->addresses->count;
}

/* --- one address --- */

static void plain_drop_socket(struct plain_connection *plain)
{
    if (plain->base.watch != NULL) {
        loop_watch_close(plain->base.watch);
        plain->base.watch = NULL;
    }
    if (plain->fd >= 0) {
        (void) close(plain->fd);
        plain->fd = -1;
    }
}

/* 0: connected. Else what connect says; EINPROGRESS: that will show. */
static int plain_connect(struct plain_connection *plain, const union address *address)
{
    static const int on = 1;
    plain->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (plain->fd < 0) {
        return errno;
    }
    if (address->any.sa_family != AF_UNIX) {
        /* A request is one write, and waits for nothing; else its last segment could wait for the answer to the one before. */
        (void) setsockopt(plain->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (connect(plain->fd, &address->any, address_length(address)) == 0) {
        return 0;
    }
    return errno == EINTR ? EINPROGRESS : errno;
}

static void plain_stop_at(struct plain_connection *plain, enum plain_stage stage)
{
    plain->stage = stage;
    loop_timer_start(&plain->timer, 0);
}

static void plain_on_ready(void *context, int events);

/* Waits for what the handler says; with other addresses behind this one, for half of the time that is left. */
static void plain_await(struct plain_connection *plain)
{
    struct loop *loop = plain->base.connections->loop;
    int64_t left_ms = plain->deadline_ms - loop_now_ms(loop);
    bool last = plain->tried == plain->addresses->count;
    plain->stage = PLAIN_TRYING;
    plain->base.watch = loop_watch_new(loop, plain->fd, plain_on_ready, &plain->base);
    loop_watch_set(plain->base.watch, LOOP_WRITABLE);
    loop_timer_start(&plain->timer, last ? left_ms : left_ms / 2);
}

/* Tries the addresses from here on, until one of them has to be waited for, or it is decided. Calls nobody. */
static void plain_try(struct plain_connection *plain)
{
    while (plain->tried < plain->addresses->count) {
        plain->tried++;
        int told = plain_connect(plain, &plain->addresses->items[plain_place(plain)]);
        if (told == 0) {
            plain_stop_at(plain, PLAIN_MADE);
            return;
        }
        if (told == EINPROGRESS) {
            plain_await(plain);
            return;
        }
        plain_drop_socket(plain);
        plain->os_error = told;
        if (told == EAGAIN && plain->addresses->items[0].any.sa_family == AF_UNIX) {
            plain->stage = PLAIN_CROWDED;
            loop_timer_start(&plain->timer, CROWDED_PAUSE_MS);
            return;
        }
    }
    plain_stop_at(plain, PLAIN_FAILED);
}

/* --- how it ends. From the loop: these call the owner. --- */

static void plain_fail(struct plain_connection *plain)
{
    const struct addresses *addresses = plain->addresses;
    char reason[PLAIN_REASON_MAX], last[INET6_ADDRSTRLEN];
    if (addresses->count == 1) {
        (void) snprintf(reason, sizeof reason, "%s", strerror(plain->os_error));
    } else {
        address_write(&addresses->items[plain_place(plain)], last, sizeof last);
        (void) snprintf(reason, sizeof reason, "%s (%s, the last of %u addresses)", strerror(plain->os_error), last,
                        addresses->count);
    }
    names_doubt(plain_all_of(&plain->base)->names, addresses);
    connection_is_not_made(&plain->base, reason);
}

/* While nobody listens on a port out of which the kernel also serves those that connect, it may choose that very port for us, and then the
 * socket is connected to itself (docs/facts.md 70): the handler refused as before. Closed by RST, so that nothing keeps the port from it. */
static bool plain_is_itself(const struct plain_connection *plain)
{
    static const struct linger at_once = { .l_onoff = 1 };
    union address near, far;
    socklen_t near_len = sizeof near, far_len = sizeof far;
    memset(&near, 0, sizeof near);
    memset(&far, 0, sizeof far);
    if (plain->addresses->items[0].any.sa_family == AF_UNIX || getsockname(plain->fd, &near.any, &near_len) != 0 ||
        getpeername(plain->fd, &far.any, &far_len) != 0 || near_len != far_len || memcmp(&near, &far, near_len) != 0) {
        return false;
    }
    (void) setsockopt(plain->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return true;
}

static void plain_succeed(struct plain_connection *plain)
{
    loop_timer_stop(&plain->timer);
    if (plain_is_itself(plain)) {
        plain_drop_socket(plain);
        plain->os_error = ECONNREFUSED;
        plain_try(plain);
        return;
    }
    plain->stage = PLAIN_MADE;
    plain->addresses->first = plain_place(plain);
    addresses_release(plain->addresses);
    plain->addresses = NULL;
    connection_is_made(&plain->base, plain->fd);
}

static void plain_on_ready(void *context, int events)
{
    struct plain_connection *plain = plain_of(context);
    if (plain->stage == PLAIN_MADE) {
        connection_on_ready(context, events);
        return;
    }
    int told = 0;
    socklen_t len = sizeof told;
    if (getsockopt(plain->fd, SOL_SOCKET, SO_ERROR, &told, &len) != 0) {
        told = errno;
    }
    if (told == 0) {
        plain_succeed(plain);
        return;
    }
    plain_drop_socket(plain);
    plain->os_error = told;
    plain_try(plain);
}

/* Half of the time is over, and there may be old addresses. The look-up goes on. */
static void plain_name_is_late(struct plain_connection *plain)
{
    struct names *names = plain_all_of(&plain->base)->names;
    int64_t left_ms = plain->deadline_ms - loop_now_ms(plain->base.connections->loop);
    plain->addresses = names_late(names, plain->base.connections->connect_timeout_ms - left_ms);
    if (plain->addresses == NULL) {
        loop_timer_start(&plain->timer, left_ms);
        return;
    }
    names_forget(names, &plain->waiter);
    plain->from = plain->addresses->first;
    plain_try(plain);
}

static void plain_on_timer(void *context)
{
    struct plain_connection *plain = context;
    bool late = loop_now_ms(plain->base.connections->loop) >= plain->deadline_ms;
    switch (plain->stage) {
    case PLAIN_NAMING:
        if (late) {
            connection_is_late(&plain->base, "Resolving timed out");
            return;
        }
        plain_name_is_late(plain);
        return;
    case PLAIN_TRYING:
        if (late || plain->tried == plain->addresses->count) {
            names_doubt(plain_all_of(&plain->base)->names, plain->addresses);
            connection_is_late(&plain->base, "Connection timed out");
            return;
        }
        plain_drop_socket(plain);
        plain->os_error = ETIMEDOUT;
        plain_try(plain);
        return;
    case PLAIN_CROWDED:
        if (late) {
            connection_is_late(&plain->base, "the queue of the socket is full");
            return;
        }
        plain->tried--;
        plain_try(plain);
        return;
    case PLAIN_MADE:
        plain_succeed(plain);
        return;
    case PLAIN_FAILED:
        plain_fail(plain);
        return;
    }
}

static void plain_on_known(struct name_waiter *waiter, struct addresses *addresses)
{
    struct plain_connection *plain = LIST_ITEM(waiter, struct plain_connection, waiter);
    plain->addresses = addresses_share(addresses);
    plain->from = addresses->first;
    plain_try(plain);
}

static void plain_on_unknown(struct name_waiter *waiter, const char *why)
{
    struct plain_connection *plain = LIST_ITEM(waiter, struct plain_connection, waiter);
    connection_is_not_made(&plain->base, why);
}

/* --- the way --- */

static struct connections *plain_start(struct loop *loop, const struct upstream_target *target,
                                       const struct upstream_options *options, struct buf *error)
{
    struct plain_connections *all = memory_new(sizeof *all);
    all->names = names_new(loop, target, options->name_fails, error);
    if (all->names == NULL) {
        free(all);
        return NULL;
    }
    return &all->base;
}

static void plain_end(struct connections *connections)
{
    struct plain_connections *all = LIST_ITEM(connections, struct plain_connections, base);
    names_free(all->names);
    free(all);
}

static struct connection *plain_make(struct connections *connections)
{
    struct plain_connection *plain = memory_new(sizeof *plain);
    plain->fd = -1;
    plain->waiter.known = plain_on_known;
    plain->waiter.unknown = plain_on_unknown;
    loop_timer_init(&plain->timer, connections->loop, plain_on_timer, plain);
    return &plain->base;
}

static void plain_begin(struct connection *connection)
{
    struct plain_connection *plain = plain_of(connection);
    struct names *names = plain_all_of(connection)->names;
    int64_t timeout_ms = connection->connections->connect_timeout_ms;
    plain->deadline_ms = loop_now_ms(connection->connections->loop) + timeout_ms;
    plain->addresses = names_known(names);
    if (plain->addresses != NULL) {
        plain->from = plain->addresses->first;
        plain_try(plain);
        return;
    }
    plain->stage = PLAIN_NAMING;
    loop_timer_start(&plain->timer, names_have_old(names) ? timeout_ms / 2 : timeout_ms);
    names_ask(names, &plain->waiter);
}

static void plain_close(struct connection *connection)
{
    struct plain_connection *plain = plain_of(connection);
    loop_timer_stop(&plain->timer);
    names_forget(plain_all_of(connection)->names, &plain->waiter);
    addresses_release(plain->addresses);
    if (plain->fd >= 0) {
        (void) close(plain->fd);
    }
    free(plain);
}

static enum connection_io plain_send(struct connection *connection, const char *bytes, size_t len, size_t *sent)
{
    struct plain_connection *plain = plain_of(connection);
    ssize_t went = send(plain->fd, bytes, len, MSG_NOSIGNAL);
    *sent = went > 0 ? (size_t) went : 0;
    if (went > 0) {
        return CONNECTION_DONE;
    }
    if (went == 0 || errno == EAGAIN || errno == EINTR) {
        return CONNECTION_AGAIN;
    }
    plain->os_error = errno;
    return CONNECTION_FAILED;
}

static enum connection_io plain_receive(struct connection *connection, char *bytes, size_t len, size_t *received)
{
    struct plain_connection *plain = plain_of(connection);
    ssize_t got = recv(plain->fd, bytes, len, 0);
    *received = got > 0 ? (size_t) got : 0;
    if (got > 0) {
        return CONNECTION_DONE;
    }
    if (got == 0) {
        return CONNECTION_CLOSED;
    }
    if (errno == EAGAIN || errno == EINTR) {
        return CONNECTION_AGAIN;
    }
    plain->os_error = errno;
    return CONNECTION_FAILED;
}

static const char *plain_error(struct connection *connection)
{
    return strerror(plain_of(connection)->os_error);
}

const struct connection_way connection_way_plain = {
    .start = plain_start,
    .end = plain_end,
    .make = plain_make,
    .begin = plain_begin,
    .close = plain_close,
    .send = plain_send,
    .receive = plain_receive,
    .error = plain_error,
};
