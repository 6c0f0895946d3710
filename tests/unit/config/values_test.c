/* Sizes, durations and numbers: what is accepted, what is said about the rest, and how they are printed. */
#include "server/config/values.h"
#include "tests/support/suite.h"

#include <inttypes.h>

static struct buf error;

static void error_start(void)
{
    buf_init(&error, 4096);
}

static const char *error_text(void)
{
    static char text[4097];
    snprintf(text, sizeof(text), "%.*s", (int) error.len, error.len > 0 ? error.ptr : "");
    buf_fini(&error);
    return text;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const char *text;
    int64_t bytes;
} sizes[] = {
    { "0", 0 },
    { "512", 512 },
    { "512B", 512 },
    { "1KiB", 1024 },
    { "8KiB", 8192 },
    { "1MiB", 1048576 },
    { "3GiB", INT64_C(3221225472) },
    { "1KB", 1000 },
    { "1kB", 1000 },
    { "2MB", 2000000 },
    { "2GB", 2000000000 },
    { "007", 7 },
    { "4398046511104", INT64_C(4398046511104) }, /* the largest allowed here, 4 TiB */
    { "4096GiB", INT64_C(4398046511104) },
};

START_TEST(sizes_are_read)
{
    int64_t bytes = -1;
    error_start();
    bool good = bytes_read(view_of(sizes[_i].text), 0, INT64_C(4398046511104), &bytes, &error);
    ck_assert_msg(good, "%s: %s", sizes[_i].text, error_text());
    ck_assert_int_eq(bytes, sizes[_i].bytes);
    ck_assert_str_eq(error_text(), "");
}
END_TEST

static const struct {
    const char *text, *word; /* that the message must hold */
} bad_sizes[] = {
    { "", "got \"\"" },
    { "KiB", "got \"KiB\"" },
    { "-1", "got \"-1\"" },
    { "+1", "expected a size" },
    { " 1KiB", "expected a size" },
    { "1 KiB", "expected a size" },
    { "1KiB ", "expected a size" },
    { "1.5MiB", "expected a size" },
    { "1X", "from 1KiB to 64MiB" },
    { "0x10", "such as 512, 8KiB, 1MiB" },
    { "8kib", "did you mean 8KiB?" },
    { "8k", "did you mean 8KiB?" },
    { "8M", "did you mean 8MiB?" },
    { "8mb", "did you mean 8MB?" },
    { "1023", "from 1KiB to 64MiB" },
    { "65MiB", "from 1KiB to 64MiB" },
    { "67108865", "from 1KiB to 64MiB" },
    { "9223372036854775807", "from 1KiB to 64MiB" },
    { "9223372036854775808", "from 1KiB to 64MiB" },
    { "18446744073709551616", "from 1KiB to 64MiB" },
    { "9223372036854775807KiB", "from 1KiB to 64MiB" },
    { "17179869184GiB", "from 1KiB to 64MiB" },    /* 0 in 64 bits */
    { "17592186044417MiB", "from 1KiB to 64MiB" }, /* 1MiB in 64 bits */
    { "1KiB\n", "got \"1KiB\\x0a\"" },
};

START_TEST(wrong_sizes_are_refused_with_what_was_expected)
{
    int64_t bytes = -1;
    error_start();
    ck_assert(!bytes_read(view_of(bad_sizes[_i].text), 1024, 67108864, &bytes, &error));
    const char *text = error_text();
    ck_assert_msg(strstr(text, bad_sizes[_i].word) != NULL, "%s: %s", bad_sizes[_i].text, text);
    ck_assert_int_eq(bytes, -1);
}
END_TEST

static const struct {
    const char *text;
    int64_t ms;
} durations[] = {
    { "0s", 0 },
    { "250ms", 250 },
    { "2s", 2000 },
    { "75s", 75000 },
    { "5m", 300000 },
    { "1h", 3600000 },
    { "24h", 86400000 },
    { "30d", INT64_C(2592000000) },
    { "720h", INT64_C(2592000000) },
    { "3650d", INT64_C(315360000000) },
};

