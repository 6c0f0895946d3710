/* command_spill.c - a response over response_keep_max: it reaches the first caller whole, as it comes, but its last byte is held until the
 * record "completed, body not kept" is durable (docs/contract.md section 10). Without a client the bytes are counted and dropped, so that the
 * end of the response is still seen. */
#include "server/flow/exchange_state.h"

#include <string.h>

enum { SPILL_WAIT_MAX = 256 * 1024 }; /* over this the handler is not read from */

static void spill_consume(struct buf *wait, size_t taken)
{
    memmove(wait->ptr, wait->ptr + taken, wait->len - taken);
    wait->len -= taken;
}

/* Gives the edge what it takes, and holds or lets go of the handler accordingly. */
static void spill_pump(struct exchange *x)
{
    if (x->spill_to_client) {
        size_t held = x->spill_final ? 0 : 1;
        while (x->spill_wait.len > held) {
            size_t taken = edge_reply_write(x->client, view_make(x->spill_wait.ptr, x->spill_wait.len - held));
            if (taken == 0) {
                break;
            }
            spill_consume(&x->spill_wait, taken);
        }
        if (x->spill_final && x->spill_wait.len == 0) {
            x->spill_to_client = false;
            edge_reply_end(x->client);
            return;
        }
    } else {
        buf_clear(&x->spill_wait);
    }
    bool pause = x->spill_wait.len > SPILL_WAIT_MAX;
    if (x->call != NULL && pause != x->upstream_paused) {
        x->upstream_paused = pause;
        if (pause) {
            upstream_pause(x->call);
        } else {
            upstream_resume(x->call);
        }
    }
}

void exchange_spill_begin(struct exchange *x, struct view bytes)
{
    x->spilling = true;
    if (x->client != NULL && !x->answered) {
        struct attempt attempt = { .end = ATTEMPT_COMPLETE };
        exchange_note_head(x, &attempt);
        /* What the answer will prove when it is whole; when it is not, the client sees it cut. */
        struct outcome expected = outcome_of(&attempt, &x->route->rules);
        struct buf out;
        buf_init(&out, 4 * LIMIT_CONNECTION_POOL);
        exchange_own_fields(x, &expected, false, &out);
        x->answered = true;
        x->told_status = x->status;
        x->spill_to_client =
            edge_reply_begin(x->client, x->status, buf_view(&out), x->reply_has_length, x->reply_length);
        if (!x->spill_to_client) {
            edge_reply_end(x->client); /* of the bare 500 that stands for it */
        }
        buf_fini(&out);
    }
    if (x->spill_to_client) {
        buf_append(&x->spill_wait, buf_view(&x->response_body));
    }
    buf_fini(&x->response_body);
    buf_init(&x->response_body, 0);
    exchange_spill_more(x, bytes);
}

void exchange_spill_more(struct exchange *x, struct view bytes)
{
    if (x->spill_to_client) {
        buf_append(&x->spill_wait, bytes);
    }
    spill_pump(x);
}

void exchange_drained(struct exchange *x)
{
    spill_pump(x);
}

void exchange_client_left(struct exchange *x)
{
    x->spill_to_client = false;
    spill_pump(x);
}

void exchange_spill_finish(struct exchange *x, bool whole)
{
    if (!whole) {
        x->spill_to_client = false;
        edge_reply_cut(x->client);
        return;
    }
    x->spill_final = true;
    spill_pump(x);
}
