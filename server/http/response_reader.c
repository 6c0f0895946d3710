/* response_reader.c - the machine that reads one response.
 *
 *            1xx                                    .-- CHUNK_CR < CHUNK_LF <-.
 *           .---.                                   v                         |
 *   STATUS -+-> FIELDS -+-> BODY_CHUNKS: CHUNK_SIZE -- size > 0 --> CHUNK_DATA
 *                       |                   `-- size 0 --> TRAILERS --> DONE
 *                       +-> BODY_LENGTH ------------------------------> DONE
 *                       +-> BODY_CLOSE --------- close() -------------> DONE
 *   from everywhere: BAD
 *
 * The events do not depend on how the bytes were cut: a line is judged only when its line feed is there or when
 * it has passed the bound. Owns the field block and the unfinished line. One thread at a time. */
#include "server/http/response_reader.h"

#include "server/http/response_head.h"

#include <string.h>

enum { INFORMATIONAL_MAX = 16 }; /* 1xx heads before the answer: more is a peer that never comes to the point */

enum state {
    STATE_STATUS,
    STATE_FIELDS,
    STATE_BODY_LENGTH, /* `left` bytes to come; also where no body follows, with 0 */
    STATE_BODY_CLOSE,
    STATE_CHUNK_SIZE,
    STATE_CHUNK_DATA,
    STATE_CHUNK_CR,
    STATE_CHUNK_LF,
    STATE_TRAILERS,
    STATE_DONE,
    STATE_BAD
};

void response_reader_init(struct response_reader *reader, bool head_request, bool allow_close_delimited,
                          size_t head_bytes_max)
{
    *reader = (struct response_reader){ .state = STATE_STATUS,
                                        .head_request = head_request,
                                        .allow_close = allow_close_delimited,
                                        .head_bytes_max = head_bytes_max,
                                        .keep_alive_timeout_ms = -1 };
    /* A line "a:" becomes "a: ": the block is longer than the head by a quarter at most. */
    buf_init(&reader->fields, 2 * head_bytes_max);
    buf_init(&reader->line, head_bytes_max);
}

void response_reader_fini(struct response_reader *reader)
{
    buf_fini(&reader->fields);
    buf_fini(&reader->line);
}

static enum response_event bad(struct response_reader *reader, enum response_fault fault)
{
    reader->state = STATE_BAD;
    reader->fault = fault;
    return RESPONSE_BAD;
}

static void take(struct view *input, size_t len)
{
    input->ptr += len;
    input->len -= len;
}

enum line_result { LINE_WHOLE, LINE_UNFINISHED, LINE_BAD };

/* Takes one line, its CRLF included. `*line` is valid until the next call or the end of the input. */
static enum line_result take_line(struct response_reader *reader, struct view *input, struct view *line)
{
    const char *feed = input->len == 0 ? NULL : memchr(input->ptr, '\n', input->len);
    size_t len = feed == NULL ? input->len : (size_t) (feed - input->ptr) + 1;
    if (len > reader->head_bytes_max - reader->head_bytes) {
        (void) bad(reader, RESPONSE_FAULT_HEAD_TOO_LONG);
        return LINE_BAD;
    }
    reader->head_bytes += len;
    struct view found = view_make(input->ptr, len);
    take(input, len);
    if (feed == NULL || reader->line.len > 0) {
        buf_append(&reader->line, found);
        if (reader->line.failed) {
            (void) bad(reader, RESPONSE_FAULT_HEAD_TOO_LONG); /* memory is out */
            return LINE_BAD;
        }
        if (feed == NULL) {
            return LINE_UNFINISHED;
        }
        found = buf_view(&reader->line);
        buf_clear(&reader->line); /* the bytes stay where they are until the next append */
    }
    if (found.len < 2 || found.ptr[found.len - 2] != '\r') {
        (void) bad(reader, RESPONSE_FAULT_GARBAGE); /* a bare LF ends a line for some and not for others */
        return LINE_BAD;
    }
    *line = view_make(found.ptr, found.len - 2);
    return LINE_WHOLE;
}

