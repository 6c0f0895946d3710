/* response_feed.h - feeds a response to the reader in pieces and notes what comes out.
 *
 * Every piece lies in memory of its own size, gone after it was fed: a sanitizer sees a read behind it and a view kept too
 * long. */
#ifndef NONBIS_TESTS_UNIT_HTTP_RESPONSE_FEED_H
#define NONBIS_TESTS_UNIT_HTTP_RESPONSE_FEED_H

#include "server/http/response_reader.h"

enum { FEED_HEAD_MAX = 400, FEED_BODY_MAX = 2048, FEED_HEAD_REQUEST = 1, FEED_ALLOW_CLOSE = 2 };

/* What came out of one response. */
struct response_seen {
    bool head;
    int status;
    enum response_framing framing;
    bool has_length;
    uint64_t length;
    bool keep_alive;
    int64_t keep_alive_timeout_ms;
    char fields[FEED_BODY_MAX], body[FEED_BODY_MAX];
    size_t fields_len, body_len;
    enum response_event last;  /* MORE: the input ended before the response did */
    enum response_event close; /* what close() said then; MORE when it was not asked */
    enum response_fault fault;
    size_t taken; /* bytes */
};

/* Feeds all of `bytes` up to the end or a fault, else closes. `piece(context, left)` says how long the next piece is. */
struct response_seen response_feed(struct view bytes, int flags, size_t (*piece)(void *context, size_t left),
                                   void *context);

size_t feed_whole(void *context, size_t left);
size_t feed_byte(void *context, size_t left);
size_t feed_first(void *context, size_t left);  /* `context`: size_t, length of the first of two pieces */
size_t feed_random(void *context, size_t left); /* `context`: struct suite_random */

#endif
