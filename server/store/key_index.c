/* key_index.c - see key_index.h.
 *
 * 8 bits of the hash choose a part, 52 more are the tag that is kept beside the row. A part is an array in the order of its tags with free slots
 * in between (linear probing, kept sorted): the tag, taken as a fraction, says where in the array a row would like to be (its home); it stands
 * there or, with no free slot in between, behind. Hence
 *   - a look-up ends at the first larger tag: few slots are read, also when the key is not there, which is what most look-ups find;
 *   - a removal closes the gap behind it, and leaves no mark that later look-ups would have to pass;
 *   - a part of any length is as good as another, so it grows by a quarter where doubling would leave half of it empty;
 *   - it is made anew by copying it in its order, without searching.
 * The last homes run over into a tail behind them; nothing wraps around. */
#include "server/store/key_index.h"

#include "server/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS = 256,
    HOMES_FIRST = 16,
    TAIL_MIN = 8,
    TAIL_MAX = 128,    /* of what growing makes, else an eighth of the homes; one that runs over gets more */
    TAG_LOW_BITS = 20, /* of the tag's 52; the 32 above them give the home */
    ROW_HIGH_BITS = 12 /* of the row's 44 */
};

/* Tag and row in 12 bytes. Row 0: free. */
struct slot {
    uint32_t tag_high;
    uint32_t middle; /* the tag's low 20 bits, then the row's high 12 */
    uint32_t row_low;
};

static_assert(sizeof(struct slot) == 12, "no padding: memory is what this is about");

struct part {
    struct slot *slots; /* homes, then the tail; the one behind them is free for ever */
    uint32_t homes, tail;
    uint32_t count;
};

struct change {
    uint64_t hash;
    int64_t row;
    bool added;
};

struct key_index {
    struct part parts[PARTS];
    size_t count;
    struct change *changes;
    size_t change_count, change_room;
};

/* --- slots --- */

static uint64_t hash_of(const uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    uint64_t first;
    memcpy(&first, hash, sizeof first);
    return first;
}

static uint64_t tag_of(uint64_t hash)
{
    return hash >> ROW_HIGH_BITS;
}

static uint64_t slot_tag(const struct slot *slot)
{
    return (uint64_t) slot->tag_high << TAG_LOW_BITS | slot->middle >> ROW_HIGH_BITS;
}

static int64_t slot_row(const struct slot *slot)
{
    return (int64_t) ((uint64_t) (slot->middle & ((1U << ROW_HIGH_BITS) - 1)) << 32 | slot->row_low);
}

static struct slot slot_make(uint64_t tag, int64_t row)
{
    return (struct slot){ (uint32_t) (tag >> TAG_LOW_BITS),
                          (uint32_t) (tag << ROW_HIGH_BITS) | (uint32_t) ((uint64_t) row >> 32), (uint32_t) row };
}

static uint32_t home_of(const struct part *part, uint32_t tag_high)
{
    return (uint32_t) (((uint64_t) tag_high * part->homes) >> 32);
}

/* --- parts --- */

static size_t part_bytes(const struct part *part)
{
    return ((size_t) part->homes + part->tail + 1) * sizeof(struct slot);
}

/* All rows go over in their order, each to its home or behind the one before. False: the tail was too short for the last. */
static bool part_copy(const struct part *from, struct part *to)
{
    const struct slot *end = from->slots + from->homes + from->tail;
    uint32_t next = 0, length = to->homes + to->tail;
    for (const struct slot *slot = from->slots; slot < end; slot++) {
        if (slot_row(slot) == 0) {
            continue;
        }
        uint32_t home = home_of(to, slot->tag_high);
        next = home > next ? home : next;
        if (next == length) {
            return false;
        }
        to->slots[next++] = *slot;
    }
    return true;
}

static void part_remake(struct part *part, uint32_t homes, uint32_t tail)
{
    struct part made = { .homes = homes, .tail = tail, .count = part->count };
    made.slots = memory_new(part_bytes(&made));
    while (part->slots != NULL && !part_copy(part, &made)) {
        free(made.slots);
        made.tail *= 2;
        made.slots = memory_new(part_bytes(&made));
    }
    free(part->slots);
    *part = made;
}

