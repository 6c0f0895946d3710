/* view.c - comparing, trimming and reading pieces of text. ASCII only, no locale. Owns nothing. Any thread. */
#include "common/view.h"

#include <stdlib.h>
#include <string.h>

struct view view_make(const char *ptr, size_t len)
{
    return (struct view){ ptr, len };
}

struct view view_of(const char *text)
{
    return text == NULL ? (struct view){ NULL, 0 } : (struct view){ text, strlen(text) };
}

/* Not tolower(): it follows the locale, and a field name must not. */
static unsigned char ascii_lower(char byte)
{
    unsigned char value = (unsigned char) byte;
    return value >= 'A' && value <= 'Z' ? (unsigned char) (value + ('a' - 'A')) : value;
}

static bool bytes_equal_nocase(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i] && ascii_lower(a[i]) != ascii_lower(b[i])) {
            return false;
        }
    }
    return true;
}

bool view_equal(struct view a, struct view b)
{
    /* memcmp must not see NULL, even for no bytes. */
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool view_equal_nocase(struct view a, struct view b)
{
    return a.len == b.len && bytes_equal_nocase(a.ptr, b.ptr, a.len);
}

bool view_starts_with(struct view text, struct view prefix)
{
    return text.len >= prefix.len && view_equal(view_make(text.ptr, prefix.len), prefix);
}

bool view_starts_with_nocase(struct view text, struct view prefix)
{
    return text.len >= prefix.len && bytes_equal_nocase(text.ptr, prefix.ptr, prefix.len);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct view view_trim(struct view text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.ptr[text.len - 1])) {
        text.len--;
    }
    return text;
}

bool view_next_item(struct view *rest, char separator, struct view *item)
{
    while (rest->len > 0) {
        const char *end = memchr(rest->ptr, separator, rest->len);
        size_t taken = end == NULL ? rest->len : (size_t) (end - rest->ptr);
        struct view found = view_trim(view_make(rest->ptr, taken));
        size_t skipped = end == NULL ? taken : taken + 1;
        rest->ptr += skipped;
        rest->len -= skipped;
        if (found.len > 0) {
            *item = found;
            return true;
        }
    }
    return false;
}

bool view_to_uint64(struct view text, uint64_t *number)
{
    if (text.len == 0) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t) (text.ptr[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

char *view_dup(struct view text)
{
    char *copy = malloc(text.len + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}
