/* complain.h - one line on stderr: "nonbis: ...". Says what was tried, on what, why it failed, what happens now. */
#ifndef NONBIS_CLI_COMPLAIN_H
#define NONBIS_CLI_COMPLAIN_H

#include <stddef.h>

/* Adds the prefix and the line's end; control bytes that came from outside become '?', so that nothing plays with the terminal.
 * One write, so that lines of several processes do not mix. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
