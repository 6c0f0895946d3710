/* key.c - reads an Idempotency-Key value: bare, or one structured-field String (docs/contract.md section 2).
 *
 * The two spellings of a key must never be two keys, and no value may be read as "no key": whatever is not
 * clearly one key is refused here. Owns nothing. Any thread. */
#include "common/key.h"

#include <string.h>

static bool is_key_byte(char byte)
{
    return byte >= 0x21 && byte <= 0x7E;
}

/* Appends one byte; what does not fit is only counted, so that a bad byte behind it is still found. */
static void key_put(struct key *key, char byte)
{
    if (key->len < KEY_BYTES_MAX) {
        key->text[key->len] = byte;
    }
    key->len++;
}

/* sf-key of RFC 9651 section 3.1.2: the name of a parameter. */
static size_t parameter_name_length(struct view text)
{
    size_t len = 0;
    while (len < text.len) {
        char byte = text.ptr[len];
        bool first = (byte >= 'a' && byte <= 'z') || byte == '*';
        bool later = (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
        if (!first && !(later && len > 0)) {
            break;
        }
        len++;
    }
    return len;
}

/* The length of a parameter's value; 0 when it is none. Its type does not matter, only where it ends. */
static size_t parameter_value_length(struct view text)
{
    size_t at = 0;
    if (text.len > 1 && text.ptr[0] == '%' && text.ptr[1] == '"') {
        at = 1; /* a Display String (RFC 9651 section 3.3.8) */
    }
    if (text.len > at && text.ptr[at] == '"') {
        for (at++; at < text.len; at++) {
            if (text.ptr[at] == '"') {
                return at + 1;
            }
            if (text.ptr[at] == '\\') {
                at++;
            }
        }
        return 0;
    }
    while (at < text.len && is_key_byte(text.ptr[at]) && memchr("\",;", text.ptr[at], 3) == NULL) {
        at++;
    }
    return at;
}

/* *( ";" *SP name [ "=" value ] ) up to the end of the text. */
static bool parameters_are_valid(struct view text)
{
    while (text.len > 0) {
        if (text.ptr[0] != ';') {
            return false; /* a comma here would mean two keys in one line */
        }
        size_t at = 1;
        while (at < text.len && text.ptr[at] == ' ') {
            at++;
        }
        size_t name = parameter_name_length(view_make(text.ptr + at, text.len - at));
        if (name == 0) {
            return false;
        }
        at += name;
        if (at < text.len && text.ptr[at] == '=') {
            at++;
            size_t value = parameter_value_length(view_make(text.ptr + at, text.len - at));
            if (value == 0) {
                return false;
            }
            at += value;
        }
        text = view_make(text.ptr + at, text.len - at);
    }
    return true;
}

/* The text begins with a quote. */
static enum key_result parse_quoted(struct view text, struct key *key)
{
    bool bad_byte = false;
    size_t at = 1;
    while (at < text.len && text.ptr[at] != '"') {
        char byte = text.ptr[at++];
        if (byte == '\\') {
            if (at == text.len || (text.ptr[at] != '"' && text.ptr[at] != '\\')) {
                return KEY_BAD_QUOTING;
            }
            byte = text.ptr[at++];
        }
        bad_byte = bad_byte || !is_key_byte(byte);
        key_put(key, byte);
    }
    if (at == text.len || !parameters_are_valid(view_make(text.ptr + at + 1, text.len - at - 1))) {
        return KEY_BAD_QUOTING;
    }
    return bad_byte ? KEY_BAD_BYTE : KEY_OK;
}

static enum key_result parse_bare(struct view text, struct key *key)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_key_byte(text.ptr[i]) || text.ptr[i] == '"') {
            return KEY_BAD_BYTE;
        }
        key_put(key, text.ptr[i]);
    }
    return KEY_OK;
}

enum key_result key_parse(struct view field_value, struct key *key)
{
    struct view text = view_trim(field_value);
    struct key found;
    found.len = 0;
    if (text.len == 0) {
        return KEY_EMPTY;
    }
    enum key_result result = text.ptr[0] == '"' ? parse_quoted(text, &found) : parse_bare(text, &found);
    if (result != KEY_OK) {
        return result;
    }
    if (found.len == 0) {
        return KEY_EMPTY;
    }
    if (found.len > KEY_BYTES_MAX) {
        return KEY_TOO_LONG;
    }
    memcpy(key->text, found.text, found.len);
    key->text[found.len] = '\0';
    key->len = found.len;
    return KEY_OK;
}

const char *key_result_text(enum key_result result)
{
    static const char *const texts[KEY_RESULT_COUNT] = {
        [KEY_OK] = "the key is well formed",
        [KEY_EMPTY] = "the key is empty",
        [KEY_TOO_LONG] = "the key is longer than 255 bytes",
        [KEY_BAD_BYTE] = "the key holds a byte that is not visible ASCII (0x21 to 0x7E), or a quote inside a bare key",
        [KEY_BAD_QUOTING] = "the key starts with a quote and is not one structured-field String",
    };
    return result < KEY_RESULT_COUNT ? texts[result] : "the key is malformed";
}
