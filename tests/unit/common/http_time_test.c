/* http_time_test.c - common/http_time.c. The expected milliseconds were taken from `date -u -d ... +%s`. */
#include "common/http_time.h"
#include "tests/support/suite.h"

#define NOW_2026 INT64_C(1795953600000) /* 2026-11-29T12:00:00Z */

static const struct {
    int64_t unix_ms;
    const char *http, *rfc3339;
} written[] = {
    { 0, "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z" },
    { 784111777000, "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z" },
    { 784111777999, "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.999Z" },
    { 1795953600123, "Sun, 29 Nov 2026 12:00:00 GMT", "2026-11-29T12:00:00.123Z" },
    { 951782400000, "Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29T00:00:00.000Z" },
    { 951868800000, "Wed, 01 Mar 2000 00:00:00 GMT", "2000-03-01T00:00:00.000Z" },
    { 1709251199000, "Thu, 29 Feb 2024 23:59:59 GMT", "2024-02-29T23:59:59.000Z" },
    { 1735689599999, "Tue, 31 Dec 2024 23:59:59 GMT", "2024-12-31T23:59:59.999Z" },
    { 1735689600000, "Wed, 01 Jan 2025 00:00:00 GMT", "2025-01-01T00:00:00.000Z" },
    { 4107542400000, "Mon, 01 Mar 2100 00:00:00 GMT", "2100-03-01T00:00:00.000Z" },
    { -1, "Wed, 31 Dec 1969 23:59:59 GMT", "1969-12-31T23:59:59.999Z" },
    { -62167219200000, "Sat, 01 Jan 0000 00:00:00 GMT", "0000-01-01T00:00:00.000Z" },
    { 253402300799999, "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.999Z" },
    /* What four digits cannot say stays at the last moment they can. */
    { INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.999Z" },
    { INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT", "0000-01-01T00:00:00.000Z" },
};

START_TEST(a_moment_is_written_in_both_forms)
{
    char http[HTTP_DATE_BYTES], rfc3339[RFC3339_BYTES];
    http_date_write(written[_i].unix_ms, http);
    rfc3339_write(written[_i].unix_ms, rfc3339);
    ck_assert_str_eq(http, written[_i].http);
    ck_assert_str_eq(rfc3339, written[_i].rfc3339);
}
END_TEST

static const struct {
    const char *text;
    bool good;
    int64_t unix_ms;
} read[] = {
    { "Sun, 06 Nov 1994 08:49:37 GMT", true, 784111777000 },
    { "Sunday, 06-Nov-94 08:49:37 GMT", true, 784111777000 },
    { "Sun Nov  6 08:49:37 1994", true, 784111777000 },
    { "Wed Nov 16 08:49:37 1994", true, 784975777000 },
    { "Tue, 29 Feb 2000 00:00:00 GMT", true, 951782400000 },
    { "Thu, 01 Jan 1970 00:00:00 GMT", true, 0 },
    { "Wed, 31 Dec 1969 23:59:59 GMT", true, -1000 },
    { "Tue, 31 Dec 2024 23:59:60 GMT", true, 1735689600000 }, /* a leap second */
    { "Mon, 06 Nov 1994 08:49:37 GMT", true, 784111777000 },  /* the day's name does not matter */
    /* Two digits: at most 50 years ahead of 2026. */
    { "Sunday, 29-Nov-76 12:00:00 GMT", true, 3373876800000 },
    { "Monday, 30-Nov-76 12:00:00 GMT", true, 218203200000 },
    { "Saturday, 01-Jan-00 00:00:00 GMT", true, 946684800000 },
    { "Tue, 29 Feb 2100 00:00:00 GMT", false, 0 },
    { "Thu, 29 Feb 2025 00:00:00 GMT", false, 0 },
    { "Sun, 31 Nov 1994 08:49:37 GMT", false, 0 },
    { "Sun, 00 Nov 1994 08:49:37 GMT", false, 0 },
    { "Sun, 06 Nov 1994 24:00:00 GMT", false, 0 },
    { "Sun, 06 Nov 1994 08:60:00 GMT", false, 0 },
    { "Sun, 06 Nov 1994 08:49:61 GMT", false, 0 },
    { "Fri, 31 Dec 9999 23:59:59 GMT", true, 253402300799000 },
    { "Fri, 31 Dec 9999 23:59:60 GMT", false, 0 }, /* would be of the year 10000, which nobody can write */
    { "Sun, 06 Nov 1994 08:49:37 UTC", false, 0 },
    { "Sun, 06 Nov 1994 08:49:37 +0000", false, 0 },
    { "Sun, 06 Nov 1994 08:49:37 GMT ", false, 0 },
    { "Sun, 6 Nov 1994 08:49:37 GMT", false, 0 },
    { "sun, 06 nov 1994 08:49:37 gmt", false, 0 },
    { "06 Nov 1994 08:49:37 GMT", false, 0 },
    { "Sun, 06 Nov 94 08:49:37 GMT", false, 0 },
    { "Sunday, 06-Nov-1994 08:49:37 GMT", false, 0 },
    { "Sun Nov 6 08:49:37 1994", false, 0 },
    { "Sun, 06 Xyz 1994 08:49:37 GMT", false, 0 },
    { "Sun, 06 Nov -994 08:49:37 GMT", false, 0 },
    { "Sun", false, 0 },
    { "1994-11-06T08:49:37Z", false, 0 },
    { "", false, 0 },
};

START_TEST(the_three_forms_of_a_date_are_read_and_nothing_else)
{
    int64_t unix_ms = 77;
    bool good = http_date_read(view_of(read[_i].text), NOW_2026, &unix_ms);
    ck_assert_msg(good == read[_i].good, "\"%s\"", read[_i].text);
    ck_assert_int_eq(unix_ms, read[_i].good ? read[_i].unix_ms : 77);
}
END_TEST

static const char *const whole[] = { "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                     "Sun Nov  6 08:49:37 1994", "Wed Nov 16 08:49:37 1994",
                                     "1994-11-06T08:49:37.123Z" };

static bool is_a_moment(struct view text)
{
    int64_t unix_ms = 0;
    return http_date_read(text, NOW_2026, &unix_ms) || rfc3339_read(text, &unix_ms);
}

START_TEST(a_moment_of_which_any_byte_is_missing_or_another_one_is_none)
{
    char text[40];
    size_t len = strlen(whole[_i]);
    ck_assert(is_a_moment(view_of(whole[_i])));
    for (size_t at = 0; at < len; at++) {
        ck_assert_msg(!is_a_moment(view_make(whole[_i], at)), "%.*s", (int) at, whole[_i]);
        memcpy(text, whole[_i], len + 1);
        text[at] = '?';
        ck_assert_msg(!is_a_moment(view_of(text)), "%s", text);
        memcpy(text + at, whole[_i] + at + 1, len - at);
        ck_assert_msg(!is_a_moment(view_of(text)), "%s", text);
    }
}
END_TEST

START_TEST(every_day_of_four_centuries_is_read_back_as_it_was_written)
{
    char text[HTTP_DATE_BYTES];
    for (int64_t day = -80000; day < 80000; day++) {
        int64_t unix_ms = day * 86400000 + 43200000, again = 0;
        http_date_write(unix_ms, text);
        ck_assert_msg(http_date_read(view_of(text), 0, &again) && again == unix_ms, "%s", text);
    }
}
END_TEST

static const struct {
    const char *text;
    bool good;
    int64_t wait_ms;
} waits[] = {
    { "0", true, 0 },
    { "1", true, 1000 },
    { "120", true, 120000 },
    { " 5 ", true, 5000 },
    { "31536000", true, 31536000000 },
    { "31536001", true, 31536000000 },
    { "99999999999999999999999999", true, 31536000000 },
    { "Sun, 29 Nov 2026 12:00:07 GMT", true, 7000 },
    { "Sunday, 29-Nov-26 12:00:07 GMT", true, 7000 },
    { "Sun Nov 29 12:00:07 2026", true, 7000 },
    { "Sun, 29 Nov 2026 11:59:59 GMT", true, 0 },
    { "Sun, 06 Nov 1994 08:49:37 GMT", true, 0 },
    { "Mon, 29 Nov 2027 12:00:00 GMT", true, 31536000000 },
    { "Fri, 31 Dec 9999 23:59:59 GMT", true, 31536000000 },
    { "1.5", false, 0 },
    { "-1", false, 0 },
    { "+1", false, 0 },
    { "1s", false, 0 },
    { "1, 2", false, 0 },
    { "", false, 0 },
    { "soon", false, 0 },
};

START_TEST(retry_after_is_seconds_or_a_date)
{
    int64_t wait_ms = 77;
    bool good = retry_after_read(view_of(waits[_i].text), NOW_2026, &wait_ms);
    ck_assert_msg(good == waits[_i].good, "\"%s\"", waits[_i].text);
    ck_assert_int_eq(wait_ms, waits[_i].good ? waits[_i].wait_ms : 77);
}
END_TEST

START_TEST(a_date_long_ahead_of_any_clock_saturates)
{
    int64_t wait_ms = 0;
    ck_assert(retry_after_read(VIEW("Fri, 31 Dec 9999 23:59:59 GMT"), INT64_MIN, &wait_ms));
    ck_assert_int_eq(wait_ms, 31536000000);
    ck_assert(retry_after_read(VIEW("Fri, 31 Dec 9999 23:59:59 GMT"), INT64_MAX, &wait_ms));
    ck_assert_int_eq(wait_ms, 0);
}
END_TEST

/* A clock at either end of the calendar puts a year of two digits beyond it. */
START_TEST(a_year_of_two_digits_that_leaves_the_calendar_is_none)
{
    int64_t unix_ms = 77;
    ck_assert(!http_date_read(VIEW("Sunday, 06-Nov-94 08:49:37 GMT"), INT64_MIN, &unix_ms));
    ck_assert(!http_date_read(VIEW("Sunday, 06-Nov-49 08:49:37 GMT"), INT64_MAX, &unix_ms));
    ck_assert_int_eq(unix_ms, 77);
}
END_TEST

static const struct {
    const char *text;
    bool good;
    int64_t unix_ms;
} rfc3339[] = {
    { "1970-01-01T00:00:00.000Z", true, 0 },
    { "2026-11-29T12:00:00.123Z", true, 1795953600123 },
    { "2026-11-29T12:00:00Z", true, 1795953600000 },
    { "9999-12-31T23:59:59.999Z", true, 253402300799999 },
    { "9999-12-31T23:59:60.000Z", false, 0 },
    { "2000-02-29T00:00:00.000Z", true, 951782400000 },
    { "1969-12-31T23:59:59.999Z", true, -1 },
    { "2025-02-29T00:00:00.000Z", false, 0 },
    { "2026-00-29T12:00:00.000Z", false, 0 },
    { "2026-13-29T12:00:00.000Z", false, 0 },
    { "2026-11-29T24:00:00.000Z", false, 0 },
    { "2026-11-29 12:00:00.000Z", false, 0 },
    { "2026-11-29T12:00:00.1Z", false, 0 },
    { "2026-11-29T12:00:00.000+00:00", false, 0 },
    { "2026-11-29T12:00:00.000", false, 0 },
    { "2026-11-29T12:00:00.000Z ", false, 0 },
    { "", false, 0 },
};

START_TEST(our_own_form_of_a_time_is_read_and_nothing_else)
{
    int64_t unix_ms = 77;
    bool good = rfc3339_read(view_of(rfc3339[_i].text), &unix_ms);
    ck_assert_msg(good == rfc3339[_i].good, "\"%s\"", rfc3339[_i].text);
    ck_assert_int_eq(unix_ms, rfc3339[_i].good ? rfc3339[_i].unix_ms : 77);
}
END_TEST

SUITE(http_time)
{
    Suite *suite = suite_create("common/http_time");
    CASE_LOOP(suite, our_own_form_of_a_time_is_read_and_nothing_else, sizeof(rfc3339) / sizeof(rfc3339[0]));
    CASE_LOOP(suite, a_moment_is_written_in_both_forms, sizeof(written) / sizeof(written[0]));
    CASE_LOOP(suite, the_three_forms_of_a_date_are_read_and_nothing_else, sizeof(read) / sizeof(read[0]));
    CASE_LOOP(suite, a_moment_of_which_any_byte_is_missing_or_another_one_is_none, sizeof whole / sizeof whole[0]);
    CASE(suite, every_day_of_four_centuries_is_read_back_as_it_was_written);
    CASE_LOOP(suite, retry_after_is_seconds_or_a_date, sizeof(waits) / sizeof(waits[0]));
    CASE(suite, a_date_long_ahead_of_any_clock_saturates);
    CASE(suite, a_year_of_two_digits_that_leaves_the_calendar_is_none);
    return suite;
}
