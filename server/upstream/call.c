/* call.c - one call: one request sent once, one response read (docs/contract.md section 6).
 *
 *   upstream_start -> [connecting] -> sending and reading -> end() -> freed
 *
 * The request is sent from the front of one buffer and never from its beginning again. Nothing here sends it a second time: a
 * call has one connection that it wrote to, and when that one breaks the call ends.
 *
 * Callbacks come only from call_enter(), which the loop calls; functions that the caller calls leave work in `resting` instead.
 * While callbacks run the call may be aborted: then it is `gone`, and freed when call_enter() is left. */
#include "server/base/memory.h"
#include "server/base/metrics.h"
#include "server/http/response_reader.h"
#include "server/upstream/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_BUFFER_BYTES =
        64 * 1024,           /* request body bytes that wait for the connection; more is refused until they went */
    CALL_READS_PER_TURN = 8, /* then other calls have their turn */
    CALL_SEND_PER_TURN = 256 * 1024, /* bytes; then the loop looks whether an answer is there already */
};

struct upstream_call {
    struct list_node node;    /* upstream->calls */
    struct list_node resting; /* upstream->resting, or in no list */
    struct upstream *upstream;
    const struct upstream_events *events;
    void *context;
    struct connection *connection; /* NULL once closed or handed back */
    enum upstream_lane lane;

    /* The request. `front` is being sent and does not move until it went (docs/facts.md 34); `back` fills behind it. */
    struct buf front, back;
    size_t front_sent;
    bool connected;
    bool sent;       /* the first byte was handed over */
    bool whole;      /* no more bytes will be given */
    bool send_broke; /* nothing more is sent; what there is to read tells how the call ends */
    bool swallow;    /* the handler refused what it had not read: the rest of the request is taken and dropped */
    bool wants_room; /* upstream_write took less than it was offered */

    /* The response. */
    struct response_reader reader;
    struct buf held; /* read, but not delivered when the call was paused */
    size_t held_taken;
    bool paused;
    bool halted; /* delivering was stopped by a pause: there may be more to tell without another byte */

    bool entered, gone;
};

/* --- life --- */

static void call_free(struct upstream_call *call)
{
    list_remove(&call->upstream->calls, &call->node);
    response_reader_fini(&call->reader);
    buf_fini(&call->front);
    buf_fini(&call->back);
    buf_fini(&call->held);
    free(call);
}

/* Lets the connection go; only memory remains. It counts as running until it is freed, so an upstream cannot be closed from `end`. */
static void call_leave(struct upstream_call *call)
{
    if (call->connection != NULL) {
        connection_close(call->connection);
        call->connection = NULL;
    }
    if (call->resting.next != NULL) {
        list_remove(&call->upstream->resting, &call->resting);
    }
    call->gone = true;
}

