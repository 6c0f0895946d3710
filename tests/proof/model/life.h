/* life.h - the life of one record as a finite table, drawn from the code: every situation that the functions of server/core/record.h lead to,
 * and where each of their operations leads from it. The model (record.pml) runs on this table, and tests/model/life_test.c holds it against
 * life.txt, which is written by hand. Nothing here knows a rule: what is allowed is asked of the code. Pure. */
#ifndef NONBIS_TESTS_PROOF_MODEL_LIFE_H
#define NONBIS_TESTS_PROOF_MODEL_LIFE_H

#include "server/core/decision.h"

/* What was written, and which of its times are over. */
enum situation {
    SITUATION_ABSENT,
    SITUATION_RUNNING,
    SITUATION_RUNNING_LATE, /* past the deadline of its claim */
    SITUATION_COMPLETED,
    SITUATION_COMPLETED_OLD, /* past the end of replay, not swept yet */
    SITUATION_COMPLETED_OVER,
    SITUATION_UNKNOWN,
    SITUATION_UNKNOWN_OLD,
    SITUATION_UNKNOWN_OVER,
    SITUATION_RELEASED,
    SITUATION_RELEASED_OVER,
    SITUATION_TOMB_YES, /* swept: the tombstone of a completed command */
    SITUATION_TOMB_YES_OVER,
    SITUATION_TOMB_UNKNOWN,
    SITUATION_TOMB_UNKNOWN_OVER,
    SITUATION_VOIDED,
    SITUATION_VOIDED_OVER,
    SITUATION_VOIDED_UNSEEN, /* no payload was seen before */
    SITUATION_VOIDED_UNSEEN_OVER,
    SITUATION_COUNT
};

enum { LIFE_PAYLOADS = 2, LIFE_CALLERS = 2, LIFE_KINDS = OUTCOME_UNKNOWN + 1, LIFE_ROWS = 128, LIFE_NO = -1 };

/* Where an operation leads: a row, or LIFE_NO when it is refused or changes nothing. */
struct life_moves {
    int claim[LIFE_PAYLOADS][LIFE_CALLERS];
    int finish[LIFE_KINDS];       /* by the newest execution */
    int finish_other[LIFE_KINDS]; /* by any other one */
    int cancel[LIFE_CALLERS];     /* void */
    int tick;                     /* the next of its times comes */
    int sweep;                    /* the clean-up writes down what time has done */
    int recover;                  /* a start finds it in progress */
};

struct life_row {
    enum situation situation;
    int payload, caller; /* that it holds: 1, 2, or 0 for none */
    struct record record;
    int64_t now_ms;
    enum record_state state; /* that counts */
    enum executed executed;
    bool over;      /* its last time has come, or it was never there */
    bool counts_up; /* a claim is one more execution, not the first */
    struct life_moves moves;
    enum verdict verdict[LIFE_PAYLOADS][LIFE_CALLERS][2]; /* last index: may wait */
};

struct life {
    struct life_row rows[LIFE_ROWS]; /* the first is SITUATION_ABSENT */
    int count;
    const char *fault; /* NULL, or why the table cannot be trusted */
};

/* Draws the table; false: `fault` says why it could not. */
bool life_draw(struct life *life);

const char *situation_name(enum situation situation); /* "absent", "running", ... */

#endif
