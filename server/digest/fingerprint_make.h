/* fingerprint_make.h - computes fingerprints and credential digests (docs/contract.md section 3). Any thread. */
#ifndef NONBIS_SERVER_DIGEST_FINGERPRINT_MAKE_H
#define NONBIS_SERVER_DIGEST_FINGERPRINT_MAKE_H

#include "server/core/fingerprint.h"
#include "server/digest/digest.h"
#include "server/http/headers.h"

/* BLAKE2b-256 over the version byte and the length-prefixed parts in the order of enum fingerprint_part; beside it a 4-byte digest of
 * each part. Absent fields are empty views. */
void fingerprint_make(const struct view parts[FINGERPRINT_PART_COUNT], struct fingerprint *out);

/* Keyed digest over the guarded fields' names and values in the order of `guard` (absent counts as a value of its own, different from
 * empty). `guard_count` 0: present is false. */
void credential_make(const uint8_t guard_key[DIGEST_KEY_BYTES], const struct view *guard, size_t guard_count,
                     struct header_span headers, struct credential *out);

#endif