START_TEST(durations_are_read)
{
    int64_t ms = -1;
    error_start();
    bool good = duration_read(view_of(durations[_i].text), 0, INT64_C(315360000000), &ms, &error);
    ck_assert_msg(good, "%s: %s", durations[_i].text, error_text());
    ck_assert_int_eq(ms, durations[_i].ms);
    ck_assert_str_eq(error_text(), "");
}
END_TEST

static const struct {
    const char *text, *word;
} bad_durations[] = {
    { "30", "the unit is missing; did you mean 30s?" },
    { "0", "the unit is missing" },
    { "", "expected a duration" },
    { "s", "such as 250ms, 2s, 5m, 1h, 30d" },
    { "1.5s", "expected a duration" },
    { "-1s", "expected a duration" },
    { "1 s", "expected a duration" },
    { "2S", "did you mean 2s?" },
    { "20MS", "did you mean 20ms?" },
    { "20 ms", "did you mean 20ms?" },
    { "2MS", "it is written 2ms, and is out of that range" },
    { "5min", "such as 250ms" },
    { "1w", "expected a duration" },
    { "1h30m", "expected a duration" },
    { "9ms", "from 10ms to 1h" },
    { "61m", "from 10ms to 1h" },
    { "3601s", "from 10ms to 1h" },
    { "106751991168d", "from 10ms to 1h" }, /* over 2^63 milliseconds */
};

START_TEST(wrong_durations_are_refused_with_what_was_expected)
{
    int64_t ms = -1;
    error_start();
    ck_assert(!duration_read(view_of(bad_durations[_i].text), 10, 3600000, &ms, &error));
    const char *text = error_text();
    ck_assert_msg(strstr(text, bad_durations[_i].word) != NULL, "%s: %s", bad_durations[_i].text, text);
    ck_assert_int_eq(ms, -1);
}
END_TEST

static const struct {
    const char *text;
    int64_t per_hour;
} rates[] = {
    { "0", 0 },          { "0/s", 0 },       { "1/h", 1 },     { "30/m", 1800 },
    { "100/s", 360000 }, { "7200/h", 7200 }, { "007/m", 420 }, { "1000000/s", INT64_C(3600000000) },
};

START_TEST(rates_are_read)
{
    int64_t per_hour = -1;
    error_start();
    bool good = rate_read(view_of(rates[_i].text), 0, INT64_C(3600000000), &per_hour, &error);
    ck_assert_msg(good, "%s: %s", rates[_i].text, error_text());
    ck_assert_int_eq(per_hour, rates[_i].per_hour);
    ck_assert_str_eq(error_text(), "");
}
END_TEST

static const struct {
    const char *text, *word;
} bad_rates[] = {
    { "10", "the unit is missing; did you mean 10/s?" },
    { "", "expected a rate from 0 to 1000000/s (such as 100/s, 30/m, 500/h), got \"\"" },
    { "0.5/s", "such as 100/s, 30/m, 500/h" },
    { "-1/s", "expected a rate" },
    { "10s", "expected a rate" },
    { "10r/s", "expected a rate" },
    { "10/S", "did you mean 10/s?" },
    { "10 /s", "did you mean 10/s?" },
    { "10/d", "expected a rate" },
    { "1000001/s", "from 0 to 1000000/s" },
    { "9223372036854775807/s", "from 0 to 1000000/s" },
};

START_TEST(wrong_rates_are_refused_with_what_was_expected)
{
    int64_t per_hour = -1;
    error_start();
    ck_assert(!rate_read(view_of(bad_rates[_i].text), 0, INT64_C(3600000000), &per_hour, &error));
    const char *text = error_text();
    ck_assert_msg(strstr(text, bad_rates[_i].word) != NULL, "%s: %s", bad_rates[_i].text, text);
    ck_assert_int_eq(per_hour, -1);
}
END_TEST

