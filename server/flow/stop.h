/* stop.h - how the server ends. Loop thread.
 *
 *   running -- TERM, INT, store failed --> draining   new commands get 503, replays go on, running ones finish
 *   draining -- nothing runs           --> closing    no new connections, idle ones closed, last answers leave
 *   draining -- drain_timeout          --> stopped    running commands are recorded unknown and told so, pass-through is cut; then closing
 *   any -- a second signal             --> the process leaves at once; nothing durable is lost */
#ifndef NONBIS_SERVER_FLOW_STOP_H
#define NONBIS_SERVER_FLOW_STOP_H

#include "server/flow/flow.h"

struct stop {
    struct flow *flow;
    struct edge *data, *admin; /* admin may be NULL */
    struct acceptor *data_acceptor, *admin_acceptor;
    struct loop_timer drain, closing;
    struct loop_message store_failed;
    int64_t closing_since_ms;
    bool begun, ended;
    int exit_code;
};

/* Signals and a failing store lead here from now on. */
void stop_init(struct stop *stop, struct flow *flow);
/* For store_worker_options: from the store thread. */
void stop_on_store_failed(void *stop);
void stop_fini(struct stop *stop);

#endif
