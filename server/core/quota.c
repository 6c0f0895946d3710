/* quota.c - see quota.h. Chains by tenant find a bucket; a heap by full_us finds the idle one that is full first. */
#include "server/core/quota.h"

#define TOKEN INT64_C(3600000000) /* parts: as many come in a microsecond as the rate has tokens an hour */
#define NONE UINT32_MAX

enum { FORGOTTEN_AT_A_TIME = 4 }; /* more than are made: the table empties, and no command pays for all */

static int64_t full_parts(const struct quota *quota)
{
    return quota->limits.burst * TOKEN;
}

static int64_t divided_up(int64_t number, int64_t by)
{
    return number / by + (number % by != 0);
}

/* --- the heap of the idle --- */

static struct quota_bucket *heap_at(const struct quota *quota, unsigned place)
{
    return &quota->buckets[quota->buckets[place].table_heap];
}

static void heap_put(struct quota *quota, unsigned place, unsigned index)
{
    quota->buckets[place].table_heap = index;
    quota->buckets[index].place = place;
}

/* Moves who stands at `place` to where it belongs. */
static void heap_settle(struct quota *quota, unsigned place)
{
    unsigned index = quota->buckets[place].table_heap;
    int64_t full_us = quota->buckets[index].full_us;
    while (place > 0 && heap_at(quota, (place - 1) / 2)->full_us > full_us) {
        heap_put(quota, place, quota->buckets[(place - 1) / 2].table_heap);
        place = (place - 1) / 2;
    }
    for (;;) {
        unsigned child = 2 * place + 1;
        if (child + 1 < quota->idle && heap_at(quota, child + 1)->full_us < heap_at(quota, child)->full_us) {
            child++;
        }
        if (child >= quota->idle || heap_at(quota, child)->full_us >= full_us) {
            break;
        }
        heap_put(quota, place, quota->buckets[child].table_heap);
        place = child;
    }
    heap_put(quota, place, index);
}

static void heap_remove(struct quota *quota, unsigned index)
{
    unsigned place = quota->buckets[index].place;
    unsigned last = quota->buckets[--quota->idle].table_heap;
    quota->buckets[index].place = NONE;
    if (last != index) {
        heap_put(quota, place, last);
        heap_settle(quota, place);
    }
}

/* Where it belongs after a change: among the idle, at its place, or not. */
static void heap_note(struct quota *quota, unsigned index)
{
    struct quota_bucket *bucket = &quota->buckets[index];
    if (bucket->in_flight > 0) {
        if (bucket->place != NONE) {
            heap_remove(quota, index);
        }
        return;
    }
    if (bucket->place == NONE) {
        heap_put(quota, quota->idle++, index);
    }
    heap_settle(quota, bucket->place);
}

/* --- the table --- */

static unsigned *chain_of(const struct quota *quota, uint64_t tenant)
{
    return &quota->buckets[tenant % quota->room].table_chain;
}

static unsigned table_find(const struct quota *quota, uint64_t tenant)
{
    unsigned index = *chain_of(quota, tenant);
    while (index != NONE && quota->buckets[index].tenant != tenant) {
        index = quota->buckets[index].next;
    }
    return index;
}

static void table_forget(struct quota *quota, unsigned index)
{
    unsigned *link = chain_of(quota, quota->buckets[index].tenant);
    while (*link != index) {
        link = &quota->buckets[*link].next;
    }
    *link = quota->buckets[index].next;
    heap_remove(quota, index);
    quota->buckets[index].next = quota->unused;
    quota->unused = index;
    quota->count--;
}

/* NONE: everybody is busy. */
static unsigned table_make(struct quota *quota, uint64_t tenant, int64_t now_us)
{
    if (quota->unused == NONE) {
        if (quota->idle == 0) {
            return NONE;
        }
        table_forget(quota, quota->buckets[0].table_heap);
    }
    unsigned index = quota->unused;
    struct quota_bucket *bucket = &quota->buckets[index];
    unsigned *chain = chain_of(quota, tenant);
    quota->unused = bucket->next;
    quota->count++;
    bucket->tenant = tenant;
    bucket->parts = full_parts(quota);
    bucket->seen_us = bucket->full_us = now_us;
    bucket->in_flight = 0;
    bucket->place = NONE;
    bucket->next = *chain;
    *chain = index;
    return index;
}

/* --- a bucket --- */

static void bucket_refill(const struct quota *quota, struct quota_bucket *bucket, int64_t now_us)
{
    if (now_us <= bucket->seen_us) {
        return; /* a clock that stands, or went back: nothing comes, and nothing is taken away */
    }
    bucket->parts = now_us >= bucket->full_us ? full_parts(quota)
                                              : bucket->parts + (now_us - bucket->seen_us) * quota->limits.per_hour;
    bucket->seen_us = now_us;
}

static void bucket_add(const struct quota *quota, struct quota_bucket *bucket, int64_t parts)
{
    if (quota->limits.per_hour == 0) {
        return; /* always full */
    }
    int64_t missing = full_parts(quota) - bucket->parts - parts;
    missing = missing < 0 ? 0 : missing;
    bucket->parts = full_parts(quota) - missing;
    bucket->full_us = bucket->seen_us + divided_up(missing, quota->limits.per_hour);
}

void quota_init(struct quota *quota, const struct quota_limits *limits, struct quota_bucket *buckets, unsigned room)
{
    *quota = (struct quota){ .limits = *limits, .buckets = buckets, .room = room };
    for (unsigned i = 0; i < room; i++) {
        buckets[i] = (struct quota_bucket){ .place = NONE, .table_chain = NONE, .next = i + 1 < room ? i + 1 : NONE };
    }
}

void quota_forget_full(struct quota *quota, int64_t now_us, unsigned most)
{
    while (most-- > 0 && quota->idle > 0 && heap_at(quota, 0)->full_us <= now_us) {
        table_forget(quota, quota->buckets[0].table_heap);
    }
}

enum quota_answer quota_take(struct quota *quota, uint64_t tenant, int64_t now_us, int64_t *wait_us)
{
    *wait_us = 0;
    quota_forget_full(quota, now_us, FORGOTTEN_AT_A_TIME);
    unsigned index = table_find(quota, tenant);
    if (index == NONE) {
        index = table_make(quota, tenant, now_us);
    }
    if (index == NONE) {
        return QUOTA_BUSY;
    }
    struct quota_bucket *bucket = &quota->buckets[index];
    bucket_refill(quota, bucket, now_us);
    if (quota->limits.per_hour > 0 && bucket->parts < TOKEN) {
        *wait_us = divided_up(TOKEN - bucket->parts, quota->limits.per_hour);
        return QUOTA_NO_TOKEN;
    }
    if (quota->limits.in_flight > 0 && bucket->in_flight >= quota->limits.in_flight) {
        return QUOTA_BUSY;
    }
    bucket->in_flight += quota->limits.in_flight > 0;
    bucket_add(quota, bucket, -TOKEN);
    heap_note(quota, index);
    return QUOTA_TAKEN;
}

void quota_leave(struct quota *quota, uint64_t tenant, int64_t now_us, bool unused)
{
    unsigned index = table_find(quota, tenant);
    if (index == NONE) {
        return; /* it was full in the meantime, or made room: its token is worth nothing */
    }
    struct quota_bucket *bucket = &quota->buckets[index];
    bucket_refill(quota, bucket, now_us);
    bucket->in_flight -= bucket->in_flight > 0;
    bucket_add(quota, bucket, unused ? TOKEN : 0);
    heap_note(quota, index);
}
