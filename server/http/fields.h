/* fields.h - which fields go on, which are stored, which are replayed (docs/contract.md sections 1, 6, 10;
 * RFC 9110 section 7.6). The lists are data at the top of fields.c. Pure. Any thread. */
#ifndef NONBIS_SERVER_HTTP_FIELDS_H
#define NONBIS_SERVER_HTTP_FIELDS_H

#include "server/http/headers.h"

/* What nonbis adds to a request on its way to the handler. */
struct fields_added {
    struct view via_name;    /* pseudonym of this nonbis; written as "1.1 NAME" behind the Via it received */
    struct view client_addr; /* X-Forwarded-For */
    struct view proto;       /* X-Forwarded-Proto: "http" */
    struct view host;        /* X-Forwarded-Host */
    struct view command_id;  /* 32 hex digits; empty: not a command, neither field is added */
    uint32_t execution;      /* 1, 2, ... */
};

/* Appends "Name: value\r\n" for every field of the request that goes to the handler: end-to-end ones as received
 * (Host, Idempotency-Key, trace fields byte for byte), without hop-by-hop ones and those that Connection names,
 * Content-Length, Expect, Nonbis-*, and incoming X-Forwarded-*; then what nonbis adds.
 * Framing is not written here. */
void fields_to_handler(struct header_span request, const struct fields_added *added, struct buf *out);

/* True when a Via field of the request names `via_name`: a loop (508). */
bool fields_has_loop(struct header_span request, struct view via_name);

/* Upstream response -> first client: end-to-end fields in order, without hop-by-hop, framing,
 * Idempotency-Status, Idempotent-Replayed, Idempotency-Expires, Nonbis-*. Empty values are left out. */
void fields_to_client(struct view response_block, struct buf *out);

/* What is kept for replays: as fields_to_client, further without Date (a fresh one is written), Age, Set-Cookie, WWW-Authenticate,
 * Proxy-*, Retry-After, RateLimit*, Server-Timing and the route's `drop` names (comma separated list). */
void fields_to_keep(struct view response_block, struct view drop, struct buf *out);

/* The handler's word in Nonbis-Outcome (section 6): case-insensitive, other words ignored, contradicting ones
 * are FIELDS_WORD_UNKNOWN. */
enum fields_word { FIELDS_WORD_NONE, FIELDS_WORD_COMPLETED, FIELDS_WORD_NOT_EXECUTED, FIELDS_WORD_UNKNOWN };
enum fields_word fields_handler_word(struct view response_block);

#endif
