/* waited.c - see waited.h. Owns the table, and each message until it was delivered. Open addressing with linear probing, at most half full, and no
 * marks: what lies behind a removed entry moves up. */
#include "server/store/waited.h"

#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_FIRST = 64 };

struct entry {
    uint64_t key_hash;
    uint64_t listeners; /* bits; 0: the place is free */
    int64_t since_ms;   /* monotonic: the newest waiter */
};

struct waited {
    uint8_t secret[DIGEST_KEY_BYTES];
    int64_t wait_max_ms;
    struct entry *entries;
    size_t size; /* a power of two */
    size_t count;
    int64_t tidy_at_ms; /* monotonic */
    atomic_uint listener_count;
    struct waited_listener *listeners[WAITED_LISTENERS_MAX];
};

/* One end on its way to one loop, in one allocation. */
struct notice {
    struct loop_message message;
    struct list_node posted; /* in its listener's list */
    struct waited_listener *listener;
    struct store_ended ended;
    char text[]; /* the answer's fields and body */
};

struct waited *waited_new(int64_t wait_max_ms)
{
    struct waited *waited = memory_new(sizeof *waited);
    digest_random(waited->secret, sizeof waited->secret);
    waited->wait_max_ms = wait_max_ms;
    waited->size = ENTRIES_FIRST;
    waited->entries = memory_new(waited->size * sizeof(struct entry));
    return waited;
}

void waited_free(struct waited *waited)
{
    free(waited->entries);
    free(waited);
}

size_t waited_count(const struct waited *waited)
{
    return waited->count;
}

