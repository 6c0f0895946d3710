/* view.h - a piece of text that somebody else owns: pointer and length, never NUL-terminated by promise.
 *
 * Owns nothing. A view is valid as long as the memory it points into. Everything that comes from a
 * client or an upstream is a view (or a buf) until it is checked. Any thread. */
#ifndef NONBIS_COMMON_VIEW_H
#define NONBIS_COMMON_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
    const char *ptr; /* may be NULL only when len is 0 */
    size_t len;      /* bytes */
};

/* A view of a string literal. */
#define VIEW(literal) ((struct view){ (literal), sizeof(literal) - 1 })
/* For "%.*s". */
#define VIEW_ARGS(v) (int) (v).len, (v).ptr

struct view view_make(const char *ptr, size_t len);
struct view view_of(const char *text); /* NULL gives an empty view */

bool view_equal(struct view a, struct view b);
bool view_equal_nocase(struct view a, struct view b); /* ASCII letters only, no locale */
bool view_starts_with(struct view text, struct view prefix);
bool view_starts_with_nocase(struct view text, struct view prefix);

/* Without the blanks (SP, HTAB: RFC 9110 section 5.6.3) at both ends. */
struct view view_trim(struct view text);

/* Cuts the next element off a list: `*item` is the trimmed text up to `separator`, `*rest` what follows.
 * Empty elements are skipped (RFC 9110 section 5.6.1.2). False when nothing is left. */
bool view_next_item(struct view *rest, char separator, struct view *item);

/* Decimal digits only, at least one, no sign, no blanks; false also on overflow. */
bool view_to_uint64(struct view text, uint64_t *number);

/* A NUL-terminated copy that the caller frees; NULL when memory is out. */
char *view_dup(struct view text);

#endif
