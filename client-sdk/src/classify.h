/* classify.h - what one exchange tells about the command: the only place where statuses, words and errors are judged.
 *
 * First row that fits wins (classify.c). A CURLcode alone never decides (docs/facts.md 2): the pre-request hook tells whether
 * anything was sent, the framing whether the answer is whole. Pure but for memory. Any thread. */
#ifndef NONBIS_CLIENT_CLASSIFY_H
#define NONBIS_CLIENT_CLASSIFY_H

#include "client-sdk/src/told.h"
#include "client-sdk/src/transport.h"

enum finding {
    /* Nothing of this exchange left the process. */
    FINDING_CANCELLED,
    FINDING_HELD_BACK, /* our own before_send said no: the journal, or the event callback */
    FINDING_LOCAL,     /* something here must be repaired first: URL, certificate, memory, journal */
    FINDING_OFFLINE,   /* no network: does not count as an attempt */
    FINDING_NOT_SENT,

    /* Sent, and nobody can know. */
    FINDING_CANCELLED_SENT,
    FINDING_RESEND_BLOCKED, /* libcurl wanted to send again and was stopped */
    FINDING_LOST,           /* no answer: timeout, reset, empty, garbage */
    FINDING_CUT,            /* an answer began and was not whole */
    FINDING_REPLAY_CUT,     /* so did a recorded one: completed, but its bytes are not here */

    /* The word of a nonbis server (docs/contract.md 5, 10.1). */
    FINDING_EXECUTED,
    FINDING_REPLAYED,     /* also Idempotent-Replayed of other servers */
    FINDING_UNRECORDED,   /* executed, but not recorded */
    FINDING_NOT_EXECUTED, /* released, and the same request may help */
    FINDING_DECLINED,     /* released, and the same request will not help (a 401 of the handler) */
    FINDING_SAID_UNKNOWN,
    FINDING_RUNNING,
    FINDING_UNAVAILABLE, /* this attempt was not forwarded; later ones may be */
    FINDING_REFUSED,     /* this attempt was not forwarded, and the same request will not be */
    FINDING_KEY_REUSED,  /* the key belongs to another payload */
    FINDING_KEY_FOREIGN, /* the key belongs to other credentials */
    FINDING_KEY_EXPIRED_EXECUTED,
    FINDING_KEY_EXPIRED_UNKNOWN,
    FINDING_KEY_VOIDED,

    /* Answers without a word of that kind, judged by their status. */
    FINDING_SUCCESS,     /* 2xx */
    FINDING_THROTTLED,   /* 425, 429, 503 with Retry-After: declared not executed */
    FINDING_BUSY,        /* 408, 503: asks to come again, but may have been executed (contract 6.3) */
    FINDING_FAULT,       /* 500, 502, 504, 520 to 524, 598, 599: may have been executed */
    FINDING_CONFLICT,    /* 409: final, unless an earlier attempt may still be running */
    FINDING_TURNED_AWAY, /* 401, 403 and the like: final, but says nothing about earlier attempts */
    FINDING_FINAL,       /* every other status */

    /* Answers to questions: status, stored response, void, route. */
    FINDING_TOLD_COMPLETED,
    FINDING_TOLD_ANSWER, /* the stored response itself */
    FINDING_TOLD_RUNNING,
    FINDING_TOLD_UNKNOWN,
    FINDING_TOLD_RELEASED,
    FINDING_TOLD_VOIDED,
    FINDING_TOLD_EXPIRED_EXECUTED,
    FINDING_TOLD_EXPIRED_UNKNOWN,
    FINDING_TOLD_NOT_SEEN,
    FINDING_TOLD_NOT_SEEN_DOUBTFUL, /* as history.c makes it of NOT_SEEN: other credentials, or no window told */
    FINDING_TOLD_FORGOTTEN,         /* likewise: the first sending lies before the server's memory */
    FINDING_TOLD_NO_RESOURCE,       /* the server has no such resource */
    FINDING_TOLD_TURNED_AWAY,       /* it does not talk to us about it */
    FINDING_TOLD_NOTHING,           /* no usable answer: try again */
    FINDING_TOLD_PROTECTED,   /* a nonbis stands on the way of the command itself, and the key counts (contract 7.7) */
    FINDING_TOLD_UNPROTECTED, /* it stands there, and the key does not count */
    FINDING_TOLD_NO_ROUTE,    /* whoever is there does not say */

    FINDING_COUNT
};

enum ask { ASK_STATUS, ASK_RESPONSE, ASK_VOID, ASK_ROUTE };

/* What was read off one exchange. */
struct reading {
    enum finding finding;
    enum ask ask;           /* of a question */
    int http_status;        /* 0: none */
    int64_t retry_after_ms; /* -1: not asked for */
    int64_t skew_ms;        /* the server's wall clock minus ours; 0 when not known */
    bool shows_contract;    /* the server keeps docs/contract.md, and the key counts on this route */
    bool ignores_key;       /* it said that the key has no effect here */
    bool timed_out;
    bool garbled; /* what came was no HTTP */
    bool replayed;
    bool body_doubtful; /* ended by a close only: whole or not, nobody can tell */
    bool body_lost;     /* Nonbis-Body: not-kept */
    int64_t window_start_ms;
    struct told_status status; /* of a status question; state "" when none came */
    struct told_problem problem;
    bool has_problem;
};

/* An attempt: the command itself was (to be) sent. */
void classify_attempt(const struct transport_facts *facts, struct reading *reading);

/* A question about it. */
void classify_answer(enum ask ask, const struct transport_facts *facts, struct reading *reading);

/* "not-sent", "executed" ... for history and events. */
const char *finding_name(enum finding finding);
/* The word for what went wrong, "" when nothing did: abort, timeout, network, offline, authn, authz, validation,
 * concurrency, rate-limit, http, parse, dedupe, local. For answers to questions the state that was told. */
const char *reading_kind(const struct reading *reading);

#endif
