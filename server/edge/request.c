/* request.c - one request from its request line to gone(): turns libmicrohttpd's calls into the handler's events. See inside.h
 * for the order. Owns struct edge_request; libmicrohttpd keeps the pointer to it. The loop's thread. */
#include "server/edge/inside.h"

#include "schema/limits.h"
#include "server/base/log.h"
#include "server/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    POOL_PER_VALUE = 64, /* bytes of the pool that libmicrohttpd takes for one header, cookie or query argument */
    POOL_ANSWER = LIMIT_RESPONSE_HEADER_MAX + LIMIT_REPLY_HEAD_OWN / 2, /* room that a reply head must find */
};

/* --- requests are used again --- */

#ifdef __SANITIZE_ADDRESS__
enum { SPARES_MAX = 0 }; /* whoever touches one that has ended must be seen */
#else
enum { SPARES_MAX = 64 };
#endif
enum { SPARE_TARGET_MAX = 1024, SPARE_HEADERS_MAX = 32 };

static struct edge_request *request_new(struct edge *edge)
{
    struct list_node *node = list_take_first(&edge->spares);
    if (node == NULL) {
        return memory_new(sizeof(struct edge_request));
    }
    struct edge_request *request = LIST_ITEM(node, struct edge_request, spare);
    struct edge_request fresh = {
        .target = request->target,
        .target_room = request->target_room,
        .headers = request->headers,
        .headers_room = request->headers_room,
        .body = request->body,
    };
    *request = fresh;
    return request;
}

static void request_destroy(struct edge_request *request)
{
    request_body_fini(request);
    free(request->headers);
    free(request->target);
    free(request);
}

static void request_keep(struct edge_request *request)
{
    struct list *spares = &request->edge->spares;
    request_body_reuse(request); /* a large room is not kept until somebody comes */
    if ((int) spares->count < SPARES_MAX && request->target_room <= SPARE_TARGET_MAX &&
        request->headers_room <= SPARE_HEADERS_MAX) {
        list_append(spares, &request->spare);
    } else {
        request_destroy(request);
    }
}

void request_free_spares(struct edge *edge)
{
    struct list_node *node;
    while ((node = list_take_first(&edge->spares)) != NULL) {
        request_destroy(LIST_ITEM(node, struct edge_request, spare));
    }
}

static void request_set_target(struct edge_request *request, struct view target)
{
    if (target.len + 1 > request->target_room) {
        request->target = memory_resize(request->target, target.len + 1);
        request->target_room = target.len + 1;
    }
    if (target.len > 0) {
        memcpy(request->target, target.ptr, target.len);
    }
    request->target[target.len] = '\0';
}

/* --- from the request line to head() --- */

/* The only place where the raw target can be had (docs/facts.md 9). `uri` is NULL for a request line of one word. */
void *request_on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct edge *edge = cls;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct edge_request *request = request_new(edge);
    request->edge = edge;
    request->mhd = mhd;
    request->connection = info->socket_context;
    request->connection->request = request;
    request_set_target(request, view_of(uri));
    return request;
}

struct header_walk {
    struct header *items;
    size_t count, room;
    size_t cookie_bytes;
};

static enum MHD_Result request_add_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                          const char *value, size_t value_len)
{
    (void) kind;
    struct header_walk *walk = cls;
    if (walk->count == walk->room) {
        return MHD_NO;
    }
    struct header *header = &walk->items[walk->count++];
    header->name = view_make(name, name_len);
    header->value = view_trim(view_make(value, value_len)); /* libmicrohttpd keeps the blanks at the end */
    if (view_equal_nocase(header->name, VIEW("Cookie"))) {
        walk->cookie_bytes += value_len;
    }
    return MHD_YES;
}

static void request_read_head(struct edge_request *request, const char *method, const char *version)
{
    int count = MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, NULL, NULL);
    int others = MHD_get_connection_values(request->mhd, MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, NULL, NULL);
    struct header_walk walk = { .room = count > 0 ? (size_t) count : 0 };
    if (walk.room > request->headers_room) {
        request->headers = memory_resize(request->headers, walk.room * sizeof(struct header));
        request->headers_room = walk.room;
    }
    walk.items = request->headers;
    (void) MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, request_add_header, &walk);

    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    request->pool_used =
        info->header_size + (walk.count + (size_t) (others > 0 ? others : 0)) * POOL_PER_VALUE + walk.cookie_bytes;
    request->head = (struct edge_head){
        .method = view_of(method),
        .target = view_of(request->target),
        .version = view_of(version),
        .headers = { walk.items, walk.count },
        .peer = view_of(request->connection->peer),
        .peer_is_loopback = request->connection->peer_is_loopback,
    };
    request->head.exact = request_layout_is_exact(request, info->header_size);
}

