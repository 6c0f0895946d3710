/* edge.h - client connections: the only user of libmicrohttpd, on one loop. It turns requests into events for a handler, and answers into bytes.
 * It knows nothing of commands.
 *
 *   head      headers are in, no body byte was read. The handler answers at once (EDGE_REPLIED: the body is not read, the
 *             connection closes), or takes the body whole (EDGE_COLLECT) or as it comes (EDGE_STREAM).
 *   whole     EDGE_COLLECT: the body is complete. Answer now or later.
 *   too_large EDGE_COLLECT: a chunked body grew over the limit; up to LIMIT_EARLY_DISCARD more was thrown away. Answer now.
 *   part/last EDGE_STREAM: body bytes, then the end. part takes fewer than offered: paused until edge_more(). Neither comes after an
 *             answer was begun: the rest of the upload is read and thrown away, then the answer goes out (docs/facts.md 28).
 *   drained   a streaming answer has room again.
 *   hung_up   once, while edge_watch_client is on: the client has closed its sending side, or all of it.
 *   gone      the last event, always: answered, or the client left. `delivered` tells whether the whole answer was handed to the
 *             kernel (never that the client has it).
 * A client that leaves while its request is parked (between whole and reply) is noticed only when the answer is written (docs/facts.md 10), or by
 * edge_watch_client.
 * All calls and events on the loop's thread. Events may come from inside edge calls only where said. */
#ifndef NONBIS_SERVER_EDGE_EDGE_H
#define NONBIS_SERVER_EDGE_EDGE_H

#include "common/buf.h"
#include "server/base/loop.h"
#include "server/http/headers.h"

#include <stdatomic.h>

struct edge;
struct edge_request;

struct edge_head {
    struct view method, target, version; /* target raw, as received */
    struct header_span headers;
    struct view peer; /* numeric address without port; "unix" for Unix sockets */
    bool peer_is_loopback;
    bool exact; /* every byte of it is accounted for; else it can be read in two ways (request_layout.c) */
};

enum edge_take { EDGE_REPLIED, EDGE_COLLECT, EDGE_STREAM };

struct edge_handler {
    /* Views in `head` stay valid until gone. */
    enum edge_take (*head)(void *context, struct edge_request *request, const struct edge_head *head);
    void (*whole)(void *context, struct edge_request *request, struct view body); /* valid until gone */
    void (*too_large)(void *context, struct edge_request *request);
    size_t (*part)(void *context, struct edge_request *request, struct view bytes);
    void (*last)(void *context, struct edge_request *request);
    void (*drained)(void *context, struct edge_request *request);
    void (*gone)(void *context, struct edge_request *request, bool delivered);
    void (*hung_up)(void *context, struct edge_request *request); /* may be NULL; never from inside an edge call */
};

struct edge_options {
    unsigned connections_max; /* more are answered 503 by closing: refused at accept */
    atomic_uint *connections; /* what connections_max bounds, over all edges that share it; NULL: those of this edge */
    int64_t client_idle_ms;   /* keep-alive and inactivity */
    size_t body_max;          /* EDGE_COLLECT of a chunked body */
    /* Absolute, since client_idle counts inactivity only and a byte per second outlives it (docs/facts.md 10); 0: none. The connection is
     * closed. Head: from the connection's start, or client_idle after the answer before. Body: EDGE_COLLECT, from head() on. */
    int64_t head_deadline_ms, body_deadline_ms;
};

/* Takes connections from acceptors (edge_adopt); owns no listening socket. */
struct edge *edge_new(struct loop *loop, const struct edge_options *options, const struct edge_handler *handler,
                      void *context);
/* Takes the descriptor over, also on failure. Own thread. */
void edge_adopt(struct edge *edge, int fd, const void *sockaddr, unsigned sockaddr_len);
unsigned edge_connections(const struct edge *edge);
unsigned edge_requests(const struct edge *edge); /* between head and gone */
/* Drain: connections close after their present answer; idle ones now. */
void edge_quiesce(struct edge *edge);
/* Every request must have been answered (libmicrohttpd aborts on a suspended one). */
void edge_free(struct edge *edge);

void edge_set_user(struct edge_request *request, void *user);
void *edge_user(const struct edge_request *request);

/* Watches a client whose request waits for its answer: from whole, too_large or last on, until an answer is begun, `on` is false or the request is
 * gone. A client that is away already is told of as well; one that closed only its sending side can still be answered. Unseen are one that lost
 * its network, and an end behind more unread bytes than the kernel holds. */
void edge_watch_client(struct edge_request *request, bool on);

/* The connection ends with this request's answer, whatever it is. From head() on. */
void edge_close_after(struct edge_request *request);

struct edge_reply {
    int status;
    struct view fields; /* field block, copied */
    struct view
        body; /* copied, unless `body_owner`: then the edge frees body_owner with free() when it is done with `body` */
    void *body_owner;
    bool close; /* the connection ends with this answer */
    bool
        has_length; /* HEAD and 304: `length` is announced, no body goes out; without, and without `body`, none is announced and
                           the connection ends (libmicrohttpd has no other true way: reply.c) */
    uint64_t length;
};

/* Exactly one answer per request, at head (inside the event) or from `whole`, `too_large`, `last` on, at any later time.
 * Returns false when the library refused a field or the head does not fit: a bare 500 goes out instead (a bug: stored fields are checked before). */
bool edge_reply(struct edge_request *request, const struct edge_reply *reply);

/* A streaming answer: from `part` or whole on. has_length false: chunked (HTTP/1.0 client: ends by close). gone(delivered) never comes
 * before edge_reply_end: the last byte of an announced length waits for it. */
bool edge_reply_begin(struct edge_request *request, int status, struct view fields, bool has_length, uint64_t length);
size_t edge_reply_write(struct edge_request *request, struct view bytes); /* copies what fits a bounded buffer */
void edge_reply_end(struct edge_request *request);
/* Ends the connection at once so that the client sees a cut answer (RST), never a short one that looks whole. */
void edge_reply_cut(struct edge_request *request);

/* EDGE_STREAM: the handler can take more. */
void edge_more(struct edge_request *request);

/* A listening socket on one loop; accepted descriptors go to `accepted`. `address` "127.0.0.1:8620", "[::1]:0"; port 0: the kernel chooses.
 * NULL and a sentence when it cannot listen. */
struct acceptor;
struct acceptor *acceptor_open(struct loop *loop, const char *address,
                               void (*accepted)(void *context, int fd, const void *sockaddr, unsigned len),
                               void *context, struct buf *error);
const char *acceptor_address(const struct acceptor *acceptor); /* with the real port */
void acceptor_close(struct acceptor *acceptor);

/* "HOST:PORT" taken apart and checked; false and a sentence. */
bool acceptor_check_address(const char *address, struct buf *error);

#endif
