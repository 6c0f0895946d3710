/* read.c - settings from defaults, environment and command line, with every problem found in one run. Owns the order of precedence
 * and where each value came from; the command line is in read_flags.c, what a value may be in values.c, check.c and route_parse.c.
 * Start-up thread only. */
#include "server/base/memory.h"
#include "server/config/reading.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_GOOD = 0, EXIT_USAGE = 64, EXIT_CONFIGURATION = 78 };

/* --------------------------------------------------------------------------------------- telling */

/* The name of a variable may hold any byte, and be of any length. */
static bool source_is_plain(struct view source)
{
    bool plain = source.len <= 100;
    for (size_t i = 0; i < source.len && plain; i++) {
        plain = source.ptr[i] >= 0x20 && source.ptr[i] < 0x7F;
    }
    return plain;
}

void reading_tell(struct reading *reading, struct view source, const char *problem)
{
    if (source_is_plain(source)) {
        buf_append(reading->errors, source);
    } else {
        shown_write(source, reading->errors);
    }
    buf_append_text(reading->errors, ": ");
    buf_append_text(reading->errors, problem);
}

/* A setting of that name does not exist: offers the nearest one, written as it would be written there. */
void reading_tell_unknown_setting(struct reading *reading, struct view name, bool variable)
{
    const char *names[SETTING_ROWS_MAX + 1] = { NULL };
    for (size_t row = 0; row < setting_table_count; row++) {
        names[row] = setting_table[row].name;
    }
    buf_append_text(reading->errors, "no setting has this name");
    const char *near = nearest_name(name, names);
    if (near == NULL) {
        buf_append_text(reading->errors, "; --help lists them\n");
    } else {
        buf_append_text(reading->errors, "; did you mean ");
        if (variable) {
            variable_name_write(near, reading->errors);
        } else {
            buf_append_text(reading->errors, near);
        }
        buf_append_text(reading->errors, "?\n");
    }
    reading->wrong_configuration = true;
}

void reading_take_value(struct reading *reading, const struct setting_row *row, struct view value,
                        enum setting_source source, struct view from)
{
    struct buf *errors = reading->errors;
    size_t before = errors->len;
    reading_tell(reading, from, "");
    if (value_read(reading->settings, row, value, errors)) {
        errors->len = before;
        reading->settings->sources[row - setting_table] = source;
        return;
    }
    buf_append_text(errors, "\n");
    reading->bad[row - setting_table] = true;
    reading->wrong_configuration = true;
}

/* --------------------------------------------------------------------------------------- defaults */

static const char *environment_find(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=') {
            return *environment + len + 1;
        }
    }
    return "";
}

/* nonbis.db in systemd's state directory (of several, separated by colons, the first), in the user's by the XDG base directory
 * specification (a relative one is ignored, as it demands), or in its default. False: none of them is known. */
static bool default_store(char *const *environment, struct buf *path)
{
    struct view managed = view_of(environment_find(environment, "STATE_DIRECTORY"));
    const char *colon = managed.len > 0 ? memchr(managed.ptr, ':', managed.len) : NULL;
    if (colon != NULL) {
        managed.len = (size_t) (colon - managed.ptr);
    }
    const struct {
        struct view folder;
        const char *below;
    } places[] = {
        { managed, "/nonbis.db" },
        { view_of(environment_find(environment, "XDG_STATE_HOME")), "/nonbis/nonbis.db" },
        { view_of(environment_find(environment, "HOME")), "/.local/state/nonbis/nonbis.db" },
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct view folder = places[i].folder;
        if (folder.len > 0 && folder.ptr[0] == '/') {
            while (folder.len > 0 && folder.ptr[folder.len - 1] == '/') {
                folder.len--;
            }
            buf_append(path, folder);
            buf_append_text(path, places[i].below);
            return true;
        }
    }
    return false;
}

static void take_defaults(struct reading *reading)
{
    for (const struct setting_row *row = setting_table; row < setting_table + setting_table_count; row++) {
        bool computed = row == setting_find(VIEW("store"));
        struct view value = computed ? VIEW("memory") : view_of(row->default_text);
        reading_take_value(reading, row, value, SOURCE_DEFAULT, view_of(row->name));
    }
}

