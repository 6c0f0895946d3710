/* settings.h - the values a run works with, and the table that fills, prints and documents them. Written once at start; then read-only, any
 * thread. To add a setting: a field here, a row in table.c, and a test that shows its effect. */
#ifndef NONBIS_SERVER_CONFIG_SETTINGS_H
#define NONBIS_SERVER_CONFIG_SETTINGS_H

#include "server/base/log.h"
#include "server/core/route.h"

enum {
    SETTING_NAMES_MAX = 16,
    SETTING_ROWS_MAX = 48 /* room for the source of every row */
};

/* Where a value came from, weakest first; SOURCE_SET is the flag --set. */
enum setting_source { SOURCE_DEFAULT, SOURCE_ENVIRONMENT, SOURCE_FLAG, SOURCE_SET };

struct setting_names { /* a list of field names */
    char *text;        /* owned, comma separated */
    struct view items[SETTING_NAMES_MAX];
    size_t count;
};

struct settings {
    char *listen, *admin; /* ADDR:PORT, [ADDR]:PORT; admin also "off" */
    char *upstream;       /* URL; "" when none was given (never when the action is ACTION_RUN or ACTION_CHECK) */
    char *store;          /* file name or "memory" */
    enum log_level log_level;
    enum log_format log_format;

    int64_t body_max, response_keep_max;             /* bytes */
    int64_t request_header_max, response_header_max; /* bytes */
    int64_t connect_timeout_ms, answer_timeout_ms, hard_timeout_ms, passthrough_timeout_ms;
    int64_t header_deadline_ms, body_deadline_ms;
    int64_t client_idle_ms, upstream_idle_ms, drain_timeout_ms;
    int64_t ttl_ms, tombstone_ttl_ms, max_downtime_ms;
    int64_t loops; /* threads that serve clients */
    int64_t connections_max, running_max, store_queue_max;
    int64_t waiters_per_key, waiters_per_tenant, waiters_max, wait_max_ms;
    int64_t tenant_rate; /* new commands an hour; 0: no limit */
    int64_t tenant_burst, tenant_in_flight;
    int64_t sweep_batch;
    int64_t store_reserve;    /* bytes */
    int64_t replay_cache;     /* bytes, over all loops */
    char *tenant;             /* "none" or "header:NAME" */
    struct view tenant_field; /* NAME; empty for none */
    struct setting_names guard;
    bool allow_close_delimited;
    char *problem_prefix;
    int64_t bench_each_ms; /* of ACTION_BENCH_STORE */
    struct routes routes;
    bool routes_default;                           /* no --route was given */
    enum setting_source sources[SETTING_ROWS_MAX]; /* by row of setting_table */
};

enum setting_kind {
    SETTING_TEXT,
    SETTING_BYTES,
    SETTING_MS,
    SETTING_COUNT_OF,
    SETTING_RATE,
    SETTING_BOOL,
    SETTING_NAMES,
    SETTING_WORD
};

struct setting_row {
    const char *name;
    enum setting_kind kind;
    size_t offset; /* in struct settings */
    const char *default_text;
    int64_t min, max;         /* in bytes, milliseconds, pieces, or pieces an hour */
    const char *const *words; /* SETTING_WORD: allowed ones, NULL-terminated, in the enum's order */
    bool (*check)(struct view text, struct buf *error); /* SETTING_TEXT: its form; false and a sentence. May be NULL */
    const char *flag;                                   /* own flag, e.g. "--listen"; NULL: only --set */
    const char *help;
    const char *test; /* name of the test that shows the effect; checked by tools/check-settings */
};
extern const struct setting_row setting_table[];
extern const size_t setting_table_count;

/* What the command line asks for beside running. */
enum settings_action {
    ACTION_RUN,
    ACTION_CHECK,
    ACTION_PRINT_CONFIG,
    ACTION_BENCH_STORE,
    ACTION_CHECK_STORE, /* of settings.store */
    ACTION_VERSION,
    ACTION_HELP
};

/* Reads defaults, then the environment (NONBIS_ and the name in capitals), then flags. Every problem found is appended to `errors` as one
 * line ("--set body_max: expected ..., got "1X"; did you mean ...?"); all of them in one run. Returns 0, or the exit code (64 usage, 78 configuration).
 * --help and --version are obeyed whatever else is wrong. `settings` is initialised in every case; settings_fini frees it. */
int settings_read(struct settings *settings, enum settings_action *action, int argc, char *const *argv,
                  char *const *environment, struct buf *errors);
void settings_fini(struct settings *settings);

/* One "name = value  # source" line per row, routes as they are in force; durations and sizes in the units in which they may be read back. */
void settings_print(const struct settings *settings, struct buf *out);
void settings_help(struct buf *out);
/* Where a value was given, as messages name it: "--listen", "--set listen", "NONBIS_LISTEN"; of a default the name. */
void settings_place_write(const struct settings *settings, const char *name, struct buf *out);

/* "--route" text, e.g. "POST /orders/ * key=optional ttl=1h" (without the blank). On failure false and a sentence in `error`.
 * Options: key=required|optional ttl= tombstone_ttl= answer_timeout= hard_timeout= in_flight_wait= release=401,403 unknown=500 replay_drop=Name,Name */
bool route_parse(struct route *route, struct view text, const struct settings *defaults, struct buf *error);
void route_fini(struct route *route);

/* The entry of `names` (NULL-terminated) nearest to `word`, or NULL when none is near (edit distance over a third of the length). */
const char *nearest_name(struct view word, const char *const *names);

#endif
