/* checker.h - holds a history (history.h) against what docs/contract.md promises. Pure: no clock, no file, no chance; sorted scans, O(n log n).
 *
 *   R1  at most once     of one tenant and key one arrival is not declined, and none comes behind it                  the promise, 6.16
 *   R2  claim first      every arrival's command and execution number are in the store when all is over               4.7, 11.1
 *   R3  the same answer  executed and replayed ones of a command: equal status, fields, body, execution; the body is the one
 *                        that the handler made, and whole                                                             10.6, 6.5
 *   R4  nothing lost     behind a recorded answer every question about that command gets it (or 429, 503, nothing)    4.8, 11.1
 *   R5  own commands     no answer tells of an execution, or of a record, that this tenant did not cause               3.2
 *   R6  one payload      another payload under a known key is refused; the same one never is                           3.10, 4.6
 *   R7  honest words     absent, released, "no": nothing ran before; completed, "yes": it ran; voided: it never ran    5.2, 7.2, 7.4
 *   R8  no way back      what is told of a command only moves forward; executions are counted up                       section 6
 *   R9  single flight    one attempt, one arrival at most; a repeat that is told 409 or a replay has none              6.13, 10.15
 *   R10 certain failure  refused, not reached, voided: the handler did not get this attempt; nothing comes later       5.3, 6.1, 8.1
 *   R11 an end           when all faults are over, every attempt is answered and every command has settled             6.15
 *   R12 really met       every fault that the run planned was met                                                      (of the proof)
 *
 * Retention is not in it: a history is shorter than `ttl`. */
#ifndef NONBIS_TESTS_PROOF_CHECKER_H
#define NONBIS_TESTS_PROOF_CHECKER_H

#include "tests/proof/history/history.h"

enum { CHECKER_RULES = 13, CHECKER_TEXT_MAX = 700 }; /* counted from 1 */

struct checker_report {
    unsigned faults[CHECKER_RULES];
    char first[CHECKER_RULES][CHECKER_TEXT_MAX]; /* the first of each, in words, with its event */
    unsigned faults_all;
    /* figures */
    unsigned keys, attempts, arrivals, executions; /* executions: arrivals that were not declined */
    unsigned acknowledged;                         /* commands whose answer was told as recorded */
    unsigned unknown, voided;                      /* commands that ended so */
    unsigned unanswered;                           /* attempts without a whole answer */
};

/* What a command must have settled to after `quiet` and so many nanoseconds more. */
void checker_run(const struct history *history, int64_t grace_ns, struct checker_report *report);
/* A line per broken rule; "" when none is. */
void checker_write(const struct checker_report *report, struct buf *out);

#endif