/* After everything else: only now is it known whether the default is needed. */
static void settle_store(struct reading *reading, char *const *environment)
{
    const struct setting_row *row = setting_find(VIEW("store"));
    if (reading->settings->sources[row - setting_table] != SOURCE_DEFAULT || reading->bad[row - setting_table]) {
        return;
    }
    struct buf path;
    buf_init(&path, 8192);
    if (default_store(environment, &path)) {
        reading_take_value(reading, row, buf_view(&path), SOURCE_DEFAULT, VIEW("store"));
    } else {
        reading_tell(reading, VIEW("store"),
                     "no place is known for it: none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is an absolute "
                     "path; give --store FILE, or --store memory\n");
        reading->wrong_configuration = true;
    }
    buf_fini(&path);
}

/* --------------------------------------------------------------------------------------- environment */

/* Kubernetes and Docker give every container variables about a service named "nonbis": NONBIS_SERVICE_HOST=10.0.0.1,
 * NONBIS_SERVICE_PORT_HTTP=8620, NONBIS_PORT=tcp://10.0.0.1:8620, NONBIS_PORT_8620_TCP_ADDR=... They are nobody's slip. */
static bool variable_is_of_platform(struct view name, struct view value)
{
    if (view_equal(name, VIEW("PORT"))) {
        return view_starts_with(value, VIEW("tcp://")) || view_starts_with(value, VIEW("udp://"));
    }
    struct view port = VIEW("PORT_");
    return view_equal(name, VIEW("SERVICE_HOST")) || view_starts_with(name, VIEW("SERVICE_PORT")) ||
           (view_starts_with(name, port) && name.len > port.len && name.ptr[port.len] >= '0' &&
            name.ptr[port.len] <= '9');
}

/* What the command `nonbis` reads: both may run in one environment. */
static bool variable_is_of_client(struct view name)
{
    return view_equal(name, VIEW("URL")) || view_equal(name, VIEW("JOURNAL"));
}

static const struct setting_row *row_of_variable(struct view name)
{
    char lower[64];
    if (name.len >= sizeof(lower)) {
        return NULL;
    }
    for (size_t i = 0; i < name.len; i++) {
        bool capital = (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') || name.ptr[i] == '_';
        if (!capital) {
            return NULL;
        }
        lower[i] = name.ptr[i] == '_' ? '_' : (char) (name.ptr[i] - 'A' + 'a');
    }
    return setting_find(view_make(lower, name.len));
}

static void take_variable(struct reading *reading, struct view entry)
{
    struct view prefix = VIEW("NONBIS_");
    const char *equals = memchr(entry.ptr, '=', entry.len);
    if (!view_starts_with(entry, prefix) || equals == NULL) {
        return;
    }
    struct view variable = view_make(entry.ptr, (size_t) (equals - entry.ptr));
    struct view name = view_make(variable.ptr + prefix.len, variable.len - prefix.len);
    struct view value = view_make(equals + 1, entry.len - variable.len - 1);
    const struct setting_row *row = row_of_variable(name);
    if (row != NULL) {
        reading_take_value(reading, row, value, SOURCE_ENVIRONMENT, variable);
    } else if (view_equal(name, VIEW("ROUTE")) || view_equal(name, VIEW("ROUTES"))) {
        reading_tell(reading, variable, "routes are given by --route only\n");
        reading->wrong_configuration = true;
    } else if (!variable_is_of_client(name) && !variable_is_of_platform(name, value)) {
        reading_tell(reading, variable, "");
        reading_tell_unknown_setting(reading, name, true);
    }
}

/* --------------------------------------------------------------------------------------- routes */

/* The earlier route that takes every request which `route` could match, or NULL. */
static const struct route *route_in_front(const struct routes *routes, const struct route *route)
{
    for (unsigned i = 0; i < routes->count; i++) {
        const struct route *earlier = &routes->items[i];
        bool same_method = view_equal(earlier->method, VIEW("*")) || view_equal(earlier->method, route->method);
        /* A prefix covers a longer pattern as it covers a path: its star is just one more character there. */
        if (same_method && path_matches(earlier->pattern, route->pattern)) {
            return earlier;
        }
    }
    return NULL;
}

static void take_route(struct reading *reading, struct view text)
{
    struct routes *routes = &reading->settings->routes;
    struct buf *errors = reading->errors;
    size_t before = errors->len;
    struct route route;
    buf_append_text(errors, "--route ");
    shown_write(text, errors);
    buf_append_text(errors, ": ");
    if (!route_parse(&route, text, reading->settings, errors)) {
        buf_append_text(errors, "\n");
        reading->wrong_configuration = true;
        return;
    }
    const struct route *earlier = route_in_front(routes, &route);
    if (earlier != NULL) {
        buf_append_text(errors, "never reached, since an earlier route takes all of its requests: ");
        shown_write(view_of(earlier->text), errors);
        buf_append_text(errors, "; put the narrower one first\n");
        reading->wrong_configuration = true;
        route_fini(&route);
        return;
    }
    errors->len = before;
    route.index = routes->count;
    routes->items[routes->count++] = route;
}

static void settle_routes(struct reading *reading)
{
    struct settings *settings = reading->settings;
    settings->routes_default = reading->route_count == 0;
    if (settings->routes_default) {
        reading->routes[reading->route_count++] = VIEW("POST /*");
        reading->routes[reading->route_count++] = VIEW("PATCH /*");
    }
    settings->routes.items = memory_new(reading->route_count * sizeof(struct route));
    for (size_t i = 0; i < reading->route_count; i++) {
        take_route(reading, reading->routes[i]);
    }
}

/* --------------------------------------------------------------------------------------- the whole */

/* --help and --version are obeyed whatever else is wrong: they are what one asks when something is. No value can look like
 * them, since a value never starts with two dashes, and is not taken for one where it is -h or -V. */
static bool take_help(struct reading *reading, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            reading_take_action(reading, ACTION_HELP);
        } else if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            reading_take_action(reading, ACTION_VERSION);
        }
    }
    return reading->action != ACTION_RUN;
}

