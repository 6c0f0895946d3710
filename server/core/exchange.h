/* exchange.h - the life of one keyed request on a protected route, as a full table: phase and event give the next
 * phase and the one deed. The conductor (server/flow/command.c) does the deed and knows no rule. Pure. Any
 * thread.
 *
 *            whole             claimed              done              recorded, or failed
 *   READING --------> CLAIMING --------> FORWARDING ------> RECORDING --------------------> REPLYING -----> CLOSED
 *                      |    ^
 *            must wait v    | rival ended
 *                      WAITING
 *
 * To REPLYING also from READING (refused, stop), CLAIMING (found, claim failed) and WAITING (rival released, end of the wait, stop).
 *
 * The cells that matter most: nothing is forwarded before the claim is durable (FORWARD only on CLAIMED); a client that leaves never
 * cancels a forwarded command (DETACH); a deadline while forwarding records unknown and never frees the key; a record that failed is
 * told as such (ANSWER_UNRECORDED), never as recorded. */
#ifndef NONBIS_SERVER_CORE_EXCHANGE_H
#define NONBIS_SERVER_CORE_EXCHANGE_H

enum phase {
    PHASE_READING,    /* the request arrives */
    PHASE_CLAIMING,   /* the store has been asked */
    PHASE_FORWARDING, /* the handler has it, or may have it */
    PHASE_RECORDING,  /* the outcome is being made durable */
    PHASE_WAITING,    /* for the execution of somebody else's attempt */
    PHASE_REPLYING,   /* an answer is on its way to the client */
    PHASE_CLOSED,
    PHASE_COUNT
};

enum event {
    EVENT_BODY_WHOLE,      /* last body byte met, fingerprint made */
    EVENT_REFUSED,         /* a check before the record answers */
    EVENT_CLAIMED,         /* our claim is durable */
    EVENT_FOUND,           /* the record of somebody else's attempt, or a refusal of new work: an answer is known */
    EVENT_MUST_WAIT,       /* it runs, and we may wait */
    EVENT_CLAIM_FAILED,    /* no claim: queue full, store failed or uncertain */
    EVENT_UPSTREAM_DONE,   /* the one send has ended, one way or another */
    EVENT_ANSWER_DEADLINE, /* answer_timeout, or the end of a wait */
    EVENT_HARD_DEADLINE,   /* hard_timeout */
    EVENT_RECORDED,        /* our outcome is durable */
    EVENT_RECORD_FAILED,   /* it is not, or that is uncertain */
    EVENT_RIVAL_ENDED,     /* the execution we wait for has ended: look again */
    EVENT_RIVAL_RELEASED,  /* the execution we wait for was released: its answer is ours */
    EVENT_CLIENT_GONE,
    EVENT_ANSWERED, /* the answer left, or could not */
    EVENT_STOP,     /* the drain is over */
    EVENT_COUNT
};

enum deed {
    DEED_IMPOSSIBLE,         /* a bug: the conductor logs it, keeps the key as it is, and answers unknown */
    DEED_NONE,               /* nothing to do */
    DEED_CLAIM,              /* ask the store: look up and claim in one step */
    DEED_FORWARD,            /* send the request, once */
    DEED_WAIT,               /* join the waiters of that key */
    DEED_RECORD,             /* record what the attempt proved */
    DEED_RECORD_UNKNOWN,     /* abort the attempt and record unknown */
    DEED_ANSWER,             /* send the answer that is known now */
    DEED_ANSWER_UNRECORDED,  /* send the real answer, marked unrecorded */
    DEED_TELL_STILL_RUNNING, /* 504 still-running; the exchange goes on without a client */
    DEED_DETACH,             /* forget the client, go on */
    DEED_FREE,               /* the end */
    DEED_COUNT
};

struct step {
    enum phase next; /* for DEED_IMPOSSIBLE: the same phase */
    enum deed deed;
};

struct exchange_table {
    struct step cell[PHASE_COUNT][EVENT_COUNT];
};
extern const struct exchange_table exchange_table;

struct step exchange_next(enum phase phase, enum event event);
struct step exchange_next_by(const struct exchange_table *table, enum phase phase, enum event event);

const char *phase_name(enum phase phase);
const char *event_name(enum event event);
const char *deed_name(enum deed deed);

#endif
