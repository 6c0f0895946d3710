/* exit_code_test.c - every ending has its exit code; none says more than is known. */
#include "client-sdk/cli/exit_code.h"

#include "tests/support/suite.h"

#include <signal.h>

#define RUN(outcome_, stop_, final_, status_)                                                                          \
    {                                                                                                                  \
        .outcome = NONBIS_##outcome_, .stop = NONBIS_STOP_##stop_, .final = (final_), .http_status = (status_),        \
        .attempt = ""                                                                                                  \
    }

static const struct row {
    const char *name;
    struct ending ending;
    int run, voiding; /* exit codes of post and of void */
} rows[] = {
    { "executed, 200", RUN(COMPLETED, DONE, 1, 200), 0, 14 },
    { "executed, 204", RUN(COMPLETED, DONE, 1, 204), 0, 14 },
    { "executed, 302", RUN(COMPLETED, DONE, 1, 302), 3, 14 },
    { "executed, 404", RUN(COMPLETED, DONE, 1, 404), 4, 14 },
    { "executed, 500", RUN(COMPLETED, DONE, 1, 500), 5, 14 },
    { "executed, 700", RUN(COMPLETED, DONE, 1, 700), 5, 14 },
    { "executed, cancelled behind it", RUN(COMPLETED, CANCELLED, 1, 201), 0, 14 },
    { "executed, the answer not fetched", RUN(COMPLETED, DEADLINE, 0, 0), 12, 14 },
    { "executed, the answer not fetched after a 503", RUN(COMPLETED, ATTEMPTS, 0, 503), 12, 14 },
    { "executed, the answer forgotten", RUN(COMPLETED, KEY_EXPIRED, 1, 422), 17, 14 },
    { "refused", RUN(REJECTED, SERVER_SAID_NO, 1, 413), 14, 14 },
    { "not sent", RUN(NOT_SENT, ATTEMPTS, 0, 0), 10, 10 },
    { "not sent, deadline", RUN(NOT_SENT, DEADLINE, 0, 0), 10, 10 },
    { "not sent, budget", RUN(NOT_SENT, BUDGET, 0, 0), 10, 10 },
    { "not sent, circuit open", RUN(NOT_SENT, RETRY_LATER, 0, 0), 16, 16 },
    { "not executed", RUN(NOT_APPLIED, ATTEMPTS, 0, 502), 15, 15 },
    { "not executed, the server says no", RUN(NOT_APPLIED, SERVER_SAID_NO, 0, 401), 15, 15 },
    { "not executed, later", RUN(NOT_APPLIED, RETRY_LATER, 0, 429), 16, 16 },
    { "not executed, cancelled", RUN(NOT_APPLIED, CANCELLED, 0, 429), 15, 15 },
    { "not executed, key too old", RUN(NOT_APPLIED, KEY_EXPIRED, 0, 404), 17, 17 },
    { "in progress", RUN(IN_PROGRESS, DEADLINE, 0, 409), 12, 12 },
    { "in progress, later", RUN(IN_PROGRESS, RETRY_LATER, 0, 409), 12, 12 },
    { "in progress, cancelled", RUN(IN_PROGRESS, CANCELLED, 0, 0), 12, 12 },
    { "unknown", RUN(UNKNOWN, ATTEMPTS, 0, 0), 11, 11 },
    { "unknown, cancelled", RUN(UNKNOWN, CANCELLED, 0, 0), 11, 11 },
    { "unknown, later", RUN(UNKNOWN, RETRY_LATER, 0, 429), 11, 11 },
    { "unknown, key too old", RUN(UNKNOWN, KEY_EXPIRED, 0, 0), 17, 17 },
    { "unknown, the journal failed behind it", RUN(UNKNOWN, LOCAL, 0, 0), 11, 11 },
};

START_TEST(an_ending_has_the_exit_code_of_its_row)
{
    const struct row *row = &rows[_i];
    int run = (int) exit_code_of(&row->ending), voiding = (int) exit_code_of_void(&row->ending);
    ck_assert_msg(run == row->run, "%s: %d instead of %d", row->name, run, row->run);
    ck_assert_msg(voiding == row->voiding, "void, %s: %d instead of %d", row->name, voiding, row->voiding);
}
END_TEST

START_TEST(a_refusal_tells_another_payload_from_the_rest)
{
    struct ending ending = RUN(REJECTED, SERVER_SAID_NO, 1, 422);
    ending.attempt = "key-reused";
    ck_assert_int_eq(exit_code_of(&ending), 13);
    ending.attempt = "key-of-other-credentials";
    ck_assert_int_eq(exit_code_of(&ending), 14);
}
END_TEST

START_TEST(a_signal_counts_only_while_nothing_was_sent)
{
    struct ending ending = RUN(NOT_SENT, CANCELLED, 0, 0);
    ck_assert_int_eq(exit_code_of(&ending), 10);
    ending.signal = SIGINT;
    ck_assert_int_eq(exit_code_of(&ending), 130);
    ending.signal = SIGTERM;
    ck_assert_int_eq(exit_code_of(&ending), 143);
    ending.outcome = NONBIS_UNKNOWN;
    ck_assert_int_eq(exit_code_of(&ending), 11);
}
END_TEST

