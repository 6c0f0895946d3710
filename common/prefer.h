/* prefer.h - the preference `wait` of a Prefer field (RFC 7240 section 4.3). Owns nothing. Pure. Any thread.
 *
 * Section 2 there: several fields of one request are one list, and of several preferences with one name the first counts. A reader
 * of several lines therefore goes on until one gives PREFER_WAIT. */
#ifndef NONBIS_COMMON_PREFER_H
#define NONBIS_COMMON_PREFER_H

#include "common/view.h"

enum prefer_found {
    PREFER_NONE, /* no `wait` here, or none that can be read: as if nothing had been asked */
    PREFER_WAIT
};

/* Reads one field value. `*wait_s` is written only for PREFER_WAIT: whole seconds, 0 (not at all) to INT64_MAX, at which larger
 * numbers stop. A `wait` that is malformed is skipped like a preference that nobody knows, and so is a list element that is. */
enum prefer_found prefer_read_wait(struct view value, int64_t *wait_s);

#endif