/* Every on_* handles one whole line or piece and returns the event, or MORE to go on. */

static enum response_event on_status_line(struct response_reader *reader, struct view line)
{
    int minor_version = 0;
    if (!response_head_read_status(line, &reader->status, &minor_version)) {
        return bad(reader, RESPONSE_FAULT_GARBAGE);
    }
    if (reader->status == 101) {
        return bad(reader, RESPONSE_FAULT_UPGRADE);
    }
    reader->keep_alive = minor_version >= 1; /* until a field says otherwise */
    reader->state = STATE_FIELDS;
    return RESPONSE_MORE;
}

static void begin_lines(struct response_reader *reader, enum state state)
{
    reader->head_bytes = 0;
    reader->state = (int) state;
}

static enum response_event on_head_end(struct response_reader *reader)
{
    if (reader->status < 200) {
        if (++reader->informational > INFORMATIONAL_MAX) {
            return bad(reader, RESPONSE_FAULT_GARBAGE);
        }
        buf_clear(&reader->fields);
        begin_lines(reader, STATE_STATUS);
        return RESPONSE_MORE;
    }
    if (!response_head_settle_framing(reader)) {
        return bad(reader, RESPONSE_FAULT_GARBAGE);
    }
    switch (reader->framing) {
    case RESPONSE_FRAMING_NONE:
        reader->left = 0;
        reader->state = STATE_BODY_LENGTH;
        break;
    case RESPONSE_FRAMING_LENGTH:
        reader->left = reader->length;
        reader->state = STATE_BODY_LENGTH;
        break;
    case RESPONSE_FRAMING_CHUNKED:
        begin_lines(reader, STATE_CHUNK_SIZE);
        break;
    case RESPONSE_FRAMING_CLOSE:
        reader->state = STATE_BODY_CLOSE;
        break;
    }
    return RESPONSE_HEAD;
}

static enum response_event on_field_line(struct response_reader *reader, struct view line)
{
    if (line.len == 0) {
        return on_head_end(reader);
    }
    struct header field;
    if (!response_head_read_field(line, &field)) {
        return bad(reader, RESPONSE_FAULT_GARBAGE);
    }
    field_block_add(&reader->fields, field.name, field.value);
    return reader->fields.failed ? bad(reader, RESPONSE_FAULT_HEAD_TOO_LONG) : RESPONSE_MORE;
}

static enum response_event on_chunk_size(struct response_reader *reader, struct view line)
{
    if (!response_head_read_chunk_size(line, &reader->left)) {
        return bad(reader, RESPONSE_FAULT_GARBAGE);
    }
    begin_lines(reader, reader->left > 0 ? STATE_CHUNK_DATA : STATE_TRAILERS);
    return RESPONSE_MORE;
}

/* Trailers are checked as fields and dropped: they must not become header fields (RFC 9110 section 6.5.1). */
static enum response_event on_trailer_line(struct response_reader *reader, struct view line)
{
    if (line.len == 0) {
        reader->state = STATE_DONE;
        return RESPONSE_END;
    }
    struct header ignored;
    return response_head_read_field(line, &ignored) ? RESPONSE_MORE : bad(reader, RESPONSE_FAULT_GARBAGE);
}

/* Body bytes up to the end of the body or chunk. */
static enum response_event on_body_bytes(struct response_reader *reader, struct view *input, struct view *body)
{
    size_t len = input->len < reader->left ? input->len : (size_t) reader->left;
    *body = view_make(input->ptr, len);
    take(input, len);
    reader->left -= len;
    if (reader->left == 0 && reader->state == STATE_CHUNK_DATA) {
        reader->state = STATE_CHUNK_CR;
    }
    return RESPONSE_BODY;
}

static enum response_event on_chunk_mark(struct response_reader *reader, struct view *input)
{
    bool is_cr = reader->state == STATE_CHUNK_CR;
    if (input->ptr[0] != (is_cr ? '\r' : '\n')) {
        return bad(reader, RESPONSE_FAULT_GARBAGE);
    }
    take(input, 1);
    begin_lines(reader, is_cr ? STATE_CHUNK_LF : STATE_CHUNK_SIZE);
    return RESPONSE_MORE;
}

