/* request_layout.c - whether libmicrohttpd has shown every byte of a request head. Owns nothing. The loop's thread.
 *
 * libmicrohttpd 0.9.75 accepts bare LF, cuts values at NUL, glues folded lines to names, and takes ":" for the end of the head
 * (docs/facts.md 8). Its values hide all that, but not where they lie: it parses in place and puts a NUL where it found a
 * blank, a colon, a CR or a LF.
 *
 *     POST . /orders . HTTP/1.1 . . Host .   a . . Content-Length . 3 . . . .
 *     ^method                       ^name    ^value                           ^ method + header size
 *
 * So in a clean head every piece begins where the one before it has ended, and the last one ends with the head. Whatever else there
 * was makes a gap, or has moved a piece: two parsers could read such a head in two ways, and it is refused (400), as it is should
 * another version of the library lay things out otherwise. What cannot be told from CR LF, because it leaves two NULs as well: NUL LF, and
 * as the empty line ":" LF; and where the last line and the empty one meet, what leaves four (tests/proof/fuzz/layout.c lists them). */
#include "server/edge/inside.h"

#include <string.h>

/* What is expected next, and where the head ends. */
struct layout {
    const char *at, *end;
};

/* A piece of text that begins here and is followed by so many NULs. Only bytes before `end` are looked at. */
static bool layout_take(struct layout *layout, struct view text, size_t zeros)
{
    if (text.ptr != layout->at || text.len + zeros > (size_t) (layout->end - layout->at)) {
        return false;
    }
    layout->at += text.len;
    for (; zeros > 0; zeros--) {
        if (*layout->at++ != '\0') {
            return false;
        }
    }
    return true;
}

static size_t layout_skip_blanks(struct layout *layout)
{
    const char *from = layout->at;
    while (layout->at < layout->end && (*layout->at == ' ' || *layout->at == '\t')) {
        layout->at++;
    }
    return (size_t) (layout->at - from);
}

static bool layout_take_field(struct layout *layout, const struct header *field)
{
    if (!layout_take(layout, field->name, 1)) {
        return false;
    }
    (void) layout_skip_blanks(layout);
    if (!layout_take(layout, field->value, 0)) {
        return false;
    }
    /* The blanks at the end are cut off for us, but libmicrohttpd compares with them: "chunked " would not be chunked. */
    return (layout_skip_blanks(layout) == 0 || !view_equal_nocase(field->name, VIEW("Transfer-Encoding"))) &&
           layout_take(layout, view_make(layout->at, 0), 2);
}

bool request_layout_is_exact(const struct edge_request *request, size_t head_size)
{
    const struct edge_head *head = &request->head;
    struct layout layout = { head->method.ptr, head->method.ptr + head_size };
    /* The target was decoded where it lies, after it had been copied: only its length can be compared. */
    struct view target = view_make(head->method.ptr + head->method.len + 1, head->target.len);
    bool exact = head->method.len + 1 + target.len + 1 < head_size && layout_take(&layout, head->method, 1) &&
                 layout_take(&layout, target, 1) && layout_take(&layout, head->version, 2);
    for (size_t i = 0; i < head->headers.count && exact; i++) {
        exact = layout_take_field(&layout, &head->headers.items[i]);
    }
    return exact && layout_take(&layout, view_make(layout.at, 0), 2) && layout.at == layout.end;
}
