/* run.h - running an operation: plan, act, note, until the planner says stop.
 *
 *     run.c            the loop, waits, how it ends
 *     run_exchange.c   one attempt or one question: request out, facts in, classified
 *     run_journal.c    what the journal is told, and when
 *     run_event.c      what the callback and the counters are told
 *     run_message.c    the sentence about how it ended
 *
 * Everything runs on the thread that called nonbis_op_run; the client's lock is held for counting and for the breaker only,
 * never while something is waited for or called back. */
#ifndef NONBIS_CLIENT_RUN_H
#define NONBIS_CLIENT_RUN_H

#include "client-sdk/src/client.h"

/* Runs to a stop. NONBIS_OK: there is an outcome. */
int run_operation(struct nonbis_op *op, enum goal goal);

/* One question for the status outside of a run; the reading is written to op->status. */
int run_ask_once(struct nonbis_op *op);

/* Sends, or asks; notes the finding in the history and in `*reading`. */
void run_attempt(struct nonbis_op *op, const struct plan *plan, struct reading *reading);
void run_ask(struct nonbis_op *op, const struct plan *plan, struct reading *reading);

/* Before the first attempt; NONBIS_OK also without a journal. */
int run_journal_begin(struct nonbis_op *op);
/* Inside the hook. */
int run_journal_sending(struct nonbis_op *op);
/* A run has ended: op->outcome and op->stop are set. */
void run_journal_end(struct nonbis_op *op);

/* False: the callback said stop. `reading` and `plan` may be NULL. */
bool run_event(struct nonbis_op *op, enum nonbis_event_kind kind, const struct reading *reading,
               const struct plan *plan);
/* Counts an attempt, a wait, an end. */
void run_count_attempt(struct nonbis_op *op, const struct reading *reading);
void run_count_wait(struct nonbis_op *op, const struct plan *plan);
void run_count_end(struct nonbis_op *op, int64_t elapsed_ms);

/* Fills op->message and op->reason_text. */
void run_message(struct nonbis_op *op, const struct plan *plan);
/* Fills op->message: which fields must be set again. */
void run_message_lacks(struct nonbis_op *op);

int64_t run_now_ms(const struct nonbis_op *op); /* monotonic */
int64_t run_wall_ms(const struct nonbis_op *op);

#endif
