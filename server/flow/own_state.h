/* own_state.h - one request for a resource of our own while it lives. Private to own*.c. Loop thread.
 *
 * Lives from head() until the client is gone and the store has no task of it. It is in flow->queries, and a drain waits for it, only while the
 * store has its task or it waits for a running command: a body that never comes holds nothing. */
#ifndef NONBIS_SERVER_FLOW_OWN_STATE_H
#define NONBIS_SERVER_FLOW_OWN_STATE_H

#include "schema/limits.h"
#include "server/core/status_view.h"
#include "server/flow/answer.h"
#include "server/flow/own.h"
#include "server/flow/waiters.h"

enum own_resource {
    OWN_NOTHING,
    OWN_CONTRACT,  /* GET /_nonbis/v1 */
    OWN_ROUTE,     /* OPTIONS of any path, with Nonbis-Ask */
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
    struct view method_asked;  /* OWN_ROUTE: about which method; likewise */
    const struct route *route; /* OWN_ROUTE: what protects it, or NULL */
    struct key key;            /* empty for OWN_STATUS_ID, OWN_CONTRACT and OWN_ROUTE */
    char tenant[LIMIT_TENANT_BYTES + 1];
    struct store_task task;
    struct waiter waiter;
    struct loop_timer wait_timer;
    int64_t wait_ms, wait_until_ms; /* of the loop; Prefer: wait, capped; 0: none */
    bool waits;                     /* for a running command */
    bool asked;                     /* the store has the task */
    bool holds_slot;                /* a void, counted in commons->running */
    struct quota_place quota;       /* likewise, of its tenant */
};

/* own_wait.c: a status query that waits for the outcome of a running command */
void own_wait_begin(struct own *own);
bool own_may_wait(const struct own *own);
bool own_wait(struct own *own); /* the store found it; true: not answered yet */
void own_wait_end(struct own *own);
void own_hung_up(void *guest);

/* own.c */
void own_ask(struct own *own);

/* own_answer.c: each gives the one answer, and its line in the log */
void own_answer_contract(struct own *own);
void own_answer_route(struct own *own);
void own_answer_found(struct own *own); /* what the store returned */
/* What may be told of it; false: nothing, it is somebody else's or not there. */
bool own_view(const struct own *own, struct status_view *view);
void own_tell(struct own *own, const struct answer_problem *problem);

#endif
