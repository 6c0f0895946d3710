/* contract_body.h - the contract in force as JSON (docs/contract.md 7.6), and what it says of one route. Any thread. */
#ifndef NONBIS_SERVER_API_CONTRACT_BODY_H
#define NONBIS_SERVER_API_CONTRACT_BODY_H

#include "common/buf.h"

struct contract_facts {
    int64_t ttl_ms, tombstone_ttl_ms;    /* of routes that say nothing else */
    int64_t body_max, response_keep_max; /* bytes */
    int64_t wait_max_ms;
    int64_t window_start_ms; /* wall clock */
};

/* What nonbisd says of a route (7.7). */
struct route_facts {
    struct view method;
    bool is_protected, key_required;
    int64_t window_start_ms;
};

void route_body_write(const struct route_facts *facts, struct buf *out);
void contract_body_write(const struct contract_facts *facts, struct buf *out);

#endif
