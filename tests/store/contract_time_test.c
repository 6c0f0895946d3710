/* contract_time_test.c - the store contract (server/store/store.h) over every implementation: what time makes of a record, and the clean-up. */
#include "tests/store/store_each.h"

/* Claimed and finished at 1000000; looked at just before and at each end. */
static const struct age_row {
    enum outcome_kind kind;
    int64_t at_ms;
    enum record_state state;
    enum executed executed;
    enum verdict repeat;
} age_rows[] = {
    { OUTCOME_COMPLETED, 1009999, RECORD_COMPLETED, EXECUTED_YES, VERDICT_REPLAY },
    { OUTCOME_COMPLETED, 1010000, RECORD_EXPIRED, EXECUTED_YES, VERDICT_KEY_EXPIRED },
    { OUTCOME_COMPLETED, 1049999, RECORD_EXPIRED, EXECUTED_YES, VERDICT_KEY_EXPIRED },
    { OUTCOME_COMPLETED, 1050000, RECORD_ABSENT, EXECUTED_NO, VERDICT_FORWARD },
    { OUTCOME_NOT_EXECUTED, 1009999, RECORD_RELEASED, EXECUTED_NO, VERDICT_FORWARD },
    { OUTCOME_NOT_EXECUTED, 1010000, RECORD_ABSENT, EXECUTED_NO, VERDICT_FORWARD },
    { OUTCOME_UNKNOWN, 1049999, RECORD_UNKNOWN, EXECUTED_UNKNOWN, VERDICT_OUTCOME_UNKNOWN },
    { OUTCOME_UNKNOWN, 1050000, RECORD_EXPIRED, EXECUTED_UNKNOWN, VERDICT_KEY_EXPIRED },
    { OUTCOME_UNKNOWN, 1099999, RECORD_EXPIRED, EXECUTED_UNKNOWN, VERDICT_KEY_EXPIRED },
    { OUTCOME_UNKNOWN, 1100000, RECORD_ABSENT, EXECUTED_NO, VERDICT_FORWARD },
};
enum { AGE_ROWS = sizeof age_rows / sizeof age_rows[0] };

/* Index: implementation, then swept at that time or not, then row. */
START_TEST(records_age_at_their_exact_times_swept_or_not)
{
    const struct age_row *row = &age_rows[_i % AGE_ROWS];
    bool swept = _i / AGE_ROWS % 2 == 1;
    struct store *store = open_store(_i / AGE_ROWS / 2);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, row->kind), STORE_OK);
    fixture_advance(row->at_ms - 1000000);
    if (swept) {
        (void) fixture_sweep(store, 10);
    }
    struct store_found seen = fixture_look_up(store, "k");
    ck_assert_int_eq(record_state_at(&seen.record, store_now(store)), row->state);
    ck_assert_int_eq(record_executed_at(&seen.record, store_now(store)), row->executed);
    ck_assert_int_eq(seen.row == 0, row->state == RECORD_ABSENT);
    fixture_found_free(&seen);
    /* Whoever was told "not seen" is told as well since when that means something. */
    ck_assert_int_eq(store_window_start(store) > 1000000, row->state == RECORD_ABSENT);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(repeat.decision.verdict, row->repeat);
    ck_assert_int_eq(repeat.claimed, row->repeat == VERDICT_FORWARD);
    if (row->state == RECORD_ABSENT) {
        ck_assert_uint_eq(repeat.record.execution, 1);
        ck_assert_int_eq(repeat.record.created_ms, row->at_ms);
    }
    fixture_found_free(&repeat);
    close_store(store);
}
END_TEST

START_TEST(a_claim_past_its_deadline_is_unknown_and_is_never_forgotten_by_age)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    fixture_advance(999);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    fixture_advance(1);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    fixture_advance(100000000);
    struct store_sweep sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    close_store(store);
}
END_TEST

