/* contract_test.c - the store contract (server/store/store.h), one suite over every implementation: the loop index
 * of a test is the implementation. Times are literal store times. Here: claims, transactions, faults; outcomes, times and the other questions have files
 * of their own (contract_outcome_test.c, ...). */
#include "tests/store/store_each.h"

START_TEST(a_first_claim_is_written_with_execution_1_and_its_deadline)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k1", 1, 1);
    ck_assert(found.claimed);
    ck_assert_int_eq(found.decision.verdict, VERDICT_FORWARD);
    ck_assert_int_eq(found.record.state, RECORD_IN_PROGRESS);
    ck_assert_uint_eq(found.record.execution, 1);
    ck_assert_int_eq(found.record.created_ms, 1000000);
    ck_assert_int_eq(found.record.deadline_ms, 1001000);
    ck_assert_int_ne(found.row, 0);
    struct store_found seen = fixture_look_up(store, "k1");
    ck_assert_mem_eq(seen.record.command_id, found.record.command_id, COMMAND_ID_BYTES);
    ck_assert(_i == SQLITE || /* which makes its ids */
              memcmp(seen.record.command_id, "\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0\xA0", 16) ==
                  0);
    ck_assert_int_eq(seen.record.state, RECORD_IN_PROGRESS);
    ck_assert_int_eq(seen.row, found.row);
    ck_assert_int_eq(seen.record.fingerprint.version, 1);
    ck_assert_int_eq(seen.record.fingerprint.digest[31], 1);
    ck_assert_int_eq(seen.record.fingerprint.parts[FINGERPRINT_BODY][3], 1);
    ck_assert(seen.record.credential.present);
    ck_assert_int_eq(seen.record.credential.digest[15], 1);
    ck_assert_str_eq(seen.request, "POST /orders");
    fixture_found_free(&seen);
    close_store(store);
}
END_TEST

START_TEST(of_two_claims_of_one_key_in_one_transaction_only_the_first_is_made)
{
    struct store *store = open_store(_i);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found first, second, waiting;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &first), STORE_OK);
    memset(claim.command_id, 0xB0, sizeof claim.command_id);
    ck_assert_int_eq(store_claim_key(store, &claim, &second), STORE_OK);
    claim.may_wait = true;
    ck_assert_int_eq(store_claim_key(store, &claim, &waiting), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(first.claimed);
    ck_assert(!second.claimed);
    ck_assert(!waiting.claimed);
    ck_assert_int_eq(second.decision.verdict, VERDICT_IN_PROGRESS);
    ck_assert_int_eq(waiting.decision.verdict, VERDICT_WAIT);
    ck_assert_mem_eq(second.record.command_id, first.record.command_id, COMMAND_ID_BYTES);
    close_store(store);
}
END_TEST

START_TEST(a_claim_that_may_not_be_made_decides_and_writes_nothing)
{
    struct store *store = open_store(_i);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found found;
    claim.may_claim = false;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_FORWARD);
    ck_assert(!found.claimed);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_OK);
    ck_assert(!found.claimed);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    close_store(store);
}
END_TEST

START_TEST(tenant_and_key_are_separate_fields)
{
    struct store *store = open_store(_i);
    struct store_claim claims[3] = { fixture_claim("bc", 1, 0), fixture_claim("c", 1, 0), fixture_claim("bc", 1, 0) };
    claims[0].tenant = VIEW("a");
    claims[1].tenant = VIEW("ab");
    claims[2].tenant = VIEW("");
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (int i = 0; i < 3; i++) {
        struct store_found found;
        ck_assert_int_eq(store_claim_key(store, &claims[i], &found), STORE_OK);
        ck_assert_msg(found.claimed, "claim %d met the record of another tenant", i);
    }
    ck_assert_int_eq(store_commit(store), STORE_OK);
    close_store(store);
}
END_TEST

START_TEST(everything_of_a_transaction_is_seen_inside_it_and_gone_after_rollback)
{
    struct store *store = open_store(_i);
    struct store_found old = fixture_claim_now(store, "old", 1, 0), found;
    struct store_claim claim = fixture_claim("new", 1, 0), voided = fixture_claim("void", 1, 0);
    struct store_finish finish = fixture_finish("old", &old, OUTCOME_COMPLETED);
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    ck_assert_int_eq(after.state, RECORD_COMPLETED);
    ck_assert_int_eq(store_void_key(store, &voided, &fixture_retention, &found), STORE_OK);
    ck_assert(found.claimed);
    fixture_found_free(&found);
    claim = fixture_claim("old", 1, 0);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    fixture_found_free(&found);
    store_rollback(store);
    ck_assert_int_eq(fixture_state(store, "new"), RECORD_ABSENT);
    ck_assert_int_eq(fixture_state(store, "void"), RECORD_ABSENT);
    ck_assert_int_eq(fixture_state(store, "old"), RECORD_IN_PROGRESS);
    ck_assert_int_eq(fixture_finish_now(store, "old", &old, OUTCOME_COMPLETED), STORE_OK);
    close_store(store);
}
END_TEST

/* --- wrappers and faults --- */

START_TEST(nothing_runs_outside_a_transaction_or_in_a_broken_one)
{
    struct store *store = open_store(_i);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found found;
    struct record after;
    struct store_sweep sweep = { .limit = 1 };
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FAILED);
    ck_assert_int_eq(store_commit(store), STORE_FAILED);
    store_rollback(store);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_begin(store), STORE_FAILED);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    store_fault_plant(store, STORE_FAULT_CLAIM, 1, STORE_FULL, false);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FULL);
    struct store_finish finish = fixture_finish("k", &found, OUTCOME_COMPLETED);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_FAILED);
    ck_assert_int_eq(store_look_up(store, claim.tenant, claim.key, &found), STORE_FAILED);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_FAILED);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_FAILED);
    ck_assert_int_eq(store_look_up_id(store, claim.tenant, claim.command_id, &found), STORE_FAILED);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_FAILED);
    ck_assert_int_eq(store_touch(store), STORE_FAILED);
    ck_assert_int_eq(store_idle(store), STORE_FAILED);
    ck_assert_int_eq(store_commit(store), STORE_FAILED);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    close_store(store);
}
END_TEST

