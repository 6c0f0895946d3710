/* backoff_test.c - client-sdk/src/backoff.c. */
#include "client-sdk/src/backoff.h"
#include "tests/support/suite.h"

#define NEVER UINT64_C(0)
#define HALF (UINT64_C(1) << 63)
#define ALMOST UINT64_MAX

static const struct {
    int64_t base_ms, cap_ms;
    unsigned n;
    int64_t window_ms;
} windows[] = {
    { 200, 5000, 0, 200 }, /* 200, 400, 800 */
    { 200, 5000, 1, 400 },
    { 200, 5000, 2, 800 },
    { 250, 8000, 3, 2000 }, /* 250, 500, 1000, 2000 */
    { 1000, 30000, 4, 16000 },
    { 1000, 30000, 5, 30000 },
    { 500, 2000, 2, 2000 },
    { 500, 8000, 63, 8000 }, /* saturates instead of overflowing */
    { 500, 8000, 64, 8000 },
    { 500, 8000, 4000000000U, 8000 },
    { 1, INT64_MAX, 62, INT64_C(1) << 62 },
    { 1, INT64_MAX, 63, INT64_MAX },
    { 1, INT64_MAX, 100, INT64_MAX },
    { 0, 8000, 3, 0 },
    { 9000, 8000, 0, 8000 },
};

START_TEST(the_window_doubles_up_to_the_cap_and_saturates)
{
    const struct backoff backoff = { BACKOFF_FULL, windows[_i].base_ms, windows[_i].cap_ms };
    ck_assert_int_eq(backoff_window_ms(&backoff, windows[_i].n), windows[_i].window_ms);
}
END_TEST

static const struct {
    int64_t bound_ms;
    uint64_t random;
    int64_t expected;
} draws[] = {
    { 0, ALMOST, 0 },
    { -5, ALMOST, 0 },
    { 1, ALMOST, 0 },
    { 500, NEVER, 0 },
    { 500, HALF, 250 },
    { 500, ALMOST, 499 },
    { INT64_MAX, NEVER, 0 },
    { INT64_MAX, HALF, INT64_C(4611686018427387903) },
    { INT64_MAX, ALMOST, INT64_MAX - 1 },
    { INT64_C(1) << 40, HALF, INT64_C(1) << 39 },
};

START_TEST(a_draw_lies_below_its_bound)
{
    ck_assert_int_eq(backoff_below(draws[_i].bound_ms, draws[_i].random), draws[_i].expected);
}
END_TEST

static const struct {
    enum backoff_jitter jitter;
    unsigned n;
    int64_t previous_ms;
    uint64_t random;
    int64_t delay_ms;
} delays[] = {
    { BACKOFF_NONE, 0, 0, HALF, 500 },
    { BACKOFF_NONE, 2, 0, NEVER, 2000 },
    { BACKOFF_FULL, 0, 0, NEVER, 0 }, /* no wait at all is a fair draw */
    { BACKOFF_FULL, 0, 0, HALF, 250 },
    { BACKOFF_FULL, 2, 0, ALMOST, 1999 },
    { BACKOFF_FULL, 9, 0, HALF, 4000 },
    { BACKOFF_EQUAL, 0, 0, NEVER, 250 },
    { BACKOFF_EQUAL, 0, 0, HALF, 375 },
    { BACKOFF_EQUAL, 0, 0, ALMOST, 499 },
    { BACKOFF_EQUAL, 9, 0, NEVER, 4000 },
    { BACKOFF_DECORRELATED, 0, 0, NEVER, 500 }, /* no previous delay: base */
    { BACKOFF_DECORRELATED, 0, 0, HALF, 1000 },
    { BACKOFF_DECORRELATED, 7, 1000, HALF, 1750 }, /* 500 + (3000 - 500) / 2 */
    { BACKOFF_DECORRELATED, 7, 6000, ALMOST, 8000 },
    { BACKOFF_DECORRELATED, 7, INT64_MAX, HALF, 8000 },
};

START_TEST(each_jitter_has_its_formula)
{
    const struct backoff backoff = { delays[_i].jitter, 500, 8000 };
    ck_assert_int_eq(backoff_delay_ms(&backoff, delays[_i].n, delays[_i].previous_ms, delays[_i].random),
                     delays[_i].delay_ms);
}
END_TEST

START_TEST(full_jitter_is_half_of_its_window_on_average_and_reaches_all_of_it)
{
    unsigned seed = suite_seed();
    struct suite_random random;
    int64_t sum = 0, least = 8000, most = 0;
    const struct backoff backoff = { BACKOFF_FULL, 8000, 8000 };
    FIGURE("backoff seed=%u", seed);
    suite_random_start(&random, seed);
    for (int i = 0; i < 10000; i++) {
        uint64_t word = (uint64_t) suite_random_next(&random) << 32 | suite_random_next(&random);
        int64_t delay = backoff_delay_ms(&backoff, 0, 0, word);
        sum += delay;
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    ck_assert_int_ge(sum / 10000, 3850); /* 4000, and to both sides more than six standard deviations of 23.1 */
    ck_assert_int_le(sum / 10000, 4150);
    ck_assert_int_lt(least, 80);
    ck_assert_int_ge(most, 7920);
}
END_TEST

START_TEST(the_preset_for_long_lived_connections_starts_at_half_a_second_and_ends_at_thirty)
{
    ck_assert_int_eq(backoff_reconnect.jitter, BACKOFF_DECORRELATED);
    ck_assert_int_eq(backoff_reconnect.base_ms, 500);
    ck_assert_int_eq(backoff_reconnect.cap_ms, 30000);
    ck_assert_int_eq(BACKOFF_RECONNECT_STABLE_MS, 60000);
}
END_TEST

SUITE(backoff)
{
    Suite *suite = suite_create("client/backoff");
    CASE_LOOP(suite, the_window_doubles_up_to_the_cap_and_saturates, sizeof(windows) / sizeof(windows[0]));
    CASE_LOOP(suite, a_draw_lies_below_its_bound, sizeof(draws) / sizeof(draws[0]));
    CASE_LOOP(suite, each_jitter_has_its_formula, sizeof(delays) / sizeof(delays[0]));
    CASE(suite, full_jitter_is_half_of_its_window_on_average_and_reaches_all_of_it);
    CASE(suite, the_preset_for_long_lived_connections_starts_at_half_a_second_and_ends_at_thirty);
    return suite;
}
