/* block.c - see block.h. Owns nothing. */
#include "server/digest/block.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4, HALF_BYTES = BLOCK_BYTES / 2 };

static_assert(crypto_shorthash_siphash24_KEYBYTES == BLOCK_KEY_BYTES, "the key is SipHash's");
static_assert(crypto_shorthash_siphash24_BYTES == HALF_BYTES, "so is a half");

/* to ^= F(round, from) */
static void block_round(const uint8_t key[BLOCK_KEY_BYTES], unsigned round, const uint8_t *from, uint8_t *to)
{
    uint8_t input[1 + HALF_BYTES] = { (uint8_t) round }, mask[HALF_BYTES];
    memcpy(input + 1, from, HALF_BYTES);
    if (crypto_shorthash_siphash24(mask, input, sizeof input, key) != 0) {
        abort();
    }
    for (unsigned i = 0; i < HALF_BYTES; i++) {
        to[i] ^= mask[i];
    }
}

/* The halves take turns instead of changing places. */
static void block_turn(const uint8_t key[BLOCK_KEY_BYTES], unsigned round, uint8_t block[BLOCK_BYTES])
{
    uint8_t *left = block, *right = block + HALF_BYTES;
    block_round(key, round, round % 2 == 0 ? right : left, round % 2 == 0 ? left : right);
}

void block_encipher(const uint8_t key[BLOCK_KEY_BYTES], uint8_t block[BLOCK_BYTES])
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        block_turn(key, round, block);
    }
}

void block_decipher(const uint8_t key[BLOCK_KEY_BYTES], uint8_t block[BLOCK_BYTES])
{
    for (unsigned round = ROUNDS; round > 0; round--) {
        block_turn(key, round - 1, block);
    }
}
