/* explain.h - sentences for the library's reason words, and numbers as people read them. Pure. */
#ifndef NONBIS_CLI_EXPLAIN_H
#define NONBIS_CLI_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

/* "" for a word that is not known. */
const char *explain_reason(const char *word);

enum { EXPLAIN_TIME = 24 };

/* "320ms", "3.2s", "2s", "5m10s". */
void explain_ms(int64_t ms, char out[EXPLAIN_TIME]);
/* "3.2s", always tenths: what a countdown shows. */
void explain_tenths(int64_t ms, char out[EXPLAIN_TIME]);

#endif
