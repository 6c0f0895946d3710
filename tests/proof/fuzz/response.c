/* response.c - fuzzes server/http/response_reader.c, response_head.c and, on what they read, fields.c (from the handler). The first line of the input is a digit: 1 when the request was
 * HEAD, 2 when an end by close is allowed, 3 both; what is behind it is what the handler sent.
 *
 * Any split of the same bytes gives the same events, fields and body. A response that is complete is not complete when its last bytes are
 * missing, and what it consists of is what its framing says. Nothing is taken that was not given. */
#include "server/http/fields.h"
#include "server/http/response_reader.h"

#include "tests/proof/fuzz/fuzz.h"

enum { HEAD_MAX = 600, HEAD_REQUEST = 1, ALLOW_CLOSE = 2 };

/* What came out of one response. */
struct seen {
    bool head;
    int status;
    enum response_framing framing;
    uint64_t length;
    bool has_length, keep_alive;
    int64_t keep_alive_timeout_ms;
    enum response_event last, close; /* `close`: MORE when it was not asked */
    enum response_fault fault;
    size_t taken;
    struct buf fields, body;
};

static void seen_fini(struct seen *seen)
{
    buf_fini(&seen->fields);
    buf_fini(&seen->body);
}

static void note_head(struct seen *seen, const struct response_reader *reader)
{
    MUST(!seen->head);
    seen->head = true;
    seen->status = reader->status;
    seen->framing = reader->framing;
    seen->length = reader->length;
    seen->has_length = reader->has_length;
    seen->keep_alive = reader->keep_alive;
    seen->keep_alive_timeout_ms = reader->keep_alive_timeout_ms;
    buf_append(&seen->fields, buf_view(&reader->fields));
}

/* One piece, in memory of its own size that is gone afterwards: a view that is kept too long is seen by the sanitizer. */
static void feed_piece(struct response_reader *reader, struct view piece, struct seen *seen)
{
    char *bytes = malloc(piece.len);
    MUST(bytes != NULL);
    memcpy(bytes, piece.ptr, piece.len);
    struct view input = view_make(bytes, piece.len);
    do {
        struct view before = input, body = { NULL, 0 };
        seen->last = response_reader_feed(reader, &input, &body);
        MUST(input.len <= before.len && input.ptr == before.ptr + (before.len - input.len));
        if (seen->last == RESPONSE_HEAD) {
            note_head(seen, reader);
        } else if (seen->last == RESPONSE_BODY) {
            MUST(seen->head && body.len > 0 && body.ptr + body.len == input.ptr && fuzz_is_inside(body, before));
            buf_append(&seen->body, body);
        }
    } while (seen->last == RESPONSE_HEAD || seen->last == RESPONSE_BODY);
    MUST(input.len == 0 || seen->last != RESPONSE_MORE);
    seen->taken += piece.len - input.len;
    free(bytes);
}

/* In pieces of 1 to `longest` bytes, their lengths out of `choice`. */
static void feed(struct seen *seen, struct view bytes, int flags, size_t longest, size_t choice)
{
    struct response_reader reader;
    *seen = (struct seen){ .head = false };
    buf_init(&seen->fields, 4 * HEAD_MAX);
    buf_init(&seen->body, bytes.len);
    response_reader_init(&reader, (flags & HEAD_REQUEST) != 0, (flags & ALLOW_CLOSE) != 0, HEAD_MAX);
    while (bytes.len > 0 && seen->last == RESPONSE_MORE) {
        choice = choice * 2862933555777941757U + 3037000493U;
        size_t len = longest == SIZE_MAX ? bytes.len : 1 + (choice >> 33) % longest;
        len = len > bytes.len ? bytes.len : len;
        feed_piece(&reader, view_make(bytes.ptr, len), seen);
        bytes = view_make(bytes.ptr + len, bytes.len - len);
    }
    if (seen->last == RESPONSE_MORE) {
        seen->close = response_reader_close(&reader);
        MUST(seen->close == RESPONSE_END || seen->close == RESPONSE_BAD);
    }
    seen->fault = reader.fault;
    MUST((seen->fault != RESPONSE_FAULT_NONE) == (seen->last == RESPONSE_BAD || seen->close == RESPONSE_BAD));
    MUST(response_fault_text(seen->fault)[0] != '\0' && reader.fields.len <= 2 * HEAD_MAX);
    response_reader_fini(&reader);
}

static void must_be_alike(const struct seen *whole, const struct seen *pieces)
{
    MUST(whole->last == pieces->last && whole->close == pieces->close && whole->fault == pieces->fault);
    MUST(whole->head == pieces->head && whole->status == pieces->status && whole->framing == pieces->framing);
    MUST(whole->length == pieces->length && whole->has_length == pieces->has_length);
    MUST(whole->keep_alive == pieces->keep_alive);
    MUST(whole->keep_alive_timeout_ms == pieces->keep_alive_timeout_ms);
    MUST(view_equal(buf_view(&whole->fields), buf_view(&pieces->fields)));
    MUST(view_equal(buf_view(&whole->body), buf_view(&pieces->body)));
    MUST(whole->last != RESPONSE_END || whole->taken == pieces->taken);
}

/* A block of checked fields: to be read, rebuilt, and found the same. */
static void fields_must_hold(struct view block)
{
    struct buf again;
    struct view rest = block;
    struct header field;
    buf_init(&again, block.len);
    while (field_block_next(&rest, &field)) {
        MUST(header_is_token(field.name) && header_value_is_clean(field.value));
        MUST(memchr(field.value.ptr, '\n', field.value.len) == NULL);
        field_block_add(&again, field.name, field.value);
    }
    MUST(view_equal(block, buf_view(&again)));
    buf_fini(&again);
}

