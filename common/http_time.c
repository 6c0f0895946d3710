/* http_time.c - calendar arithmetic of its own: the C library's follows the locale and the time zone, and nothing
 * here may. Proleptic Gregorian calendar, UTC. Any thread. */
#include "common/http_time.h"

#include <string.h>

#define MS_PER_DAY INT64_C(86400000)
#define RETRY_AFTER_MAX_MS (INT64_C(365) * MS_PER_DAY)
/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: what four digits of a year can say. */
#define YEAR_0_MS INT64_C(-62167219200000)
#define YEAR_9999_END_MS INT64_C(253402300799999)

struct moment {
    int year, month, day, hour, minute, second, ms; /* month and day from 1 */
    int weekday;                                    /* 0 is Sunday */
};

static const char weekday_names[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
static const char *const weekday_long_names[7] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday" };
static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

/* Days before each month of a year that begins in March, so that the leap day is the last one. */
static const int days_before_month[12] = { 306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275 };

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days since 1970-01-01. `year` from -1 on. */
static int64_t days_of_date(int year, int month, int day)
{
    /* Years of the March calendar, moved up by 400 so that divisions are of positive numbers. */
    int64_t march_year = (int64_t) year + 400 - (month <= 2);
    int64_t days = march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400;
    /* 0000-03-01 in these terms is day 146097 (400 years); from there to 1970-01-01 it is 719468 days. */
    return days + days_before_month[month - 1] + (day - 1) - 146097 - 719468;
}

static struct moment moment_of(int64_t unix_ms)
{
    if (unix_ms < YEAR_0_MS) {
        unix_ms = YEAR_0_MS;
    }
    if (unix_ms > YEAR_9999_END_MS) {
        unix_ms = YEAR_9999_END_MS;
    }
    int64_t since_year_0 = unix_ms - YEAR_0_MS;
    int64_t days = since_year_0 / MS_PER_DAY + YEAR_0_MS / MS_PER_DAY;
    int rest = (int) (since_year_0 % MS_PER_DAY);
    struct moment moment = { .hour = rest / 3600000,
                             .minute = rest / 60000 % 60,
                             .second = rest / 1000 % 60,
                             .ms = rest % 1000,
                             .weekday =
                                 (int) ((days + 719530 + 4) % 7) }; /* 719530 is whole weeks; 1970 began on day 4 */
    /* The average year leads to the right one or a neighbour; at most two steps correct it. */
    int year = (int) (since_year_0 / MS_PER_DAY * 10000 / 3652425);
    while (days_of_date(year, 1, 1) > days) {
        year--;
    }
    while (days_of_date(year + 1, 1, 1) <= days) {
        year++;
    }
    int month = 12;
    while (days_of_date(year, month, 1) > days) {
        month--;
    }
    moment.year = year;
    moment.month = month;
    moment.day = (int) (days - days_of_date(year, month, 1)) + 1;
    return moment;
}

static void put_number(char *out, int number, int digits)
{
    while (digits > 0) {
        out[--digits] = (char) ('0' + number % 10);
        number /= 10;
    }
}

void http_date_write(int64_t unix_ms, char out[HTTP_DATE_BYTES])
{
    struct moment moment = moment_of(unix_ms);
    memcpy(out, "Www, DD Mmm YYYY HH:MM:SS GMT", HTTP_DATE_BYTES);
    memcpy(out, weekday_names[moment.weekday], 3);
    put_number(out + 5, moment.day, 2);
    memcpy(out + 8, month_names[moment.month - 1], 3);
    put_number(out + 12, moment.year, 4);
    put_number(out + 17, moment.hour, 2);
    put_number(out + 20, moment.minute, 2);
    put_number(out + 23, moment.second, 2);
}

void rfc3339_write(int64_t unix_ms, char out[RFC3339_BYTES])
{
    struct moment moment = moment_of(unix_ms);
    memcpy(out, "YYYY-MM-DDTHH:MM:SS.mmmZ", RFC3339_BYTES);
    put_number(out, moment.year, 4);
    put_number(out + 5, moment.month, 2);
    put_number(out + 8, moment.day, 2);
    put_number(out + 11, moment.hour, 2);
    put_number(out + 14, moment.minute, 2);
    put_number(out + 17, moment.second, 2);
    put_number(out + 20, moment.ms, 3);
}

/* ---- reading: each take_* cuts its piece off the front, or says that it is not there ---- */

static bool take_text(struct view *rest, const char *text)
{
    struct view wanted = view_of(text);
    if (!view_starts_with(*rest, wanted)) {
        return false;
    }
    *rest = view_make(rest->ptr + wanted.len, rest->len - wanted.len);
    return true;
}

static bool take_number(struct view *rest, size_t digits, int *number)
{
    uint64_t value = 0;
    if (rest->len < digits || !view_to_uint64(view_make(rest->ptr, digits), &value)) {
        return false;
    }
    *rest = view_make(rest->ptr + digits, rest->len - digits);
    *number = (int) value;
    return true;
}

static bool take_month(struct view *rest, int *month)
{
    for (int i = 0; i < 12; i++) {
        if (take_text(rest, month_names[i])) {
            *month = i + 1;
            return true;
        }
    }
    return false;
}

static bool take_clock(struct view *rest, struct moment *moment)
{
    return take_number(rest, 2, &moment->hour) && take_text(rest, ":") && take_number(rest, 2, &moment->minute) &&
           take_text(rest, ":") && take_number(rest, 2, &moment->second);
}

static int64_t moment_to_ms(const struct moment *moment)
{
    return days_of_date(moment->year, moment->month, moment->day) * MS_PER_DAY +
           ((moment->hour * INT64_C(60) + moment->minute) * 60 + moment->second) * 1000 + moment->ms;
}

static bool moment_is_valid(const struct moment *moment)
{
    static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int last = moment->month == 2 && is_leap(moment->year) ? 29 : days[moment->month - 1];
    /* Second 60 is a leap second and counts as the one behind it. */
    return moment->day >= 1 && moment->day <= last && moment->hour <= 23 && moment->minute <= 59 &&
           moment->second <= 60;
}

/* What is read can be written: not the leap second behind which the year 10000 begins, nor a year of two digits that the clock puts there. */
static bool moment_take(const struct moment *moment, int64_t *unix_ms)
{
    int64_t ms = moment_is_valid(moment) ? moment_to_ms(moment) : INT64_MAX;
    if (ms < YEAR_0_MS || ms > YEAR_9999_END_MS) {
        return false;
    }
    *unix_ms = ms;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", behind the name of the day. */
static bool read_imf_fixdate(struct view rest, struct moment *moment)
{
    return take_text(&rest, ", ") && take_number(&rest, 2, &moment->day) && take_text(&rest, " ") &&
           take_month(&rest, &moment->month) && take_text(&rest, " ") && take_number(&rest, 4, &moment->year) &&
           take_text(&rest, " ") && take_clock(&rest, moment) && take_text(&rest, " GMT") && rest.len == 0;
}

/* "Sun Nov  6 08:49:37 1994", behind the name of the day. */
static bool read_asctime(struct view rest, struct moment *moment)
{
    if (!take_text(&rest, " ") || !take_month(&rest, &moment->month) || !take_text(&rest, " ")) {
        return false;
    }
    size_t day_digits = take_text(&rest, " ") ? 1 : 2;
    return take_number(&rest, day_digits, &moment->day) && take_text(&rest, " ") && take_clock(&rest, moment) &&
           take_text(&rest, " ") && take_number(&rest, 4, &moment->year) && rest.len == 0;
}

/* The latest year with these last digits that is not more than 50 years ahead (RFC 9110 section 5.6.7). */
static void settle_century(struct moment *moment, int64_t now_ms)
{
    struct moment limit = moment_of(now_ms);
    limit.year += 50;
    int64_t limit_ms = moment_to_ms(&limit);
    int last_digits = moment->year;
    moment->year = limit.year - limit.year % 100 + last_digits;
    if (moment_to_ms(moment) > limit_ms) {
        moment->year -= 100;
    }
}

/* "Sunday, 06-Nov-94 08:49:37 GMT", behind the name of the day. */
static bool read_rfc850(struct view rest, int64_t now_ms, struct moment *moment)
{
    if (!take_text(&rest, ", ") || !take_number(&rest, 2, &moment->day) || !take_text(&rest, "-") ||
        !take_month(&rest, &moment->month) || !take_text(&rest, "-") || !take_number(&rest, 2, &moment->year) ||
        !take_text(&rest, " ") || !take_clock(&rest, moment) || !take_text(&rest, " GMT") || rest.len != 0) {
        return false;
    }
    settle_century(moment, now_ms);
    return true;
}

bool http_date_read(struct view text, int64_t now_ms, int64_t *unix_ms)
{
    struct moment moment = { 0 };
    bool read = false;
    /* That the day's name belongs to the date is not checked: the date says enough. */
    for (int i = 0; i < 7 && !read; i++) {
        struct view rest = text;
        if (take_text(&rest, weekday_long_names[i])) {
            read = read_rfc850(rest, now_ms, &moment);
        } else if (take_text(&rest, weekday_names[i])) {
            read = read_imf_fixdate(rest, &moment) || read_asctime(rest, &moment);
        }
    }
    return read && moment_take(&moment, unix_ms);
}

bool rfc3339_read(struct view text, int64_t *unix_ms)
{
    struct moment moment = { 0 };
    bool read = take_number(&text, 4, &moment.year) && take_text(&text, "-") && take_number(&text, 2, &moment.month) &&
                take_text(&text, "-") && take_number(&text, 2, &moment.day) && take_text(&text, "T") &&
                take_clock(&text, &moment) && (!take_text(&text, ".") || take_number(&text, 3, &moment.ms)) &&
                take_text(&text, "Z") && text.len == 0;
    return read && moment.month >= 1 && moment.month <= 12 && moment_take(&moment, unix_ms);
}

static bool is_all_digits(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len > 0;
}

bool retry_after_read(struct view text, int64_t now_ms, int64_t *wait_ms)
{
    text = view_trim(text);
    int64_t wait = 0;
    if (is_all_digits(text)) {
        uint64_t seconds = 0;
        bool fits = view_to_uint64(text, &seconds) && seconds < RETRY_AFTER_MAX_MS / 1000;
        wait = fits ? (int64_t) seconds * 1000 : RETRY_AFTER_MAX_MS;
    } else {
        int64_t date_ms = 0;
        if (!http_date_read(text, now_ms, &date_ms)) {
            return false;
        }
        /* Compared before it is subtracted: `now_ms` may be anything. */
        if (date_ms > now_ms) {
            wait = now_ms < date_ms - RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : date_ms - now_ms;
        }
    }
    *wait_ms = wait;
    return true;
}
