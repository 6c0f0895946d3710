/* store.c - the checking wrappers around every store, store time, and the fault points of the tests.
 *
 * Owns: the rules that no implementation may break (nothing after UNCERTAIN, nothing in a broken transaction), and
 * the clock that only moves forward, how many records there are in each state. Not: how anything is stored. One thread
 * at a time, but store_now, store_window_start, store_window_told and store_records, which any thread may ask. */
#include "server/store/store.h"

#include "server/base/clock.h"
#include "server/base/memory.h"

#include <string.h>

enum { STORE_OFFSET_SLACK_MS = 2000 }; /* a wall clock that is found so far from where it was left was set */

/* --- time --- */

static int64_t system_wall_ms(void *context)
{
    (void) context;
    return clock_wall_ms();
}

static int64_t system_monotonic_ms(void *context)
{
    (void) context;
    return clock_monotonic_ms();
}

static const struct store_clock system_clock = { system_wall_ms, system_monotonic_ms, NULL };

const struct store_clock *store_clock_or_system(const struct store_clock *clock)
{
    return clock != NULL ? clock : &system_clock;
}

void store_time_start(struct store *store, const struct store_options *options, int64_t last_ms, int64_t last_wall_ms,
                      int64_t wall_ahead_ms)
{
    store->clock = store_clock_or_system(options->clock);
    int64_t wall_ms = store->clock->wall_ms(store->clock->context);
    int64_t reached_ms = last_ms + wall_ahead_ms; /* where a wall clock that nobody set back would have stood */
    int64_t advance_ms = wall_ms - (last_wall_ms > reached_ms ? last_wall_ms : reached_ms);
    if (advance_ms < 0) {
        advance_ms = 0;
    } else if (advance_ms > options->max_downtime_ms) {
        advance_ms = options->max_downtime_ms;
    }
    store->time_base_ms = last_ms + advance_ms;
    int64_t ahead_ms = wall_ms - store->time_base_ms;
    store->wall_ahead_ms = ahead_ms > wall_ahead_ms ? ahead_ms : wall_ahead_ms;
    store->time_base_monotonic_ms = store->clock->monotonic_ms(store->clock->context);
}

void store_offset_start(struct store *store, const int64_t *before_ms)
{
    int64_t measured_ms = store->clock->wall_ms(store->clock->context) - store_now(store);
    int64_t moved_ms = before_ms != NULL ? measured_ms - *before_ms : INT64_MAX;
    bool was_set = moved_ms > STORE_OFFSET_SLACK_MS || moved_ms < -STORE_OFFSET_SLACK_MS;
    store->told_offset_ms = was_set ? measured_ms : *before_ms;
}

int64_t store_now(const struct store *store)
{
    return store->time_base_ms + store->clock->monotonic_ms(store->clock->context) - store->time_base_monotonic_ms;
}

int64_t store_window_start(const struct store *store)
{
    return __atomic_load_n(&store->info.window_start_ms, __ATOMIC_RELAXED);
}

int64_t store_window_told(const struct store *store)
{
    return store_window_start(store) + store->wall_ahead_ms;
}

void store_window_close(struct store *store, const struct record *forgotten)
{
    /* A released key may have been claimed again until shortly before its end, so the end counts, not the creation. */
    int64_t end_ms = forgotten->completed_ms > forgotten->created_ms ? forgotten->completed_ms : forgotten->created_ms;
    if (end_ms >= store->info.window_start_ms) {
        __atomic_store_n(&store->info.window_start_ms, end_ms + 1, __ATOMIC_RELAXED);
    }
}

int64_t store_record_due(const struct record *record)
{
    switch (record->state) {
    case RECORD_COMPLETED:
    case RECORD_UNKNOWN:
        return record->expires_ms;
    case RECORD_RELEASED:
    case RECORD_EXPIRED:
    case RECORD_VOIDED:
        return record->forget_ms;
    default:
        return 0;
    }
}

/* --- how many records there are --- */

