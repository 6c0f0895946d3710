/* due_map.c - see due_map.h. Blocks in an array by number: row ids only go up, so that a new block is nearly always the last. */
#include "server/store/due_map.h"

#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

struct due_map {
    struct due_block *blocks; /* by number */
    size_t count, room;
    struct due_block *raised; /* by this transaction */
    size_t raised_count, raised_room;
};

struct due_map *due_map_new(void)
{
    return memory_new(sizeof(struct due_map));
}

void due_map_free(struct due_map *map)
{
    if (map != NULL) {
        free(map->blocks);
        free(map->raised);
        free(map);
    }
}

size_t due_map_count(const struct due_map *map)
{
    return map->count;
}

static struct due_block *blocks_make_room(struct due_block *blocks, size_t count, size_t *room)
{
    if (count < *room) {
        return blocks;
    }
    *room = *room == 0 ? 64 : *room * 2;
    return memory_resize(blocks, *room * sizeof *blocks);
}

/* Where the block is, or belongs. */
static size_t block_place(const struct due_map *map, int64_t number)
{
    size_t low = 0, high = map->count;
    if (high > 0 && map->blocks[high - 1].number <= number) { /* the usual case */
        return map->blocks[high - 1].number == number ? high - 1 : high;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->blocks[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A new one is due never. */
static struct due_block *block_at(struct due_map *map, int64_t number)
{
    size_t place = block_place(map, number);
    if (place < map->count && map->blocks[place].number == number) {
        return &map->blocks[place];
    }
    map->blocks = blocks_make_room(map->blocks, map->count, &map->room);
    memmove(map->blocks + place + 1, map->blocks + place, (map->count - place) * sizeof *map->blocks);
    map->count++;
    map->blocks[place] = (struct due_block){ number, DUE_NEVER };
    return &map->blocks[place];
}

static struct due_block *raised_find(struct due_map *map, int64_t number)
{
    for (size_t i = 0; i < map->raised_count; i++) {
        if (map->raised[i].number == number) {
            return &map->raised[i];
        }
    }
    return NULL;
}

void due_map_lower(struct due_map *map, int64_t row, int64_t due_ms)
{
    int64_t number = due_map_block_of(row);
    struct due_block *block = block_at(map, number), *raised = raised_find(map, number);
    block->due_ms = due_ms < block->due_ms ? due_ms : block->due_ms;
    if (raised != NULL && due_ms < raised->due_ms) {
        raised->due_ms = due_ms;
    }
}

void due_map_raise(struct due_map *map, int64_t number, int64_t due_ms)
{
    struct due_block *raised = raised_find(map, number);
    if (raised == NULL) {
        map->raised = blocks_make_room(map->raised, map->raised_count, &map->raised_room);
        raised = &map->raised[map->raised_count++];
    }
    *raised = (struct due_block){ number, due_ms };
}

static bool block_is_before(const struct due_block *a, const struct due_block *b)
{
    return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->number < b->number);
}

bool due_map_next(const struct due_map *map, struct due_block *block)
{
    const struct due_block *next = NULL;
    for (size_t i = 0; i < map->count; i++) {
        const struct due_block *one = &map->blocks[i];
        if (block_is_before(block, one) && (next == NULL || block_is_before(one, next))) {
            next = one;
        }
    }
    if (next != NULL) {
        *block = *next;
    }
    return next != NULL;
}

void due_map_settle(struct due_map *map)
{
    bool emptied = false;
    for (size_t i = 0; i < map->raised_count; i++) {
        block_at(map, map->raised[i].number)->due_ms = map->raised[i].due_ms;
        emptied = emptied || map->raised[i].due_ms == DUE_NEVER;
    }
    map->raised_count = 0;
    if (emptied) {
        size_t kept = 0;
        for (size_t i = 0; i < map->count; i++) {
            if (map->blocks[i].due_ms != DUE_NEVER) {
                map->blocks[kept++] = map->blocks[i];
            }
        }
        map->count = kept;
    }
}

void due_map_undo(struct due_map *map)
{
    map->raised_count = 0;
}
