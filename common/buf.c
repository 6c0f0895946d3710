/* buf.c - text that grows up to a ceiling. Owns its bytes; failure is sticky. One thread at a time. */
#include "common/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 }; /* bytes: most heads and problem bodies fit without another growth */

void (*buf_without_memory)(size_t bytes);

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){ .max = max };
}

void buf_fini(struct buf *buf)
{
    free(buf->ptr);
    buf->ptr = NULL;
    buf->len = buf->cap = 0;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

void buf_reuse(struct buf *buf, size_t max, size_t keep_max)
{
    if (buf->cap > keep_max || buf->cap > max) {
        buf_fini(buf);
    }
    buf_clear(buf);
    buf->max = max;
}

static void tell_missing(size_t bytes)
{
    if (buf_without_memory != NULL) {
        buf_without_memory(bytes);
    }
}

/* Room for `len` more bytes, which are known to stay under the ceiling. */
static bool grow(struct buf *buf, size_t len)
{
    size_t needed = buf->len + len;
    size_t cap = buf->cap < FIRST_CAPACITY ? FIRST_CAPACITY : buf->cap;
    while (cap < needed) {
        cap = cap > buf->max / 2 ? buf->max : cap * 2;
    }
    if (cap > buf->max) {
        cap = buf->max;
    }
    char *ptr = realloc(buf->ptr, cap);
    if (ptr == NULL) {
        tell_missing(cap);
        return false;
    }
    buf->ptr = ptr;
    buf->cap = cap;
    return true;
}

char *buf_reserve(struct buf *buf, size_t len)
{
    if (buf->failed) {
        return NULL;
    }
    /* The subtraction cannot wrap: len never passes max. An empty reserve still needs a place to point to. */
    if (len > buf->max - buf->len) {
        buf->failed = true;
        return NULL;
    }
    if ((len > buf->cap - buf->len || buf->ptr == NULL) && !grow(buf, len)) {
        buf->failed = true;
        return NULL;
    }
    return buf->ptr + buf->len;
}

void buf_append_bytes(struct buf *buf, const void *bytes, size_t len)
{
    if (len == 0) {
        return;
    }
    char *place = buf_reserve(buf, len);
    if (place != NULL) {
        memcpy(place, bytes, len);
        buf->len += len;
    }
}

void buf_append(struct buf *buf, struct view text)
{
    buf_append_bytes(buf, text.ptr, text.len);
}

void buf_append_text(struct buf *buf, const char *text)
{
    buf_append_bytes(buf, text, strlen(text));
}

void buf_append_uint(struct buf *buf, uint64_t number)
{
    char digits[20]; /* UINT64_MAX has 20 digits */
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char) ('0' + number % 10);
        number /= 10;
    } while (number > 0);
    buf_append_bytes(buf, digits + at, sizeof(digits) - at);
}

void buf_append_hex(struct buf *buf, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    if (len > SIZE_MAX / 2) {
        buf->failed = true;
        return;
    }
    char *place = buf_reserve(buf, len * 2);
    if (place == NULL) {
        return;
    }
    for (size_t i = 0; i < len; i++) {
        place[2 * i] = digits[bytes[i] >> 4];
        place[2 * i + 1] = digits[bytes[i] & 15];
    }
    buf->len += len * 2;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    if (buf->failed) {
        return;
    }
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    /* The first try writes into the room that is there; most texts fit and are formatted once. */
    size_t room = buf->ptr == NULL ? 0 : buf->cap - buf->len;
    int needed = vsnprintf(room == 0 ? NULL : buf->ptr + buf->len, room, format, arguments);
    va_end(arguments);
    if (needed < 0) {
        buf->failed = true;
    } else if ((size_t) needed < room) {
        buf->len += (size_t) needed;
    } else {
        /* vsnprintf also writes a NUL, which must not count against the ceiling. */
        char *text = malloc((size_t) needed + 1);
        if (text == NULL) {
            tell_missing((size_t) needed + 1);
            buf->failed = true;
        } else {
            (void) vsnprintf(text, (size_t) needed + 1, format, again);
            buf_append_bytes(buf, text, (size_t) needed);
            free(text);
        }
    }
    va_end(again);
}

struct view buf_view(const struct buf *buf)
{
    return view_make(buf->ptr, buf->len);
}

char *buf_take(struct buf *buf, size_t *len)
{
    char *bytes = buf->ptr;
    *len = buf->len;
    buf->ptr = NULL;
    buf->len = buf->cap = 0;
    buf->failed = false;
    return bytes;
}
