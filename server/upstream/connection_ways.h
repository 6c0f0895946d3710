/* connection_ways.h - the two ways to make connections, as connection.c sees them. Private to connection*.c. One thread: the loop's. */
#ifndef NONBIS_SERVER_UPSTREAM_CONNECTION_WAYS_H
#define NONBIS_SERVER_UPSTREAM_CONNECTION_WAYS_H

#include "server/upstream/connection.h"

enum { CONNECTIONS_PEER_MAX = 300 };

struct connection_way {
    /* Room for the way's own struct, which begins with a struct connections; NULL and a sentence when it cannot be. */
    struct connections *(*start)(struct loop *loop, const struct upstream_target *target,
                                 const struct upstream_options *options, struct buf *error);
    void (*end)(struct connections *connections);
    /* A connection of the way's own, which begins with a struct connection, and of which nothing is known yet. */
    struct connection *(*make)(struct connections *connections);
    /* Begins to connect; the owner is known. Calls nobody. */
    void (*begin)(struct connection *connection);
    void (*close)(struct connection *connection); /* the watch was closed; frees it */
    enum connection_io (*send)(struct connection *connection, const char *bytes, size_t len, size_t *sent);
    enum connection_io (*receive)(struct connection *connection, char *bytes, size_t len, size_t *received);
    const char *(*error)(struct connection *connection);
};

extern const struct connection_way connection_way_plain, connection_way_tls;

/* The beginning of each way's own struct. */
struct connections {
    const struct connection_way *way;
    struct loop *loop;
    int64_t connect_timeout_ms;
    char peer[CONNECTIONS_PEER_MAX];
};

/* The owner hears that the connection is made, or, when the peer has closed it or spoken already, that it failed: nothing was asked
 * yet, so there is nothing to read. `fd` is watched from here on, unless a watch is there already. From the loop only. */
void connection_is_made(struct connection *connection, int fd);
/* `reason`: what went wrong. The owner hears it and closes the connection, which is gone when this returns. From the loop only. */
void connection_is_not_made(struct connection *connection, const char *reason);
/* The same, when the time was over: `what` was going on. */
void connection_is_late(struct connection *connection, const char *what);

/* For loop_watch_new. */
void connection_on_ready(void *context, int events);

#endif
