/* retry_after_test.c - client-sdk/src/retry_after.c, and how the planner keeps to it. */
#include "client-sdk/src/retry_after.h"
#include "tests/client/lab.h"

#define NOW_2026 INT64_C(1795953600000) /* 2026-11-29T12:00:00Z */

static const struct {
    const char *fields;
    int64_t wait_ms;
} rows[] = {
    { "", -1 }, /* absent is not 0 */
    { "Retry-After: 0", 0 },
    { "Retry-After: 1", 1000 },
    { "retry-after:   120", 120000 },
    { "Retry-After: 3600", 3600000 },
    { "Retry-After: 9999999999", 31536000000 }, /* saturates at a year */
    { "Retry-After: 99999999999999999999999999", 31536000000 },
    { "Retry-After: -5", -1 },
    { "Retry-After: 1.5", -1 },
    { "Retry-After: 1e3", -1 },
    { "Retry-After: 0x10", -1 },
    { "Retry-After: +1", -1 },
    { "Retry-After: soon", -1 },
    { "Retry-After:", -1 },
    { "Retry-After: 1, 2", -1 },
    { "Retry-After: 5\nRetry-After: 30", 30000 }, /* two lines: the largest */
    { "Retry-After: 30\nRetry-After: 5", 30000 },
    { "Retry-After: 1.5\nRetry-After: 5", 5000 },
    { "Retry-After: 0\nRetry-After: x", 0 },
    { "Retry-After: Sun, 29 Nov 2026 12:00:07 GMT", 7000 },
    { "Retry-After: Sunday, 29-Nov-26 12:00:07 GMT", 7000 },
    { "Retry-After: Sun Nov 29 12:00:07 2026", 7000 },
    { "Retry-After: Sun, 29 Nov 2026 11:59:00 GMT", 0 }, /* past */
    { "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", 31536000000 },
    /* Against the answer's own Date, so that our clock does not matter: the server lives in 2020. */
    { "Date: Wed, 01 Jan 2020 00:00:00 GMT\nRetry-After: Wed, 01 Jan 2020 00:00:09 GMT", 9000 },
    { "Date: Wed, 01 Jan 2020 00:00:00 GMT\nRetry-After: Tue, 31 Dec 2019 23:59:59 GMT", 0 },
    { "Date: rubbish\nRetry-After: Sun, 29 Nov 2026 12:00:07 GMT", 7000 },
    { "Date: Wed, 01 Jan 2020 00:00:00 GMT\nRetry-After: 4", 4000 },
};

START_TEST(retry_after_is_read_by_rfc_9110_and_nothing_else)
{
    struct transport_facts facts;
    const struct lab_step step = { .status = 503, .fields = rows[_i].fields };
    transport_facts_init(&facts, 100);
    lab_facts(&facts, &step);
    int64_t wait_ms = retry_after_ms(&facts.answer, NOW_2026);
    ck_assert_msg(wait_ms == rows[_i].wait_ms, "\"%s\": %lld", rows[_i].fields, (long long) wait_ms);
    transport_facts_fini(&facts);
}
END_TEST

START_TEST(the_skew_of_the_clocks_is_taken_from_date)
{
    struct transport_facts facts;
    const struct lab_step step = { .status = 200, .fields = "Date: Sun, 29 Nov 2026 12:01:00 GMT" };
    transport_facts_init(&facts, 100);
    ck_assert_int_eq(retry_after_skew_ms(&facts.answer, NOW_2026), 0);
    lab_facts(&facts, &step);
    ck_assert_int_eq(retry_after_skew_ms(&facts.answer, NOW_2026), 60000);
    transport_facts_fini(&facts);
}
END_TEST

/* What a client does with it: 503, then 200. Standard policy: at most 60 s of patience, a deadline of 30 s. */
static const struct {
    const char *fields;
    int64_t least_ms, most_ms; /* between the attempts; -1: there is no second one */
    int64_t retry_after_s;
} waits[] = {
    { "Retry-After: 3", 3000, 3499, -1 }, /* jitter of [0, 500) on top, never before */
    { "Retry-After: 0", 0, 499, -1 },
    { "Retry-After: -5", 0, 499, -1 },
    { "Retry-After: 1.5", 0, 499, -1 },
    { "Retry-After: 5\nRetry-After: 2", 5000, 5499, -1 },
    { "Retry-After: Sun, 29 Nov 2026 12:00:02 GMT", 2000, 2499, -1 },
    { "Retry-After: 29", 29000, 29499, -1 },
    { "Retry-After: 30", -1, -1, 30 },
    { "Retry-After: 3600", -1, -1, 3600 },
    { "Retry-After: 9999999999", -1, -1, 31536000 },
};

START_TEST(retry_after_is_a_floor_with_jitter_on_top_or_the_end)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_KEYED, 0);
    struct lab lab;
    lab_open(&lab, (unsigned) _i + 1, &policy);
    lab_step(&lab, (struct lab_step){ .status = 503, .fields = waits[_i].fields });
    lab_step(&lab, (struct lab_step){ .status = 200 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_retry_after_s(op), waits[_i].retry_after_s);
    if (waits[_i].least_ms >= 0) {
        ck_assert_uint_eq(lab.attempts, 2);
        int64_t between = lab.log[1].at_ms - lab.log[0].at_ms;
        ck_assert_int_ge(between, waits[_i].least_ms);
        ck_assert_int_le(between, waits[_i].most_ms);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    } else {
        ck_assert_uint_eq(lab.attempts, 1);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_APPLIED);
        ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_RETRY_LATER);
        ck_assert_str_eq(nonbis_op_reason(op), "server-wait-too-long");
        ck_assert_int_eq(lab.waits, 0); /* at once */
    }
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(retry_after)
{
    Suite *suite = suite_create("client/retry_after");
    CASE_LOOP(suite, retry_after_is_read_by_rfc_9110_and_nothing_else, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, the_skew_of_the_clocks_is_taken_from_date);
    CASE_LOOP(suite, retry_after_is_a_floor_with_jitter_on_top_or_the_end, sizeof(waits) / sizeof(waits[0]));
    return suite;
}
