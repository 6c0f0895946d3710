/* store_model_test.c - random operations on the SQLite store and on the memory store, every result compared. The
 * memory store is the oracle: it has no restart, so a restart of the other one is repeated on it by the public
 * operation that recovery stands for. Counts of what happened are printed, and what must have
 * happened is looked at (store_tally.h). */
#include "server/store/sqlite_store.h"
#include "tests/model/store_tally.h"
#include "tests/store/store_fixture.h"

enum { OPERATIONS = 20000, KEYS = 16, BATCH_MAX = 6 };

/* --- the two stores --- */

enum { SQLITE, MEMORY, STORES };

/* The newest claim of each key and the one before, as the flow would remember them: until the process ends. */
struct held {
    struct store_found now[STORES], before[STORES];
};

static struct {
    struct store *store[STORES];
    struct store_options options;
    struct suite_random random;
    struct held held[KEYS], held_before[KEYS]; /* the latter: when the transaction began */
    unsigned step, ids, commits, rollbacks, reopens, crashes, recovered;
} model;

static unsigned below(unsigned bound)
{
    return suite_random_below(&model.random, bound);
}

#define SAME(a, b)                                                                                                     \
    ck_assert_msg((a) == (b), "step %u: %s differs: sqlite %lld, memory %lld", model.step, #a, (long long) (a),        \
                  (long long) (b))

static bool has_id(const struct record *record)
{
    static const uint8_t none[COMMAND_ID_BYTES];
    return memcmp(record->command_id, none, sizeof none) != 0;
}

static void compare_records(const struct record *a, const struct record *b)
{
    SAME(a->state, b->state);
    SAME(a->execution, b->execution);
    SAME(a->cause, b->cause);
    SAME(a->tombstone, b->tombstone);
    SAME(a->created_ms, b->created_ms);
    SAME(a->deadline_ms, b->deadline_ms);
    SAME(a->completed_ms, b->completed_ms);
    SAME(a->expires_ms, b->expires_ms);
    SAME(a->forget_ms, b->forget_ms);
    SAME(a->response_status, b->response_status);
    SAME(a->response_bytes, b->response_bytes);
    SAME(a->response_kept, b->response_kept);
    SAME(a->credential.present, b->credential.present);
    SAME(a->fingerprint.version, b->fingerprint.version);
    SAME(has_id(a), has_id(b)); /* the SQLite store makes its own */
    ck_assert_mem_eq(a->credential.digest, b->credential.digest, sizeof a->credential.digest);
    ck_assert_mem_eq(a->fingerprint.digest, b->fingerprint.digest, sizeof a->fingerprint.digest);
    ck_assert_mem_eq(a->fingerprint.parts, b->fingerprint.parts, sizeof a->fingerprint.parts);
}

static void compare_found(const struct store_found *a, const struct store_found *b)
{
    SAME(a->decision.verdict, b->decision.verdict);
    SAME(a->decision.state, b->decision.state);
    SAME(a->decision.differs, b->decision.differs);
    SAME(a->claimed, b->claimed);
    SAME(a->row != 0, b->row != 0); /* each store counts its rows in its own way */
    compare_records(&a->record, &b->record);
    SAME(a->response != NULL, b->response != NULL);
    if (a->response != NULL) {
        SAME(a->response->status, b->response->status);
        SAME(a->response->kept, b->response->kept);
        ck_assert_msg(view_equal(a->response->fields, b->response->fields), "step %u: fields differ", model.step);
        ck_assert_msg(view_equal(a->response->body, b->response->body), "step %u: bodies differ", model.step);
    }
    SAME(a->request != NULL, b->request != NULL);
    if (a->request != NULL) {
        ck_assert_str_eq(a->request, b->request);
    }
    SAME(a->now_ms, b->now_ms);
    SAME(a->key != NULL, b->key != NULL);
    if (a->key != NULL) {
        ck_assert_str_eq(a->key, b->key);
    }
}

