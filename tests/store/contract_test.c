/* contract_test.c - the store contract (server/store/store.h), one suite over every implementation: the loop index
 * of a test is the implementation. Times are literal store times. */
#include "tests/store/store_fixture.h"

enum { SQLITE, MEMORY, IMPLEMENTATIONS };

static char directory[64], path[80];

static struct store *open_store(int implementation)
{
    if (implementation == MEMORY) {
        struct store_options options = fixture_options("memory");
        return store_open_memory(&options);
    }
    fixture_directory(directory, NULL);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    struct store_options options = fixture_options(path);
    return fixture_open(&options);
}

static void close_store(struct store *store)
{
    store_close(store);
    if (directory[0] != '\0') {
        fixture_remove(directory);
    }
}

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

/* --- outcomes --- */

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

/* --- time --- */

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

/* --- void --- */

START_TEST(void_makes_a_tombstone_of_an_unseen_or_released_key_and_of_nothing_else)
{
    static const struct {
        int kind; /* -1: unseen, -2: in progress */
        bool voided;
        enum record_state state;
        uint32_t execution;
    } rows[] = {
        { -1, true, RECORD_VOIDED, 0 },
        { -2, false, RECORD_IN_PROGRESS, 1 },
        { OUTCOME_COMPLETED, false, RECORD_COMPLETED, 1 },
        { OUTCOME_NOT_EXECUTED, true, RECORD_VOIDED, 1 },
        { OUTCOME_UNKNOWN, false, RECORD_UNKNOWN, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store *store = open_store(_i);
        if (rows[i].kind != -1) {
            struct store_found found = fixture_claim_now(store, "k", 1, 1);
            if (rows[i].kind >= 0) {
                ck_assert_int_eq(fixture_finish_now(store, "k", &found, (enum outcome_kind) rows[i].kind), STORE_OK);
            }
        }
        struct store_claim claim = fixture_claim("k", 1, 1);
        struct store_found voided;
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &voided), STORE_OK);
        ck_assert_int_eq(store_commit(store), STORE_OK);
        ck_assert_int_eq(voided.claimed, rows[i].voided);
        ck_assert_int_eq(voided.record.state, rows[i].state);
        ck_assert_uint_eq(voided.record.execution, rows[i].execution);
        ck_assert_str_eq(voided.request, "POST /orders");
        fixture_found_free(&voided);
        struct store_found seen = fixture_look_up(store, "k");
        ck_assert_int_eq(seen.record.state, rows[i].state);
        ck_assert(seen.record.credential.present);
        fixture_found_free(&seen);
        if (rows[i].voided) {
            struct store_found copy = fixture_claim_now(store, "k", 1, 1);
            ck_assert_int_eq(copy.decision.verdict, VERDICT_KEY_VOIDED);
            ck_assert_int_eq(store_begin(store), STORE_OK);
            ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &voided), STORE_OK);
            ck_assert(!voided.claimed);
            ck_assert_int_eq(voided.record.state, RECORD_VOIDED);
            ck_assert_str_eq(voided.request, "POST /orders");
            fixture_found_free(&voided);
            store_rollback(store);
            fixture_advance(FIXTURE_TOMBSTONE_MS - 1);
            ck_assert_int_eq(fixture_state(store, "k"), RECORD_VOIDED);
            fixture_advance(1);
            ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
        }
        close_store(store);
    }
}
END_TEST

START_TEST(a_void_of_an_unseen_key_remembers_no_request)
{
    struct store *store = open_store(_i);
    struct store_claim claim = fixture_claim("k", 1, 1);
    struct store_found voided;
    claim.method = claim.target = VIEW("");
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &voided), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(voided.claimed);
    ck_assert_str_eq(voided.request, " ");
    fixture_found_free(&voided);
    close_store(store);
}
END_TEST

/* --- look-ups by command id --- */

static struct store_found look_up_id(struct store *store, struct view tenant, const uint8_t id[COMMAND_ID_BYTES])
{
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, tenant, id, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return found;
}

static struct store_found claim_with_id(struct store *store, const char *key, int byte)
{
    struct store_claim claim = fixture_claim(key, 1, 1);
    struct store_found found;
    memset(claim.command_id, byte, sizeof claim.command_id);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(found.claimed);
    return found;
}

/* `wanted` NULL: none is found. */
static void expect_key_of_id(struct store *store, struct view tenant, const uint8_t id[COMMAND_ID_BYTES],
                             const char *wanted)
{
    struct store_found found = look_up_id(store, tenant, id);
    if (wanted == NULL) {
        ck_assert_int_eq(found.record.state, RECORD_ABSENT);
        ck_assert_int_eq(found.row, 0);
        ck_assert_ptr_null(found.request);
    } else {
        ck_assert_int_ne(found.record.state, RECORD_ABSENT);
        ck_assert_str_eq(found.key, wanted);
        ck_assert_str_eq(found.request, "POST /orders");
        ck_assert_mem_eq(found.record.command_id, id, COMMAND_ID_BYTES);
    }
    fixture_found_free(&found);
}

