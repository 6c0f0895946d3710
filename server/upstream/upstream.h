/* upstream.h - connections to the handler and the one exchange on each (docs/contract.md section 6). Connections by http:// and unix:
 * are our own; those by https:// are made and secured by libcurl (CONNECT_ONLY), which is loaded for them alone. The bytes on all of
 * them are ours. One upstream per loop; its thread only.
 *
 * One call is one send: never repeated, whatever happens. Two lanes never share a kept connection: protected commands and
 * pass-through. A kept connection is used again only when it is young (idle_ms, or less if the handler said so), its last answer
 * was read to its end with nothing left over, and one read says AGAIN; a kept one found closed before the first byte is handed over is
 * replaced by a fresh one, once.
 *
 * Callbacks never run inside a function called here; they come from the loop. `end` is the last and comes exactly once. */
#ifndef NONBIS_SERVER_UPSTREAM_UPSTREAM_H
#define NONBIS_SERVER_UPSTREAM_UPSTREAM_H

#include "common/buf.h"
#include "server/base/loop.h"
#include "server/core/outcome.h"

#include <stdatomic.h>

struct upstream;
struct upstream_call;

enum upstream_lane { UPSTREAM_PROTECTED, UPSTREAM_PASSTHROUGH };

struct upstream_options {
    const char *url; /* http://host[:port], https://..., or unix:/path (http over it). Path, query, user: refused */
    int64_t connect_timeout_ms, idle_ms;
    size_t response_header_max;
    bool allow_close_delimited;
    atomic_bool
        *distrusted; /* shared by the loops of one server: bytes came behind a complete answer; NULL: not shared */
    atomic_bool
        *name_fails; /* shared likewise: look-ups of the handler's name fail, and the log says so; NULL: not shared */
    const char *ca_file; /* PEM file of the authorities that an https handler is checked against; NULL: the system's */
    const char
        *curl_library; /* for https: the file of libcurl, or what the loader finds by that name; NULL: the system's */
};

struct upstream_figures {
    uint64_t connects, reuses, sent; /* sent: calls whose first byte was handed over */
    uint64_t kept;                   /* now */
};

/* What a URL means, without connecting. False and a sentence when it does not parse. */
struct upstream_target {
    char scheme[8], host[256];
    unsigned port; /* 0 for unix */
};
bool upstream_parse_url(const char *url, struct upstream_target *target, struct buf *error);
/* Loads what reaching it takes: libcurl for https. False and a sentence when that cannot be had: upstream_open would say the same.
 * curl_library: as in the options. At start: one thread at a time. */
bool upstream_prepare(const struct upstream_target *target, const char *curl_library, struct buf *error);

/* NULL and a sentence when it cannot be: upstream_parse_url or upstream_prepare would say the same, or no descriptor is left. */
struct upstream *upstream_open(struct loop *loop, const struct upstream_options *options, struct buf *error);
/* Closes kept connections. No call may be running, so never from inside `end`. */
void upstream_close(struct upstream *upstream);
/* Any thread. */
void upstream_figures(const struct upstream *upstream, struct upstream_figures *figures);

struct upstream_end {
    enum attempt_end end; /* never TIMEOUT or SHUTDOWN: those are the caller's */
    char reason[160];     /* for logs and `detail`: "connect to 127.0.0.1:3000: Connection refused" */
};

struct upstream_events {
    void (*head)(void *context, int status, struct view fields, bool has_length,
                 uint64_t length);                  /* final one; fields: field block; valid during the call */
    void (*body)(void *context, struct view bytes); /* valid during the call */
    void (*writable)(void *context);                /* upstream_write took less than offered: try again */
    void (*end)(void *context, const struct upstream_end *end); /* the call is freed after this returns */
};

struct upstream_request {
    enum upstream_lane lane;
    struct view bytes; /* head, and for a protected command the body behind it; copied before upstream_start returns */
    bool more;         /* request body follows through upstream_write and upstream_finish */
    bool head_method;  /* HEAD: the response has no body */
};

struct upstream_call *upstream_start(struct upstream *upstream, const struct upstream_request *request,
                                     const struct upstream_events *events, void *context);

/* Already framed bytes (chunks are the caller's). Takes what fits a bounded buffer; less than offered: `writable` will come. */
size_t upstream_write(struct upstream_call *call, struct view bytes);
void upstream_finish(struct upstream_call *call); /* the request body is whole */

/* Back-pressure: no body callbacks (and no reading) until resumed. */
void upstream_pause(struct upstream_call *call);
void upstream_resume(struct upstream_call *call);

/* True once the first byte was handed to the connection: from then on "not sent" is impossible. */
bool upstream_was_sent(const struct upstream_call *call);

/* Ends the call now without any further callback; its connection is closed, never kept. */
void upstream_abort(struct upstream_call *call);

#endif
