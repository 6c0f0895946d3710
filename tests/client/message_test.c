/* message_test.c - the sentence about the end (nonbis_op_message): it tells the command's outcome, whatever was asked for. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

#include <stdarg.h>

static const struct row {
    const char *what;
    int (*deed)(struct nonbis_op *op); /* NULL: only the run */
    enum nonbis_server server;
    struct lab_step first; /* what the attempt meets */
    struct lab_step steps[3];
    int step_count;
    const char *end;   /* outcome/stop reason */
    const char *words; /* all of them, |-separated */
    const char *never; /* a word that may not be there */
} rows[] = {
    { "void, too late",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { IS_COMPLETED },
      1,
      "completed/server-said-no completed",
      "too late to void: it was executed|wait for it to have its answer",
      "could not be fetched" },
    { "void, too late, and its answer's status is told",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { { .fields = JSON,
          .body = "{\"state\":\"completed\",\"executed\":\"yes\",\"response\":{\"status\":201,\"length\":2,"
                  "\"kept\":true}}" } },
      1,
      "completed/server-said-no completed",
      "too late to void: it was executed|answered 201",
      "could not be fetched" },
    { "void, too late by a moment",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { NOT_SEEN, TELLS(422, "not-voidable", NEVER MEMBER("state", "completed") MEMBER("executed", "yes")) },
      2,
      "completed/server-said-no completed",
      "too late to void: it was executed",
      "could not be fetched" },
    { "void of a running one",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { IS_RUNNING },
      1,
      "in-progress/deadline deadline-exceeded",
      "not voided: still being executed",
      "voided and" },
    { "void of an unknown one",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { IS("unknown", "unknown") },
      1,
      "unknown/server-said-no outcome-unknown",
      "not voided: it may have been executed",
      "never will" },
    { "void in time",
      nonbis_op_void,
      NONBIS_SERVER_NONBIS,
      LOST,
      { NOT_SEEN, IS("voided", "no") },
      2,
      "not-applied/done voided",
      "not executed, and never will be",
      "too late" },
    { "void where nobody can be asked",
      nonbis_op_void,
      NONBIS_SERVER_KEYED,
      { .code = 52 },
      { LOST },
      1,
      "unknown/server-said-no no-status-resource",
      "not voided: it may have been executed|only a run with the same key",
      "too late" },
    { "wait where nobody can be asked",
      nonbis_op_wait,
      NONBIS_SERVER_KEYED,
      LOST,
      { LOST },
      1,
      "unknown/server-said-no no-status-resource",
      "it may have been executed|only a run with the same key",
      "void" },
    { "executed, and no answer to be had",
      nonbis_op_wait,
      NONBIS_SERVER_NONBIS,
      LOST,
      { IS_COMPLETED, NOT_SENT(7) },
      2,
      "completed/deadline deadline-exceeded",
      "completed|its answer could not be fetched: wait for it later",
      "void" },
    { "executed, its answer is kept no more",
      nonbis_op_wait,
      NONBIS_SERVER_NONBIS,
      LOST,
      { IS("expired", "yes") },
      1,
      "completed/key-expired key-expired",
      "completed|its answer is kept no more",
      "wait for it" },
};

static void expect_words(const char *what, const char *text, const char *words)
{
    while (*words != '\0') {
        char word[128];
        size_t len = strcspn(words, "|");
        (void) snprintf(word, sizeof(word), "%.*s", (int) len, words);
        ck_assert_msg(strstr(text, word) != NULL, "%s: \"%s\" is not in: %s", what, word, text);
        words += len + (words[len] == '|' ? 1 : 0);
    }
}

START_TEST(the_message_tells_what_became_of_the_command)
{
    const struct row *row = &rows[_i];
    struct nonbis_policy policy =
        lab_policy("standard", NONBIS_SERVER, (int) row->server, NONBIS_ATTEMPTS, 1, NONBIS_DEADLINE_MS, 20000, 0);
    struct lab lab;
    char end[128];
    lab_open(&lab, 9, &policy);
    struct nonbis_op *op = lab_post(&lab);
    lab.stop_at_event = NONBIS_EVENT_DECISION; /* the attempt, and no question behind it */
    lab_step(&lab, row->first);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    lab.stop_at_event = 0;
    lab.step_next = lab.step_count = 0;
    for (int i = 0; i < row->step_count; i++) {
        lab_step(&lab, row->steps[i]);
    }
    ck_assert_int_eq(row->deed(op), NONBIS_OK);
    (void) snprintf(end, sizeof(end), "%s/%s %s", nonbis_outcome_name(nonbis_op_outcome(op)),
                    nonbis_stop_name(nonbis_op_stop(op)), nonbis_op_reason(op));
    ck_assert_msg(strcmp(end, row->end) == 0, "%s: %s: %s", row->what, end, nonbis_op_message(op));
    expect_words(row->what, nonbis_op_message(op), row->words);
    ck_assert_msg(strstr(nonbis_op_message(op), row->never) == NULL, "%s: %s", row->what, nonbis_op_message(op));
    ck_assert_uint_eq(lab.attempts, 1);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* A question between two runs may learn more than the outcome says: then the outcome is not final, and the next run tells it. */
START_TEST(what_a_status_query_learns_is_told_by_the_next_run)
{
    const struct nonbis_status *status = NULL;
    struct lab lab;
    lab_open(&lab, 9, NULL);
    lab_step(&lab, (struct lab_step) LOST);
    lab_step(&lab, (struct lab_step) IS("voided", "no"));
    lab.stop_at_event = NONBIS_EVENT_DECISION;
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert_str_eq(status->state, "voided");
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    ck_assert_int_eq(nonbis_op_is_final(op), 0);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_APPLIED);
    ck_assert_int_eq(nonbis_op_is_final(op), 1);
    ck_assert_uint_eq(nonbis_op_marks(op), NONBIS_MARK_VOIDED);
    ck_assert_uint_eq(lab.attempts, 1);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_long_url_leaves_room_for_what_became_of_the_command)
{
    char url[4000];
    const struct nonbis_status *status = NULL;
    struct nonbis_op *op = NULL;
    struct nonbis_policy policy =
        lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, NONBIS_DEADLINE_MS, 20000, 0);
    struct lab lab;
    lab_open(&lab, 9, &policy);
    memset(url, 'p', sizeof(url));
    memcpy(url, "http://peer/", 12);
    url[sizeof(url) - 1] = '\0';
    lab_step(&lab, (struct lab_step) LOST);
    ck_assert_int_eq(nonbis_op_new(&op, lab.client, url, "x", 1), NONBIS_OK);
    lab.stop_at_event = NONBIS_EVENT_DECISION;
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    expect_words(
        "run", nonbis_op_message(op),
        "POST http://peer/ppp|ppp...: it may have been executed (1 attempt|stopped-by-caller|reconcile by hand");
    nonbis_op_free(op);
    memcpy(url + 7, "ppppp", 5); /* one long name of a host */
    ck_assert_int_eq(nonbis_op_new_for_key(&op, lab.client, url, "k"), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert_int_eq(status->answered, 0);
    expect_words("status", nonbis_op_message(op), "the question for the status had no usable answer");
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(message)
{
    Suite *suite = suite_create("client/message");
    CASE_LOOP(suite, the_message_tells_what_became_of_the_command, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, what_a_status_query_learns_is_told_by_the_next_run);
    CASE(suite, a_long_url_leaves_room_for_what_became_of_the_command);
    return suite;
}
