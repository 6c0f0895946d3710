/* read_flags.c - the command line: which flag it is, whether it wants a value, and what was probably meant. Start-up thread only. */
#include "server/config/reading.h"

#include <string.h>

enum plain_flag {
    FLAG_ROUTE,
    FLAG_SET,
    FLAG_BENCH_STORE,
    FLAG_CHECK_STORE, /* the last that wants a value */
    FLAG_CHECK,
    FLAG_PRINT_CONFIG,
    FLAG_VERSION,
    FLAG_HELP,
    FLAG_COUNT
};
static const char *const plain_flags[FLAG_COUNT] = { "--route", "--set",          "--bench-store", "--check-store",
                                                     "--check", "--print-config", "--version",     "--help" };

enum { BENCH_MS_MIN = 10, BENCH_MS_MAX = 10 * 60 * 1000 }; /* each measurement of --bench-store */

/* The two short forms that everybody tries. */
static struct view flag_long(struct view given)
{
    return view_equal(given, VIEW("-h")) ? VIEW("--help") : view_equal(given, VIEW("-V")) ? VIEW("--version") : given;
}

/* As `flag`, when '-' and '_' count alike behind the two dashes. */
static bool flag_is(struct view given, const char *flag)
{
    size_t at = 0;
    while (at < given.len && flag[at] != '\0' && (at > 2 && given.ptr[at] == '_' ? '-' : given.ptr[at]) == flag[at]) {
        at++;
    }
    return at == given.len && flag[at] == '\0';
}

static const struct setting_row *row_of_flag(struct view given)
{
    for (const struct setting_row *row = setting_table; row < setting_table + setting_table_count; row++) {
        if (row->flag != NULL && flag_is(given, row->flag)) {
            return row;
        }
    }
    return NULL;
}

static void tell_unknown_flag(struct reading *reading, struct view flag)
{
    shown_write(flag, reading->errors);
    buf_append_text(reading->errors, ": unknown flag");
    const char *names[FLAG_COUNT + SETTING_ROWS_MAX + 1] = { NULL };
    size_t count = 0;
    while (count < FLAG_COUNT) {
        names[count] = plain_flags[count];
        count++;
    }
    for (size_t row = 0; row < setting_table_count; row++) {
        if (setting_table[row].flag != NULL) {
            names[count++] = setting_table[row].flag;
        }
    }
    const struct setting_row *row = flag.len > 2 ? setting_find(view_make(flag.ptr + 2, flag.len - 2)) : NULL;
    const char *near = nearest_name(flag, names);
    if (row != NULL) {
        buf_printf(reading->errors, "; did you mean --set %s=VALUE?\n", row->name);
    } else if (near != NULL) {
        buf_printf(reading->errors, "; did you mean %s?\n", near);
    } else {
        buf_append_text(reading->errors, "; --help lists them\n");
    }
    reading->wrong_usage = true;
}

/* --set NAME=VALUE */
static void take_set(struct reading *reading, struct view text)
{
    const char *equals = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
    if (equals == NULL) {
        reading_tell(reading, VIEW("--set"), "expected NAME=VALUE, got ");
        shown_write(text, reading->errors);
        buf_append_text(reading->errors, "\n");
        reading->wrong_usage = true;
        return;
    }
    struct view name = view_make(text.ptr, (size_t) (equals - text.ptr));
    struct view value = view_make(equals + 1, text.len - name.len - 1);
    const struct setting_row *row = setting_find(name);
    if (row == NULL) {
        reading_tell(reading, VIEW("--set "), "");
        reading->errors->len -= 2;
        shown_write(name, reading->errors);
        buf_append_text(reading->errors, ": ");
        reading_tell_unknown_setting(reading, name, false);
        return;
    }
    struct buf from;
    buf_init(&from, 256);
    buf_printf(&from, "--set %s", row->name);
    reading_take_value(reading, row, value, SOURCE_SET, buf_view(&from));
    buf_fini(&from);
}

