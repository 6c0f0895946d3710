/* quota_test.c - buckets of tokens and the table of tenants (server/core/quota.h), by a clock that the test moves. */
#include "server/core/quota.h"

#include "tests/support/suite.h"

enum { ROOM = 64, SECOND_US = 1000000 };

static struct quota quota;
static struct quota_bucket buckets[ROOM];
static int64_t wait_us;

static void start(int64_t per_hour, int64_t burst, unsigned in_flight, unsigned room)
{
    const struct quota_limits limits = { .per_hour = per_hour, .burst = burst, .in_flight = in_flight };
    ck_assert_uint_le(room, ROOM);
    quota_init(&quota, &limits, buckets, room);
}

static enum quota_answer take(uint64_t tenant, int64_t now_us)
{
    return quota_take(&quota, tenant, now_us, &wait_us);
}

/* How many are let through at once. */
static int64_t take_all(uint64_t tenant, int64_t now_us)
{
    int64_t taken = 0;
    while (take(tenant, now_us) == QUOTA_TAKEN) {
        taken++;
    }
    return taken;
}

/* --- one bucket --- */

static const struct {
    int64_t per_hour, burst, first_wait_us;
    int64_t after_us, then; /* so long after the bucket was emptied so many are let through */
} rates[] = {
    { 3600, 1, 1000000, 1000000, 1 }, /* 1/s */
    { 3600, 5, 1000000, 3999999, 3 }, /* */
    { 3600, 5, 1000000, 5000000, 5 }, /* */
    { 3600, 5, 1000000, INT64_C(1) << 60, 5 } /* never more than the bucket holds */,
    { 1800, 1, 2000000, 1999999, 0 }, /* 30/m */
    { 1, 1, INT64_C(3600000000), INT64_C(3599999999), 0 },
    { 1, 1, INT64_C(3600000000), INT64_C(3600000000), 1 },
    { 7 * 3600, 7, 142858, 1000000, 7 }, /* 142857.14 us each */
    { 7 * 3600, 7, 142858, 428571, 2 },  /* 3 come at 428571.4 */
    { 7 * 3600, 7, 142858, 428572, 3 },
    { INT64_C(3600000000), 1000000, 1, 999999, 999999 }, /* the largest of both */
    { 1, 1000000, INT64_C(3600000000), INT64_C(3600000000) * 999999, 999999 },
};

START_TEST(a_bucket_lets_its_burst_through_and_then_as_much_as_comes)
{
    const int64_t begin_us = 12345678901;
    start(rates[_i].per_hour, rates[_i].burst, 0, 1);
    ck_assert_int_eq(take_all(5, begin_us), rates[_i].burst);
    ck_assert_int_eq(wait_us, rates[_i].first_wait_us);
    ck_assert_int_eq(take_all(5, begin_us + rates[_i].after_us), rates[_i].then);
}
END_TEST

START_TEST(the_wait_ends_when_there_is_a_token_and_not_before)
{
    static const int64_t per_hour[] = { 1, 7, 3599, 3601, 11 * 3600, 999 * 3600, INT64_C(3599999999) };
    start(per_hour[_i], 1, 0, 1);
    int64_t now_us = 1;
    ck_assert_int_eq(take(1, now_us), QUOTA_TAKEN);
    for (int round = 0; round < 1000; round++) {
        ck_assert_int_eq(take(1, now_us), QUOTA_NO_TOKEN);
        ck_assert_int_ge(wait_us, 1);
        int64_t told_us = wait_us;
        if (told_us > 1) {
            ck_assert_int_eq(take(1, now_us + told_us - 1), QUOTA_NO_TOKEN);
        }
        now_us += told_us;
        ck_assert_int_eq(take(1, now_us), QUOTA_TAKEN);
    }
}
END_TEST

