/* transport_probe.h - the libcurl transport against the scripted peer: one client, one peer, one waker, the facts of the last
 * exchange. A getaddrinfo and a connect of our own stand before the C library's: no test asks a real resolver, and a test can
 * let the peer act right after the connection was begun. One thread, unless said. */
#ifndef NONBIS_TESTS_CLIENT_TRANSPORT_PROBE_H
#define NONBIS_TESTS_CLIENT_TRANSPORT_PROBE_H

#include "client-sdk/src/transport.h"
#include "tests/peer/peer.h"
#include "tests/support/suite.h"

enum { PROBE_BODY_MAX = 64 * 1024, PROBE_PATIENCE_MS = 20000 };

struct probe {
    struct peer *peer;
    struct transport *transport;
    struct waker waker;
    struct transport_facts facts;
    struct transport_field fields[8];
    struct transport_request
        request; /* a POST of "{}" to the peer's /orders with the key k-1: change it before sending */
    char url[200];
    unsigned asked; /* how often before_send was called */
    int says;       /* what it returns */
};

void probe_open(struct probe *probe);
void probe_open_unix(struct probe *probe, const char *path);
void probe_close(struct probe *probe);

/* The request goes to this URL instead. */
void probe_aim(struct probe *probe, const char *url);
void probe_field(struct probe *probe, const char *name, const char *value);

/* The clock of the transport stands still from here on, so that no connection at rest gets too old to be used again, however slow the machine is. What
 * libcurl measures goes on. */
void probe_stop_clock(void);

/* Performs; it must have begun. */
void probe_send(struct probe *probe);

/* The n-th request at the peer as text; freed by the caller. */
char *probe_received(struct probe *probe, unsigned n);

/* "missing.test" is no name; "slow.test" hangs until it is released, and is then none either; "here.test" is 127.0.0.1, and
 * how often it was looked up is counted. */
void probe_resolver_wait_asked(void);
void probe_resolver_release(void);
unsigned probe_resolver_lookups(void);

/* Called right after each connect() of a TCP or Unix socket in this program, on its thread; NULL: nothing is. */
void probe_after_connect(void (*callback)(void *arg), void *arg);

/* The descriptor of the last such connect(). */
int probe_connected_fd(void);

int64_t probe_now_us(void);

#endif