static uint32_t tail_for(uint32_t homes)
{
    uint32_t tail = homes / 8;
    return tail < TAIL_MIN ? TAIL_MIN : tail > TAIL_MAX ? TAIL_MAX : tail;
}

/* Room for one more at four fifths full. */
static void part_grow(struct part *part)
{
    if (part->homes == 0) {
        part_remake(part, HOMES_FIRST, TAIL_MIN);
    } else if (((uint64_t) part->count + 1) * 5 > (uint64_t) part->homes * 4) {
        uint32_t homes = part->homes + part->homes / 4;
        part_remake(part, homes, tail_for(homes));
    }
}

/* What a crowd that is gone had needed is given back once three quarters are empty. */
static void part_shrink(struct part *part)
{
    if (part->homes > HOMES_FIRST && (uint64_t) part->count * 4 < part->homes) {
        uint32_t homes = part->homes / 2 > HOMES_FIRST ? part->homes / 2 : HOMES_FIRST;
        part_remake(part, homes, tail_for(homes));
    }
}

/* The first slot from the home on that is free or has a tag of at least `tag`. */
static struct slot *part_seek(const struct part *part, uint64_t tag)
{
    struct slot *slot = part->slots + home_of(part, (uint32_t) (tag >> TAG_LOW_BITS));
    while (slot_row(slot) != 0 && slot_tag(slot) < tag) {
        slot++;
    }
    return slot;
}

static void part_put(struct part *part, uint64_t tag, int64_t row)
{
    part_grow(part);
    for (;;) {
        struct slot *slot = part_seek(part, tag), *last = slot;
        const struct slot *end = part->slots + part->homes + part->tail;
        while (slot_row(last) != 0) {
            last++;
        }
        if (last < end) {
            memmove(slot + 1, slot, (size_t) (last - slot) * sizeof *slot);
            *slot = slot_make(tag, row);
            part->count++;
            return;
        }
        part_remake(part, part->homes, part->tail * 2);
    }
}

static bool part_take(struct part *part, uint64_t tag, int64_t row)
{
    if (part->homes == 0) {
        return false;
    }
    struct slot *slot = part_seek(part, tag);
    while (slot_row(slot) != row) {
        if (slot_row(slot) == 0 || slot_tag(slot) != tag) {
            return false;
        }
        slot++;
    }
    if (slot_tag(slot) != tag) {
        return false;
    }
    /* Whoever stands behind its home moves up. */
    struct slot *last = slot + 1;
    while (slot_row(last) != 0 && part->slots + home_of(part, last->tag_high) < last) {
        last++;
    }
    memmove(slot, slot + 1, (size_t) (last - slot - 1) * sizeof *slot);
    memset(last - 1, 0, sizeof *last);
    part->count--;
    return true;
}

/* --- the whole --- */

struct key_index *key_index_new(void)
{
    return memory_new(sizeof(struct key_index));
}

void key_index_free(struct key_index *index)
{
    if (index != NULL) {
        for (unsigned i = 0; i < PARTS; i++) {
            free(index->parts[i].slots);
        }
        free(index->changes);
        free(index);
    }
}

size_t key_index_count(const struct key_index *index)
{
    return index->count;
}

size_t key_index_bytes(const struct key_index *index)
{
    size_t bytes = sizeof *index;
    for (unsigned i = 0; i < PARTS; i++) {
        bytes += index->parts[i].slots != NULL ? part_bytes(&index->parts[i]) : 0;
    }
    return bytes;
}

static void index_put(struct key_index *index, uint64_t hash, int64_t row)
{
    part_put(&index->parts[hash % PARTS], tag_of(hash), row);
    index->count++;
}

static bool index_take(struct key_index *index, uint64_t hash, int64_t row)
{
    struct part *part = &index->parts[hash % PARTS];
    if (!part_take(part, tag_of(hash), row)) {
        return false;
    }
    part_shrink(part);
    index->count--;
    return true;
}

static void change_note(struct key_index *index, uint64_t hash, int64_t row, bool added)
{
    if (index->change_count == index->change_room) {
        index->change_room = index->change_room == 0 ? 64 : index->change_room * 2;
        index->changes = memory_resize(index->changes, index->change_room * sizeof(struct change));
    }
    index->changes[index->change_count++] = (struct change){ hash, row, added };
}

