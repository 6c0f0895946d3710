/* request_writer.c - request line, framing and chunks as bytes. Fields come as a checked block; method and target are
 * checked here once more, since a blank in either would make another request of it. Owns nothing. Any thread. */
#include "server/http/request_writer.h"

/* No blank and no control byte, and not empty. */
static bool is_one_word(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char) text.ptr[i];
        if (byte <= 0x20 || byte == 0x7F) {
            return false;
        }
    }
    return text.len > 0;
}

bool request_write_head(struct buf *out, struct view method, struct view origin_target, struct view fields,
                        enum request_framing framing, uint64_t length)
{
    if (!is_one_word(method) || !is_one_word(origin_target)) {
        return false;
    }
    buf_append(out, method);
    buf_append(out, VIEW(" "));
    buf_append(out, origin_target);
    buf_append(out, VIEW(" HTTP/1.1\r\n"));
    buf_append(out, fields);
    if (framing == REQUEST_LENGTH) {
        buf_append(out, VIEW("Content-Length: "));
        buf_append_uint(out, length);
        buf_append(out, VIEW("\r\n"));
    } else if (framing == REQUEST_CHUNKED) {
        buf_append(out, VIEW("Transfer-Encoding: chunked\r\n"));
    }
    buf_append(out, VIEW("\r\n"));
    return true;
}

void request_write_chunk(struct buf *out, struct view bytes)
{
    if (bytes.len == 0) {
        return; /* "0" would be the last chunk */
    }
    char size[2 * sizeof(size_t)];
    size_t at = sizeof(size);
    for (size_t rest = bytes.len; rest > 0; rest >>= 4) {
        size[--at] = "0123456789abcdef"[rest & 15];
    }
    buf_append_bytes(out, size + at, sizeof(size) - at);
    buf_append(out, VIEW("\r\n"));
    buf_append(out, bytes);
    buf_append(out, VIEW("\r\n"));
}

void request_write_last_chunk(struct buf *out)
{
    buf_append(out, VIEW("0\r\n\r\n"));
}
