/* relay_down.c - pass-through: the answer, from the handler to the client (relay.c has the machine). Loop thread.
 *
 * An answer that has come whole by the end of the turn in which its head came goes to the edge whole: one send instead of two, and no
 * ring. Nobody waits longer for it. */
#include "schema/wire.h"
#include "server/flow/relay_state.h"
#include "server/http/fields.h"

#include <string.h>

enum { RELAY_HELD_MAX = 64 * 1024 /* bytes of an answer that wait for the end of the upload */ };

void relay_begin(struct relay *r)
{
    r->held = r->gathering = false;
    r->phase = RELAY_STREAMING;
    relay_wait_for_upstream(r);
    if (!edge_reply_begin(r->client, r->status, buf_view(&r->fields), r->has_length, r->length)) {
        relay_say(r, RESULT_FAILED, "the answer's fields could not be sent");
        r->phase = RELAY_DONE;
        edge_reply_end(r->client); /* of the bare 500 that stands for it */
    }
}

void relay_push_down(struct relay *r)
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
    if (has_length && r->uploaded) {
        r->gathering = true;
        loop_timer_start(&r->timer, 0);
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
    if (r->phase != RELAY_STREAMING && !r->held && !r->gathering) {
        return;
    }
    r->bytes_down += bytes.len;
    buf_append(&r->down, bytes);
    if (r->held && r->down.len > RELAY_HELD_MAX) {
        relay_give_up_upload(r);
    }
    if (!r->held && !r->gathering) {
        relay_push_down(r);
    }
}

void relay_drained(void *guest)
{
    struct relay *r = guest;
    if (r->phase == RELAY_STREAMING) {
        relay_push_down(r);
    }
}

/* An answer without a body, or whose body came with its head. */
static void relay_answer_whole(struct relay *r)
{
    size_t len;
    char *body = buf_take(&r->down, &len);
    const struct edge_reply reply = {
        .status = r->status,
        .fields = buf_view(&r->fields),
        .body = view_make(body, len),
        .body_owner = body,
        .has_length = r->bodiless && r->has_length,
        .length = r->length,
    };
    r->gathering = false;
    r->phase = RELAY_DONE;
    if (!edge_reply(r->client, &reply)) {
        relay_say(r, RESULT_FAILED, "the answer's fields could not be sent");
    }
}

static void call_end(void *context, const struct upstream_end *end)
{
    struct relay *r = context;
    r->call = NULL;
    loop_timer_stop(&r->timer);
    if (end->end != ATTEMPT_COMPLETE) {
        if (r->gathering) { /* what came goes out, and then the cut, as if they had come one after the other */
            relay_begin(r);
            relay_push_down(r);
        }
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
    if (r->bodiless || r->gathering) {
        relay_answer_whole(r);
    } else if (r->phase == RELAY_STREAMING) {
        relay_push_down(r);
    }
    if (r->client_paused) {
        r->client_paused = false;
        edge_more(r->client);
    }
}

const struct upstream_events relay_call_events = {
    .head = call_head, .body = call_body, .writable = relay_on_writable, .end = call_end
};
