/* stage.c - see stage.h: the server's half. */
#include "tests/edge/stage.h"

#include "server/base/memory.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <unistd.h>

enum play_kind {
    PLAY_WHOLE,
    PLAY_PARK,
    PLAY_PARK_WATCHED,
    PLAY_UP,
    PLAY_UP_EARLY,
    PLAY_UP_SLOW,
    PLAY_DOWN,
    PLAY_OPEN,
    PLAY_STATUS,
    PLAY_FIELDS,
    PLAY_BAD_FIELD
};

struct play {
    struct list_node node;
    struct stage *stage;
    struct edge_request *request;
    struct view target;
    enum play_kind kind;
    bool parked;
    uint64_t size, length, code, done;
    bool has_length;
    uint64_t received;
};

static void stage_note(struct stage *stage, const char *event)
{
    pthread_mutex_lock(&stage->lock);
    buf_append_text(&stage->events, event);
    buf_append_text(&stage->events, "\n");
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

static uint64_t query_number(struct view target, const char *name, bool *found)
{
    char text[256];
    (void) snprintf(text, sizeof text, "%.*s", VIEW_ARGS(target));
    const char *at = strstr(text, name);
    *found = at != NULL;
    return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

static void reply_text(struct edge_request *request, int status, struct view body)
{
    struct edge_reply reply = { .status = status,
                                .fields = VIEW("Content-Type: text/plain\r\nX-Empty: \r\n"),
                                .body = body };
    ck_assert(edge_reply(request, &reply));
}

static enum edge_take on_head(void *context, struct edge_request *request, const struct edge_head *head)
{
    static const struct {
        const char *path;
        enum play_kind kind;
        enum edge_take take;
    } kinds[] = { { "/whole", PLAY_WHOLE, EDGE_COLLECT },        { "/park-watched", PLAY_PARK_WATCHED, EDGE_COLLECT },
                  { "/park", PLAY_PARK, EDGE_COLLECT },          { "/up-early", PLAY_UP_EARLY, EDGE_STREAM },
                  { "/up-slow", PLAY_UP_SLOW, EDGE_STREAM },     { "/up", PLAY_UP, EDGE_STREAM },
                  { "/down", PLAY_DOWN, EDGE_STREAM },           { "/open", PLAY_OPEN, EDGE_STREAM },
                  { "/status", PLAY_STATUS, EDGE_COLLECT },      { "/fields", PLAY_FIELDS, EDGE_COLLECT },
                  { "/bad-field", PLAY_BAD_FIELD, EDGE_COLLECT } };
    struct stage *stage = context;
    struct play *play = memory_new(sizeof *play);
    play->stage = stage;
    play->request = request;
    play->target = head->target;
    list_append(&stage->plays, &play->node);
    edge_set_user(request, play);
    (void) snprintf(stage->last_peer, sizeof stage->last_peer, "%.*s%s", VIEW_ARGS(head->peer),
                    head->peer_is_loopback ? " loopback" : "");
    char event[512];
    (void) snprintf(event, sizeof event, "head %.*s", VIEW_ARGS(head->target));
    stage_note(stage, event);
    struct view value;
    if (headers_count(head->headers, VIEW("X-Note"), &value) > 0) {
        (void) snprintf(event, sizeof event, "note [%.*s]", VIEW_ARGS(value));
        stage_note(stage, event);
    }
    if (view_starts_with(head->target, VIEW("/at-head"))) {
        struct edge_reply reply = { .status = 403, .body = VIEW("no\n"), .close = true };
        ck_assert(edge_reply(request, &reply));
        return EDGE_REPLIED;
    }
    bool found;
    play->size = query_number(head->target, "size=", &found);
    play->code = query_number(head->target, "code=", &found);
    play->length = query_number(head->target, "length=", &play->has_length);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (view_starts_with(head->target, view_of(kinds[i].path))) {
            play->kind = kinds[i].kind;
            return kinds[i].take;
        }
    }
    ck_abort_msg("no such play");
    return EDGE_REPLIED;
}

static void reply_fields(struct play *play)
{
    struct buf fields;
    buf_init(&fields, 65536);
    for (unsigned i = 0; fields.len + 64 <= play->size; i++) {
        buf_printf(&fields, "X-Field-%04u: 0123456789012345678901234567890123456789012345678\r\n", i);
    }
    struct edge_reply reply = { .status = 200, .fields = buf_view(&fields), .body = VIEW("ok") };
    play->stage->last_reply_good = edge_reply(play->request, &reply);
    buf_fini(&fields);
}

static void on_whole(void *context, struct edge_request *request, struct view body)
{
    struct stage *stage = context;
    struct play *play = edge_user(request);
    char event[64];
    (void) snprintf(event, sizeof event, "whole %zu", body.len);
    stage_note(stage, event);
    if (play->kind == PLAY_PARK || play->kind == PLAY_PARK_WATCHED) {
        play->parked = true;
        edge_watch_client(request, play->kind == PLAY_PARK_WATCHED);
    } else if (play->kind == PLAY_STATUS) {
        struct edge_reply reply = { .status = (int) play->code,
                                    .has_length = play->has_length,
                                    .length = play->length };
        ck_assert(edge_reply(request, &reply));
    } else if (play->kind == PLAY_FIELDS) {
        reply_fields(play);
    } else if (play->kind == PLAY_BAD_FIELD) {
        struct edge_reply reply = { .status = 200, .fields = VIEW("Content-Length: 3\r\n"), .body = VIEW("abc") };
        stage->last_reply_good = edge_reply(request, &reply);
    } else {
        reply_text(request, 200, body);
    }
}

static void on_too_large(void *context, struct edge_request *request)
{
    stage_note(context, "too_large");
    reply_text(request, 413, VIEW("too large\n"));
}

static size_t on_part(void *context, struct edge_request *request, struct view bytes)
{
    struct stage *stage = context;
    struct play *play = edge_user(request);
    if (play->kind == PLAY_UP_EARLY) {
        stage_note(stage, "part");
        reply_text(request, 200, VIEW("early\n"));
        return bytes.len;
    }
    size_t taken = bytes.len;
    if (play->kind == PLAY_UP_SLOW) {
        taken = stage->allowance < bytes.len ? stage->allowance : bytes.len;
        stage->allowance -= taken;
        if (taken < bytes.len) {
            stage_note(stage, "paused");
        }
    }
    play->received += taken;
    return taken;
}

static void write_pattern(struct play *play)
{
    char block[26 * 512];
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (char) ('a' + i % 26);
    }
    while (play->done < play->size) {
        uint64_t left = play->size - play->done;
        size_t at = (size_t) (play->done % 26);
        size_t len = left < sizeof block - at ? (size_t) left : sizeof block - at;
        size_t written = edge_reply_write(play->request, view_make(block + at, len));
        play->done += written;
        if (written < len) {
            stage_note(play->stage, "full");
            return;
        }
    }
    edge_reply_end(play->request);
}

