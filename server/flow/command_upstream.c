/* command_upstream.c - the one send of an execution, and the response as it comes. */
#include "schema/wire.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/flow/exchange_state.h"
#include "server/http/fields.h"
#include "server/http/request_writer.h"

#include <stdio.h>
#include <string.h>

static void call_head(void *context, int status, struct view fields, bool has_length, uint64_t length)
{
    struct exchange *x = context;
    x->status = status;
    buf_append(&x->response_fields, fields);
    x->reply_has_length = has_length;
    x->reply_length = length;
}

static void call_body(void *context, struct view bytes)
{
    struct exchange *x = context;
    x->response_bytes += bytes.len;
    if (x->spilling) {
        exchange_spill_more(x, bytes);
    } else if (x->response_body.len + bytes.len <= x->response_body.max) {
        buf_append(&x->response_body, bytes);
    } else {
        exchange_spill_begin(x, bytes);
    }
}

static enum handler_word call_word(struct view fields)
{
    switch (fields_handler_word(fields)) {
    case FIELDS_WORD_COMPLETED:
        return HANDLER_SAYS_COMPLETED;
    case FIELDS_WORD_NOT_EXECUTED:
        return HANDLER_SAYS_NOT_EXECUTED;
    case FIELDS_WORD_UNKNOWN:
        return HANDLER_SAYS_UNKNOWN;
    case FIELDS_WORD_NONE:
        break;
    }
    return HANDLER_SAYS_NOTHING;
}

/* What the head tells beside its status: known before the body is. */
void exchange_note_head(const struct exchange *x, struct attempt *attempt)
{
    struct view fields = buf_view(&x->response_fields);
    struct view ignored;
    attempt->status = x->status;
    attempt->retry_after = field_block_find(fields, VIEW("Retry-After"), &ignored);
    attempt->word = call_word(fields);
}

static void call_observe_latency(struct exchange *x)
{
    commons_observe_latency(x->flow->commons, x->route, (clock_monotonic_us() - x->sent_us) / 1000);
}

static void call_end(void *context, const struct upstream_end *end)
{
    struct exchange *x = context;
    x->call = NULL;
    x->attempt.end = end->end;
    (void) snprintf(x->attempt_reason, sizeof x->attempt_reason, "%s", end->reason);
    if (end->end == ATTEMPT_COMPLETE) {
        exchange_note_head(x, &x->attempt);
        call_observe_latency(x);
    }
    exchange_event(x, EVENT_UPSTREAM_DONE);
}

static const struct upstream_events call_events = { .head = call_head, .body = call_body, .end = call_end };

/* Head and body in one buffer: one write where the kernel takes it. False: target or method cannot be written. */
static bool call_bytes(struct exchange *x, struct buf *bytes)
{
    char number[16];
    buf_append(&x->fields_out, VIEW(WIRE_COMMAND_ID ": "));
    buf_append_hex(&x->fields_out, x->command_id, COMMAND_ID_BYTES);
    (void) snprintf(number, sizeof number, "%u", x->execution);
    buf_append(&x->fields_out, VIEW("\r\n"));
    field_block_add(&x->fields_out, VIEW(WIRE_EXECUTION), view_of(number));
    struct view method = view_of(x->method);
    bool framed = x->body.len > 0 || view_equal(method, VIEW("POST")) || view_equal(method, VIEW("PATCH")) ||
                  view_equal(method, VIEW("PUT"));
    bool written = request_write_head(bytes, method, view_of(x->origin), buf_view(&x->fields_out),
                                      framed ? REQUEST_LENGTH : REQUEST_NO_BODY, x->body.len);
    buf_append(bytes, x->body);
    return written && !bytes->failed && !x->fields_out.failed;
}

/* Something is wrong before a byte was sent: the claim is given back. */
static void call_not_sent(struct exchange *x, const char *reason)
{
    x->attempt.end = ATTEMPT_NOT_SENT;
    (void) snprintf(x->attempt_reason, sizeof x->attempt_reason, "%s", reason);
    exchange_event(x, EVENT_UPSTREAM_DONE);
}

void exchange_forward(struct exchange *x)
{
    struct flow *flow = x->flow;
    x->answer_kind = ANSWER_OWN;
    x->sent_us = clock_monotonic_us();
    if (flow->stopped) {
        call_not_sent(x, "the server stopped before the request was sent");
        return;
    }
    struct buf *bytes = &flow->bytes;
    buf_reuse(bytes, x->body.len + 4 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL);
    if (!call_bytes(x, bytes)) {
        call_not_sent(x, "the request could not be written");
        return;
    }
    const struct upstream_request request = {
        .lane = UPSTREAM_PROTECTED,
        .bytes = buf_view(bytes),
        .head_method = view_equal(view_of(x->method), VIEW("HEAD")),
    };
    x->call = upstream_start(flow->upstream, &request, &call_events, x);
    buf_reuse(bytes, 4 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL); /* a large one is not kept */
    if (x->route->answer_timeout_ms < x->route->hard_timeout_ms) {
        loop_timer_start(&x->answer_timer, x->route->answer_timeout_ms);
    }
    loop_timer_start(&x->hard_timer, x->route->hard_timeout_ms);
}

void exchange_abort_call(struct exchange *x, enum attempt_end end)
{
    x->attempt.end = end;
    if (x->call != NULL) {
        /* What was never handed over cannot have been executed: the claim is given back instead. */
        if (!upstream_was_sent(x->call)) {
            x->attempt.end = ATTEMPT_NOT_SENT;
        }
        upstream_abort(x->call);
        x->call = NULL;
    }
    (void) snprintf(x->attempt_reason, sizeof x->attempt_reason, "%s",
                    end == ATTEMPT_TIMEOUT ? "no complete answer within hard_timeout" : "the server was stopped");
}