static const struct {
    int64_t value;
    const char *text;
} bytes_printed[] = {
    { 0, "0" },          { 1, "1" },           { 512, "512" },        { 1000, "1000" },
    { 1024, "1KiB" },    { 1536, "1536" },     { 8192, "8KiB" },      { 1048576, "1MiB" },
    { 1049600, "1025KiB" }, { 67108864, "64MiB" }, { 1073741824, "1GiB" },
}, durations_printed[] = {
    { 0, "0s" },        { 1, "1ms" },         { 250, "250ms" },      { 1000, "1s" },
    { 1500, "1500ms" },  { 75000, "75s" },     { 120000, "120s" },    { 300000, "5m" },
    { 301000, "301s" },  { 3600000, "1h" },    { 5400000, "90m" },    { 86400000, "24h" },
    { INT64_C(2592000000), "720h" },           { INT64_C(2678400000), "31d" },
    { INT64_C(2682000000), "745h" },           { INT64_C(315360000000), "3650d" },
}, rates_printed[] = {
    { 0, "0" },          { 1, "1/h" },         { 59, "59/h" },        { 60, "1/m" },
    { 1800, "30/m" },    { 3600, "1/s" },      { 3660, "61/m" },      { INT64_C(3600000000), "1000000/s" },
};

START_TEST(sizes_are_printed_in_the_largest_unit_that_fits)
{
    error_start();
    bytes_write(bytes_printed[_i].value, &error);
    ck_assert_str_eq(error_text(), bytes_printed[_i].text);
}
END_TEST

START_TEST(durations_are_printed_in_the_usual_unit)
{
    error_start();
    duration_write(durations_printed[_i].value, &error);
    ck_assert_str_eq(error_text(), durations_printed[_i].text);
}
END_TEST

START_TEST(rates_are_printed_in_the_largest_unit_that_fits)
{
    error_start();
    rate_write(rates_printed[_i].value, &error);
    ck_assert_str_eq(error_text(), rates_printed[_i].text);
}
END_TEST

START_TEST(what_is_printed_reads_back_to_the_same)
{
    unsigned seed = suite_seed();
    FIGURE("values print and read seed=%u", seed);
    struct suite_random random;
    suite_random_start(&random, seed);
    for (int i = 0; i < 20000; i++) {
        static const int64_t steps[] = { 1, 1000, 1024, 60000, 3600000, 86400000, 1048576 };
        int64_t value = (int64_t) suite_random_below(&random, 40000) * steps[suite_random_below(&random, 7)];
        int64_t back = -1;
        struct buf text;
        buf_init(&text, 100);
        error_start();
        duration_write(value, &text);
        ck_assert(duration_read(buf_view(&text), 0, INT64_MAX, &back, &error));
        ck_assert_int_eq(back, value);
        buf_clear(&text);
        bytes_write(value, &text);
        ck_assert(bytes_read(buf_view(&text), 0, INT64_MAX, &back, &error));
        ck_assert_int_eq(back, value);
        buf_clear(&text);
        rate_write(value, &text);
        ck_assert(rate_read(buf_view(&text), 0, INT64_MAX, &back, &error));
        ck_assert_int_eq(back, value);
        buf_fini(&text);
        buf_fini(&error);
    }
}
END_TEST

static const struct {
    const char *text;
    int64_t count; /* -1: refused */
} counts[] = {
    { "1", 1 },   { "100", 100 }, { "0100", 100 }, { "0", -1 },   { "101", -1 }, { "", -1 },
    { "-1", -1 }, { "1k", -1 },   { "1.0", -1 },   { "1e2", -1 }, { "ten", -1 }, { "18446744073709551617", -1 },
};

START_TEST(counts_are_plain_whole_numbers)
{
    int64_t count = -1;
    error_start();
    ck_assert(count_read(view_of(counts[_i].text), 1, 100, &count, &error) == (counts[_i].count != -1));
    ck_assert_int_eq(count, counts[_i].count);
    const char *text = error_text();
    ck_assert_msg((strstr(text, "expected a whole number from 1 to 100, got \"") != NULL) == (counts[_i].count == -1),
                  "%s", text);
}
END_TEST

