/* digest.c - libsodium's hashes, randomness and comparison. Owns nothing; the library's own state is set up once by
 * digest_init(). */
#include "server/digest/digest.h"

#include "server/digest/hash.h"

#include <assert.h>
#include <string.h>

enum {
    RANDOM_POOL_BYTES = 2048,
    SHORT_INPUT_MAX = 1024, /* tenant, key and their lengths, with room */
};

bool digest_init(void)
{
    return sodium_init() >= 0; /* 1: was done before */
}

/* The kernel is asked for many bytes at a time: a system call for every command id is a cost that shows. Bytes are wiped as they
 * are handed out. The process does not fork after its start (and a child that did would have to exec). */
static _Thread_local struct {
    unsigned char bytes[RANDOM_POOL_BYTES];
    size_t left; /* at the end */
} pool;

void digest_random(void *out, size_t len)
{
    if (len > RANDOM_POOL_BYTES) {
        randombytes_buf(out, len);
        return;
    }
    if (pool.left < len) {
        randombytes_buf(pool.bytes, sizeof pool.bytes);
        pool.left = sizeof pool.bytes;
    }
    unsigned char *from = pool.bytes + sizeof pool.bytes - pool.left;
    memcpy(out, from, len);
    memset(from, 0, len);
    pool.left -= len;
}

uint32_t digest_random32(void)
{
    uint32_t number;
    digest_random(&number, sizeof number);
    return number;
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

void digest_keyed_short(const uint8_t key[DIGEST_KEY_BYTES], const struct view *parts, size_t count,
                        uint8_t out[DIGEST_SHORT_BYTES])
{
    static_assert(crypto_shorthash_siphashx24_BYTES == DIGEST_SHORT_BYTES, "128 bits");
    uint8_t input[SHORT_INPUT_MAX];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizeof input - len < sizeof(uint64_t) + parts[i].len) {
            abort(); /* a bug of the caller: its parts have bounds */
        }
        for (unsigned byte = 0; byte < sizeof(uint64_t); byte++) {
            input[len++] = (uint8_t) ((uint64_t) parts[i].len >> (8 * byte));
        }
        if (parts[i].len > 0) {
            memcpy(input + len, parts[i].ptr, parts[i].len);
            len += parts[i].len;
        }
    }
    if (crypto_shorthash_siphashx24(out, input, len, key) != 0) {
        abort();
    }
}

void digest_log_name(const uint8_t key[DIGEST_KEY_BYTES], struct view tenant, struct view idempotency_key,
                     char out[DIGEST_LOG_NAME_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[DIGEST_SHORT_BYTES];
    const struct view parts[] = { VIEW("log"), tenant, idempotency_key };
    digest_keyed(key, parts, 3, digest, sizeof digest);
    for (size_t i = 0; i < DIGEST_LOG_NAME_BYTES - 1; i++) {
        out[i] = digits[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15];
    }
    out[DIGEST_LOG_NAME_BYTES - 1] = '\0';
}

bool digest_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || sodium_memcmp(a, b, len) == 0;
}
