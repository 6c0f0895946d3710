/* decision.c - the table of checks 7 and 8 (docs/contract.md section 4), and the classification that indexes it.
 * A mismatch beats every state, since its remedy (another key) is the opposite of waiting or repeating. */
#include "server/core/decision.h"

#include <stddef.h>

/* Both columns: whoever may not wait, and whoever may. */
#define EITHER(verdict)                                                                                                \
    {                                                                                                                  \
        (verdict), (verdict)                                                                                           \
    }

const struct decision_table decision_table = {
    .cell = {
        [RECORD_ABSENT] = {
            [MATCH_SAME] = EITHER(VERDICT_FORWARD),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_IMPOSSIBLE), /* nothing is there to differ from */
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_IMPOSSIBLE),
        },
        [RECORD_IN_PROGRESS] = {
            [MATCH_SAME] = { VERDICT_IN_PROGRESS, VERDICT_WAIT },
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED),
        },
        [RECORD_COMPLETED] = {
            [MATCH_SAME] = EITHER(VERDICT_REPLAY),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED),
        },
        [RECORD_UNKNOWN] = {
            [MATCH_SAME] = EITHER(VERDICT_OUTCOME_UNKNOWN),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED),
        },
        [RECORD_RELEASED] = {
            [MATCH_SAME] = EITHER(VERDICT_FORWARD),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED), /* it has forgotten them; if not: refuse */
        },
        [RECORD_EXPIRED] = {
            [MATCH_SAME] = EITHER(VERDICT_KEY_EXPIRED),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED),
        },
        [RECORD_VOIDED] = {
            [MATCH_SAME] = EITHER(VERDICT_KEY_VOIDED),
            [MATCH_OTHER_PAYLOAD] = EITHER(VERDICT_KEY_REUSED),
            [MATCH_OTHER_CREDENTIAL] = EITHER(VERDICT_KEY_REUSED),
        },
    },
};

struct decision decide_by(const struct decision_table *table, const struct record *found, const struct asked *asked,
                          int64_t now_ms)
{
    struct decision decision = { .state = found == NULL ? RECORD_ABSENT : record_state_at(found, now_ms) };
    enum match match = MATCH_SAME;
    unsigned differs = 0;
    if (decision.state != RECORD_ABSENT) { /* what time has forgotten is not compared either */
        /* Credentials first and alone: a stranger learns nothing about the payload (section 3). */
        if (credential_differs(&found->credential, asked->credential)) {
            match = MATCH_OTHER_CREDENTIAL;
            differs = DIFFERS_CREDENTIALS;
        } else if (asked->fingerprint != NULL &&
                   (differs = fingerprint_differs(&found->fingerprint, asked->fingerprint)) != 0) {
            match = MATCH_OTHER_PAYLOAD;
        }
    }
    decision.verdict = table->cell[decision.state][match][asked->may_wait ? 1 : 0];
    decision.differs = decision.verdict == VERDICT_KEY_REUSED ? differs : 0;
    return decision;
}

struct decision decide(const struct record *found, const struct asked *asked, int64_t now_ms)
{
    return decide_by(&decision_table, found, asked, now_ms);
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICT_COUNT] = {
        [VERDICT_IMPOSSIBLE] = "impossible",
        [VERDICT_FORWARD] = "forward",
        [VERDICT_REPLAY] = "replay",
        [VERDICT_WAIT] = "wait",
        [VERDICT_IN_PROGRESS] = "in-progress",
        [VERDICT_KEY_REUSED] = "key-reused",
        [VERDICT_KEY_EXPIRED] = "key-expired",
        [VERDICT_KEY_VOIDED] = "key-voided",
        [VERDICT_OUTCOME_UNKNOWN] = "outcome-unknown",
    };
    return (unsigned) verdict < VERDICT_COUNT ? names[verdict] : "impossible";
}