/* --- operations --- */

static void key_text(unsigned key, char text[16])
{
    (void) snprintf(text, 16, "key-%u", key);
}

/* Every one is new, in its last byte and in its first ones. */
static void next_id(uint8_t id[COMMAND_ID_BYTES])
{
    unsigned number = ++model.ids;
    memset(id, (int) (number % 7), COMMAND_ID_BYTES); /* neighbours share their first bytes */
    memcpy(id + COMMAND_ID_BYTES - sizeof number, &number, sizeof number);
}

static void do_claim(enum operation operation, unsigned key)
{
    char text[16];
    struct store_found found[STORES];
    key_text(key, text);
    struct store_claim claim =
        fixture_claim(text, operation == CLAIM_OTHER_PAYLOAD ? 2 : 1, operation == CLAIM_OTHER_CREDENTIAL ? 2 : 1);
    claim.may_claim = operation != CLAIM_UNALLOWED;
    claim.may_wait = below(2) == 0;
    claim.run_ms_max = 1 + below(3000);
    claim.ttl_ms = below(3) * (1000 + FIXTURE_TTL_MS) / 2; /* not known; between both that there are; the longer one */
    next_id(claim.command_id);
    for (int i = 0; i < STORES; i++) {
        ck_assert_int_eq(store_claim_key(model.store[i], &claim, &found[i]), STORE_OK);
    }
    compare_found(&found[SQLITE], &found[MEMORY]);
    const char *name = verdict_name(found[MEMORY].decision.verdict);
    if (found[MEMORY].claimed) {
        name = found[MEMORY].record.execution == 1 ? "new" : "taken-over";
        memcpy(model.held[key].before, model.held[key].now, sizeof model.held[key].before);
        memcpy(model.held[key].now, found, sizeof found);
    }
    tally_count(operation, name);
    for (int i = 0; i < STORES; i++) {
        fixture_found_free(&found[i]);
    }
}

static void do_finish(enum operation operation, unsigned key)
{
    static const enum outcome_kind kinds[] = { OUTCOME_COMPLETED, OUTCOME_NOT_EXECUTED, OUTCOME_UNKNOWN };
    const struct store_found *held = model.held[key].now;
    enum outcome_kind kind = operation >= FINISH_OLD ? kinds[below(3)] : kinds[operation - FINISH_COMPLETED];
    char text[16], bytes[64];
    struct record after[STORES];
    enum store_result result[STORES];
    key_text(key, text);
    if (operation == FINISH_OLD) {
        held = model.held[key].before;
    } else if (operation == FINISH_FOREIGN) {
        held = model.held[(key + 1) % KEYS].now;
    }
    struct store_finish finish = fixture_finish(text, &held[MEMORY], kind);
    if (kind == OUTCOME_COMPLETED) {
        size_t len = below(sizeof bytes + 1);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char) below(256);
        }
        finish.body = view_make(bytes, len);
        finish.outcome.response_bytes = len;
        finish.outcome.response_kept = below(4) != 0;
        finish.outcome.response_status = 200 + (int) below(300);
    }
    finish.retention.ttl_ms = 1000 + below(2) * FIXTURE_TTL_MS;
    struct store_found before;
    ck_assert_int_eq(store_look_up(model.store[MEMORY], VIEW("t"), view_of(text), &before), STORE_OK);
    for (int i = 0; i < STORES; i++) {
        finish.row = held[i].row;
        result[i] = store_finish_command(model.store[i], &finish, &after[i]);
    }
    SAME(result[SQLITE], result[MEMORY]);
    compare_records(&after[SQLITE], &after[MEMORY]);
    bool late = result[MEMORY] == STORE_OK && before.record.state == RECORD_UNKNOWN;
    const char *name = late ? "late truth" : store_result_name(result[MEMORY]);
    if (result[MEMORY] == STORE_OK && !record_outcome_counts(&after[MEMORY], kind)) {
        name = "past the deadline";
        ck_assert_int_eq(after[MEMORY].state, RECORD_UNKNOWN);
        ck_assert_int_eq(after[MEMORY].cause, CAUSE_TIMEOUT);
        ck_assert_ptr_null(running_find(sqlite_store_of(model.store[SQLITE])->running, held[SQLITE].row));
    }
    tally_count(operation, name);
    fixture_found_free(&before);
}

