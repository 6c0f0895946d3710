/* edge.c - an edge: libmicrohttpd driven by the loop, and the connections it holds. Owns both. The loop's thread.
 *
 * libmicrohttpd runs in external epoll mode (its own thread stalls at 128 and 256 ready events, docs/facts.md 13): the loop watches
 * its epoll descriptor and calls MHD_run. A resumed connection wakes nothing and does not show in MHD_get_timeout
 * (docs/facts.md 26); every resume therefore starts a timer of 0 ms, and the next turn of the loop runs libmicrohttpd once for all
 * of them. A timer rather than a call before the wait: resumes made inside MHD_run wait for the next turn as well, so a busy
 * connection cannot keep the loop from everything else. */
#include "server/edge/inside.h"

#include "schema/limits.h"
#include "server/base/log.h"
#include "server/base/memory.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    POOL_INCREMENT = 512,   /* bytes by which the read buffer grows: small, since the reply head needs the rest */
    CONNECTIONS_SPARE = 64, /* closed ones that libmicrohttpd has not yet forgotten still count with it */
    SWEEPS_PER_DEADLINE = 8,
    BUSY_REQUESTS = 24, /* so many wait for answers: the next turn is not far */
    BUSY_PAUSE_MS = 1,
    SWEEP_MAX_MS = 1000,
};

