/* print.c - the settings in force, in a form that can be read back, and the text of --help. No state; any thread. */
#include "server/config/values.h"

enum {
    HELP_NAME_COLUMNS = 22, /* the longest name is allow_close_delimited */
    HELP_VALUE_COLUMNS = 26 /* "1MiB (1KiB to 64MiB)"; longer ones take a line of their own */
};

void variable_name_write(const char *row_name, struct buf *out)
{
    buf_append_text(out, "NONBIS_");
    for (; *row_name != '\0'; row_name++) {
        char c = *row_name >= 'a' && *row_name <= 'z' ? (char) (*row_name - 'a' + 'A')
                 : *row_name == '.'                   ? '_'
                                                      : *row_name;
        buf_append_bytes(out, &c, 1);
    }
}

void source_write(const struct settings *settings, const struct setting_row *row, struct buf *out)
{
    switch (settings->sources[row - setting_table]) {
    case SOURCE_DEFAULT:
        buf_append_text(out, "default");
        break;
    case SOURCE_ENVIRONMENT:
        buf_append_text(out, "environment ");
        variable_name_write(row->name, out);
        break;
    case SOURCE_FLAG:
        buf_printf(out, "flag %s", row->flag);
        break;
    case SOURCE_SET:
        buf_append_text(out, "flag --set");
        break;
    }
}

void settings_place_write(const struct settings *settings, const char *name, struct buf *out)
{
    const struct setting_row *row = setting_find(view_of(name));
    switch (settings->sources[row - setting_table]) {
    case SOURCE_DEFAULT:
        buf_append_text(out, row->name);
        break;
    case SOURCE_ENVIRONMENT:
        variable_name_write(row->name, out);
        break;
    case SOURCE_FLAG:
        buf_append_text(out, row->flag);
        break;
    case SOURCE_SET:
        buf_printf(out, "--set %s", row->name);
        break;
    }
}

static void option_write(struct buf *out, const char *name, int64_t ms)
{
    buf_printf(out, " %s=", name);
    duration_write(ms, out);
}

static void statuses_write(struct buf *out, const char *name, const struct status_set *set)
{
    bool any = false;
    for (int status = 100; status < 600; status++) {
        if (status_set_has(set, status)) {
            if (any) {
                buf_append_text(out, ",");
            } else {
                buf_printf(out, " %s=", name);
            }
            buf_append_uint(out, (uint64_t) status);
            any = true;
        }
    }
}

static void route_write(const struct route *route, struct buf *out)
{
    buf_printf(out, "route = \"%.*s %.*s\" key=%s", VIEW_ARGS(route->method), VIEW_ARGS(route->pattern),
               route->key_required ? "required" : "optional");
    option_write(out, "ttl", route->retention.ttl_ms);
    option_write(out, "tombstone_ttl", route->retention.tombstone_ttl_ms);
    option_write(out, "answer_timeout", route->answer_timeout_ms);
    option_write(out, "hard_timeout", route->hard_timeout_ms);
    if (route->in_flight_wait_ms > 0) {
        option_write(out, "in_flight_wait", route->in_flight_wait_ms);
    }
    statuses_write(out, "release", &route->rules.release);
    statuses_write(out, "unknown", &route->rules.unknown);
    if (route->replay_drop.len > 0) {
        buf_append_text(out, " replay_drop=");
        buf_append(out, route->replay_drop);
    }
}

void settings_print(const struct settings *settings, struct buf *out)
{
    for (const struct setting_row *row = setting_table; row < setting_table + setting_table_count; row++) {
        buf_printf(out, "%s = ", row->name);
        value_write(settings, row, out);
        buf_append_text(out, "  # ");
        source_write(settings, row, out);
        buf_append_text(out, "\n");
    }
    for (unsigned i = 0; i < settings->routes.count; i++) {
        route_write(&settings->routes.items[i], out);
        buf_append_text(out, settings->routes_default ? "  # default\n" : "  # flag --route\n");
    }
}

/* ------------------------------------------------------------------------------------------------ --help */

static void pad_to(struct buf *out, size_t line_start, size_t column)
{
    while (!out->failed && out->len - line_start < column) {
        buf_append_text(out, " ");
    }
}

/* "  body_max              1MiB (1KiB to 64MiB)      longest body ..." */
static void help_row(const struct setting_row *row, struct buf *out)
{
    size_t start = out->len;
    buf_printf(out, "  %s", row->name);
    pad_to(out, start, 2 + HELP_NAME_COLUMNS);
    size_t value_start = out->len;
    buf_append_text(out, row->default_text[0] == '\0' ? "-" : row->default_text);
    size_t before_range = out->len;
    buf_append_text(out, " (");
    range_write(row, out);
    if (out->len == before_range + 2) {
        out->len = before_range; /* a text or a list has no range */
    } else {
        buf_append_text(out, ")");
    }
    if (out->len - value_start >= HELP_VALUE_COLUMNS) {
        buf_append_text(out, "\n");
        start = out->len;
    }
    pad_to(out, start, 2 + HELP_NAME_COLUMNS + HELP_VALUE_COLUMNS);
    buf_printf(out, "%s\n", row->help);
}