static const struct {
    const char *text, *kept; /* kept: NULL: refused */
    unsigned count;
    const char *word;
} lists[] = {
    { "Authorization,X-API-Key", "Authorization,X-API-Key", 2, NULL },
    { " Authorization , X-API-Key ", "Authorization,X-API-Key", 2, NULL },
    { "Cookie", "Cookie", 1, NULL },
    { ",Cookie,,", "Cookie", 1, NULL },
    { "", "", 0, NULL },
    { ",", NULL, 0, "expected field names" }, /* what is left of "$A,$B" when neither is set */
    { " , ,, ", NULL, 0, "expected field names" },
    { " ", NULL, 0, "expected field names" },
    { "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", 16, NULL },
    { "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL, 0, "at most 16" },
    { "X API Key", NULL, 0, "expected field names separated by commas" },
    { "Authorization;X-API-Key", NULL, 0, "field names" },
    { "Authorization:", NULL, 0, "field names" },
    { "Authorization,authorization", NULL, 0, "every name once" },
    { "caf\xc3\xa9", NULL, 0, "got \"caf\\xc3\\xa9\"" },
};

START_TEST(lists_hold_each_name_once)
{
    struct setting_names names = { .text = NULL };
    error_start();
    bool good = names_read(view_of(lists[_i].text), &names, &error);
    const char *text = error_text();
    ck_assert_msg(good == (lists[_i].kept != NULL), "%s: %s", lists[_i].text, text);
    if (good) {
        ck_assert_str_eq(names.text, lists[_i].kept);
        ck_assert_uint_eq(names.count, lists[_i].count);
        size_t len = names.count > 0 ? names.count - 1 : 0; /* the commas */
        for (size_t i = 0; i < names.count; i++) {
            len += names.items[i].len;
        }
        ck_assert_uint_eq(len, strlen(lists[_i].kept));
    } else {
        ck_assert_msg(strstr(text, lists[_i].word) != NULL, "%s", text);
        ck_assert_ptr_eq(names.text, NULL);
    }
    free(names.text);
}
END_TEST

START_TEST(text_from_outside_is_shown_short_and_harmless)
{
    char text[100];
    memset(text, 'x', sizeof(text));
    text[0] = '\x1b';
    error_start();
    shown_write(view_make(text, sizeof(text)), &error);
    ck_assert_str_eq(error_text(), "\"\\x1bxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"");
}
END_TEST

SUITE(values)
{
    Suite *suite = suite_create("config/values");
    CASE_LOOP(suite, sizes_are_read, COUNT(sizes));
    CASE_LOOP(suite, wrong_sizes_are_refused_with_what_was_expected, COUNT(bad_sizes));
    CASE_LOOP(suite, durations_are_read, COUNT(durations));
    CASE_LOOP(suite, wrong_durations_are_refused_with_what_was_expected, COUNT(bad_durations));
    CASE_LOOP(suite, rates_are_read, COUNT(rates));
    CASE_LOOP(suite, wrong_rates_are_refused_with_what_was_expected, COUNT(bad_rates));
    CASE_LOOP(suite, rates_are_printed_in_the_largest_unit_that_fits, COUNT(rates_printed));
    CASE_LOOP(suite, sizes_are_printed_in_the_largest_unit_that_fits, COUNT(bytes_printed));
    CASE_LOOP(suite, durations_are_printed_in_the_usual_unit, COUNT(durations_printed));
    CASE(suite, what_is_printed_reads_back_to_the_same);
    CASE_LOOP(suite, counts_are_plain_whole_numbers, COUNT(counts));
    CASE_LOOP(suite, lists_hold_each_name_once, COUNT(lists));
    CASE(suite, text_from_outside_is_shown_short_and_harmless);
    return suite;
}