static void take_route_text(struct reading *reading, struct view text)
{
    if (reading->route_count < LIMIT_ROUTES) {
        reading->routes[reading->route_count++] = text;
    } else if (!reading->too_many_routes) {
        reading_tell(reading, VIEW("--route"), "expected at most 256 routes\n");
        reading->too_many_routes = reading->wrong_configuration = true;
    }
}

/* ACTION_HELP is the last of the enum. */
void reading_take_action(struct reading *reading, enum settings_action action)
{
    reading->action = action > reading->action ? action : reading->action;
}

/* --bench-store DURATION */
static void take_bench(struct reading *reading, struct view text)
{
    size_t before = reading->errors->len;
    reading_tell(reading, VIEW("--bench-store"), "");
    reading_take_action(reading, ACTION_BENCH_STORE);
    if (duration_read(text, BENCH_MS_MIN, BENCH_MS_MAX, &reading->settings->bench_each_ms, reading->errors)) {
        reading->errors->len = before;
        return;
    }
    buf_append_text(reading->errors, "\n");
    reading->wrong_configuration = true;
}

static void take_flag_with_value(struct reading *reading, const struct setting_row *row, int plain, struct view value)
{
    if (row != NULL) {
        reading_take_value(reading, row, value, SOURCE_FLAG, view_of(row->flag));
    } else if (plain == FLAG_SET) {
        take_set(reading, value);
    } else if (plain == FLAG_BENCH_STORE) {
        take_bench(reading, value);
    } else if (plain == FLAG_CHECK_STORE) {
        reading_take_value(reading, setting_find(VIEW("store")), value, SOURCE_FLAG, VIEW("--check-store"));
        reading_take_action(reading, ACTION_CHECK_STORE);
    } else {
        take_route_text(reading, value);
    }
}

static void take_flag_alone(struct reading *reading, int plain)
{
    static const enum settings_action actions[FLAG_COUNT] = { [FLAG_CHECK] = ACTION_CHECK,
                                                              [FLAG_PRINT_CONFIG] = ACTION_PRINT_CONFIG,
                                                              [FLAG_VERSION] = ACTION_VERSION,
                                                              [FLAG_HELP] = ACTION_HELP };
    reading->check = reading->check || plain == FLAG_CHECK;
    reading_take_action(reading, actions[plain]);
}

int reading_take_argument(struct reading *reading, const char *argument, const char *next)
{
    struct view text = view_of(argument);
    if (!view_starts_with(text, VIEW("-")) || view_equal(text, VIEW("-")) || view_equal(text, VIEW("--"))) {
        shown_write(text, reading->errors);
        buf_append_text(reading->errors, ": stray argument; every argument is a flag or the value of one\n");
        reading->wrong_usage = true;
        return 1;
    }
    const char *equals = memchr(text.ptr, '=', text.len);
    struct view flag = flag_long(view_make(text.ptr, equals != NULL ? (size_t) (equals - text.ptr) : text.len));
    const struct setting_row *row = row_of_flag(flag);
    int plain = 0;
    while (plain < FLAG_COUNT && !flag_is(flag, plain_flags[plain])) {
        plain++;
    }
    bool next_is_value = next != NULL && !view_starts_with(flag_long(view_of(next)), VIEW("--"));
    if (row == NULL && plain == FLAG_COUNT) {
        tell_unknown_flag(reading, flag);
        return equals == NULL && next_is_value ? 2 : 1; /* what follows was probably its value: no second mistake */
    }
    bool wants_value = row != NULL || plain <= FLAG_CHECK_STORE;
    if (wants_value && equals == NULL && !next_is_value) {
        reading_tell(reading, flag, "expected a value behind it\n");
        reading->wrong_usage = true;
        return 1;
    }
    if (!wants_value && equals != NULL) {
        reading_tell(reading, flag, "takes no value\n");
        reading->wrong_usage = true;
        return 1;
    }
    if (!wants_value) {
        take_flag_alone(reading, plain);
        return 1;
    }
    take_flag_with_value(reading, row, plain, view_of(equals != NULL ? equals + 1 : next));
    return equals != NULL ? 1 : 2;
}
