/* exchange.c - the table of the life of one keyed request, every cell written. Owns nothing.
 *
 * NEVER marks what no correct conductor can deliver. What the cells rely on:
 * - STOP is given again at each new phase while the drain is over: in CLAIMING and RECORDING the store answers soon, so it is
 *   not acted on there.
 * - A timer that belongs to a phase that has ended may still fire (NONE), but the end of a wait is stopped when the wait ends and
 *   armed again with what is left of it: a lost one would let an exchange wait for ever.
 * - An execution ends once for each of its waiters, as ENDED or as RELEASED: who was told is not among the waiters any more. RELEASED is
 *   told to those alone who wait for that very execution, never to all of its key: the next one may be claimed, and waited for, in the
 *   commit that released this one.
 * - A look-up after a wait claims nothing: who waited for an execution gets what it came to and never makes one.
 * - An exchange whose client is gone gets ANSWERED at once when it is told to answer, and CLIENT_GONE when it is told to wait. */
#include "server/core/exchange.h"

#define TO(phase, deed)                                                                                                \
    {                                                                                                                  \
        PHASE_##phase, DEED_##deed                                                                                     \
    }
#define NEVER(phase)                                                                                                   \
    {                                                                                                                  \
        PHASE_##phase, DEED_IMPOSSIBLE                                                                                 \
    }

