/* signals.h - INT and TERM cancel what runs; a second one ends the process at once. SIGPIPE is ignored: a reader that has gone
 * must not end a run whose outcome nobody knows yet.
 *
 * Threads: handlers run on any of them; they touch atomics, and call only what is meant for them. */
#ifndef NONBIS_CLI_SIGNALS_H
#define NONBIS_CLI_SIGNALS_H

#include "client-sdk/include/nonbis.h"

/* From now on signals cancel `op` instead of ending the process. NULL: there is none at the moment; a signal is remembered. */
void signals_watch(struct nonbis_op *op);

/* Bytes may have left: what a second signal's exit code goes by. */
void signals_note_sent(void);

/* The first signal that came, 0: none. */
int signals_caught(void);

void signals_ignore_pipe(void);

#endif
