/* http_time.h - dates of HTTP and of our JSON, and Retry-After. Pure: "now" comes in. Any thread.
 * All times are milliseconds since 1970-01-01T00:00:00Z. */
#ifndef NONBIS_COMMON_HTTP_TIME_H
#define NONBIS_COMMON_HTTP_TIME_H

#include "common/view.h"

enum { HTTP_DATE_BYTES = 30, RFC3339_BYTES = 25 }; /* with the final NUL */

/* "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7). Fractions of a second are cut off. */
void http_date_write(int64_t unix_ms, char out[HTTP_DATE_BYTES]);

/* All three forms that RFC 9110 section 5.6.7 wants accepted, of years 0 to 9999; `now_ms` resolves two-digit years. */
bool http_date_read(struct view text, int64_t now_ms, int64_t *unix_ms);

/* "2026-11-29T12:00:00.123Z" (RFC 3339, always UTC, always milliseconds). */
void rfc3339_write(int64_t unix_ms, char out[RFC3339_BYTES]);

/* The form that rfc3339_write writes, with or without its milliseconds, and no other. */
bool rfc3339_read(struct view text, int64_t *unix_ms);

/* Retry-After (RFC 9110 section 10.2.3): seconds as digits, or a date. False when it is neither ("1.5", "-1");
 * a past date is 0; values saturate at one year. */
bool retry_after_read(struct view text, int64_t now_ms, int64_t *wait_ms);

#endif
