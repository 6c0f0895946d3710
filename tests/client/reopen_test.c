/* reopen_test.c - an operation that the journal gave back: which fields it lacks, and what may happen to an entry that is
 * decided. See resume_test.c for the rest. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

static const char *const two_names[] = { "Authorization", "X-Token" };

static struct nonbis_op *reopened(struct lab *lab, enum journal_state state, enum nonbis_outcome outcome,
                                  size_t unstored)
{
    struct nonbis_op *op = NULL;
    const struct journal_record record = { .key = "k-7",
                                           .method = "POST",
                                           .url = "http://peer/orders",
                                           .body = "{}",
                                           .body_len = 2,
                                           .has_body = true,
                                           .unstored = two_names,
                                           .unstored_count = unstored,
                                           .created_wall_ms = lab->now_ms + lab->wall_offset_ms - 1000,
                                           .outcome = outcome,
                                           .stop = NONBIS_STOP_DONE,
                                           .http_status = 201 };
    ck_assert_int_eq(op_make_from_record(&op, lab->client, &record, (struct journal_entry *) (void *) lab, state),
                     NONBIS_OK);
    return op;
}

/* ---- fields that are not stored ----------------------------------------------------------------------------------- */

START_TEST(an_operation_that_lacks_a_field_does_not_run_until_it_is_set)
{
    static const enum journal_state states[] = { JOURNAL_NEW, JOURNAL_SENT, JOURNAL_DONE };
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        enum nonbis_outcome outcome = states[i] == JOURNAL_DONE ? NONBIS_COMPLETED : 0;
        struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
        struct lab lab;
        lab_open_with_journal(&lab, 1, &policy);
        lab_step(&lab, (struct lab_step) SAYS(201, "executed"));
        struct nonbis_op *op = reopened(&lab, states[i], outcome, 2);
        ck_assert_str_eq(nonbis_op_lacks(op, 0), "Authorization");
        ck_assert_str_eq(nonbis_op_lacks(op, 1), "X-Token");
        ck_assert_ptr_null(nonbis_op_lacks(op, 2));
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_ERROR_LACKS);
        ck_assert_ptr_nonnull(strstr(nonbis_op_message(op),
                                     "nothing was sent: it was made with Authorization and X-Token, "
                                     "which the journal does not keep"));
        ck_assert_int_eq(nonbis_op_outcome(op), outcome);
        ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer t", 0), NONBIS_OK);
        ck_assert_str_eq(nonbis_op_lacks(op, 0), "X-Token");
        ck_assert_ptr_null(nonbis_op_lacks(op, 1));
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_ERROR_LACKS);
        ck_assert_uint_eq(lab.log_count, 0);
        ck_assert_uint_eq(lab.ended, 0);
        ck_assert_int_eq(nonbis_op_set_header(op, "x-token", "", 0), NONBIS_OK); /* meant to be empty */
        ck_assert_ptr_null(nonbis_op_lacks(op, 0));
        lab.step_next = lab.step_count = 0;
        lab_step(&lab, (struct lab_step) IS_COMPLETED); /* an attempt of `new` takes it for a 200 */
        lab_step(&lab, (struct lab_step) SAYS(201, "replayed"));
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
        ck_assert_uint_gt(lab.log_count, 0);
        ck_assert_str_eq(lab.log[0].authorization, "Bearer t");
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(what_only_asks_needs_no_such_field_and_tells_that_it_was_not_there)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    const struct nonbis_status *status = NULL;
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    struct nonbis_op *op = reopened(&lab, JOURNAL_SENT, 0, 2);
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN); /* asked as another caller, so "not seen" tells nothing */
    ck_assert_ptr_nonnull(
        strstr(nonbis_op_message(op), "asked without Authorization and X-Token, which it was sent with"));
    ck_assert_uint_eq(lab.record.unstored_count, 2); /* the names stay in the entry */
    ck_assert_uint_eq(lab.attempts, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_command_that_was_sent_without_any_such_field_is_known_to_its_server)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    struct nonbis_op *op = reopened(&lab, JOURNAL_SENT, 0, 0);
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_APPLIED);
    nonbis_op_free(op);
    op = reopened(&lab, JOURNAL_SENT, 0, 0);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer other", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(the_names_of_what_is_not_stored_are)
{
    struct lab lab;
    lab_open_with_journal(&lab, 1, NULL);
    lab_step(&lab, (struct lab_step){ .code = 7, .hooks = -1 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_header(op, "Content-Type", "application/json", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Batch", "7", NONBIS_HEADER_STORED), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Other", "7", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer t", NONBIS_HEADER_STORED), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.record.field_count, 2);
    ck_assert_uint_eq(lab.record.unstored_count, 2);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* ---- decided entries ---------------------------------------------------------------------------------------------- */

/* What a repeat of a completed command may meet. None of it makes the journal forget that it was completed. */
static const struct {
    const char *what;
    enum nonbis_server server;
    struct lab_step step;
    enum nonbis_stop stop;
    int final;
} repeats[] = {
    { "the key is another payload's", NONBIS_SERVER_NONBIS, KEY_REUSED("body"), NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "the key is somebody else's", NONBIS_SERVER_NONBIS, KEY_REUSED("credentials"), NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "refused", NONBIS_SERVER_NONBIS, SAYS(400, "refused"), NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "not reached", NONBIS_SERVER_KEYED, NOT_SENT(7), NONBIS_STOP_ATTEMPTS, 0 },
    { "lost", NONBIS_SERVER_KEYED, LOST, NONBIS_STOP_ATTEMPTS, 0 },
    { "voided", NONBIS_SERVER_NONBIS, REFUSES(422, "refused", "key-voided", NEVER), NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "expired", NONBIS_SERVER_NONBIS, REFUSES(422, "refused", "key-expired", NEVER MEMBER("executed", "yes")),
      NONBIS_STOP_KEY_EXPIRED, 1 },
    { "replayed", NONBIS_SERVER_NONBIS, SAYS(201, "replayed"), NONBIS_STOP_DONE, 1 },
};

START_TEST(a_completed_entry_stays_completed_whatever_a_repeat_meets)
{
    struct nonbis_policy policy = lab_policy("interactive", NONBIS_SERVER, (int) repeats[_i].server, 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, repeats[_i].step);
    struct nonbis_op *op = reopened(&lab, JOURNAL_DONE, NONBIS_COMPLETED, 0);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_msg(nonbis_op_outcome(op) == NONBIS_COMPLETED && nonbis_op_stop(op) == repeats[_i].stop &&
                      nonbis_op_is_final(op) == repeats[_i].final,
                  "%s: final %d: %s", repeats[_i].what, nonbis_op_is_final(op), nonbis_op_message(op));
    ck_assert_uint_eq(lab.marked_sent, 0); /* its entry does not leave done */
    ck_assert_uint_eq(lab.ended, 0);
    nonbis_op_free(op);
    ck_assert_uint_eq(lab.closed, 1);
    lab_close(&lab);
}
END_TEST

START_TEST(a_wait_for_a_completed_command_of_a_keyed_server_sends_nothing)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_KEYED, 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .status = 201 });
    struct nonbis_op *op = reopened(&lab, JOURNAL_DONE, NONBIS_COMPLETED, 0);
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
    ck_assert_uint_eq(lab.log_count, 0);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_SERVER_SAID_NO);
    ck_assert_str_eq(nonbis_op_reason(op), "no-status-resource");
    ck_assert_ptr_nonnull(strstr(nonbis_op_message(op), "run it again with the same key to have its answer"));
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.attempts, 1);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_voided_entry_is_told_as_such)
{
    struct lab lab;
    lab_open_with_journal(&lab, 1, NULL);
    struct nonbis_op *op = reopened(&lab, JOURNAL_DONE, NONBIS_NOT_APPLIED, 0);
    ck_assert_uint_eq(nonbis_op_marks(op), NONBIS_MARK_VOIDED);
    ck_assert_int_eq(nonbis_op_is_final(op), 1);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.log_count, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* Whoever began it is gone, so nobody but the journal knows that it is wanted. */
START_TEST(a_resumed_command_that_could_not_be_sent_stays_to_be_resumed)
{
    static int (*const deeds[])(struct nonbis_op * op) = { nonbis_op_run, nonbis_op_wait };
    for (size_t i = 0; i < 2; i++) {
        struct nonbis_policy policy = lab_policy("interactive", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
        struct lab lab;
        lab_open_with_journal(&lab, 1, &policy);
        lab_step(&lab, i == 0 ? (struct lab_step) NOT_SENT(7) : (struct lab_step) NOT_SEEN);
        struct nonbis_op *op = reopened(&lab, JOURNAL_NEW, 0, 0);
        ck_assert_int_eq(deeds[i](op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_SENT);
        ck_assert_ptr_nonnull(strstr(nonbis_op_message(op), "it stays in the journal"));
        ck_assert_uint_eq(lab.ended, 1);
        ck_assert(!lab.decided);
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(the_request_can_be_compared)
{
    size_t len = 7;
    struct nonbis_op *op = NULL;
    struct lab lab;
    lab_open_with_journal(&lab, 1, NULL);
    op = reopened(&lab, JOURNAL_SENT, 0, 0);
    ck_assert_mem_eq(nonbis_op_request_body(op, &len), "{}", 2);
    ck_assert_uint_eq(len, 2);
    ck_assert_ptr_null(nonbis_op_request_field(op, "Content-Type"));
    ck_assert_int_eq(nonbis_op_set_header(op, "Content-Type", "text/plain", 0), NONBIS_OK);
    ck_assert_str_eq(nonbis_op_request_field(op, "content-type"), "text/plain");
    nonbis_op_free(op);
    ck_assert_int_eq(nonbis_op_new_for_key(&op, lab.client, "http://peer/", "k"), NONBIS_OK);
    ck_assert_ptr_null(nonbis_op_request_body(op, &len));
    ck_assert_uint_eq(len, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* What the transport knows of it is only that its hook said no. */
START_TEST(a_journal_that_cannot_mark_what_is_sent_is_told_with_its_reason_and_nothing_is_sent)
{
    struct nonbis_policy policy = lab_policy("standard", 0);
    struct lab lab;
    lab_open_with_journal(&lab, 1, &policy);
    lab.sent_error = NONBIS_ERROR_JOURNAL;
    lab_step(&lab, (struct lab_step){ .code = 42 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_SENT);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_LOCAL);
    ck_assert_int_eq(nonbis_op_local_error(op), NONBIS_ERROR_JOURNAL);
    ck_assert_msg(strstr(nonbis_op_message(op), "the lab's journal says no") != NULL, "%s", nonbis_op_message(op));
    ck_assert_uint_eq(lab.attempts, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(reopen)
{
    Suite *suite = suite_create("client/reopen");
    CASE(suite, an_operation_that_lacks_a_field_does_not_run_until_it_is_set);
    CASE(suite, what_only_asks_needs_no_such_field_and_tells_that_it_was_not_there);
    CASE(suite, a_command_that_was_sent_without_any_such_field_is_known_to_its_server);
    CASE(suite, the_names_of_what_is_not_stored_are);
    CASE_LOOP(suite, a_completed_entry_stays_completed_whatever_a_repeat_meets, sizeof(repeats) / sizeof(repeats[0]));
    CASE(suite, a_wait_for_a_completed_command_of_a_keyed_server_sends_nothing);
    CASE(suite, a_voided_entry_is_told_as_such);
    CASE(suite, a_resumed_command_that_could_not_be_sent_stays_to_be_resumed);
    CASE(suite, the_request_can_be_compared);
    CASE(suite, a_journal_that_cannot_mark_what_is_sent_is_told_with_its_reason_and_nothing_is_sent);
    return suite;
}
