/* own_wait.c - a status query with Prefer: wait=N is held while its command is in progress (docs/contract.md 7.3). Loop thread.
 *
 * It is a waiter like a repeat that waits, and counts as one. When the execution has ended, or the wait, the record is looked up again, so that what is
 * told is what is there then. */
#include "server/flow/own_state.h"

/* command_wait.c knows how a request asks for it. */
#include "server/flow/exchange_state.h"

static void own_on_wait_timer(void *context)
{
    struct own *own = context;
    own_wait_end(own);
    own_ask(own);
}

static void own_on_ended(struct waiter *waiter, const struct store_ended *ended)
{
    (void) ended;
    struct own *own = LIST_ITEM(waiter, struct own, waiter);
    own_wait_end(own);
    own_ask(own);
}

void own_wait_begin(struct own *own)
{
    if (own->resource == OWN_STATUS || own->resource == OWN_STATUS_ID) {
        own->wait_ms = wait_wanted_ms(own->flow->settings, own->head->headers, 0);
        own->wait_until_ms = loop_now_ms(own->flow->loop) + own->wait_ms;
    }
}

static int64_t own_wait_left_ms(const struct own *own)
{
    return own->wait_ms > 0 ? own->wait_until_ms - loop_now_ms(own->flow->loop) : 0;
}

bool own_may_wait(const struct own *own)
{
    return own_wait_left_ms(own) > 0 && !own->flow->stopped;
}

bool own_wait(struct own *own)
{
    struct flow *flow = own->flow;
    if (!own->task.waited || !own_may_wait(own)) {
        return false;
    }
    struct status_view view;
    own->waiter.ended = own_on_ended;
    if (!own_view(own, &view) || !waiters_join(flow->waiters, &own->waiter, &own->task, view_of(own->tenant))) {
        own->wait_ms = 0; /* nothing was applied */
        return false;
    }
    log_message(LOG_DEBUG, "wait", "a status query waits for the end of its command");
    loop_timer_init(&own->wait_timer, flow->loop, own_on_wait_timer, own);
    loop_timer_start(&own->wait_timer, wait_span_ms(&own->task.found, own_wait_left_ms(own)));
    list_append(&flow->queries, &own->node);
    own->waits = true;
    edge_watch_client(own->client, true);
    return true;
}

void own_wait_end(struct own *own)
{
    if (own->waits) {
        own->waits = false;
        loop_timer_stop(&own->wait_timer);
        list_remove(&own->flow->queries, &own->node);
        edge_watch_client(own->client, false);
        waiters_leave(own->flow->waiters, &own->waiter);
    }
}

/* Whoever closes its side has left, or will read what there is. */
void own_hung_up(void *guest)
{
    struct own *own = guest;
    if (own->waits) {
        own_wait_end(own);
        own_answer_found(own);
    }
}

void own_stop_all(struct flow *flow)
{
    struct list_node *node = flow->queries.head.next;
    while (node != &flow->queries.head) {
        struct own *own = LIST_ITEM(node, struct own, node);
        node = node->next; /* the answer may end this one, and no other */
        if (own->waits) {
            own_wait_end(own);
            own_answer_found(own);
        }
    }
    flow_check_quiet(flow);
}