uint64_t store_records(const struct store *store, enum record_state state)
{
    return __atomic_load_n(&store->records[state], __ATOMIC_RELAXED);
}

static void store_add_records(struct store *store, enum record_state state, int64_t more)
{
    __atomic_store_n(&store->records[state], store_records(store, state) + (uint64_t) more, __ATOMIC_RELAXED);
}

void store_note_there(struct store *store, enum record_state state)
{
    store_add_records(store, state, 1);
}

void store_note_move(struct store *store, enum record_state from, enum record_state to)
{
    if (from != RECORD_ABSENT) {
        store->moved[from]--;
    }
    if (to != RECORD_ABSENT) {
        store->moved[to]++;
    }
}

static void store_settle_moves(struct store *store)
{
    for (int state = 0; state < RECORD_STATE_COUNT; state++) {
        if (store->moved[state] != 0) {
            store_add_records(store, (enum record_state) state, store->moved[state]);
        }
    }
}

/* --- fault points --- */

void store_fault_plant(struct store *store, enum store_fault_point point, unsigned nth, enum store_result result,
                       bool really)
{
    store->fault[point] = (struct store_fault){ .countdown = nth, .result = result, .really = really };
}

/* STORE_OK: nothing is planted for this call. */
static enum store_result store_fault_meet(struct store *store, enum store_fault_point point)
{
    struct store_fault *fault = &store->fault[point];
    if (fault->countdown == 0 || --fault->countdown > 0) {
        return STORE_OK;
    }
    return fault->result;
}

/* --- wrappers --- */

static enum store_result store_note(struct store *store, enum store_result result)
{
    if (result == STORE_UNCERTAIN) {
        store->down = true;
    }
    if (result != STORE_OK && result != STORE_STALE) {
        store->broken = true;
    }
    return result;
}

/* May an operation run now? */
static enum store_result store_check(const struct store *store)
{
    if (store->down) {
        return STORE_DOWN;
    }
    return store->open && !store->broken ? STORE_OK : STORE_FAILED;
}

enum store_result store_begin(struct store *store)
{
    if (store->down) {
        return STORE_DOWN;
    }
    if (store->open) {
        return STORE_FAILED;
    }
    enum store_result result = store_fault_meet(store, STORE_FAULT_BEGIN);
    if (result == STORE_OK) {
        result = store->ops->begin(store);
    }
    store->open = result == STORE_OK;
    store->broken = false;
    memset(store->moved, 0, sizeof store->moved);
    store->down = store->down || result == STORE_UNCERTAIN;
    return result;
}

enum store_result store_commit(struct store *store)
{
    enum store_result result = store_check(store);
    if (result != STORE_OK) {
        store_rollback(store);
        return result;
    }
    result = store_fault_meet(store, STORE_FAULT_COMMIT);
    if (result == STORE_OK) {
        int64_t began_us = clock_monotonic_us();
        result = store->ops->commit(store);
        store->commit_us = clock_monotonic_us() - began_us;
        if (result == STORE_OK) {
            store_settle_moves(store);
        }
    } else if (result == STORE_UNCERTAIN && store->fault[STORE_FAULT_COMMIT].really) {
        (void) store->ops->commit(store); /* planted: done, and nobody is told */
    } else {
        store->ops->rollback(store);
    }
    store->open = false;
    return store_note(store, result);
}

void store_rollback(struct store *store)
{
    if (store->open) {
        store->open = false;
        store->ops->rollback(store);
    }
}

/* Before an operation that finds something. */
static enum store_result store_find(const struct store *store, struct store_found *found)
{
    memset(found, 0, sizeof *found);
    found->now_ms = store_now(store);
    return store_check(store);
}

enum store_result store_claim_key(struct store *store, const struct store_claim *claim, struct store_found *found)
{
    enum store_result result = store_find(store, found);
    if (result != STORE_OK) {
        return result;
    }
    result = store_fault_meet(store, STORE_FAULT_CLAIM);
    return store_note(store, result != STORE_OK ? result : store->ops->claim(store, claim, found->now_ms, found));
}

