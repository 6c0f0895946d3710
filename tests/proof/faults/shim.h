/* shim.h - what the shims and the tests that load them share. A shim is a shared object that the program under test is started with (LD_PRELOAD),
 * so that the program itself is the real one, to the byte. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_SHIM_H
#define NONBIS_TESTS_PROOF_FAULTS_SHIM_H

#include <stdint.h>

/* --- shim_power: a disk that keeps what was synced --- */

#define POWER_STORE "TEST_POWER_STORE" /* the folder that lies on the disk, absolute */
#define POWER_DISK "TEST_POWER_DISK"   /* the folder in which the shim keeps what is durable */
#define POWER_NORMAL                                                                                                   \
    "TEST_POWER_NORMAL" /* when set: the store's connection gets PRAGMA synchronous=NORMAL behind its back */
#define POWER_CUT_AT                                                                                                   \
    "TEST_POWER_CUT_AT" /* the number of the sync at which the process ends, from 1; with a + behind it: once it is durable */
#define POWER_CUT_FROM "TEST_POWER_CUT_FROM" /* when set: syncs are counted while this file is there */
#define POWER_ENTRIES "entries"              /* a line for each durable name: "ID NAME"; the content is the file ID */

/* --- shim_io and shim_memory: the n-th operation fails; a page of memory that both sides have mapped --- */

#define PLAN_FILE "TEST_FAULT_PLAN"
#define PLAN_STORE "TEST_FAULT_STORE" /* shim_io: only files below this folder count */

enum plan_operation { PLAN_NONE, PLAN_SYNC, PLAN_WRITE, PLAN_MEMORY };

struct plan {
    uint32_t operation; /* what fails; the rest is only counted */
    uint32_t nth;       /* from 1, counted since the count was set to 0 */
    int32_t code;       /* errno */
    uint32_t half;      /* a write takes half of its bytes first, as a disk that is full does */
    uint32_t lasting;   /* all from the n-th on, and not it alone */
    uint32_t count;     /* of the operation that fails, so far */
    uint32_t hits;
};

#endif
