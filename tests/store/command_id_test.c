/* command_id_test.c - ids that lead to their row: alone, and in the SQLite store; what a forged one finds (docs/contract.md 7.4, 10.12). */
#include "server/store/command_id.h"

#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

static struct store *begin(void)
{
    struct store_options options = start();
    return fixture_open(&options);
}

static void end(struct store *store)
{
    store_close(store);
    fixture_remove(directory);
}

/* Nothing at all is told. */
static void expect_unused(struct store *store, struct view tenant, const uint8_t id[COMMAND_ID_BYTES])
{
    static const struct record none;
    struct store_found found = fixture_look_up_id(store, tenant, id);
    ck_assert_mem_eq(&found.record, &none, sizeof none);
    ck_assert_int_eq(found.row, 0);
    ck_assert_ptr_null(found.key);
    ck_assert_ptr_null(found.request);
    ck_assert_ptr_null(found.response);
}

static void expect_key(struct store *store, const uint8_t id[COMMAND_ID_BYTES], const char *key)
{
    struct store_found found = fixture_look_up_id(store, VIEW("t"), id);
    ck_assert_msg(found.key != NULL && strcmp(found.key, key) == 0, "%s: found %s", key, found.key);
    ck_assert_mem_eq(found.record.command_id, id, COMMAND_ID_BYTES);
    fixture_found_free(&found);
}

static const int64_t rows[] = { 1, 2, 255, 256, 4294967296, 17592186044415, 281474976710655 };

START_TEST(an_id_leads_to_its_row_under_its_key_alone)
{
    const uint8_t key[BLOCK_KEY_BYTES] = { 1 }, other[BLOCK_KEY_BYTES] = { 2 };
    uint8_t id[2][COMMAND_ID_BYTES];
    ck_assert(digest_init());
    for (int i = 0; i < 2; i++) {
        command_id_make(key, rows[_i], id[i]);
        ck_assert_int_eq(command_id_row(key, id[i]), rows[_i]);
        ck_assert_int_ne(command_id_row(other, id[i]), rows[_i]);
    }
    ck_assert_mem_ne(id[0], id[1], COMMAND_ID_BYTES);
}
END_TEST

/* Neither half, and no byte, tells of two neighbours that they are. */
START_TEST(ids_of_one_row_and_of_neighbours_have_no_byte_that_stays)
{
    enum { IDS = 4000 };
    const uint8_t key[BLOCK_KEY_BYTES] = { 3 };
    static unsigned seen[COMMAND_ID_BYTES][256];
    ck_assert(digest_init());
    for (int64_t row = 1; row <= IDS; row++) {
        uint8_t id[COMMAND_ID_BYTES];
        command_id_make(key, row / 2, id);
        for (unsigned i = 0; i < COMMAND_ID_BYTES; i++) {
            seen[i][id[i]]++;
        }
    }
    for (unsigned i = 0; i < COMMAND_ID_BYTES; i++) {
        for (unsigned byte = 0; byte < 256; byte++) { /* 15.6 each; over 60 once in 10^14 runs */
            ck_assert_msg(seen[i][byte] < 60, "byte %u is %u in %u of %d", i, byte, seen[i][byte], IDS);
        }
    }
}
END_TEST

START_TEST(a_store_makes_its_ids_and_finds_by_them_also_after_a_restart)
{
    enum { KEYS = 50 };
    uint8_t ids[KEYS][COMMAND_ID_BYTES];
    char key[16];
    struct store *store = begin();
    for (int i = 0; i < KEYS; i++) {
        (void) snprintf(key, sizeof key, "k%d", i);
        struct store_found found = fixture_claim_now(store, key, 1, 1);
        memcpy(ids[i], found.record.command_id, COMMAND_ID_BYTES);
        ck_assert_int_eq(command_id_row(sqlite_store_of(store)->id_key, ids[i]), found.row);
        for (int j = 0; j < i; j++) {
            ck_assert_mem_ne(ids[i], ids[j], COMMAND_ID_BYTES);
        }
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            (void) snprintf(key, sizeof key, "k%d", i);
            expect_key(store, ids[i], key);
        }
        store_close(store);
        struct store_options options = fixture_options(path);
        store = fixture_open(&options);
    }
    end(store);
}
END_TEST