void key_index_add(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row)
{
    if (row < 1 || row > KEY_INDEX_ROW_MAX) {
        abort(); /* a bug of the caller: it would be found as another row */
    }
    index_put(index, hash_of(hash), row);
    change_note(index, hash_of(hash), row, true);
}

bool key_index_remove(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row)
{
    if (!index_take(index, hash_of(hash), row)) {
        return false;
    }
    change_note(index, hash_of(hash), row, false);
    return true;
}

int64_t key_index_next(const struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], size_t *cursor)
{
    uint64_t tag = tag_of(hash_of(hash));
    const struct part *part = &index->parts[hash_of(hash) % PARTS];
    if (part->homes == 0) {
        return 0;
    }
    const struct slot *home = part->slots + home_of(part, (uint32_t) (tag >> TAG_LOW_BITS));
    for (const struct slot *slot = home + *cursor; slot_row(slot) != 0 && slot_tag(slot) <= tag; slot++) {
        if (slot_tag(slot) == tag) {
            *cursor = (size_t) (slot - home) + 1;
            return slot_row(slot);
        }
    }
    return 0;
}

size_t key_index_probes(const struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    uint64_t tag = tag_of(hash_of(hash));
    const struct part *part = &index->parts[hash_of(hash) % PARTS];
    return part->homes == 0
               ? 0
               : (size_t) (part_seek(part, tag) - part->slots) - home_of(part, (uint32_t) (tag >> TAG_LOW_BITS)) + 1;
}

/* Equal tags stand side by side. */
static bool part_any_twins(const struct part *part, bool (*same)(void *context, int64_t a, int64_t b), void *context)
{
    for (uint32_t i = 0; i < part->homes + part->tail; i++) {
        const struct slot *one = &part->slots[i];
        for (const struct slot *two = one + 1;
             slot_row(one) != 0 && slot_row(two) != 0 && slot_tag(two) == slot_tag(one); two++) {
            if (same(context, slot_row(one), slot_row(two))) {
                return true;
            }
        }
    }
    return false;
}

bool key_index_any_twins(const struct key_index *index, bool (*same)(void *context, int64_t a, int64_t b),
                         void *context)
{
    for (unsigned i = 0; i < PARTS; i++) {
        if (part_any_twins(&index->parts[i], same, context)) {
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
            (void) index_take(index, change->hash, change->row);
        } else {
            index_put(index, change->hash, change->row);
        }
    }
}

/* --- many at once --- */

enum {
    LOAD_ROWS = 512, /* per part: 2 MiB in all */
    LOAD_AHEAD = 12  /* rows whose slots are asked for before their turn */
};

struct key_index_load {
    struct key_index *index;
    struct {
        uint64_t hash;
        int64_t row;
    } rows[PARTS][LOAD_ROWS];
    unsigned counts[PARTS];
};

struct key_index_load *key_index_load_begin(struct key_index *index)
{
    struct key_index_load *load = memory_new(sizeof *load);
    load->index = index;
    return load;
}

static void load_flush(struct key_index_load *load, size_t at)
{
    const struct part *part = &load->index->parts[at];
    for (unsigned i = 0; i < load->counts[at]; i++) {
        if (part->homes > 0 && i + LOAD_AHEAD < load->counts[at]) {
            uint64_t tag = tag_of(load->rows[at][i + LOAD_AHEAD].hash);
            __builtin_prefetch(part->slots + home_of(part, (uint32_t) (tag >> TAG_LOW_BITS)), 1);
        }
        index_put(load->index, load->rows[at][i].hash, load->rows[at][i].row);
    }
    load->counts[at] = 0;
}

void key_index_load_add(struct key_index_load *load, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row)
{
    if (row < 1 || row > KEY_INDEX_ROW_MAX) {
        abort(); /* as in key_index_add */
    }
    uint64_t first = hash_of(hash);
    size_t at = first % PARTS;
    load->rows[at][load->counts[at]].hash = first;
    load->rows[at][load->counts[at]].row = row;
    if (++load->counts[at] == LOAD_ROWS) {
        load_flush(load, at);
    }
}

void key_index_load_end(struct key_index_load *load)
{
    for (size_t at = 0; at < PARTS; at++) {
        load_flush(load, at);
    }
    free(load);
}
