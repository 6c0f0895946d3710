/* status_view_test.c - what a status query may tell, for every state and what time does to it (docs/contract.md section 7). */
#include "server/core/status_view.h"

#include "tests/support/suite.h"

/* Claimed at 1000 with a deadline of 2000; ended at 1500; told until 5000; forgotten at 9000. */
#define STORED(written)                                                                                                \
    .state = (written), .execution = 2, .created_ms = 1000, .deadline_ms = 2000, .completed_ms = 1500,                 \
    .expires_ms = 5000, .forget_ms = 9000

static const struct row {
    const char *name;
    struct record record;
    int64_t now_ms;
    bool told;
    struct status_view view;
} rows[] = {
    { "nothing", { .state = RECORD_ABSENT }, 1, false, { .state = RECORD_ABSENT } },
    { "running",
      { .state = RECORD_IN_PROGRESS, .execution = 1, .created_ms = 1000, .deadline_ms = 2000 },
      1999,
      true,
      { RECORD_IN_PROGRESS, EXECUTED_UNKNOWN, 1, CAUSE_NONE, 1000, 0, 0, false, 0, 0, false } },
    { "running past its deadline",
      { .state = RECORD_IN_PROGRESS, .execution = 1, .created_ms = 1000, .deadline_ms = 2000 },
      2000,
      true,
      { RECORD_UNKNOWN, EXECUTED_UNKNOWN, 1, CAUSE_TIMEOUT, 1000, 0, 0, false, 0, 0, false } },
    { "claimed again, with the ends that were promised before",
      { .state = RECORD_IN_PROGRESS, .execution = 2, .created_ms = 1000, .deadline_ms = 2000, .expires_ms = 5000 },
      1999,
      true,
      { RECORD_IN_PROGRESS, EXECUTED_UNKNOWN, 2, CAUSE_NONE, 1000, 0, 0, false, 0, 0, false } },
    { "completed",
      { STORED(RECORD_COMPLETED), .response_status = 201, .response_bytes = 13, .response_kept = true },
      4999,
      true,
      { RECORD_COMPLETED, EXECUTED_YES, 2, CAUSE_NONE, 1000, 1500, 5000, true, 201, 13, true } },
    { "completed, the body was not kept",
      { STORED(RECORD_COMPLETED), .response_status = 201, .response_bytes = 5000000000 },
      4999,
      true,
      { RECORD_COMPLETED, EXECUTED_YES, 2, CAUSE_NONE, 1000, 1500, 5000, true, 201, 5000000000, false } },
    { "completed, and its answer is no longer replayed",
      { STORED(RECORD_COMPLETED), .response_status = 201, .response_bytes = 13, .response_kept = true },
      5000,
      true,
      { RECORD_EXPIRED, EXECUTED_YES, 2, CAUSE_NONE, 1000, 1500, 5000, true, 201, 13, false } },
    { "the same, cleaned up",
      { STORED(RECORD_EXPIRED), .tombstone = EXECUTED_YES, .response_status = 201, .response_kept = true },
      8999,
      true,
      { RECORD_EXPIRED, EXECUTED_YES, 2, CAUSE_NONE, 1000, 1500, 5000, true, 201, 0, false } },
    { "completed, forgotten", { STORED(RECORD_COMPLETED) }, 9000, false, { .state = RECORD_ABSENT } },
    { "unknown",
      { STORED(RECORD_UNKNOWN), .cause = CAUSE_RESET, .tombstone = EXECUTED_UNKNOWN },
      4999,
      true,
      { RECORD_UNKNOWN, EXECUTED_UNKNOWN, 2, CAUSE_RESET, 1000, 1500, 0, false, 0, 0, false } },
    { "unknown by a crash: when it ended was never recorded",
      { STORED(RECORD_UNKNOWN), .cause = CAUSE_CRASH, .tombstone = EXECUTED_UNKNOWN },
      4999,
      true,
      { RECORD_UNKNOWN, EXECUTED_UNKNOWN, 2, CAUSE_CRASH, 1000, 0, 0, false, 0, 0, false } },
    { "the same for long, cleaned up",
      { STORED(RECORD_EXPIRED), .cause = CAUSE_CRASH, .tombstone = EXECUTED_UNKNOWN },
      8999,
      true,
      { RECORD_EXPIRED, EXECUTED_UNKNOWN, 2, CAUSE_CRASH, 1000, 0, 0, false, 0, 0, false } },
    { "unknown for long",
      { STORED(RECORD_UNKNOWN), .cause = CAUSE_CUT, .tombstone = EXECUTED_UNKNOWN },
      5000,
      true,
      { RECORD_EXPIRED, EXECUTED_UNKNOWN, 2, CAUSE_CUT, 1000, 1500, 0, false, 0, 0, false } },
    { "the same, cleaned up",
      { STORED(RECORD_EXPIRED), .cause = CAUSE_CUT, .tombstone = EXECUTED_UNKNOWN },
      8999,
      true,
      { RECORD_EXPIRED, EXECUTED_UNKNOWN, 2, CAUSE_CUT, 1000, 1500, 0, false, 0, 0, false } },
    { "released",
      { STORED(RECORD_RELEASED) },
      8999,
      true,
      { RECORD_RELEASED, EXECUTED_NO, 2, CAUSE_NONE, 1000, 1500, 0, false, 0, 0, false } },
    { "released, forgotten", { STORED(RECORD_RELEASED) }, 9000, false, { .state = RECORD_ABSENT } },
    { "voided",
      { STORED(RECORD_VOIDED) },
      8999,
      true,
      { RECORD_VOIDED, EXECUTED_NO, 2, CAUSE_NONE, 1000, 1500, 0, false, 0, 0, false } },
    { "voided, forgotten", { STORED(RECORD_VOIDED) }, 9000, false, { .state = RECORD_ABSENT } },
    { "damaged: nothing is known, so nothing is promised",
      { .state = (enum record_state) 77, .execution = 1, .created_ms = 1000 },
      1,
      true,
      { RECORD_UNKNOWN, EXECUTED_UNKNOWN, 1, CAUSE_NONE, 1000, 0, 0, false, 0, 0, false } },
};

