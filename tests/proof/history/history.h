/* history.h - what really happened: the oracle's ledger (every arrival at the handler, written durably before it acts) and what clients saw (each
 * question with the time at which it was asked and the time at which its answer was whole), as events, and as text, one line each:
 *
 *   arrival at=5 tenant=a key=k payload=p no=1 does=run execution=e1 number=1 command=c1 body=b1   the handler got it, and means to answer with b1;
 *                                                         does=break: and breaks off before the end; does=decline: and said it did nothing
 *   attempt at=1..9 no=1 tenant=a key=k payload=p answer=201 word=executed execution=e1 body=b1 fields=f1
 *   attempt at=1.. no=2 tenant=a key=k payload=p                                           no whole answer: unknown to its client
 *   status at=10..11 tenant=a key=k answer=200 state=completed executed=yes executions=1
 *   void at=10..11 tenant=a key=k answer=422 problem=not-voidable state=completed executed=yes
 *   plan fault=kill         the run means to meet it                      fault fault=kill        it was met once more
 *   quiet at=50             all faults are over
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, one clock for all processes of a machine. `no` numbers the attempts of a history: the attempt tells it
 * to the handler in a field that no fingerprint reads. Words that are not told are empty. Owns no judgement (checker.h) and no thread. */
#ifndef NONBIS_TESTS_PROOF_HISTORY_H
#define NONBIS_TESTS_PROOF_HISTORY_H

#include "common/buf.h"

enum history_kind {
    HISTORY_ARRIVAL,
    HISTORY_ATTEMPT,
    HISTORY_STATUS,
    HISTORY_VOID,
    HISTORY_PLAN,
    HISTORY_FAULT,
    HISTORY_QUIET,
    HISTORY_KINDS
};

enum { HISTORY_WORD_MAX = 24, HISTORY_KEY_MAX = 40 };
#define HISTORY_NEVER INT64_MAX

struct history_event {
    enum history_kind kind;
    int64_t from, to; /* ns; of an arrival both are its time; HISTORY_NEVER: no whole answer came */
    char tenant[HISTORY_WORD_MAX], key[HISTORY_KEY_MAX], payload[HISTORY_WORD_MAX];
    unsigned no;                                           /* of the attempt */
    unsigned number;                                       /* of the execution, as the handler was told it */
    char does[HISTORY_WORD_MAX], command[HISTORY_KEY_MAX]; /* of an arrival */
    unsigned answer;                                       /* HTTP status; 0: none */
    char execution[HISTORY_WORD_MAX]; /* the handler's own id of what it did, which its answer tells */
    char word[HISTORY_WORD_MAX], problem[HISTORY_WORD_MAX];   /* Idempotency-Status; last part of a problem's type */
    char executed[HISTORY_WORD_MAX], state[HISTORY_WORD_MAX]; /* members of a problem or status */
    unsigned executions;                                      /* member of a status */
    char body[HISTORY_WORD_MAX],
        fields[HISTORY_WORD_MAX]; /* hashes of the answer's bytes, and of the fields that a replay repeats */
    char fault[HISTORY_WORD_MAX];
};

struct history {
    struct history_event *events;
    size_t count, room;
};

void history_init(struct history *history);
void history_fini(struct history *history);
/* The place of a new event, zeroed but for its kind; valid until the next is added. */
struct history_event *history_add(struct history *history, enum history_kind kind);

/* Adds the events of a text; 0, or the number of the first line that is not understood. A last line without its end is left out: a
 * writer was killed over it. Empty lines and those that begin with '#' count for nothing. */
size_t history_read(struct history *history, struct view text);
void history_write_event(const struct history_event *event, struct buf *out);

/* A name for bytes: 16 hex digits (FNV-1a). */
void history_hash(struct view bytes, char hash[HISTORY_WORD_MAX]);
/* Of the head of an answer: the status line and the fields that a replay repeats, in any order; those of one hop or one telling are left
 * out: Date, Connection, Content-Length, Idempotency-Status, Idempotent-Replayed and the like (docs/contract.md 10.6). */
void history_hash_head(struct view head, char hash[HISTORY_WORD_MAX]);

#endif
