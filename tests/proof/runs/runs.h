/* runs.h - the runs of the proof, each long (the program proof-runs) and short (a suite of the group integration). Each ends with the checker over its
 * history, fails the test when a rule is broken, and prints its line. */
#ifndef NONBIS_TESTS_PROOF_RUNS_H
#define NONBIS_TESTS_PROOF_RUNS_H

#include <stdbool.h>

void run_kill9(unsigned kills);                     /* T1 */
void run_crash_points(unsigned times);              /* T2, each point so often */
void run_killed_handler(unsigned count);            /* T7 */
void run_client_gone(unsigned times);               /* T9, each phase so often */
void run_slow_handler(unsigned count);              /* T11, so many of each kind */
void run_drain(unsigned running, unsigned waiters); /* T12 */
void run_overload(unsigned rounds);                 /* T15 */
void run_flood(unsigned rounds, bool timed);        /* T17; timed: the times of the others are judged */
void run_paused_server(unsigned count, int ms);     /* T25, for so long */
void run_backup(unsigned copies);                   /* T28 */
/* T29: so many lives, so many faults in each; all: of every kind, memory judged, and for SOAK_MINUTES if that is longer */
void run_soak(unsigned lives, unsigned rounds, bool all);
/* T31: `count` that never come to an end, beside so many `clients` and so many that are slow and do */
void run_slow_peers(unsigned count, unsigned clients, unsigned slow);

#endif
