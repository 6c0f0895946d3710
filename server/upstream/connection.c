/* connection.c - see connection.h: what is the same whichever way a connection is made. */
#include "server/upstream/connection_ways.h"

#include <stdio.h>
#include <string.h>

/* --- what the ways tell --- */

void connection_on_ready(void *context, int events)
{
    struct connection *connection = context;
    connection->owner->ready(connection->context, events);
}

void connection_is_made(struct connection *connection, int fd)
{
    if (connection_look(connection) != CONNECTION_AGAIN) {
        connection_is_not_made(connection, "connected, but closed or spoken to before the request was sent");
        return;
    }
    if (connection->watch == NULL) {
        connection->watch = loop_watch_new(connection->connections->loop, fd, connection_on_ready, connection);
    }
    connection->owner->opened(connection->context);
}

void connection_is_not_made(struct connection *connection, const char *reason)
{
    connection->owner->failed(connection->context, reason);
}

void connection_is_late(struct connection *connection, const char *what)
{
    char reason[200];
    (void) snprintf(reason, sizeof reason, "not made within connect_timeout (%lld ms): %s",
                    (long long) connection->connections->connect_timeout_ms, what);
    connection_is_not_made(connection, reason);
}

/* --- all connections --- */

struct connections *connections_new(struct loop *loop, const struct upstream_target *target,
                                    const struct upstream_options *options, struct buf *error)
{
    bool secured = strcmp(target->scheme, "https") == 0;
    const struct connection_way *way = secured ? &connection_way_tls : &connection_way_plain;
    struct connections *connections = way->start(loop, target, options, error);
    if (connections == NULL) {
        return NULL;
    }
    connections->way = way;
    connections->loop = loop;
    connections->connect_timeout_ms = options->connect_timeout_ms;
    if (strcmp(target->scheme, "unix") == 0) {
        (void) snprintf(connections->peer, sizeof connections->peer, "unix:%s", target->host);
    } else {
        (void) snprintf(connections->peer, sizeof connections->peer, "%s:%u", target->host, target->port);
    }
    return connections;
}

void connections_free(struct connections *connections)
{
    connections->way->end(connections);
}

const char *connections_peer(const struct connections *connections)
{
    return connections->peer;
}

bool connections_secured(const struct connections *connections)
{
    return connections->way == &connection_way_tls;
}

/* --- one connection --- */

struct connection *connection_open(struct connections *connections, enum upstream_lane lane,
                                   const struct connection_owner *owner, void *context)
{
    struct connection *connection = connections->way->make(connections);
    connection->connections = connections;
    connection->lane = lane;
    connection_own(connection, owner, context);
    connections->way->begin(connection);
    return connection;
}

void connection_own(struct connection *connection, const struct connection_owner *owner, void *context)
{
    connection->owner = owner;
    connection->context = context;
}

void connection_close(struct connection *connection)
{
    if (connection->watch != NULL) {
        loop_watch_close(connection->watch);
    }
    connection->connections->way->close(connection);
}

void connection_want(struct connection *connection, int events)
{
    loop_watch_set(connection->watch, events);
}

enum connection_io connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent)
{
    return connection->connections->way->send(connection, bytes, len, sent);
}

enum connection_io connection_receive(struct connection *connection, char *bytes, size_t len, size_t *received)
{
    return connection->connections->way->receive(connection, bytes, len, received);
}

enum connection_io connection_look(struct connection *connection)
{
    char byte;
    size_t received;
    return connection_receive(connection, &byte, 1, &received);
}

const char *connection_error(struct connection *connection)
{
    return connection->connections->way->error(connection);
}
