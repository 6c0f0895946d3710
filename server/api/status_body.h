/* status_body.h - the status of a command as JSON (docs/contract.md 7.2). Any thread. */
#ifndef NONBIS_SERVER_API_STATUS_BODY_H
#define NONBIS_SERVER_API_STATUS_BODY_H

#include "common/buf.h"
#include "server/core/status_view.h"

struct status_facts {
    struct status_view view;
    const uint8_t *command_id;
    struct view key;
    struct view request; /* "POST /orders": method, blank, target; " " or empty: not known */
    uint32_t replays;
    int64_t time_offset_ms; /* added to store time: wall clock */
};

void status_body_write(const struct status_facts *facts, struct buf *out);

#endif
