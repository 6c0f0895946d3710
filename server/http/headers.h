/* headers.h - fields of a message, in the two shapes that the server uses. Pure. Any thread.
 *
 *   struct header_span   an array of name and value views: a request as the edge received it
 *   field block          text, one "Name: value\r\n" per field, nothing else: a response as it is
 *                        read from the upstream, stored, and replayed. A block is only made from
 *                        checked fields (no control bytes, token names), so a reader may trust it. */
#ifndef NONBIS_SERVER_HTTP_HEADERS_H
#define NONBIS_SERVER_HTTP_HEADERS_H

#include "common/buf.h"
#include "common/view.h"

struct header {
    struct view name, value; /* value trimmed */
};

struct header_span {
    const struct header *items;
    size_t count;
};

/* Names are compared in any case. Most of them differ in length already, and that much is decided without a call. */
static inline bool header_name_is(struct view name, struct view wanted)
{
    return name.len == wanted.len && view_equal_nocase(name, wanted);
}

/* How many fields have this name (any case); `*first` is the first one's value when there is one. */
size_t headers_count(struct header_span headers, struct view name, struct view *first);

/* Cuts the first field off a block. False when the block is empty. */
bool field_block_next(struct view *block, struct header *field);

/* The first field of that name; false when there is none. */
bool field_block_find(struct view block, struct view name, struct view *value);
size_t field_block_count(struct view block, struct view name);

void field_block_add(struct buf *block, struct view name, struct view value);

/* RFC 9110 section 5.6.2: one or more tchar. */
bool header_is_token(struct view text);
/* No control byte other than HTAB (RFC 9110 section 5.5). */
bool header_value_is_clean(struct view value);

#endif
