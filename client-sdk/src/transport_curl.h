/* transport_curl.h - what the files of the libcurl transport share. Private to transport_curl*.c.
 *
 *   transport_curl.c           the transport: its texts, its set-up, one perform from end to end
 *   transport_http_pool.c      sessions at rest, each with the connection that it keeps
 *   transport_http_call.c      one exchange: the pre-request hook, and driving it until it is over or somebody rings
 *   transport_curl_options.c   what libcurl is told, and above all what it is told to leave
 *   transport_http_reader.c    the answer as it comes in; whether it is whole
 *   transport_curl_pipe.c      no SIGPIPE gets out
 *   transport_curl_message.c   the sentence about what went wrong
 *
 * libcurl's share interface is documented as not safe for connections that several threads use, so each exchange has a session
 * of its own. */
#ifndef NONBIS_CLIENT_TRANSPORT_CURL_H
#define NONBIS_CLIENT_TRANSPORT_CURL_H

#include "client-sdk/src/transport.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>

/* ---- sessions ----------------------------------------------------------------------------------------------------- */

enum {
    SESSION_KEEP_MS =
        1000, /* an older connection is not used again: servers close after 2 s and more (docs/facts.md 45) */
    POOL_IDLE_MAX = 16
};

/* A libcurl of one's own, and at most one connection at rest in it (CURLMOPT_MAXCONNECTS 1). */
struct http_session {
    struct http_session *next;
    CURLM *multi;
    CURL *easy;
    curl_socket_t kept; /* of the connection at rest; CURL_SOCKET_BAD: there is none that may be used */
    int64_t kept_at_ms;
    uint64_t origin; /* hash of where it leads */
    bool broken;     /* its multi handle failed: not to be used again */
};

/* Those that nobody uses now, the last one used first. Any thread. */
struct http_pool {
    pthread_mutex_t lock;
    struct http_session *idle;
    unsigned idle_count;
};

bool http_pool_init(struct http_pool *pool);
void http_pool_fini(struct http_pool *pool); /* nothing may be out */

/* One that keeps a young connection to `origin`, else one that keeps none, else a new one; NULL: out of memory. */
struct http_session *http_pool_take(struct http_pool *pool, uint64_t origin, int64_t now_ms);
void http_pool_give(struct http_pool *pool, struct http_session *session);

void http_session_free(struct http_session *session);

/* Young, and silent: what can be read now is its end, or bytes that nobody asked for, which libcurl would take for the next
 * answer: 7.88 does not look before it uses a connection again. */
bool http_session_may_reuse(const struct http_session *session, uint64_t origin, int64_t now_ms);

/* ---- the answer --------------------------------------------------------------------------------------------------- */

enum {
    HTTP_INTERIM_MAX = 64,              /* answers 1xx in front of the answer */
    HTTP_TRAILERS_MAX = ANSWER_HEAD_MAX /* bytes of lines behind a chunked body; more is no whole answer */
};

struct http_reader {
    struct answer *answer;
    struct buf field; /* the last line of the head: it is complete when the next one is no continuation of it */
    bool in_head, head_too_large, switched;
    unsigned interim;     /* heads with 1xx that came */
    bool bodyless_method; /* HEAD */
    uint64_t body_seen;   /* also what was over the bound */
    size_t trailer_bytes; /* of the lines behind a chunked body, their ends included */
    int64_t arrived_wall_ms;
};

void http_reader_init(struct http_reader *reader, struct answer *answer, const char *method);
void http_reader_fini(struct http_reader *reader);

/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION; context: the reader. */
size_t http_reader_on_header(char *bytes, size_t size, size_t count, void *context);
size_t http_reader_on_body(char *bytes, size_t size, size_t count, void *context);

/* Once libcurl says that all went well: sets `whole` or `by_close` of the answer, or neither. True: the framing is beyond doubt,
 * the connection may be used again. */
bool http_reader_judge(const struct http_reader *reader);

/* ---- SIGPIPE ------------------------------------------------------------------------------------------------------ */

struct pipe_shield {
    sigset_t before;
    bool was_pending;
};

void pipe_shield_up(struct pipe_shield *shield);
void pipe_shield_down(const struct pipe_shield *shield);

/* ---- one exchange ------------------------------------------------------------------------------------------------- */

enum { CURL_TEXTS = NONBIS_CLIENT_USER_AGENT + 1 };

struct http_call {
    const char *const *texts; /* by enum nonbis_client_text; NULL: not set */
    struct http_session *session;
    const struct transport_request *request;
    struct transport_facts *facts;
    struct http_reader reader;
    struct curl_slist *fields;
    struct pipe_shield shield; /* up, but for the caller's part of the hook */
    bool fresh;
    char error[CURL_ERROR_SIZE];
};

/* False: not even begun, the message says why. */
bool http_call_run(struct http_call *call);

/* Everything that libcurl is told about a call, but for its callbacks. Not CURLE_OK: nothing may be sent. */
CURLcode http_options_set(struct http_call *call);

void http_message_write(const struct http_call *call);

/* "host:port" of a URL, without what may be secret in it. */
struct view http_authority_of(const char *url);

#endif
