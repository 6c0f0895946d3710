/* headers.c - looking up fields, in spans and in blocks. Owns nothing. Any thread. */
#include "server/http/headers.h"

#include <string.h>

size_t headers_count(struct header_span headers, struct view name, struct view *first)
{
    size_t count = 0;
    for (size_t i = 0; i < headers.count; i++) {
        if (!header_name_is(headers.items[i].name, name)) {
            continue;
        }
        if (count++ == 0) {
            *first = headers.items[i].value;
        }
    }
    return count;
}

bool field_block_next(struct view *block, struct header *field)
{
    if (block->len == 0) {
        return false;
    }
    /* Blocks are made by field_block_add alone, so both marks are there; a damaged one (a store that was tampered
     * with) ends early instead of being read past its end. */
    const char *end = memchr(block->ptr, '\r', block->len);
    const char *colon = end == NULL ? NULL : memchr(block->ptr, ':', (size_t) (end - block->ptr));
    if (colon == NULL) {
        *block = view_make(block->ptr + block->len, 0);
        return false;
    }
    field->name = view_make(block->ptr, (size_t) (colon - block->ptr));
    field->value = view_trim(view_make(colon + 1, (size_t) (end - colon - 1)));
    size_t taken = (size_t) (end - block->ptr) + 2;
    if (taken > block->len) {
        taken = block->len;
    }
    block->ptr += taken;
    block->len -= taken;
    return true;
}

bool field_block_find(struct view block, struct view name, struct view *value)
{
    struct header field;
    while (field_block_next(&block, &field)) {
        if (header_name_is(field.name, name)) {
            *value = field.value;
            return true;
        }
    }
    return false;
}

size_t field_block_count(struct view block, struct view name)
{
    size_t count = 0;
    struct header field;
    while (field_block_next(&block, &field)) {
        count += header_name_is(field.name, name);
    }
    return count;
}

void field_block_add(struct buf *block, struct view name, struct view value)
{
    char *place = buf_reserve(block, name.len + value.len + 4);
    if (place == NULL) {
        return;
    }
    if (name.len > 0) {
        memcpy(place, name.ptr, name.len);
    }
    memcpy(place + name.len, ": ", 2);
    if (value.len > 0) {
        memcpy(place + name.len + 2, value.ptr, value.len);
    }
    memcpy(place + name.len + 2 + value.len, "\r\n", 2);
    block->len += name.len + value.len + 4;
}

/* tchar of RFC 9110 section 5.6.2, as a bit per byte: 1 where the byte may stand in a token. */
static const bool token_bytes[256] = {
    ['!'] = true, ['#'] = true, ['$'] = true, ['%'] = true, ['&'] = true, ['\''] = true, ['*'] = true, ['+'] = true,
    ['-'] = true, ['.'] = true, ['^'] = true, ['_'] = true, ['`'] = true, ['|'] = true,  ['~'] = true, ['0'] = true,
    ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true,  ['7'] = true, ['8'] = true,
    ['9'] = true, ['A'] = true, ['B'] = true, ['C'] = true, ['D'] = true, ['E'] = true,  ['F'] = true, ['G'] = true,
    ['H'] = true, ['I'] = true, ['J'] = true, ['K'] = true, ['L'] = true, ['M'] = true,  ['N'] = true, ['O'] = true,
    ['P'] = true, ['Q'] = true, ['R'] = true, ['S'] = true, ['T'] = true, ['U'] = true,  ['V'] = true, ['W'] = true,
    ['X'] = true, ['Y'] = true, ['Z'] = true, ['a'] = true, ['b'] = true, ['c'] = true,  ['d'] = true, ['e'] = true,
    ['f'] = true, ['g'] = true, ['h'] = true, ['i'] = true, ['j'] = true, ['k'] = true,  ['l'] = true, ['m'] = true,
    ['n'] = true, ['o'] = true, ['p'] = true, ['q'] = true, ['r'] = true, ['s'] = true,  ['t'] = true, ['u'] = true,
    ['v'] = true, ['w'] = true, ['x'] = true, ['y'] = true, ['z'] = true,
};

bool header_is_token(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!token_bytes[(unsigned char) text.ptr[i]]) {
            return false;
        }
    }
    return text.len > 0;
}

bool header_value_is_clean(struct view value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char) value.ptr[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F) {
            return false;
        }
    }
    return true;
}
