/* pool.c - opening and closing an upstream, and its connections at rest.
 *
 * A write on a connection that the handler closed a moment ago succeeds, and then nobody knows whether the command ran. So a
 * connection is used again only while it is younger than the handler's patience, and after a look at it (docs/facts.md 45). */
#include "server/upstream/pool.h"

#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/base/metrics.h"
#include "server/upstream/curl_library.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* The handler's clock for an idle connection started earlier than ours, by the way of its last bytes to us. */
    KEEP_ALIVE_MARGIN_MS = 500,
    /* Old connections are closed in groups: the sweep does not run more often than this. */
    SWEEP_PAUSE_MS = 100,
};

/* --- kept connections --- */

static void pool_drop(struct upstream *upstream, struct connection *connection)
{
    list_remove(&upstream->kept[connection->lane], &connection->node);
    metrics_take(&upstream->figures.kept, 1);
    connection_close(connection);
}

void pool_distrust(struct upstream *upstream)
{
    if (!atomic_exchange(upstream->distrusted, true)) {
        log_message(
            LOG_WARN, "upstream",
            "%s sent bytes behind a complete answer; had they come later, they would have been taken for the next "
            "command's answer, so connections for commands are not kept any more until a restart",
            connections_peer(upstream->connections));
    }
}

/* A look at a connection at rest; bytes that nobody asked for are remembered for ever. */
static bool pool_is_quiet(struct upstream *upstream, struct connection *connection)
{
    enum connection_io io = connection_look(connection);
    if (io == CONNECTION_DONE) {
        pool_distrust(upstream);
    }
    return io == CONNECTION_AGAIN;
}

/* Something happened on a connection at rest: its close, bytes that nobody asked for, or only housekeeping of TLS. */
static void pool_on_ready(void *context, int events)
{
    (void) events;
    struct connection *connection = context;
    if (pool_is_quiet(connection->pool, connection)) {
        connection_want(connection, LOOP_READABLE);
        return;
    }
    pool_drop(connection->pool, connection);
}

static const struct connection_owner pool_owner = { .ready = pool_on_ready };

static void pool_sweep(void *context)
{
    struct upstream *upstream = context;
    int64_t now_ms = loop_now_ms(upstream->loop);
    int64_t next_ms = INT64_MAX;
    for (int lane = 0; lane < UPSTREAM_LANES; lane++) {
        struct list_node *node = list_first(&upstream->kept[lane]);
        while (node != NULL && node != &upstream->kept[lane].head) {
            struct connection *connection = LIST_ITEM(node, struct connection, node);
            node = node->next;
            if (connection->usable_until_ms <= now_ms) {
                pool_drop(upstream, connection);
            } else if (connection->usable_until_ms < next_ms) {
                next_ms = connection->usable_until_ms;
            }
        }
    }
    if (next_ms != INT64_MAX) {
        loop_timer_start(&upstream->sweep, next_ms - now_ms > SWEEP_PAUSE_MS ? next_ms - now_ms : SWEEP_PAUSE_MS);
    }
}

struct connection *pool_take(struct upstream *upstream, enum upstream_lane lane)
{
    struct list_node *node = list_first(&upstream->kept[lane]);
    if (node == NULL) {
        return NULL;
    }
    struct connection *connection = LIST_ITEM(node, struct connection, node);
    if (connection->usable_until_ms <= loop_now_ms(upstream->loop) || !pool_is_quiet(upstream, connection)) {
        pool_drop(upstream, connection);
        return NULL;
    }
    if (lane == UPSTREAM_PROTECTED && atomic_load(upstream->distrusted)) {
        pool_drop(upstream, connection); /* kept before another loop found out */
        return NULL;
    }
    list_remove(&upstream->kept[lane], node);
    metrics_take(&upstream->figures.kept, 1);
    metrics_add(&upstream->figures.reuses, 1);
    return connection;
}

void pool_keep(struct upstream *upstream, struct connection *connection, int64_t keep_alive_ms)
{
    int64_t for_ms = upstream->idle_ms;
    if (keep_alive_ms >= 0 && keep_alive_ms - KEEP_ALIVE_MARGIN_MS < for_ms) {
        for_ms = keep_alive_ms - KEEP_ALIVE_MARGIN_MS;
    }
    if (for_ms <= 0 || (connection->lane == UPSTREAM_PROTECTED && atomic_load(upstream->distrusted))) {
        connection_close(connection);
        return;
    }
    connection->usable_until_ms = loop_now_ms(upstream->loop) + for_ms;
    connection->pool = upstream;
    connection_own(connection, &pool_owner, connection);
    connection_want(connection, LOOP_READABLE);
    list_prepend(&upstream->kept[connection->lane], &connection->node);
    metrics_add(&upstream->figures.kept, 1);
    if (!loop_timer_running(&upstream->sweep)) {
        loop_timer_start(&upstream->sweep, for_ms);
    }
}

/* --- the upstream --- */

bool upstream_prepare(const struct upstream_target *target, const char *curl_library, struct buf *error)
{
    return strcmp(target->scheme, "https") != 0 || curl_library_load(curl_library, error) != NULL;
}

struct upstream *upstream_open(struct loop *loop, const struct upstream_options *options, struct buf *error)
{
    struct upstream_target target;
    if (!upstream_parse_url(options->url, &target, error)) {
        return NULL;
    }
    struct connections *connections = connections_new(loop, &target, options, error);
    if (connections == NULL) {
        return NULL;
    }
    struct upstream *upstream = memory_new(sizeof *upstream);
    upstream->connections = connections;
    upstream->loop = loop;
    upstream->idle_ms = options->idle_ms;
    upstream->response_header_max = options->response_header_max;
    upstream->allow_close_delimited = options->allow_close_delimited;
    upstream->distrusted = options->distrusted != NULL ? options->distrusted : &upstream->own_distrusted;
    for (int lane = 0; lane < UPSTREAM_LANES; lane++) {
        list_init(&upstream->kept[lane]);
    }
    list_init(&upstream->calls);
    list_init(&upstream->resting);
    loop_timer_init(&upstream->sweep, loop, pool_sweep, upstream);
    loop_timer_init(&upstream->wake, loop, call_drive_resting, upstream);
    return upstream;
}

void upstream_close(struct upstream *upstream)
{
    if (upstream == NULL) {
        return;
    }
    if (upstream->calls.count > 0) {
        abort(); /* a promise of the caller: a call without its end would be an outcome that nobody records */
    }
    for (int lane = 0; lane < UPSTREAM_LANES; lane++) {
        struct list_node *node;
        while ((node = list_first(&upstream->kept[lane])) != NULL) {
            pool_drop(upstream, LIST_ITEM(node, struct connection, node));
        }
    }
    loop_timer_stop(&upstream->sweep);
    loop_timer_stop(&upstream->wake);
    connections_free(upstream->connections);
    free(upstream);
}

void upstream_figures(const struct upstream *upstream, struct upstream_figures *figures)
{
    figures->connects = metrics_read(&upstream->figures.connects);
    figures->reuses = metrics_read(&upstream->figures.reuses);
    figures->sent = metrics_read(&upstream->figures.sent);
    figures->kept = metrics_read(&upstream->figures.kept);
}
