/* progress.h - what a run tells on stderr while it runs: a countdown on a terminal, else a line per decision; with -v a line for
 * everything, with --explain why. stdout is never touched. */
#ifndef NONBIS_CLI_PROGRESS_H
#define NONBIS_CLI_PROGRESS_H

#include "client-sdk/cli/options.h"
#include "client-sdk/cli/terminal.h"

struct progress {
    bool lines, all, explain, on_terminal;
    struct terminal *terminal; /* NULL: lines */
    char happened[96];         /* since the last decision: "attempt 1/4: answered 503" */
};

void progress_init(struct progress *progress, const struct options *options);

/* Around one run of `op`. */
void progress_begin(struct progress *progress, struct nonbis_op *op);
void progress_end(struct progress *progress);

void progress_event(struct progress *progress, const struct nonbis_event *event);

#endif
