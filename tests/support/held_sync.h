/* held_sync.h - what a test and the server whose syncs it holds share: a small file, mapped by both. The environment variable names it. */
#ifndef NONBIS_TESTS_HELD_SYNC_H
#define NONBIS_TESTS_HELD_SYNC_H

#include <stdint.h>

#define HELD_SYNC_FILE "TEST_SYNCS"
#define HELD_SYNC_ALL UINT32_MAX

/* Syncs are numbered from 1. One whose number is over `allowed` waits until it is not. Both are futexes; what moves up wakes who waits for it. */
struct held_sync {
    uint32_t arrived; /* syncs that began: the server's */
    uint32_t allowed; /* the test's */
};

#endif