/* Whoever asks again and again, at any moments, gets the rate to the last one. */
START_TEST(nothing_is_lost_or_won_by_rounding_in_a_day)
{
    const unsigned seed = suite_seed();
    struct suite_random random;
    FIGURE("quota drift seed=%u", seed);
    suite_random_start(&random, seed);
    start(7 * 3600, 3, 0, 1);
    int64_t now_us = 0, end_us = INT64_C(86400) * SECOND_US, taken = take_all(1, 0);
    while (now_us < end_us) {
        now_us += 1 + suite_random_below(&random, 285000); /* the bucket is never full: that would be a loss */
        now_us = now_us > end_us ? end_us : now_us;
        taken += take_all(1, now_us);
    }
    ck_assert_int_eq(taken, 3 + 7 * INT64_C(86400));
}
END_TEST

START_TEST(a_clock_that_goes_back_gives_nothing_and_takes_nothing)
{
    start(3600, 3, 0, 1);
    ck_assert_int_eq(take_all(1, 50 * SECOND_US), 3);
    ck_assert_int_eq(take_all(1, 10 * SECOND_US), 0);
    ck_assert_int_eq(wait_us, SECOND_US);
    ck_assert_int_eq(take_all(1, 51 * SECOND_US), 1);
}
END_TEST

START_TEST(a_token_that_goes_back_is_there_for_the_next_and_never_one_too_many)
{
    start(3600, 2, 0, 1);
    ck_assert_int_eq(take_all(1, 0), 2);
    quota_leave(&quota, 1, 0, true);
    ck_assert_int_eq(take_all(1, 0), 1);
    quota_leave(&quota, 1, 0, false); /* that one was a new command */
    ck_assert_int_eq(take_all(1, 0), 0);
    ck_assert_int_eq(take(1, 2 * SECOND_US), QUOTA_TAKEN); /* one is left of two */
    quota_leave(&quota, 1, 10 * SECOND_US, true);          /* full again before it comes back */
    ck_assert_int_eq(take_all(1, 10 * SECOND_US), 2);
    quota_forget_full(&quota, 20 * SECOND_US, ROOM);
    quota_leave(&quota, 1, 20 * SECOND_US, true); /* of one that was forgotten */
    ck_assert_int_eq(take_all(1, 20 * SECOND_US), 2);
}
END_TEST

/* --- what is under way --- */

