/* digest.c - libsodium's hashes, randomness and comparison. Owns nothing; the library's own state is set up once by
 * digest_init(). */
#include "server/digest/digest.h"

#include "server/digest/hash.h"

bool digest_init(void)
{
    return sodium_init() >= 0; /* 1: was done before */
}

void digest_random(void *out, size_t len)
{
    randombytes_buf(out, len);
}

uint32_t digest_random32(void)
{
    return randombytes_random();
}

void digest_keyed(const uint8_t key[DIGEST_KEY_BYTES], const struct view *parts, size_t count, uint8_t *out,
                  size_t out_len)
{
    struct hash hash;
    hash_begin(&hash, key, out_len);
    for (size_t i = 0; i < count; i++) {
        hash_add_part(&hash, parts[i]);
    }
    hash_end(&hash, out, out_len);
}

bool digest_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || sodium_memcmp(a, b, len) == 0;
}
