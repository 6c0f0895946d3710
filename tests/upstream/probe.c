/* probe.c - see probe.h. */
#include "tests/upstream/probe.h"

/* A turn runs the timers that are due and then waits for descriptors: a tick that never stops ends that wait, so that what the
 * timers did is seen. */
enum { TICK_MS = 5, BODY_KEPT_MAX = 1 << 20 };

static void probe_tick(void *context)
{
    struct probe *probe = context;
    loop_timer_start(&probe->tick, TICK_MS);
}

struct upstream_options probe_options(void)
{
    return (struct upstream_options){ .connect_timeout_ms = 5000, .idle_ms = 20000, .response_header_max = 6144 };
}

void probe_open_at(struct probe *probe, struct upstream_options options, const char *url)
{
    struct buf error;
    buf_init(&error, 1000);
    options.url = url;
    probe->loop = loop_new();
    loop_timer_init(&probe->tick, probe->loop, probe_tick, probe);
    loop_timer_start(&probe->tick, TICK_MS);
    probe->upstream = upstream_open(probe->loop, &options, &error);
    ck_assert_msg(probe->upstream != NULL, "%.*s", (int) error.len, error.ptr);
    buf_fini(&error);
}

void probe_open(struct probe *probe, struct upstream_options options)
{
    struct peer *peer = peer_new();
    *probe = (struct probe){ .peer = peer };
    probe_open_at(probe, options, peer_url(peer));
}

void probe_close(struct probe *probe)
{
    upstream_close(probe->upstream);
    loop_timer_stop(&probe->tick);
    loop_free(probe->loop);
    peer_free(probe->peer);
}

void probe_turn(struct probe *probe)
{
    (void) loop_run_once(probe->loop, true);
}

struct upstream_figures probe_figures(const struct probe *probe)
{
    struct upstream_figures figures;
    upstream_figures(probe->upstream, &figures);
    return figures;
}

/* --- callbacks --- */

static void probe_on_head(void *context, int status, struct view fields, bool has_length, uint64_t length)
{
    struct probe_call *call = context;
    ck_assert(!call->inside);
    call->heads++;
    call->status = status;
    call->has_length = has_length;
    call->length = length;
    buf_append(&call->fields, fields);
    if (call->deed == PROBE_PAUSE_AT_HEAD) {
        upstream_pause(call->call);
    } else if (call->deed == PROBE_ABORT_AT_HEAD) {
        upstream_abort(call->call);
    }
}

static void probe_on_body(void *context, struct view bytes)
{
    struct probe_call *call = context;
    ck_assert(!call->inside);
    ck_assert_uint_gt(bytes.len, 0);
    call->bodies++;
    call->body_bytes += bytes.len;
    if (bytes.len <= BODY_KEPT_MAX - call->body.len) {
        buf_append(&call->body, bytes);
    }
    if (call->deed == PROBE_PAUSE_AT_BODY) {
        upstream_pause(call->call);
    } else if (call->deed == PROBE_ABORT_AT_BODY) {
        upstream_abort(call->call);
    }
}

static void probe_on_writable(void *context)
{
    struct probe_call *call = context;
    ck_assert(!call->inside);
    call->writables++;
}

static void probe_on_end(void *context, const struct upstream_end *end)
{
    struct probe_call *call = context;
    ck_assert(!call->inside);
    ck_assert_uint_eq(call->ends, 0);
    call->ends++;
    call->end = end->end;
    memcpy(call->reason, end->reason, sizeof call->reason);
}

static const struct upstream_events probe_events = {
    .head = probe_on_head, .body = probe_on_body, .writable = probe_on_writable, .end = probe_on_end
};

/* --- calls --- */

void probe_start_with(struct probe *probe, struct probe_call *call, struct upstream_request request)
{
    enum probe_deed deed = call->deed;
    *call = (struct probe_call){ .probe = probe, .deed = deed };
    buf_init(&call->fields, 1 << 16);
    buf_init(&call->body, BODY_KEPT_MAX);
    call->inside = true;
    call->call = upstream_start(probe->upstream, &request, &probe_events, call);
    call->inside = false;
}

void probe_start(struct probe *probe, struct probe_call *call, enum upstream_lane lane, const char *bytes)
{
    probe_start_with(probe, call, (struct upstream_request){ .lane = lane, .bytes = view_of(bytes) });
}

size_t probe_write(struct probe_call *call, struct view bytes)
{
    call->inside = true;
    size_t taken = upstream_write(call->call, bytes);
    call->inside = false;
    return taken;
}

void probe_wait(struct probe_call *call)
{
    while (call->ends == 0) {
        probe_turn(call->probe);
    }
}

void probe_done(struct probe_call *call)
{
    buf_fini(&call->fields);
    buf_fini(&call->body);
}

void probe_exchange(struct probe *probe, struct probe_call *call, enum upstream_lane lane, const char *bytes)
{
    probe_start(probe, call, lane, bytes);
    probe_wait(call);
}

void probe_expect_body(const struct probe_call *call, const char *body)
{
    ck_assert_msg(view_equal(buf_view(&call->body), view_of(body)), "body is \"%.*s\" and not \"%s\"",
                  (int) call->body.len, call->body.ptr, body);
}