/* --- answering or waiting --- */

void request_reset_connection(struct edge_request *request)
{
    /* Disconnecting a TCP socket sends RST (docs/facts.md 12). A Unix socket has none: its end is cut by shutdown. */
    static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    if (connect(request->connection->fd, &nobody, sizeof nobody) != 0) {
        (void) shutdown(request->connection->fd, SHUT_RDWR);
    }
}

/* A resumed connection is read from before it is asked for its answer, and an end found there closes it without one: a client that closes
 * its sending half, which it may do at any moment, would get nothing, although the request was carried out. Connections with a timeout of
 * their own are asked first, so each has one from its resume until it was asked. */
void request_resume(struct edge_request *request)
{
    if (!request->suspended) {
        return;
    }
    request->suspended = false;
    request->edge->suspended_count--;
    request->resuming = true;
    (void) MHD_set_connection_option(request->mhd, MHD_CONNECTION_OPTION_TIMEOUT, request->edge->idle_s + 1);
    MHD_resume_connection(request->mhd);
    edge_run_soon(request->edge);
}

void request_is_asked(struct edge_request *request)
{
    if (request->resuming) {
        request->resuming = false;
        (void) MHD_set_connection_option(request->mhd, MHD_CONNECTION_OPTION_TIMEOUT, request->edge->idle_s);
    }
}

void request_suspend(struct edge_request *request)
{
    request->suspended = true;
    request->edge->suspended_count++;
    MHD_suspend_connection(request->mhd);
}

static enum MHD_Result request_queue(struct edge_request *request)
{
    struct MHD_Response *response = request->response;
    request->response = NULL;
    request->reply = REPLY_QUEUED;
    enum MHD_Result queued = MHD_queue_response(request->mhd, request->status, response);
    MHD_destroy_response(response);
    if (queued != MHD_YES) {
        log_message(LOG_ERROR, "edge", "libmicrohttpd refused an answer with status %u; the connection is closed",
                    request->status);
    }
    return queued;
}

/* After an event at the end of the request: the answer goes out, or the connection sleeps until there is one. */
static enum MHD_Result request_settle(struct edge_request *request)
{
    if (request->cut || request->written_whole) {
        return MHD_NO;
    }
    if (request->reply == REPLY_READY) {
        return request_queue(request);
    }
    request_suspend(request);
    return MHD_YES;
}

/* --- the three calls --- */

static enum MHD_Result request_on_head(struct edge_request *request, const char *method, const char *version)
{
    struct edge *edge = request->edge;
    request_read_head(request, method, version);
    request->phase = REQUEST_BODY;
    if (request->pool_used + POOL_ANSWER > LIMIT_CONNECTION_POOL) {
        /* The answer's head would find no room beside it, and the client would get none at all, after the handler had run
         * (docs/facts.md 27). Nobody has heard of this request yet. */
        request->status = 431;
        request->response = reply_make_bare(true);
        request->answered_early = true;
        return request_queue(request);
    }
    request->announced = true;
    edge->request_count++;
    connection_set_deadline(request->connection, 0);
    request->take = edge->handler->head(edge->context, request, &request->head);
    if (request->cut) {
        return MHD_NO;
    }
    if (request->take == EDGE_REPLIED && request->reply != REPLY_READY) {
        log_message(LOG_ERROR, "edge", "a request was left unanswered at its head; it gets a bare 500");
        request->status = 500;
        request->response = reply_make_bare(true);
        request->reply = REPLY_READY;
    }
    if (request->reply == REPLY_READY) {
        request->answered_early = true;
        return request_queue(request);
    }
    request_body_start(request);
    if (request->take == EDGE_COLLECT) {
        connection_set_deadline(request->connection, edge->options.body_deadline_ms);
    }
    return MHD_YES;
}

/* Over the limit and over what is thrown away: the answer does not wait for the end (edge_reply writes it by hand). */
static enum MHD_Result request_on_endless(struct edge_request *request, size_t *upload_len)
{
    *upload_len = 1; /* one byte stays, so that libmicrohttpd calls again after a resume */
    request->phase = REQUEST_ENDED;
    request->upload_unread = request->answered_early = true;
    connection_set_deadline(request->connection, 0);
    request->edge->handler->too_large(request->edge->context, request);
    return request_settle(request);
}

