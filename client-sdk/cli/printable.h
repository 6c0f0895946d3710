/* printable.h - text of others, as it may be shown on a terminal: what would play with it becomes "?". Servers, journals and file
 * names may hold anything. No state. */
#ifndef NONBIS_CLI_PRINTABLE_H
#define NONBIS_CLI_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* In place, byte for byte: control bytes of ASCII, those that UTF-8 can also say (U+0080 to U+009F), the marks that turn the
 * direction of writing, and what is no UTF-8. `lines`: line ends and tabs stay. */
void printable_clean(char *text, size_t len, bool lines);

/* A clean copy in a place of the caller, cut where it does not fit; returns `out`. */
const char *printable_copy(char *out, size_t size, const char *text);

#endif
