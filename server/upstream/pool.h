/* pool.h - the inside of an upstream, shared by pool.c and call.c. Private to server/upstream. One thread: the loop's. */
#ifndef NONBIS_SERVER_UPSTREAM_POOL_H
#define NONBIS_SERVER_UPSTREAM_POOL_H

#include "server/upstream/connection.h"

enum {
    UPSTREAM_LANES = 2,
    /* One read of a response; shared by all calls of a loop. A read that fills it tells that there may be more. libcurl reads no
     * more at once (CURLOPT_BUFFERSIZE, which costs each connection as much). */
    UPSTREAM_READ_BYTES = 16 * 1024,
};

struct upstream {
    struct loop *loop;
    struct connections *connections;
    int64_t idle_ms;
    size_t response_header_max;
    bool allow_close_delimited;
    /* The handler once sent bytes behind a complete answer: connections of commands are used once. Shared by all loops. */
    atomic_bool *distrusted;
    atomic_bool own_distrusted;

    struct list kept[UPSTREAM_LANES]; /* connections at rest, the youngest first; never shared by two lanes */
    struct loop_timer sweep;          /* closes kept connections that grew old */

    struct list calls;      /* every call that has not ended */
    struct list resting;    /* calls that wait for `wake`: they have to be driven from the loop */
    struct loop_timer wake; /* a timer, since it can be taken back when a call is aborted */
    struct upstream_figures figures;
    char read[UPSTREAM_READ_BYTES];
};

/* A young connection that is still quiet, or NULL. At most one is tried: when the youngest was closed by the peer, the others are
 * not better, and a fresh one is made (docs/contract.md section 6). */
struct connection *pool_take(struct upstream *upstream, enum upstream_lane lane);

/* Keeps a connection whose answer was read to its end. keep_alive_ms: what the handler said, or -1. */
void pool_keep(struct upstream *upstream, struct connection *connection, int64_t keep_alive_ms);

/* Bytes came behind a complete answer. Late enough, and they would be the next command's answer (docs/facts.md 48). */
void pool_distrust(struct upstream *upstream);

/* call.c: drives the calls in `resting`. */
void call_drive_resting(void *upstream);

#endif
