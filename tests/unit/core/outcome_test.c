/* outcome_test.c - what an upstream exchange proves: every row of docs/contract.md section 6. */
#include "server/core/outcome.h"

#include "tests/support/suite.h"

enum { NO_RULES, RELEASE_409, UNKNOWN_500, BOTH_429, UNKNOWN_429, RELEASE_504 };

/* Handler words: 0 nothing, c completed, n not executed, u unknown. */
static const struct {
    enum attempt_end end;
    int status;
    bool retry_after;
    char word;
    int rules;
    const char *kind, *cause;
    bool pass;
} rows[] = {
    { ATTEMPT_NOT_SENT, 0, false, 0, NO_RULES, "not-executed", "", false },
    { ATTEMPT_RESET, 0, false, 0, NO_RULES, "unknown", "reset", false },
    { ATTEMPT_CUT, 200, false, 0, NO_RULES, "unknown", "cut", false },
    { ATTEMPT_GARBAGE, 0, false, 0, NO_RULES, "unknown", "garbage", false },
    { ATTEMPT_CLOSE_DELIMITED, 200, false, 0, NO_RULES, "unknown", "close-delimited", false },
    { ATTEMPT_TIMEOUT, 0, false, 0, NO_RULES, "unknown", "timeout", false },
    { ATTEMPT_SHUTDOWN, 0, false, 0, NO_RULES, "unknown", "shutdown", false },
    { ATTEMPT_END_COUNT, 200, false, 0, NO_RULES, "unknown", "garbage", false },
    /* complete ones, by status */
    { ATTEMPT_COMPLETE, 200, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 201, true, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 204, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 303, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 400, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 401, false, 0, NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 403, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 404, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 408, false, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 408, true, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 409, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 422, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 425, false, 0, NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 429, false, 0, NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 429, true, 0, NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 500, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 500, true, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 502, false, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 502, true, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 503, false, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 503, true, 0, NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 504, false, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 504, true, 0, NO_RULES, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 599, false, 0, NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 101, false, 0, NO_RULES, "unknown", "garbage", false },
    { ATTEMPT_COMPLETE, 101, false, 'c', NO_RULES, "unknown", "garbage", false },
    { ATTEMPT_COMPLETE, 0, false, 0, NO_RULES, "unknown", "garbage", false },
    /* route options */
    { ATTEMPT_COMPLETE, 409, false, 0, RELEASE_409, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 410, false, 0, RELEASE_409, "completed", "", true },
    { ATTEMPT_COMPLETE, 500, false, 0, UNKNOWN_500, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 429, false, 0, UNKNOWN_429, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 429, false, 0, BOTH_429, "unknown", "status", true },
    { ATTEMPT_COMPLETE, 504, false, 0, RELEASE_504, "not-executed", "", true },
    { ATTEMPT_RESET, 409, false, 0, RELEASE_409, "unknown", "reset", false },
    /* the handler's word beats status and options */
    { ATTEMPT_COMPLETE, 200, false, 'c', NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 200, false, 'n', NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 200, false, 'u', NO_RULES, "unknown", "handler", true },
    { ATTEMPT_COMPLETE, 504, false, 'c', NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 504, false, 'n', NO_RULES, "not-executed", "", true },
    { ATTEMPT_COMPLETE, 429, false, 'c', NO_RULES, "completed", "", true },
    { ATTEMPT_COMPLETE, 409, false, 'c', RELEASE_409, "completed", "", true },
    { ATTEMPT_COMPLETE, 500, false, 'n', UNKNOWN_500, "not-executed", "", true },
    /* but only in a complete response */
    { ATTEMPT_NOT_SENT, 200, false, 'c', NO_RULES, "not-executed", "", false },
    { ATTEMPT_RESET, 200, false, 'n', NO_RULES, "unknown", "reset", false },
    { ATTEMPT_CUT, 200, false, 'c', NO_RULES, "unknown", "cut", false },
    { ATTEMPT_CUT, 200, false, 'n', NO_RULES, "unknown", "cut", false },
    { ATTEMPT_GARBAGE, 200, false, 'n', NO_RULES, "unknown", "garbage", false },
    { ATTEMPT_CLOSE_DELIMITED, 200, false, 'c', NO_RULES, "unknown", "close-delimited", false },
    { ATTEMPT_CLOSE_DELIMITED, 200, false, 'n', NO_RULES, "unknown", "close-delimited", false },
    { ATTEMPT_TIMEOUT, 200, false, 'n', NO_RULES, "unknown", "timeout", false },
    { ATTEMPT_SHUTDOWN, 200, false, 'n', NO_RULES, "unknown", "shutdown", false },
};

