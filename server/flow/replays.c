/* replays.c - see replays.h. One place per hash; command ids are random, so their first bytes are one. */
#include "server/flow/replays.h"

#include "server/base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS_PLACES = 8192 }; /* 160 KiB */

struct replays {
    pthread_mutex_t lock;
    struct {
        uint8_t command_id[COMMAND_ID_BYTES];
        uint32_t count;
    } places[REPLAYS_PLACES];
};

static size_t place_of(const uint8_t command_id[COMMAND_ID_BYTES])
{
    uint32_t hash;
    memcpy(&hash, command_id, sizeof hash);
    return hash % REPLAYS_PLACES;
}

struct replays *replays_new(void)
{
    struct replays *replays = memory_new(sizeof *replays);
    (void) pthread_mutex_init(&replays->lock, NULL); /* with default attributes it cannot fail */
    return replays;
}

void replays_free(struct replays *replays)
{
    (void) pthread_mutex_destroy(&replays->lock);
    free(replays);
}

void replays_count(struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES])
{
    size_t at = place_of(command_id);
    (void) pthread_mutex_lock(&replays->lock);
    if (memcmp(replays->places[at].command_id, command_id, COMMAND_ID_BYTES) != 0) {
        memcpy(replays->places[at].command_id, command_id, COMMAND_ID_BYTES);
        replays->places[at].count = 0;
    }
    if (replays->places[at].count < UINT32_MAX) {
        replays->places[at].count++;
    }
    (void) pthread_mutex_unlock(&replays->lock);
}

uint32_t replays_of(struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES])
{
    size_t at = place_of(command_id);
    (void) pthread_mutex_lock(&replays->lock);
    bool mine = memcmp(replays->places[at].command_id, command_id, COMMAND_ID_BYTES) == 0;
    uint32_t count = mine ? replays->places[at].count : 0;
    (void) pthread_mutex_unlock(&replays->lock);
    return count;
}
