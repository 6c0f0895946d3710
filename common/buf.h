/* buf.h - text that grows up to a ceiling.
 *
 * Owns its bytes. Failure is sticky: once the ceiling was met or memory was out, `failed` stays true,
 * nothing more is appended, and the caller checks it once at the end. One thread at a time.
 *
 * nonbisd lets no buf fail for want of memory (buf_without_memory): it ends, as for all its memory (server/base/memory.h), since half a field,
 * path or body that nobody looked at would be a lie. libnonbis checks `failed`, and reports. */
#ifndef NONBIS_COMMON_BUF_H
#define NONBIS_COMMON_BUF_H

#include "common/view.h"

struct buf {
    char *ptr; /* NULL until something was appended; not NUL-terminated */
    size_t len, cap;
    size_t max; /* ceiling in bytes */
    bool failed;
};

/* Called when memory is out, with the bytes that were asked for, before the buf fails; NULL, as it is at first: nothing is called. Set before
 * the first thread starts. */
extern void (*buf_without_memory)(size_t bytes);

void buf_init(struct buf *buf, size_t max);
void buf_fini(struct buf *buf);
void buf_clear(struct buf *buf); /* length 0, failed false, memory kept */
/* Empty, for another use under another ceiling; memory over `keep_max` bytes, or over the ceiling, is given back. */
void buf_reuse(struct buf *buf, size_t max, size_t keep_max);

void buf_append(struct buf *buf, struct view text);
void buf_append_bytes(struct buf *buf, const void *bytes, size_t len);
void buf_append_text(struct buf *buf, const char *text); /* NUL-terminated */
void buf_append_uint(struct buf *buf, uint64_t number);
void buf_append_hex(struct buf *buf, const uint8_t *bytes, size_t len); /* lower case */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for `len` more bytes and returns where they go (the caller then adds to `len`);
 * NULL, and failed, when that would pass the ceiling. */
char *buf_reserve(struct buf *buf, size_t len);

struct view buf_view(const struct buf *buf);

/* Hands the bytes to the caller, who frees them; the buf is empty afterwards. */
char *buf_take(struct buf *buf, size_t *len);

#endif