static void help_own_flags(struct buf *out)
{
    for (const struct setting_row *row = setting_table; row < setting_table + setting_table_count; row++) {
        if (row->flag != NULL) {
            size_t start = out->len;
            buf_printf(out, "  %s VALUE", row->flag);
            pad_to(out, start, 2 + HELP_NAME_COLUMNS);
            buf_printf(out, "%s\n", row->help);
        }
    }
}

static const char help_start[] =
    "nonbisd - a reverse proxy that forwards every keyed write at most once and replays its answer\n"
    "\n"
    "usage: nonbisd --upstream URL [FLAG ...]\n"
    "\n"
    "examples:\n"
    "  nonbisd --upstream http://127.0.0.1:3000\n"
    "      every POST and PATCH on 127.0.0.1:8620 needs an Idempotency-Key; everything else passes through\n"
    "  nonbisd --upstream http://127.0.0.1:3000 --route 'POST /orders/* key=optional ttl=1h' --set body_max=64KiB\n"
    "      only POSTs below /orders are protected, and only when they carry a key\n"
    "  nonbisd --upstream http://127.0.0.1:3000 --listen 127.0.0.1:0 --store memory --log-format json\n"
    "      for a test: a port from the kernel (the start line on stderr tells it), nothing kept\n"
    "  NONBIS_UPSTREAM=http://127.0.0.1:3000 nonbisd --print-config\n"
    "      what a start would use, and where each value comes from\n"
    "\n"
    "flags (--flag VALUE or --flag=VALUE; a later one wins):\n";

static const char help_flags[] =
    "  --route TEXT          protects 'METHOD PATH [OPTION=VALUE ...]'; repeatable, the first that matches counts.\n"
    "                        METHOD may be *, PATH may end in *. Options: key=required|optional, ttl=,\n"
    "                        tombstone_ttl=, answer_timeout=, hard_timeout= (as the settings below),\n"
    "                        in_flight_wait= (for the outcome of a running command),\n"
    "                        release=401,403 (these statuses mean: not executed), unknown=500 (nobody knows),\n"
    "                        replay_drop=Name,Name (fields left out of replays).\n"
    "                        Without --route: 'POST /*' and 'PATCH /*', key required\n"
    "  --set NAME=VALUE      any setting; repeatable\n"
    "  --bench-store TIME    measures what the disk of --store gives (five measurements of TIME, such as 1s; in\n"
    "                        files of its own beside the store, which is not touched), and ends\n"
    "  --check-store FILE    reads all of a store that no server has open and tells what is damaged in it, changing\n"
    "                        nothing, and ends\n"
    "  --check               tells every mistake in these settings, and ends; it touches neither the store nor\n"
    "                        the addresses\n"
    "  --print-config        prints the settings in force with their sources, and ends\n"
    "  --version, -V         prints the version, and ends\n"
    "  --help, -h            prints this, and ends\n"
    "\n"
    "settings: name, default, what is accepted. A flag counts before the environment (NONBIS_BODY_MAX=64KiB),\n"
    "and that before the default. Sizes: 512, 8KiB, 1MiB, 1MB. Durations: 250ms, 2s, 5m, 1h, 30d. Rates: 30/m.\n";

static const char help_end[] =
    "\n"
    "The state directory is $STATE_DIRECTORY, else $XDG_STATE_HOME/nonbis, else ~/.local/state/nonbis.\n"
    "\n"
    "exit codes:\n"
    "  0 ended as asked   1 a second signal   64 wrong usage   69 address or upstream unusable\n"
    "  70 no random source, or standard output could not be written   73 store cannot be created or opened\n"
    "  74 store damaged, foreign, newer, locked, missing, or failed while running   78 wrong configuration\n"
    "\n"
    "signals:\n"
    "  TERM, INT   drain: no new commands, running ones finish within drain_timeout, then exit 0\n"
    "  a second    leave at once, exit 1; what was recorded is kept\n";

void settings_help(struct buf *out)
{
    buf_append_text(out, help_start);
    help_own_flags(out);
    buf_append_text(out, help_flags);
    for (const struct setting_row *row = setting_table; row < setting_table + setting_table_count; row++) {
        help_row(row, out);
    }
    buf_append_text(out, help_end);
}
