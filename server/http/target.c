/* target.c - takes a request target apart, and brings a path into the form that routes match. The target is forwarded
 * as received; the normal form is for comparing only. Owns nothing beyond the bufs of a path_form. Any thread. */
#include "server/http/target.h"

#include <string.h>

/* Bytes that no target may hold: blanks and controls would end the request line elsewhere, '#' begins a fragment,
 * which is never sent (RFC 9112 section 3.2). Bytes over 0x7F pass: handlers out there are sent raw UTF-8. */
static bool is_target_byte(char byte)
{
    unsigned char value = (unsigned char) byte;
    return value > 0x20 && value != 0x7F && value != '#';
}

static struct view path_of(struct view origin)
{
    const char *query = origin.len == 0 ? NULL : memchr(origin.ptr, '?', origin.len);
    return query == NULL ? origin : view_make(origin.ptr, (size_t) (query - origin.ptr));
}

/* "http://authority/path": `rest` begins behind the scheme. */
static enum target_result split_absolute(struct view rest, struct view host, struct target *out)
{
    size_t len = 0;
    while (len < rest.len && rest.ptr[len] != '/' && rest.ptr[len] != '?') {
        if (rest.ptr[len] == '@') {
            return TARGET_MALFORMED; /* a user name in a target hides the authority (RFC 9110 section 4.2.4) */
        }
        len++;
    }
    struct view authority = view_make(rest.ptr, len);
    struct view origin = view_make(rest.ptr + len, rest.len - len);
    /* An empty path is "/" (RFC 9112 section 3.2.1); with a query behind it the origin form is not a part of what
     * was received, and no client is known to send it: refused. */
    if (authority.len == 0 || (origin.len > 0 && origin.ptr[0] == '?')) {
        return TARGET_MALFORMED;
    }
    if (!view_equal_nocase(authority, host)) {
        return TARGET_OTHER_AUTHORITY;
    }
    out->origin = origin.len == 0 ? VIEW("/") : origin;
    out->path = path_of(out->origin);
    out->authority = authority;
    return TARGET_OK;
}

enum target_result target_split(struct view raw, struct view host, struct target *out)
{
    *out = (struct target){ { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
    for (size_t i = 0; i < raw.len; i++) {
        if (!is_target_byte(raw.ptr[i])) {
            return TARGET_MALFORMED;
        }
    }
    static const struct view schemes[] = { { "http://", 7 }, { "https://", 8 } };
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (view_starts_with_nocase(raw, schemes[i])) {
            return split_absolute(view_make(raw.ptr + schemes[i].len, raw.len - schemes[i].len), host, out);
        }
    }
    if (!view_equal(raw, VIEW("*")) && (raw.len == 0 || raw.ptr[0] != '/')) {
        return TARGET_MALFORMED;
    }
    out->origin = raw;
    out->path = path_of(raw);
    out->authority = host;
    return TARGET_OK;
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* RFC 3986 section 2.3. */
static bool is_unreserved(int byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* One byte of a path, slashes merged. Room was reserved for the whole path. */
static void put_byte(struct buf *out, char byte)
{
    bool doubled_slash = byte == '/' && out->len > 0 && out->ptr[out->len - 1] == '/';
    if (!doubled_slash) {
        out->ptr[out->len++] = byte;
    }
}

static void drop_last_slash(struct buf *out)
{
    if (out->len > 1 && out->ptr[out->len - 1] == '/') {
        out->len--;
    }
}

/* Fills `normal` and the flags, all but dot segments. */
static void write_normal(struct path_form *form, struct view path)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] != '%') {
            put_byte(&form->normal, path.ptr[i]);
            continue;
        }
        int high = path.len - i > 2 ? hex_value(path.ptr[i + 1]) : -1;
        int low = path.len - i > 2 ? hex_value(path.ptr[i + 2]) : -1;
        if (high < 0 || low < 0) {
            form->malformed = true;
            put_byte(&form->normal, '%');
            continue;
        }
        int byte = high * 16 + low;
        if (is_unreserved(byte)) {
            put_byte(&form->normal, (char) byte);
        } else {
            /* What stays encoded gets capital digits: %c3 and %C3 are one spelling (RFC 3986 section 6.2.2.1). */
            put_byte(&form->normal, '%');
            put_byte(&form->normal, digits[high]);
            put_byte(&form->normal, digits[low]);
        }
        form->ambiguous = form->ambiguous || byte == '/' || byte == 0;
        i += 2;
    }
    drop_last_slash(&form->normal);
}

