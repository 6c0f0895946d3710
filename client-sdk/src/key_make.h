/* key_make.h - fresh keys. The grammar of keys is common/key.h. Any thread. */
#ifndef NONBIS_CLIENT_KEY_MAKE_H
#define NONBIS_CLIENT_KEY_MAKE_H

#include "client-sdk/include/nonbis.h"
#include "client-sdk/src/random.h"

/* A UUID version 7 (RFC 9562 section 5.7): 48 bits of wall time, 74 of chance. Sorts by time, which the journal likes.
 * False, and an empty text, when the source fails. */
bool key_make(struct random_source *source, int64_t wall_ms, char out[NONBIS_KEY_SIZE]);

#endif
