/* journal_digest.h - SHA-256 (FIPS 180-4), so that the library needs no other: names of long keys, and the check behind every
 * entry, which `sha256sum` can verify by hand. Not for secrets. Any thread. */
#ifndef NONBIS_CLIENT_JOURNAL_DIGEST_H
#define NONBIS_CLIENT_JOURNAL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_DIGEST = 32, JOURNAL_DIGEST_HEX = 64 };

void journal_digest(const void *bytes, size_t len, uint8_t out[JOURNAL_DIGEST]);
void journal_digest_hex(const void *bytes, size_t len, char out[JOURNAL_DIGEST_HEX + 1]); /* lower case */

#endif
