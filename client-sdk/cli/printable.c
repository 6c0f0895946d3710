/* printable.c - see printable.h. */
#include "client-sdk/cli/printable.h"

#include <stdint.h>
#include <string.h>

/* How many bytes the character at `at` takes, and what it is; 0: no UTF-8 (RFC 3629). */
static size_t character_at(const unsigned char *at, size_t left, uint32_t *character)
{
    static const struct {
        uint32_t least;
        unsigned char mask, lead, len;
    } kinds[] = { { 0, 0x80, 0x00, 1 }, { 0x80, 0xE0, 0xC0, 2 }, { 0x800, 0xF0, 0xE0, 3 }, { 0x10000, 0xF8, 0xF0, 4 } };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if ((at[0] & kinds[k].mask) != kinds[k].lead || left < kinds[k].len) {
            continue;
        }
        *character = at[0] & (unsigned char) ~kinds[k].mask;
        for (size_t i = 1; i < kinds[k].len; i++) {
            if ((at[i] & 0xC0) != 0x80) {
                return 0;
            }
            *character = *character << 6 | (at[i] & 0x3FU);
        }
        bool surrogate = *character >= 0xD800 && *character <= 0xDFFF;
        return *character >= kinds[k].least && *character <= 0x10FFFF && !surrogate ? kinds[k].len : 0;
    }
    return 0;
}

static bool is_harmless(uint32_t character, bool lines)
{
    if (character < 0x20) {
        return lines && (character == '\n' || character == '\t');
    }
    bool control = character >= 0x7F && character <= 0x9F;
    bool direction = character == 0x061C || character == 0x200E || character == 0x200F ||
                     (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
    return !control && !direction;
}

void printable_clean(char *text, size_t len, bool lines)
{
    for (size_t at = 0; at < len;) {
        uint32_t character = 0;
        size_t size = character_at((const unsigned char *) text + at, len - at, &character);
        if (size == 0 || !is_harmless(character, lines)) {
            size = size == 0 ? 1 : size;
            bool line_end = lines && size == 1 && text[at] == '\r' && at + 1 < len && text[at + 1] == '\n';
            memset(text + at, line_end ? ' ' : '?', size);
        }
        at += size;
    }
}

const char *printable_copy(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size) {
        len = size - 1;
    }
    memcpy(out, text, len);
    out[len] = '\0';
    printable_clean(out, len, false);
    return out;
}
