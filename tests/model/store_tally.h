/* store_tally.h - what the random life of two stores (store_model_test.c) has come to: how often each operation had each result, and which pairs of both must
 * have happened. */
#ifndef NONBIS_TESTS_STORE_TALLY_H
#define NONBIS_TESTS_STORE_TALLY_H

enum operation {
    CLAIM_SAME,
    CLAIM_UNALLOWED, /* may_claim false */
    CLAIM_OTHER_PAYLOAD,
    CLAIM_OTHER_CREDENTIAL,
    FINISH_COMPLETED,
    FINISH_RELEASED,
    FINISH_UNKNOWN,
    FINISH_OLD,     /* by an execution that may have lost the command */
    FINISH_FOREIGN, /* with the row of another key */
    LOOK_UP,
    LOOK_UP_ID,
    VOID,
    SWEEP,
    OPERATION_COUNT
};

/* `result` must stay valid. */
void tally_count(enum operation operation, const char *result);
void tally_print(void);
void tally_check(void); /* fails the test unless all that must happen has */

#endif
