/* quota.h - how much new work each tenant may bring (docs/contract.md 4.10): a bucket of tokens, and how many commands it has under way. Pure: the
 * time comes in, and so does the memory. One thread at a time; the server's lock is in server/flow/quotas.h.
 *
 * A bucket holds `burst` tokens and fills up again with `per_hour` of them an hour, to the microsecond and without rounding: nothing is lost or won by
 * how often one looks. A tenant that is not in the table has a full bucket, so one that is full again is forgotten.
 *
 *   idle      nothing under way; in the heap, the one that is full first on top
 *   busy      something under way (counted only where in_flight is limited); never forgotten
 *
 * There is room for so many tenants and no more. A newcomer to a full table takes the place of the idle one whose bucket is full first: that one
 * has the least to gain by being forgotten, and whoever floods has the most, and stays. Nobody is refused for another one's sake. */
#ifndef NONBIS_SERVER_CORE_QUOTA_H
#define NONBIS_SERVER_CORE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the arithmetic holds: a full bucket of the largest burst, in its smallest parts, fits 64 bits a thousand times. */
#define QUOTA_RATE_MAX INT64_C(3600000000) /* per hour: a million a second */
#define QUOTA_BURST_MAX INT64_C(1000000)

enum quota_answer {
    QUOTA_TAKEN,    /* or nothing was asked */
    QUOTA_NO_TOKEN, /* the rate is used up */
    QUOTA_BUSY      /* in_flight is */
};

struct quota_limits {
    int64_t per_hour;   /* 0: no limit on the rate */
    int64_t burst;      /* of a full bucket; at least 1 where there is a rate */
    unsigned in_flight; /* 0: no limit */
};

/* One tenant; and beside it what belongs to the table as a whole, so that all is one array. */
struct quota_bucket {
    uint64_t tenant;
    int64_t parts;   /* of tokens, as of seen_us */
    int64_t seen_us; /* never goes back */
    int64_t full_us; /* when it is full again */
    unsigned in_flight;
    unsigned place;       /* in the heap; none: busy */
    unsigned next;        /* of its chain, or of the unused */
    unsigned table_chain; /* the table's: first of the chain of this number */
    unsigned table_heap;  /* the table's: who has this place in the heap */
};

struct quota {
    struct quota_limits limits;
    struct quota_bucket *buckets; /* the caller's */
    unsigned room, count, idle, unused;
};

/* `buckets` holds `room` of them and stays the caller's; where in_flight is limited, more than can be under way at once. */
void quota_init(struct quota *quota, const struct quota_limits *limits, struct quota_bucket *buckets, unsigned room);

/* One command more of this tenant. NO_TOKEN: `*wait_us` until there is one, at least 1; nothing was taken. */
enum quota_answer quota_take(struct quota *quota, uint64_t tenant, int64_t now_us, int64_t *wait_us);
/* What was TAKEN ends. `unused`: it was no new command, and its token goes back. */
void quota_leave(struct quota *quota, uint64_t tenant, int64_t now_us, bool unused);

/* Forgets buckets that are full again, `most` of them at most. */
void quota_forget_full(struct quota *quota, int64_t now_us, unsigned most);

#endif