enum store_result store_finish_command(struct store *store, const struct store_finish *finish, struct record *after)
{
    memset(after, 0, sizeof *after);
    enum store_result result = store_check(store);
    if (result != STORE_OK) {
        return result;
    }
    result = store_fault_meet(store, STORE_FAULT_FINISH);
    return store_note(store, result != STORE_OK ? result : store->ops->finish(store, finish, store_now(store), after));
}

enum store_result store_look_up(struct store *store, struct view tenant, struct view key, struct store_found *found)
{
    enum store_result result = store_find(store, found);
    return result != STORE_OK ? result
                              : store_note(store, store->ops->look_up(store, tenant, key, found->now_ms, found));
}

enum store_result store_look_up_id(struct store *store, struct view tenant, const uint8_t command_id[COMMAND_ID_BYTES],
                                   struct store_found *found)
{
    enum store_result result = store_find(store, found);
    return result != STORE_OK
               ? result
               : store_note(store, store->ops->look_up_id(store, tenant, command_id, found->now_ms, found));
}

enum store_result store_void_key(struct store *store, const struct store_claim *claim,
                                 const struct retention *retention, struct store_found *found)
{
    enum store_result result = store_find(store, found);
    return result != STORE_OK ? result
                              : store_note(store, store->ops->void_key(store, claim, retention, found->now_ms, found));
}

enum store_result store_sweep_some(struct store *store, struct store_sweep *sweep)
{
    sweep->expired = sweep->forgotten = 0;
    sweep->more = false;
    sweep->found_due_ms = sweep->left_due_ms = 0;
    enum store_result result = store_check(store);
    return result != STORE_OK ? result : store_note(store, store->ops->sweep(store, sweep, store_now(store)));
}

enum store_result store_touch(struct store *store)
{
    enum store_result result = store_check(store);
    return result != STORE_OK ? result : store_note(store, store->ops->touch(store, store_now(store)));
}

enum store_result store_idle(struct store *store)
{
    if (store->down) {
        return STORE_DOWN;
    }
    if (store->open) {
        return STORE_FAILED;
    }
    enum store_result result = store->ops->idle(store);
    store->down = result == STORE_UNCERTAIN;
    return result;
}

bool store_takes_claims(const struct store *store)
{
    return store->ops->takes_claims == NULL || store->ops->takes_claims(store);
}

bool store_make_room(struct store *store)
{
    return !store->down && store->ops->make_room != NULL && store->ops->make_room(store);
}

void store_close(struct store *store)
{
    if (store != NULL) {
        store_rollback(store);
        store->ops->close(store);
    }
}

const char *store_result_name(enum store_result result)
{
    static const char *const names[STORE_RESULT_COUNT] = {
        [STORE_OK] = "ok",         [STORE_STALE] = "stale",         [STORE_FULL] = "full",
        [STORE_FAILED] = "failed", [STORE_UNCERTAIN] = "uncertain", [STORE_DOWN] = "down",
    };
    return (unsigned) result < STORE_RESULT_COUNT ? names[result] : "unknown";
}

/* --- what both implementations build --- */

struct asked store_asked(const struct store_claim *claim)
{
    return (struct asked){ claim->any_payload ? NULL : &claim->fingerprint, &claim->credential, claim->may_wait };
}

struct stored_response *stored_response_new(const struct record *record, struct view fields, struct view body)
{
    struct stored_response *response = memory_new(sizeof *response + fields.len + body.len);
    char *bytes = (char *) (response + 1);
    response->status = record->response_status;
    response->kept = record->response_kept;
    if (fields.len > 0) {
        memcpy(bytes, fields.ptr, fields.len);
    }
    if (body.len > 0) {
        memcpy(bytes + fields.len, body.ptr, body.len);
    }
    response->fields = view_make(bytes, fields.len);
    response->body = view_make(bytes + fields.len, body.len);
    return response;
}