static void do_look_up(unsigned key)
{
    char text[16];
    struct store_found found[STORES];
    key_text(key, text);
    for (int i = 0; i < STORES; i++) {
        ck_assert_int_eq(store_look_up(model.store[i], VIEW("t"), view_of(text), &found[i]), STORE_OK);
    }
    compare_found(&found[SQLITE], &found[MEMORY]);
    tally_count(LOOK_UP, record_state_name(record_state_at(&found[MEMORY].record, store_now(model.store[MEMORY]))));
    for (int i = 0; i < STORES; i++) {
        fixture_found_free(&found[i]);
    }
}

/* By the id of what a key has now, of what it had before, or of another tenant's. */
static void do_look_up_id(unsigned key)
{
    const struct store_found *held = below(4) == 0 ? model.held[key].before : model.held[key].now;
    struct view tenant = below(8) == 0 ? VIEW("u") : VIEW("t");
    char text[16];
    struct store_found found[STORES];
    bool by_key = below(2) == 0;
    key_text(key, text);
    for (int i = 0; i < STORES; i++) {
        struct store_found seen;
        ck_assert_int_eq(store_look_up(model.store[i], VIEW("t"), view_of(text), &seen), STORE_OK);
        /* By key: also of a voided one; zeros for none. */
        const uint8_t *id = by_key ? seen.record.command_id : held[i].record.command_id;
        ck_assert_int_eq(store_look_up_id(model.store[i], tenant, id, &found[i]), STORE_OK);
        fixture_found_free(&seen);
    }
    compare_found(&found[SQLITE], &found[MEMORY]);
    enum record_state state = record_state_at(&found[MEMORY].record, found[MEMORY].now_ms);
    bool foreign = view_equal(tenant, VIEW("u"));
    ck_assert(!foreign || state == RECORD_ABSENT);
    ck_assert(state == RECORD_ABSENT || strcmp(found[MEMORY].key, text) == 0);
    tally_count(LOOK_UP_ID, foreign ? "foreign" : record_state_name(state));
    for (int i = 0; i < STORES; i++) {
        fixture_found_free(&found[i]);
    }
}

static void do_void(unsigned key)
{
    char text[16];
    struct store_found found[STORES];
    key_text(key, text);
    struct store_claim claim = fixture_claim(text, 1, 1);
    next_id(claim.command_id);
    for (int i = 0; i < STORES; i++) {
        ck_assert_int_eq(store_void_key(model.store[i], &claim, &fixture_retention, &found[i]), STORE_OK);
    }
    compare_found(&found[SQLITE], &found[MEMORY]);
    enum record_state state = record_state_at(&found[MEMORY].record, store_now(model.store[MEMORY]));
    tally_count(VOID, !found[MEMORY].claimed                ? record_state_name(state)
                      : found[MEMORY].record.execution == 0 ? "voided unseen"
                                                            : "voided released");
    for (int i = 0; i < STORES; i++) {
        fixture_found_free(&found[i]);
    }
}

