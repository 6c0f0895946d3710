/* peer.h - a scripted handler for tests: it plays the network that we are afraid of, and counts what reached it.
 *
 * It listens on 127.0.0.1 (a port of the kernel's choice) or on a Unix socket, in threads of its own with blocking sockets. On each
 * connection it first runs the steps given for that connection number, if there are any; then, for every request: it reads the
 * head, counts and records it, chooses a script, and runs its steps. Chosen is, in this order:
 *
 *   1 the script named by the request's field  X-Script: NAME
 *   2 the script for this request number (1, 2, ... in the order in which heads became whole, over all connections)
 *   3 the default script:  { PEER_BODY }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" }
 *
 * A script that ends without closing goes on with the next request (keep-alive). Example:
 *
 *   static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 },
 *                                           { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Le", 0 },
 *                                           { PEER_RESET, NULL, 0 },
 *                                           PEER_END };
 *   struct peer *peer = peer_new();
 *   peer_script_for_request(peer, 2, cut);
 *   ... --upstream peer_url(peer) ...
 *   ck_assert(peer_wait_requests(peer, 2));
 *   ck_assert_uint_eq(peer_count_key(peer, "k-1"), 1);
 *   peer_free(peer);
 *
 * Scripts are set before the traffic that they are for. Steps, texts and names must outlive the peer. Functions here may be called
 * from any thread. Waiting functions give up after PEER_DEADLINE_MS and return false. */
#ifndef NONBIS_TESTS_PEER_H
#define NONBIS_TESTS_PEER_H

#include "common/buf.h"

enum { PEER_DEADLINE_MS = 20000 };

enum peer_op {
    PEER_STOP,         /* end of a script: the next request */
    PEER_BODY,         /* read the rest of the request (Content-Length or chunked); without this step it stays unread */
    PEER_READ,         /* only in steps of a connection: read a whole request, count and record it */
    PEER_BODY_PATTERN, /* as PEER_BODY, but the body is not kept: it must be the pattern (below), or the connection is closed */
    PEER_READ_BYTES,   /* read `count` bytes and forget them */
    PEER_SEND,         /* `text`; `count` > 0: so many times */
    PEER_SEND_BYTES,   /* `count` bytes from `text`, which may hold NUL */
    PEER_SEND_PATTERN, /* `count` bytes of the pattern */
    PEER_DRIP,         /* `text`, a byte per packet */
    PEER_NUMBER,       /* a 200 whose body is the number of the request: "7" */
    PEER_ECHO,         /* a 200 whose body is the request as it was received, head and what was read of the body */
    PEER_WAIT,         /* stall until released (peer_release) */
    PEER_WAIT_END,     /* read and forget until the other side closes */
    PEER_SHUTDOWN,     /* FIN, but go on reading and with the script */
    PEER_CLOSE,        /* FIN */
    PEER_RESET         /* RST */
};

struct peer_step {
    enum peer_op op;
    const char *text;
    size_t count;
};
#define PEER_END                                                                                                       \
    {                                                                                                                  \
        PEER_STOP, NULL, 0                                                                                             \
    }

struct peer;

struct peer *peer_new(void);
struct peer *peer_new_unix(const char *path);
void peer_free(struct peer *peer); /* ends every connection, releases every stalled script */

const char *peer_url(const struct peer *peer); /* "http://127.0.0.1:40001", "unix:/tmp/x.sock" */
unsigned peer_port(const struct peer *peer);

/* --- what it does --- */
void peer_script_default(struct peer *peer, const struct peer_step *steps);
void peer_script_named(struct peer *peer, const char *name, const struct peer_step *steps);
void peer_script_for_request(struct peer *peer, unsigned request, const struct peer_step *steps);
void peer_script_for_connection(struct peer *peer, unsigned connection, const struct peer_step *steps);
void peer_release(struct peer *peer, unsigned count); /* lets so many PEER_WAIT steps pass, those to come included */
void peer_refuse(struct peer *peer);                  /* closes the listener: connections are refused from now on */
void peer_accept_again(struct peer *peer);            /* the same port */

/* --- what it saw --- */
unsigned peer_count_requests(struct peer *peer);    /* whole heads */
unsigned peer_count_whole(struct peer *peer);       /* requests whose body was read to its end, too */
unsigned peer_count_connections(struct peer *peer); /* accepted */
unsigned peer_count_key(struct peer *peer,
                        const char *key); /* whole heads with this Idempotency-Key, as the field was written */
/* Appends the n-th request (from 1) as it was received: head, and what was read of the body. False when there was none. */
bool peer_request(struct peer *peer, unsigned n, struct buf *out);

/* --- bodies too large to keep: byte n of the pattern is n modulo 251, so that no power of two is a period of it --- */
void peer_pattern_write(char *out, size_t len, uint64_t offset);
bool peer_pattern_matches(const char *bytes, size_t len, uint64_t offset);

/* --- waiting for it --- */
bool peer_wait_requests(struct peer *peer, unsigned count); /* whole heads */
bool peer_wait_read(struct peer *peer); /* all heads of which something has come, on connections accepted by now */
bool peer_wait_whole(struct peer *peer, unsigned count);
bool peer_wait_connections(struct peer *peer, unsigned count);
bool peer_wait_ended(struct peer *peer, unsigned count);   /* connections that are over, whoever closed them */
bool peer_wait_stalled(struct peer *peer, unsigned count); /* scripts that stand at PEER_WAIT now */

#endif
