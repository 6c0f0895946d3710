/* metrics_test.c - the text in which counts are told, byte for byte, and counting by one thread while another reads. */
#include "server/base/metrics.h"
#include "tests/support/suite.h"

#include <pthread.h>

static struct buf out;

static void expect(const char *wanted)
{
    ck_assert(!out.failed);
    ck_assert_msg(view_equal(buf_view(&out), view_of(wanted)), "got:\n%.*s\nwanted:\n%s", VIEW_ARGS(buf_view(&out)),
                  wanted);
    buf_fini(&out);
}

START_TEST(a_family_is_told_before_its_samples)
{
    const struct metrics_family family = { "a_total", "counter", "What is counted." };
    buf_init(&out, 1024);
    metrics_write_family(&out, &family);
    metrics_write_sample(&out, &family, NULL, 0, 7, 1);
    expect("# HELP a_total What is counted.\n# TYPE a_total counter\na_total 7\n");
}
END_TEST

START_TEST(labels_stand_in_braces_and_what_would_end_them_is_escaped)
{
    const struct metrics_family family = { "a", "gauge", "A \\ and\na \"quote\"." };
    const struct metrics_label labels[] = { { "route", VIEW("POST /a\"b\\c\nd") }, { "result", VIEW("") } };
    buf_init(&out, 1024);
    metrics_write_family(&out, &family);
    metrics_write_sample(&out, &family, labels, 2, 1, 1);
    metrics_write_sample(&out, &family, labels + 1, 1, 2, 1);
    expect("# HELP a A \\\\ and\\na \"quote\".\n# TYPE a gauge\n"
           "a{route=\"POST /a\\\"b\\\\c\\nd\",result=\"\"} 1\n"
           "a{result=\"\"} 2\n");
}
END_TEST

static const struct {
    uint64_t parts, per;
    const char *wanted;
} decimals[] = {
    { 0, 1, "n 0\n" },
    { 18446744073709551615U, 1, "n 18446744073709551615\n" },
    { 0, 1000000, "n 0\n" },
    { 250, 1000000, "n 0.00025\n" },
    { 1, 1000000, "n 0.000001\n" },
    { 1000000, 1000000, "n 1\n" },
    { 10500000, 1000000, "n 10.5\n" },
    { 100001, 1000, "n 100.001\n" },
    { 1790000000123, 1000, "n 1790000000.123\n" },
};

START_TEST(a_value_is_an_exact_decimal_without_zeros_at_its_end)
{
    const struct metrics_family family = { "n", "gauge", "" };
    buf_init(&out, 1024);
    metrics_write_sample(&out, &family, NULL, 0, decimals[_i].parts, decimals[_i].per);
    expect(decimals[_i].wanted);
}
END_TEST

static const struct metrics_bounds seconds = { METRICS_MICROSECONDS, 3, { 250, 1000, 5000000 } };
static const struct metrics_family times = { "t_seconds", "histogram", "Times." };

START_TEST(buckets_hold_what_is_at_most_their_bound_and_add_up)
{
    static const uint64_t observed[] = { 0, 250, 251, 1000, 4999999, 5000001, 60000000 };
    struct metrics_histogram histogram = { .sum = 0 };
    for (size_t i = 0; i < sizeof observed / sizeof observed[0]; i++) {
        metrics_observe(&histogram, &seconds, observed[i]);
    }
    buf_init(&out, 1024);
    metrics_write_histogram(&out, &times, &seconds, &histogram);
    expect("t_seconds_bucket{le=\"0.00025\"} 2\n"
           "t_seconds_bucket{le=\"0.001\"} 4\n"
           "t_seconds_bucket{le=\"5\"} 5\n"
           "t_seconds_bucket{le=\"+Inf\"} 7\n"
           "t_seconds_sum 70.001501\n"
           "t_seconds_count 7\n");
}
END_TEST

START_TEST(a_histogram_of_nothing_is_all_zeros)
{
    static const struct metrics_bounds pieces = { 1, 2, { 1, 64 } };
    const struct metrics_histogram histogram = { .sum = 0 };
    buf_init(&out, 1024);
    metrics_write_histogram(&out, &times, &pieces, &histogram);
    expect("t_seconds_bucket{le=\"1\"} 0\nt_seconds_bucket{le=\"64\"} 0\nt_seconds_bucket{le=\"+Inf\"} 0\n"
           "t_seconds_sum 0\nt_seconds_count 0\n");
}
END_TEST

START_TEST(histograms_of_several_loops_are_added_bucket_by_bucket)
{
    struct metrics_histogram first = { .sum = 0 }, second = { .sum = 0 }, total = { .sum = 0 };
    metrics_observe(&first, &seconds, 100);
    metrics_observe(&second, &seconds, 200);
    metrics_observe(&second, &seconds, 9000000);
    metrics_histogram_add(&total, &first);
    metrics_histogram_add(&total, &second);
    ck_assert_uint_eq(total.counts[0], 2);
    ck_assert_uint_eq(total.counts[1], 0);
    ck_assert_uint_eq(total.counts[2], 0);
    ck_assert_uint_eq(total.counts[3], 1);
    ck_assert_uint_eq(total.sum, 9000300);
}
END_TEST

START_TEST(a_page_over_its_ceiling_is_told_as_failed)
{
    buf_init(&out, 16);
    metrics_write_family(&out, &times);
    ck_assert(out.failed);
    buf_fini(&out);
}
END_TEST

/* --- one writes, another reads --- */

enum { WRITES = 100000 };

struct shared {
    uint64_t counter;
    struct metrics_histogram histogram;
};

static void *write_all(void *context)
{
    struct shared *shared = context;
    for (int i = 0; i < WRITES; i++) {
        metrics_add(&shared->counter, 1);
        metrics_observe(&shared->histogram, &seconds, (uint64_t) i);
    }
    return NULL;
}

START_TEST(a_reader_sees_counts_that_only_grow)
{
    struct shared shared = { .counter = 0 };
    pthread_t thread;
    uint64_t last = 0, last_first = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_all, &shared), 0);
    while (last < WRITES) {
        struct metrics_histogram total = { .sum = 0 };
        uint64_t now = metrics_read(&shared.counter);
        metrics_histogram_add(&total, &shared.histogram);
        ck_assert_uint_ge(now, last);
        ck_assert_uint_ge(total.counts[0], last_first);
        last = now;
        last_first = total.counts[0];
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(metrics_read(&shared.histogram.counts[0]), 251); /* 0 to 250 */
    ck_assert_uint_eq(metrics_read(&shared.histogram.counts[1]), 750);
    ck_assert_uint_eq(metrics_read(&shared.histogram.sum), 4999950000U);
}
END_TEST

SUITE(base_metrics)
{
    Suite *suite = suite_create("base/metrics");
    CASE(suite, a_family_is_told_before_its_samples);
    CASE(suite, labels_stand_in_braces_and_what_would_end_them_is_escaped);
    CASE_LOOP(suite, a_value_is_an_exact_decimal_without_zeros_at_its_end, sizeof decimals / sizeof decimals[0]);
    CASE(suite, buckets_hold_what_is_at_most_their_bound_and_add_up);
    CASE(suite, a_histogram_of_nothing_is_all_zeros);
    CASE(suite, histograms_of_several_loops_are_added_bucket_by_bucket);
    CASE(suite, a_page_over_its_ceiling_is_told_as_failed);
    CASE(suite, a_reader_sees_counts_that_only_grow);
    return suite;
}
