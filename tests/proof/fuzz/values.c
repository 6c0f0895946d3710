/* values.c - fuzzes server/config/values.c: sizes, durations, counts and lists of names. The input is a value.
 *
 * What is taken lies in the range, is what simple arithmetic makes of it, and is written so that it is read again as the same. What is refused
 * changes nothing and is told in one harmless sentence. */
#include "server/config/values.h"

#include "server/http/headers.h"
#include "tests/proof/fuzz/fuzz.h"

enum { UNTOUCHED = -7, SENTENCE_MAX = 600 };

static const struct unit {
    const char *name;
    int64_t factor;
} byte_units[] = { { "", 1 },      { "B", 1 },     { "KiB", 1024 },   { "MiB", 1048576 },   { "GiB", 1073741824 },
                   { "KB", 1000 }, { "kB", 1000 }, { "MB", 1000000 }, { "GB", 1000000000 }, { NULL, 0 } },
  time_units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 } };

static const struct {
    int64_t min, max;
} ranges[] = { { 0, INT64_MAX }, { 10, 3600000 }, { 1024, 64 << 20 }, { 1, 1 } };

/* Whether `text` is a number with one of these units that makes `value`. */
static bool makes(struct view text, const struct unit *units, int64_t value)
{
    size_t digits = 0;
    uint64_t number = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    if (!view_to_uint64(view_make(text.ptr, digits), &number)) {
        return false;
    }
    struct view name = view_make(text.ptr + digits, text.len - digits);
    while (units->name != NULL && !view_equal(name, view_of(units->name))) {
        units++;
    }
    return units->name != NULL && value % units->factor == 0 && (uint64_t) (value / units->factor) == number;
}

static void told_must_hold(bool read, struct buf *error)
{
    MUST(read ? error->len == 0 : error->len > 0 && error->len < SENTENCE_MAX && !error->failed);
    MUST(fuzz_is_message(buf_view(error), false));
    buf_clear(error);
}

static bool quantity_must_hold(struct view text, bool is_time, int64_t min, int64_t max)
{
    bool (*reader)(struct view, int64_t, int64_t, int64_t *, struct buf *) = is_time ? duration_read : bytes_read;
    struct buf told, written;
    int64_t value = UNTOUCHED, again = UNTOUCHED;
    buf_init(&told, 4096);
    buf_init(&written, 100);
    bool read = reader(text, min, max, &value, &told);
    told_must_hold(read, &told);
    if (read) {
        MUST(value >= min && value <= max && makes(text, is_time ? time_units : byte_units, value));
        (is_time ? duration_write : bytes_write)(value, &written);
        MUST(reader(buf_view(&written), min, max, &again, &told) && again == value);
    } else {
        MUST(value == UNTOUCHED);
    }
    buf_fini(&told);
    buf_fini(&written);
    return read;
}

static bool count_must_hold(struct view text, int64_t min, int64_t max)
{
    struct buf told;
    int64_t value = UNTOUCHED;
    uint64_t number = 0;
    buf_init(&told, 4096);
    bool read = count_read(text, min, max, &value, &told);
    told_must_hold(read, &told);
    bool fits = view_to_uint64(text, &number) && number >= (uint64_t) min && number <= (uint64_t) max;
    MUST(read == fits && value == (fits ? (int64_t) number : UNTOUCHED));
    buf_fini(&told);
    return read;
}

static bool names_must_hold(struct view text)
{
    struct buf told;
    struct setting_names names = { .text = NULL }, again = { .text = NULL };
    buf_init(&told, 4096);
    bool read = names_read(text, &names, &told);
    told_must_hold(read, &told);
    MUST(read == (names.text != NULL) && names.count <= SETTING_NAMES_MAX);
    for (size_t i = 0; i < names.count; i++) {
        MUST(header_is_token(names.items[i]) && fuzz_is_inside(names.items[i], view_of(names.text)));
        for (size_t j = 0; j < i; j++) {
            MUST(!view_equal_nocase(names.items[i], names.items[j]));
        }
    }
    if (read) {
        MUST(names_read(view_of(names.text), &again, &told) && again.count == names.count);
        MUST(strcmp(names.text, again.text) == 0);
    }
    free(names.text);
    free(again.text);
    buf_fini(&told);
    return read && names.count > 0;
}

FUZZ_TARGET(values)
{
    bool taken = names_must_hold(input);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        taken = quantity_must_hold(input, false, ranges[i].min, ranges[i].max) || taken;
        taken = quantity_must_hold(input, true, ranges[i].min, ranges[i].max) || taken;
        taken = count_must_hold(input, ranges[i].min, ranges[i].max) || taken;
    }
    return taken;
}
