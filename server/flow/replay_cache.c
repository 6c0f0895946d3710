/* replay_cache.c - see replay_cache.h. A hash table with chains; the least recently used entry makes room. */
#include "server/flow/replay_cache.h"

#include "common/list.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_BUCKETS = 8192,
    CACHE_SHARE = 8
}; /* chains stay short: the default has room for some 30,000 usual answers */

struct entry {
    struct list_node used; /* in replay_cache.used */
    struct entry *next;    /* in its bucket */
    uint64_t hash;
    size_t bytes; /* of this and its response */
    struct record record;
    int64_t row;
    struct stored_response *response;
    struct view tenant, key; /* into this allocation */
};

struct replay_cache {
    size_t bytes_max;
    atomic_size_t bytes; /* written by the loop alone */
    uint8_t secret[DIGEST_KEY_BYTES];
    struct list used; /* the least recently used first */
    struct entry **buckets;
};

struct replay_cache *replay_cache_new(size_t bytes_max)
{
    if (bytes_max == 0) {
        return NULL;
    }
    struct replay_cache *cache = memory_new(sizeof *cache);
    cache->bytes_max = bytes_max;
    list_init(&cache->used);
    digest_random(cache->secret, sizeof cache->secret);
    return cache;
}

static size_t bytes_now(const struct replay_cache *cache)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed);
}

static void bytes_set(struct replay_cache *cache, size_t bytes)
{
    atomic_store_explicit(&cache->bytes, bytes, memory_order_relaxed);
}

static uint64_t hash_of(const struct replay_cache *cache, struct view tenant, struct view key)
{
    const struct view parts[] = { tenant, key };
    uint8_t digest[DIGEST_SHORT_BYTES];
    uint64_t hash = 0;
    digest_keyed_short(cache->secret, parts, 2, digest);
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

/* The pointer to it in its chain; that points to NULL when it is not there. */
static struct entry **find(struct replay_cache *cache, uint64_t hash, struct view tenant, struct view key)
{
    struct entry **at = &cache->buckets[hash % CACHE_BUCKETS];
    while (*at != NULL && ((*at)->hash != hash || !view_equal((*at)->tenant, tenant) || !view_equal((*at)->key, key))) {
        at = &(*at)->next;
    }
    return at;
}

static void drop(struct replay_cache *cache, struct entry **at)
{
    struct entry *entry = *at;
    *at = entry->next;
    list_remove(&cache->used, &entry->used);
    bytes_set(cache, bytes_now(cache) - entry->bytes);
    free(entry->response);
    free(entry);
}

static void drop_oldest(struct replay_cache *cache)
{
    struct entry *entry = LIST_ITEM(list_first(&cache->used), struct entry, used);
    struct entry **at = find(cache, entry->hash, entry->tenant, entry->key);
    if (*at == NULL) {
        abort(); /* what is in the list is in its chain */
    }
    drop(cache, at);
}

void replay_cache_free(struct replay_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    while (cache->used.count > 0) {
        drop_oldest(cache);
    }
    free(cache->buckets);
    free(cache);
}

bool replay_cache_find(struct replay_cache *cache, const struct store_claim *claim, int64_t now_ms,
                       struct store_found *found)
{
    if (cache == NULL || cache->used.count == 0) {
        return false;
    }
    struct entry **at = find(cache, hash_of(cache, claim->tenant, claim->key), claim->tenant, claim->key);
    struct entry *entry = *at;
    if (entry == NULL) {
        return false;
    }
    const struct asked asked = store_asked(claim);
    struct decision decision = decide(&entry->record, &asked, now_ms);
    if (decision.state != RECORD_COMPLETED) { /* its time is over; what is left of it the store knows */
        drop(cache, at);
        return false;
    }
    *found = (struct store_found){ .decision = decision, .record = entry->record, .row = entry->row, .now_ms = now_ms };
    if (decision.verdict == VERDICT_REPLAY) {
        found->response = stored_response_new(&entry->record, entry->response->fields, entry->response->body);
    }
    list_remove(&cache->used, &entry->used);
    list_append(&cache->used, &entry->used);
    return true;
}

static struct entry *entry_new(const struct store_claim *claim, const struct store_found *found, size_t bytes)
{
    struct entry *entry = memory_new(sizeof *entry + claim->tenant.len + claim->key.len);
    char *text = (char *) (entry + 1);
    memcpy(text, claim->tenant.ptr, claim->tenant.len);
    memcpy(text + claim->tenant.len, claim->key.ptr, claim->key.len);
    entry->tenant = view_make(text, claim->tenant.len);
    entry->key = view_make(text + claim->tenant.len, claim->key.len);
    entry->bytes = bytes;
    entry->record = found->record;
    entry->row = found->row;
    entry->response = stored_response_new(&found->record, found->response->fields, found->response->body);
    return entry;
}

void replay_cache_keep(struct replay_cache *cache, const struct store_claim *claim, const struct store_found *found)
{
    if (cache == NULL || found->decision.verdict != VERDICT_REPLAY || found->response == NULL) {
        return;
    }
    size_t bytes = sizeof(struct entry) + claim->tenant.len + claim->key.len + sizeof(struct stored_response) +
                   found->response->fields.len + found->response->body.len;
    if (bytes > cache->bytes_max / CACHE_SHARE) {
        return;
    }
    if (cache->buckets == NULL) {
        cache->buckets = memory_new(CACHE_BUCKETS * sizeof(struct entry *));
    }
    uint64_t hash = hash_of(cache, claim->tenant, claim->key);
    struct entry **at = find(cache, hash, claim->tenant, claim->key);
    if (*at != NULL) { /* of an earlier life of the key, or of two repeats that asked the store at once */
        drop(cache, at);
    }
    while (bytes_now(cache) + bytes > cache->bytes_max) {
        drop_oldest(cache);
    }
    struct entry *entry = entry_new(claim, found, bytes);
    entry->hash = hash;
    entry->next = cache->buckets[hash % CACHE_BUCKETS];
    cache->buckets[hash % CACHE_BUCKETS] = entry;
    list_append(&cache->used, &entry->used);
    bytes_set(cache, bytes_now(cache) + bytes);
}

size_t replay_cache_bytes(const struct replay_cache *cache)
{
    return cache == NULL ? 0 : bytes_now(cache);
}