START_TEST(a_command_is_found_by_its_id_by_its_tenant_and_by_nobody_else)
{
    struct store *store = open_store(_i);
    struct store_found first = claim_with_id(store, "k1", 1), second = claim_with_id(store, "k2", 2);
    const uint8_t *one = first.record.command_id, *two = second.record.command_id;
    expect_key_of_id(store, VIEW("t"), one, "k1");
    expect_key_of_id(store, VIEW("t"), two, "k2");
    expect_key_of_id(store, VIEW("t"), (const uint8_t[COMMAND_ID_BYTES]){ 3 }, NULL);
    expect_key_of_id(store, VIEW("t"), (const uint8_t[COMMAND_ID_BYTES]){ 0 }, NULL);
    expect_key_of_id(store, VIEW(""), one, NULL);
    expect_key_of_id(store, VIEW("u"), two, NULL);
    close_store(store);
}
END_TEST

START_TEST(an_id_goes_with_its_transaction_and_with_its_record)
{
    struct store *store = open_store(_i);
    struct store_claim claim = fixture_claim("k", 1, 0);
    struct store_found undone, found;
    memset(claim.command_id, 7, sizeof claim.command_id);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &undone), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, VIEW("t"), undone.record.command_id, &found), STORE_OK);
    ck_assert_str_eq(found.key, "k");
    fixture_found_free(&found);
    store_rollback(store);
    expect_key_of_id(store, VIEW("t"), undone.record.command_id, NULL);
    struct store_found released = claim_with_id(store, "k", 8);
    ck_assert_int_eq(fixture_finish_now(store, "k", &released, OUTCOME_NOT_EXECUTED), STORE_OK);
    expect_key_of_id(store, VIEW("t"), released.record.command_id, "k");
    fixture_advance(FIXTURE_TTL_MS);
    expect_key_of_id(store, VIEW("t"), released.record.command_id, NULL); /* forgotten, swept or not */
    struct store_found again = claim_with_id(store, "k", 9);
    expect_key_of_id(store, VIEW("t"), released.record.command_id, NULL);
    expect_key_of_id(store, VIEW("t"), again.record.command_id, "k");
    close_store(store);
}
END_TEST

START_TEST(a_query_without_a_payload_gets_the_decision_of_its_credential_and_writes_nothing)
{
    struct store *store = open_store(_i);
    struct store_claim query = fixture_claim("k", 0, 1), stranger = fixture_claim("k", 0, 2);
    struct store_found found;
    query.any_payload = stranger.any_payload = true; /* may_claim stays true: nothing is written all the same */
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &query, &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_FORWARD);
    ck_assert(!found.claimed);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    struct store_found claimed = fixture_claim_now(store, "k", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "k", &claimed, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &query, &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(found.response->body, VIEW("done")));
    fixture_found_free(&found);
    ck_assert_int_eq(store_claim_key(store, &stranger, &found), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_KEY_REUSED);
    ck_assert_ptr_null(found.response);
    ck_assert_int_eq(store_commit(store), STORE_OK);
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
    CASE_LOOP(suite, each_outcome_is_stored_with_both_its_ends, IMPLEMENTATIONS * OUTCOME_ROWS);
    CASE_LOOP(suite, only_the_execution_that_holds_a_command_may_finish_it_and_only_once, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_released_command_is_taken_over_with_its_id_and_the_next_execution, IMPLEMENTATIONS);
    CASE_LOOP(suite, another_payload_or_credential_is_told_apart_and_changes_nothing, IMPLEMENTATIONS);
    CASE_LOOP(suite, an_unknown_command_takes_the_late_truth_and_then_replays_it, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_replay_is_the_stored_response_byte_for_byte, IMPLEMENTATIONS * RESPONSE_ROWS);
    CASE_LOOP(suite, a_body_of_a_mebibyte_comes_back_whole, IMPLEMENTATIONS);
    CASE_LOOP(suite, records_age_at_their_exact_times_swept_or_not, IMPLEMENTATIONS * 2 * AGE_ROWS);
    CASE_LOOP(suite, a_claim_past_its_deadline_is_unknown_and_is_never_forgotten_by_age, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_not_executed_past_the_deadline_is_written_as_unknown_and_ages, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_forgotten_key_is_new_and_its_old_execution_is_stale, IMPLEMENTATIONS);
    CASE_LOOP(suite, window_start_never_moves_back_whichever_record_is_forgotten_first, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_sweep_takes_the_oldest_first_and_stops_at_its_limit, IMPLEMENTATIONS);
    CASE_LOOP(suite, void_makes_a_tombstone_of_an_unseen_or_released_key_and_of_nothing_else, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_void_of_an_unseen_key_remembers_no_request, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_command_is_found_by_its_id_by_its_tenant_and_by_nobody_else, IMPLEMENTATIONS);
    CASE_LOOP(suite, an_id_goes_with_its_transaction_and_with_its_record, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_query_without_a_payload_gets_the_decision_of_its_credential_and_writes_nothing, IMPLEMENTATIONS);
    CASE_LOOP(suite, nothing_runs_outside_a_transaction_or_in_a_broken_one, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_planted_fault_strikes_at_its_call_and_only_there, IMPLEMENTATIONS);
    CASE_LOOP(suite, after_an_uncertain_commit_the_store_refuses_everything, IMPLEMENTATIONS * 2);
    CASE(suite, every_result_has_a_name);
    return suite;
}
