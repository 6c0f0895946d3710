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
#include "schema/wire.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/flow/answer.h"
#include "server/http/fields.h"
#include "server/http/request_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RELAY_CHUNK_MAX = 16 * 1024,
    RELAY_HELD_MAX = 64 * 1024, /* bytes of an answer that wait for the end of the upload */
};

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

static void relay_say(struct relay *r, enum result result, const char *why)
{
    r->result = result;
    (void) snprintf(r->why, sizeof r->why, "%s", why);
}

/* The handler is being waited for: it has passthrough_timeout for its next sign of life. */
static void relay_wait_for_upstream(struct relay *r)
{
    loop_timer_start(&r->timer, r->flow->settings->passthrough_timeout_ms);
}

/* The upstream is through, well or not; the client is told in the way that is still open. */
static void relay_fail(struct relay *r, enum problem problem, const char *why)
{
    loop_timer_stop(&r->timer);
    relay_say(r, problem == PROBLEM_UPSTREAM_TIMEOUT ? RESULT_TIMEOUT : RESULT_FAILED, why);
    if (r->phase == RELAY_DONE) {
        return;
    }
    bool begun = r->phase == RELAY_STREAMING;
    r->phase = RELAY_DONE;
    r->held = false;
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
    if (r->call != NULL) {
        upstream_abort(r->call);
        r->call = NULL;
    }
    relay_fail(r, PROBLEM_UPSTREAM_TIMEOUT, "no sign of life within passthrough_timeout");
}

/* --- response: handler -> client --- */

/* To the edge. What is still to come of the upload is dropped there. */
static void relay_begin(struct relay *r)
{
    r->held = false;
    r->phase = RELAY_STREAMING;
    relay_wait_for_upstream(r);
    if (!edge_reply_begin(r->client, r->status, buf_view(&r->fields), r->has_length, r->length)) {
        relay_say(r, RESULT_FAILED, "the answer's fields could not be sent");
        r->phase = RELAY_DONE;
        edge_reply_end(r->client); /* of the bare 500 that stands for it */
    }
}

static void relay_push_down(struct relay *r)
{
    while (r->down.len > 0) {
        size_t taken = edge_reply_write(r->client, buf_view(&r->down));
        if (taken == 0) {
            break;
        }
        memmove(r->down.ptr, r->down.ptr + taken, r->down.len - taken);
        r->down.len -= taken;
    }
    if (r->down.len > 0) {
        loop_timer_stop(&r->timer); /* it is the client's turn */
        if (r->call != NULL && !r->upstream_paused) {
            r->upstream_paused = true;
            upstream_pause(r->call);
        }
        return;
    }
    if (r->finished) {
        loop_timer_stop(&r->timer);
        r->phase = RELAY_DONE;
        edge_reply_end(r->client);
        return;
    }
    if (r->call != NULL) {
        relay_wait_for_upstream(r);
        if (r->upstream_paused) {
            r->upstream_paused = false;
            upstream_resume(r->call);
        }
    }
}

/* --- request: client -> handler --- */

/* Sends what waits; true when nothing is left. */
static bool relay_flush_up(struct relay *r)
{
    if (r->call == NULL) {
        buf_clear(&r->up);
        return true;
    }
    size_t taken = upstream_write(r->call, buf_view(&r->up));
    memmove(r->up.ptr, r->up.ptr + taken, r->up.len - taken);
    r->up.len -= taken;
    if (r->up.len > 0) {
        relay_wait_for_upstream(r);
        return false;
    }
    return true;
}

static size_t relay_part(void *guest, struct view bytes)
{
    struct relay *r = guest;
    if (r->call == NULL) {
        return bytes.len; /* the answer is known already: the rest of the upload is dropped */
    }
    if (r->up.len > 0 && !relay_flush_up(r)) {
        r->client_paused = true;
        return 0;
    }
    size_t len = bytes.len < RELAY_CHUNK_MAX ? bytes.len : RELAY_CHUNK_MAX;
    if (r->chunked) {
        request_write_chunk(&r->up, view_make(bytes.ptr, len));
    } else {
        buf_append_bytes(&r->up, bytes.ptr, len);
    }
    r->bytes_up += len;
    if (relay_flush_up(r)) {
        loop_timer_stop(&r->timer); /* it is the client's turn */
    }
    if (len < bytes.len) {
        /* The edge offers the rest again once we ask for more. */
        r->client_paused = true;
        if (r->up.len == 0) {
            r->client_paused = false;
            return len + relay_part(r, view_make(bytes.ptr + len, bytes.len - len));
        }
    }
    return len;
}

static void relay_body_sent(struct relay *r)
{
    if (r->call != NULL) {
        upstream_finish(r->call);
        relay_wait_for_upstream(r);
    }
    if (r->phase == RELAY_SENDING) {
        r->phase = RELAY_AWAITING;
    }
}

