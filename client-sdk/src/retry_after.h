/* retry_after.h - what a server asks for with Retry-After (RFC 9110 section 10.2.3). Pure. Any thread.
 *
 * libcurl's own reading is not used (docs/facts.md 5). Several lines: the largest readable one counts. Dates are taken
 * against the answer's own Date when it has one, so that a wrong clock here or there does not matter. */
#ifndef NONBIS_CLIENT_RETRY_AFTER_H
#define NONBIS_CLIENT_RETRY_AFTER_H

#include "client-sdk/src/answer.h"

/* Milliseconds from the arrival of the answer, 0 for a date that is past; -1 when it asks for nothing readable: absent,
 * "1.5", "-5". Saturates at one year. `wall_ms`: when it arrived. */
int64_t retry_after_ms(const struct answer *answer, int64_t wall_ms);

/* What must be added to our wall clock to get the server's, by the answer's Date; 0 when it has none. */
int64_t retry_after_skew_ms(const struct answer *answer, int64_t wall_ms);

#endif