static void do_sweep(void)
{
    struct store_sweep sweep[STORES];
    unsigned limit = 1 + below(6);
    for (int i = 0; i < STORES; i++) {
        sweep[i] = (struct store_sweep){ .limit = limit };
        ck_assert_int_eq(store_sweep_some(model.store[i], &sweep[i]), STORE_OK);
    }
    SAME(sweep[SQLITE].expired, sweep[MEMORY].expired);
    SAME(sweep[SQLITE].forgotten, sweep[MEMORY].forgotten);
    SAME(sweep[SQLITE].more, sweep[MEMORY].more);
    SAME(sweep[SQLITE].found_due_ms, sweep[MEMORY].found_due_ms);
    SAME(sweep[SQLITE].left_due_ms, sweep[MEMORY].left_due_ms);
    bool expired = sweep[MEMORY].expired > 0, forgotten = sweep[MEMORY].forgotten > 0;
    tally_count(SWEEP, expired && forgotten ? "both" : expired ? "expired" : forgotten ? "forgotten" : "nothing");
    if (sweep[MEMORY].more) {
        tally_count(SWEEP, "limit met");
    }
}

/* The next key in that state, so that rare meetings are not left to chance; `key` itself when there is none. */
static unsigned key_in(enum record_state state, unsigned key)
{
    for (unsigned i = 0; i < KEYS; i++) {
        char text[16];
        struct store_found found;
        key_text((key + i) % KEYS, text);
        ck_assert_int_eq(store_look_up(model.store[MEMORY], VIEW("t"), view_of(text), &found), STORE_OK);
        enum record_state there = record_state_at(&found.record, store_now(model.store[MEMORY]));
        fixture_found_free(&found);
        if (there == state) {
            return (key + i) % KEYS;
        }
    }
    return key;
}

static void do_one(void)
{
    /* Weights: claims and outcomes that fit make the rest interesting. */
    static const enum operation wheel[] = {
        CLAIM_SAME,       CLAIM_SAME,       CLAIM_SAME,      CLAIM_SAME,     CLAIM_UNALLOWED, CLAIM_OTHER_PAYLOAD,
        FINISH_COMPLETED, FINISH_COMPLETED, FINISH_RELEASED, FINISH_UNKNOWN, FINISH_OLD,      CLAIM_OTHER_CREDENTIAL,
        FINISH_FOREIGN,   LOOK_UP,          LOOK_UP_ID,      VOID,           SWEEP,
    };
    enum operation operation = wheel[below(sizeof wheel / sizeof wheel[0])];
    unsigned key = below(KEYS);
    model.step++;
    if (operation >= FINISH_COMPLETED && operation <= FINISH_UNKNOWN) {
        key = below(4) != 0 ? key_in(RECORD_IN_PROGRESS, key) : key;
    } else if (below(4) == 0) {
        key = key_in(RECORD_RELEASED, key);
    }
    if (operation <= CLAIM_OTHER_CREDENTIAL) {
        do_claim(operation, key);
    } else if (operation <= FINISH_FOREIGN) {
        do_finish(operation, key);
    } else if (operation == LOOK_UP) {
        do_look_up(key);
    } else if (operation == LOOK_UP_ID) {
        do_look_up_id(key);
    } else if (operation == VOID) {
        do_void(key);
    } else {
        do_sweep();
    }
}

/* --- transactions and restarts --- */

/* Kept by the one as its records change, and read anew by the other at each start. */
static void compare_counts(void)
{
    for (int state = 0; state < RECORD_STATE_COUNT; state++) {
        SAME(store_records(model.store[SQLITE], (enum record_state) state),
             store_records(model.store[MEMORY], (enum record_state) state));
    }
}

static void do_begin(void)
{
    for (int i = 0; i < STORES; i++) {
        ck_assert_int_eq(store_begin(model.store[i]), STORE_OK);
    }
    memcpy(model.held_before, model.held, sizeof model.held);
}

static void do_rollback(void)
{
    for (int i = 0; i < STORES; i++) {
        store_rollback(model.store[i]);
    }
    memcpy(model.held, model.held_before, sizeof model.held);
    compare_counts();
    model.rollbacks++;
}

static void do_commit(void)
{
    for (int i = 0; i < STORES; i++) {
        ck_assert_int_eq(store_commit(model.store[i]), STORE_OK);
        ck_assert_int_eq(store_idle(model.store[i]), STORE_OK);
    }
    compare_counts();
    model.commits++;
}

