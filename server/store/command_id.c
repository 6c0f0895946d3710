/* command_id.c - see command_id.h. Owns nothing. */
#include "server/store/command_id.h"

#include "server/digest/digest.h"

#include <assert.h>
#include <string.h>

enum { ROW_BYTES = 6 };

static_assert((int) COMMAND_ID_BYTES == (int) BLOCK_BYTES, "an id is one block");

void command_id_make(const uint8_t key[BLOCK_KEY_BYTES], int64_t row, uint8_t id[COMMAND_ID_BYTES])
{
    for (unsigned i = 0; i < ROW_BYTES; i++) {
        id[i] = (uint8_t) ((uint64_t) row >> (8 * i));
    }
    digest_random(id + ROW_BYTES, COMMAND_ID_BYTES - ROW_BYTES);
    block_encipher(key, id);
}

int64_t command_id_row(const uint8_t key[BLOCK_KEY_BYTES], const uint8_t id[COMMAND_ID_BYTES])
{
    uint8_t block[BLOCK_BYTES];
    uint64_t row = 0;
    memcpy(block, id, sizeof block);
    block_decipher(key, block);
    for (unsigned i = ROW_BYTES; i > 0; i--) {
        row = row << 8 | block[i - 1];
    }
    return (int64_t) row;
}