static enum MHD_Result request_on_part(struct edge_request *request, const char *bytes, size_t *upload_len)
{
    size_t len = *upload_len;
    request->inside = true;
    request->more = false;
    size_t taken = request->edge->handler->part(request->edge->context, request, view_make(bytes, len));
    request->inside = false;
    request->body.received += taken;
    if (request->cut) {
        return MHD_NO;
    }
    if (request->reply != REPLY_NONE) {
        *upload_len = 0; /* answered: the rest of the upload is read and thrown away (docs/facts.md 28) */
        return MHD_YES;
    }
    *upload_len = len - taken;
    if (taken < len) {
        request_suspend(request);
        if (request->more) {
            request_resume(request);
        }
    }
    return MHD_YES;
}

static enum MHD_Result request_on_bytes(struct edge_request *request, const char *bytes, size_t *upload_len)
{
    if (request->reply != REPLY_NONE) {
        *upload_len = 0;
        return MHD_YES;
    }
    if (request->take == EDGE_STREAM) {
        return request_on_part(request, bytes, upload_len);
    }
    if (!request_body_add(request, bytes, *upload_len)) {
        return request_on_endless(request, upload_len);
    }
    *upload_len = 0;
    return MHD_YES;
}

static enum MHD_Result request_on_end(struct edge_request *request)
{
    struct edge *edge = request->edge;
    request->phase = REQUEST_ENDED;
    connection_set_deadline(request->connection, 0);
    if (request->reply != REPLY_NONE) {
        return request_settle(request); /* answered while the upload went on */
    }
    if (request->take == EDGE_STREAM) {
        edge->handler->last(edge->context, request);
    } else if (!request_body_is_complete(request)) {
        log_message(LOG_ERROR, "edge", "a request body ended before its declared length; the connection is closed");
        return MHD_NO;
    } else if (request->body.over) {
        edge->handler->too_large(edge->context, request);
    } else {
        edge->handler->whole(edge->context, request, view_make(request->body.bytes, request->body.len));
    }
    return request_settle(request);
}

enum MHD_Result request_on_call(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_len, void **slot)
{
    (void) cls;
    (void) mhd;
    (void) url;
    struct edge_request *request = *slot;
    request_is_asked(request);
    if (request->cut) {
        return MHD_NO;
    }
    switch (request->phase) {
    case REQUEST_HEAD:
        return request_on_head(request, method, version);
    case REQUEST_BODY:
        return *upload_len > 0 ? request_on_bytes(request, upload, upload_len) : request_on_end(request);
    case REQUEST_ENDED:
        break;
    }
    if (request->suspended) {
        return MHD_YES; /* more chunks of an endless upload, in the call that suspended it: they stay unread */
    }
    return request_settle(request);
}

/* --- the end --- */

void request_on_completed(void *cls, struct MHD_Connection *mhd, void **slot, enum MHD_RequestTerminationCode how)
{
    (void) mhd;
    struct edge *edge = cls;
    struct edge_request *request = *slot;
    if (request == NULL) {
        return;
    }
    *slot = NULL;
    hangup_end(request);
    edge->suspended_count -= request->suspended ? 1 : 0;
    request->connection->request = NULL;
    if (edge->options.head_deadline_ms > 0) {
        connection_set_deadline(request->connection, edge->options.client_idle_ms + edge->options.head_deadline_ms);
    }
    bool delivered = request->written_whole ||
                     (request->reply == REPLY_QUEUED && how == MHD_REQUEST_TERMINATED_COMPLETED_OK && !request->cut);
    if (request->answered_early && delivered) {
        linger_start(edge, fcntl(request->connection->fd, F_DUPFD_CLOEXEC, 0));
    } else {
        connection_look_later(request->connection);
    }
    if (request->announced) {
        edge->request_count--;
        edge->handler->gone(edge->context, request, delivered);
    }
    if (request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    reply_stream_free(request->stream);
    request_keep(request);
}

void edge_set_user(struct edge_request *request, void *user)
{
    request->user = user;
}

void *edge_user(const struct edge_request *request)
{
    return request->user;
}

void edge_close_after(struct edge_request *request)
{
    request->close_after = true;
}

void edge_more(struct edge_request *request)
{
    if (request->phase != REQUEST_BODY) {
        return;
    }
    request->more = request->inside;
    request_resume(request);
}