START_TEST(a_local_error_before_sending_is_told_by_its_cause)
{
    static const int causes[][2] = { { NONBIS_ERROR_JOURNAL, 73 },
                                     { NONBIS_ERROR_MEMORY, 70 },
                                     { NONBIS_ERROR_RANDOM, 70 },
                                     { NONBIS_ERROR_TRANSPORT, 10 } }; /* a certificate that nobody trusts, say */
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        struct ending ending = RUN(NOT_SENT, LOCAL, 0, 0);
        ending.local_error = causes[i][0];
        ck_assert_int_eq(exit_code_of(&ending), causes[i][1]);
    }
    static const int errors[][2] = { { NONBIS_OK, 0 },
                                     { NONBIS_ERROR_KEY, 2 },
                                     { NONBIS_ERROR_URL, 2 },
                                     { NONBIS_ERROR_FIELD, 2 },
                                     { NONBIS_ERROR_POLICY, 2 },
                                     { NONBIS_ERROR_RANGE, 2 },
                                     { NONBIS_ERROR_NAME, 2 },
                                     { NONBIS_ERROR_NOT_FOUND, 2 },
                                     { NONBIS_ERROR_EXISTS, 2 },
                                     { NONBIS_ERROR_LACKS, 2 },
                                     { NONBIS_ERROR_LOCKED, 12 },
                                     { NONBIS_ERROR_JOURNAL, 73 },
                                     { NONBIS_ERROR_MEMORY, 70 },
                                     { NONBIS_ERROR_RANDOM, 70 },
                                     { NONBIS_ERROR_TRANSPORT, 70 },
                                     { NONBIS_ERROR_MISUSE, 70 },
                                     { NONBIS_ERROR_STATE, 70 } };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        ck_assert_int_eq(exit_code_of_error(errors[i][0]), errors[i][1]);
    }
}
END_TEST

START_TEST(voided_is_what_void_is_for_and_not_what_post_is_for)
{
    struct ending ending = RUN(NOT_APPLIED, DONE, 1, 200);
    ending.marks = NONBIS_MARK_VOIDED;
    ck_assert_int_eq(exit_code_of_void(&ending), 0);
    ck_assert_int_eq(exit_code_of(&ending), 15);
    ending.outcome = NONBIS_COMPLETED; /* executed all the same: the mark alone is not enough */
    ck_assert_int_eq(exit_code_of_void(&ending), 14);
}
END_TEST

START_TEST(a_status_has_the_exit_code_of_its_state)
{
    static const struct {
        const char *state;
        int response, code;
    } states[] = { { "completed", 201, 0 },   { "completed", 302, 3 },  { "completed", 409, 4 },
                   { "completed", 500, 5 },   { "in_progress", 0, 12 }, { "unknown", 0, 11 },
                   { "released", 0, 15 },     { "voided", 0, 15 },      { "expired", 0, 17 },
                   { "something new", 0, 11 } };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct nonbis_status status = {
            .answered = 1, .seen = 1, .state = states[i].state, .response_status = states[i].response
        };
        ck_assert_int_eq(exit_code_of_status(&status, 0), states[i].code);
    }
    struct nonbis_status silent = { .answered = 0 };
    ck_assert_int_eq(exit_code_of_status(&silent, 1000), 11);
}
END_TEST

START_TEST(not_seen_is_unknown_and_forgotten_is_expired)
{
    struct nonbis_status status = { .answered = 1, .seen = 0, .window_start_ms = 5000 };
    ck_assert_int_eq(exit_code_of_status(&status, 0), 11);
    ck_assert_int_eq(exit_code_of_status(&status, 5000), 11);
    ck_assert_int_eq(exit_code_of_status(&status, 4999), 17);
    status.window_start_ms = 0;
    ck_assert_int_eq(exit_code_of_status(&status, 4999), 11);
}
END_TEST

START_TEST(of_several_the_one_that_needs_most_care_counts)
{
    ck_assert_int_eq(exit_code_worse(0, 4), 4);
    ck_assert_int_eq(exit_code_worse(11, 0), 11);
    ck_assert_int_eq(exit_code_worse(11, 73), 11);
    ck_assert_int_eq(exit_code_worse(12, 17), 17);
    ck_assert_int_eq(exit_code_worse(16, 15), 16);
    ck_assert_int_eq(exit_code_worse(5, 10), 10);
    ck_assert_int_eq(exit_code_worse(0, 0), 0);
}
END_TEST

SUITE(exit_code)
{
    Suite *suite = suite_create("cli/exit_code");
    CASE_LOOP(suite, an_ending_has_the_exit_code_of_its_row, sizeof rows / sizeof rows[0]);
    CASE(suite, a_refusal_tells_another_payload_from_the_rest);
    CASE(suite, a_signal_counts_only_while_nothing_was_sent);
    CASE(suite, a_local_error_before_sending_is_told_by_its_cause);
    CASE(suite, voided_is_what_void_is_for_and_not_what_post_is_for);
    CASE(suite, a_status_has_the_exit_code_of_its_state);
    CASE(suite, not_seen_is_unknown_and_forgotten_is_expired);
    CASE(suite, of_several_the_one_that_needs_most_care_counts);
    return suite;
}
