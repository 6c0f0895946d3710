/* size.h - how much is tried. Two programs are made of these tests: `proof-faults` (long.c) and, for every `make test`, `faults` (brief.c). */
#ifndef NONBIS_TESTS_PROOF_FAULTS_SIZE_H
#define NONBIS_TESTS_PROOF_FAULTS_SIZE_H

struct faults_size {
    unsigned cuts, control_cuts; /* T3 */
    unsigned sync_stride;        /* T3: each n-th sync is cut at; 1: every one */
    unsigned io_modes;           /* T4: of io_modes in io_test.c, from the first */
    unsigned io_stride;          /* T4: each n-th operation fails in turn; 1: every one */
    unsigned starvings;          /* T5: of starvings in memory_test.c, from the first */
    unsigned memory_percent;     /* T5: the next n is so much larger */
    unsigned memory_step;        /* T5: and among the last of the command so much larger */
    unsigned disk_rounds;        /* T6 */
    unsigned clock_steps;        /* T10 */
    unsigned crowd;              /* T13: clients */
    unsigned bodies;             /* T14: clients with large bodies at once */
};
extern const struct faults_size faults_size;

#endif
