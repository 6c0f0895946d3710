/* running.h - the commands that were claimed by this process and have no outcome yet: row -> record, a table in memory beside the SQLite store. An
 * outcome needs no look at the disk for what it ends; and the lowest row tells a later start where to look for what ran. Owns its memory; knows no
 * SQLite. One thread at a time. What a transaction changed here is undone with it. */
#ifndef NONBIS_SERVER_STORE_RUNNING_H
#define NONBIS_SERVER_STORE_RUNNING_H

#include "server/core/record.h"

#include <stddef.h>

struct running;

enum { RUNNING_HASH_BYTES = 16 };

struct running_command {
    int64_t row;
    uint8_t hash[RUNNING_HASH_BYTES]; /* of tenant and key */
    int64_t due_ms;                   /* as it stands in its row */
    struct record record;
};

struct running *running_new(void);
void running_free(struct running *running);
size_t running_count(const struct running *running);

/* `command->row` is over 0 and not there yet. */
void running_add(struct running *running, const struct running_command *command);
/* Nothing happens when it is not there. */
void running_remove(struct running *running, int64_t row);
/* NULL: not there. Good until something is added, removed or undone. */
const struct running_command *running_find(const struct running *running, int64_t row);
/* The lowest row, or `none`. Walks over all of them. */
int64_t running_lowest(const struct running *running, int64_t none);

void running_settle(struct running *running); /* committed, or begun: what was changed stays */
void running_undo(struct running *running);   /* back to what it was at the last settle */

#endif
