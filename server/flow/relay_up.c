/* relay_up.c - pass-through: the request, from the client to the handler (relay.c has the machine). Loop thread. */
#include "server/flow/relay_state.h"
#include "server/http/request_writer.h"

#include <string.h>

enum { RELAY_CHUNK_MAX = 16 * 1024 };

bool relay_flush_up(struct relay *r)
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

size_t relay_part(void *guest, struct view bytes)
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

void relay_last(void *guest)
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
            r->phase = RELAY_AWAITING; /* relay_on_writable sends the rest */
        }
    }
    if (r->held) {
        relay_begin(r);
        relay_push_down(r);
    }
}

void relay_on_writable(void *context)
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