static const char TOO_MANY[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Retry-After: 1\r\n"
                               "Cache-Control: no-store\r\n"
                               "Content-Length: 0\r\n"
                               "Connection: close\r\n"
                               "\r\n";

/* --- running --- */

void connection_look_later(struct edge_connection *connection)
{
    if (connection->answered.next == NULL) { /* several of a pipeline may end in one MHD_run */
        list_append(&connection->edge->answered, &connection->answered);
    }
}

static void connection_look_not(struct edge_connection *connection)
{
    if (connection->answered.next != NULL) {
        list_remove(&connection->edge->answered, &connection->answered);
    }
}

/* An end that arrived together with the request raises no event of its own (edge-triggered epoll, and a short read counts as having read
 * everything): without this look the connection would stay open until client_idle. A request that was read ahead, behind the one that has
 * ended, has begun by now, and is answered first. */
static void edge_look_at_answered(struct edge *edge)
{
    struct list_node *node;
    if (list_first(&edge->answered) != NULL) {
        ends_read(edge);
    }
    while ((node = list_first(&edge->answered)) != NULL) {
        struct edge_connection *connection = LIST_ITEM(node, struct edge_connection, answered);
        connection_look_not(connection);
        bool waits_for_head = connection->request == NULL || connection->request->phase == REQUEST_HEAD;
        if (waits_for_head && (edge->quiescing || connection_has_read_all(connection))) {
            (void) shutdown(connection->fd, SHUT_RDWR);
        }
    }
}

void edge_run_soon(struct edge *edge)
{
    if (!edge->freeing && !loop_timer_running(&edge->soon)) {
        loop_timer_start(&edge->soon, 0);
    }
}

/* A connection that was resumed and answered is read from at the next MHD_run, whether anything has come or not; where nothing has, it is
 * entered into the epoll set, and taken out again when the next request suspends it. While many requests wait for answers and nothing else is
 * under way the next turn comes soon, and may find the next request there; running libmicrohttpd less often saves time in any case. */
static bool edge_may_pause(const struct edge *edge)
{
    return edge->suspended_count >= BUSY_REQUESTS && edge->suspended_count == edge->request_count && !edge->quiescing;
}

static void edge_run(struct edge *edge)
{
    loop_timer_stop(&edge->soon);
    loop_timer_stop(&edge->pause);
    (void) MHD_run(edge->daemon);
    edge_look_at_answered(edge);
    MHD_UNSIGNED_LONG_LONG after_ms;
    if (MHD_get_timeout(edge->daemon, &after_ms) != MHD_YES) {
        return;
    }
    if (after_ms == 0 && edge_may_pause(edge)) {
        loop_timer_start(&edge->pause, BUSY_PAUSE_MS);
    } else if (after_ms == 0) {
        edge_run_soon(edge);
    } else if (!loop_timer_running(&edge->later)) {
        /* When it fires early, because connections were busy meanwhile, it is only started again. One millisecond more, because
         * libmicrohttpd closes what is older than the timeout, not what is as old. */
        loop_timer_start(&edge->later, (int64_t) after_ms + 1);
    }
}

static void edge_on_soon(void *context)
{
    edge_run(context);
}

static void edge_on_ready(void *context, int events)
{
    (void) events;
    edge_run(context);
}

/* --- connections --- */

static void connection_name_peer(struct edge_connection *connection, const struct sockaddr *address)
{
    const void *bytes = NULL;
    int family = address != NULL ? address->sa_family : AF_UNIX;
    if (family == AF_INET) {
        bytes = &((const struct sockaddr_in *) (const void *) address)->sin_addr;
    } else if (family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr;
        bytes = six;
        if (IN6_IS_ADDR_V4MAPPED(six)) { /* an IPv4 client of a socket for both */
            bytes = six->s6_addr + 12;
            family = AF_INET;
        }
    }
    if (bytes == NULL || inet_ntop(family, bytes, connection->peer, sizeof connection->peer) == NULL) {
        (void) snprintf(connection->peer, sizeof connection->peer, "unix");
        connection->peer_is_loopback = true;
        return;
    }
    connection->peer_is_loopback =
        family == AF_INET ? *(const unsigned char *) bytes == 127 : strcmp(connection->peer, "::1") == 0;
}

void connection_set_deadline(struct edge_connection *connection, int64_t after_ms)
{
    connection->due_ms = after_ms > 0 ? loop_now_ms(connection->edge->loop) + after_ms : 0;
}

/* Few enough connections to look at all of them, a few times per deadline. */
static void edge_start_sweep(struct edge *edge)
{
    int64_t head_ms = edge->options.head_deadline_ms, body_ms = edge->options.body_deadline_ms;
    int64_t shortest_ms = head_ms > 0 && (body_ms <= 0 || head_ms < body_ms) ? head_ms : body_ms;
    if (shortest_ms > 0) {
        int64_t every_ms = shortest_ms / SWEEPS_PER_DEADLINE;
        loop_timer_start(&edge->sweep, every_ms < 1 ? 1 : every_ms > SWEEP_MAX_MS ? SWEEP_MAX_MS : every_ms);
    }
}

static void edge_on_sweep(void *context)
{
    struct edge *edge = context;
    int64_t now_ms = loop_now_ms(edge->loop);
    for (struct list_node *node = edge->connections.head.next; node != &edge->connections.head; node = node->next) {
        struct edge_connection *connection = LIST_ITEM(node, struct edge_connection, node);
        if (connection->due_ms != 0 && connection->due_ms <= now_ms) {
            connection->due_ms = 0;
            (void) shutdown(connection->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes (docs/facts.md 32) */
        }
    }
    edge_start_sweep(edge);
}

static void connection_on_change(void *cls, struct MHD_Connection *mhd, void **slot,
                                 enum MHD_ConnectionNotificationCode what)
{
    struct edge *edge = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct edge_connection *connection = memory_new(sizeof *connection);
        connection->edge = edge;
        connection->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        connection_name_peer(connection, edge->adopting);
        connection_set_deadline(connection, edge->options.head_deadline_ms);
        ends_watch(connection);
        list_append(&edge->connections, &connection->node);
        *slot = connection;
        return;
    }
    struct edge_connection *connection = *slot;
    *slot = NULL;
    atomic_fetch_sub(edge->count, 1);
    ends_forget(connection);
    connection_look_not(connection);
    list_remove(&edge->connections, &connection->node);
    free(connection);
}

void edge_adopt(struct edge *edge, int fd, const void *sockaddr, unsigned sockaddr_len)
{
    if (edge->quiescing) {
        (void) close(fd);
        return;
    }
    if (atomic_fetch_add(edge->count, 1) >= edge->options.connections_max) {
        atomic_fetch_sub(edge->count, 1);
        (void) send(fd, TOO_MANY, sizeof TOO_MANY - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        linger_start(edge, fd);
        return;
    }
    size_t before = edge->connections.count;
    edge->adopting = sockaddr_len >= sizeof(sa_family_t) ? sockaddr : NULL;
    if (MHD_add_connection(edge->daemon, fd, sockaddr, sockaddr_len) != MHD_YES) {
        log_message(LOG_WARN, "edge",
                    "libmicrohttpd did not take a connection; it was closed"); /* by libmicrohttpd, always */
    }
    edge->adopting = NULL;
    if (edge->connections.count == before) { /* never announced: nobody will tell its end */
        atomic_fetch_sub(edge->count, 1);
    }
}

unsigned edge_connections(const struct edge *edge)
{
    return (unsigned) edge->connections.count;
}

unsigned edge_requests(const struct edge *edge)
{
    return edge->request_count;
}

/* --- life --- */

static void edge_on_log(void *cls, const char *format, va_list arguments)
{
    (void) cls;
    if (!log_enabled(LOG_DEBUG)) {
        return;
    }
    char text[512];
    int len = vsnprintf(text, sizeof text, format, arguments);
    while (len > 0 && (size_t) len < sizeof text && text[len - 1] == '\n') {
        text[--len] = '\0';
    }
    log_message(LOG_DEBUG, "libmicrohttpd", "%s", text);
}

struct edge *edge_new(struct loop *loop, const struct edge_options *options, const struct edge_handler *handler,
                      void *context)
{
    struct edge *edge = memory_new(sizeof *edge);
    edge->loop = loop;
    edge->options = *options;
    edge->handler = handler;
    edge->context = context;
    edge->count = options->connections != NULL ? options->connections : &edge->own_count;
    list_init(&edge->connections);
    list_init(&edge->spares);
    list_init(&edge->answered);
    list_init(&edge->lingers);
    ends_open(edge);
    loop_timer_init(&edge->soon, loop, edge_on_soon, edge);
    loop_timer_init(&edge->pause, loop, edge_on_soon, edge);
    loop_timer_init(&edge->later, loop, edge_on_soon, edge);
    loop_timer_init(&edge->sweep, loop, edge_on_sweep, edge);
    edge_start_sweep(edge);
    edge->idle_s = (unsigned) ((options->client_idle_ms + 999) / 1000); /* libmicrohttpd counts in seconds */
    edge->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        request_on_call, edge, MHD_OPTION_EXTERNAL_LOGGER, edge_on_log, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t) LIMIT_CONNECTION_POOL, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t) POOL_INCREMENT,
        MHD_OPTION_CONNECTION_LIMIT, options->connections_max + CONNECTIONS_SPARE, MHD_OPTION_CONNECTION_TIMEOUT,
        edge->idle_s, MHD_OPTION_URI_LOG_CALLBACK, request_on_uri, edge, MHD_OPTION_NOTIFY_COMPLETED,
        request_on_completed, edge, MHD_OPTION_NOTIFY_CONNECTION, connection_on_change, edge, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        edge->daemon == NULL ? NULL : MHD_get_daemon_info(edge->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        log_message(LOG_ERROR, "edge",
                    "libmicrohttpd does not start: no descriptors or no memory left; the process ends");
        abort();
    }
    edge->watch = loop_watch_new(loop, info->epoll_fd, edge_on_ready, edge);
    loop_watch_set(edge->watch, LOOP_READABLE);
    return edge;
}

