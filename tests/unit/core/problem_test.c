/* problem_test.c - the table of docs/contract.md section 5, row by row, and Retry-After. */
#include "server/core/problem.h"

#include "tests/support/suite.h"

#define NONE "(none)"

/* In the order of the contract. `flags`: r retryable, a Retry-After. `executed`: u unknown, n no, r as recorded, - not told. */
static const struct {
    enum problem problem;
    const char *name;
    int status;
    char executed;
    const char *flags, *idempotency_status;
} rows[] = {
    { PROBLEM_REQUEST_MALFORMED, "request-malformed", 400, 'u', "", NONE },
    { PROBLEM_KEY_MISSING, "key-missing", 400, 'u', "", NONE },
    { PROBLEM_KEY_MALFORMED, "key-malformed", 400, 'u', "", "refused" },
    { PROBLEM_TENANT_MISSING, "tenant-missing", 401, 'u', "", NONE },
    { PROBLEM_BODY_TOO_LARGE, "body-too-large", 413, 'u', "", "refused" },
    { PROBLEM_KEY_REUSED, "key-reused", 422, '-', "", "refused" },
    { PROBLEM_KEY_EXPIRED, "key-expired", 422, 'r', "", "refused" },
    { PROBLEM_KEY_VOIDED, "key-voided", 422, 'n', "", "refused" },
    { PROBLEM_NOT_VOIDABLE, "not-voidable", 422, 'r', "", NONE },
    { PROBLEM_IN_PROGRESS, "in-progress", 409, 'u', "ra", "in-progress" },
    { PROBLEM_STILL_RUNNING, "still-running", 504, 'u', "ra", "in-progress" },
    { PROBLEM_OUTCOME_UNKNOWN, "outcome-unknown", 504, 'u', "", "unknown" },
    { PROBLEM_UPSTREAM_NOT_REACHED, "upstream-not-reached", 502, 'n', "ra", "not-executed" },
    { PROBLEM_UNAVAILABLE, "unavailable", 503, 'u', "ra", "refused" },
    { PROBLEM_QUOTA_EXCEEDED, "quota-exceeded", 429, 'u', "ra", "refused" },
    { PROBLEM_KEY_NOT_SEEN, "key-not-seen", 404, 'u', "r", NONE },
    { PROBLEM_UPSTREAM_FAILED, "upstream-failed", 502, '-', "", NONE },
    { PROBLEM_UPSTREAM_TIMEOUT, "upstream-timeout", 504, '-', "", NONE },
    { PROBLEM_NOT_FOUND, "not-found", 404, '-', "", NONE },
    { PROBLEM_METHOD_NOT_ALLOWED, "method-not-allowed", 405, '-', "", NONE },
    { PROBLEM_LOOP_DETECTED, "loop-detected", 508, 'u', "", NONE },
};

START_TEST(each_problem_is_as_section_5_says)
{
    const struct problem_row *row = &problem_table[rows[_i].problem];
    ck_assert_str_eq(row->name, rows[_i].name);
    ck_assert_int_eq(row->status, rows[_i].status);
    enum problem_executed executed = rows[_i].executed == 'u'   ? PROBLEM_TELLS_UNKNOWN
                                     : rows[_i].executed == 'n' ? PROBLEM_TELLS_NO
                                     : rows[_i].executed == 'r' ? PROBLEM_TELLS_RECORD
                                                                : PROBLEM_TELLS_NOTHING;
    ck_assert_int_eq(row->executed, executed);
    ck_assert(row->retryable == (strchr(rows[_i].flags, 'r') != NULL));
    ck_assert(row->retry_after == (strchr(rows[_i].flags, 'a') != NULL));
    ck_assert_str_eq(row->idempotency_status == NULL ? NONE : row->idempotency_status, rows[_i].idempotency_status);
}
END_TEST

START_TEST(every_problem_has_a_row_in_this_test_and_a_title_of_its_own)
{
    ck_assert_uint_eq(sizeof(rows) / sizeof(rows[0]), PROBLEM_COUNT);
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        ck_assert_int_eq(rows[i].problem, i);
        const char *title = problem_table[i].title;
        ck_assert(title != NULL && title[0] != '\0' && title[strlen(title) - 1] == '.');
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(title, problem_table[j].title);
        }
    }
}
END_TEST

static const struct {
    enum verdict verdict;
    const char *problem;
} verdict_rows[] = {
    { VERDICT_IMPOSSIBLE, "unavailable" },
    { VERDICT_FORWARD, "unavailable" },
    { VERDICT_REPLAY, "unavailable" },
    { VERDICT_WAIT, "in-progress" },
    { VERDICT_IN_PROGRESS, "in-progress" },
    { VERDICT_KEY_REUSED, "key-reused" },
    { VERDICT_KEY_EXPIRED, "key-expired" },
    { VERDICT_KEY_VOIDED, "key-voided" },
    { VERDICT_OUTCOME_UNKNOWN, "outcome-unknown" },
    { VERDICT_COUNT, "unavailable" },
};

START_TEST(each_verdict_has_its_problem)
{
    ck_assert_str_eq(problem_table[problem_of_verdict(verdict_rows[_i].verdict)].name, verdict_rows[_i].problem);
}
END_TEST

static const struct {
    int64_t latency_ms;
    uint32_t random;
    unsigned seconds;
} retry_rows[] = {
    { 0, 0, 1 },
    { 0, UINT32_MAX, 1 },
    { -5, UINT32_MAX, 1 },
    { 300, 0, 1 },
    { 300, UINT32_MAX, 1 },
    { 2000, 0, 1 },           /* half */
    { 2000, 0x80000000U, 2 }, /* the whole */
    { 2000, UINT32_MAX, 3 },  /* one and a half */
    { 10000, 0, 5 },
    { 10000, UINT32_MAX, 15 },
    { 40000, 0, 20 },
    { 40000, UINT32_MAX, 60 },
    { 3600000, 0, 20 }, /* spread even at the cap */
    { INT64_MAX, UINT32_MAX, 60 },
};

START_TEST(retry_after_follows_the_latency_and_is_spread)
{
    ck_assert_uint_eq(problem_retry_after_s(retry_rows[_i].latency_ms, retry_rows[_i].random), retry_rows[_i].seconds);
}
END_TEST

SUITE(core_problem)
{
    Suite *suite = suite_create("core/problem");
    CASE_LOOP(suite, each_problem_is_as_section_5_says, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, every_problem_has_a_row_in_this_test_and_a_title_of_its_own);
    CASE_LOOP(suite, each_verdict_has_its_problem, sizeof(verdict_rows) / sizeof(verdict_rows[0]));
    CASE_LOOP(suite, retry_after_follows_the_latency_and_is_spread, sizeof(retry_rows) / sizeof(retry_rows[0]));
    return suite;
}
