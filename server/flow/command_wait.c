/* command_wait.c - a repeat that waits for the outcome of a running command (docs/contract.md 10.15). Loop thread.
 *
 *   the store says that it runs, and told us of its end     exchange_found_running -> EVENT_MUST_WAIT, or EVENT_FOUND over a limit
 *   it has ended with an outcome, or unknown                EVENT_RIVAL_ENDED: the store is asked again
 *   it was released                                         EVENT_RIVAL_RELEASED: its answer is ours, "not-executed"
 *   the wait is over, or the client has left                EVENT_ANSWER_DEADLINE: in-progress */
#include "common/prefer.h"
#include "server/base/clock.h"
#include "server/flow/exchange_state.h"

#include <string.h>

/* What a request asks for, or `otherwise_ms`; never more than wait_max. */
int64_t wait_wanted_ms(const struct settings *settings, struct header_span headers, int64_t otherwise_ms)
{
    int64_t wanted_ms = otherwise_ms;
    for (size_t i = 0; i < headers.count; i++) {
        int64_t wait_s;
        if (header_name_is(headers.items[i].name, VIEW("Prefer")) &&
            prefer_read_wait(headers.items[i].value, &wait_s) == PREFER_WAIT) {
            wanted_ms = wait_s > settings->wait_max_ms / 1000 ? settings->wait_max_ms : wait_s * 1000;
            break; /* the first one counts (RFC 7240 section 2) */
        }
    }
    return wanted_ms < settings->wait_max_ms ? wanted_ms : settings->wait_max_ms;
}

void exchange_wait_begin(struct exchange *x, struct header_span headers)
{
    x->wait_ms = wait_wanted_ms(x->flow->settings, headers, x->route->in_flight_wait_ms);
    x->wait_until_ms = loop_now_ms(x->flow->loop) + x->wait_ms;
}

static int64_t wait_left_ms(const struct exchange *x)
{
    return x->wait_ms > 0 ? x->wait_until_ms - loop_now_ms(x->flow->loop) : 0;
}

bool exchange_may_wait(const struct exchange *x)
{
    return wait_left_ms(x) > 0 && !x->flow->stopped;
}

int64_t wait_span_ms(const struct store_found *found, int64_t left_ms)
{
    int64_t claim_ms = found->record.deadline_ms - found->now_ms + 1;
    return claim_ms < 1 ? 1 : claim_ms < left_ms ? claim_ms : left_ms;
}

static void exchange_rival_ended(struct waiter *waiter, const struct store_ended *ended)
{
    struct exchange *x = LIST_ITEM(waiter, struct exchange, waiter);
    if (ended->outcome != OUTCOME_NOT_EXECUTED || ended->answer.status == 0) {
        exchange_event(x, EVENT_RIVAL_ENDED);
        return;
    }
    x->answer_kind = ANSWER_OWN;
    x->state_after = RECORD_RELEASED;
    x->outcome = (struct outcome){ .kind = OUTCOME_NOT_EXECUTED, .pass = ended->answer.status > 0 };
    memcpy(x->command_id, x->task.found.record.command_id, sizeof x->command_id);
    if (x->outcome.pass) {
        x->status = ended->answer.status;
        x->body_not_kept = !ended->answer.body_kept;
        buf_append(&x->response_fields, ended->answer.fields);
        buf_append(&x->response_body, ended->answer.body);
    }
    exchange_event(x, EVENT_RIVAL_RELEASED);
}

void exchange_found_running(struct exchange *x)
{
    x->waiter.ended = exchange_rival_ended;
    bool waits = x->task.waited && exchange_may_wait(x) &&
                 waiters_join(x->flow->waiters, &x->waiter, &x->task, view_of(x->tenant));
    exchange_event(x, waits ? EVENT_MUST_WAIT : EVENT_FOUND);
}

void exchange_wait(struct exchange *x)
{
    x->has_waited = true;
    x->wait_us = clock_monotonic_us();
    if (x->client == NULL) {
        exchange_event(x, EVENT_CLIENT_GONE);
        return;
    }
    log_message(LOG_DEBUG, "wait", "a repeat waits for the end of its command");
    loop_timer_start(&x->answer_timer, wait_span_ms(&x->task.found, wait_left_ms(x)));
    edge_watch_client(x->client, true); /* libmicrohttpd does not look at a request that is parked (docs/facts.md 10) */
}

void exchange_wait_end(struct exchange *x)
{
    x->waited_us += clock_monotonic_us() - x->wait_us;
    loop_timer_stop(&x->answer_timer);
    waiters_leave(x->flow->waiters, &x->waiter);
    if (x->client != NULL) {
        edge_watch_client(x->client, false);
    }
}
