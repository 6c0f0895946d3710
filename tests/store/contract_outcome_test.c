/* contract_outcome_test.c - the store contract (server/store/store.h) over every implementation: outcomes, who may record one, and the response that is
 * replayed. */
#include "tests/store/store_each.h"

/* What is written for each outcome, by literal store times: claimed at 1000000, finished at 1000400. */
static const struct outcome_row {
    enum outcome_kind kind;
    enum record_state state;
    enum cause cause;
    int64_t expires_ms, forget_ms;
    enum verdict repeat;
} outcome_rows[] = {
    { OUTCOME_COMPLETED, RECORD_COMPLETED, CAUSE_NONE, 1010400, 1050400, VERDICT_REPLAY },
    { OUTCOME_NOT_EXECUTED, RECORD_RELEASED, CAUSE_NONE, 1010400, 1010400, VERDICT_FORWARD },
    { OUTCOME_UNKNOWN, RECORD_UNKNOWN, CAUSE_RESET, 1050400, 1100400, VERDICT_OUTCOME_UNKNOWN },
};
enum { OUTCOME_ROWS = sizeof outcome_rows / sizeof outcome_rows[0] };

START_TEST(each_outcome_is_stored_with_both_its_ends)
{
    const struct outcome_row *row = &outcome_rows[_i % OUTCOME_ROWS];
    struct store *store = open_store(_i / OUTCOME_ROWS);
    struct store_found found = fixture_claim_now(store, "k", 1, 1);
    fixture_advance(400);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, row->kind), STORE_OK);
    struct store_found seen = fixture_look_up(store, "k");
    ck_assert_int_eq(seen.record.state, row->state);
    ck_assert_int_eq(seen.record.cause, row->cause);
    ck_assert_int_eq(seen.record.completed_ms, 1000400);
    ck_assert_int_eq(seen.record.expires_ms, row->expires_ms);
    ck_assert_int_eq(seen.record.forget_ms, row->forget_ms);
    ck_assert_int_eq(seen.record.credential.present, row->kind != OUTCOME_NOT_EXECUTED);
    fixture_found_free(&seen);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, row->repeat);
    fixture_found_free(&repeat);
    close_store(store);
}
END_TEST

START_TEST(only_the_execution_that_holds_a_command_may_finish_it_and_only_once)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k", 1, 0), other = fixture_claim_now(store, "k2", 1, 0);
    struct store_found wrong = found;
    wrong.record.execution = 2;
    ck_assert_int_eq(fixture_finish_now(store, "k", &wrong, OUTCOME_COMPLETED), STORE_STALE);
    wrong = found;
    wrong.row = other.row;
    ck_assert_int_eq(fixture_finish_now(store, "k", &wrong, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "never-seen", &found, OUTCOME_COMPLETED), STORE_STALE);
    wrong.row = 0;
    ck_assert_int_eq(fixture_finish_now(store, "k", &wrong, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    ck_assert_int_eq(fixture_state(store, "k2"), RECORD_IN_PROGRESS);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_NOT_EXECUTED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_COMPLETED);
    close_store(store);
}
END_TEST

START_TEST(a_released_command_is_taken_over_with_its_id_and_the_next_execution)
{
    struct store *store = open_store(_i);
    struct store_found first = fixture_claim_now(store, "k", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "k", &first, OUTCOME_NOT_EXECUTED), STORE_OK);
    fixture_advance(5);
    struct store_claim claim = fixture_claim("k", 1, 2); /* a 401 was followed by a fresh token */
    struct store_found second;
    memset(claim.command_id, 0xB0, sizeof claim.command_id);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &second), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(second.claimed);
    ck_assert_uint_eq(second.record.execution, 2);
    ck_assert_mem_eq(second.record.command_id, first.record.command_id, COMMAND_ID_BYTES);
    ck_assert_int_eq(second.record.created_ms, 1000000);
    ck_assert_int_eq(second.record.deadline_ms, 1001005);
    ck_assert_int_eq(second.record.credential.digest[0], 2);
    ck_assert_int_eq(fixture_finish_now(store, "k", &first, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "k", &second, OUTCOME_COMPLETED), STORE_OK);
    close_store(store);
}
END_TEST