START_TEST(a_planted_fault_strikes_at_its_call_and_only_there)
{
    static const struct {
        enum store_fault_point point;
        unsigned nth; /* the call of round 2: a look-up begins and commits too */
        enum store_result result;
    } rows[] = {
        { STORE_FAULT_BEGIN, 3, STORE_FAILED }, { STORE_FAULT_CLAIM, 2, STORE_FULL },
        { STORE_FAULT_CLAIM, 2, STORE_FAILED }, { STORE_FAULT_FINISH, 2, STORE_FAILED },
        { STORE_FAULT_COMMIT, 3, STORE_FULL },  { STORE_FAULT_COMMIT, 3, STORE_FAILED },
    };
    struct store *store = open_store(_i);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "key-%zu", i);
        store_fault_plant(store, rows[i].point, rows[i].nth, rows[i].result, false);
        for (int round = 1; round <= 3; round++) {
            struct store_claim claim = fixture_claim(key, 1, 0);
            struct store_found found = { .row = 0 };
            struct record after;
            enum store_result result = store_begin(store);
            if (result == STORE_OK) {
                result = store_claim_key(store, &claim, &found);
            }
            if (result == STORE_OK) {
                struct store_finish finish = fixture_finish(key, &found, OUTCOME_NOT_EXECUTED);
                result = store_finish_command(store, &finish, &after);
            }
            if (result == STORE_OK) {
                result = store_commit(store);
            } else {
                store_rollback(store);
            }
            ck_assert_int_eq(result, round == 2 ? rows[i].result : STORE_OK);
            struct store_found seen = fixture_look_up(store, key);
            ck_assert_uint_eq(seen.record.execution, round == 1 ? 1 : round == 2 ? 1 : 2);
            fixture_found_free(&seen);
        }
    }
    close_store(store);
}
END_TEST

/* Index: implementation, then really done or not. */
START_TEST(after_an_uncertain_commit_the_store_refuses_everything)
{
    struct store *store = open_store(_i / 2);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found found;
    struct record after;
    struct store_sweep sweep = { .limit = 1 };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    store_fault_plant(store, STORE_FAULT_COMMIT, 1, STORE_UNCERTAIN, _i % 2 == 1);
    ck_assert_int_eq(store_commit(store), STORE_UNCERTAIN);
    ck_assert(store->down);
    struct store_finish finish = fixture_finish("k", &found, OUTCOME_COMPLETED);
    ck_assert_int_eq(store_begin(store), STORE_DOWN);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_DOWN);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_DOWN);
    ck_assert_int_eq(store_look_up(store, claim.tenant, claim.key, &found), STORE_DOWN);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_DOWN);
    ck_assert_int_eq(store_look_up_id(store, claim.tenant, claim.command_id, &found), STORE_DOWN);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_DOWN);
    ck_assert_int_eq(store_touch(store), STORE_DOWN);
    ck_assert_int_eq(store_commit(store), STORE_DOWN);
    ck_assert_int_eq(store_idle(store), STORE_DOWN);
    store_rollback(store);
    if (_i / 2 == SQLITE) { /* the truth is on the disk: a restart reads it */
        store_close(store);
        struct store_options options = fixture_options(path);
        store = fixture_open(&options);
        ck_assert_int_eq(fixture_state(store, "k"), _i % 2 == 1 ? RECORD_UNKNOWN : RECORD_ABSENT);
    }
    close_store(store);
}
END_TEST

START_TEST(every_result_has_a_name)
{
    ck_assert_str_eq(store_result_name(STORE_OK), "ok");
    ck_assert_str_eq(store_result_name(STORE_STALE), "stale");
    ck_assert_str_eq(store_result_name(STORE_FULL), "full");
    ck_assert_str_eq(store_result_name(STORE_FAILED), "failed");
    ck_assert_str_eq(store_result_name(STORE_UNCERTAIN), "uncertain");
    ck_assert_str_eq(store_result_name(STORE_DOWN), "down");
    ck_assert_str_eq(store_result_name(STORE_RESULT_COUNT), "unknown");
}
END_TEST

SUITE(store_contract)
{
    Suite *suite = suite_create("store/contract");
    CASE_LOOP(suite, a_first_claim_is_written_with_execution_1_and_its_deadline, IMPLEMENTATIONS);
    CASE_LOOP(suite, of_two_claims_of_one_key_in_one_transaction_only_the_first_is_made, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_claim_that_may_not_be_made_decides_and_writes_nothing, IMPLEMENTATIONS);
    CASE_LOOP(suite, tenant_and_key_are_separate_fields, IMPLEMENTATIONS);
    CASE_LOOP(suite, everything_of_a_transaction_is_seen_inside_it_and_gone_after_rollback, IMPLEMENTATIONS);
    CASE_LOOP(suite, nothing_runs_outside_a_transaction_or_in_a_broken_one, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_planted_fault_strikes_at_its_call_and_only_there, IMPLEMENTATIONS);
    CASE_LOOP(suite, after_an_uncertain_commit_the_store_refuses_everything, IMPLEMENTATIONS * 2);
    CASE(suite, every_result_has_a_name);
    return suite;
}
