/* response_head.h - the lines of a response, one at a time: grammar only, for response_reader.c alone.
 * A line comes without its CRLF. Pure. Any thread. */
#ifndef NONBIS_SERVER_HTTP_RESPONSE_HEAD_H
#define NONBIS_SERVER_HTTP_RESPONSE_HEAD_H

#include "server/http/response_reader.h"

/* "HTTP/1.x SP 3DIGIT SP [ reason ]" (RFC 9112 section 4), x any digit, status 100 to 999. */
bool response_head_read_status(struct view line, int *status, int *minor_version);

/* "name: value" (RFC 9112 section 5): token directly before the colon, so no folded line; clean value, trimmed. */
bool response_head_read_field(struct view line, struct header *field);

/* "1a" and any extension behind ';' (RFC 9112 section 7.1): 1 to 16 hex digits. */
bool response_head_read_chunk_size(struct view line, uint64_t *size);

/* At the end of a final head: framing, length and keep_alive from status and fields (RFC 9112 sections 6.3 and 9.3).
 * `reader->keep_alive` says on entry whether the version is HTTP/1.1 or later. False: two framings, two lengths, or
 * another coding than chunked alone. */
bool response_head_settle_framing(struct response_reader *reader);

#endif
