/* strict.c - see strict.h. */
#include "tests/proof/front/strict.h"

#include <string.h>

enum { STRICT_BODY_MAX = 1024 * 1024 };

struct framing {
    bool has_length, chunked;
    uint64_t length;
};

/* A line up to CR LF; STRICT_CUT when that is not there yet, STRICT_ODD with another control byte in it. */
static enum strict_result take_line(struct view *rest, struct view *line)
{
    for (size_t i = 0; i < rest->len; i++) {
        unsigned char c = (unsigned char) rest->ptr[i];
        if (c == '\r' && i + 1 == rest->len) {
            return STRICT_CUT;
        }
        if (c == '\r' && rest->ptr[i + 1] == '\n') {
            *line = view_make(rest->ptr, i);
            *rest = view_make(rest->ptr + i + 2, rest->len - i - 2);
            return STRICT_WHOLE;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return STRICT_ODD;
        }
    }
    return STRICT_CUT;
}

static bool is_token(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (c == '\0' || (!alphanumeric && strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

/* "METHOD TARGET HTTP/1.x" with one blank each. */
static bool read_request_line(struct view line, struct strict *request)
{
    const char *first = memchr(line.ptr, ' ', line.len);
    if (first == NULL || line.len < 9 || memcmp(line.ptr + line.len - 9, " HTTP/1.", 8) != 0) {
        return false;
    }
    request->method = view_make(line.ptr, (size_t) (first - line.ptr));
    const char *end = line.ptr + line.len - 9;
    if (first + 1 >= end) {
        return false;
    }
    request->target = view_make(first + 1, (size_t) (end - first - 1));
    return is_token(request->method) && memchr(request->target.ptr, ' ', request->target.len) == NULL &&
           memchr(request->target.ptr, '\t', request->target.len) == NULL;
}

static bool is_digits(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len > 0;
}

static bool read_field(struct view line, struct strict *request, struct framing *framing)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL || !is_token(view_make(line.ptr, (size_t) (colon - line.ptr)))) {
        return false;
    }
    struct view name = view_make(line.ptr, (size_t) (colon - line.ptr));
    struct view value = view_trim(view_make(colon + 1, line.len - name.len - 1));
    if (view_equal_nocase(name, VIEW("Idempotency-Key"))) {
        if (request->keys++ == 0) {
            request->key = value;
        }
    } else if (view_equal_nocase(name, VIEW("Content-Length"))) {
        if (framing->has_length || !is_digits(value) || !view_to_uint64(value, &framing->length)) {
            return false;
        }
        framing->has_length = true;
    } else if (view_equal_nocase(name, VIEW("Transfer-Encoding"))) {
        if (framing->chunked || !view_equal_nocase(value, VIEW("chunked"))) {
            return false;
        }
        framing->chunked = true;
    }
    return true;
}

static enum strict_result read_head(struct view *rest, struct strict *request, struct framing *framing)
{
    struct view line;
    enum strict_result result = take_line(rest, &line);
    if (result != STRICT_WHOLE) {
        return result;
    }
    if (!read_request_line(line, request)) {
        return STRICT_ODD;
    }
    while ((result = take_line(rest, &line)) == STRICT_WHOLE && line.len > 0) {
        if (!read_field(line, request, framing)) {
            return STRICT_ODD;
        }
    }
    if (result == STRICT_WHOLE) {
        request->headed = true;
    }
    return result == STRICT_WHOLE && framing->has_length && framing->chunked ? STRICT_ODD : result;
}

static bool read_chunk_size(struct view line, uint64_t *size)
{
    *size = 0;
    size_t i = 0;
    for (; i < line.len && i < 8 && line.ptr[i] != ';'; i++) {
        const char *digits = "0123456789abcdef";
        char c = (char) (line.ptr[i] >= 'A' && line.ptr[i] <= 'F' ? line.ptr[i] + 32 : line.ptr[i]);
        const char *digit = c == '\0' ? NULL : strchr(digits, c);
        if (digit == NULL) {
            return false;
        }
        *size = *size * 16 + (uint64_t) (digit - digits);
    }
    return i > 0 && (i == line.len || line.ptr[i] == ';');
}

static enum strict_result read_chunks(struct view *rest, struct strict *request)
{
    for (;;) {
        struct view line;
        uint64_t size;
        enum strict_result result = take_line(rest, &line);
        if (result != STRICT_WHOLE) {
            return result;
        }
        if (!read_chunk_size(line, &size)) {
            return STRICT_ODD;
        }
        if (size == 0) {
            while ((result = take_line(rest, &line)) == STRICT_WHOLE && line.len > 0) {
            }
            return result;
        }
        if (rest->len < size + 2) {
            return STRICT_CUT;
        }
        buf_append_bytes(&request->body, rest->ptr, size);
        if (memcmp(rest->ptr + size, "\r\n", 2) != 0) {
            return STRICT_ODD;
        }
        *rest = view_make(rest->ptr + size + 2, rest->len - size - 2);
    }
}

static enum strict_result read_request(struct view *rest, struct strict *request)
{
    struct framing framing = { 0 };
    enum strict_result result = read_head(rest, request, &framing);
    if (result != STRICT_WHOLE) {
        return result;
    }
    if (framing.chunked) {
        return read_chunks(rest, request);
    }
    if (framing.length > rest->len) {
        return STRICT_CUT;
    }
    buf_append_bytes(&request->body, rest->ptr, framing.length);
    *rest = view_make(rest->ptr + framing.length, rest->len - framing.length);
    return STRICT_WHOLE;
}

enum strict_result strict_next(struct view *rest, struct strict *request)
{
    memset(request, 0, sizeof *request);
    buf_init(&request->body, STRICT_BODY_MAX);
    if (rest->len == 0) {
        return STRICT_NONE;
    }
    enum strict_result result = read_request(rest, request);
    if (result != STRICT_WHOLE) {
        *rest = view_make(rest->ptr, 0);
    }
    return result;
}

void strict_fini(struct strict *request)
{
    buf_fini(&request->body);
}