START_TEST(a_forged_id_is_told_what_an_unused_one_is_told)
{
    struct store *store = begin();
    struct store_found found = fixture_claim_now(store, "k", 1, 1);
    uint8_t id[COMMAND_ID_BYTES];
    memcpy(id, found.record.command_id, sizeof id);
    for (unsigned bit = 0; bit < 8 * COMMAND_ID_BYTES; bit++) { /* one that is nearly right */
        id[bit / 8] ^= (uint8_t) (1 << bit % 8);
        expect_unused(store, VIEW("t"), id);
        id[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
    command_id_make(sqlite_store_of(store)->id_key, found.row,
                    id); /* of the right row, by whoever has stolen the key */
    expect_unused(store, VIEW("t"), id);
    command_id_make(sqlite_store_of(store)->id_key, found.row + 1, id);
    expect_unused(store, VIEW("t"), id);
    memset(id, 0, sizeof id);
    expect_unused(store, VIEW("t"), id);
    expect_unused(store, VIEW("u"), found.record.command_id);
    expect_unused(store, VIEW(""), found.record.command_id);
    expect_key(store, found.record.command_id, "k");
    end(store);
}
END_TEST

START_TEST(the_id_of_a_voided_key_is_the_stores_too)
{
    struct store *store = begin();
    struct store_claim claim = fixture_claim("k", 1, 1);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, &claim, &fixture_retention, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(found.claimed);
    ck_assert_mem_ne(found.record.command_id, claim.command_id, COMMAND_ID_BYTES);
    expect_unused(store, VIEW("t"), claim.command_id);
    expect_key(store, found.record.command_id, "k");
    fixture_found_free(&found);
    end(store);
}
END_TEST

/* Whoever remembers a row of a claim that was undone must not meet another command there. */
START_TEST(a_row_that_was_undone_is_not_given_again)
{
    struct store *store = begin();
    struct store_claim claim = fixture_claim("k", 1, 1);
    struct store_found undone;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &undone), STORE_OK);
    store_rollback(store);
    struct store_found found = fixture_claim_now(store, "k", 1, 1);
    ck_assert_int_eq(undone.row, 1);
    ck_assert_int_eq(found.row, 2);
    expect_unused(store, VIEW("t"), undone.record.command_id);
    expect_key(store, found.record.command_id, "k");
    end(store);
}
END_TEST

START_TEST(a_store_whose_rows_are_used_up_is_full_and_can_still_be_read)
{
    struct store *store = begin();
    struct store_claim claim = fixture_claim("last", 1, 1), more = fixture_claim("more", 1, 1);
    struct store_found found;
    sqlite_store_of(store)->next_row = INT64_C(17592186044415);
    struct store_found last = fixture_claim_now(store, "last", 1, 1);
    ck_assert_int_eq(last.row, 17592186044415);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &more, &found), STORE_FULL);
    store_rollback(store);
    ck_assert_int_eq(fixture_finish_now(store, "last", &last, OUTCOME_COMPLETED), STORE_OK);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    fixture_found_free(&found);
    expect_key(store, last.record.command_id, "last");
    end(store);
}
END_TEST

SUITE(command_id)
{
    Suite *suite = suite_create("store/command_id");
    CASE_LOOP(suite, an_id_leads_to_its_row_under_its_key_alone, sizeof rows / sizeof rows[0]);
    CASE(suite, ids_of_one_row_and_of_neighbours_have_no_byte_that_stays);
    CASE(suite, a_store_makes_its_ids_and_finds_by_them_also_after_a_restart);
    CASE(suite, a_forged_id_is_told_what_an_unused_one_is_told);
    CASE(suite, the_id_of_a_voided_key_is_the_stores_too);
    CASE(suite, a_row_that_was_undone_is_not_given_again);
    CASE(suite, a_store_whose_rows_are_used_up_is_full_and_can_still_be_read);
    return suite;
}
