/* answer_test.c - client-sdk/src/answer.c: an answer is used again for the next exchange, and must bring nothing along. */
#include "client-sdk/src/classify.h"
#include "tests/support/suite.h"

/* Everything that an exchange can leave behind. */
static void fill(struct answer *answer)
{
    static char much[64];
    memset(much, 'x', sizeof(much));
    answer->status = 201;
    answer->head_whole = answer->whole = answer->by_close = true;
    answer_add_field(answer, VIEW("Idempotency-Status"), VIEW("executed"));
    answer->head.failed = true;
    answer_add_body(answer, much, sizeof(much)); /* more than is kept */
    ck_assert(!answer->body_kept);
}

START_TEST(a_cleared_answer_is_as_a_new_one)
{
    struct answer answer, fresh;
    answer_init(&answer, 16);
    answer_init(&fresh, 16);
    fill(&answer);
    answer_clear(&answer);
    ck_assert_int_eq(answer.status, fresh.status);
    ck_assert_int_eq(answer.head_whole, fresh.head_whole);
    ck_assert_int_eq(answer.whole, fresh.whole);
    ck_assert_int_eq(answer.by_close, fresh.by_close);
    ck_assert_int_eq(answer.body_kept, fresh.body_kept);
    ck_assert_uint_eq(answer.head.len, 0);
    ck_assert_uint_eq(answer.body.len, 0);
    ck_assert(!answer.head.failed && !answer.body.failed);
    ck_assert_ptr_null(answer_field(&answer, "Idempotency-Status"));
    /* A further flag must be thought of here: head_whole, whole, by_close, body_kept, and padding. */
    ck_assert_uint_eq(sizeof(struct answer), sizeof(int) + 4 * sizeof(bool) + 2 * sizeof(struct buf));
    answer_fini(&answer);
    answer_fini(&fresh);
}
END_TEST

/* A view of nothing may have no place at all (common/view.h). */
START_TEST(a_field_without_a_name_or_a_value_is_kept_as_it_is)
{
    struct answer answer;
    const char *name = NULL, *value = NULL;
    answer_init(&answer, 16);
    answer_add_field(&answer, view_make(NULL, 0), view_make(NULL, 0));
    ck_assert(answer_field_at(&answer, 0, &name, &value));
    ck_assert_str_eq(name, "");
    ck_assert_str_eq(value, "");
    ck_assert(!answer_field_at(&answer, 1, &name, &value));
    answer_fini(&answer);
}
END_TEST

START_TEST(an_answer_that_a_close_ended_does_not_make_a_later_one_whole)
{
    struct transport_facts facts;
    struct reading reading;
    transport_facts_init(&facts, 1024);
    facts.hook_calls = 1;
    facts.answer.status = 201;
    facts.answer.head_whole = facts.answer.by_close = true;
    classify_attempt(&facts, &reading);
    ck_assert_int_eq(reading.finding, FINDING_SUCCESS);
    answer_clear(&facts.answer);
    facts.answer.status = 201; /* and its framing contradicts itself: neither whole nor ended by a close */
    facts.answer.head_whole = true;
    classify_attempt(&facts, &reading);
    ck_assert_int_eq(reading.finding, FINDING_CUT);
    transport_facts_fini(&facts);
}
END_TEST

SUITE(answer)
{
    Suite *suite = suite_create("client/answer");
    CASE(suite, a_cleared_answer_is_as_a_new_one);
    CASE(suite, a_field_without_a_name_or_a_value_is_kept_as_it_is);
    CASE(suite, an_answer_that_a_close_ended_does_not_make_a_later_one_whole);
    return suite;
}
