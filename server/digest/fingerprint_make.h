/* fingerprint_make.h - computes fingerprints and credential digests (docs/contract.md section 3). Any thread. */
#ifndef NONBIS_SERVER_DIGEST_FINGERPRINT_MAKE_H
#define NONBIS_SERVER_DIGEST_FINGERPRINT_MAKE_H

#include "server/core/fingerprint.h"
#include "server/digest/digest.h"
#include "server/http/headers.h"

/* out->digest is BLAKE2b with 32 bytes of output and no key over
 *
 *     version (1 byte: 1)
 *     for each part, in the order of enum fingerprint_part:
 *         length in bytes (8 bytes, little-endian)
 *         the bytes
 *
 * and out->parts[i] the first 4 bytes of SipHash-2-4 (64 bits, a key of zeros) over part i alone. Absent fields are empty views.
 * The layout is stored: another one needs another version. */
void fingerprint_make(const struct view parts[FINGERPRINT_PART_COUNT], struct fingerprint *out);

/* out->digest is BLAKE2b with 16 bytes of output and `guard_key` over, for each name of `guard` in its order: the name in lower
 * case (8 bytes length, bytes), the number of its fields (8 bytes; 0: absent, which is not the same as empty), and each field's value
 * (8 bytes length, bytes) in the order received; numbers are little-endian. `guard_count` 0: present is false. */
void credential_make(const uint8_t guard_key[DIGEST_KEY_BYTES], const struct view *guard, size_t guard_count,
                     struct header_span headers, struct credential *out);

#endif
