/* stop.h - how the server ends, over all its loops. The first loop leads: it orders, each loop does its part on its own thread and reports.
 *
 *   running -- TERM, INT, store failed --> draining   new commands get 503, replays go on, running ones finish
 *   draining -- nothing runs           --> closing    no new connections, idle ones closed, last answers leave
 *   draining -- drain_timeout          --> stopped    running commands are recorded unknown and told so, pass-through is cut; then closing
 *   closing -- the last answers left   --> the loops end
 *   any -- store failed                --> those that wait for an outcome are answered, since nobody will tell them of it
 *   any -- a second signal             --> the process leaves at once; nothing durable is lost */
#ifndef NONBIS_SERVER_FLOW_STOP_H
#define NONBIS_SERVER_FLOW_STOP_H

#include "server/flow/shard.h"

/* The part of one loop. */
struct stop_part {
    struct stop *stop;
    struct shard *shard;
    struct edge *admin;                         /* the operators', on the first loop; may be NULL */
    struct loop_message drain, cut, close, end; /* orders to it */
    struct loop_message forsaken;               /* likewise: the store failed, nobody will be told of an outcome */
    struct loop_message quiet, closed;          /* its reports */
    struct loop_timer closing;
    int64_t closing_since_ms;
    bool told_quiet, close_ordered, is_closing;
};

struct stop {
    struct shards *shards;
    struct loop *loop; /* the first */
    struct stop_part *parts;
    struct acceptor *data_acceptor, *admin_acceptor; /* owned from the start on */
    struct loop_timer drain;
    struct loop_message store_failed;
    unsigned quiet_count, closed_count;
    const char *reason; /* of the drain: "draining" or "store" */
    bool begun, signalled, cut, ended;
    int exit_code;
};

/* Signals and a failing store lead here from now on. `shards` are made; they are opened later. */
void stop_init(struct stop *stop, struct shards *shards);
/* What ends with the server: the listeners, and the operators' edge. NULL: there is none. */
void stop_own(struct stop *stop, struct acceptor *data, struct acceptor *admin, struct edge *admin_edge);
/* For store_worker_options: from the store thread. */
void stop_on_store_failed(void *stop);
void stop_fini(struct stop *stop);

#endif
