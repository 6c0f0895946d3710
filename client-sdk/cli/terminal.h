/* terminal.h - the one line on a terminal that counts down, and the Enter key that ends the wait.
 *
 *     attempt 2/4 in 3.2s (server asked 2s), Enter = now
 *
 * A thread of its own draws and listens while a run blocks; the functions here are called by the thread that runs it. Signals
 * are blocked in it, so that they interrupt the other. */
#ifndef NONBIS_CLI_TERMINAL_H
#define NONBIS_CLI_TERMINAL_H

#include "client-sdk/include/nonbis.h"

struct terminal;

/* NULL: stderr is no terminal that can do it, or there is no room; lines are the way then. */
struct terminal *terminal_open(struct nonbis_op *op);
void terminal_close(struct terminal *terminal);

/* A wait of `delay_ms` for `what` ("attempt 2/4"); `server_ms` of it the server asked for, -1: it did not ask. */
void terminal_wait(struct terminal *terminal, const char *what, int64_t delay_ms, int64_t server_ms);
/* Something is under way: shown with the time that it takes once that is worth showing. */
void terminal_work(struct terminal *terminal, const char *what);
/* Takes the line away, so that another may be printed. */
void terminal_clear(struct terminal *terminal);

#endif
