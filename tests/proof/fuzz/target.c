/* target.c - fuzzes server/http/target.c. The input is three lines: the Host field, the request target, a pattern as routes have it.
 *
 * What is taken lies within what was given and holds no byte that would end the request line. A path has one normal form, however it is
 * spelled: encoded as a whole, with doubled slashes, with one at its end; the normal form is its own normal form; what it decodes to is what
 * the path decodes to. A path that a handler may read in two ways is marked, and its resolved form has no dot segment left. */
#include "server/http/target.h"

#include "tests/proof/fuzz/fuzz.h"

static int hex_of(char digit)
{
    const char *all = "0123456789abcdef0123456789ABCDEF", *found = digit == '\0' ? NULL : strchr(all, digit);
    return found == NULL ? -1 : (int) ((found - all) % 16);
}

/* Every %XX decoded once, slashes merged, the last one dropped. */
static void decode(struct view path, struct buf *out)
{
    for (size_t i = 0; i < path.len; i++) {
        char byte = path.ptr[i];
        if (byte == '%' && path.len - i > 2) {
            byte = (char) (hex_of(path.ptr[i + 1]) * 16 + hex_of(path.ptr[i + 2]));
            i += 2;
        }
        if (byte != '/' || out->len == 0 || out->ptr[out->len - 1] != '/') {
            buf_append_bytes(out, &byte, 1);
        }
    }
    out->len -= out->len > 1 && out->ptr[out->len - 1] == '/';
}

static bool is_letter_or_digit(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* The same path, spelled as nobody spells it. What is encoded already stays; hex digits change their case. */
static void respell(struct view path, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < path.len; i++) {
        char byte = path.ptr[i];
        if (byte == '%') {
            buf_append_bytes(out, path.ptr + i, 1);
            for (int j = 1; j <= 2; j++) {
                buf_append_bytes(out, &digits[hex_of(path.ptr[i + (size_t) j])], 1);
            }
            i += 2;
        } else if (is_letter_or_digit(byte) || byte == '.' || byte == '~' || byte == '-' || byte == '_') {
            buf_printf(out, "%%%02x", (unsigned) byte);
        } else {
            buf_append_bytes(out, &byte, 1);
            buf_append_text(out, byte == '/' ? "//" : "");
        }
    }
    buf_append_text(out, "/");
}

static bool has_dot_segment(struct view path)
{
    for (size_t from = 0, at = 0; at <= path.len; at++) {
        if (at == path.len || path.ptr[at] == '/') {
            struct view segment = view_make(path.ptr + from, at - from);
            if (view_equal(segment, VIEW(".")) || view_equal(segment, VIEW(".."))) {
                return true;
            }
            from = at + 1;
        }
    }
    return false;
}

static void is_tidy(struct view path)
{
    MUST(path.len > 0 && path.ptr[0] == '/' && (path.len == 1 || path.ptr[path.len - 1] != '/'));
    for (size_t i = 0; i + 1 < path.len; i++) {
        MUST(path.ptr[i] != '/' || path.ptr[i + 1] != '/');
    }
}

static void normal_must_hold(struct view path, const struct path_form *form)
{
    struct view normal = buf_view(&form->normal);
    for (size_t i = 0; i < normal.len; i++) {
        if (normal.ptr[i] == '%') {
            MUST(normal.len - i > 2 && hex_of(normal.ptr[i + 1]) >= 0 && hex_of(normal.ptr[i + 2]) >= 0);
            char byte = (char) (hex_of(normal.ptr[i + 1]) * 16 + hex_of(normal.ptr[i + 2]));
            MUST(!is_letter_or_digit(byte) && memchr("-._~", byte, 4) == NULL);
            MUST(form->ambiguous || (byte != '/' && byte != '\0'));
            MUST((normal.ptr[i + 1] < 'a' && normal.ptr[i + 2] < 'a'));
        }
    }
    MUST(form->ambiguous || !has_dot_segment(normal));
    struct buf one, other;
    buf_init(&one, path.len);
    buf_init(&other, path.len);
    decode(path, &one);
    decode(normal, &other);
    MUST(form->ambiguous || view_equal(buf_view(&one), buf_view(&other)));
    buf_fini(&one);
    buf_fini(&other);
}

static void must_have_normal(struct view path, const struct path_form *expected)
{
    struct path_form form;
    path_form_init(&form, path);
    MUST(!form.malformed && form.ambiguous == expected->ambiguous);
    MUST(view_equal(buf_view(&form.normal), buf_view(&expected->normal)));
    MUST(view_equal(buf_view(&form.resolved), buf_view(&expected->resolved)));
    path_form_fini(&form);
}

static void path_must_hold(struct view path, struct view pattern)
{
    struct path_form form;
    path_form_init(&form, path);
    struct view normal = buf_view(&form.normal), resolved = buf_view(&form.resolved);
    MUST(normal.len <= path.len && resolved.len <= path.len);
    is_tidy(normal);
    MUST(path_matches(normal, normal) && path_matches(VIEW("/*"), normal));
    if (path_matches(pattern, normal)) {
        struct view fixed = pattern;
        fixed.len -= pattern.ptr[pattern.len - 1] == '*';
        fixed.len -= fixed.len > normal.len; /* "/x/" and a star cover "/x" */
        MUST(view_starts_with(normal, fixed));
    }
    if (!form.malformed) {
        struct buf spelled;
        buf_init(&spelled, 4 * path.len + 1);
        respell(path, &spelled);
        normal_must_hold(path, &form);
        must_have_normal(normal, &form);
        must_have_normal(buf_view(&spelled), &form);
        buf_fini(&spelled);
    }
    if (form.ambiguous) {
        is_tidy(resolved);
        MUST(!has_dot_segment(resolved));
    }
    path_form_fini(&form);
}

FUZZ_TARGET(target)
{
    struct view rest = input;
    struct view host = fuzz_line(&rest), raw = fuzz_line(&rest), pattern = fuzz_line(&rest);
    struct target target;
    enum target_result result = target_split(raw, host, &target);
    MUST(result < TARGET_RESULT_COUNT);
    if (result != TARGET_OK) {
        MUST(target.origin.len == 0 && target.path.len == 0 && target.authority.len == 0);
        return false;
    }
    MUST(fuzz_is_inside(target.origin, raw) || view_equal(target.origin, VIEW("/")));
    MUST(view_equal_nocase(target.authority, host));
    MUST(target.path.ptr == target.origin.ptr && target.path.len <= target.origin.len);
    MUST(memchr(target.path.ptr, '?', target.path.len) == NULL);
    MUST(target.path.len == target.origin.len || target.origin.ptr[target.path.len] == '?');
    for (size_t i = 0; i < target.origin.len; i++) {
        unsigned char byte = (unsigned char) target.origin.ptr[i];
        MUST(byte > 0x20 && byte != 0x7F && byte != '#');
    }
    MUST(target.origin.ptr[0] == '/' || view_equal(target.origin, VIEW("*")));
    if (target.path.ptr[0] == '/') {
        path_must_hold(target.path, pattern);
    }
    return true;
}