START_TEST(no_more_are_under_way_than_may_be_and_who_ends_makes_room)
{
    start(0, 1, 2, 4);
    ck_assert_int_eq(take(1, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(1, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(1, 1000 * (int64_t) SECOND_US), QUOTA_BUSY);
    ck_assert_int_eq(take(2, 0), QUOTA_TAKEN); /* another tenant */
    quota_leave(&quota, 1, 0, false);
    ck_assert_int_eq(take(1, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(1, 0), QUOTA_BUSY);
    for (int i = 0; i < 2; i++) {
        quota_leave(&quota, 1, 0, i == 0);
    }
    quota_leave(&quota, 2, 0, true);
    quota_forget_full(&quota, 0, ROOM);
    ck_assert_uint_eq(quota.count, 0); /* without a rate, whoever has nothing under way is as new */
}
END_TEST

START_TEST(of_both_limits_the_rate_is_told_first_and_a_refusal_takes_nothing)
{
    start(3600, 2, 1, 4);
    ck_assert_int_eq(take(1, 0), QUOTA_TAKEN);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(take(1, 0), QUOTA_BUSY);
    }
    quota_leave(&quota, 1, 0, false);
    ck_assert_int_eq(take(1, 0), QUOTA_TAKEN); /* the second token is still there */
    ck_assert_int_eq(take(1, 0), QUOTA_NO_TOKEN);
}
END_TEST

/* --- the table --- */

START_TEST(a_tenant_whose_bucket_is_full_again_is_forgotten)
{
    start(3600, 2, 0, 8);
    for (uint64_t tenant = 0; tenant < 8; tenant++) {
        ck_assert_int_eq(take(tenant, (int64_t) tenant * 100000), QUOTA_TAKEN);
    }
    ck_assert_uint_eq(quota.count, 8);
    quota_forget_full(&quota, 999999, ROOM);
    ck_assert_uint_eq(quota.count, 8);
    quota_forget_full(&quota, 1250000, ROOM); /* those of 0, 0.1 and 0.2 s */
    ck_assert_uint_eq(quota.count, 5);
    ck_assert_int_eq(take_all(2, 1250000), 2);
    ck_assert_int_eq(take_all(3, 1250000), 1);
    quota_forget_full(&quota, 60 * SECOND_US, 2);
    ck_assert_uint_eq(quota.count, 4);
    quota_forget_full(&quota, 60 * SECOND_US, ROOM);
    ck_assert_uint_eq(quota.count, 0);
}
END_TEST

START_TEST(a_newcomer_to_a_full_table_takes_the_place_of_the_fullest_and_a_flooder_stays)
{
    start(3600, 5, 0, 4);
    ck_assert_int_eq(take_all(1, 0), 5); /* floods */
    ck_assert_int_eq(take(2, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(2, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(3, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(4, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(4, 0), QUOTA_TAKEN);
    for (uint64_t newcomer = 100; newcomer < 200; newcomer++) { /* invented names */
        ck_assert_int_eq(take(newcomer, 0), QUOTA_TAKEN);
        ck_assert_uint_eq(quota.count, 4);
    }
    ck_assert_int_eq(take_all(1, 0), 0);
    ck_assert_int_eq(take_all(2, 0), 3);
    ck_assert_int_eq(take_all(4, 0), 3);
    ck_assert_int_eq(take_all(3, 0), 5); /* it was the fullest, and has lost nothing by it */
}
END_TEST

START_TEST(who_has_something_under_way_is_never_forgotten)
{
    start(3600, 5, 3, 4);
    for (uint64_t tenant = 1; tenant <= 3; tenant++) {
        ck_assert_int_eq(take(tenant, 0), QUOTA_TAKEN);
    }
    for (uint64_t newcomer = 100; newcomer < 200; newcomer++) {
        ck_assert_int_eq(take(newcomer, 0), QUOTA_TAKEN);
        quota_leave(&quota, newcomer, 0, false);
    }
    quota_forget_full(&quota, 1000 * (int64_t) SECOND_US, ROOM);
    ck_assert_uint_eq(quota.count, 3);
    for (uint64_t tenant = 1; tenant <= 3; tenant++) {
        ck_assert_int_eq(take(tenant, 0), QUOTA_TAKEN);
        ck_assert_int_eq(take(tenant, 0), QUOTA_TAKEN);
        ck_assert_int_eq(take(tenant, 0), QUOTA_BUSY);
    }
    ck_assert_int_eq(take(4, 0), QUOTA_TAKEN);
    ck_assert_int_eq(take(5, 0),
                     QUOTA_BUSY); /* a table too small for what may be under way: refused, and nobody forgotten */
}
END_TEST

START_TEST(whoever_keeps_within_its_rate_is_never_refused_whatever_others_do)
{
    const unsigned seed = suite_seed();
    struct suite_random random;
    FIGURE("quota others seed=%u", seed);
    suite_random_start(&random, seed);
    start(10 * 3600, 2, 2, 8);
    int64_t now_us = 0;
    for (int round = 0; round < 20000; round++) {
        now_us += 100000;
        ck_assert_int_eq(take(1, now_us), QUOTA_TAKEN);
        for (int other = 0; other < 5; other++) {
            uint64_t tenant = 2 + suite_random_below(&random, 1000);
            if (take(tenant, now_us) == QUOTA_TAKEN) {
                quota_leave(&quota, tenant, now_us, suite_random_below(&random, 2) == 0);
            }
        }
        quota_leave(&quota, 1, now_us + 50000, false);
        ck_assert_uint_le(quota.count, 8);
    }
}
END_TEST

/* --- against a table that cannot be wrong: every tenant has a line, and time is multiplied out --- */

enum { WALKERS = 40 };

struct plain {
    int64_t parts, seen_us; /* 3600000000 parts are a token */
    unsigned in_flight;
};

static enum quota_answer plain_take(struct plain *plain, const struct quota_limits *limits, int64_t now_us)
{
    const int64_t token = 3600000000, full = limits->burst * token;
    plain->parts += (now_us - plain->seen_us) * limits->per_hour;
    plain->parts = plain->parts > full ? full : plain->parts;
    plain->seen_us = now_us;
    if (plain->parts < token) {
        return QUOTA_NO_TOKEN;
    }
    if (plain->in_flight >= limits->in_flight) {
        return QUOTA_BUSY;
    }
    plain->parts -= token;
    plain->in_flight++;
    return QUOTA_TAKEN;
}

START_TEST(a_random_life_of_many_tenants_agrees_with_a_plain_table)
{
    const unsigned seed = suite_seed() + (unsigned) _i;
    struct suite_random random;
    struct plain plain[WALKERS] = { 0 };
    unsigned answers[3] = { 0 };
    FIGURE("quota walk seed=%u", seed);
    suite_random_start(&random, seed);
    const struct quota_limits limits = { .per_hour = 20 + suite_random_below(&random, 400),
                                         .burst = 1 + suite_random_below(&random, 6),
                                         .in_flight = 1 + suite_random_below(&random, 4) };
    quota_init(&quota, &limits, buckets, WALKERS);
    for (int i = 0; i < WALKERS; i++) {
        plain[i].parts = limits.burst * 3600000000;
    }
    int64_t now_us = 0;
    for (int step = 0; step < 50000; step++) {
        unsigned who = suite_random_below(&random, WALKERS);
        now_us += suite_random_below(&random, 4) == 0 ? suite_random_below(&random, 2000000) : 0;
        if (plain[who].in_flight > 0 && suite_random_below(&random, 2) == 0) {
            bool unused = suite_random_below(&random, 3) == 0;
            struct plain *line = &plain[who];
            quota_leave(&quota, who, now_us, unused);
            line->parts += (now_us - line->seen_us) * limits.per_hour;
            line->seen_us = now_us;
            const int64_t full = limits.burst * 3600000000;
            line->parts = line->parts > full ? full : line->parts;
            line->parts += unused ? 3600000000 : 0;
            line->parts = line->parts > full ? full : line->parts;
            line->in_flight--;
        } else {
            enum quota_answer answer = take(who, now_us);
            ck_assert_int_eq(answer, plain_take(&plain[who], &limits, now_us));
            answers[answer]++;
        }
    }
    FIGURE("quota walk taken=%u no_token=%u busy=%u tracked=%u", answers[QUOTA_TAKEN], answers[QUOTA_NO_TOKEN],
           answers[QUOTA_BUSY], quota.count);
    ck_assert_uint_gt(answers[QUOTA_TAKEN], 0);
}
END_TEST

SUITE(core_quota)
{
    Suite *suite = suite_create("core/quota");
    CASE_LOOP(suite, a_bucket_lets_its_burst_through_and_then_as_much_as_comes, sizeof(rates) / sizeof(rates[0]));
    CASE_LOOP(suite, the_wait_ends_when_there_is_a_token_and_not_before, 7);
    CASE(suite, nothing_is_lost_or_won_by_rounding_in_a_day);
    CASE(suite, a_clock_that_goes_back_gives_nothing_and_takes_nothing);
    CASE(suite, a_token_that_goes_back_is_there_for_the_next_and_never_one_too_many);
    CASE(suite, no_more_are_under_way_than_may_be_and_who_ends_makes_room);
    CASE(suite, of_both_limits_the_rate_is_told_first_and_a_refusal_takes_nothing);
    CASE(suite, a_tenant_whose_bucket_is_full_again_is_forgotten);
    CASE(suite, a_newcomer_to_a_full_table_takes_the_place_of_the_fullest_and_a_flooder_stays);
    CASE(suite, who_has_something_under_way_is_never_forgotten);
    CASE(suite, whoever_keeps_within_its_rate_is_never_refused_whatever_others_do);
    CASE_LOOP(suite, a_random_life_of_many_tenants_agrees_with_a_plain_table, 8);
    return suite;
}
