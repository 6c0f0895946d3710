/* response_reader.h - reads one final HTTP/1.1 response out of bytes as they arrive (docs/contract.md section 6;
 * RFC 9112 sections 4 to 8). Bytes in, events out; no I/O, no clock. "Complete" means that the framing said so. One thread
 * at a time.
 *
 *   feed() until it says MORE; on the peer's close call close() once.
 *   1xx heads are dropped silently (101 is a fault). After END the reader takes no more bytes: what is left in
 *   `*input` is surplus and the connection must not be used again. */
#ifndef NONBIS_SERVER_HTTP_RESPONSE_READER_H
#define NONBIS_SERVER_HTTP_RESPONSE_READER_H

#include "server/http/headers.h"

enum response_event {
    RESPONSE_MORE, /* all input taken, nothing to tell */
    RESPONSE_HEAD, /* final head complete: status, fields, has_length, length are set */
    RESPONSE_BODY, /* `*body` holds body bytes (a view into the input) */
    RESPONSE_END,  /* complete */
    RESPONSE_BAD   /* see `fault`; feed nothing more */
};

enum response_fault {
    RESPONSE_FAULT_NONE,
    RESPONSE_FAULT_GARBAGE,         /* not HTTP/1.x, two framings or lengths, another coding, control byte, bad chunk */
    RESPONSE_FAULT_HEAD_TOO_LONG,   /* over head_bytes_max */
    RESPONSE_FAULT_UPGRADE,         /* 101 */
    RESPONSE_FAULT_EMPTY,           /* closed before the first byte of a final response */
    RESPONSE_FAULT_CUT,             /* closed inside head or body, or the last chunk is missing */
    RESPONSE_FAULT_CLOSE_DELIMITED, /* ended only by close, and that is not allowed */
    RESPONSE_FAULT_COUNT
};

enum response_framing {
    RESPONSE_FRAMING_NONE,
    RESPONSE_FRAMING_LENGTH,
    RESPONSE_FRAMING_CHUNKED,
    RESPONSE_FRAMING_CLOSE
};

struct response_reader {
    /* results, from HEAD on */
    int status;                    /* 200 to 999 */
    struct buf fields;             /* field block: names and values as received, trimmed */
    enum response_framing framing; /* NONE: HEAD request, 204, 304 */
    bool has_length;               /* a Content-Length was given (also on HEAD and 304, where no body follows) */
    uint64_t length;
    bool keep_alive;               /* the response allows another request on this connection */
    int64_t keep_alive_timeout_ms; /* from Keep-Alive: timeout=N; -1 when not said */
    enum response_fault fault;
    /* private */
    int state;
    bool head_request, allow_close;
    uint64_t left; /* body or chunk bytes still to come */
    size_t head_bytes, head_bytes_max;
    unsigned informational; /* 1xx seen */
    struct buf line;
};

void response_reader_init(struct response_reader *reader, bool head_request, bool allow_close_delimited,
                          size_t head_bytes_max);
void response_reader_fini(struct response_reader *reader);

/* Takes bytes from the front of `*input` up to the next event. */
enum response_event response_reader_feed(struct response_reader *reader, struct view *input, struct view *body);

/* The peer has closed: RESPONSE_END (only for an allowed close-delimited body) or RESPONSE_BAD with the fault. */
enum response_event response_reader_close(struct response_reader *reader);

const char *response_fault_text(enum response_fault fault);

#endif
