/* request_body.c - a request body that is taken whole (EDGE_COLLECT): kept up to body_max, then counted and thrown away. Owns the
 * bytes. The loop's thread. */
#include "server/edge/inside.h"

#include "schema/limits.h"
#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    BODY_FIRST_ROOM = 4096,         /* bytes: a chunked body's first allocation */
    BODY_DECLARED_ROOM = 64 * 1024, /* and a declared one's, at most */
};

void request_body_start(struct edge_request *request)
{
    struct request_body *body = &request->body;
    struct view value = { NULL, 0 }, coding;
    body->declared = headers_count(request->head.headers, VIEW("Content-Length"), &value) > 0 &&
                     headers_count(request->head.headers, VIEW("Transfer-Encoding"), &coding) == 0 &&
                     view_to_uint64(value, &body->declared_len);
    if (request->take != EDGE_COLLECT || !body->declared) {
        return;
    }
    if (body->declared_len > request->edge->options.body_max) {
        body->over = true; /* the handler refuses this in head(); if it did not, it hears of it in too_large() */
        return;
    }
    /* Room comes with the bytes: who only declares much gets little. */
    size_t room = body->declared_len < BODY_DECLARED_ROOM ? (size_t) body->declared_len : BODY_DECLARED_ROOM;
    if (room > body->room) {
        body->bytes = memory_resize(body->bytes, room);
        body->room = room;
    }
}

static void request_body_grow(struct request_body *body, size_t needed, size_t max)
{
    if (needed <= body->room) {
        return;
    }
    size_t room = body->room < BODY_FIRST_ROOM ? BODY_FIRST_ROOM : body->room * 2;
    if (room < needed) {
        room = needed;
    }
    if (room > max) {
        room = max;
    }
    body->bytes = memory_resize(body->bytes, room);
    body->room = room;
}

bool request_body_add(struct edge_request *request, const char *bytes, size_t len)
{
    struct request_body *body = &request->body;
    size_t max = request->edge->options.body_max;
    body->received += len;
    if (!body->over && len > max - body->len) {
        body->over = true;
        body->thrown_away = 0;
        len -= max - body->len;
        free(body->bytes);
        body->bytes = NULL;
        body->len = body->room = 0;
    }
    if (body->over) {
        body->thrown_away =
            len > LIMIT_EARLY_DISCARD - body->thrown_away ? LIMIT_EARLY_DISCARD : body->thrown_away + len;
        return body->thrown_away < LIMIT_EARLY_DISCARD;
    }
    request_body_grow(body, body->len + len, body->declared ? (size_t) body->declared_len : max);
    memcpy(body->bytes + body->len, bytes, len);
    body->len += len;
    return true;
}

/* libmicrohttpd calls with size 0 at the end, but not only then (docs/facts.md 26b): a declared length must have been met. */
bool request_body_is_complete(const struct edge_request *request)
{
    return !request->body.declared || request->body.received == request->body.declared_len;
}

void request_body_reuse(struct edge_request *request)
{
    struct request_body *body = &request->body;
    char *bytes = body->bytes;
    size_t room = body->room;
    if (room > BODY_FIRST_ROOM) {
        free(bytes);
        bytes = NULL;
        room = 0;
    }
    *body = (struct request_body){ .bytes = bytes, .room = room };
}

void request_body_fini(struct edge_request *request)
{
    free(request->body.bytes);
    request->body.bytes = NULL;
}
