/* output.h - what a run leaves behind: the answer on stdout or in -o FILE, or one JSON object. */
#ifndef NONBIS_CLI_OUTPUT_H
#define NONBIS_CLI_OUTPUT_H

#include "client-sdk/cli/options.h"
#include "common/buf.h"

/* Whether -o FILE could be written, asked before anything is sent. False: it said what is wrong. */
bool output_check(const struct options *options);

/* Whether the last answer is the command's own: what else came (a 503 before the deadline, say) is never shown as the answer. */
bool output_is_answer(const struct nonbis_op *op);

/* Shows the answer. What cannot be written makes of 0 the 12 of an answer that is not in hand. `policy` is the one
 * that the operation ran under. */
enum exit_code output_end(const struct options *options, const struct nonbis_policy *policy, const struct nonbis_op *op,
                          enum exit_code code);

/* The library refused before anything was sent: sentence, or with --json an object. Gives back `code`. */
enum exit_code output_refusal(const struct options *options, const char *what, const char *why, enum exit_code code);

#endif