static void on_last(void *context, struct edge_request *request)
{
    struct stage *stage = context;
    struct play *play = edge_user(request);
    stage_note(stage, "last");
    if (play->kind == PLAY_DOWN) {
        ck_assert(edge_reply_begin(request, 200, VIEW("X-Kind: down\r\n"), play->has_length, play->length));
        write_pattern(play);
        return;
    }
    if (play->kind == PLAY_OPEN) {
        edge_watch_client(request, view_starts_with(play->target, VIEW("/open-watched")));
        int status = play->code != 0 ? (int) play->code : 200;
        ck_assert(edge_reply_begin(request, status, VIEW("X-Kind: open\r\n"), play->has_length, play->length));
        return;
    }
    char text[64];
    (void) snprintf(text, sizeof text, "received %llu\n", (unsigned long long) play->received);
    reply_text(request, 200, view_of(text));
}

static void on_drained(void *context, struct edge_request *request)
{
    (void) context;
    struct play *play = edge_user(request);
    if (play->kind == PLAY_DOWN) {
        write_pattern(play);
    }
}

static void on_gone(void *context, struct edge_request *request, bool delivered)
{
    struct stage *stage = context;
    struct play *play = edge_user(request);
    list_remove(&stage->plays, &play->node);
    free(play);
    stage_note(stage, delivered ? "gone delivered" : "gone lost");
}

static void on_hung_up(void *context, struct edge_request *request)
{
    struct play *play = edge_user(request);
    char event[512];
    (void) snprintf(event, sizeof event, "hung up %.*s", VIEW_ARGS(play->target));
    stage_note(context, event);
}

static const struct edge_handler handler = { on_head, on_whole,   on_too_large, on_part,
                                             on_last, on_drained, on_gone,      on_hung_up };

/* --- what tests do to the plays --- */

void stage_answer_parked(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        struct play *play = LIST_ITEM(node, struct play, node);
        if (play->parked) {
            play->parked = false;
            char *large = play->size > 0 ? memory_new((size_t) play->size) : NULL;
            reply_text(play->request, 200, large != NULL ? view_make(large, (size_t) play->size) : VIEW("parked\n"));
            free(large);
        }
    }
}

void stage_watch_parked(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        edge_watch_client(LIST_ITEM(node, struct play, node)->request, true);
    }
}

void stage_unwatch_all(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        edge_watch_client(LIST_ITEM(node, struct play, node)->request, false);
    }
}

