/* memory.c - the shortest correct store: the oracle of the model test, and `--store memory`.
 *
 * An entry never changes. Every change puts a new entry in the place of the old one and notes the pair, so that
 * rollback is walking the notes backwards. A response appears with the entry that completes a command and goes with
 * it: no entry inherits one. Durability: none, and the description says so. One thread at a time. */
#include "server/store/store.h"

#include "server/base/memory.h"
#include "server/digest/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_FIRST = 1024 };

struct entry {
    struct entry *next;       /* of its bucket */
    struct entry *next_by_id; /* of its bucket in by_id */
    uint64_t hash;
    int64_t row;
    char *tenant_text, *key_text, *request;
    struct view tenant, key; /* into the texts above */
    struct record record;
    struct stored_response *response; /* NULL: none */
};

struct change {
    struct entry *before, *after; /* either may be NULL */
};

struct memory_store {
    struct store store;              /* first */
    struct entry **buckets, **by_id; /* by hash of tenant and key; by command id */
    size_t bucket_count, entry_count;
    int64_t next_row; /* only goes up, also over a rollback */
    struct change *changes;
    size_t change_count, change_room;
    uint8_t hash_key[DIGEST_KEY_BYTES];
};

static struct memory_store *memory_store_of(struct store *store)
{
    return (struct memory_store *) (void *) store;
}

/* --- entries --- */