static void call_end(struct upstream_call *call, enum attempt_end how, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void call_end(struct upstream_call *call, enum attempt_end how, const char *format, ...)
{
    struct upstream_end end = { .end = how };
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(end.reason, sizeof end.reason, format, arguments);
    va_end(arguments);
    call_leave(call);
    call->events->end(call->context, &end);
}

/* Asks for a turn from the loop. */
static void call_rest(struct upstream_call *call)
{
    struct upstream *upstream = call->upstream;
    if (call->resting.next == NULL) {
        list_append(&upstream->resting, &call->resting);
    }
    if (!loop_timer_running(&upstream->wake)) {
        loop_timer_start(&upstream->wake, 0);
    }
}

/* Bounded by its callers; out of memory ends the process like everywhere in the server. */
static void call_copy(struct buf *to, struct view bytes)
{
    buf_append(to, bytes);
    if (to->failed) {
        abort();
    }
}

static bool call_is_pending(const struct upstream_call *call)
{
    return call->front_sent < call->front.len || call->back.len > 0;
}

static bool call_is_written(const struct upstream_call *call)
{
    return call->whole && !call_is_pending(call);
}

/* --- sending --- */

/* Sends what there is until the connection takes no more, or the turn is over. Never calls back. */
static void call_send(struct upstream_call *call)
{
    size_t turn = 0;
    while (turn < CALL_SEND_PER_TURN && call->connected && !call->send_broke && !call->swallow) {
        if (call->front_sent == call->front.len) {
            struct buf empty = call->front;
            call->front = call->back;
            call->back = empty;
            buf_clear(&call->back);
            call->front_sent = 0;
            if (call->front.len == 0) {
                return;
            }
        }
        if (!call->sent) {
            call->sent = true;
            metrics_add(&call->upstream->figures.sent, 1);
        }
        size_t went;
        size_t left = call->front.len - call->front_sent;
        enum connection_io io = connection_send(call->connection, call->front.ptr + call->front_sent,
                                                left < CALL_SEND_PER_TURN ? left : CALL_SEND_PER_TURN, &went);
        call->front_sent += went;
        turn += went;
        if (io == CONNECTION_AGAIN) {
            return;
        }
        if (io != CONNECTION_DONE) {
            call->send_broke = true;
            call_rest(call);
        }
    }
}

/* Nothing of the request is sent a second time: what went is given back, while its answer may take its time. */
static void call_forget_request(struct upstream_call *call)
{
    if (call_is_written(call)) {
        buf_fini(&call->front);
        buf_fini(&call->back);
        call->front_sent = 0;
    }
}

static void call_tell_room(struct upstream_call *call)
{
    if (call->wants_room && (call->back.len == 0 || call->swallow || call->send_broke)) {
        call->wants_room = false;
        call->events->writable(call->context);
    }
}

/* --- reading --- */

/* An answer that came before its request was written: for a command nobody can say what the handler read; the pass-through lane
 * delivers it, and goes on sending unless it is an error: handlers answer while they read. False: the call ended. */
static bool call_check_early(struct upstream_call *call)
{
    if (call_is_written(call) || call->swallow) {
        return true;
    }
    if (call->lane == UPSTREAM_PROTECTED) {
        call_end(call, ATTEMPT_GARBAGE, "%s answered before the request was written",
                 connections_peer(call->upstream->connections));
        return false;
    }
    return true;
}

static void call_finish(struct upstream_call *call, bool surplus)
{
    struct connection *connection = call->connection;
    if (surplus) {
        pool_distrust(call->upstream);
    }
    if (call->reader.keep_alive && !surplus && call_is_written(call) && !call->swallow && !call->send_broke) {
        call->connection = NULL;
        pool_keep(call->upstream, connection, call->reader.keep_alive_timeout_ms);
    }
    call_end(call, ATTEMPT_COMPLETE, "%s", "");
}

static void call_fail(struct upstream_call *call)
{
    enum response_fault fault = call->reader.fault;
    enum attempt_end how = ATTEMPT_GARBAGE;
    if (fault == RESPONSE_FAULT_EMPTY) {
        how = ATTEMPT_RESET;
    } else if (fault == RESPONSE_FAULT_CUT) {
        how = ATTEMPT_CUT;
    } else if (fault == RESPONSE_FAULT_CLOSE_DELIMITED) {
        how = ATTEMPT_CLOSE_DELIMITED;
    }
    call_end(call, how, "answer of %s: %s", connections_peer(call->upstream->connections), response_fault_text(fault));
}

static void call_tell_head(struct upstream_call *call)
{
    struct response_reader *reader = &call->reader;
    if (!call_is_written(call) && reader->status >= 400) {
        call->swallow = true; /* RFC 9112 section 9.5 */
    }
    call->events->head(call->context, reader->status, buf_view(&reader->fields), reader->has_length, reader->length);
    if (!call->gone && call->swallow) {
        call_tell_room(call);
    }
}

/* Delivers what the bytes mean. Stops when the call ended or paused; what was not delivered then is left in `*bytes`. */
static void call_deliver(struct upstream_call *call, struct view *bytes)
{
    struct view body;
    while (!call->gone && !call->paused) {
        switch (response_reader_feed(&call->reader, bytes, &body)) {
        case RESPONSE_MORE:
            return;
        case RESPONSE_HEAD:
            call_tell_head(call);
            break;
        case RESPONSE_BODY:
            call->events->body(call->context, body);
            break;
        case RESPONSE_END:
            call_finish(call, bytes->len > 0);
            return;
        case RESPONSE_BAD:
            call_fail(call);
            return;
        }
    }
    call->halted = call->paused;
}

/* Delivers what was held back while the call was paused. */
static void call_deliver_held(struct upstream_call *call)
{
    if (!call->halted) {
        return;
    }
    call->halted = false;
    struct view rest = buf_view(&call->held);
    if (rest.len > 0) {
        rest = view_make(rest.ptr + call->held_taken, rest.len - call->held_taken);
    }
    call_deliver(call, &rest);
    if (call->gone) {
        return;
    }
    call->held_taken = call->held.len - rest.len;
    if (rest.len == 0) {
        buf_clear(&call->held);
        call->held_taken = 0;
    }
}

/* The stream has ended: by the peer's close, or by an error such as a reset. */
static void call_stream_ended(struct upstream_call *call, bool closed)
{
    const char *peer = connections_peer(call->upstream->connections);
    char cause[128];
    (void) snprintf(cause, sizeof cause, "%s", closed ? "closed by it" : connection_error(call->connection));
    enum response_event event = response_reader_close(&call->reader);
    if (event == RESPONSE_END && closed) {
        call->reader.keep_alive = false;
        call_finish(call, false);
    } else if (closed && call->reader.fault != RESPONSE_FAULT_EMPTY) {
        call_fail(call);
    } else if (call->reader.fault == RESPONSE_FAULT_EMPTY) {
        call_end(call, ATTEMPT_RESET, "connection to %s before the first byte of an answer: %s", peer, cause);
    } else {
        /* A reset is never the end of a body, not even of one that only a close can end. */
        call_end(call, ATTEMPT_CUT, "connection to %s inside its answer: %s", peer, cause);
    }
}

static void call_read(struct upstream_call *call)
{
    struct upstream *upstream = call->upstream;
    bool secured = connections_secured(upstream->connections);
    for (int reads = 0; !call->gone && !call->paused; reads++) {
        if (reads == CALL_READS_PER_TURN) {
            call_rest(call);
            return;
        }
        size_t got;
        enum connection_io io = connection_receive(call->connection, upstream->read, sizeof upstream->read, &got);
        if (io == CONNECTION_AGAIN) {
            if (call->send_broke) {
                call_end(call, ATTEMPT_RESET, "connection to %s broke while the request was written",
                         connections_peer(upstream->connections));
            }
            return;
        }
        if (io != CONNECTION_DONE) {
            call_stream_ended(call, io == CONNECTION_CLOSED);
            return;
        }
        if (!call_check_early(call)) {
            return;
        }
        struct view bytes = { upstream->read, got };
        call_deliver(call, &bytes);
        if (!call->gone && bytes.len > 0) {
            call_copy(&call->held, bytes);
        }
        /* Poll tells of the rest of a plain connection; what TLS has decrypted already is silent (docs/facts.md 34). */
        if (!secured && !call->send_broke && got < sizeof upstream->read) {
            return;
        }
    }
}

/* --- the loop's way in --- */

static void call_watch(struct upstream_call *call)
{
    if (!call->connected || call->connection == NULL) {
        return;
    }
    bool sending = call_is_pending(call) && !call->send_broke && !call->swallow;
    connection_want(call->connection, (call->paused ? 0 : LOOP_READABLE) | (sending ? LOOP_WRITABLE : 0));
}

static void call_exit(struct upstream_call *call)
{
    call->entered = false;
    if (call->gone) {
        call_free(call);
    }
}

static void call_enter(struct upstream_call *call, int events)
{
    call->entered = true;
    if (call->connected && (events & LOOP_READABLE) != 0 && !call->paused) {
        call_deliver_held(call);
        if (!call->gone && !call->paused) {
            call_read(call); /* before sending: an early answer must be seen as one */
        }
    }
    if (!call->gone && (events & LOOP_WRITABLE) != 0) {
        call_send(call);
        call_forget_request(call);
        call_tell_room(call);
    }
    if (!call->gone) {
        call_watch(call);
    }
    call_exit(call);
}

static void call_on_ready(void *context, int events)
{
    call_enter(context, events);
}

static void call_on_opened(void *context)
{
    struct upstream_call *call = context;
    call->connected = true;
    metrics_add(&call->upstream->figures.connects, 1);
    call_enter(call, LOOP_WRITABLE);
}

static void call_on_failed(void *context, const char *reason)
{
    struct upstream_call *call = context;
    call->entered = true;
    call_end(call, ATTEMPT_NOT_SENT, "connect to %s: %s", connections_peer(call->upstream->connections), reason);
    call_exit(call);
}

static const struct connection_owner call_owner = {
    .opened = call_on_opened,
    .failed = call_on_failed,
    .ready = call_on_ready,
};

void call_drive_resting(void *context)
{
    struct upstream *upstream = context;
    /* Those that ask again while this runs have the next turn. */
    for (size_t left = upstream->resting.count; left > 0; left--) {
        struct list_node *node = list_take_first(&upstream->resting);
        if (node == NULL) {
            return;
        }
        call_enter(LIST_ITEM(node, struct upstream_call, resting), LOOP_READABLE);
    }
}

/* --- the caller's way in: nothing here calls back --- */

struct upstream_call *upstream_start(struct upstream *upstream, const struct upstream_request *request,
                                     const struct upstream_events *events, void *context)
{
    struct upstream_call *call = memory_new(sizeof *call);
    call->upstream = upstream;
    call->events = events;
    call->context = context;
    call->lane = request->lane;
    call->whole = !request->more;
    list_append(&upstream->calls, &call->node);
    /* What passes through may end by close as HTTP allows; the setting is about what may be recorded. */
    bool allow_close = upstream->allow_close_delimited || request->lane == UPSTREAM_PASSTHROUGH;
    response_reader_init(&call->reader, request->head_method, allow_close, upstream->response_header_max);
    buf_init(&call->front, SIZE_MAX / 2);
    buf_init(&call->back, SIZE_MAX / 2);
    buf_init(&call->held, UPSTREAM_READ_BYTES);
    call_copy(&call->front, request->bytes);
    call->connection = pool_take(upstream, request->lane);
    if (call->connection == NULL) {
        call->connection = connection_open(upstream->connections, request->lane, &call_owner, call);
        return call;
    }
    connection_own(call->connection, &call_owner, call);
    call->connected = true;
    call_send(call);
    call_forget_request(call);
    call_watch(call);
    return call;
}

size_t upstream_write(struct upstream_call *call, struct view bytes)
{
    size_t taken = 0;
    while (taken < bytes.len && !call->gone && !call->swallow && !call->send_broke) {
        size_t room = call->back.len < CALL_BUFFER_BYTES ? CALL_BUFFER_BYTES - call->back.len : 0;
        if (room == 0) {
            call->wants_room = true;
            call_watch(call);
            return taken;
        }
        size_t part = bytes.len - taken < room ? bytes.len - taken : room;
        call_copy(&call->back, view_make(bytes.ptr + taken, part));
        taken += part;
        call_send(call);
    }
    if (!call->gone) {
        call_watch(call);
    }
    return bytes.len;
}

void upstream_finish(struct upstream_call *call)
{
    call->whole = true;
}

void upstream_pause(struct upstream_call *call)
{
    call->paused = true;
    if (!call->gone) {
        call_watch(call);
    }
}

void upstream_resume(struct upstream_call *call)
{
    if (!call->paused || call->gone) {
        return;
    }
    call->paused = false;
    call_rest(call);
}

bool upstream_was_sent(const struct upstream_call *call)
{
    return call->sent;
}

void upstream_abort(struct upstream_call *call)
{
    if (call->gone) {
        return;
    }
    call_leave(call);
    if (!call->entered) {
        call_free(call);
    }
}
