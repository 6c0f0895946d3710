/* values.c - see values.h. Numbers with units, words, lists and texts; and the field of a row, whatever its kind. */
#include "server/config/values.h"

#include "server/base/memory.h"
#include "server/http/headers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_BYTES_MAX = 60, /* of a foreign text in a message */
    TEXT_BYTES_MAX = 4096 /* PATH_MAX: nothing longer is a useful file name, address or URL */
};

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit byte_units[] = {
    { "B", 1 },     { "KiB", 1 << 10 }, { "MiB", 1 << 20 },   { "GiB", 1 << 30 }, { "KB", 1000 },
    { "kB", 1000 }, { "MB", 1000000 },  { "GB", 1000000000 }, { NULL, 0 },
};
static const struct unit time_units[] = {
    { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 60 * 60 * 1000 }, { "d", 24 * 60 * 60 * 1000 }, { NULL, 0 },
};
static const struct unit rate_units[] = { { "/h", 1 }, { "/m", 60 }, { "/s", 60 * 60 }, { NULL, 0 } };

void shown_write(struct view text, struct buf *out)
{
    buf_append_text(out, "\"");
    for (size_t i = 0; i < text.len && i < SHOWN_BYTES_MAX; i++) {
        unsigned char byte = (unsigned char) text.ptr[i];
        if (byte < 0x20 || byte >= 0x7F) {
            buf_printf(out, "\\x%02x", byte);
        } else {
            buf_append_bytes(out, text.ptr + i, 1);
        }
    }
    buf_append_text(out, text.len > SHOWN_BYTES_MAX ? "...\"" : "\"");
}

static bool refuse(struct view text, struct buf *error)
{
    buf_append_text(error, ", got ");
    shown_write(text, error);
    return false;
}

/* ---------------------------------------------------------------------------------------- numbers and units */

/* Cuts `text` behind its leading digits. False: there are none, or they pass 63 bits. */
static bool number_split(struct view text, int64_t *number, struct view *unit)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    uint64_t value = 0;
    *unit = view_make(text.ptr + digits, text.len - digits);
    if (!view_to_uint64(view_make(text.ptr, digits), &value) || value > INT64_MAX) {
        return false;
    }
    *number = (int64_t) value;
    return true;
}

static const struct unit *unit_find(const struct unit *units, struct view name)
{
    for (; units->name != NULL; units++) {
        if (view_equal(view_of(units->name), name)) {
            return units;
        }
    }
    return NULL;
}

/* What somebody meant who wrote 8k, 8kib or 5S; NULL when that is not clear. */
static const struct unit *unit_guess(const struct unit *units, struct view name)
{
    for (; units->name != NULL; units++) {
        struct view have = view_of(units->name);
        bool letter = units == byte_units + 1 || units == byte_units + 2 || units == byte_units + 3;
        if (view_equal_nocase(have, name) || (letter && view_equal_nocase(view_make(have.ptr, 1), name))) {
            return units;
        }
    }
    return NULL;
}

/* A number with a unit. */
struct quantity {
    const struct unit *units;
    int64_t plain; /* what a missing unit means; 0: nothing, it is refused */
    const char *name, *examples;
    void (*write)(int64_t number, struct buf *out);
    const char *usual; /* the unit that is offered for a missing one */
};

static const struct quantity sizes = { byte_units, 1, "a size", "512, 8KiB, 1MiB", bytes_write, NULL };
static const struct quantity durations = { time_units, 0, "a duration", "250ms, 2s, 5m, 1h, 30d", duration_write, "s" };
static const struct quantity rates = { rate_units, 0, "a rate", "100/s, 30/m, 500/h", rate_write, "/s" };

static bool quantity_read(struct view text, const struct quantity *quantity, int64_t min, int64_t max, int64_t *result,
                          struct buf *error)
{
    const struct unit *units = quantity->units;
    int64_t number = 0;
    struct view unit_name = { NULL, 0 };
    bool has_number = number_split(text, &number, &unit_name);
    const struct unit *unit = has_number ? unit_find(units, unit_name) : NULL;
    int64_t factor = unit != NULL ? unit->factor : has_number && unit_name.len == 0 ? quantity->plain : 0;
    if (factor != 0 && number <= max / factor && number * factor >= min) {
        *result = number * factor;
        return true;
    }
    buf_printf(error, "expected %s from ", quantity->name);
    quantity->write(min, error);
    buf_append_text(error, " to ");
    quantity->write(max, error);
    buf_printf(error, " (such as %s)", quantity->examples);
    refuse(text, error);
    if (factor != 0 || !has_number) {
        return false;
    }
    const struct unit *guess = unit_guess(units, view_trim(unit_name)); /* also of "100 MB" */
    if (unit_name.len == 0) {
        buf_printf(error, ": the unit is missing; did you mean %lld%s?", (long long) number, quantity->usual);
    } else if (guess != NULL && guess->factor > 0 && number <= max / guess->factor && number * guess->factor >= min) {
        buf_printf(error, "; did you mean %lld%s?", (long long) number, guess->name);
    } else if (guess != NULL) {
        buf_printf(error, "; it is written %lld%s, and is out of that range", (long long) number, guess->name);
    }
    return false;
}