START_TEST(each_state_is_told_as_it_is_now)
{
    const struct row *row = &rows[_i];
    struct status_view view;
    ck_assert_msg(status_view_make(&row->record, row->now_ms, &view) == row->told, "%s: told or not", row->name);
    ck_assert_msg(view.state == row->view.state, "%s: state %s", row->name, record_state_name(view.state));
    ck_assert_msg(view.executed == row->view.executed, "%s: executed %s", row->name, executed_name(view.executed));
    ck_assert_msg(view.cause == row->view.cause, "%s: cause '%s'", row->name, cause_name(view.cause));
    ck_assert_uint_eq(view.executions, row->view.executions);
    ck_assert_int_eq(view.created_ms, row->view.created_ms);
    ck_assert_int_eq(view.completed_ms, row->view.completed_ms);
    ck_assert_int_eq(view.expires_ms, row->view.expires_ms);
    ck_assert_int_eq(view.has_response, row->view.has_response);
    ck_assert_int_eq(view.response_status, row->view.response_status);
    ck_assert_uint_eq(view.response_bytes, row->view.response_bytes);
    ck_assert_int_eq(view.response_kept, row->view.response_kept);
}
END_TEST

START_TEST(a_record_is_told_to_its_own_credential_only)
{
    struct record record = { .state = RECORD_COMPLETED, .credential = { true, { 1, 2, 3 } } };
    struct credential same = { true, { 1, 2, 3 } }, other = { true, { 1, 2, 4 } }, off = { false, { 0 } };
    ck_assert(status_view_is_for(&record, &same));
    ck_assert(!status_view_is_for(&record, &other));
    ck_assert(status_view_is_for(&record, &off)); /* the guard is off */
    record.credential.present = false;            /* released: it has forgotten whose it was */
    ck_assert(status_view_is_for(&record, &other));
}
END_TEST

SUITE(status_view)
{
    Suite *suite = suite_create("core/status_view");
    CASE_LOOP(suite, each_state_is_told_as_it_is_now, sizeof rows / sizeof rows[0]);
    CASE(suite, a_record_is_told_to_its_own_credential_only);
    return suite;
}
