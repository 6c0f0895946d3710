/* replays.c - see replays.h. One place per hash; command ids are random, so their first bytes are one. */
#include "server/flow/replays.h"

#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { REPLAYS_PLACES = 8192 }; /* 160 KiB */

struct replays {
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
    return memory_new(sizeof(struct replays));
}

void replays_free(struct replays *replays)
{
    free(replays);
}

void replays_count(struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES])
{
    size_t at = place_of(command_id);
    if (memcmp(replays->places[at].command_id, command_id, COMMAND_ID_BYTES) != 0) {
        memcpy(replays->places[at].command_id, command_id, COMMAND_ID_BYTES);
        replays->places[at].count = 0;
    }
    if (replays->places[at].count < UINT32_MAX) {
        replays->places[at].count++;
    }
}

uint32_t replays_of(const struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES])
{
    size_t at = place_of(command_id);
    return memcmp(replays->places[at].command_id, command_id, COMMAND_ID_BYTES) == 0 ? replays->places[at].count : 0;
}
