/* response_feed.c - the feeding. */
#include "tests/unit/http/response_feed.h"

#include "tests/support/suite.h"

static void note_head(struct response_seen *seen, const struct response_reader *reader)
{
    ck_assert(!seen->head);
    seen->head = true;
    seen->status = reader->status;
    seen->framing = reader->framing;
    seen->has_length = reader->has_length;
    seen->length = reader->length;
    seen->keep_alive = reader->keep_alive;
    seen->keep_alive_timeout_ms = reader->keep_alive_timeout_ms;
    seen->fields_len = reader->fields.len;
    ck_assert_uint_le(seen->fields_len, FEED_BODY_MAX);
    if (seen->fields_len > 0) {
        memcpy(seen->fields, reader->fields.ptr, seen->fields_len);
    }
}

/* Feeds one piece up to MORE, END or BAD. */
static void feed_piece(struct response_reader *reader, struct view piece, struct response_seen *seen)
{
    char *bytes = malloc(piece.len + (piece.len == 0));
    if (piece.len > 0) {
        memcpy(bytes, piece.ptr, piece.len);
    }
    struct view input = view_make(bytes, piece.len);
    do {
        struct view body = view_make(NULL, 0);
        seen->last = response_reader_feed(reader, &input, &body);
        if (seen->last == RESPONSE_HEAD) {
            note_head(seen, reader);
        } else if (seen->last == RESPONSE_BODY) {
            ck_assert(seen->head);
            ck_assert_uint_gt(body.len, 0);
            ck_assert_uint_le(seen->body_len + body.len, FEED_BODY_MAX);
            memcpy(seen->body + seen->body_len, body.ptr, body.len);
            seen->body_len += body.len;
        }
    } while (seen->last == RESPONSE_HEAD || seen->last == RESPONSE_BODY);
    seen->taken += piece.len - input.len;
    free(bytes);
}

struct response_seen response_feed(struct view bytes, int flags, size_t (*piece)(void *context, size_t left),
                                   void *context)
{
    struct response_seen seen;
    memset(&seen, 0, sizeof(seen));
    struct response_reader reader;
    response_reader_init(&reader, (flags & FEED_HEAD_REQUEST) != 0, (flags & FEED_ALLOW_CLOSE) != 0, FEED_HEAD_MAX);
    while (bytes.len > 0 && seen.last == RESPONSE_MORE) {
        size_t len = piece(context, bytes.len);
        feed_piece(&reader, view_make(bytes.ptr, len), &seen);
        bytes = view_make(bytes.ptr + len, bytes.len - len);
    }
    if (seen.last == RESPONSE_MORE) {
        seen.close = response_reader_close(&reader);
    }
    seen.fault = reader.fault;
    response_reader_fini(&reader);
    return seen;
}

size_t feed_whole(void *context, size_t left)
{
    (void) context;
    return left;
}

size_t feed_byte(void *context, size_t left)
{
    (void) context;
    (void) left;
    return 1;
}

size_t feed_first(void *context, size_t left)
{
    size_t *first = context, len = *first;
    *first = left;
    return len == 0 || len > left ? left : len;
}

size_t feed_random(void *context, size_t left)
{
    size_t len = 1 + suite_random_below(context, 40);
    return len > left ? left : len;
}
