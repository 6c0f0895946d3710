/* request_writer.h - the head of a request to the handler as bytes (RFC 9112). Pure. Any thread. */
#ifndef NONBIS_SERVER_HTTP_REQUEST_WRITER_H
#define NONBIS_SERVER_HTTP_REQUEST_WRITER_H

#include "common/buf.h"
#include "common/view.h"

enum request_framing {
    REQUEST_NO_BODY, /* neither Content-Length nor chunked */
    REQUEST_LENGTH,
    REQUEST_CHUNKED
};

/* Appends request line, `fields` (a field block from fields_to_handler), framing, blank line.
 * Always HTTP/1.1 and no Connection field: the connection stays open unless the upstream ends it.
 * Returns false, with `out` untouched, when method or target hold a blank or a control byte: nothing may be sent then. */
bool request_write_head(struct buf *out, struct view method, struct view origin_target, struct view fields,
                        enum request_framing framing, uint64_t length);

/* Appends one chunk ("5\r\nhello\r\n"); an empty one is not written. */
void request_write_chunk(struct buf *out, struct view bytes);
void request_write_last_chunk(struct buf *out);

#endif
