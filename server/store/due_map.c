/* due_map.c - see due_map.h. Blocks in an array by number: row ids only go up, so that a new block is nearly always the last. Over them, for each
 * group of neighbours in the array, the soonest of their times, so that a look passes over the groups that cannot hold what it wants. */
#include "server/store/due_map.h"

#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_BLOCKS = 128 };

struct due_map {
    struct due_block *blocks; /* by number */
    size_t count, room;
    size_t never;     /* of them: forgotten, and taken out with others */
    int64_t *soonest; /* of blocks[group * GROUP_BLOCKS] and those behind it */
    size_t soonest_room;
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
        free(map->soonest);
        free(map->raised);
        free(map);
    }
}

size_t due_map_count(const struct due_map *map)
{
    return map->count - map->never;
}

static size_t group_count(const struct due_map *map)
{
    return (map->count + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
}

static size_t group_end(const struct due_map *map, size_t group)
{
    size_t end = (group + 1) * GROUP_BLOCKS;
    return end < map->count ? end : map->count;
}

/* Anew from the blocks, after some of them were raised or have moved. */
static void group_settle(struct due_map *map, size_t group)
{
    int64_t soonest = DUE_NEVER;
    for (size_t i = group * GROUP_BLOCKS; i < group_end(map, group); i++) {
        soonest = map->blocks[i].due_ms < soonest ? map->blocks[i].due_ms : soonest;
    }
    map->soonest[group] = soonest;
}

static void groups_settle_from(struct due_map *map, size_t place)
{
    for (size_t group = place / GROUP_BLOCKS; group < group_count(map); group++) {
        group_settle(map, group);
    }
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

static void block_set(struct due_map *map, struct due_block *block, int64_t due_ms)
{
    map->never -= block->due_ms == DUE_NEVER ? 1 : 0;
    map->never += due_ms == DUE_NEVER ? 1 : 0;
    block->due_ms = due_ms;
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
    map->never++;
    map->blocks[place] = (struct due_block){ number, DUE_NEVER };
    if (group_count(map) > map->soonest_room) {
        map->soonest_room = map->soonest_room == 0 ? 64 : map->soonest_room * 2;
        map->soonest = memory_resize(map->soonest, map->soonest_room * sizeof *map->soonest);
    }
    if (place + 1 < map->count || place % GROUP_BLOCKS == 0) { /* those behind it have moved, or it begins a group */
        groups_settle_from(map, place);
    }
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
    block_set(map, block, due_ms < block->due_ms ? due_ms : block->due_ms);
    int64_t *soonest = &map->soonest[(size_t) (block - map->blocks) / GROUP_BLOCKS];
    *soonest = due_ms < *soonest ? due_ms : *soonest;
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
    struct due_block next = { 0, DUE_NEVER };
    for (size_t group = 0; group < group_count(map); group++) {
        if (map->soonest[group] >= next.due_ms) { /* of the same time the lower number comes first */
            continue;
        }
        for (size_t i = group * GROUP_BLOCKS; i < group_end(map, group); i++) {
            const struct due_block *one = &map->blocks[i];
            if (one->due_ms < next.due_ms && block_is_before(block, one)) {
                next = *one;
            }
        }
    }
    if (next.due_ms == DUE_NEVER) {
        return false;
    }
    *block = next;
    return true;
}

/* Takes out the forgotten ones, once they are many: that walks over all. */
static void blocks_tidy(struct due_map *map)
{
    size_t kept = 0;
    if (map->never <= map->count / 4) {
        return;
    }
    for (size_t i = 0; i < map->count; i++) {
        if (map->blocks[i].due_ms != DUE_NEVER) {
            map->blocks[kept++] = map->blocks[i];
        }
    }
    map->count = kept;
    map->never = 0;
    groups_settle_from(map, 0);
}

void due_map_settle(struct due_map *map)
{
    for (size_t i = 0; i < map->raised_count; i++) {
        struct due_block *block = block_at(map, map->raised[i].number);
        block_set(map, block, map->raised[i].due_ms);
        group_settle(map, (size_t) (block - map->blocks) / GROUP_BLOCKS);
    }
    if (map->raised_count > 0) {
        map->raised_count = 0;
        blocks_tidy(map);
    }
}

void due_map_undo(struct due_map *map)
{
    map->raised_count = 0;
}
