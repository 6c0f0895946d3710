/* route.h - which requests are protected, and how (docs/contract.md section 1). First match in order wins. Read-only once built; any thread. */
#ifndef NONBIS_SERVER_CORE_ROUTE_H
#define NONBIS_SERVER_CORE_ROUTE_H

#include "server/core/outcome.h"
#include "server/http/target.h"

struct route {
    char *text;          /* as configured, for logs and --print-config; owned */
    struct view method;  /* "POST", ...; "*" for every method */
    struct view pattern; /* normal form; "/orders/ *" without the blank is a prefix */
    bool key_required;
    struct retention retention;
    int64_t answer_timeout_ms, hard_timeout_ms;
    int64_t in_flight_wait_ms; /* of a repeat of a running command that does not say Prefer: wait; 0: none */
    struct outcome_rules rules;
    struct view replay_drop; /* comma separated field names */
    unsigned index;          /* in routes: counters and latency are kept per index */
};

struct routes {
    struct route *items;
    unsigned count;
};

/* The first route for this method and normal path; NULL: pass through. */
const struct route *route_find(const struct routes *routes, struct view method, struct view normal_path);

#endif