const struct exchange_table exchange_table = {
    .cell = {
        [PHASE_READING] = {
            [EVENT_BODY_WHOLE] = TO(CLAIMING, CLAIM),
            [EVENT_REFUSED] = TO(REPLYING, ANSWER),
            [EVENT_CLAIMED] = NEVER(READING),
            [EVENT_FOUND] = NEVER(READING),
            [EVENT_MUST_WAIT] = NEVER(READING),
            [EVENT_CLAIM_FAILED] = NEVER(READING),
            [EVENT_UPSTREAM_DONE] = NEVER(READING),
            [EVENT_ANSWER_DEADLINE] = NEVER(READING), /* the deadlines run from the body's end */
            [EVENT_HARD_DEADLINE] = NEVER(READING),
            [EVENT_RECORDED] = NEVER(READING),
            [EVENT_RECORD_FAILED] = NEVER(READING),
            [EVENT_RIVAL_ENDED] = NEVER(READING),
            [EVENT_RIVAL_RELEASED] = NEVER(READING),
            [EVENT_CLIENT_GONE] = TO(CLOSED, FREE), /* gone before its last body byte: nothing happened (section 6) */
            [EVENT_ANSWERED] = NEVER(READING),
            [EVENT_STOP] = TO(REPLYING, ANSWER),
        },
        [PHASE_CLAIMING] = {
            [EVENT_BODY_WHOLE] = NEVER(CLAIMING),
            [EVENT_REFUSED] = NEVER(CLAIMING),
            [EVENT_CLAIMED] = TO(FORWARDING, FORWARD), /* the only FORWARD of the table (section 11) */
            [EVENT_FOUND] = TO(REPLYING, ANSWER),
            [EVENT_MUST_WAIT] = TO(WAITING, WAIT),
            [EVENT_CLAIM_FAILED] = TO(REPLYING, ANSWER),
            [EVENT_UPSTREAM_DONE] = NEVER(CLAIMING),
            [EVENT_ANSWER_DEADLINE] = NEVER(CLAIMING),
            [EVENT_HARD_DEADLINE] = NEVER(CLAIMING),
            [EVENT_RECORDED] = NEVER(CLAIMING),
            [EVENT_RECORD_FAILED] = NEVER(CLAIMING),
            [EVENT_RIVAL_ENDED] = NEVER(CLAIMING), /* not among the waiters now */
            [EVENT_RIVAL_RELEASED] = NEVER(CLAIMING),
            [EVENT_CLIENT_GONE] = TO(CLAIMING, DETACH), /* the claim may be on disk: go on (section 6) */
            [EVENT_ANSWERED] = NEVER(CLAIMING),
            [EVENT_STOP] = TO(CLAIMING, NONE),
        },
        [PHASE_FORWARDING] = {
            [EVENT_BODY_WHOLE] = NEVER(FORWARDING),
            [EVENT_REFUSED] = NEVER(FORWARDING),
            [EVENT_CLAIMED] = NEVER(FORWARDING),
            [EVENT_FOUND] = NEVER(FORWARDING),
            [EVENT_MUST_WAIT] = NEVER(FORWARDING),
            [EVENT_CLAIM_FAILED] = NEVER(FORWARDING),
            [EVENT_UPSTREAM_DONE] = TO(RECORDING, RECORD),
            [EVENT_ANSWER_DEADLINE] = TO(FORWARDING, TELL_STILL_RUNNING),
            [EVENT_HARD_DEADLINE] = TO(RECORDING, RECORD_UNKNOWN), /* never frees the key */
            [EVENT_RECORDED] = NEVER(FORWARDING),
            [EVENT_RECORD_FAILED] = NEVER(FORWARDING),
            [EVENT_RIVAL_ENDED] = NEVER(FORWARDING),
            [EVENT_RIVAL_RELEASED] = NEVER(FORWARDING),
            [EVENT_CLIENT_GONE] = TO(FORWARDING, DETACH), /* never cancels a forwarded command */
            [EVENT_ANSWERED] = TO(FORWARDING, DETACH),    /* still-running was told */
            [EVENT_STOP] = TO(RECORDING, RECORD_UNKNOWN),
        },
        [PHASE_RECORDING] = {
            [EVENT_BODY_WHOLE] = NEVER(RECORDING),
            [EVENT_REFUSED] = NEVER(RECORDING),
            [EVENT_CLAIMED] = NEVER(RECORDING),
            [EVENT_FOUND] = NEVER(RECORDING),
            [EVENT_MUST_WAIT] = NEVER(RECORDING),
            [EVENT_CLAIM_FAILED] = NEVER(RECORDING),
            [EVENT_UPSTREAM_DONE] = NEVER(RECORDING), /* it has ended, or was aborted and says nothing more */
            [EVENT_ANSWER_DEADLINE] = TO(RECORDING, NONE), /* the real answer is a commit away */
            [EVENT_HARD_DEADLINE] = TO(RECORDING, NONE),
            [EVENT_RECORDED] = TO(REPLYING, ANSWER),
            [EVENT_RECORD_FAILED] = TO(REPLYING, ANSWER_UNRECORDED),
            [EVENT_RIVAL_ENDED] = NEVER(RECORDING),
            [EVENT_RIVAL_RELEASED] = NEVER(RECORDING),
            [EVENT_CLIENT_GONE] = TO(RECORDING, DETACH),
            [EVENT_ANSWERED] = TO(RECORDING, DETACH), /* still-running was told */
            [EVENT_STOP] = TO(RECORDING, NONE),
        },
        [PHASE_WAITING] = {
            [EVENT_BODY_WHOLE] = NEVER(WAITING),
            [EVENT_REFUSED] = NEVER(WAITING),
            [EVENT_CLAIMED] = NEVER(WAITING),
            [EVENT_FOUND] = NEVER(WAITING),
            [EVENT_MUST_WAIT] = NEVER(WAITING),
            [EVENT_CLAIM_FAILED] = NEVER(WAITING),
            [EVENT_UPSTREAM_DONE] = NEVER(WAITING),
            [EVENT_ANSWER_DEADLINE] = TO(REPLYING, ANSWER), /* in-progress */
            [EVENT_HARD_DEADLINE] = NEVER(WAITING),         /* belongs to the rival */
            [EVENT_RECORDED] = NEVER(WAITING),
            [EVENT_RECORD_FAILED] = NEVER(WAITING),
            [EVENT_RIVAL_ENDED] = TO(CLAIMING, CLAIM),
            [EVENT_RIVAL_RELEASED] = TO(REPLYING, ANSWER), /* not executed; it never forwards by itself (section 6) */
            [EVENT_CLIENT_GONE] = TO(CLOSED, FREE), /* it holds no claim */
            [EVENT_ANSWERED] = NEVER(WAITING),
            [EVENT_STOP] = TO(REPLYING, ANSWER),
        },
        [PHASE_REPLYING] = {
            [EVENT_BODY_WHOLE] = NEVER(REPLYING),
            [EVENT_REFUSED] = NEVER(REPLYING),
            [EVENT_CLAIMED] = NEVER(REPLYING),
            [EVENT_FOUND] = NEVER(REPLYING),
            [EVENT_MUST_WAIT] = NEVER(REPLYING),
            [EVENT_CLAIM_FAILED] = NEVER(REPLYING),
            [EVENT_UPSTREAM_DONE] = NEVER(REPLYING),
            [EVENT_ANSWER_DEADLINE] = TO(REPLYING, NONE),
            [EVENT_HARD_DEADLINE] = TO(REPLYING, NONE),
            [EVENT_RECORDED] = NEVER(REPLYING),
            [EVENT_RECORD_FAILED] = NEVER(REPLYING),
            [EVENT_RIVAL_ENDED] = TO(REPLYING, NONE),
            [EVENT_RIVAL_RELEASED] = TO(REPLYING, NONE),
            [EVENT_CLIENT_GONE] = TO(CLOSED, FREE),
            [EVENT_ANSWERED] = TO(CLOSED, FREE),
            [EVENT_STOP] = TO(REPLYING, NONE),
        },
        [PHASE_CLOSED] = {
            [EVENT_BODY_WHOLE] = NEVER(CLOSED),
            [EVENT_REFUSED] = NEVER(CLOSED),
            [EVENT_CLAIMED] = NEVER(CLOSED),
            [EVENT_FOUND] = NEVER(CLOSED),
            [EVENT_MUST_WAIT] = NEVER(CLOSED),
            [EVENT_CLAIM_FAILED] = NEVER(CLOSED),
            [EVENT_UPSTREAM_DONE] = NEVER(CLOSED),
            [EVENT_ANSWER_DEADLINE] = NEVER(CLOSED),
            [EVENT_HARD_DEADLINE] = NEVER(CLOSED),
            [EVENT_RECORDED] = NEVER(CLOSED),
            [EVENT_RECORD_FAILED] = NEVER(CLOSED),
            [EVENT_RIVAL_ENDED] = NEVER(CLOSED),
            [EVENT_RIVAL_RELEASED] = NEVER(CLOSED),
            [EVENT_CLIENT_GONE] = NEVER(CLOSED),
            [EVENT_ANSWERED] = NEVER(CLOSED),
            [EVENT_STOP] = NEVER(CLOSED),
        },
    },
};

