/* command_id.h - a command id that finds its row by itself, so that the store needs no table of ids. Any thread.
 *
 * An id is the row (6 bytes, little-endian) and 10 random bytes, enciphered as one block under a key of the store: random to whoever looks at it
 * (docs/contract.md 10.12), and it tells neither how many commands there are nor which came first.
 *
 * Nothing rests on it. The contract keeps no secret in an id (the handler sees it, and so does the client), and proves nothing by it: the row that
 * an id leads to is believed only when the whole id stands in it, under the same tenant. An id that somebody made up leads to some row, mostly to
 * one that was never written, and there to the same answer as one that is not in use (7.4). */
#ifndef NONBIS_SERVER_STORE_COMMAND_ID_H
#define NONBIS_SERVER_STORE_COMMAND_ID_H

#include "server/core/record.h"
#include "server/digest/block.h"

/* Another one each time, also for the same row. Only the low 48 bits of `row` are kept. */
void command_id_make(const uint8_t key[BLOCK_KEY_BYTES], int64_t row, uint8_t id[COMMAND_ID_BYTES]);
/* The row that it was made for; of any other 16 bytes, some number of 48 bits. */
int64_t command_id_row(const uint8_t key[BLOCK_KEY_BYTES], const uint8_t id[COMMAND_ID_BYTES]);

#endif
