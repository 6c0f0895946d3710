/* fingerprint.h - what makes two payloads the same (docs/contract.md section 3): the value and its comparison.
 * Computing it needs a hash function and lives in server/digest/fingerprint_make.h. Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_FINGERPRINT_H
#define NONBIS_SERVER_CORE_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

enum { FINGERPRINT_VERSION = 1, FINGERPRINT_BYTES = 32, FINGERPRINT_PART_BYTES = 4, CREDENTIAL_BYTES = 16 };

/* In the order in which they are hashed; `differs` names them in this order. */
enum fingerprint_part {
    FINGERPRINT_METHOD,
    FINGERPRINT_AUTHORITY,
    FINGERPRINT_TARGET,
    FINGERPRINT_CONTENT_TYPE,
    FINGERPRINT_CONTENT_ENCODING,
    FINGERPRINT_BODY,
    FINGERPRINT_PART_COUNT
};

/* Bits of a difference: 1 << part, and this one for another credential (always alone). */
enum { DIFFERS_CREDENTIALS = 1 << FINGERPRINT_PART_COUNT };

struct fingerprint {
    uint8_t version; /* 0: none (a voided key that was never seen) */
    uint8_t digest[FINGERPRINT_BYTES];
    uint8_t parts[FINGERPRINT_PART_COUNT][FINGERPRINT_PART_BYTES];
};

/* The digest of the guarded fields of one caller. */
struct credential {
    bool present; /* false: guard is off, or the record has forgotten it (released) */
    uint8_t digest[CREDENTIAL_BYTES];
};

/* 0 when both are the same payload, else the bits of the parts that differ. When the digests differ and no short one does
 * (a collision of short digests), every bit is set: never 0. A record without a fingerprint equals everything. */
unsigned fingerprint_differs(const struct fingerprint *recorded, const struct fingerprint *asked);

/* Another caller: both have a digest and they differ. `asked` may be NULL. Constant time in the content. */
bool credential_differs(const struct credential *recorded, const struct credential *asked);

/* "method", "authority", "target", "content-type", "content-encoding", "body"; "credentials" for bit FINGERPRINT_PART_COUNT. */
const char *fingerprint_part_name(unsigned bit);

#endif