struct step exchange_next_by(const struct exchange_table *table, enum phase phase, enum event event)
{
    if ((unsigned) phase >= PHASE_COUNT || (unsigned) event >= EVENT_COUNT) {
        return (struct step){ phase, DEED_IMPOSSIBLE };
    }
    return table->cell[phase][event];
}

struct step exchange_next(enum phase phase, enum event event)
{
    return exchange_next_by(&exchange_table, phase, event);
}

const char *phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_READING] = "reading",     [PHASE_CLAIMING] = "claiming", [PHASE_FORWARDING] = "forwarding",
        [PHASE_RECORDING] = "recording", [PHASE_WAITING] = "waiting",   [PHASE_REPLYING] = "replying",
        [PHASE_CLOSED] = "closed",
    };
    return (unsigned) phase < PHASE_COUNT ? names[phase] : "impossible";
}

const char *event_name(enum event event)
{
    static const char *const names[EVENT_COUNT] = {
        [EVENT_BODY_WHOLE] = "body-whole",
        [EVENT_REFUSED] = "refused",
        [EVENT_CLAIMED] = "claimed",
        [EVENT_FOUND] = "found",
        [EVENT_MUST_WAIT] = "must-wait",
        [EVENT_CLAIM_FAILED] = "claim-failed",
        [EVENT_UPSTREAM_DONE] = "upstream-done",
        [EVENT_ANSWER_DEADLINE] = "answer-deadline",
        [EVENT_HARD_DEADLINE] = "hard-deadline",
        [EVENT_RECORDED] = "recorded",
        [EVENT_RECORD_FAILED] = "record-failed",
        [EVENT_RIVAL_ENDED] = "rival-ended",
        [EVENT_RIVAL_RELEASED] = "rival-released",
        [EVENT_CLIENT_GONE] = "client-gone",
        [EVENT_ANSWERED] = "answered",
        [EVENT_STOP] = "stop",
    };
    return (unsigned) event < EVENT_COUNT ? names[event] : "impossible";
}

const char *deed_name(enum deed deed)
{
    static const char *const names[DEED_COUNT] = {
        [DEED_IMPOSSIBLE] = "impossible",
        [DEED_NONE] = "none",
        [DEED_CLAIM] = "claim",
        [DEED_FORWARD] = "forward",
        [DEED_WAIT] = "wait",
        [DEED_RECORD] = "record",
        [DEED_RECORD_UNKNOWN] = "record-unknown",
        [DEED_ANSWER] = "answer",
        [DEED_ANSWER_UNRECORDED] = "answer-unrecorded",
        [DEED_TELL_STILL_RUNNING] = "tell-still-running",
        [DEED_DETACH] = "detach",
        [DEED_FREE] = "free",
    };
    return (unsigned) deed < DEED_COUNT ? names[deed] : "impossible";
}
