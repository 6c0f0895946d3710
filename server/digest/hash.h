/* hash.h - the running BLAKE2b hash behind digest.c and fingerprint_make.c; private to this room. One thread at a time.
 *
 * A size that the library refuses is a bug of the caller, and a digest that was not computed would compare equal to another
 * one: so it ends the process. */
#ifndef NONBIS_SERVER_DIGEST_HASH_H
#define NONBIS_SERVER_DIGEST_HASH_H

#include "server/digest/digest.h"

#include <sodium.h>
#include <stdlib.h>

struct hash {
    crypto_generichash_state state; /* its type asks for 64-byte alignment: keep it off malloc (docs/facts.md 40) */
};

/* `key` NULL: without one. */
static inline void hash_begin(struct hash *hash, const uint8_t *key, size_t out_len)
{
    if (out_len < crypto_generichash_BYTES_MIN ||
        crypto_generichash_init(&hash->state, key, key == NULL ? 0 : DIGEST_KEY_BYTES, out_len) != 0) {
        abort();
    }
}

static inline void hash_add(struct hash *hash, const void *bytes, size_t len)
{
    if (len != 0 && crypto_generichash_update(&hash->state, (const unsigned char *) bytes, len) != 0) {
        abort();
    }
}

/* 8 bytes, little-endian, on every machine. */
static inline void hash_add_number(struct hash *hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t) (number >> (8 * i));
    }
    hash_add(hash, bytes, sizeof(bytes));
}

/* The length, then the bytes: no two different lists of parts are the same input. */
static inline void hash_add_part(struct hash *hash, struct view part)
{
    hash_add_number(hash, part.len);
    hash_add(hash, part.ptr, part.len);
}

static inline void hash_end(struct hash *hash, uint8_t *out, size_t out_len)
{
    if (crypto_generichash_final(&hash->state, out, out_len) != 0) {
        abort();
    }
}

#endif