static bool is_for_this_connection(struct view name)
{
    static const char *const names[] = {
        "Connection", "Content-Length", "Transfer-Encoding",  "Keep-Alive",          "TE",
        "Trailer",    "Upgrade",        "Idempotency-Status", "Idempotent-Replayed", "Idempotency-Expires"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (view_equal_nocase(name, view_of(names[i]))) {
            return true;
        }
    }
    return view_starts_with_nocase(name, VIEW("Nonbis-"));
}

static bool is_named_by_connection(struct view block, struct view name)
{
    struct header field;
    struct view item;
    while (field_block_next(&block, &field)) {
        while (view_equal_nocase(field.name, VIEW("Connection")) && view_next_item(&field.value, ',', &item)) {
            if (view_equal_nocase(item, name)) {
                return true;
            }
        }
    }
    return false;
}

/* What is told to the client and what is kept for replays is a part of what came, in its order, without what is not theirs; and keeping what was
 * kept changes nothing. */
static void passed_must_hold(struct view block)
{
    struct buf told, kept, again;
    struct header field, whole;
    buf_init(&told, block.len);
    buf_init(&kept, block.len);
    buf_init(&again, block.len);
    fields_to_client(block, &told);
    fields_to_keep(block, VIEW("X-Dropped, ETag"), &kept);
    fields_to_keep(buf_view(&kept), VIEW("etag,X-DROPPED"), &again);
    MUST(!told.failed && view_equal(buf_view(&kept), buf_view(&again)));
    struct view from = block;
    for (struct view rest = buf_view(&told); field_block_next(&rest, &field);) {
        MUST(!is_for_this_connection(field.name) && field.value.len > 0);
        MUST(!is_named_by_connection(block, field.name));
        do {
            MUST(field_block_next(&from, &whole));
        } while (!view_equal(field.name, whole.name) || !view_equal(field.value, whole.value));
    }
    from = buf_view(&told);
    for (struct view rest = buf_view(&kept); field_block_next(&rest, &field);) {
        MUST(!view_equal_nocase(field.name, VIEW("Set-Cookie")) && !view_equal_nocase(field.name, VIEW("ETag")));
        do {
            MUST(field_block_next(&from, &whole));
        } while (!view_equal(field.name, whole.name) || !view_equal(field.value, whole.value));
    }
    MUST(fields_handler_word(block) <= FIELDS_WORD_UNKNOWN);
    buf_fini(&told);
    buf_fini(&kept);
    buf_fini(&again);
}

static bool ends_with(struct view text, struct view end)
{
    return text.len >= end.len && view_equal(view_make(text.ptr + text.len - end.len, end.len), end);
}

/* What a complete response consists of, told from its end. */
static void end_must_hold(struct view bytes, const struct seen *seen, int flags)
{
    struct view taken = view_make(bytes.ptr, seen->taken), body = buf_view(&seen->body);
    struct view head = view_make(bytes.ptr, seen->taken - body.len);
    switch (seen->framing) {
    case RESPONSE_FRAMING_NONE:
        MUST(body.len == 0 && ends_with(taken, VIEW("\r\n\r\n")));
        MUST((flags & HEAD_REQUEST) != 0 || seen->status == 204 || seen->status == 304);
        break;
    case RESPONSE_FRAMING_LENGTH:
        MUST(seen->has_length && body.len == seen->length && ends_with(taken, body));
        MUST(ends_with(head, VIEW("\r\n\r\n")));
        break;
    case RESPONSE_FRAMING_CHUNKED:
        MUST(!seen->has_length && body.len < taken.len && ends_with(taken, VIEW("\r\n\r\n")));
        break;
    case RESPONSE_FRAMING_CLOSE:
        MUST(!seen->keep_alive); /* and it ended by close() alone */
        MUST(seen->close == RESPONSE_END && (flags & ALLOW_CLOSE) != 0);
        break;
    }
}

/* None of some prefixes is complete, the longest one included. */
static void prefixes_must_not_be_complete(struct view bytes, const struct seen *seen, int flags, size_t choice)
{
    for (int i = 0; i < 6; i++) {
        size_t len = i == 0 ? seen->taken - 1 : (choice >> (8 * i)) % seen->taken;
        struct seen cut;
        feed(&cut, view_make(bytes.ptr, len), flags, SIZE_MAX, 0);
        MUST(cut.last == RESPONSE_MORE && cut.close == RESPONSE_BAD);
        MUST(cut.fault == RESPONSE_FAULT_CUT || cut.fault == RESPONSE_FAULT_EMPTY);
        seen_fini(&cut);
    }
}

FUZZ_TARGET(response)
{
    struct view bytes = input;
    struct view first = fuzz_line(&bytes);
    int flags = first.len > 0 ? first.ptr[0] & (HEAD_REQUEST | ALLOW_CLOSE) : 0;
    size_t choice = fuzz_hash(bytes);
    struct seen whole, pieces;
    feed(&whole, bytes, flags, SIZE_MAX, 0);
    static const size_t longest[] = { 1, 3, 17, 100 };
    for (size_t i = 0; i < sizeof(longest) / sizeof(longest[0]); i++) {
        feed(&pieces, bytes, flags, longest[i], choice + i);
        must_be_alike(&whole, &pieces);
        seen_fini(&pieces);
    }
    fields_must_hold(buf_view(&whole.fields));
    passed_must_hold(buf_view(&whole.fields));
    bool complete = whole.last == RESPONSE_END || whole.close == RESPONSE_END;
    if (complete) {
        MUST(whole.head && whole.status >= 200 && whole.status <= 999);
        end_must_hold(bytes, &whole, flags);
    }
    if (whole.last == RESPONSE_END) {
        prefixes_must_not_be_complete(bytes, &whole, flags, choice);
    }
    seen_fini(&whole);
    return complete;
}
