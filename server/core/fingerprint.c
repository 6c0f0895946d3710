/* fingerprint.c - comparing fingerprints and credentials. Owns nothing; computes no hash (server/digest does). */
#include "server/core/fingerprint.h"

#include <stddef.h>

enum { DIFFERS_EVERY_PART = (1 << FINGERPRINT_PART_COUNT) - 1 };

/* Constant time in the content, so that the time of a refusal tells nothing about what is stored. */
static bool bytes_differ(const uint8_t *a, const uint8_t *b, size_t len)
{
    volatile uint8_t seen = 0; /* volatile: an early exit must not be made of this loop */
    for (size_t i = 0; i < len; i++) {
        seen = (uint8_t) (seen | (a[i] ^ b[i]));
    }
    return seen != 0;
}

unsigned fingerprint_differs(const struct fingerprint *recorded, const struct fingerprint *asked)
{
    if (recorded->version == 0) {
        return 0; /* voided before any payload was seen: it stands for all of them */
    }
    if (recorded->version != asked->version) {
        return DIFFERS_EVERY_PART; /* not comparable, so not proved to be the same */
    }
    if (!bytes_differ(recorded->digest, asked->digest, FINGERPRINT_BYTES)) {
        return 0;
    }
    unsigned differs = 0;
    for (unsigned part = 0; part < FINGERPRINT_PART_COUNT; part++) {
        if (bytes_differ(recorded->parts[part], asked->parts[part], FINGERPRINT_PART_BYTES)) {
            differs |= 1U << part;
        }
    }
    return differs != 0 ? differs : DIFFERS_EVERY_PART;
}

bool credential_differs(const struct credential *recorded, const struct credential *asked)
{
    if (!recorded->present || asked == NULL || !asked->present) {
        return false;
    }
    return bytes_differ(recorded->digest, asked->digest, CREDENTIAL_BYTES);
}

const char *fingerprint_part_name(unsigned bit)
{
    static const char *const names[FINGERPRINT_PART_COUNT + 1] = {
        [FINGERPRINT_METHOD] = "method",
        [FINGERPRINT_AUTHORITY] = "authority",
        [FINGERPRINT_TARGET] = "target",
        [FINGERPRINT_CONTENT_TYPE] = "content-type",
        [FINGERPRINT_CONTENT_ENCODING] = "content-encoding",
        [FINGERPRINT_BODY] = "body",
        [FINGERPRINT_PART_COUNT] = "credentials",
    };
    return bit <= FINGERPRINT_PART_COUNT ? names[bit] : "";
}
