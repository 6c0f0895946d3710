/* plan.h - which operation of the program fails (shim.h), as seen by the test. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_PLAN_H
#define NONBIS_TESTS_PROOF_FAULTS_PLAN_H

#include "tests/proof/faults/shim.h"

/* Maps a page and names it to the programs that are started from here on. It ends with the test's process. */
struct plan *plan_make(void);
void plan_store(const char *folder); /* whose files count, for shim_io */
/* From now on: the nth such operation fails, or all from it on. */
void plan_arm(struct plan *plan, enum plan_operation operation, unsigned nth, int code, int lasting, int half);
void plan_disarm(struct plan *plan);
void plan_end(void); /* the environment */

#endif
