/* exchange_state.h - one keyed request on a protected route while it lives: the storage behind core/exchange.h's phases. Private to
 * the command_*.c files. Loop thread.
 *
 * Lives from head() until DEED_FREE; the client may leave earlier (client == NULL) and a forwarded command goes on. Owns copies of all
 * that must outlive the client: key, tenant, fields for the handler, and the body once the client is gone. */
#ifndef NONBIS_SERVER_FLOW_EXCHANGE_STATE_H
#define NONBIS_SERVER_FLOW_EXCHANGE_STATE_H

#include "schema/limits.h"
#include "server/core/exchange.h"
#include "server/flow/answer.h"
#include "server/flow/waiters.h"

struct exchange {
    struct guest guest; /* first: the edge request's user */
    struct list_node node;
    struct flow *flow;
    enum phase phase;
    struct edge_request *client; /* NULL: gone, or answered and gone */
    bool answered;               /* an answer was given to the edge; nothing more may be */

    /* what was asked */
    const struct route *route;
    struct key key;
    char tenant[LIMIT_TENANT_BYTES + 1];
    char *texts; /* holds the next three */
    size_t texts_room;
    const char *method, *origin, *authority;
    size_t path_len;                            /* of origin, without the query */
    struct view content_type, content_encoding; /* into the edge's head: valid until the body is whole */
    struct header_span headers;                 /* as above */
    struct buf fields_out;                      /* field block for the handler */
    struct view body;                           /* the edge's, or body_copy */
    char *body_copy;

    /* the store */
    struct store_task task;
    bool holds_slot;          /* counted in commons->running */
    struct quota_place quota; /* likewise, of its tenant */
    int64_t row;
    uint8_t command_id[COMMAND_ID_BYTES];
    uint32_t execution;

    /* waiting for somebody else's execution */
    struct waiter waiter;
    bool has_waited;
    int64_t wait_ms;       /* as asked, and capped; 0: not at all */
    int64_t wait_until_ms; /* of the loop; from the body's end */

    /* the handler */
    struct upstream_call *call;
    struct loop_timer answer_timer, hard_timer; /* answer_timer is also the end of a wait */
    struct attempt attempt;
    char attempt_reason[160];
    struct outcome outcome;
    int status;
    bool body_not_kept;         /* of a rival's answer that was too long to be passed on */
    struct buf response_fields; /* field block as received */
    struct buf response_body;   /* up to response_keep_max, then empty (spilling) */
    struct buf keep_fields;     /* what is stored for replays */
    uint64_t response_bytes;    /* of the body so far */

    /* a response over response_keep_max goes to the client as it comes; its last byte is held until the record is durable */
    bool spilling;
    bool spill_to_client;  /* the streaming answer was begun and not cut */
    struct buf spill_wait; /* what the edge has not taken yet; never without the last byte before the record */
    bool spill_final;      /* the record is durable: the last byte may go */
    bool upstream_paused;

    bool reply_has_length; /* the handler announced a length */
    uint64_t reply_length;

    /* the answer */
    enum { ANSWER_PROBLEM, ANSWER_REPLAY, ANSWER_OWN } answer_kind;
    struct answer_problem problem; /* for ANSWER_PROBLEM */
    uint64_t told_request;         /* number of the problem that was answered; 0: none was */
    int told_status;               /* of the answer, for the log; 0: none was given */
    enum result result;            /* for log and metrics */
    bool unrecorded;               /* the outcome of our execution could not be made durable */
    const char *store_result;      /* of a claim or an outcome that failed; NULL: none did */

    /* the record as this attempt found it and left it; RECORD_STATE_COUNT: not known */
    enum record_state state_before, state_after;

    /* times, monotonic microseconds; 0: it did not come to that */
    int64_t started_us, whole_us, claim_us, sent_us, response_us, recorded_us, answered_us, wait_us;
    int64_t claim_took_us, waited_us; /* all looks at the record, all waits */
};

/* command.c */
void exchange_event(struct exchange *x, enum event event);

/* command_upstream.c: forwarding and the response as it comes */
void exchange_forward(struct exchange *x);
void exchange_abort_call(struct exchange *x, enum attempt_end end);
void exchange_note_head(const struct exchange *x, struct attempt *attempt);

/* command_record.c: claim and outcome */
void exchange_claim(struct exchange *x);
void exchange_record(struct exchange *x);
void exchange_release_slot(struct exchange *x);

/* command_wait.c: for the end of somebody else's execution */
int64_t wait_wanted_ms(const struct settings *settings, struct header_span headers, int64_t otherwise_ms);
/* Until the wait is over, or the running command's claim, after which it is unknown. */
int64_t wait_span_ms(const struct store_found *found, int64_t left_ms);
void exchange_wait_begin(struct exchange *x, struct header_span headers);
bool exchange_may_wait(const struct exchange *x);
void exchange_found_running(struct exchange *x); /* the claim's answer: may become a wait */
void exchange_wait(struct exchange *x);
void exchange_wait_end(struct exchange *x);

/* command_spill.c: a response over response_keep_max */
void exchange_drained(struct exchange *x);
void exchange_client_left(struct exchange *x); /* stops a spill */
void exchange_spill_begin(struct exchange *x, struct view bytes);
void exchange_spill_more(struct exchange *x, struct view bytes);
void exchange_spill_finish(struct exchange *x, bool whole); /* whole false: the client must see a cut answer */

/* command_answer.c */
/* Answers with a problem, and keeps it for the log. */
void exchange_tell(struct exchange *x, const struct answer_problem *problem);
void exchange_answer(struct exchange *x, bool unrecorded);
void exchange_answer_found(
    struct exchange *x); /* sets the problem for what the store returned; a replay is answered by exchange_answer */
void exchange_tell_still_running(struct exchange *x);
void exchange_tell_stopping(struct exchange *x);
/* command_log.c: the line in the log, and the counts */
void exchange_tell_end(struct exchange *x);
unsigned exchange_retry_after_s(const struct exchange *x);
/* The fields of the handler's own answer as the client gets them. */
void exchange_own_fields(const struct exchange *x, const struct outcome *outcome, bool unrecorded, struct buf *out);

#endif
