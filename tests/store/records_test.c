/* records_test.c - how many records there are in each state (store_records): kept by every store while records change, and found again at a start.
 * Held against a scan of all keys, and for SQLite against a count by its own words. The loop index is the implementation. */
#include "tests/store/store_each.h"

#include <sqlite3.h>

/* In the order of enum record_state, from in_progress on. */
static void expect_at(const struct store *store, int line, const uint64_t wanted[RECORD_STATE_COUNT - 1])
{
    for (int state = RECORD_IN_PROGRESS; state < RECORD_STATE_COUNT; state++) {
        uint64_t got = store_records(store, (enum record_state) state);
        ck_assert_msg(got == wanted[state - 1], "line %d: %llu records are %s, expected %llu", line,
                      (unsigned long long) got, record_state_name((enum record_state) state),
                      (unsigned long long) wanted[state - 1]);
    }
    ck_assert_uint_eq(store_records(store, RECORD_ABSENT), 0);
}
#define EXPECT(store, running, completed, unknown, released, expired, voided)                                          \
    expect_at((store), __LINE__,                                                                                       \
              (const uint64_t[]){ (running), (completed), (unknown), (released), (expired), (voided) })

static void void_now(struct store *store, const char *key)
{
    struct store_claim claim = fixture_claim(key, 1, 0);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    fixture_found_free(&found);
}

START_TEST(every_change_of_a_state_is_counted)
{
    struct store *store = open_store(_i);
    EXPECT(store, 0, 0, 0, 0, 0, 0);
    struct store_found a = fixture_claim_now(store, "a", 1, 0), b = fixture_claim_now(store, "b", 1, 0),
                       c = fixture_claim_now(store, "c", 1, 0);
    EXPECT(store, 3, 0, 0, 0, 0, 0);
    (void) fixture_claim_now(store, "c", 1, 0); /* a repeat, and one with another payload: nothing changes */
    (void) fixture_claim_now(store, "c", 2, 0);
    EXPECT(store, 3, 0, 0, 0, 0, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &a, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "b", &b, OUTCOME_UNKNOWN), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "c", &c, OUTCOME_NOT_EXECUTED), STORE_OK);
    EXPECT(store, 0, 1, 1, 1, 0, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &a, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "b", &b, OUTCOME_COMPLETED), STORE_OK); /* the late truth */
    EXPECT(store, 0, 2, 0, 1, 0, 0);
    c = fixture_claim_now(store, "c", 1, 0);
    EXPECT(store, 1, 2, 0, 0, 0, 0);
    ck_assert_int_eq(fixture_finish_now(store, "c", &c, OUTCOME_NOT_EXECUTED), STORE_OK);
    void_now(store, "c");
    void_now(store, "d");
    EXPECT(store, 0, 2, 0, 0, 0, 2);
    close_store(store);
}
END_TEST

START_TEST(what_time_has_done_counts_once_the_sweep_came_by)
{
    struct store *store = open_store(_i);
    struct store_found a = fixture_claim_now(store, "a", 1, 0), b = fixture_claim_now(store, "b", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &a, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "b", &b, OUTCOME_NOT_EXECUTED), STORE_OK);
    void_now(store, "c");
    fixture_advance(FIXTURE_TTL_MS);
    EXPECT(store, 0, 1, 0, 1, 0, 1);
    (void) fixture_sweep(store, 1);
    (void) fixture_sweep(store, 10);
    EXPECT(store, 0, 0, 0, 0, 1, 1);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    (void) fixture_sweep(store, 10);
    EXPECT(store, 0, 0, 0, 0, 0, 0);
    close_store(store);
}
END_TEST

START_TEST(a_claim_over_a_record_that_time_has_freed_counts_as_one)
{
    struct store *store = open_store(_i);
    struct store_found a = fixture_claim_now(store, "a", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &a, OUTCOME_NOT_EXECUTED), STORE_OK);
    void_now(store, "b");
    fixture_advance(FIXTURE_TOMBSTONE_MS); /* no sweep */
    EXPECT(store, 0, 0, 0, 1, 0, 1);
    (void) fixture_claim_now(store, "a", 2, 0);
    (void) fixture_claim_now(store, "b", 2, 0);
    EXPECT(store, 2, 0, 0, 0, 0, 0);
    close_store(store);
}
END_TEST

START_TEST(what_a_transaction_changed_counts_with_its_commit_and_not_without)
{
    struct store *store = open_store(_i);
    struct store_found old = fixture_claim_now(store, "old", 1, 0), found;
    struct store_claim claim = fixture_claim("new", 1, 0);
    struct store_finish finish = fixture_finish("old", &old, OUTCOME_COMPLETED);
    struct record after;
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
        ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        EXPECT(store, 1, 0, 0, 0, 0, 0);
        if (round == 0) {
            store_rollback(store);
        } else if (round == 1) {
            store_fault_plant(store, STORE_FAULT_COMMIT, 1, STORE_FULL, false);
            ck_assert_int_eq(store_commit(store), STORE_FULL);
        } else {
            ck_assert_int_eq(store_commit(store), STORE_OK);
        }
    }
    EXPECT(store, 1, 1, 0, 0, 0, 0);
    close_store(store);
}
END_TEST

/* --- against a scan --- */

enum { KEYS = 24, STEPS = 1500 };

static void key_text(unsigned key, char text[16])
{
    (void) snprintf(text, 16, "key-%u", key);
}

