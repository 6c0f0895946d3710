/* own_state.h - one request for a resource of our own while it lives. Private to own*.c. Loop thread.
 *
 * Lives from head() until the client is gone and the store has no task of it. It is in flow->queries, and a drain waits for it, only while the
 * store has its task: a body that never comes holds nothing. */
#ifndef NONBIS_SERVER_FLOW_OWN_STATE_H
#define NONBIS_SERVER_FLOW_OWN_STATE_H

#include "schema/limits.h"
#include "server/flow/answer.h"
#include "server/flow/own.h"

enum own_resource {
    OWN_NOTHING,
    OWN_CONTRACT,  /* GET /_nonbis/v1 */
    OWN_STATUS,    /* GET /_nonbis/v1/command */
    OWN_STATUS_ID, /* GET /_nonbis/v1/commands/ID */
    OWN_RESPONSE,  /* GET /_nonbis/v1/command/response */
    OWN_VOID       /* POST /_nonbis/v1/command/void */
};

struct own {
    struct guest guest; /* first: the edge request's user */
    struct list_node node;
    struct flow *flow;
    struct edge_request *client;  /* NULL: gone */
    const struct edge_head *head; /* valid as long as the client is there */
    struct view path;             /* likewise */
    enum own_resource resource;
    struct key key; /* empty for OWN_STATUS_ID and OWN_CONTRACT */
    char tenant[LIMIT_TENANT_BYTES + 1];
    struct store_task task;
    bool asked;      /* the store has the task */
    bool holds_slot; /* a void, counted in flow->running */
};

/* own_answer.c: each gives the one answer, and its line in the log */
void own_answer_contract(struct own *own);
void own_answer_found(struct own *own); /* what the store returned */
void own_tell(struct own *own, const struct answer_problem *problem);

#endif
