/* digest.h - hashes, randomness and constant-time comparison; libsodium is used in this room alone (digest.c, hash.h).
 * digest_init() once at start, before any thread; then any thread. */
#ifndef NONBIS_SERVER_DIGEST_DIGEST_H
#define NONBIS_SERVER_DIGEST_DIGEST_H

#include "common/view.h"

enum { DIGEST_KEY_BYTES = 32, DIGEST_SHORT_BYTES = 16 };

/* False when the library cannot start (no random source): the caller must not go on. */
bool digest_init(void);

void digest_random(void *out, size_t len);
uint32_t digest_random32(void);

/* BLAKE2b with a key over length-prefixed parts (8 bytes little-endian, then the bytes), so that no two different lists of
 * parts give the same input. `out_len` 16 to 64. */
void digest_keyed(const uint8_t key[DIGEST_KEY_BYTES], const struct view *parts, size_t count, uint8_t *out,
                  size_t out_len);

/* SipHash-2-4 with 128 bits of output and the first half of `key`, over the same input: an order of magnitude faster for short texts, and as
 * hard to steer for whoever does not know the key. For look-ups, never where a secret is behind it. */
void digest_keyed_short(const uint8_t key[DIGEST_KEY_BYTES], const struct view *parts, size_t count,
                        uint8_t out[DIGEST_SHORT_BYTES]);

/* The name that a key has in the log: the same on every line of one store, and no way back from it to the key. Hex digits and a NUL. */
enum { DIGEST_LOG_NAME_BYTES = 13 };
void digest_log_name(const uint8_t key[DIGEST_KEY_BYTES], struct view tenant, struct view idempotency_key,
                     char out[DIGEST_LOG_NAME_BYTES]);

/* Constant time in the content. */
bool digest_equal(const void *a, const void *b, size_t len);

#endif
