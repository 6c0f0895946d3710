/* block.h - 16 bytes enciphered as one block. Any thread. */
#ifndef NONBIS_SERVER_DIGEST_BLOCK_H
#define NONBIS_SERVER_DIGEST_BLOCK_H

#include <stdint.h>

enum { BLOCK_KEY_BYTES = 16, BLOCK_BYTES = 16 };

/* A permutation of all blocks that `key` chooses: a Feistel network of four rounds, whose function is SipHash-2-4 (64 bits) over the number of
 * the round (1 byte, from 0) and a half (8 bytes). Whoever does not know the key can tell it from random numbers in neither direction (Luby and
 * Rackoff), as long as it meets fewer than about 2^32 blocks. For names that must not tell what is in them, never for secrets. The layout is
 * stored: another one needs another name in the store. */
void block_encipher(const uint8_t key[BLOCK_KEY_BYTES], uint8_t block[BLOCK_BYTES]);
void block_decipher(const uint8_t key[BLOCK_KEY_BYTES], uint8_t block[BLOCK_BYTES]);

#endif
