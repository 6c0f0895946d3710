/* breaker_test.c - client-sdk/src/breaker.c. */
#include "client-sdk/src/breaker.h"
#include "tests/support/suite.h"

START_TEST(five_failures_in_a_row_open_it_for_thirty_seconds_then_one_may_try)
{
    struct breaker breaker;
    breaker_init(&breaker, 5, 30000);
    for (int i = 0; i < 4; i++) {
        breaker_begin(&breaker, 1000);
        breaker_report(&breaker, 1000, false);
        ck_assert_int_eq(breaker_closed_until(&breaker, 1000), 0);
    }
    breaker_report(&breaker, 2000, false);
    ck_assert_int_eq(breaker_closed_until(&breaker, 2000), 32000);
    ck_assert_int_eq(breaker_closed_until(&breaker, 31999), 32000);
    ck_assert_int_eq(breaker_closed_until(&breaker, 32000), 0);
    breaker_begin(&breaker, 32000);
    ck_assert_int_eq(breaker_closed_until(&breaker, 32001), 62000); /* somebody tries: the others wait */
    breaker_report(&breaker, 32500, false);
    ck_assert_int_eq(breaker_closed_until(&breaker, 32500), 62500); /* one failure opens it again */
    breaker_begin(&breaker, 62500);
    breaker_report(&breaker, 62600, true);
    ck_assert_int_eq(breaker_closed_until(&breaker, 62600), 0);
    for (int i = 0; i < 4; i++) {
        breaker_report(&breaker, 70000, false);
    }
    ck_assert_int_eq(breaker_closed_until(&breaker, 70000), 0); /* the count began anew */
}
END_TEST

START_TEST(a_success_between_failures_keeps_it_closed)
{
    struct breaker breaker;
    breaker_init(&breaker, 2, 1000);
    for (int i = 0; i < 10; i++) {
        breaker_report(&breaker, 100, false);
        breaker_report(&breaker, 100, true);
    }
    ck_assert_int_eq(breaker_closed_until(&breaker, 100), 0);
}
END_TEST

START_TEST(a_probe_that_was_cancelled_leaves_its_place)
{
    struct breaker breaker;
    breaker_init(&breaker, 1, 1000);
    breaker_report(&breaker, 100, false);
    breaker_begin(&breaker, 1100);
    ck_assert_int_eq(breaker_closed_until(&breaker, 1200), 2100);
    breaker_forget(&breaker);
    ck_assert_int_eq(breaker_closed_until(&breaker, 1200), 0);
}
END_TEST

START_TEST(off_it_never_opens)
{
    struct breaker breaker;
    breaker_init(&breaker, 0, 1000);
    for (int i = 0; i < 1000; i++) {
        breaker_report(&breaker, 100, false);
    }
    ck_assert_int_eq(breaker_closed_until(&breaker, 100), 0);
}
END_TEST

SUITE(breaker)
{
    Suite *suite = suite_create("client/breaker");
    CASE(suite, five_failures_in_a_row_open_it_for_thirty_seconds_then_one_may_try);
    CASE(suite, a_success_between_failures_keeps_it_closed);
    CASE(suite, a_probe_that_was_cancelled_leaves_its_place);
    CASE(suite, off_it_never_opens);
    return suite;
}