/* Nothing is due: what is written is what a look-up tells. */
static void expect_as_scanned(struct store *store, unsigned step)
{
    uint64_t scanned[RECORD_STATE_COUNT] = { 0 };
    for (unsigned key = 0; key < KEYS; key++) {
        char text[16];
        key_text(key, text);
        struct store_found found = fixture_look_up(store, text);
        scanned[found.record.state]++;
        fixture_found_free(&found);
    }
    for (int state = RECORD_IN_PROGRESS; state < RECORD_STATE_COUNT; state++) {
        uint64_t counted = store_records(store, (enum record_state) state);
        ck_assert_msg(counted == scanned[state], "step %u: %llu records are counted as %s, the scan finds %llu", step,
                      (unsigned long long) counted, record_state_name((enum record_state) state),
                      (unsigned long long) scanned[state]);
    }
}

static void do_something(struct store *store, struct suite_random *random)
{
    static const enum outcome_kind kinds[] = { OUTCOME_COMPLETED, OUTCOME_NOT_EXECUTED, OUTCOME_UNKNOWN };
    char text[16];
    struct store_found found;
    struct record after;
    key_text(suite_random_below(random, KEYS), text);
    struct store_claim claim = fixture_claim(text, 1, 0);
    if (suite_random_below(random, 5) == 0) {
        ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_OK);
    } else {
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    }
    if (found.row != 0 && suite_random_below(random, 3) != 0) {
        struct store_finish finish = fixture_finish(text, &found, kinds[suite_random_below(random, 3)]);
        (void) store_finish_command(store, &finish, &after); /* stale, when it is voided or finished */
    }
    fixture_found_free(&found);
}

static void sweep_all(struct store *store)
{
    while (fixture_sweep(store, 5).more) {
    }
}

START_TEST(the_counts_are_those_of_a_full_scan_after_every_transaction_of_a_random_life)
{
    struct suite_random random;
    unsigned seed = suite_seed();
    struct store *store = open_store(_i);
    FIGURE("records seed=%u steps=%d", seed, STEPS);
    suite_random_start(&random, seed);
    for (unsigned step = 0; step < STEPS; step++) {
        ck_assert_int_eq(store_begin(store), STORE_OK);
        for (unsigned left = suite_random_below(&random, 4) + 1; left > 0; left--) {
            do_something(store, &random);
        }
        if (suite_random_below(&random, 5) == 0) {
            store_rollback(store);
        } else {
            ck_assert_int_eq(store_commit(store), STORE_OK);
        }
        expect_as_scanned(store, step);
        if (suite_random_below(&random, 10) == 0) {
            fixture_advance(suite_random_below(&random, 2 * FIXTURE_TTL_MS));
            sweep_all(store);
            expect_as_scanned(store, step);
        }
    }
    close_store(store);
}
END_TEST

/* --- at a start --- */

/* By SQLite's own count, of a store that is closed. */
static void count_rows(uint64_t counted[RECORD_STATE_COUNT])
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    memset(counted, 0, RECORD_STATE_COUNT * sizeof counted[0]);
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(
                         db,
                         "SELECT iif(state = 1 AND row_id IN (SELECT row_id FROM responses), 2, state) AS now, count(*)"
                         " FROM commands GROUP BY now",
                         -1, &statement, NULL),
                     SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        counted[sqlite3_column_int(statement, 0)] = (uint64_t) sqlite3_column_int64(statement, 1);
    }
    (void) sqlite3_finalize(statement);
    (void) sqlite3_close(db);
}

START_TEST(a_start_finds_the_counts_again_and_counts_what_was_running_as_unknown)
{
    static const enum outcome_kind kinds[] = { OUTCOME_COMPLETED, OUTCOME_NOT_EXECUTED, OUTCOME_UNKNOWN };
    uint64_t counted[RECORD_STATE_COUNT];
    struct store *store = open_store(SQLITE);
    for (unsigned key = 0; key < 9; key++) {
        char text[16];
        key_text(key, text);
        struct store_found found = fixture_claim_now(store, text, 1, 0);
        if (key < 6) {
            ck_assert_int_eq(fixture_finish_now(store, text, &found, kinds[key % 3]), STORE_OK);
        }
    }
    void_now(store, "voided");
    fixture_advance(FIXTURE_TTL_MS); /* completed and released ones are due, and nobody has swept */
    EXPECT(store, 3, 2, 2, 2, 0, 1);
    store_close(store);
    count_rows(counted);
    ck_assert_uint_eq(counted[RECORD_IN_PROGRESS], 3);
    ck_assert_uint_eq(counted[RECORD_COMPLETED], 2);
    ck_assert_uint_eq(counted[RECORD_UNKNOWN], 2);
    ck_assert_uint_eq(counted[RECORD_RELEASED], 2);
    ck_assert_uint_eq(counted[RECORD_VOIDED], 1);
    struct store_options options = fixture_options(path);
    store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 3);
    EXPECT(store, 0, 2, 5, 2, 0, 1);
    (void) fixture_sweep(store, 100);
    EXPECT(store, 0, 0, 5, 0, 2, 1);
    close_store(store);
}
END_TEST

SUITE(store_records)
{
    Suite *suite = suite_create("store/records");
    CASE_LOOP(suite, every_change_of_a_state_is_counted, IMPLEMENTATIONS);
    CASE_LOOP(suite, what_time_has_done_counts_once_the_sweep_came_by, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_claim_over_a_record_that_time_has_freed_counts_as_one, IMPLEMENTATIONS);
    CASE_LOOP(suite, what_a_transaction_changed_counts_with_its_commit_and_not_without, IMPLEMENTATIONS);
    CASE_LOOP(suite, the_counts_are_those_of_a_full_scan_after_every_transaction_of_a_random_life, IMPLEMENTATIONS);
    CASE(suite, a_start_finds_the_counts_again_and_counts_what_was_running_as_unknown);
    return suite;
}