static struct outcome_rules rules_made(int rules)
{
    struct outcome_rules made = { 0 };
    switch (rules) {
    case RELEASE_409:
        status_set_add(&made.release, 409);
        break;
    case UNKNOWN_500:
        status_set_add(&made.unknown, 500);
        break;
    case UNKNOWN_429:
        status_set_add(&made.unknown, 429);
        break;
    case BOTH_429:
        status_set_add(&made.unknown, 429);
        status_set_add(&made.release, 429);
        break;
    case RELEASE_504:
        status_set_add(&made.release, 504);
        break;
    default:
        break;
    }
    return made;
}

START_TEST(an_exchange_proves_what_section_6_says)
{
    struct attempt attempt = { .end = rows[_i].end, .status = rows[_i].status, .retry_after = rows[_i].retry_after };
    attempt.word = rows[_i].word == 'c'   ? HANDLER_SAYS_COMPLETED
                   : rows[_i].word == 'n' ? HANDLER_SAYS_NOT_EXECUTED
                   : rows[_i].word == 'u' ? HANDLER_SAYS_UNKNOWN
                                          : HANDLER_SAYS_NOTHING;
    struct outcome_rules rules = rules_made(rows[_i].rules);
    struct outcome outcome = outcome_of(&attempt, &rules);
    const char *kind = outcome.kind == OUTCOME_COMPLETED      ? "completed"
                       : outcome.kind == OUTCOME_NOT_EXECUTED ? "not-executed"
                                                              : "unknown";
    ck_assert_msg(strcmp(kind, rows[_i].kind) == 0, "row %d (%s %d): got %s, want %s", _i,
                  attempt_end_name(rows[_i].end), rows[_i].status, kind, rows[_i].kind);
    ck_assert_str_eq(cause_name(outcome.cause), rows[_i].cause);
    ck_assert(outcome.pass == rows[_i].pass);
}
END_TEST

START_TEST(only_four_statuses_are_unknown_and_three_released_by_default)
{
    int unknown = 0, released = 0;
    for (int status = 200; status < 600; status++) {
        struct attempt attempt = { .end = ATTEMPT_COMPLETE, .status = status };
        struct outcome outcome = outcome_of(&attempt, NULL);
        unknown += outcome.kind == OUTCOME_UNKNOWN;
        released += outcome.kind == OUTCOME_NOT_EXECUTED;
    }
    ck_assert_int_eq(unknown, 4);
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(a_status_set_holds_what_was_added_and_nothing_else)
{
    struct status_set set = { { 0 } };
    status_set_add(&set, 100);
    status_set_add(&set, 163);
    status_set_add(&set, 164);
    status_set_add(&set, 599);
    status_set_add(&set, 99);
    status_set_add(&set, 600);
    int count = 0;
    for (int status = -1; status < 700; status++) {
        count += status_set_has(&set, status);
    }
    ck_assert_int_eq(count, 4);
    ck_assert(status_set_has(&set, 100) && status_set_has(&set, 163) && status_set_has(&set, 164));
    ck_assert(status_set_has(&set, 599));
}
END_TEST

START_TEST(each_end_of_an_attempt_has_a_name)
{
    static const char *const names[] = { "not-sent", "complete",        "reset",   "cut",
                                         "garbage",  "close-delimited", "timeout", "shutdown" };
    ck_assert_int_eq(ATTEMPT_END_COUNT, 8);
    ck_assert_str_eq(attempt_end_name((enum attempt_end) _i), names[_i]);
}
END_TEST

SUITE(core_outcome)
{
    Suite *suite = suite_create("core/outcome");
    CASE_LOOP(suite, an_exchange_proves_what_section_6_says, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, only_four_statuses_are_unknown_and_three_released_by_default);
    CASE(suite, a_status_set_holds_what_was_added_and_nothing_else);
    CASE_LOOP(suite, each_end_of_an_attempt_has_a_name, 8);
    return suite;
}