START_TEST(another_payload_or_credential_is_told_apart_and_changes_nothing)
{
    struct store *store = open_store(_i);
    struct store_found first = fixture_claim_now(store, "k", 1, 1);
    struct store_found payload = fixture_claim_now(store, "k", 2, 1);
    ck_assert_int_eq(payload.decision.verdict, VERDICT_KEY_REUSED);
    ck_assert_uint_eq(payload.decision.differs, 1U << FINGERPRINT_BODY);
    struct store_found stranger = fixture_claim_now(store, "k", 2, 2);
    ck_assert_int_eq(stranger.decision.verdict, VERDICT_KEY_REUSED);
    ck_assert_uint_eq(stranger.decision.differs, DIFFERS_CREDENTIALS);
    ck_assert_int_eq(fixture_finish_now(store, "k", &first, OUTCOME_NOT_EXECUTED), STORE_OK);
    struct store_found released = fixture_claim_now(store, "k", 2, 1);
    ck_assert_int_eq(released.decision.verdict, VERDICT_KEY_REUSED);
    ck_assert(!released.claimed);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_RELEASED);
    close_store(store);
}
END_TEST

START_TEST(an_unknown_command_takes_the_late_truth_and_then_replays_it)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_UNKNOWN), STORE_OK);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_NOT_EXECUTED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert_int_eq(repeat.response->status, 201);
    fixture_found_free(&repeat);
    close_store(store);
}
END_TEST

static const struct response_row {
    const char *what;
    struct view fields, body;
    bool kept;
} response_rows[] = {
    { "text", { "A: b\r\nC: d\r\n", 12 }, { "hello", 5 }, true },
    { "NUL and 0xFF bytes", { "X: \xFF\xFE\r\n", 7 }, { "\0\xFF\0\r\n\0", 6 }, true },
    { "an empty body", { "A: b\r\n", 6 }, { "", 0 }, true },
    { "nothing at all", { "", 0 }, { "", 0 }, true },
    { "a body over the limit", { "A: b\r\n", 6 }, { "dropped", 7 }, false },
};
enum { RESPONSE_ROWS = sizeof response_rows / sizeof response_rows[0] };

START_TEST(a_replay_is_the_stored_response_byte_for_byte)
{
    const struct response_row *row = &response_rows[_i % RESPONSE_ROWS];
    struct store *store = open_store(_i / RESPONSE_ROWS);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    struct store_finish finish = fixture_finish("k", &found, OUTCOME_COMPLETED);
    struct record after;
    finish.fields = row->fields;
    finish.body = row->body;
    finish.outcome.response_bytes = row->body.len;
    finish.outcome.response_kept = row->kept;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert_ptr_nonnull(repeat.response);
    ck_assert_int_eq(repeat.response->kept, row->kept);
    ck_assert_msg(view_equal(repeat.response->fields, row->fields), "%s: fields differ", row->what);
    ck_assert_msg(view_equal(repeat.response->body, row->kept ? row->body : VIEW("")), "%s: body differs", row->what);
    ck_assert_uint_eq(repeat.record.response_bytes, row->body.len);
    fixture_found_free(&repeat);
    close_store(store);
}
END_TEST

START_TEST(a_body_of_a_mebibyte_comes_back_whole)
{
    struct store *store = open_store(_i);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    struct store_finish finish = fixture_finish("k", &found, OUTCOME_COMPLETED);
    struct record after;
    size_t len = 1048576;
    char *body = memory_new(len);
    for (size_t i = 0; i < len; i++) {
        body[i] = (char) (i * 31 + i / 4096);
    }
    finish.body = view_make(body, len);
    finish.outcome.response_bytes = len;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    struct store_found repeat = fixture_claim_now(store, "k", 1, 0);
    ck_assert(view_equal(repeat.response->body, view_make(body, len)));
    fixture_found_free(&repeat);
    free(body);
    close_store(store);
}
END_TEST

SUITE(store_contract_outcome)
{
    Suite *suite = suite_create("store/contract_outcome");
    CASE_LOOP(suite, each_outcome_is_stored_with_both_its_ends, IMPLEMENTATIONS * OUTCOME_ROWS);
    CASE_LOOP(suite, only_the_execution_that_holds_a_command_may_finish_it_and_only_once, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_released_command_is_taken_over_with_its_id_and_the_next_execution, IMPLEMENTATIONS);
    CASE_LOOP(suite, another_payload_or_credential_is_told_apart_and_changes_nothing, IMPLEMENTATIONS);
    CASE_LOOP(suite, an_unknown_command_takes_the_late_truth_and_then_replays_it, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_replay_is_the_stored_response_byte_for_byte, IMPLEMENTATIONS * RESPONSE_ROWS);
    CASE_LOOP(suite, a_body_of_a_mebibyte_comes_back_whole, IMPLEMENTATIONS);
    return suite;
}