void stage_cut_all(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        edge_reply_cut(LIST_ITEM(node, struct play, node)->request);
    }
}

void stage_write_open(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        ck_assert_uint_eq(edge_reply_write(LIST_ITEM(node, struct play, node)->request, VIEW("hello")), 5);
    }
}

void stage_end_open(struct stage *stage)
{
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        edge_reply_end(LIST_ITEM(node, struct play, node)->request);
    }
}

void stage_quiesce(struct stage *stage)
{
    edge_quiesce(stage->edge);
}

void stage_count_edge(struct stage *stage)
{
    stage->connections = edge_connections(stage->edge);
    stage->requests = edge_requests(stage->edge);
}

static size_t allow_bytes; /* one test at a time */

static void allow_now(struct stage *stage)
{
    stage->allowance += allow_bytes;
    for (struct list_node *node = stage->plays.head.next; node != &stage->plays.head; node = node->next) {
        edge_more(LIST_ITEM(node, struct play, node)->request);
    }
}

void stage_allow(struct stage *stage, size_t bytes)
{
    allow_bytes = bytes;
    stage_call(stage, allow_now);
}

/* --- the loop's thread --- */

struct stage_order {
    struct loop_message message;
    struct stage *stage;
    void (*work)(struct stage *stage);
    bool done;
};

static void order_deliver(struct loop_message *message)
{
    struct stage_order *order = LIST_ITEM(message, struct stage_order, message);
    struct stage *stage = order->stage;
    order->work(stage);
    pthread_mutex_lock(&stage->lock);
    order->done = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

void stage_call(struct stage *stage, void (*work)(struct stage *stage))
{
    struct stage_order order = { .message = { .deliver = order_deliver }, .stage = stage, .work = work };
    loop_post(stage->loop, &order.message);
    pthread_mutex_lock(&stage->lock);
    while (!order.done) {
        pthread_cond_wait(&stage->changed, &stage->lock);
    }
    pthread_mutex_unlock(&stage->lock);
}

static unsigned count_locked(struct stage *stage, const char *event)
{
    struct view rest = buf_view(&stage->events), line;
    unsigned count = 0;
    while (view_next_item(&rest, '\n', &line)) {
        count += view_equal(line, view_of(event)) ? 1 : 0;
    }
    return count;
}

unsigned stage_count(struct stage *stage, const char *event)
{
    pthread_mutex_lock(&stage->lock);
    unsigned count = count_locked(stage, event);
    pthread_mutex_unlock(&stage->lock);
    return count;
}

void stage_wait(struct stage *stage, const char *event, unsigned count)
{
    pthread_mutex_lock(&stage->lock);
    while (count_locked(stage, event) < count) {
        pthread_cond_wait(&stage->changed, &stage->lock);
    }
    pthread_mutex_unlock(&stage->lock);
}

static void on_accepted(void *context, int fd, const void *sockaddr, unsigned len)
{
    struct stage *stage = context;
    edge_adopt(stage->edge, fd, sockaddr, len);
}

static void *stage_main(void *context)
{
    struct stage *stage = context;
    loop_run(stage->loop);
    return NULL;
}

void stage_start_with(struct stage *stage, const struct edge_options *options)
{
    *stage = (struct stage){ .options = *options };
    (void) signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->changed, NULL);
    buf_init(&stage->events, 1 << 24);
    list_init(&stage->plays);
    stage->loop = loop_new();
    stage->edge = edge_new(stage->loop, options, &handler, stage);
    struct buf error;
    buf_init(&error, 1000);
    stage->acceptor = acceptor_open(stage->loop, "127.0.0.1:0", on_accepted, stage, &error);
    ck_assert_ptr_nonnull(stage->acceptor);
    stage->port = (uint16_t) strtoul(strrchr(acceptor_address(stage->acceptor), ':') + 1, NULL, 10);
    buf_fini(&error);
    ck_assert_int_eq(pthread_create(&stage->thread, NULL, stage_main, stage), 0);
}

void stage_start(struct stage *stage)
{
    struct edge_options options = { .connections_max = 1100, .client_idle_ms = 60000, .body_max = 1000 };
    stage_start_with(stage, &options);
}

static void stop_now(struct stage *stage)
{
    acceptor_close(stage->acceptor);
    edge_free(stage->edge);
    loop_stop(stage->loop);
}

void stage_stop(struct stage *stage)
{
    stage_call(stage, stop_now);
    ck_assert_int_eq(pthread_join(stage->thread, NULL), 0);
    ck_assert_uint_eq(stage->plays.count, 0);
    loop_free(stage->loop);
    buf_fini(&stage->events);
    pthread_mutex_destroy(&stage->lock);
    pthread_cond_destroy(&stage->changed);
}
