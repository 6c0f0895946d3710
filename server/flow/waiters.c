/* waiters.c - see waiters.h. Two small hash tables: the loop's waiters by key, and how many there are per key and per tenant. */
#include "server/flow/waiters.h"

#include "server/base/memory.h"
#include "server/digest/digest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WAITER_BUCKETS = 256 }; /* a power of two; waiters_max is 512 unless somebody wants more */

/* --- the counts --- */

/* How many wait for one key, or belong to one tenant. */
struct tally {
    struct list_node node;
    uint64_t name;
    unsigned count;
};

struct waiter_count {
    pthread_mutex_t lock;
    unsigned per_key, per_tenant, max; /* limits; per_tenant: UINT_MAX where there are no tenants */
    unsigned total;
    uint8_t secret[DIGEST_KEY_BYTES];
    struct list keys[WAITER_BUCKETS], tenants[WAITER_BUCKETS];
};

static void buckets_init(struct list *buckets)
{
    for (size_t i = 0; i < WAITER_BUCKETS; i++) {
        list_init(&buckets[i]);
    }
}

static struct list *bucket_of(struct list *buckets, uint64_t name)
{
    return &buckets[name % WAITER_BUCKETS];
}

static struct tally *tally_find(struct list *buckets, uint64_t name)
{
    struct list *bucket = bucket_of(buckets, name);
    for (struct list_node *node = bucket->head.next; node != &bucket->head; node = node->next) {
        struct tally *tally = LIST_ITEM(node, struct tally, node);
        if (tally->name == name) {
            return tally;
        }
    }
    return NULL;
}

static unsigned tally_count(struct list *buckets, uint64_t name)
{
    const struct tally *tally = tally_find(buckets, name);
    return tally != NULL ? tally->count : 0;
}

static void tally_add(struct list *buckets, uint64_t name)
{
    struct tally *tally = tally_find(buckets, name);
    if (tally == NULL) {
        tally = memory_new(sizeof *tally);
        tally->name = name;
        list_append(bucket_of(buckets, name), &tally->node);
    }
    tally->count++;
}

static void tally_remove(struct list *buckets, uint64_t name)
{
    struct tally *tally = tally_find(buckets, name);
    if (--tally->count == 0) {
        list_remove(bucket_of(buckets, name), &tally->node);
        free(tally);
    }
}

struct waiter_count *waiter_count_new(const struct settings *settings)
{
    struct waiter_count *count = memory_new(sizeof *count);
    (void) pthread_mutex_init(&count->lock, NULL); /* with default attributes it cannot fail */
    count->per_key = (unsigned) settings->waiters_per_key;
    count->per_tenant = settings->tenant_field.len > 0 ? (unsigned) settings->waiters_per_tenant : UINT32_MAX;
    count->max = (unsigned) settings->waiters_max;
    digest_random(count->secret, sizeof count->secret);
    buckets_init(count->keys);
    buckets_init(count->tenants);
    return count;
}

void waiter_count_free(struct waiter_count *count)
{
    (void) pthread_mutex_destroy(&count->lock);
    free(count); /* whoever counted has left, and took the last tally along */
}

unsigned waiter_count_now(struct waiter_count *count)
{
    (void) pthread_mutex_lock(&count->lock);
    unsigned total = count->total;
    (void) pthread_mutex_unlock(&count->lock);
    return total;
}

static bool count_enter(struct waiter_count *count, const struct waiter *waiter)
{
    (void) pthread_mutex_lock(&count->lock);
    bool room = count->total < count->max && tally_count(count->keys, waiter->key_hash) < count->per_key &&
                tally_count(count->tenants, waiter->tenant_hash) < count->per_tenant;
    if (room) {
        count->total++;
        tally_add(count->keys, waiter->key_hash);
        tally_add(count->tenants, waiter->tenant_hash);
    }
    (void) pthread_mutex_unlock(&count->lock);
    return room;
}

static void count_leave(struct waiter_count *count, const struct waiter *waiter)
{
    (void) pthread_mutex_lock(&count->lock);
    count->total--;
    tally_remove(count->keys, waiter->key_hash);
    tally_remove(count->tenants, waiter->tenant_hash);
    (void) pthread_mutex_unlock(&count->lock);
}

/* --- the waiters of one loop --- */

struct waiters {
    struct waiter_count *count;
    struct list by_key[WAITER_BUCKETS];
};

struct waiters *waiters_new(struct waiter_count *count)
{
    struct waiters *waiters = memory_new(sizeof *waiters);
    waiters->count = count;
    buckets_init(waiters->by_key);
    return waiters;
}

void waiters_free(struct waiters *waiters)
{
    free(waiters);
}

bool waiters_join(struct waiters *waiters, struct waiter *waiter, const struct store_task *task, struct view tenant)
{
    uint8_t digest[DIGEST_SHORT_BYTES];
    digest_keyed_short(waiters->count->secret, &tenant, 1, digest);
    memcpy(&waiter->tenant_hash, digest, sizeof waiter->tenant_hash);
    waiter->key_hash = task->key_hash;
    waiter->execution = task->found.record.execution;
    if (!count_enter(waiters->count, waiter)) {
        return false;
    }
    waiter->waiting = true;
    list_append(bucket_of(waiters->by_key, waiter->key_hash), &waiter->node);
    return true;
}

void waiters_leave(struct waiters *waiters, struct waiter *waiter)
{
    if (waiter->waiting) {
        waiter->waiting = false;
        list_remove(bucket_of(waiters->by_key, waiter->key_hash), &waiter->node);
        count_leave(waiters->count, waiter);
    }
}

void waiters_on_ended(void *context, const struct store_ended *ended)
{
    struct waiters *waiters = context;
    struct list *bucket = bucket_of(waiters->by_key, ended->key_hash);
    struct list_node *node = bucket->head.next;
    while (node != &bucket->head) {
        struct waiter *waiter = LIST_ITEM(node, struct waiter, node);
        node = node->next; /* being told may end this one, and no other */
        if (waiter->key_hash == ended->key_hash && waiter->execution <= ended->execution) {
            waiters_leave(waiters, waiter);
            waiter->ended(waiter, ended);
        }
    }
}