bool bytes_read(struct view text, int64_t min, int64_t max, int64_t *bytes, struct buf *error)
{
    return quantity_read(text, &sizes, min, max, bytes, error);
}

bool duration_read(struct view text, int64_t min_ms, int64_t max_ms, int64_t *ms, struct buf *error)
{
    return quantity_read(text, &durations, min_ms, max_ms, ms, error);
}

bool rate_read(struct view text, int64_t min, int64_t max, int64_t *per_hour, struct buf *error)
{
    if (min == 0 && view_equal(text, VIEW("0"))) {
        *per_hour = 0; /* of whatever */
        return true;
    }
    return quantity_read(text, &rates, min, max, per_hour, error);
}

bool count_read(struct view text, int64_t min, int64_t max, int64_t *count, struct buf *error)
{
    uint64_t number = 0;
    if (view_to_uint64(text, &number) && number >= (uint64_t) min && number <= (uint64_t) max) {
        *count = (int64_t) number;
        return true;
    }
    buf_printf(error, "expected a whole number from %lld to %lld", (long long) min, (long long) max);
    return refuse(text, error);
}

void bytes_write(int64_t bytes, struct buf *out)
{
    /* KiB, MiB, GiB stand in rising order behind B. */
    int unit = 0;
    while (unit < 3 && bytes != 0 && bytes % byte_units[unit + 1].factor == 0) {
        unit++;
    }
    buf_printf(out, "%lld%s", (long long) (bytes / byte_units[unit].factor), unit == 0 ? "" : byte_units[unit].name);
}

void duration_write(int64_t ms, struct buf *out)
{
    /* A larger unit only from where people use it: 120s and not 2m, 720h and not 30d. */
    static const int64_t usual_from_ms[] = { 0, 0, 300 * 1000, 60 * 60 * 1000, INT64_C(721) * 60 * 60 * 1000 };
    int unit = 4;
    while (unit > 0 && (ms % time_units[unit].factor != 0 || ms < usual_from_ms[unit])) {
        unit--;
    }
    buf_printf(out, "%lld%s", (long long) (ms / time_units[unit].factor), time_units[unit].name);
}

void rate_write(int64_t per_hour, struct buf *out)
{
    int unit = per_hour % rate_units[2].factor == 0 ? 2 : per_hour % rate_units[1].factor == 0 ? 1 : 0;
    buf_printf(out, "%lld%s", (long long) (per_hour / rate_units[unit].factor),
               per_hour == 0 ? "" : rate_units[unit].name);
}

/* ---------------------------------------------------------------------------------------- lists of names */

static bool name_is_new(const struct setting_names *names, struct view name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (view_equal_nocase(names->items[i], name)) {
            return false;
        }
    }
    return true;
}

bool names_read(struct view text, struct setting_names *names, struct buf *error)
{
    struct setting_names made = { .text = memory_new(text.len + 1), .count = 0 };
    size_t len = 0;
    struct view rest = text;
    struct view name;
    const char *fault = NULL;
    while (fault == NULL && view_next_item(&rest, ',', &name)) {
        if (!header_is_token(name)) {
            fault = "expected field names separated by commas";
        } else if (!name_is_new(&made, name)) {
            fault = "expected every name once";
        } else if (made.count == SETTING_NAMES_MAX) {
            fault = "expected at most 16 names";
        } else {
            made.text[len] = ',';
            len += made.count > 0;
            memcpy(made.text + len, name.ptr, name.len);
            made.items[made.count++] = view_make(made.text + len, name.len);
            len += name.len;
        }
    }
    if (fault == NULL && made.count == 0 && text.len > 0) {
        fault = "expected field names separated by commas, or nothing"; /* no guard is somebody's wish, not a slip */
    }
    if (fault != NULL) {
        free(made.text);
        buf_append_text(error, fault);
        return refuse(text, error);
    }
    made.text[len] = '\0';
    free(names->text);
    *names = made;
    return true;
}

/* ---------------------------------------------------------------------------------------- words and texts */

static bool word_read(struct view text, const char *const *words, int *value, struct buf *error)
{
    for (int word = 0; words[word] != NULL; word++) {
        if (view_equal(text, view_of(words[word]))) {
            *value = word;
            return true;
        }
    }
    buf_append_text(error, "expected ");
    for (int word = 0; words[word] != NULL; word++) {
        buf_append_text(error, word == 0 ? "" : words[word + 1] == NULL ? " or " : ", ");
        buf_append_text(error, words[word]);
    }
    refuse(text, error);
    const char *near = nearest_name(text, words);
    if (near != NULL) {
        buf_printf(error, "; did you mean %s?", near);
    }
    return false;
}

static const char *const bool_words[] = { "off", "on", NULL };