/* What recovery does, by hand. */
static unsigned recover_memory(void)
{
    struct store *store = model.store[MEMORY];
    unsigned recovered = 0;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (unsigned key = 0; key < KEYS; key++) {
        char text[16];
        struct store_found found;
        struct record after;
        key_text(key, text);
        ck_assert_int_eq(store_look_up(store, VIEW("t"), view_of(text), &found), STORE_OK);
        if (found.record.state == RECORD_IN_PROGRESS) {
            struct store_finish finish = fixture_finish(text, &found, OUTCOME_UNKNOWN);
            finish.outcome.cause = CAUSE_CRASH;
            finish.retention = model.options.crash_retention;
            ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
            recovered++;
        }
        fixture_found_free(&found);
    }
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return recovered;
}

/* Outside a transaction, or within one, which is then lost. */
static void do_restart(bool crash)
{
    do_rollback();
    model.store[SQLITE]->down = crash; /* closes without a last word, as a killed process does */
    store_close(model.store[SQLITE]);
    if (below(2) == 0) {
        fixture_advance(below(3000));
    }
    model.store[SQLITE] = fixture_open(&model.options);
    SAME(model.store[SQLITE]->info.recovered, recover_memory());
    SAME(store_now(model.store[SQLITE]), store_now(model.store[MEMORY]));
    compare_counts();
    for (unsigned key = 0; key < KEYS; key++) {
        for (int i = 0; i < STORES; i++) {
            model.held[key].now[i].row = model.held[key].before[i].row = 0;
        }
    }
    model.recovered += model.store[SQLITE]->info.recovered;
    model.crashes += crash;
    model.reopens += !crash;
}

static void do_advance(void)
{
    static const unsigned bounds[] = { 10, 1500, 12000, 60000 };
    unsigned dice = below(100);
    fixture_advance(below(bounds[dice < 70 ? 0 : dice < 90 ? 1 : dice < 98 ? 2 : 3]) + 1);
}

static void print_counts(void)
{
    tally_print();
    FIGURE("store model commits=%u rollbacks=%u reopens=%u crashes=%u recovered=%u", model.commits, model.rollbacks,
           model.reopens, model.crashes, model.recovered);
}

static void check_required(void)
{
    tally_check();
    ck_assert_uint_gt(model.rollbacks, 0);
    ck_assert_uint_gt(model.reopens, 0);
    ck_assert_uint_gt(model.crashes, 0);
    ck_assert_uint_gt(model.recovered, 0);
}

START_TEST(sqlite_and_memory_agree_on_every_result_of_a_random_life)
{
    char directory[64], path[80];
    unsigned seed = suite_seed();
    FIGURE("store model seed=%u operations=%d", seed, OPERATIONS);
    suite_random_start(&model.random, seed);
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    model.options = fixture_options(path);
    model.options.max_downtime_ms = INT64_MAX / 2; /* the other store is never down: nothing may be clamped */
    model.store[SQLITE] = fixture_open(&model.options);
    model.store[MEMORY] = store_open_memory(&model.options);
    while (model.step < OPERATIONS) {
        do_begin();
        for (unsigned left = 1 + below(BATCH_MAX); left > 0; left--) {
            do_one();
        }
        unsigned dice = below(200);
        if (dice < 20) {
            do_rollback();
        } else if (dice < 22) {
            do_restart(dice % 2 == 0); /* in mid-transaction */
        } else {
            do_commit();
            if (dice < 26) {
                do_restart(dice % 2 == 0);
            }
        }
        do_advance();
    }
    print_counts();
    check_required();
    store_close(model.store[SQLITE]);
    store_close(model.store[MEMORY]);
    fixture_remove(directory);
}
END_TEST

SUITE(store_model)
{
    Suite *suite = suite_create("model/store");
    CASE(suite, sqlite_and_memory_agree_on_every_result_of_a_random_life);
    return suite;
}