static uint64_t entry_hash(const struct memory_store *memory, struct view tenant, struct view key)
{
    uint8_t digest[DIGEST_SHORT_BYTES];
    uint64_t hash;
    digest_keyed_short(memory->hash_key, (const struct view[]){ tenant, key }, 2, digest);
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

static struct entry *entry_find(const struct memory_store *memory, struct view tenant, struct view key)
{
    uint64_t hash = entry_hash(memory, tenant, key);
    struct entry *entry = memory->buckets[hash % memory->bucket_count];
    while (entry != NULL &&
           !(entry->hash == hash && view_equal(entry->tenant, tenant) && view_equal(entry->key, key))) {
        entry = entry->next;
    }
    return entry;
}

static struct entry *entry_new(const struct memory_store *memory, int64_t row, struct view tenant, struct view key,
                               const char *request, const struct record *record)
{
    struct entry *entry = memory_new(sizeof *entry);
    entry->hash = entry_hash(memory, tenant, key);
    entry->row = row;
    entry->tenant_text = memory_text(tenant);
    entry->key_text = memory_text(key);
    entry->request = memory_text(view_of(request));
    entry->tenant = view_make(entry->tenant_text, tenant.len);
    entry->key = view_make(entry->key_text, key.len);
    entry->record = *record;
    return entry;
}

static void entry_free(struct entry *entry)
{
    if (entry != NULL) {
        free(entry->tenant_text);
        free(entry->key_text);
        free(entry->request);
        free(entry->response);
        free(entry);
    }
}

/* Ids are random already. */
static struct entry **bucket_by_id(const struct memory_store *memory, const uint8_t command_id[COMMAND_ID_BYTES])
{
    uint64_t hash;
    memcpy(&hash, command_id, sizeof hash);
    return &memory->by_id[hash % memory->bucket_count];
}

static void entry_link(struct memory_store *memory, struct entry *entry)
{
    struct entry **bucket = &memory->buckets[entry->hash % memory->bucket_count];
    entry->next = *bucket;
    *bucket = entry;
    bucket = bucket_by_id(memory, entry->record.command_id);
    entry->next_by_id = *bucket;
    *bucket = entry;
    memory->entry_count++;
}

static void entry_unlink(struct memory_store *memory, struct entry *entry)
{
    struct entry **at = &memory->buckets[entry->hash % memory->bucket_count];
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    at = bucket_by_id(memory, entry->record.command_id);
    while (*at != entry) {
        at = &(*at)->next_by_id;
    }
    *at = entry->next_by_id;
    memory->entry_count--;
}

static void buckets_grow(struct memory_store *memory)
{
    struct entry **old = memory->buckets;
    size_t old_count = memory->bucket_count;
    memory->bucket_count = old_count * 2;
    memory->buckets = memory_new(memory->bucket_count * sizeof(struct entry *));
    free(memory->by_id);
    memory->by_id = memory_new(memory->bucket_count * sizeof(struct entry *));
    memory->entry_count = 0;
    for (size_t i = 0; i < old_count; i++) {
        for (struct entry *entry = old[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            entry_link(memory, entry);
        }
    }
    free(old);
}

/* --- transactions --- */

static void memory_change(struct memory_store *memory, struct entry *before, struct entry *after)
{
    if (memory->change_count == memory->change_room) {
        memory->change_room = memory->change_room == 0 ? 64 : memory->change_room * 2;
        memory->changes = memory_resize(memory->changes, memory->change_room * sizeof *memory->changes);
    }
    memory->changes[memory->change_count++] = (struct change){ before, after };
    store_note_move(&memory->store, before != NULL ? before->record.state : RECORD_ABSENT,
                    after != NULL ? after->record.state : RECORD_ABSENT);
    if (before != NULL) {
        entry_unlink(memory, before);
    }
    if (after != NULL) {
        entry_link(memory, after);
    }
}

static enum store_result memory_begin(struct store *store)
{
    (void) store;
    return STORE_OK;
}

static enum store_result memory_commit(struct store *store)
{
    struct memory_store *memory = memory_store_of(store);
    for (size_t i = 0; i < memory->change_count; i++) {
        entry_free(memory->changes[i].before);
    }
    memory->change_count = 0;
    if (memory->entry_count > memory->bucket_count) {
        buckets_grow(memory);
    }
    return STORE_OK;
}

static void memory_rollback(struct store *store)
{
    struct memory_store *memory = memory_store_of(store);
    while (memory->change_count > 0) {
        struct change *change = &memory->changes[--memory->change_count];
        if (change->after != NULL) {
            entry_unlink(memory, change->after);
            entry_free(change->after);
        }
        if (change->before != NULL) {
            entry_link(memory, change->before);
        }
    }
}

/* --- operations --- */

/* What is there at `now_ms`: an entry that time has freed is as none, and remains only for the sweep. */
static struct entry *memory_seen(struct memory_store *memory, struct entry *entry, int64_t now_ms)
{
    if (entry != NULL && record_state_at(&entry->record, now_ms) == RECORD_ABSENT) {
        store_window_close(&memory->store, &entry->record);
        return NULL;
    }
    return entry;
}

/* Writes a claimed or voided record: over the entry of the key that lives, or as a new row. */
static void memory_put(struct memory_store *memory, const struct store_claim *claim, struct entry *old, bool lives,
                       struct store_found *found)
{
    if (lives) {
        found->row = old->row;
        memory_change(memory, old,
                      entry_new(memory, old->row, claim->tenant, claim->key, old->request, &found->record));
        return;
    }
    char *request = memory_new(claim->method.len + claim->target.len + 2);
    (void) snprintf(request, claim->method.len + claim->target.len + 2, "%.*s %.*s", VIEW_ARGS(claim->method),
                    VIEW_ARGS(claim->target));
    found->row = memory->next_row++;
    memory_change(memory, old, entry_new(memory, found->row, claim->tenant, claim->key, request, &found->record));
    free(request);
}

static enum store_result memory_claim(struct store *store, const struct store_claim *claim, int64_t now_ms,
                                      struct store_found *found)
{
    struct memory_store *memory = memory_store_of(store);
    struct asked asked = store_asked(claim);
    struct entry *old = entry_find(memory, claim->tenant, claim->key);
    struct entry *seen = memory_seen(memory, old, now_ms);
    if (seen != NULL) {
        found->record = seen->record;
        found->row = seen->row;
    }
    found->decision = decide(seen != NULL ? &seen->record : NULL, &asked, now_ms);
    if (found->decision.verdict == VERDICT_REPLAY) {
        found->response = stored_response_new(&seen->record, seen->response->fields, seen->response->body);
    } else if (found->decision.verdict == VERDICT_FORWARD && store_may_write(claim)) {
        if (!record_claim(&found->record, claim->command_id, &claim->fingerprint, &claim->credential, claim->run_ms_max,
                          now_ms)) {
            return STORE_OK; /* its executions are used up: nobody may claim it */
        }
        memory_put(memory, claim, old, seen != NULL, found);
        found->claimed = true;
    }
    return STORE_OK;
}

static enum store_result memory_finish(struct store *store, const struct store_finish *finish, int64_t now_ms,
                                       struct record *after)
{
    struct memory_store *memory = memory_store_of(store);
    struct entry *old = memory_seen(memory, entry_find(memory, finish->tenant, finish->key), now_ms);
    if (old == NULL || old->row != finish->row) {
        return STORE_STALE;
    }
    *after = old->record;
    if (!record_finish(after, finish->execution, &finish->outcome, &finish->retention, now_ms)) {
        return STORE_STALE;
    }
    struct entry *new = entry_new(memory, old->row, old->tenant, old->key, old->request, after);
    if (after->state == RECORD_COMPLETED) {
        new->response = stored_response_new(after, finish->fields, after->response_kept ? finish->body : VIEW(""));
    }
    memory_change(memory, old, new);
    return STORE_OK;
}

static void memory_tell(const struct entry *entry, struct store_found *found)
{
    if (entry != NULL) {
        found->record = entry->record;
        found->row = entry->row;
        found->request = memory_text(view_of(entry->request));
    }
}

static enum store_result memory_look_up(struct store *store, struct view tenant, struct view key, int64_t now_ms,
                                        struct store_found *found)
{
    struct memory_store *memory = memory_store_of(store);
    memory_tell(memory_seen(memory, entry_find(memory, tenant, key), now_ms), found);
    return STORE_OK;
}

static enum store_result memory_look_up_id(struct store *store, struct view tenant,
                                           const uint8_t command_id[COMMAND_ID_BYTES], int64_t now_ms,
                                           struct store_found *found)
{
    struct memory_store *memory = memory_store_of(store);
    struct entry *entry = *bucket_by_id(memory, command_id);
    while (entry != NULL && !(memcmp(entry->record.command_id, command_id, COMMAND_ID_BYTES) == 0 &&
                              view_equal(entry->tenant, tenant))) {
        entry = entry->next_by_id;
    }
    found->key = entry != NULL ? memory_text(entry->key) : NULL;
    memory_tell(memory_seen(memory, entry, now_ms), found);
    return STORE_OK;
}

static enum store_result memory_void_key(struct store *store, const struct store_claim *claim,
                                         const struct retention *retention, int64_t now_ms, struct store_found *found)
{
    struct memory_store *memory = memory_store_of(store);
    struct entry *old = entry_find(memory, claim->tenant, claim->key);
    struct entry *seen = memory_seen(memory, old, now_ms);
    if (seen != NULL) {
        found->record = seen->record;
        found->row = seen->row;
    }
    if (store_may_write(claim) &&
        record_void(&found->record, claim->command_id, &claim->credential, retention, now_ms)) {
        memory_put(memory, claim, old, seen != NULL, found);
        found->claimed = true;
    }
    if (found->row != 0) {
        found->request = memory_text(view_of(entry_find(memory, claim->tenant, claim->key)->request));
    }
    return STORE_OK;
}

static int entry_compare_due(const void *a, const void *b)
{
    const struct entry *left = *(struct entry *const *) a, *right = *(struct entry *const *) b;
    int64_t left_due = store_record_due(&left->record), right_due = store_record_due(&right->record);
    if (left_due != right_due) {
        return left_due < right_due ? -1 : 1;
    }
    return left->row < right->row ? -1 : 1;
}

static enum store_result memory_sweep(struct store *store, struct store_sweep *sweep, int64_t now_ms)
{
    struct memory_store *memory = memory_store_of(store);
    size_t count = 0;
    struct entry **due = memory_new((memory->entry_count + 1) * sizeof(struct entry *));
    for (size_t i = 0; i < memory->bucket_count; i++) {
        for (struct entry *entry = memory->buckets[i]; entry != NULL; entry = entry->next) {
            int64_t due_ms = store_record_due(&entry->record);
            if (due_ms != 0 && due_ms <= now_ms) {
                due[count++] = entry;
            }
        }
    }
    qsort(due, count, sizeof(struct entry *), entry_compare_due);
    sweep->more = count >= sweep->limit;
    sweep->found_due_ms = count > 0 ? store_record_due(&due[0]->record) : 0;
    sweep->left_due_ms = count > sweep->limit ? store_record_due(&due[sweep->limit]->record) : 0;
    for (size_t i = 0; i < count && i < sweep->limit; i++) {
        struct record aged = due[i]->record;
        aged.state = record_state_at(&aged, now_ms);
        if (aged.state == RECORD_ABSENT) {
            store_window_close(store, &aged);
            memory_change(memory, due[i], NULL);
            sweep->forgotten++;
        } else {
            memory_change(memory, due[i],
                          entry_new(memory, due[i]->row, due[i]->tenant, due[i]->key, due[i]->request, &aged));
            sweep->expired++;
        }
    }
    free(due);
    return STORE_OK;
}

static enum store_result memory_touch(struct store *store, int64_t now_ms)
{
    (void) store;
    (void) now_ms;
    return STORE_OK;
}

static enum store_result memory_idle(struct store *store)
{
    (void) store;
    return STORE_OK;
}

static void memory_close(struct store *store)
{
    struct memory_store *memory = memory_store_of(store);
    for (size_t i = 0; i < memory->bucket_count; i++) {
        for (struct entry *entry = memory->buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            entry_free(entry);
        }
    }
    free(memory->buckets);
    free(memory->by_id);
    free(memory->changes);
    free(memory);
}

static const struct store_class memory_class = {
    .name = "memory",
    .begin = memory_begin,
    .commit = memory_commit,
    .rollback = memory_rollback,
    .claim = memory_claim,
    .finish = memory_finish,
    .look_up = memory_look_up,
    .look_up_id = memory_look_up_id,
    .void_key = memory_void_key,
    .sweep = memory_sweep,
    .touch = memory_touch,
    .idle = memory_idle,
    .close = memory_close,
};

struct store *store_open_memory(const struct store_options *options)
{
    struct memory_store *memory = memory_new(sizeof *memory);
    struct store_info *info = &memory->store.info;
    memory->store.ops = &memory_class;
    memory->bucket_count = BUCKETS_FIRST;
    memory->buckets = memory_new(memory->bucket_count * sizeof(struct entry *));
    memory->by_id = memory_new(memory->bucket_count * sizeof(struct entry *));
    memory->next_row = 1;
    digest_random(memory->hash_key, sizeof memory->hash_key);
    digest_random(info->store_id, sizeof info->store_id);
    digest_random(info->guard_key, sizeof info->guard_key);
    const struct store_clock *clock = store_clock_or_system(options->clock);
    int64_t wall_ms = clock->wall_ms(clock->context);
    store_time_start(&memory->store, options, wall_ms, wall_ms, 0);
    store_offset_start(&memory->store, NULL);
    info->window_start_ms = wall_ms;
    (void) snprintf(info->description, sizeof info->description, "memory, nothing survives the end of the process");
    return &memory->store;
}
