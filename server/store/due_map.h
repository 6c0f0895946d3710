/* due_map.h - when time next does something to a record: a table in memory over the rows of the SQLite store, instead of an index, which costs a page of
 * the log for every outcome. For each block of 256 row ids it holds a time before which no record of the block is due; the sweep reads the blocks whose
 * time has come. Built at start by one scan; 16 bytes a block. Owns its memory; knows no SQLite. One thread at a time.
 *
 * A time may be too early, which costs a look, and never too late, which would leave a record behind. So what lowers a time counts at once, and stays
 * after a rollback; what raises one counts once its transaction is committed.
 *
 * 10 million rows are 39,062 blocks in 306 groups. The first block of a sweep costs a look at the groups and at some of their blocks (under a
 * microsecond); to walk over all blocks took 40 of them, and a sweep that reads 32 did so 33 times. */
#ifndef NONBIS_SERVER_STORE_DUE_MAP_H
#define NONBIS_SERVER_STORE_DUE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due_map;

enum { DUE_BLOCK_ROWS = 256 };
#define DUE_NEVER INT64_MAX

struct due_block {
    int64_t number; /* rows number * 256 up to number * 256 + 255 */
    int64_t due_ms;
};
/* Where due_map_next begins. */
#define DUE_BLOCK_BEFORE_ALL ((struct due_block){ .number = -1, .due_ms = INT64_MIN })

struct due_map *due_map_new(void);
void due_map_free(struct due_map *map);
/* Blocks that have a time. */
size_t due_map_count(const struct due_map *map);

static inline int64_t due_map_block_of(int64_t row)
{
    return row / DUE_BLOCK_ROWS;
}

/* Something is due in the block of that row at `due_ms`, or earlier. */
void due_map_lower(struct due_map *map, int64_t row, int64_t due_ms);
/* The whole block was read: nothing is due in it before `due_ms`; DUE_NEVER: nothing at all, and the block is forgotten. */
void due_map_raise(struct due_map *map, int64_t number, int64_t due_ms);

/* Blocks in the order of their times, then of their numbers: the one behind `*block`. False: there is none. Looks at all groups, and into those that
 * may hold it: few, where few blocks are before it. What was raised and is not settled still counts as before. */
bool due_map_next(const struct due_map *map, struct due_block *block);

void due_map_settle(struct due_map *map); /* committed, or begun: what was raised counts */
void due_map_undo(struct due_map *map);   /* rolled back: it does not */

#endif
