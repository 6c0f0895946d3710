/* retry_after.c - see retry_after.h. */
#include "client-sdk/src/retry_after.h"

#include "common/http_time.h"

static bool answer_date(const struct answer *answer, int64_t wall_ms, int64_t *date_ms)
{
    const char *date = answer_field(answer, "Date");
    return date != NULL && http_date_read(view_of(date), wall_ms, date_ms);
}

int64_t retry_after_ms(const struct answer *answer, int64_t wall_ms)
{
    int64_t server_now_ms = wall_ms;
    (void) answer_date(answer, wall_ms, &server_now_ms);
    int64_t largest = -1;
    size_t at = 0;
    for (const char *line; (line = answer_field_next(answer, "Retry-After", &at)) != NULL;) {
        int64_t wait_ms = 0;
        if (retry_after_read(view_of(line), server_now_ms, &wait_ms) && wait_ms > largest) {
            largest = wait_ms;
        }
    }
    return largest;
}

int64_t retry_after_skew_ms(const struct answer *answer, int64_t wall_ms)
{
    int64_t date_ms = 0;
    return answer_date(answer, wall_ms, &date_ms) ? date_ms - wall_ms : 0;
}
