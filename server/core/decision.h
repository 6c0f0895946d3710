/* decision.h - what a keyed request gets, given the record that was found (docs/contract.md section 4, checks 7
 * and 8). A full table; decide() classifies and looks up. Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_DECISION_H
#define NONBIS_SERVER_CORE_DECISION_H

#include "server/core/record.h"

enum verdict {
    VERDICT_IMPOSSIBLE, /* a cell that cannot be reached; met in a running server it is a bug: refuse (503) */
    VERDICT_FORWARD,    /* new or released: the claim may be made */
    VERDICT_REPLAY,
    VERDICT_WAIT,
    VERDICT_IN_PROGRESS,
    VERDICT_KEY_REUSED,
    VERDICT_KEY_EXPIRED,
    VERDICT_KEY_VOIDED,
    VERDICT_OUTCOME_UNKNOWN,
    VERDICT_COUNT
};

enum match { MATCH_SAME, MATCH_OTHER_PAYLOAD, MATCH_OTHER_CREDENTIAL, MATCH_COUNT };

struct asked {
    const struct fingerprint *fingerprint; /* NULL: a status query has no payload to compare */
    const struct credential *credential;   /* present=false when the guard is off */
    bool may_wait;                         /* waiting was asked for, is allowed, and there is room */
};

struct decision {
    enum verdict verdict;
    enum record_state state; /* that counted */
    unsigned differs;        /* for KEY_REUSED: bits of fingerprint.h; credentials alone, never with others */
};

struct decision_table {
    enum verdict cell[RECORD_STATE_COUNT][MATCH_COUNT][2]; /* last index: may_wait */
};
extern const struct decision_table decision_table;

/* `found` NULL or zeroed: no record. `now_ms` is store time. */
struct decision decide(const struct record *found, const struct asked *asked, int64_t now_ms);
/* The same by another table: for the tests, which plant faults in a copy. */
struct decision decide_by(const struct decision_table *table, const struct record *found, const struct asked *asked,
                          int64_t now_ms);

const char *verdict_name(enum verdict verdict);

#endif