/* One step in a state that reads lines; MORE with input left means: go on. */
static enum response_event step_line(struct response_reader *reader, struct view *input)
{
    struct view line;
    switch (take_line(reader, input, &line)) {
    case LINE_BAD:
        return RESPONSE_BAD;
    case LINE_UNFINISHED:
        return RESPONSE_MORE;
    case LINE_WHOLE:
        break;
    }
    switch ((enum state) reader->state) {
    case STATE_STATUS:
        return on_status_line(reader, line);
    case STATE_FIELDS:
        return on_field_line(reader, line);
    case STATE_CHUNK_SIZE:
        return on_chunk_size(reader, line);
    default:
        return on_trailer_line(reader, line);
    }
}

static enum response_event step(struct response_reader *reader, struct view *input, struct view *body)
{
    switch ((enum state) reader->state) {
    case STATE_BODY_LENGTH:
    case STATE_CHUNK_DATA:
        return on_body_bytes(reader, input, body);
    case STATE_BODY_CLOSE:
        *body = *input;
        take(input, input->len);
        return RESPONSE_BODY;
    case STATE_CHUNK_CR:
    case STATE_CHUNK_LF:
        return on_chunk_mark(reader, input);
    default:
        return step_line(reader, input);
    }
}

enum response_event response_reader_feed(struct response_reader *reader, struct view *input, struct view *body)
{
    for (;;) {
        if (reader->state == STATE_BODY_LENGTH && reader->left == 0) {
            reader->state = STATE_DONE;
        }
        if (reader->state == STATE_DONE) {
            return RESPONSE_END;
        }
        if (reader->state == STATE_BAD) {
            return RESPONSE_BAD;
        }
        if (input->len == 0) {
            return RESPONSE_MORE;
        }
        enum response_event event = step(reader, input, body);
        if (event != RESPONSE_MORE) {
            return event;
        }
    }
}

enum response_event response_reader_close(struct response_reader *reader)
{
    switch ((enum state) reader->state) {
    case STATE_DONE:
        return RESPONSE_END;
    case STATE_BAD:
        return RESPONSE_BAD;
    case STATE_BODY_LENGTH:
        if (reader->left == 0) {
            reader->state = STATE_DONE;
            return RESPONSE_END; /* it was whole before the close; only nobody had asked yet */
        }
        return bad(reader, RESPONSE_FAULT_CUT);
    case STATE_BODY_CLOSE:
        if (reader->allow_close) {
            reader->state = STATE_DONE;
            return RESPONSE_END;
        }
        return bad(reader, RESPONSE_FAULT_CLOSE_DELIMITED);
    case STATE_STATUS:
        return bad(reader, reader->head_bytes == 0 ? RESPONSE_FAULT_EMPTY : RESPONSE_FAULT_CUT);
    default:
        return bad(reader, RESPONSE_FAULT_CUT);
    }
}

const char *response_fault_text(enum response_fault fault)
{
    static const char *const texts[RESPONSE_FAULT_COUNT] = {
        [RESPONSE_FAULT_NONE] = "no fault",
        [RESPONSE_FAULT_GARBAGE] = "the upstream's answer is not a well-formed HTTP/1.x response",
        [RESPONSE_FAULT_HEAD_TOO_LONG] = "the head of the upstream's answer is longer than response_header_max",
        [RESPONSE_FAULT_UPGRADE] = "the upstream answered 101 and left HTTP",
        [RESPONSE_FAULT_EMPTY] = "the upstream closed the connection without an answer",
        [RESPONSE_FAULT_CUT] = "the upstream closed the connection inside its answer",
        [RESPONSE_FAULT_CLOSE_DELIMITED] = "the upstream's answer ended only by the close of the connection",
    };
    return fault < RESPONSE_FAULT_COUNT ? texts[fault] : "unknown fault";
}
