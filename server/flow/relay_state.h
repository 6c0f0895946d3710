/* relay_state.h - one request that passes through, while it lives: the storage behind relay.c's machine. Private to the relay*.c files. Loop thread. */
#ifndef NONBIS_SERVER_FLOW_RELAY_STATE_H
#define NONBIS_SERVER_FLOW_RELAY_STATE_H

#include "server/flow/answer.h"

enum relay_phase { RELAY_SENDING, RELAY_AWAITING, RELAY_STREAMING, RELAY_DONE };

struct relay {
    struct guest guest; /* first: the edge request's user */
    struct list_node node;
    struct flow *flow;
    enum relay_phase phase;
    struct edge_request *client;
    struct upstream_call *call;
    struct loop_timer timer;
    bool chunked;  /* the request body */
    bool bodiless; /* the answer has no body: HEAD, 204, 304 */
    bool head_method, ignored;
    bool uploaded;   /* the last byte of the request body came */
    bool held;       /* the answer has begun, and waits for that: once the edge has it, no more of the upload comes */
    bool gathering;  /* the answer has begun within this turn: it may be whole at its end */
    struct buf up;   /* framed request bytes that the upstream did not take yet */
    struct buf down; /* response bytes that the edge did not take yet */
    /* the answer's head, for bodiless answers and the log */
    int status;
    bool has_length;
    uint64_t length;
    struct buf fields;
    bool finished; /* the response is whole */
    bool client_paused, upstream_paused;
    int64_t started_us;
    uint64_t bytes_up, bytes_down;
    char *method, *path; /* for the log */
    enum result result;
    char why[160]; /* "": there is nothing to add */
    uint64_t told_request;
};

/* relay.c */
void relay_say(struct relay *r, enum result result, const char *why);
/* The handler is being waited for: it has passthrough_timeout for its next sign of life. */
void relay_wait_for_upstream(struct relay *r);
/* The upstream is through, well or not; the client is told in the way that is still open. */
void relay_fail(struct relay *r, enum problem problem, const char *why);

/* relay_up.c: the request, from the client to the handler */
bool relay_flush_up(struct relay *r); /* sends what waits; true when nothing is left */
size_t relay_part(void *guest, struct view bytes);
void relay_last(void *guest);
void relay_on_writable(void *context);

/* relay_down.c: the answer, from the handler to the client */
extern const struct upstream_events relay_call_events;
void relay_begin(
    struct relay *r); /* hands the head to the edge; what is still to come of the upload is dropped there */
void relay_push_down(struct relay *r);
void relay_drained(void *guest);

#endif
