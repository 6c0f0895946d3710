/* key_index.c - see key_index.h. Open addressing with linear probing; a removed slot stays as a mark until the table is made anew. */
#include "server/store/key_index.h"

#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 1024, ROW_FREE = 0, ROW_REMOVED = -1 };

struct slot {
    uint64_t tag;
    int64_t row;
};

struct change {
    uint64_t tag;
    int64_t row;
    bool added;
};

struct key_index {
    struct slot *slots;
    size_t size;  /* a power of two */
    size_t count; /* rows */
    size_t used;  /* rows and marks */
    struct change *changes;
    size_t change_count, change_room;
};

static uint64_t tag_of(const uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    uint64_t tag;
    memcpy(&tag, hash, sizeof tag);
    return tag;
}

struct key_index *key_index_new(void)
{
    struct key_index *index = memory_new(sizeof *index);
    index->size = SLOTS_FIRST;
    index->slots = memory_new(index->size * sizeof(struct slot));
    return index;
}

void key_index_free(struct key_index *index)
{
    if (index != NULL) {
        free(index->slots);
        free(index->changes);
        free(index);
    }
}

size_t key_index_count(const struct key_index *index)
{
    return index->count;
}

static void slot_put(struct key_index *index, uint64_t tag, int64_t row)
{
    size_t at = tag & (index->size - 1);
    while (index->slots[at].row > 0) {
        at = (at + 1) & (index->size - 1);
    }
    index->used += index->slots[at].row == ROW_FREE ? 1 : 0;
    index->count++;
    index->slots[at] = (struct slot){ tag, row };
}

/* Room for one more at two thirds full; marks are dropped on the way. */
static void index_grow(struct key_index *index)
{
    if ((index->used + 1) * 3 <= index->size * 2) {
        return;
    }
    struct slot *old = index->slots;
    size_t old_size = index->size;
    index->size = (index->count + 1) * 3 > index->size ? index->size * 2 : index->size;
    index->slots = memory_new(index->size * sizeof(struct slot));
    index->count = index->used = 0;
    for (size_t i = 0; i < old_size; i++) {
        if (old[i].row > 0) {
            slot_put(index, old[i].tag, old[i].row);
        }
    }
    free(old);
}

static bool slot_remove(struct key_index *index, uint64_t tag, int64_t row)
{
    size_t at = tag & (index->size - 1);
    while (index->slots[at].row != ROW_FREE) {
        if (index->slots[at].row == row && index->slots[at].tag == tag) {
            index->slots[at].row = ROW_REMOVED;
            index->count--;
            return true;
        }
        at = (at + 1) & (index->size - 1);
    }
    return false;
}

static void change_note(struct key_index *index, uint64_t tag, int64_t row, bool added)
{
    if (index->change_count == index->change_room) {
        index->change_room = index->change_room == 0 ? 64 : index->change_room * 2;
        index->changes = memory_resize(index->changes, index->change_room * sizeof(struct change));
    }
    index->changes[index->change_count++] = (struct change){ tag, row, added };
}

void key_index_add(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row)
{
    index_grow(index);
    slot_put(index, tag_of(hash), row);
    change_note(index, tag_of(hash), row, true);
}

bool key_index_remove(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row)
{
    if (!slot_remove(index, tag_of(hash), row)) {
        return false;
    }
    change_note(index, tag_of(hash), row, false);
    return true;
}

int64_t key_index_next(const struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], size_t *cursor)
{
    uint64_t tag = tag_of(hash);
    for (;;) {
        const struct slot *slot = &index->slots[(tag + *cursor) & (index->size - 1)];
        if (slot->row == ROW_FREE) {
            return 0;
        }
        ++*cursor;
        if (slot->row > 0 && slot->tag == tag) {
            return slot->row;
        }
    }
}

/* Later slots of the same run; a run ends at a free slot. */
static bool slot_has_twin(const struct key_index *index, size_t first,
                          bool (*same)(void *context, int64_t a, int64_t b), void *context)
{
    const struct slot *one = &index->slots[first];
    for (size_t at = (first + 1) & (index->size - 1); index->slots[at].row != ROW_FREE;
         at = (at + 1) & (index->size - 1)) {
        const struct slot *two = &index->slots[at];
        if (two->row > 0 && two->tag == one->tag && same(context, one->row, two->row)) {
            return true;
        }
    }
    return false;
}

bool key_index_any_twins(const struct key_index *index, bool (*same)(void *context, int64_t a, int64_t b),
                         void *context)
{
    for (size_t i = 0; i < index->size; i++) {
        if (index->slots[i].row > 0 && slot_has_twin(index, i, same, context)) {
            return true;
        }
    }
    return false;
}

void key_index_settle(struct key_index *index)
{
    index->change_count = 0;
}

void key_index_undo(struct key_index *index)
{
    while (index->change_count > 0) {
        const struct change *change = &index->changes[--index->change_count];
        if (change->added) {
            (void) slot_remove(index, change->tag, change->row);
        } else {
            index_grow(index);
            slot_put(index, change->tag, change->row);
        }
    }
}
