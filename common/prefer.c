/* prefer.c - see prefer.h. The grammar (RFC 7240 section 2, in a list as of RFC 9110 section 5.6.1), with blanks between any two parts:
 *
 *   Prefer     = [ preference ] *( "," [ preference ] )
 *   preference = token [ "=" word ] *( ";" [ parameter ] )
 *   word       = token / quoted-string
 *
 * A preference is a wish, and one that is malformed is no wish: nothing here is an error. What cannot be read is passed over up to the comma
 * that ends it; a comma inside a quoted string ends nothing, and behind a quote that is never closed nothing can be told apart. */
#include "common/prefer.h"

static struct view behind(struct view text, size_t len)
{
    return view_make(text.ptr + len, text.len - len);
}

/* Cuts the next element off the list, trimmed; it may be empty. False when nothing is left that has an end. */
static bool next_element(struct view *rest, struct view *element)
{
    bool quoted = false;
    size_t at = 0;
    while (at < rest->len && (quoted || rest->ptr[at] != ',')) {
        if (rest->ptr[at] == '"') {
            quoted = !quoted;
        } else if (quoted && rest->ptr[at] == '\\' && at + 1 < rest->len) {
            at++;
        }
        at++;
    }
    if (rest->len == 0 || quoted) {
        return false;
    }
    *element = view_trim(view_make(rest->ptr, at));
    *rest = behind(*rest, at < rest->len ? at + 1 : at);
    return true;
}

/* Reads digits, at least one, and leaves what follows them. In a quoted string a backslash may stand before each. */
static bool read_number(struct view *text, bool quoted, int64_t *number)
{
    bool any = false;
    *number = 0;
    while (text->len > 0) {
        size_t at = quoted && text->ptr[0] == '\\' ? 1 : 0;
        if (at == text->len || text->ptr[at] < '0' || text->ptr[at] > '9') {
            break;
        }
        int64_t digit = text->ptr[at] - '0';
        *number = *number > (INT64_MAX - digit) / 10 ? INT64_MAX : *number * 10 + digit;
        *text = behind(*text, at + 1);
        any = true;
    }
    return any;
}

/* wait = digits, or wait = "digits"; then the end, or parameters, which mean nothing here. */
static bool element_is_wait(struct view element, int64_t *wait_s)
{
    const struct view name = VIEW("wait");
    if (!view_starts_with_nocase(element, name)) {
        return false;
    }
    struct view text = view_trim(behind(element, name.len));
    if (text.len == 0 || text.ptr[0] != '=') {
        return false; /* another name that begins so, or no value */
    }
    text = view_trim(behind(text, 1));
    bool quoted = text.len > 0 && text.ptr[0] == '"';
    if (quoted) {
        text = behind(text, 1);
    }
    if (!read_number(&text, quoted, wait_s)) {
        return false;
    }
    if (quoted) {
        if (text.len == 0 || text.ptr[0] != '"') {
            return false;
        }
        text = behind(text, 1);
    }
    text = view_trim(text);
    return text.len == 0 || text.ptr[0] == ';';
}

enum prefer_found prefer_read_wait(struct view value, int64_t *wait_s)
{
    struct view element;
    while (next_element(&value, &element)) {
        int64_t found_s;
        if (element_is_wait(element, &found_s)) {
            *wait_s = found_s;
            return PREFER_WAIT;
        }
    }
    return PREFER_NONE;
}
