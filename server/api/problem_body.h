/* problem_body.h - problem details (RFC 9457) as JSON. Any thread. */
#ifndef NONBIS_SERVER_API_PROBLEM_BODY_H
#define NONBIS_SERVER_API_PROBLEM_BODY_H

#include "common/buf.h"
#include "server/core/problem.h"

struct problem_facts {
    enum problem problem;
    int status;              /* 0: the table's */
    struct view detail;      /* one sentence for this case; empty: left out */
    struct view instance;    /* request id; empty: left out */
    struct view type_prefix; /* setting problem_prefix */
    enum executed executed;  /* of the record, where the table says so */
    bool has_record;         /* a record was read: `command` is told */
    struct view command;     /* status URL */
    unsigned differs;        /* key-reused */
    struct view reason;      /* unavailable: "overloaded", "draining", "store" */
    struct view state;       /* not-voidable: "completed", "unknown", "expired" */
    int64_t window_start_ms; /* key-not-seen; wall clock. 0: left out */
};

void problem_body_write(const struct problem_facts *facts, struct buf *out);

#endif
