/* contract_question_test.c - the store contract (server/store/store.h) over every implementation: void, and the questions of a status query. */
#include "tests/store/store_each.h"

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
    struct store_found found = fixture_look_up_id(store, tenant, id);
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

SUITE(store_contract_question)
{
    Suite *suite = suite_create("store/contract_question");
    CASE_LOOP(suite, void_makes_a_tombstone_of_an_unseen_or_released_key_and_of_nothing_else, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_void_of_an_unseen_key_remembers_no_request, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_command_is_found_by_its_id_by_its_tenant_and_by_nobody_else, IMPLEMENTATIONS);
    CASE_LOOP(suite, an_id_goes_with_its_transaction_and_with_its_record, IMPLEMENTATIONS);
    CASE_LOOP(suite, a_query_without_a_payload_gets_the_decision_of_its_credential_and_writes_nothing, IMPLEMENTATIONS);
    return suite;
}
