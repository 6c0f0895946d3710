/* own.h - requests at and below /_nonbis on the clients' listener: status, stored answers, void, the contract in force (docs/contract.md sections 7
 * and 8); and the question whether a route is protected, which is asked where that route is (7.7). Nothing of them is ever forwarded. Loop thread. */
#ifndef NONBIS_SERVER_FLOW_OWN_H
#define NONBIS_SERVER_FLOW_OWN_H

#include "server/flow/flow.h"

struct own_start {
    struct edge_request *request;
    const struct edge_head *head;
    const struct guard_verdict *guard;
    struct view tenant; /* copied; when own_needs_tenant said so */
    /* The question of contract 7.7, at a path that is not ours: about which method, and what route protects it (NULL: none). */
    struct view method_asked;
    const struct route *route;
};

/* The request is about somebody's commands. */
bool own_needs_tenant(const struct own_start *start);
enum edge_take own_start(struct flow *flow, const struct own_start *start);
/* The drain is over: whoever waits for the end of a command is answered. */
void own_stop_all(struct flow *flow);

#endif
