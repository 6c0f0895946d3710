/* transport.h - one attempt: a request goes in, facts come out. Knows nothing of retries, keys or contracts.
 *
 * Rules of an implementation (transport_curl.c; tests/client has a scripted one):
 *  1. At most one sending per call (docs/facts.md 1): the pre-request hook counts, and refuses its second call. The facts
 *     then say hook_calls 2 and code 42.
 *  2. `before_send` is called inside the hook, after connecting and TLS and before the first byte, at most once. Not 0:
 *     nothing is sent, hook_refused is true.
 *  3. The answer is whole only if its framing said so (docs/facts.md 3); a body that a clean close ends is by_close.
 *  4. HTTP/1.1 only, no redirects, no Expect, no TLS early data, no proxy of the environment, no signals, no field
 *     that the request does not list (a User-Agent of its own, Host and Content-Length excepted).
 *  5. `timeout_ms` bounds the whole call; a ring of the waker with waker_is_cancelled ends it within 50 ms.
 *  6. Kept connections live clearly shorter than a server's patience; `fresh` asks for a new one.
 * Threads: perform may be called by several threads at once, each with its own request. */
#ifndef NONBIS_CLIENT_TRANSPORT_H
#define NONBIS_CLIENT_TRANSPORT_H

#include "client-sdk/include/nonbis.h"
#include "client-sdk/src/answer.h"
#include "client-sdk/src/waker.h"

struct transport_field {
    const char *name, *value; /* already checked: token, no control bytes */
};

/* All borrowed for the length of the call. The facts are cleared by the caller; before_send may set `cancelled` in them. */
struct transport_request {
    const char *method;
    const char *url;
    const struct transport_field *fields;
    size_t field_count;
    const void *body; /* sent with Content-Length as soon as has_body, also when it is empty */
    size_t body_len;
    bool has_body;
    int64_t timeout_ms, connect_timeout_ms; /* above 0 */
    bool fresh;                             /* no kept connection: the last exchange ended badly */
    int (*before_send)(void *arg);          /* NULL for questions */
    void *before_send_arg;
    struct waker *waker;
};

struct transport_facts {
    bool cancelled;      /* ended because of the waker */
    bool hook_refused;   /* before_send said no */
    unsigned hook_calls; /* 0: certainly nothing was sent */
    uint64_t bytes_sent; /* handed to the system: an upper bound of what the peer has */
    int code;            /* CURLcode; 0 is success. Never enough for a class (docs/facts.md 2) */
    int os_errno;        /* of connecting, else 0 */
    int64_t elapsed_ms;
    int64_t arrived_wall_ms; /* when the head was there, for dates; 0: set by the caller */
    char message[256];       /* what went wrong, "" else */
    struct answer answer;    /* initialised by the caller with its bound */
};

struct transport {
    /* False: not even begun, memory or libcurl refused; `facts->message` says why, nothing was sent. */
    bool (*perform)(struct transport *transport, const struct transport_request *request,
                    struct transport_facts *facts);
    /* enum nonbis_client_text; NONBIS_OK or an error. Before the first perform. */
    int (*set_text)(struct transport *transport, enum nonbis_client_text which, const char *text);
    void (*free)(struct transport *transport);
};

void transport_facts_init(struct transport_facts *facts, size_t body_max);
void transport_facts_fini(struct transport_facts *facts);

/* libcurl. NULL when it cannot be set up; `*error` is then NONBIS_ERROR_TRANSPORT or NONBIS_ERROR_MEMORY. */
struct transport *transport_curl_new(int *error);

#endif
