/* flow.h - what the conductors on one loop share: the parts they act through, and what is running. Belongs to the loop's thread.
 *
 *   front.c     a request arrives: guard, own paths, route, tenant, key, declared length (checks 1 to 5)
 *   command.c   a keyed request on a protected route: asks core/exchange.h, does the one deed it names
 *   relay.c     pass-through
 *   own.c       requests at and below /_nonbis: status, void
 *   waiters.c   who waits for the end of somebody else's execution
 *   late.c      outcomes that the store would not take at first
 *   replay_cache.c  answers that were replayed lately
 *   answer.c    what nonbis says itself, and the fields it adds
 *   result.c    the word for how a request ended
 *   metrics.c   what a loop counts; metrics_page.c tells it
 *   commons.c   what the loops share
 *   shard.c     one loop with all that it owns
 *   stop.c      the drain, over all loops
 *   health.c    the operators' listener */
#ifndef NONBIS_SERVER_FLOW_FLOW_H
#define NONBIS_SERVER_FLOW_FLOW_H

#include "common/key.h"
#include "server/edge/edge.h"
#include "server/flow/commons.h"
#include "server/flow/metrics.h"
#include "server/http/guard.h"
#include "server/upstream/upstream.h"

struct flow {
    struct loop *loop;
    const struct settings *settings;
    struct commons *commons;
    struct store_desk *desk; /* this loop's way to the store thread */
    struct upstream *upstream;
    struct waiters *waiters;           /* for the end of somebody else's execution */
    struct metrics *metrics;           /* what this loop counts */
    struct replay_cache *replay_cache; /* NULL: there is none */
    unsigned number;                   /* of this loop, from 0 */

    struct list exchanges; /* every struct exchange that is not freed */
    struct list spares;    /* struct exchange that have ended: used again */
    struct buf bytes;      /* a request for the handler while it is handed over */
    struct buf fields;     /* an answer's while it is handed over */
    struct list relays;
    struct list queries; /* struct own whose task the store has, or that wait */
    struct list late;    /* outcomes that are tried again: late.h */
    unsigned reading;    /* exchanges whose request is still arriving: no drain waits for them */

    bool draining;
    bool stopped;                 /* the drain is over, or all is done: nothing is sent any more */
    const char *draining_reason;  /* "draining" or "store" */
    void (*quiet)(void *context); /* called whenever the last exchange or relay has ended */
    void *quiet_context;
};

/* `desk`, `upstream` and, of all but the first loop, `number` are set by the caller before the first request. */
void flow_init(struct flow *flow, struct loop *loop, struct commons *commons);
void flow_fini(struct flow *flow);

/* The handler to make the data listener's edge with; its context is the flow. */
extern const struct edge_handler front_handler;

/* Who stands behind an edge request: the first member of an exchange or a relay, and the edge request's user. */
struct guest_ops {
    void (*whole)(void *guest, struct view body);
    void (*too_large)(void *guest);
    size_t (*part)(void *guest, struct view bytes);
    void (*last)(void *guest);
    void (*drained)(void *guest);
    void (*gone)(void *guest, bool delivered);
    void (*hung_up)(void *guest); /* NULL: never asked for */
};
struct guest {
    const struct guest_ops *ops;
};

/* --- command.c --- */
struct command_start {
    struct edge_request *request;
    const struct edge_head *head;
    struct target target;
    const struct route *route;
    struct view tenant; /* copied */
    const struct key *key;
    struct view host;
};
enum edge_take command_start(struct flow *flow, const struct command_start *start);
/* The drain is over: every exchange is told to end. Returns how many were being executed. */
size_t command_stop_all(struct flow *flow);
/* Ended exchanges that are kept for use again. */
void command_free_spares(struct flow *flow);
/* Who waits for somebody else's execution is told that it runs. */
void command_stop_waiting(struct flow *flow);

/* --- relay.c --- */
struct relay_start {
    struct edge_request *request;
    const struct edge_head *head;
    struct target target;
    const struct guard_verdict *guard;
    bool ignored; /* a keyed unsafe request: its answer says so */
};
enum edge_take relay_start(struct flow *flow, const struct relay_start *start);
void relay_stop_all(struct flow *flow);

bool flow_is_quiet(const struct flow *flow); /* nothing runs that a drain waits for */
/* What a guest calls when it has left its list. */
void flow_check_quiet(struct flow *flow);

#endif
