/* answer.h - the answers that nonbis makes or marks: problem bodies, and the fields of docs/contract.md section 10. Loop thread. */
#ifndef NONBIS_SERVER_FLOW_ANSWER_H
#define NONBIS_SERVER_FLOW_ANSWER_H

#include "server/api/problem_body.h"
#include "server/flow/flow.h"

/* What the answer may tell of a record; zeroed: none was read. */
struct answer_record {
    bool read; /* a record was read: executed, command, Link */
    enum executed executed;
    const uint8_t *command_id; /* NULL: not told (another credential's record) */
    int64_t expires_ms;        /* wall clock; 0: not told */
};

struct answer_problem {
    enum problem problem;
    int status;         /* 0: the table's */
    const char *detail; /* NULL: left out */
    const char *reason; /* unavailable */
    const char *state;  /* not-voidable */
    const char *allow;  /* method-not-allowed: the Allow field */
    unsigned differs;
    int64_t window_start_ms; /* key-not-seen; wall clock */
    struct answer_record record;
    unsigned retry_after_s; /* 0: the table decides whether the field is sent, with 1 */
    bool keyed;             /* the key was read: Idempotency-Status may be sent */
    bool close;
    bool no_body;      /* the request was HEAD */
    bool ignored;      /* a keyed unsafe request that nobody protects: the answer says so */
    bool not_executed; /* says so to the nonbis in front (Nonbis-Outcome) */
};

/* The refusal of new work that is over its tenant's quota; `latency_s` is when to come again where what runs must end first. */
void answer_over_quota(const struct quota_place *place, unsigned latency_s, struct answer_problem *answer);

/* Returns the number of this request, from 1: the last part of the problem's `instance`. */
uint64_t answer_problem(struct flow *flow, struct edge_request *request, const struct answer_problem *answer);

/* --- for the lines of the log --- */

/* request=95e8ff43-1: the problem's `instance` without "urn:nonbis:request:"; nothing for 0. */
void answer_log_request(const struct flow *flow, struct log_line *line, uint64_t number);
/* path=/orders/1: without the query, which may hold secrets, and cut at 256 bytes; nothing when it is empty. */
void answer_log_path(struct log_line *line, struct view target);

/* key=: twelve hex digits that stand for tenant and key, the same on every line of this store. */
void answer_log_key(const struct flow *flow, struct log_line *line, struct view tenant, struct view key);
/* command=: the id, 32 hex digits. */
void answer_log_command(struct log_line *line, const uint8_t command_id[COMMAND_ID_BYTES]);

/* Appends Idempotency-Status, Idempotent-Replayed, Idempotency-Expires and Link, as far as they apply. */
void answer_mark(struct buf *fields, const char *status_word, bool replayed, const struct answer_record *record);

#endif
