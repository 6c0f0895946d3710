/* transport_curl_reader.c - the answer as it comes in, and whether it is whole. See transport_curl.h.
 *
 * libcurl also calls it a success when the head was cut, when two lengths contradict each other, or when a body without framing
 * ended early (docs/facts.md 3), so the framing is looked at here. It hands over the lines of the head one by one: those of
 * interim answers, continuations and trailers as well. */
#include "client-sdk/src/transport_curl.h"

#include "client-sdk/src/clock.h"

#include <string.h>

enum framing {
    FRAMING_NO_BODY,
    FRAMING_LENGTH,
    FRAMING_CHUNKED,
    FRAMING_BOTH,    /* chunked and a length: chunked wins (RFC 9112 6.3), but the connection is not used again */
    FRAMING_CLOSE,   /* none: the end of the connection is the end of the body */
    FRAMING_DOUBTFUL /* lines that contradict each other, or that say nothing we know */
};

void http_reader_init(struct http_reader *reader, struct answer *answer, const char *method)
{
    *reader = (struct http_reader){ .answer = answer, .bodyless_method = strcmp(method, "HEAD") == 0 };
    buf_init(&reader->field, ANSWER_HEAD_MAX);
}

void http_reader_fini(struct http_reader *reader)
{
    buf_fini(&reader->field);
}

/* ---- the head ----------------------------------------------------------------------------------------------------- */

static void reader_take_field(struct http_reader *reader)
{
    struct view line = buf_view(&reader->field);
    const char *colon = line.len > 0 ? memchr(line.ptr, ':', line.len) : NULL;
    if (colon != NULL) {
        struct view name = view_trim(view_make(line.ptr, (size_t) (colon - line.ptr)));
        struct view value = view_make(colon + 1, line.len - (size_t) (colon - line.ptr) - 1);
        if (name.len > 0) {
            answer_add_field(reader->answer, name, value);
        }
    }
    reader->head_too_large = reader->head_too_large || reader->field.failed || reader->answer->head.failed;
    buf_clear(&reader->field);
}

/* "HTTP/1.1 200 OK"; libcurl has looked at it before. 0: no status in it. */
static int status_of(struct view line)
{
    const char *blank = memchr(line.ptr, ' ', line.len);
    size_t at = blank != NULL ? (size_t) (blank - line.ptr) : line.len;
    while (at < line.len && line.ptr[at] == ' ') {
        at++;
    }
    uint64_t status = 0;
    return line.len - at >= 3 && view_to_uint64(view_make(line.ptr + at, 3), &status) ? (int) status : 0;
}

static void reader_end_head(struct http_reader *reader)
{
    reader->in_head = false;
    reader_take_field(reader);
    if (reader->answer->status >= 200) {
        struct clock *clock = clock_system();
        reader->answer->head_whole = true;
        reader->arrived_wall_ms = clock->wall_ms(clock);
    } else if (reader->answer->status == 101) {
        reader->switched = true; /* nobody asked for it: no HTTP answer can follow */
    } else {
        answer_clear(reader->answer);
        reader->interim++;
    }
}

size_t http_reader_on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct http_reader *reader = context;
    struct view line = view_make(bytes, size * count);
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) {
        line.len--;
    }
    if (reader->answer->head_whole) {
        /* A trailer: dropped, as the server drops them (contract 6.8). Libcurl 7.88 keeps every one, without a bound. */
        reader->trailer_bytes += size * count;
        return reader->trailer_bytes > HTTP_TRAILERS_MAX ? 0 : size * count;
    }
    if (!reader->in_head) {
        answer_clear(reader->answer);
        reader->answer->status = status_of(line);
        reader->in_head = true;
    } else if (line.len == 0) {
        reader_end_head(reader);
    } else if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
        buf_append(&reader->field, VIEW(" "));
        buf_append(&reader->field, view_trim(line));
    } else {
        reader_take_field(reader);
        buf_append(&reader->field, line);
    }
    return reader->head_too_large || reader->switched || reader->interim > HTTP_INTERIM_MAX ? 0 : size * count;
}

/* ---- the body ----------------------------------------------------------------------------------------------------- */

size_t http_reader_on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct http_reader *reader = context;
    if (!reader->answer->head_whole) {
        return 0;
    }
    reader->body_seen += size * count;
    answer_add_body(reader->answer, bytes, size * count);
    return size * count;
}

/* False: there is none, or not one alone; `*length` is then as it was. */
static bool length_of(const struct answer *answer, uint64_t *length, bool *doubtful)
{
    size_t at = 0;
    bool found = false;
    const char *text;
    while ((text = answer_field_next(answer, "Content-Length", &at)) != NULL) {
        uint64_t number = 0;
        if (!view_to_uint64(view_of(text), &number) || (found && number != *length)) {
            *doubtful = true;
            return false;
        }
        *length = number;
        found = true;
    }
    return found;
}

/* "chunked", or a list that ends with it. */
static bool ends_chunked(const char *text)
{
    const char *comma = strrchr(text, ',');
    return view_equal_nocase(view_trim(view_of(comma != NULL ? comma + 1 : text)), VIEW("chunked"));
}

static enum framing framing_of(const struct http_reader *reader, uint64_t *length)
{
    const struct answer *answer = reader->answer;
    bool doubtful = false;
    if (reader->bodyless_method || answer->status == 204 || answer->status == 304) {
        return FRAMING_NO_BODY;
    }
    bool has_length = length_of(answer, length, &doubtful);
    bool has_coding = false, chunked = false;
    size_t at = 0;
    const char *coding;
    while ((coding = answer_field_next(answer, "Transfer-Encoding", &at)) != NULL) {
        has_coding = true;
        chunked = ends_chunked(coding);
    }
    if (doubtful || (has_coding && !chunked)) {
        return FRAMING_DOUBTFUL;
    }
    if (chunked && has_length) {
        return FRAMING_BOTH;
    }
    return chunked ? FRAMING_CHUNKED : has_length ? FRAMING_LENGTH : FRAMING_CLOSE;
}

bool http_reader_judge(const struct http_reader *reader)
{
    struct answer *answer = reader->answer;
    uint64_t length = 0;
    if (!answer->head_whole) {
        return false;
    }
    switch (framing_of(reader, &length)) {
    case FRAMING_NO_BODY:
    case FRAMING_CHUNKED: /* without its last chunk libcurl does not call it a success */
        answer->whole = true;
        return true;
    case FRAMING_BOTH:
        answer->whole = true;
        return false;
    case FRAMING_LENGTH:
        answer->whole = reader->body_seen == length;
        return answer->whole;
    case FRAMING_CLOSE:
        answer->by_close = true;
        return false;
    case FRAMING_DOUBTFUL:
        break;
    }
    return false;
}
