/* resume_test.c - what the journal is told, in which order, and how a command goes on that a journal gave back. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

static const struct {
    const char *what;
    struct lab_step step;
    enum nonbis_outcome outcome;
    unsigned marked_sent;
    bool decided;
    enum journal_state state;
} journals[] = {
    { "done", { .status = 201, .fields = "Idempotency-Status: executed" }, NONBIS_COMPLETED, 1, true, JOURNAL_DONE },
    { "refused", { .status = 400, .fields = "Idempotency-Status: refused" }, NONBIS_REJECTED, 1, true, JOURNAL_DONE },
    { "not sent", { .code = 7, .hooks = -1 }, NONBIS_NOT_SENT, 0, true, JOURNAL_DONE },
    { "lost", { .code = 52 }, NONBIS_UNKNOWN, 2, false, JOURNAL_SENT },
    { "throttled", { .status = 429 }, NONBIS_NOT_APPLIED, 2, false, JOURNAL_SENT },
    { "too much patience",
      { .status = 429, .fields = "Retry-After: 100" },
      NONBIS_NOT_APPLIED,
      1,
      false,
      JOURNAL_SENT },
};

START_TEST(the_journal_knows_the_command_before_the_first_byte_and_how_it_ended)
{
    struct nonbis_policy policy = lab_policy("interactive", NONBIS_SERVER, NONBIS_SERVER_KEYED, 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, journals[_i].step);
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_header(op, "Content-Type", "application/json", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Batch", "7", NONBIS_HEADER_STORED), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Other", "7", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer t", NONBIS_HEADER_STORED), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_msg(nonbis_op_outcome(op) == journals[_i].outcome, "%s: %s", journals[_i].what, nonbis_op_message(op));
    ck_assert_uint_eq(lab.created, 1);
    ck_assert_uint_eq(lab.marked_sent, journals[_i].marked_sent);
    ck_assert_uint_eq(lab.sent_at_mark, 0); /* before the first byte */
    ck_assert_uint_eq(lab.ended, 1);
    ck_assert_int_eq(lab.decided, journals[_i].decided);
    ck_assert_int_eq(lab.journal_state, journals[_i].state);
    ck_assert_int_eq(lab.record.outcome, journals[_i].outcome);
    ck_assert_uint_eq(lab.record.field_count,
                      2); /* neither the secret, though it was asked for, nor the one that was not */
    ck_assert_uint_eq(lab.closed, journals[_i].decided ? 1 : 0);
    nonbis_op_free(op);
    ck_assert_uint_eq(lab.closed, 1);
    lab_close(&lab);
}
END_TEST

START_TEST(what_the_journal_does_not_take_is_not_sent)
{
    struct lab lab;
    lab_open_with_journal(&lab, 1, NULL);
    lab_step(&lab, (struct lab_step){ .status = 201 });
    lab.create_error = NONBIS_ERROR_JOURNAL;
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_ERROR_JOURNAL);
    ck_assert_uint_eq(lab.log_count, 0);
    ck_assert_int_eq(nonbis_op_outcome(op), 0);
    ck_assert_ptr_nonnull(strstr(nonbis_op_message(op), "the lab's journal says no"));
    lab.create_error = 0;
    lab.sent_error = NONBIS_ERROR_JOURNAL; /* inside the hook */
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.attempts, 0);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_SENT);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_LOCAL);
    ck_assert_int_eq(nonbis_op_local_error(op), NONBIS_ERROR_JOURNAL);
    lab.sent_error = 0;
    lab.ended_error = NONBIS_ERROR_JOURNAL; /* at the end: the outcome stands */
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_ptr_nonnull(strstr(nonbis_op_message(op), "the journal could not keep this"));
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

static struct nonbis_op *resumed(struct lab *lab, enum journal_state state, int64_t age_ms)
{
    struct nonbis_op *op = NULL;
    static const struct transport_field fields[] = { { "Content-Type", "application/json" } };
    const struct journal_record record = { .key = "k-7",
                                           .method = "POST",
                                           .url = "http://peer/orders",
                                           .status_url = "",
                                           .name = "order",
                                           .fields = fields,
                                           .field_count = 1,
                                           .body = "{}",
                                           .body_len = 2,
                                           .has_body = true,
                                           .own_key = true,
                                           .created_wall_ms = lab->now_ms + lab->wall_offset_ms - age_ms };
    ck_assert_int_eq(op_make_from_record(&op, lab->client, &record, (struct journal_entry *) (void *) lab, state),
                     NONBIS_OK);
    return op;
}

START_TEST(a_resumed_command_goes_on_with_its_key_and_asks_first_when_it_may_have_been_sent)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .status = 201, .fields = "Idempotency-Status: executed" });
    struct nonbis_op *op = resumed(&lab, JOURNAL_NEW, 90000000); /* old, but never sent */
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_uint_eq(lab.log_count, 1);
    ck_assert_str_eq(lab.log[0].key, "k-7");
    ck_assert_str_eq(lab.log[0].body, "{}");
    ck_assert_uint_eq(lab.created, 0); /* it is there already */
    nonbis_op_free(op);
    lab_close(&lab);

    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .status = 201, .fields = "Idempotency-Status: executed" });
    op = resumed(&lab, JOURNAL_SENT, 1000);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert(lab.log[0].question && !lab.log[1].question);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_resumed_command_older_than_the_servers_memory_is_not_sent)
{
    static const enum nonbis_server servers[] = { NONBIS_SERVER_KEYED, NONBIS_SERVER_NONBIS };
    for (size_t i = 0; i < 2; i++) {
        struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, (int) servers[i], 0);
        struct lab lab;
        lab_open_with_journal(&lab, 1, &policy);
        lab_step(&lab,
                 (struct lab_step){ .status = 404,
                                    .fields = PJ,
                                    .body = PROBLEM("key-not-seen", "\"retryable\":true,"
                                                                    "\"window_start\":\"2026-11-29T00:00:00.000Z\"") });
        struct nonbis_op *op = resumed(&lab, JOURNAL_SENT, 90000000);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
        ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_KEY_EXPIRED);
        ck_assert_uint_eq(lab.attempts, 0);
        ck_assert(!lab.decided); /* it stays to be reconciled by hand */
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

SUITE(resume)
{
    Suite *suite = suite_create("client/resume");
    CASE_LOOP(suite, the_journal_knows_the_command_before_the_first_byte_and_how_it_ended,
              sizeof(journals) / sizeof(journals[0]));
    CASE(suite, what_the_journal_does_not_take_is_not_sent);
    CASE(suite, a_resumed_command_goes_on_with_its_key_and_asks_first_when_it_may_have_been_sent);
    CASE(suite, a_resumed_command_older_than_the_servers_memory_is_not_sent);
    return suite;
}
