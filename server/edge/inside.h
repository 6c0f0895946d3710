/* inside.h - what the files of this room share: an edge, its connections, their requests. Nobody else includes it.
 *
 * The life of a request, and who may call libmicrohttpd when:
 *
 *     uri -> HEAD -------> BODY -------------> ENDED -----------------------> completed
 *            head()        bytes: part(),      whole(), too_large(), last()   gone()
 *                          or the collector
 *
 * An answer can be queued only inside libmicrohttpd's call for HEAD (then the body is not read) or for ENDED (docs/facts.md 28). So
 * edge_reply and edge_reply_begin only prepare it; request_settle, at the end of those two calls, queues it or suspends the
 * connection until it is there. Suspending happens only inside a call about the connection itself and never in the first one
 * (docs/facts.md 26b); resuming sets a flag, and one MHD_run per turn of the loop acts on all flags (docs/facts.md 26). */
#ifndef NONBIS_SERVER_EDGE_INSIDE_H
#define NONBIS_SERVER_EDGE_INSIDE_H

#include "server/edge/edge.h"

#include <microhttpd.h>

enum {
    EDGE_STREAM_BUFFER = 64 * 1024, /* bytes of a streaming answer between the handler and a slow client */
    EDGE_PEER_BYTES = 48,           /* a numeric IPv6 address with room */
};

struct edge {
    struct loop *loop;
    struct edge_options options;
    const struct edge_handler *handler;
    void *context;
    struct MHD_Daemon *daemon;
    struct loop_watch *watch; /* libmicrohttpd's epoll descriptor */
    struct loop_timer soon;   /* something was resumed: run in the next turn, which does not wait */
    struct loop_timer pause;  /* the same in a moment */
    struct loop_timer later;  /* libmicrohttpd's own timeouts, and ours */
    struct list connections;  /* struct edge_connection, by start of what they wait for */
    struct list spares;       /* struct edge_request that have ended: used again */
    struct list answered;     /* struct edge_connection whose request has ended within this MHD_run */
    int ends;                 /* epoll: ends of the clients' sending halves */
    atomic_uint *count;       /* of connections, this edge's or all that share it */
    atomic_uint own_count;
    struct list lingers;     /* struct edge_linger */
    struct loop_timer sweep; /* looks for connections past their deadline */
    unsigned idle_s;
    unsigned request_count;          /* between head and gone */
    unsigned suspended_count;        /* of these, waiting for an answer or for room */
    const struct sockaddr *adopting; /* inside edge_adopt only: whose connection libmicrohttpd is about to start */
    bool quiescing, freeing;
};

struct edge_connection {
    struct list_node node, answered; /* in the edge's two lists */
    struct edge *edge;
    int fd; /* libmicrohttpd's */
    char peer[EDGE_PEER_BYTES];
    bool peer_is_loopback;
    bool end_unseen;              /* its end has come, and may stand behind bytes that were not read yet */
    struct edge_request *request; /* NULL between requests */
    int64_t due_ms;               /* closed when it is still waiting for the client then; 0: it is not */
};

enum request_phase { REQUEST_HEAD, REQUEST_BODY, REQUEST_ENDED };
enum reply_state { REPLY_NONE, REPLY_PREPARING, REPLY_READY, REPLY_QUEUED };

/* A body that is taken whole. */
struct request_body {
    char *bytes;
    size_t len, room;
    bool declared; /* by Content-Length */
    uint64_t declared_len;
    uint64_t received;  /* bytes that libmicrohttpd delivered, kept or not */
    bool over;          /* grew over body_max: what comes is thrown away */
    size_t thrown_away; /* counted up to LIMIT_EARLY_DISCARD */
};

/* A streaming answer: a ring between edge_reply_write and libmicrohttpd's reader. */
struct reply_stream {
    char *ring; /* EDGE_STREAM_BUFFER bytes; NULL when no body goes out (HEAD, 204, 304, length 0) */
    size_t start, len;
    bool has_length;
    uint64_t unwritten; /* has_length: bytes that the handler still has to write */
    bool ended;
    bool wants_room; /* a write was cut short: tell when there is room */
};