static void relay_last(void *guest)
{
    struct relay *r = guest;
    r->uploaded = true;
    if (r->chunked) {
        request_write_last_chunk(&r->up);
        r->chunked = false;
    }
    r->client_paused = false;
    if (r->phase == RELAY_SENDING || r->phase == RELAY_STREAMING) {
        if (r->up.len == 0 || relay_flush_up(r)) {
            relay_body_sent(r);
        } else if (r->phase == RELAY_SENDING) {
            r->phase = RELAY_AWAITING; /* call_writable sends the rest */
        }
    }
    if (r->held) {
        relay_begin(r);
        relay_push_down(r);
    }
}

static void call_writable(void *context)
{
    struct relay *r = context;
    if (!relay_flush_up(r)) {
        return;
    }
    if (r->uploaded) {
        relay_body_sent(r);
        return;
    }
    if (r->phase != RELAY_SENDING) {
        return;
    }
    loop_timer_stop(&r->timer);
    if (r->client_paused) {
        r->client_paused = false;
        edge_more(r->client);
    }
}

/* --- what the handler sends --- */

static void call_head(void *context, int status, struct view fields, bool has_length, uint64_t length)
{
    struct relay *r = context;
    r->status = status;
    r->has_length = has_length;
    r->length = length;
    fields_to_client(fields, &r->fields);
    if (r->ignored) {
        field_block_add(&r->fields, VIEW(WIRE_STATUS), VIEW(WIRE_WORD_IGNORED));
    }
    r->bodiless = r->head_method || status == 204 || status == 304;
    if (r->bodiless) {
        return; /* answered at its end, which follows at once */
    }
    if (!r->uploaded && status < 400) {
        r->held = true; /* the handler answers while it reads, and needs the rest of its request */
        return;
    }
    relay_begin(r);
}

/* The client gets no byte of the answer before its upload has ended, and the handler may not read more of that before its answer is
 * taken: the rest of the upload gives way. */
static void relay_give_up_upload(struct relay *r)
{
    buf_clear(&r->up);
    relay_begin(r);
    if (r->client_paused) {
        r->client_paused = false;
        edge_more(r->client);
    }
}

static void call_body(void *context, struct view bytes)
{
    struct relay *r = context;
    if (r->phase != RELAY_STREAMING && !r->held) {
        return;
    }
    r->bytes_down += bytes.len;
    buf_append(&r->down, bytes);
    if (r->held && r->down.len > RELAY_HELD_MAX) {
        relay_give_up_upload(r);
    }
    if (!r->held) {
        relay_push_down(r);
    }
}

static void relay_drained(void *guest)
{
    struct relay *r = guest;
    if (r->phase == RELAY_STREAMING) {
        relay_push_down(r);
    }
}

static void call_end(void *context, const struct upstream_end *end)
{
    struct relay *r = context;
    r->call = NULL;
    loop_timer_stop(&r->timer);
    if (end->end != ATTEMPT_COMPLETE) {
        relay_fail(r, PROBLEM_UPSTREAM_FAILED, end->reason);
        if (r->client_paused) {
            r->client_paused = false;
            edge_more(r->client); /* what is left of the upload is dropped, then the answer goes out */
        }
        return;
    }
    relay_say(r, RESULT_PASSED, "");
    r->finished = true;
    if (r->held) {
        relay_begin(r);
    }
    if (r->bodiless) {
        const struct edge_reply reply = {
            .status = r->status, .fields = buf_view(&r->fields), .has_length = r->has_length, .length = r->length
        };
        r->phase = RELAY_DONE;
        (void) edge_reply(r->client, &reply);
    } else if (r->phase == RELAY_STREAMING) {
        relay_push_down(r);
    }
    if (r->client_paused) {
        r->client_paused = false;
        edge_more(r->client);
    }
}

static const struct upstream_events call_events = {
    .head = call_head, .body = call_body, .writable = call_writable, .end = call_end
};

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
    struct buf fields;
    buf_init(&fields, 2 * LIMIT_CONNECTION_POOL);
    const struct fields_added added = {
        .via_name = view_of(r->flow->commons->via_name),
        .client_addr = start->head->peer,
        .proto = VIEW("http"),
        .host = start->guard->host,
    };
    fields_to_handler(start->head->headers, &added, &fields);
    enum request_framing framing = start->guard->body == GUARD_BODY_CHUNKED  ? REQUEST_CHUNKED
                                   : start->guard->body == GUARD_BODY_LENGTH ? REQUEST_LENGTH
                                                                             : REQUEST_NO_BODY;
    bool written = request_write_head(out, start->head->method, start->target.origin, buf_view(&fields), framing,
                                      start->guard->length) &&
                   !fields.failed && !out->failed;
    buf_fini(&fields);
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

    struct buf head;
    buf_init(&head, 4 * LIMIT_CONNECTION_POOL);
    if (!relay_request_head(r, start, &head)) {
        buf_fini(&head);
        relay_fail(r, PROBLEM_UPSTREAM_FAILED, "the request could not be written");
        return EDGE_REPLIED;
    }
    const struct upstream_request request = {
        .lane = UPSTREAM_PASSTHROUGH, .bytes = buf_view(&head), .more = true, .head_method = r->head_method
    };
    r->call = upstream_start(flow->upstream, &request, &call_events, r);
    buf_fini(&head);
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
        edge_reply_cut(r->client);
    }
}
