/* relay.c - pass-through: request first, then response, streamed with back-pressure, no size limit, no record (docs/contract.md section 1).
 *
 * Its small machine:
 *
 *   SENDING   the request body goes up          (head sent at the start; the handler may answer meanwhile: relay_give_up_upload)
 *   AWAITING  the request is whole, no head yet
 *   STREAMING the answer was begun
 *   DONE      answered, or cut; waits for gone
 *
 * The handler is timed (passthrough_timeout, inactivity) only while we wait for it; a slow client is the edge's business. A request is sent once:
 * what fails before the answer began is 502 or 504, later the client's connection is cut. */
#include "schema/limits.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/flow/relay_state.h"
#include "server/http/fields.h"
#include "server/http/request_writer.h"

#include <stdio.h>
#include <stdlib.h>

static void relay_log(struct relay *r)
{
    struct log_line line;
    if (!log_enabled(LOG_INFO)) {
        return;
    }
    log_begin(&line, LOG_INFO, "relay");
    log_text(&line, "result", result_name(r->result));
    log_int(&line, "status", r->status);
    if (r->why[0] != '\0') {
        log_text(&line, "why", r->why);
    }
    answer_log_request(r->flow, &line, r->told_request);
    log_text(&line, "method", r->method);
    answer_log_path(&line, view_of(r->path));
    log_int(&line, "bytes_up", (int64_t) r->bytes_up);
    log_int(&line, "bytes_down", (int64_t) r->bytes_down);
    log_int(&line, "total_us", clock_monotonic_us() - r->started_us);
    log_end(&line);
}

static void relay_free(struct relay *r)
{
    struct flow *flow = r->flow;
    if (r->result == RESULT_NONE) {
        r->result = RESULT_CLIENT_LEFT;
    }
    metrics_count_request(flow->metrics, METRICS_PASS_THROUGH, r->result);
    relay_log(r);
    loop_timer_stop(&r->timer);
    if (r->call != NULL) {
        upstream_abort(r->call);
    }
    list_remove(&flow->relays, &r->node);
    buf_fini(&r->up);
    buf_fini(&r->down);
    buf_fini(&r->fields);
    free(r->method);
    free(r->path);
    free(r);
    flow_check_quiet(flow);
}

void relay_say(struct relay *r, enum result result, const char *why)
{
    r->result = result;
    (void) snprintf(r->why, sizeof r->why, "%s", why);
}

void relay_wait_for_upstream(struct relay *r)
{
    if (!r->gathering) { /* then the timer is the end of this turn, and relay_begin starts it for the handler */
        loop_timer_start(&r->timer, r->flow->settings->passthrough_timeout_ms);
    }
}

void relay_fail(struct relay *r, enum problem problem, const char *why)
{
    loop_timer_stop(&r->timer);
    relay_say(r, problem == PROBLEM_UPSTREAM_TIMEOUT ? RESULT_TIMEOUT : RESULT_FAILED, why);
    if (r->phase == RELAY_DONE) {
        return;
    }
    bool begun = r->phase == RELAY_STREAMING;
    r->phase = RELAY_DONE;
    r->held = r->gathering = false;
    if (begun) {
        edge_reply_cut(r->client);
        return;
    }
    r->status = problem_table[problem].status;
    const struct answer_problem answer = { .problem = problem,
                                           .detail = problem == PROBLEM_UPSTREAM_FAILED
                                                         ? "the handler could not be reached or gave no complete answer"
                                                         : "the handler gave no sign of life in time",
                                           .ignored = r->ignored,
                                           .no_body = r->head_method };
    r->told_request = answer_problem(r->flow, r->client, &answer);
}

static void relay_on_timer(void *context)
{
    struct relay *r = context;
    if (r->gathering) {
        relay_begin(r);
        relay_push_down(r);
        return;
    }
    if (r->call != NULL) {
        upstream_abort(r->call);
        r->call = NULL;
    }
    relay_fail(r, PROBLEM_UPSTREAM_TIMEOUT, "no sign of life within passthrough_timeout");
}

/* --- life --- */

static void relay_gone(void *guest, bool delivered)
{
    struct relay *r = guest;
    if (!delivered && r->phase != RELAY_DONE) {
        relay_say(r, RESULT_CLIENT_LEFT,
                  r->phase == RELAY_STREAMING ? "while it was answered" : "before it was answered");
    } else if (!delivered && r->result == RESULT_PASSED) {
        relay_say(r, RESULT_CUT, "the client did not take the whole answer");
    }
    r->client = NULL;
    relay_free(r);
}

static const struct guest_ops relay_ops = {
    .part = relay_part,
    .last = relay_last,
    .drained = relay_drained,
    .gone = relay_gone,
};

static bool relay_request_head(struct relay *r, const struct relay_start *start, struct buf *out)
{
    struct buf *fields = &r->flow->fields;
    buf_reuse(fields, 2 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL);
    const struct fields_added added = {
        .via_name = view_of(r->flow->commons->via_name),
        .client_addr = start->head->peer,
        .proto = VIEW("http"),
        .host = start->guard->host,
    };
    fields_to_handler(start->head->headers, &added, fields);
    enum request_framing framing = start->guard->body == GUARD_BODY_CHUNKED  ? REQUEST_CHUNKED
                                   : start->guard->body == GUARD_BODY_LENGTH ? REQUEST_LENGTH
                                                                             : REQUEST_NO_BODY;
    bool written = request_write_head(out, start->head->method, start->target.origin, buf_view(fields), framing,
                                      start->guard->length) &&
                   !fields->failed && !out->failed;
    return written;
}

enum edge_take relay_start(struct flow *flow, const struct relay_start *start)
{
    struct relay *r = memory_new(sizeof *r);
    r->guest.ops = &relay_ops;
    r->flow = flow;
    r->client = start->request;
    r->chunked = start->guard->body == GUARD_BODY_CHUNKED;
    r->head_method = view_equal(start->head->method, VIEW("HEAD"));
    r->ignored = start->ignored;
    r->started_us = clock_monotonic_us();
    r->method = memory_text(start->head->method);
    r->path = memory_text(start->target.path);
    buf_init(&r->up, SIZE_MAX);
    buf_init(&r->down, SIZE_MAX);
    buf_init(&r->fields, 4 * LIMIT_CONNECTION_POOL);
    loop_timer_init(&r->timer, flow->loop, relay_on_timer, r);
    list_append(&flow->relays, &r->node);
    edge_set_user(start->request, r);

    struct buf *head = &flow->bytes;
    buf_reuse(head, 4 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL);
    if (!relay_request_head(r, start, head)) {
        relay_fail(r, PROBLEM_UPSTREAM_FAILED, "the request could not be written");
        return EDGE_REPLIED;
    }
    const struct upstream_request request = {
        .lane = UPSTREAM_PASSTHROUGH, .bytes = buf_view(head), .more = true, .head_method = r->head_method
    };
    r->call = upstream_start(flow->upstream, &request, &relay_call_events, r);
    return EDGE_STREAM;
}

void relay_stop_all(struct flow *flow)
{
    struct list_node *node = flow->relays.head.next;
    while (node != &flow->relays.head) {
        struct relay *r = LIST_ITEM(node, struct relay, node);
        node = node->next;
        relay_say(r, RESULT_STOPPED, "drain_timeout was over");
        r->phase = RELAY_DONE;
        r->gathering = false;
        loop_timer_stop(&r->timer);
        edge_reply_cut(r->client);
    }
}
