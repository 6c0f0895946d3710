/* body.h - the request's body: read whole before anything is sent, so that every attempt sends the same bytes. */
#ifndef NONBIS_CLI_BODY_H
#define NONBIS_CLI_BODY_H

#include "client-sdk/cli/options.h"
#include "common/buf.h"

/* What -d says: a text, @FILE, @- for stdin; nothing without it. False: it said what is wrong. `body` is init'ed and owned by
 * the caller either way. */
bool body_read(const struct options *options, struct buf *body);

/* Whether libnonbis sends a body with a request of that method: with all but GET and HEAD. */
bool body_goes_with(const char *method);

#endif
