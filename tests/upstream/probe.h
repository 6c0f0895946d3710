/* probe.h - what the tests of server/upstream share: a loop, an upstream that points at a scripted peer, and calls that remember
 * what they were told. One thread. */
#ifndef NONBIS_TESTS_UPSTREAM_PROBE_H
#define NONBIS_TESTS_UPSTREAM_PROBE_H

#include "server/upstream/upstream.h"
#include "tests/peer/peer.h"
#include "tests/support/suite.h"

struct probe {
    struct loop *loop;
    struct loop_timer tick;
    struct peer *peer;
    struct upstream *upstream;
};

/* With a peer of its own; probe_open_at: at another URL, without one. Tests change the options before. */
struct upstream_options probe_options(void);
void probe_open(struct probe *probe, struct upstream_options options);
void probe_open_at(struct probe *probe, struct upstream_options options, const char *url);
void probe_close(struct probe *probe);
void probe_turn(struct probe *probe); /* one turn of the loop: an event, or a few milliseconds */
struct upstream_figures probe_figures(const struct probe *probe);

/* What the call does by itself at a callback. */
enum probe_deed { PROBE_NOTHING, PROBE_PAUSE_AT_HEAD, PROBE_PAUSE_AT_BODY, PROBE_ABORT_AT_HEAD, PROBE_ABORT_AT_BODY };

struct probe_call {
    struct probe *probe;
    struct upstream_call *call;
    enum probe_deed deed;
    unsigned heads, bodies, writables, ends; /* callbacks */
    bool inside;                             /* a function of upstream.h is being called: no callback may come */
    int status;
    bool has_length;
    uint64_t length;
    struct buf fields, body;
    uint64_t body_bytes; /* also those over the ceiling of `body` */
    enum attempt_end end;
    char reason[160];
};

#define PROBE_POST(body_length, body)                                                                                  \
    "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-1\r\nContent-Length: " body_length "\r\n\r\n" body

void probe_start(struct probe *probe, struct probe_call *call, enum upstream_lane lane, const char *bytes);
void probe_start_with(struct probe *probe, struct probe_call *call, struct upstream_request request);
size_t probe_write(struct probe_call *call, struct view bytes);
void probe_wait(struct probe_call *call); /* until it ended */
void probe_done(struct probe_call *call); /* frees what it remembered */

/* Starts, waits, and checks how it ended. */
void probe_exchange(struct probe *probe, struct probe_call *call, enum upstream_lane lane, const char *bytes);
void probe_expect_body(const struct probe_call *call, const char *body);

#endif
