/* response_head.c - status line, field lines, chunk sizes, and what a whole head says of its body. Owns nothing.
 * Any thread. */
#include "server/http/response_head.h"

#define KEEP_ALIVE_MAX_S UINT64_C(86400) /* a day: more says no more */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

bool response_head_read_status(struct view line, int *status, int *minor_version)
{
    enum { FIXED = 12 }; /* "HTTP/1.1 200"; the blank before an absent reason is left out by some, and means nothing */
    const char *text = line.ptr;
    if (line.len < FIXED || !view_starts_with(line, VIEW("HTTP/1.")) || !is_digit(text[7]) || text[8] != ' ' ||
        !is_digit(text[9]) || !is_digit(text[10]) || !is_digit(text[11]) || (line.len > FIXED && text[FIXED] != ' ')) {
        return false;
    }
    *minor_version = text[7] - '0';
    *status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
    return *status >= 100 && header_value_is_clean(view_make(text + FIXED, line.len - FIXED));
}

bool response_head_read_field(struct view line, struct header *field)
{
    size_t colon = 0;
    while (colon < line.len && line.ptr[colon] != ':') {
        colon++;
    }
    if (colon == line.len) {
        return false;
    }
    field->name = view_make(line.ptr, colon);
    field->value = view_trim(view_make(line.ptr + colon + 1, line.len - colon - 1));
    return header_is_token(field->name) && header_value_is_clean(field->value);
}

static int hex_value(char byte)
{
    if (is_digit(byte)) {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

bool response_head_read_chunk_size(struct view line, uint64_t *size)
{
    enum { DIGITS_MAX = 16 }; /* 64 bits: no more digits, even zeros, so that it cannot overflow */
    uint64_t value = 0;
    size_t digits = 0;
    while (digits < line.len && hex_value(line.ptr[digits]) >= 0) {
        if (digits == DIGITS_MAX) {
            return false;
        }
        value = value << 4 | (uint64_t) hex_value(line.ptr[digits]);
        digits++;
    }
    struct view extension = view_trim(view_make(line.ptr + digits, line.len - digits));
    bool nothing_behind = digits == line.len;
    if (digits == 0 || (!nothing_behind && (extension.len == 0 || extension.ptr[0] != ';'))) {
        return false;
    }
    *size = value;
    return header_value_is_clean(extension);
}

/* What the framing fields of a head say. */
struct framing_fields {
    size_t lengths, codings;
    struct view length, coding;
};

static void read_connection(struct response_reader *reader, struct view value)
{
    struct view item;
    while (view_next_item(&value, ',', &item)) {
        if (view_equal_nocase(item, VIEW("close"))) {
            reader->keep_alive = false;
        }
    }
}

static void read_keep_alive(struct response_reader *reader, struct view value)
{
    struct view item, name = VIEW("timeout=");
    while (view_next_item(&value, ',', &item)) {
        uint64_t seconds = 0;
        if (view_starts_with_nocase(item, name) &&
            view_to_uint64(view_make(item.ptr + name.len, item.len - name.len), &seconds)) {
            seconds = seconds > KEEP_ALIVE_MAX_S ? KEEP_ALIVE_MAX_S : seconds;
            reader->keep_alive_timeout_ms = (int64_t) seconds * 1000;
        }
    }
}

static struct framing_fields collect(struct response_reader *reader)
{
    struct framing_fields found = { .lengths = 0 };
    struct view rest = buf_view(&reader->fields);
    struct header field;
    while (field_block_next(&rest, &field)) {
        if (header_name_is(field.name, VIEW("Content-Length"))) {
            found.lengths++;
            found.length = field.value;
        } else if (header_name_is(field.name, VIEW("Transfer-Encoding"))) {
            found.codings++;
            found.coding = field.value;
        } else if (header_name_is(field.name, VIEW("Connection"))) {
            read_connection(reader, field.value);
        } else if (header_name_is(field.name, VIEW("Keep-Alive"))) {
            read_keep_alive(reader, field.value);
        }
    }
    return found;
}

bool response_head_settle_framing(struct response_reader *reader)
{
    bool version_1_0 = !reader->keep_alive;
    struct framing_fields found = collect(reader);
    if (found.lengths + found.codings > 1 || (found.codings > 0 && version_1_0)) {
        return false;
    }
    /* Two equal lengths, also as "3, 3", are refused too: a handler that counts twice is not to be believed. */
    if (found.lengths > 0 && !view_to_uint64(found.length, &reader->length)) {
        return false;
    }
    if (found.codings > 0 && !view_equal_nocase(found.coding, VIEW("chunked"))) {
        return false;
    }
    reader->has_length = found.lengths > 0;
    if (reader->head_request || reader->status == 204 || reader->status == 304) {
        reader->framing = RESPONSE_FRAMING_NONE;
        /* A 204 may have no framing at all (RFC 9110 section 8.6): one that announces a body may send it, and
         * those bytes must not meet the next request. */
        if (reader->status == 204 && (found.codings > 0 || reader->length > 0) && !reader->head_request) {
            reader->keep_alive = false;
        }
    } else if (found.codings > 0) {
        reader->framing = RESPONSE_FRAMING_CHUNKED;
    } else if (found.lengths > 0) {
        reader->framing = RESPONSE_FRAMING_LENGTH;
    } else {
        reader->framing = RESPONSE_FRAMING_CLOSE;
        reader->keep_alive = false;
    }
    return true;
}
