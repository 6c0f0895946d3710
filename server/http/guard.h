/* guard.h - framing and header hygiene: check 1 of docs/contract.md section 4, as a pure function over what the
 * edge can see of a request head. What the HTTP library hides (docs/facts.md 8) is covered as far as
 * it can be: required keys, token names, clean values, exactly one framing field. Pure. Any thread. */
#ifndef NONBIS_SERVER_HTTP_GUARD_H
#define NONBIS_SERVER_HTTP_GUARD_H

#include "server/http/headers.h"
#include "server/http/target.h"

struct guard_head {
    struct view method;  /* as received */
    struct view target;  /* raw */
    struct view version; /* "HTTP/1.1" */
    struct header_span headers;
    const struct header_span *read_fields; /* names that nonbis reads beside its own (tenant field, guard fields):
                                               Connection may not name them; values ignored; may be NULL. How often
                                               they may come is the reader's business */
    size_t header_bytes_max;               /* request_header_max: names, values and 4 bytes per field, and target */
};

enum guard_body { GUARD_BODY_NONE, GUARD_BODY_LENGTH, GUARD_BODY_CHUNKED };

struct guard_verdict {
    int status;         /* 0: clean; else 400, 411, 414, 431, 501, 505: answer, and close the connection */
    const char *detail; /* one sentence that names the fault; never a value from the request */
    enum guard_body body;
    uint64_t length;      /* declared, for GUARD_BODY_LENGTH */
    struct target target; /* views into head */
    struct view host;
    bool expect_continue;
};

/* 411 for a body method (POST, PATCH, PUT) without framing is decided by the caller's route for pass-through: here it is
 * reported through `body` alone; protected routes answer 411 when it is GUARD_BODY_NONE. */
struct guard_verdict guard_check(const struct guard_head *head);

#endif