/* What it was told as since its deadline; from here on it ages as any unknown one. */
START_TEST(a_not_executed_past_the_deadline_is_written_as_unknown_and_ages)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k", 1, 1);
    fixture_advance(FIXTURE_RUN_MS);
    struct store_finish finish = fixture_finish("k", &found, OUTCOME_NOT_EXECUTED);
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_int_eq(after.state, RECORD_UNKNOWN);
    struct store_found seen = fixture_look_up(store, "k");
    ck_assert_int_eq(seen.record.state, RECORD_UNKNOWN); /* as written */
    ck_assert_int_eq(seen.record.cause, CAUSE_TIMEOUT);
    ck_assert_int_eq(seen.record.completed_ms, 1001000);
    ck_assert_int_eq(seen.record.expires_ms, 1051000);
    ck_assert_int_eq(seen.record.forget_ms, 1101000);
    fixture_found_free(&seen);
    ck_assert_uint_eq(store_records(store, RECORD_IN_PROGRESS), 0);
    ck_assert_uint_eq(store_records(store, RECORD_UNKNOWN), 1);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_OUTCOME_UNKNOWN);
    ck_assert(!repeat.claimed);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_NOT_EXECUTED), STORE_STALE);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).expired, 1);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    close_store(store);
}
END_TEST

START_TEST(a_forgotten_key_is_new_and_its_old_execution_is_stale)
{
    struct store *store = open_store(_i);
    struct store_found first = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &first, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    struct store_found second =
        fixture_claim_now(store, "k", 2, 0); /* another payload: nothing is left to differ from */
    ck_assert(second.claimed);
    ck_assert_int_ne(second.row, first.row);
    ck_assert_int_eq(fixture_finish_now(store, "k", &first, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    ck_assert_int_eq(store_window_start(store), 1000001);
    close_store(store);
}
END_TEST

/* A released key is forgotten sooner than one that was completed long before it. */
START_TEST(window_start_never_moves_back_whichever_record_is_forgotten_first)
{
    struct store *store = open_store(_i);
    struct store_found early = fixture_claim_now(store, "early", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "early", &early, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(20000);
    struct store_found late = fixture_claim_now(store, "late", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "late", &late, OUTCOME_NOT_EXECUTED), STORE_OK);
    fixture_advance(10000);
    struct store_sweep sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1020001);
    fixture_advance(20000);
    sweep = fixture_sweep(store, 10);
    ck_assert_uint_eq(sweep.forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1020001);
    close_store(store);
}
END_TEST

START_TEST(a_sweep_takes_the_oldest_first_and_stops_at_its_limit)
{
    struct store *store = open_store(_i);
    char key[16];
    for (int i = 0; i < 5; i++) {
        (void) snprintf(key, sizeof key, "k%d", i);
        struct store_found found = fixture_claim_now(store, key, 1, 0);
        ck_assert_int_eq(fixture_finish_now(store, key, &found, i == 4 ? OUTCOME_NOT_EXECUTED : OUTCOME_COMPLETED),
                         STORE_OK);
    }
    struct store_sweep sweep = fixture_sweep(store, 2);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert(!sweep.more);
    fixture_advance(FIXTURE_TTL_MS);
    sweep = fixture_sweep(store, 2);
    ck_assert_uint_eq(sweep.expired, 2);
    ck_assert(sweep.more);
    sweep = fixture_sweep(store, 100);
    ck_assert_uint_eq(sweep.expired, 2);
    ck_assert_uint_eq(sweep.forgotten, 1); /* the released one */
    ck_assert(!sweep.more);
    sweep = fixture_sweep(store, 100);
    ck_assert_uint_eq(sweep.expired + sweep.forgotten, 0);
    ck_assert_int_eq(store_window_start(store), 1000001);
    fixture_advance(FIXTURE_TOMBSTONE_MS);
    sweep = fixture_sweep(store, 3);
    ck_assert_uint_eq(sweep.forgotten, 3);
    ck_assert(sweep.more);
    sweep = fixture_sweep(store, 3);
    ck_assert_uint_eq(sweep.forgotten, 1);
    ck_assert(!sweep.more);
    close_store(store);
}
END_TEST

SUITE(store_contract_time)
{
    Suite *suite = suite_create("store/contract_time");
    CASE_LOOP(suite, records_age_at_their_exact_times_swept_or_not, IMPLEMENTATIONS * 2 * AGE_ROWS);
    CASE_LOOP(suite, a_claim_past_its_deadline_is_unknown_and_is_never_forgotten_by_age, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_not_executed_past_the_deadline_is_written_as_unknown_and_ages, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_forgotten_key_is_new_and_its_old_execution_is_stale, IMPLEMENTATIONS);
    CASE_LOOP(suite, window_start_never_moves_back_whichever_record_is_forgotten_first, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_sweep_takes_the_oldest_first_and_stops_at_its_limit, IMPLEMENTATIONS);
    return suite;
}
