/* connection.h - one connection to the handler: somebody makes (and secures) it, its bytes are ours. Private to server/upstream.
 *
 * There are two ways to make one. `http://` and `unix:` are sockets of our own (connection_plain.c); `https://` is libcurl's
 * (connection_tls.c), which is loaded only where a handler is named so. Nobody else needs to know which.
 *
 * Every connection has an owner: the call that it carries, or the pool while it is kept. Owners are called from the loop only,
 * never from inside a function of this header.
 *
 *   connection_open() -> opened() | failed()      then ready() whenever what was wanted is possible
 *
 * One thread: the loop's. */
#ifndef NONBIS_SERVER_UPSTREAM_CONNECTION_H
#define NONBIS_SERVER_UPSTREAM_CONNECTION_H

#include "common/list.h"
#include "server/base/loop.h"
#include "server/upstream/upstream.h"

struct connections; /* all connections of one upstream */

struct connection_owner {
    void (*opened)(void *context);
    void (*failed)(void *context, const char *reason); /* not connected; the owner still closes it */
    void (*ready)(void *context, int events);          /* LOOP_READABLE, LOOP_WRITABLE */
};

enum connection_io {
    CONNECTION_DONE,   /* some bytes went */
    CONNECTION_AGAIN,  /* not now; a send is repeated with the same pointer and length (docs/facts.md 34) */
    CONNECTION_CLOSED, /* the peer has closed: reading only */
    CONNECTION_FAILED  /* see connection_error */
};

struct connection {
    struct list_node node;   /* of the pool, while kept */
    enum upstream_lane lane; /* it never changes */
    int64_t usable_until_ms; /* while kept */
    struct upstream *pool;   /* while kept: whose it is */
    /* private to connection*.c */
    struct connections *connections;
    const struct connection_owner *owner;
    void *context;
    struct loop_watch *watch; /* there once it is made */
};

/* NULL, and a sentence in `error`: there is no way to make connections to this target. */
struct connections *connections_new(struct loop *loop, const struct upstream_target *target,
                                    const struct upstream_options *options, struct buf *error);
void connections_free(struct connections *connections); /* every connection was closed before */

/* "127.0.0.1:3000", "unix:/run/app.sock": for messages. */
const char *connections_peer(const struct connections *connections);
/* TLS: libcurl may hold bytes that poll does not see */
bool connections_secured(const struct connections *connections);

struct connection *connection_open(struct connections *connections, enum upstream_lane lane,
                                   const struct connection_owner *owner, void *context);
void connection_own(struct connection *connection, const struct connection_owner *owner, void *context);
void connection_close(struct connection *connection); /* also while connecting; no owner is called any more */

void connection_want(struct connection *connection, int events); /* what ready() is called for */
enum connection_io connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent);
enum connection_io connection_receive(struct connection *connection, char *bytes, size_t len, size_t *received);
/* A look at a connection at rest: AGAIN when it is quiet, DONE when there are bytes that nobody asked for (one of them is read). */
enum connection_io connection_look(struct connection *connection);
/* Why the last send or receive failed. Static storage of the C library or libcurl. */
const char *connection_error(struct connection *connection);

#endif
