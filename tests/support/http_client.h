/* http_client.h - a plain blocking HTTP client for tests: raw bytes out, one response in. It shares no code with the server, so that both
 * cannot be wrong in the same way. Every wait ends after a deadline (default 20 s), which is a failure, not a measure. */
#ifndef NONBIS_TESTS_HTTP_CLIENT_H
#define NONBIS_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct http_answer {
    int status; /* 0: no answer, or not an HTTP one */
    char *head; /* status line and fields, NUL-terminated, without the blank line */
    char *body; /* NUL-terminated behind body_len bytes */
    size_t body_len;
    bool whole;  /* the framing was met; false: cut */
    bool closed; /* the connection ended with it (or before) */
    bool reset;  /* by RST */
};
void http_answer_free(struct http_answer *answer);

/* The value of a field (any case) in `answer`, copied into `value`; false when it is not there. */
bool http_field(const struct http_answer *answer, const char *name, char *value, size_t size);
/* How often it stands there. */
int http_field_count(const struct http_answer *answer, const char *name);
bool http_field_is(const struct http_answer *answer, const char *name, const char *value);

int http_connect(const char *address);                 /* "127.0.0.1:PORT"; -1 and errno when refused */
bool http_send(int fd, const char *bytes, size_t len); /* false: the peer does not take it any more */
/* Reads one final response (1xx are counted in *informational when not NULL, and skipped). `head_request`: no body follows. */
struct http_answer http_receive(int fd, bool head_request, int *informational);
/* True when the peer closes (or resets) without sending another byte. */
bool http_closes(int fd);

/* One request on a connection of its own. `fields` are whole lines ("A: b\r\n"), may be NULL. body NULL: none and no Content-Length. Host is added. */
struct http_answer http_request(const char *address, const char *method, const char *target, const char *fields,
                                const char *body);
/* POST of JSON with an Idempotency-Key. */
struct http_answer http_post(const char *address, const char *target, const char *key, const char *body);

#endif