uint64_t waited_hash(const struct waited *waited, struct view tenant, struct view key)
{
    const struct view parts[] = { tenant, key };
    uint8_t digest[DIGEST_SHORT_BYTES];
    uint64_t hash;
    digest_keyed_short(waited->secret, parts, 2, digest);
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

/* --- the table --- */

/* The entry of a key, or the free place for it. */
static struct entry *entry_find(const struct waited *waited, uint64_t key_hash)
{
    size_t at = key_hash & (waited->size - 1);
    while (waited->entries[at].listeners != 0 && waited->entries[at].key_hash != key_hash) {
        at = (at + 1) & (waited->size - 1);
    }
    return &waited->entries[at];
}

/* Whoever lies behind the hole and was not at its first choice moves up, so that no search ends too early. */
static void entry_remove(struct waited *waited, struct entry *entry)
{
    struct entry *entries = waited->entries;
    size_t mask = waited->size - 1, hole = (size_t) (entry - entries);
    for (size_t at = (hole + 1) & mask; entries[at].listeners != 0; at = (at + 1) & mask) {
        size_t first_choice = entries[at].key_hash & mask;
        if (((at - first_choice) & mask) >= ((at - hole) & mask)) {
            entries[hole] = entries[at];
            hole = at;
        }
    }
    entries[hole].listeners = 0;
    waited->count--;
}

static bool entry_is_live(const struct waited *waited, const struct entry *entry, int64_t now_ms)
{
    return entry->listeners != 0 && now_ms - entry->since_ms <= waited->wait_max_ms;
}

/* A new table of the right size with what is still waited for: at most a quarter full. */
static void waited_rebuild(struct waited *waited, int64_t now_ms)
{
    struct entry *old = waited->entries;
    size_t old_size = waited->size, live = 0;
    for (size_t i = 0; i < old_size; i++) {
        live += entry_is_live(waited, &old[i], now_ms) ? 1 : 0;
    }
    waited->size = ENTRIES_FIRST;
    while (waited->size < live * 4) {
        waited->size *= 2;
    }
    waited->count = live;
    waited->entries = memory_new(waited->size * sizeof(struct entry));
    for (size_t i = 0; i < old_size; i++) {
        if (entry_is_live(waited, &old[i], now_ms)) {
            *entry_find(waited, old[i].key_hash) = old[i];
        }
    }
    free(old);
    waited->tidy_at_ms = now_ms + waited->wait_max_ms;
}

void waited_tidy(struct waited *waited, int64_t now_ms)
{
    if (waited->count > 0 && now_ms >= waited->tidy_at_ms) {
        waited_rebuild(waited, now_ms);
    }
}

bool waited_add(struct waited *waited, uint64_t key_hash, const struct waited_listener *listener, int64_t now_ms)
{
    if (listener->slot == WAITED_LISTENERS_MAX) {
        return false;
    }
    struct entry *entry = entry_find(waited, key_hash);
    if (entry->listeners == 0) {
        if ((waited->count + 1) * 2 > waited->size) {
            waited_rebuild(waited, now_ms);
            entry = entry_find(waited, key_hash);
        }
        entry->key_hash = key_hash;
        waited->count++;
    }
    entry->listeners |= (uint64_t) 1 << listener->slot;
    entry->since_ms = now_ms;
    return true;
}

/* --- the listeners --- */

void waited_listen(struct waited *waited, struct waited_listener *listener, struct loop *loop,
                   void (*ended)(void *context, const struct store_ended *ended), void *context)
{
    *listener = (struct waited_listener){ .loop = loop, .ended = ended, .context = context };
    list_init(&listener->posted);
    pthread_mutex_init(&listener->lock, NULL);
    listener->slot = atomic_fetch_add(&waited->listener_count, 1);
    if (listener->slot < WAITED_LISTENERS_MAX) {
        waited->listeners[listener->slot] = listener; /* seen by the store thread through the queue, before any bit */
        return;
    }
    listener->slot = WAITED_LISTENERS_MAX;
    log_message(LOG_ERROR, "store", "over %d loops want to be told of outcomes; on this one no request can wait",
                WAITED_LISTENERS_MAX);
}

void waited_listener_fini(struct waited_listener *listener)
{
    struct list_node *node;
    while ((node = list_take_first(&listener->posted)) != NULL) {
        free(LIST_ITEM(node, struct notice, posted));
    }
    pthread_mutex_destroy(&listener->lock);
}

static void notice_deliver(struct loop_message *message)
{
    struct notice *notice = LIST_ITEM(message, struct notice, message);
    struct waited_listener *listener = notice->listener;
    pthread_mutex_lock(&listener->lock);
    list_remove(&listener->posted, &notice->posted);
    pthread_mutex_unlock(&listener->lock);
    listener->ended(listener->context, &notice->ended);
    free(notice);
}

static struct view notice_put(char **at, struct view bytes)
{
    struct view put = view_make(*at, bytes.len);
    if (bytes.len > 0) {
        memcpy(*at, bytes.ptr, bytes.len);
    }
    *at += bytes.len;
    return put;
}

static void listener_post(struct waited_listener *listener, const struct store_ended *ended)
{
    bool released = ended->outcome == OUTCOME_NOT_EXECUTED;
    size_t text_len = released ? ended->answer.fields.len + ended->answer.body.len : 0;
    struct notice *notice = memory_new(sizeof *notice + text_len);
    notice->message.deliver = notice_deliver;
    notice->listener = listener;
    notice->ended = *ended;
    if (released) {
        char *at = notice->text;
        notice->ended.answer.fields = notice_put(&at, ended->answer.fields);
        notice->ended.answer.body = notice_put(&at, ended->answer.body);
    } else {
        notice->ended.answer = (struct store_answer){ .status = 0 };
    }
    pthread_mutex_lock(&listener->lock);
    list_append(&listener->posted, &notice->posted);
    pthread_mutex_unlock(&listener->lock);
    loop_post(listener->loop, &notice->message);
}

void waited_end(struct waited *waited, const struct store_ended *ended)
{
    struct entry *entry = entry_find(waited, ended->key_hash);
    for (unsigned slot = 0; slot < WAITED_LISTENERS_MAX; slot++) {
        if ((entry->listeners >> slot & 1) != 0) {
            listener_post(waited->listeners[slot], ended);
        }
    }
    if (entry->listeners != 0) {
        entry_remove(waited, entry);
    }
}