static bool bool_read(struct view text, bool *value, struct buf *error)
{
    static const char *const others[][2] = { { "false", "off" }, { "no", "off" }, { "0", "off" },
                                             { "true", "on" },   { "yes", "on" }, { "1", "on" } };
    int word = 0;
    if (word_read(text, bool_words, &word, error)) {
        *value = word == 1;
        return true;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (view_equal_nocase(text, view_of(others[i][0]))) {
            buf_printf(error, "; did you mean %s?", others[i][1]);
        }
    }
    return false;
}

static bool text_read(struct view text, const struct setting_row *row, char **field, struct buf *error)
{
    bool clean = text.len <= TEXT_BYTES_MAX;
    for (size_t i = 0; clean && i < text.len; i++) {
        clean = (unsigned char) text.ptr[i] >= 0x20 && text.ptr[i] != 0x7F;
    }
    if (!clean) {
        buf_append_text(error, "expected at most 4096 bytes without control characters");
        return refuse(text, error);
    }
    bool may_be_empty = row->default_text[0] == '\0';
    if (text.len == 0 && !may_be_empty) {
        buf_append_text(error, "expected a value, got nothing");
        return false;
    }
    if (text.len > 0 && row->check != NULL && !row->check(text, error)) {
        return refuse(text, error);
    }
    free(*field);
    *field = memory_text(text);
    return true;
}

/* ---------------------------------------------------------------------------------------- the field of a row */

static void *field_of(const struct settings *settings, const struct setting_row *row)
{
    return (char *) (uintptr_t) settings + row->offset;
}

static_assert(sizeof(enum log_level) == sizeof(int) && sizeof(enum log_format) == sizeof(int), "words are read as int");

bool value_read(struct settings *settings, const struct setting_row *row, struct view text, struct buf *error)
{
    void *field = field_of(settings, row);
    /* Two quotes are the printed form of an empty value. */
    struct view value = view_equal(text, VIEW("\"\"")) ? view_make(text.ptr, 0) : text;
    switch (row->kind) {
    case SETTING_BYTES:
        return bytes_read(value, row->min, row->max, field, error);
    case SETTING_MS:
        return duration_read(value, row->min, row->max, field, error);
    case SETTING_COUNT_OF:
        return count_read(value, row->min, row->max, field, error);
    case SETTING_RATE:
        return rate_read(value, row->min, row->max, field, error);
    case SETTING_NAMES:
        return names_read(value, field, error);
    case SETTING_TEXT:
        return text_read(value, row, field, error);
    case SETTING_BOOL:
        return bool_read(value, field, error);
    case SETTING_WORD:
        return word_read(value, row->words, field, error);
    }
    return false;
}

void value_write(const struct settings *settings, const struct setting_row *row, struct buf *out)
{
    const void *field = field_of(settings, row);
    const char *text = NULL;
    switch (row->kind) {
    case SETTING_BYTES:
        bytes_write(*(const int64_t *) field, out);
        return;
    case SETTING_MS:
        duration_write(*(const int64_t *) field, out);
        return;
    case SETTING_COUNT_OF:
        buf_printf(out, "%lld", (long long) *(const int64_t *) field);
        return;
    case SETTING_RATE:
        rate_write(*(const int64_t *) field, out);
        return;
    case SETTING_NAMES:
        text = ((const struct setting_names *) field)->text;
        break;
    case SETTING_TEXT:
        text = *(char *const *) field;
        break;
    case SETTING_BOOL:
        text = bool_words[*(const bool *) field];
        break;
    case SETTING_WORD:
        text = row->words[*(const int *) field];
        break;
    }
    buf_append_text(out, text == NULL || text[0] == '\0' ? "\"\"" : text);
}

void value_free(struct settings *settings, const struct setting_row *row)
{
    if (row->kind == SETTING_TEXT) {
        char **field = field_of(settings, row);
        free(*field);
        *field = NULL;
    } else if (row->kind == SETTING_NAMES) {
        struct setting_names *names = field_of(settings, row);
        free(names->text);
        *names = (struct setting_names){ .text = NULL };
    }
}

void range_write(const struct setting_row *row, struct buf *out)
{
    switch (row->kind) {
    case SETTING_BYTES:
        bytes_write(row->min, out);
        buf_append_text(out, " to ");
        bytes_write(row->max, out);
        break;
    case SETTING_MS:
        duration_write(row->min, out);
        buf_append_text(out, " to ");
        duration_write(row->max, out);
        break;
    case SETTING_COUNT_OF:
        buf_printf(out, "%lld to %lld", (long long) row->min, (long long) row->max);
        break;
    case SETTING_RATE:
        rate_write(row->min, out);
        buf_append_text(out, " to ");
        rate_write(row->max, out);
        break;
    case SETTING_BOOL:
        buf_append_text(out, "on or off");
        break;
    case SETTING_WORD:
        for (int word = 0; row->words[word] != NULL; word++) {
            buf_append_text(out, word > 0 ? "|" : "");
            buf_append_text(out, row->words[word]);
        }
        break;
    case SETTING_TEXT:
    case SETTING_NAMES:
        break;
    }
}