static bool is_dot_segment(struct view segment)
{
    return view_equal(segment, VIEW(".")) || view_equal(segment, VIEW(".."));
}

/* Unlike view_next_item() this keeps blanks: a path's bytes are its own. */
static bool next_segment(struct view *rest, struct view *segment)
{
    while (rest->len > 0) {
        const char *slash = memchr(rest->ptr, '/', rest->len);
        size_t len = slash == NULL ? rest->len : (size_t) (slash - rest->ptr);
        *segment = view_make(rest->ptr, len);
        size_t taken = slash == NULL ? len : len + 1;
        *rest = view_make(rest->ptr + taken, rest->len - taken);
        if (len > 0) {
            return true;
        }
    }
    return false;
}

static bool has_dot_segment(struct view path)
{
    struct view segment;
    while (next_segment(&path, &segment)) {
        if (is_dot_segment(segment)) {
            return true;
        }
    }
    return false;
}

/* Appends a segment of the decoded path, or takes the last one away. */
static void resolve_segment(struct buf *out, struct view segment)
{
    if (view_equal(segment, VIEW("."))) {
        return;
    }
    if (view_equal(segment, VIEW(".."))) {
        while (out->len > 0 && out->ptr[--out->len] != '/') {
        }
        return;
    }
    buf_append(out, VIEW("/"));
    buf_append(out, segment);
}

/* What a handler that decodes first and resolves then would see. */
static void write_resolved(struct path_form *form)
{
    struct buf decoded;
    buf_init(&decoded, form->normal.max);
    if (buf_reserve(&decoded, form->normal.len + 1) == NULL) {
        form->malformed = true; /* memory is out: refused, never matched by halves */
        return;
    }
    for (size_t i = 0; i < form->normal.len; i++) {
        if (view_starts_with(view_make(form->normal.ptr + i, form->normal.len - i), VIEW("%2F"))) {
            put_byte(&decoded, '/');
            i += 2;
        } else {
            put_byte(&decoded, form->normal.ptr[i]);
        }
    }
    struct view rest = buf_view(&decoded), segment;
    while (next_segment(&rest, &segment)) {
        resolve_segment(&form->resolved, segment);
    }
    if (form->resolved.len == 0) {
        buf_append(&form->resolved, VIEW("/"));
    }
    form->malformed = form->malformed || form->resolved.failed;
    buf_fini(&decoded);
}

void path_form_init(struct path_form *form, struct view path)
{
    /* Neither form is longer than the path, but for a slash in front. */
    buf_init(&form->normal, path.len + 1);
    buf_init(&form->resolved, path.len + 1);
    form->ambiguous = false;
    form->malformed = false;
    if (buf_reserve(&form->normal, path.len + 1) == NULL) {
        form->malformed = true; /* memory is out: refused, since half a path could match another route */
        return;
    }
    write_normal(form, path);
    form->ambiguous = form->ambiguous || has_dot_segment(buf_view(&form->normal));
    if (form->ambiguous) {
        write_resolved(form);
    }
}

void path_form_fini(struct path_form *form)
{
    buf_fini(&form->normal);
    buf_fini(&form->resolved);
}

bool path_matches(struct view pattern, struct view normal_path)
{
    if (pattern.len == 0 || pattern.ptr[pattern.len - 1] != '*') {
        return view_equal(pattern, normal_path);
    }
    struct view prefix = view_make(pattern.ptr, pattern.len - 1);
    if (view_starts_with(normal_path, prefix)) {
        return true;
    }
    return prefix.len > 1 && prefix.ptr[prefix.len - 1] == '/' &&
           view_equal(normal_path, view_make(prefix.ptr, prefix.len - 1));
}
