/* running.c - see running.h. A chain of entries for each of a power of two of slots; row ids are counted up, so that their low bits spread them. */
#include "server/store/running.h"

#include "server/base/memory.h"

#include <stdlib.h>

enum { SLOTS_FIRST = 256 };

struct entry {
    struct entry *next;
    struct running_command command;
};

/* What the transaction did: the entry was added, or taken out (and waits here for the commit). */
struct change {
    struct entry *entry;
    bool added;
};

struct running {
    struct entry **slots;
    size_t size, count;
    struct change *changes;
    size_t change_count, change_room;
};

struct running *running_new(void)
{
    struct running *running = memory_new(sizeof *running);
    running->size = SLOTS_FIRST;
    running->slots = memory_new(running->size * sizeof(struct entry *));
    return running;
}

void running_free(struct running *running)
{
    if (running == NULL) {
        return;
    }
    running_settle(running);
    for (size_t i = 0; i < running->size; i++) {
        for (struct entry *entry = running->slots[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            free(entry);
        }
    }
    free(running->slots);
    free(running->changes);
    free(running);
}

size_t running_count(const struct running *running)
{
    return running->count;
}

static struct entry **slot_of(const struct running *running, int64_t row)
{
    return &running->slots[(uint64_t) row & (running->size - 1)];
}

static void entry_put(struct running *running, struct entry *entry)
{
    struct entry **slot = slot_of(running, entry->command.row);
    entry->next = *slot;
    *slot = entry;
    running->count++;
}

static struct entry *entry_take(struct running *running, int64_t row)
{
    for (struct entry **at = slot_of(running, row); *at != NULL; at = &(*at)->next) {
        struct entry *entry = *at;
        if (entry->command.row == row) {
            *at = entry->next;
            running->count--;
            return entry;
        }
    }
    return NULL;
}

static void running_grow(struct running *running)
{
    if (running->count < running->size) {
        return;
    }
    struct entry **old = running->slots;
    size_t old_size = running->size;
    running->size = old_size * 2;
    running->slots = memory_new(running->size * sizeof(struct entry *));
    running->count = 0;
    for (size_t i = 0; i < old_size; i++) {
        for (struct entry *entry = old[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            entry_put(running, entry);
        }
    }
    free(old);
}

static void change_note(struct running *running, struct entry *entry, bool added)
{
    if (running->change_count == running->change_room) {
        running->change_room = running->change_room == 0 ? 64 : running->change_room * 2;
        running->changes = memory_resize(running->changes, running->change_room * sizeof *running->changes);
    }
    running->changes[running->change_count++] = (struct change){ entry, added };
}

void running_add(struct running *running, const struct running_command *command)
{
    struct entry *entry = memory_new(sizeof *entry);
    entry->command = *command;
    running_grow(running);
    entry_put(running, entry);
    change_note(running, entry, true);
}

void running_remove(struct running *running, int64_t row)
{
    struct entry *entry = entry_take(running, row);
    if (entry != NULL) {
        change_note(running, entry, false);
    }
}

const struct running_command *running_find(const struct running *running, int64_t row)
{
    const struct entry *entry = *slot_of(running, row);
    while (entry != NULL && entry->command.row != row) {
        entry = entry->next;
    }
    return entry != NULL ? &entry->command : NULL;
}

int64_t running_lowest(const struct running *running, int64_t none)
{
    int64_t lowest = none;
    for (size_t i = 0; i < running->size && running->count > 0; i++) {
        for (const struct entry *entry = running->slots[i]; entry != NULL; entry = entry->next) {
            lowest = entry->command.row < lowest ? entry->command.row : lowest;
        }
    }
    return lowest;
}

void running_settle(struct running *running)
{
    for (size_t i = 0; i < running->change_count; i++) {
        if (!running->changes[i].added) {
            free(running->changes[i].entry);
        }
    }
    running->change_count = 0;
}

/* Backwards: what was added and taken out by the same transaction is put back, and then freed. */
void running_undo(struct running *running)
{
    while (running->change_count > 0) {
        const struct change *change = &running->changes[--running->change_count];
        if (change->added) {
            free(entry_take(running, change->entry->command.row));
        } else {
            entry_put(running, change->entry);
        }
    }
}