void edge_quiesce(struct edge *edge)
{
    edge->quiescing = true;
    for (struct list_node *node = list_first(&edge->connections); node != NULL && node != &edge->connections.head;
         node = node->next) {
        struct edge_connection *connection = LIST_ITEM(node, struct edge_connection, node);
        if (connection->request == NULL) {
            (void) shutdown(connection->fd, SHUT_RDWR); /* libmicrohttpd reads the end and closes */
        }
    }
}

void edge_free(struct edge *edge)
{
    if (edge == NULL) {
        return;
    }
    edge->freeing = true;
    /* libmicrohttpd aborts the process for a suspended connection (docs/facts.md 10). None should be left; one that is gets cut, and its
     * handler hears gone(). */
    for (struct list_node *node = list_first(&edge->connections); node != NULL && node != &edge->connections.head;
         node = node->next) {
        struct edge_request *request = LIST_ITEM(node, struct edge_connection, node)->request;
        if (request != NULL && request->suspended) {
            log_message(LOG_WARN, "edge",
                        "a request was left unanswered when its edge was closed; its connection is cut");
            edge_reply_cut(request);
        }
    }
    loop_watch_close(edge->watch);
    MHD_stop_daemon(edge->daemon);
    ends_close(edge);
    request_free_spares(edge);
    linger_end_all(edge);
    loop_timer_stop(&edge->soon);
    loop_timer_stop(&edge->pause);
    loop_timer_stop(&edge->later);
    loop_timer_stop(&edge->sweep);
    free(edge);
}
