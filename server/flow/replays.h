/* replays.h - how often a command's answer was replayed since this process started, as the status resource tells it (docs/contract.md 7.2). Best
 * effort in bounded memory: a command may take the place of another one, whose count then begins anew. Any thread. */
#ifndef NONBIS_SERVER_FLOW_REPLAYS_H
#define NONBIS_SERVER_FLOW_REPLAYS_H

#include "server/core/record.h"

struct replays;

struct replays *replays_new(void);
void replays_free(struct replays *replays);
void replays_count(struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES]);
uint32_t replays_of(struct replays *replays, const uint8_t command_id[COMMAND_ID_BYTES]);

#endif