static void settle_tenant(struct settings *settings)
{
    struct view prefix = VIEW("header:");
    struct view tenant = view_of(settings->tenant);
    if (view_starts_with(tenant, prefix)) {
        settings->tenant_field = view_make(tenant.ptr + prefix.len, tenant.len - prefix.len);
    }
}

/* Whoever gives hard_timeout alone has not asked for the longer default of answer_timeout. */
static void settle_timeouts(struct settings *settings)
{
    size_t answer = (size_t) (setting_find(VIEW("answer_timeout")) - setting_table);
    if (settings->sources[answer] == SOURCE_DEFAULT && settings->answer_timeout_ms > settings->hard_timeout_ms) {
        settings->answer_timeout_ms = settings->hard_timeout_ms;
    }
}

/* What can be said only when all values are known. */
static void settle(struct reading *reading, char *const *environment)
{
    struct settings *settings = reading->settings;
    settle_store(reading, environment);
    settle_tenant(settings);
    settle_timeouts(settings);
    settle_routes(reading);
    if (!check_relations(settings, reading->bad, reading->errors)) {
        reading->wrong_configuration = true;
    }
    const struct setting_row *upstream = setting_find(VIEW("upstream"));
    bool needed = reading->action == ACTION_RUN || reading->check;
    /* A flag that could not be read may have been meant to be it. */
    if (needed && !reading->wrong_usage && settings->upstream[0] == '\0' && !reading->bad[upstream - setting_table]) {
        reading_tell(reading, VIEW("upstream"),
                     "expected a handler to forward to, such as --upstream http://127.0.0.1:3000\n");
        reading->wrong_configuration = true;
    }
}

int settings_read(struct settings *settings, enum settings_action *action, int argc, char *const *argv,
                  char *const *environment, struct buf *errors)
{
    struct reading reading = { .settings = settings, .action = ACTION_RUN, .errors = errors };
    *settings = (struct settings){ .listen = NULL };
    take_defaults(&reading);
    if (!take_help(&reading, argc, argv)) {
        for (char *const *entry = environment; *entry != NULL; entry++) {
            take_variable(&reading, view_of(*entry));
        }
        for (int i = 1; i < argc;) {
            i += reading_take_argument(&reading, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        }
        settle(&reading, environment);
    }
    *action = reading.action;
    return reading.wrong_usage ? EXIT_USAGE : reading.wrong_configuration ? EXIT_CONFIGURATION : EXIT_GOOD;
}

void settings_fini(struct settings *settings)
{
    for (size_t row = 0; row < setting_table_count; row++) {
        value_free(settings, &setting_table[row]);
    }
    for (unsigned i = 0; i < settings->routes.count; i++) {
        route_fini(&settings->routes.items[i]);
    }
    free(settings->routes.items);
    *settings = (struct settings){ .listen = NULL };
}
