/* dry_run.h - `nonbis post --dry-run`: what would be sent, and when; nothing is. */
#ifndef NONBIS_CLI_DRY_RUN_H
#define NONBIS_CLI_DRY_RUN_H

#include "client-sdk/cli/session.h"

enum exit_code dry_run_print(const struct session *session, const struct nonbis_op *op, const struct buf *body);

#endif