struct edge_request {
    struct list_node spare; /* in the edge's list, between two uses */
    struct edge *edge;
    struct edge_connection *connection;
    struct MHD_Connection *mhd;
    void *user;

    char *target;
    size_t target_room; /* bytes */
    struct header *headers;
    size_t headers_room; /* items */
    struct edge_head head;
    size_t pool_used; /* bytes of the connection's pool that the request head takes, at most */

    enum request_phase phase;
    enum edge_take take;
    bool announced; /* head() was called, so gone() is due */
    bool inside;    /* a handler's event about this request is running */
    bool suspended;
    bool resuming; /* was suspended; libmicrohttpd has not called for it since */
    bool cut;
    bool close_after;          /* edge_close_after */
    bool more;                 /* edge_more was called inside part() */
    struct loop_watch *hangup; /* edge_watch_client is on */
    bool hung_up;              /* it has told */
    struct request_body body;

    enum reply_state reply;
    struct MHD_Response *response; /* until it is queued */
    unsigned status;
    bool answered_early; /* the client may still be sending: linger after closing */
    bool upload_unread;  /* a body so long that libmicrohttpd will not take an answer any more: it is written by hand */
    bool written_whole;  /* by hand */
    struct reply_stream *stream;
};

/* edge.c */
void edge_run_soon(struct edge *edge);
void connection_set_deadline(struct edge_connection *connection, int64_t after_ms); /* 0: none */
/* Its request has ended: whether another one can come is looked at when libmicrohttpd has done what it can with what it has read. */
void connection_look_later(struct edge_connection *connection);

/* ends.c */
void ends_open(struct edge *edge);
void ends_close(struct edge *edge);
void ends_watch(struct edge_connection *connection);
void ends_forget(struct edge_connection *connection);
void ends_read(struct edge *edge); /* what has come since the last time */
/* The client has closed its sending half, and everything it sent was read. As of the newest ends_read. */
bool connection_has_read_all(const struct edge_connection *connection);

/* request.c */
/* Requests that have ended are kept for use again, with their rooms. */
void request_free_spares(struct edge *edge);
void *request_on_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_on_call(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_len, void **slot);
void request_on_completed(void *cls, struct MHD_Connection *mhd, void **slot, enum MHD_RequestTerminationCode how);
void request_suspend(struct edge_request *request); /* only inside a call about its connection */
void request_resume(struct edge_request *request);
void request_is_asked(struct edge_request *request); /* libmicrohttpd has called for it: a resume has done its work */
void request_reset_connection(struct edge_request *request); /* RST */

/* request_layout.c: `head_size` as libmicrohttpd counted it, from the method to behind the empty line. */
bool request_layout_is_exact(const struct edge_request *request, size_t head_size);

/* request_body.c */
void request_body_start(struct edge_request *request);
/* False: the bound of what is thrown away was passed, the answer cannot wait for the end of the upload. */
bool request_body_add(struct edge_request *request, const char *bytes, size_t len);
bool request_body_is_complete(const struct edge_request *request);
void request_body_fini(struct edge_request *request);
void request_body_reuse(struct edge_request *request); /* empty; a small room is kept */

/* reply.c */
struct MHD_Response *reply_make_bare(bool close);
void reply_stream_free(struct reply_stream *stream);

/* reply_stream.c */
ssize_t reply_stream_read(void *cls, uint64_t position, char *out, size_t room);

/* hangup.c */
void hangup_end(struct edge_request *request); /* no-op when the client is not watched */

/* linger.c: closing without losing the answer. A socket that is closed while the client still sends answers with RST, which
 * can throw away the answer before the client has read it. So the end is announced (FIN), and what comes is read away for a
 * short while. */
void linger_start(struct edge *edge, int fd); /* takes the descriptor over */
void linger_end_all(struct edge *edge);

#endif
