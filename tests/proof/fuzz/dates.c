/* dates.c - fuzzes common/http_time.c and client-sdk/src/retry_after.c. The first line of the input is "now" in milliseconds, the
 * second a text that is read as a date, a time of ours and a Retry-After; the lines behind them are fields of an answer ("Name: value").
 *
 * What is read can be written and is read again as the same; waits lie between 0 and one year and are what simple arithmetic says. */
#include "client-sdk/src/retry_after.h"
#include "common/http_time.h"

#include "tests/proof/fuzz/fuzz.h"

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)
#define FIRST_MS INT64_C(-62167219200000)  /* 0000-01-01T00:00:00Z */
#define LAST_MS INT64_C(253402300799999)   /* 9999-12-31T23:59:59.999Z */
#define CLOCK_MS INT64_C(1000000000000000) /* the client's own clock is within 30,000 years */

static void date_must_hold(int64_t read_ms)
{
    char date[HTTP_DATE_BYTES], time[RFC3339_BYTES];
    int64_t again_ms = 0;
    MUST(read_ms >= FIRST_MS && read_ms <= LAST_MS);
    http_date_write(read_ms, date);
    rfc3339_write(read_ms, time);
    MUST(strlen(date) == HTTP_DATE_BYTES - 1 && strlen(time) == RFC3339_BYTES - 1);
    MUST(http_date_read(view_of(date), 0, &again_ms) && again_ms == read_ms - ((read_ms % 1000) + 1000) % 1000);
    MUST(rfc3339_read(view_of(time), &again_ms) && again_ms == read_ms);
}

/* What was read is what stands there, but for a leap second: "2026-11-29T12:00:00" and "29 Nov 2026 12:00:00 GMT" come back as they were. */
static void text_must_come_back(struct view text, int64_t read_ms, bool ours)
{
    char date[HTTP_DATE_BYTES], time[RFC3339_BYTES];
    http_date_write(read_ms, date);
    rfc3339_write(read_ms, time);
    const char *written = ours ? time : date;
    size_t from = ours ? 0 : 5, to = ours ? text.len - 1 : HTTP_DATE_BYTES - 1, seconds = ours ? 17 : 23;
    if (text.len >= to && text.ptr[seconds] != '6' && (ours || text.ptr[3] == ',')) {
        MUST(memcmp(text.ptr + from, written + from, to - from) == 0);
    }
}

static bool is_digits(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len > 0;
}

/* Up to nine digits, so that it cannot overflow; -1 for more. */
static int64_t seconds_of(struct view digits)
{
    int64_t seconds = 0;
    while (digits.len > 0 && digits.ptr[0] == '0') {
        digits = view_make(digits.ptr + 1, digits.len - 1);
    }
    for (size_t i = 0; i < digits.len && digits.len < 10; i++) {
        seconds = seconds * 10 + (digits.ptr[i] - '0');
    }
    return digits.len < 10 ? seconds : -1;
}

static bool retry_after_must_hold(struct view text, int64_t now_ms)
{
    int64_t wait_ms = -7, date_ms = 0;
    bool read = retry_after_read(text, now_ms, &wait_ms);
    struct view trimmed = view_trim(text);
    if (!read) {
        MUST(wait_ms == -7 && !is_digits(trimmed) && !http_date_read(trimmed, now_ms, &date_ms));
        return false;
    }
    MUST(wait_ms >= 0 && wait_ms <= YEAR_MS);
    if (is_digits(trimmed)) {
        int64_t seconds = seconds_of(trimmed);
        MUST(wait_ms == (seconds < 0 || seconds > YEAR_MS / 1000 ? YEAR_MS : seconds * 1000));
    } else {
        MUST(http_date_read(trimmed, now_ms, &date_ms));
        MUST(date_ms <= now_ms ? wait_ms == 0 : wait_ms > 0);
        MUST(wait_ms == 0 || wait_ms == YEAR_MS || date_ms - wait_ms == now_ms);
    }
    return true;
}

static void answer_must_hold(struct view lines, int64_t wall_ms)
{
    struct answer answer;
    answer_init(&answer, 100);
    int64_t largest_ms = -1, server_ms = wall_ms;
    for (struct view rest = lines; rest.len > 0;) {
        struct view line = fuzz_line(&rest), value = line, name = { NULL, 0 };
        (void) view_next_item(&value, ':', &name);
        answer_add_field(&answer, name, value);
    }
    const char *date = answer_field(&answer, "Date");
    if (date != NULL && http_date_read(view_of(date), wall_ms, &server_ms)) {
        MUST(retry_after_skew_ms(&answer, wall_ms) == server_ms - wall_ms);
    }
    const char *name, *value;
    for (size_t i = 0; answer_field_at(&answer, i, &name, &value); i++) {
        int64_t wait_ms = 0;
        if (view_equal_nocase(view_of(name), VIEW("retry-after")) &&
            retry_after_read(view_of(value), server_ms, &wait_ms)) {
            largest_ms = wait_ms > largest_ms ? wait_ms : largest_ms;
        }
    }
    MUST(retry_after_ms(&answer, wall_ms) == largest_ms);
    answer_fini(&answer);
}

FUZZ_TARGET(dates)
{
    struct view rest = input;
    char *now = fuzz_text(fuzz_line(&rest));
    int64_t now_ms = strtoll(now, NULL, 10), read_ms = -7;
    free(now);
    struct view text = fuzz_line(&rest);
    bool taken = http_date_read(text, now_ms, &read_ms);
    if (taken) {
        MUST(read_ms % 1000 == 0);
        date_must_hold(read_ms);
        text_must_come_back(text, read_ms, false);
    } else {
        MUST(read_ms == -7);
    }
    if (rfc3339_read(text, &read_ms)) {
        MUST(text.len == RFC3339_BYTES - 1 || text.len == RFC3339_BYTES - 5);
        date_must_hold(read_ms);
        text_must_come_back(text, read_ms, true);
        taken = true;
    }
    taken = retry_after_must_hold(text, now_ms) || taken;
    answer_must_hold(rest, now_ms < -CLOCK_MS ? -CLOCK_MS : now_ms > CLOCK_MS ? CLOCK_MS : now_ms);
    return taken;
}
