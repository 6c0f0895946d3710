/* layout.c - fuzzes server/edge/request_layout.c. The input is a request head as it came over the wire, from the method on.
 *
 * It is parsed here in place as libmicrohttpd 0.9.75 does it (docs/facts.md 8 and 54): LF or CR LF ends a line, NUL ends a text, a folded
 * line is glued to the name before it, which moves, and an empty name ends the head. Of a head that is then called exact, a strict reader must
 * see the same pieces: method, target, version, every field, and the same end. What leaves the same NULs cannot be told: NUL LF for the CR LF
 * of a line, and eleven spellings of the end of the head. The strict reader forgives those and no other. */
#include "server/edge/inside.h"

#include "tests/proof/fuzz/fuzz.h"

enum { FIELDS_MAX = 64, HEAD_MAX = 4096 };

/* --- a lax parser, in place ----------------------------------------------------------------------------------------------------------- */

struct lax {
    char *at, *end;
    struct header fields[FIELDS_MAX];
    size_t count;
    char moved[2 * HEAD_MAX]; /* where glued names go */
    size_t moved_len;
};

/* The next line, its end made NUL; NULL when it has none. */
static char *lax_line(struct lax *lax)
{
    char *line = lax->at, *feed = memchr(line, '\n', (size_t) (lax->end - line));
    if (feed == NULL) {
        return NULL;
    }
    if (feed > line && feed[-1] == '\r') {
        feed[-1] = '\0';
    }
    *feed = '\0';
    lax->at = feed + 1;
    return line;
}

static bool lax_request_line(struct lax *lax, struct edge_head *head)
{
    char *line = lax_line(lax);
    if (line == NULL) {
        return false;
    }
    size_t len = (size_t) (lax->at - line) - 1;
    char *target = memchr(line, ' ', len);
    if (target == NULL) {
        return false;
    }
    *target++ = '\0';
    char *version = memchr(target, ' ', len - (size_t) (target - line));
    for (char *next = version; next != NULL;) { /* the last blank counts */
        next = memchr(version + 1, ' ', len - (size_t) (version + 1 - line));
        version = next != NULL ? next : version;
    }
    if (version == NULL) {
        return false;
    }
    *version++ = '\0';
    head->method = view_of(line);
    head->target = view_of(target);
    head->version = view_of(version);
    return true;
}

/* A line that begins with a blank continues the one before it, whose text ends at its first NUL: the name. */
static void lax_glue(struct lax *lax, const char *line)
{
    struct header *last = &lax->fields[lax->count - 1];
    size_t len = strlen(line);
    char *place = lax->moved + lax->moved_len;
    if (lax->moved_len + last->name.len + len < sizeof(lax->moved)) {
        memcpy(place, last->name.ptr, last->name.len);
        memcpy(place + last->name.len, line, len);
        last->name = view_make(place, last->name.len + len);
        lax->moved_len += last->name.len;
    }
}

/* True: the head has ended. */
static bool lax_fields(struct lax *lax)
{
    for (char *line; (line = lax_line(lax)) != NULL && lax->count < FIELDS_MAX;) {
        if (line[0] == '\0') {
            return true;
        }
        if (lax->count > 0 && (line[0] == ' ' || line[0] == '\t')) {
            lax_glue(lax, line);
            continue;
        }
        char *colon = strchr(line, ':');
        if (colon == NULL) {
            return false;
        }
        *colon++ = '\0';
        if (line[0] == '\0') {
            return true; /* an empty name, seen only now: also the end */
        }
        colon += strspn(colon, " \t");
        lax->fields[lax->count++] = (struct header){ view_of(line), view_trim(view_of(colon)) };
    }
    return false;
}

/* --- a strict reader, of the bytes as they came ----------------------------------------------------------------------------------------- */

static bool strict_take(struct view *rest, struct view text)
{
    if (!view_starts_with(*rest, text)) {
        return false;
    }
    *rest = view_make(rest->ptr + text.len, rest->len - text.len);
    return true;
}

static bool strict_end(struct view *rest)
{
    return strict_take(rest, VIEW("\r\n")) || strict_take(rest, view_make("\0\n", 2));
}

static void strict_blanks(struct view *rest)
{
    while (rest->len > 0 && (rest->ptr[0] == ' ' || rest->ptr[0] == '\t')) {
        *rest = view_make(rest->ptr + 1, rest->len - 1);
    }
}

/* The end of the last line, and the empty one: four bytes. Beside the first of these, what leaves the same four NULs; measured against
 * libmicrohttpd 0.9.75 with every text of up to five bytes out of NUL, CR, LF, colon and blank. */
static bool strict_end_of_head(struct view *rest)
{
    static const char ends[][5] = { "\r\n\r\n", "\r\n\0\n", "\r\n:\n",  "\0\n\r\n", "\0\n\0\n", "\0\n:\n",
                                    "\0\0\n\n", "\0\r\n\n", "\n\0\0\n", "\n\0\r\n", "\n:\0\n",  "\n:\r\n" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strict_take(rest, view_make(ends[i], 4))) {
            return true;
        }
    }
    return false;
}

static bool strict_is(struct view raw, const struct edge_head *head, struct view raw_target)
{
    struct view rest = raw;
    bool same = strict_take(&rest, head->method) && strict_take(&rest, VIEW(" ")) && strict_take(&rest, raw_target) &&
                strict_take(&rest, VIEW(" ")) && strict_take(&rest, head->version);
    for (size_t i = 0; i < head->headers.count && same; i++) {
        same = strict_end(&rest) && strict_take(&rest, head->headers.items[i].name) && strict_take(&rest, VIEW(":"));
        strict_blanks(&rest);
        same = same && strict_take(&rest, head->headers.items[i].value);
        strict_blanks(&rest);
    }
    return same && strict_end_of_head(&rest) && rest.len == 0;
}

FUZZ_TARGET(layout)
{
    static struct lax lax;
    static struct edge_request request;
    char *text = fuzz_text(input), *raw = fuzz_text(input);
    lax = (struct lax){ .at = text, .end = text + input.len };
    request.head = (struct edge_head){ .peer_is_loopback = false };
    bool exact = false;
    if (input.len <= HEAD_MAX && lax_request_line(&lax, &request.head) && lax_fields(&lax)) {
        size_t size = (size_t) (lax.at - text);
        request.head.headers = (struct header_span){ lax.fields, lax.count };
        exact = request_layout_is_exact(&request, size);
        /* The target was copied before it was decoded in place: here it is decoded to nothing shorter, so it lies where it lay. */
        MUST(!exact || strict_is(view_make(raw, size), &request.head, request.head.target));
    }
    free(text);
    free(raw);
    return exact;
}
