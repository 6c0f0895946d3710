/* check.h - whether a store is sound: looked at on request (`nonbisd --check-store FILE`), changing no byte of it. Own thread; nothing else of
 * the server runs. */
#ifndef NONBIS_SERVER_STORE_CHECK_H
#define NONBIS_SERVER_STORE_CHECK_H

#include "server/store/store.h"

/* Reads all of the database and its log. The text for the user goes to `out`: what was found, how many commands there are in which state, and a
 * last line when all is well. Returns 0, or an exit code (73: it may not be opened; 74: missing, locked, foreign, newer, damaged) with the
 * reason in `error`. */
int store_check(const char *path, struct buf *out, struct buf *error);

#endif
