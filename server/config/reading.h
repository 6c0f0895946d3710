/* reading.h - private to server/config: one reading of all sources in progress (read.c), and its command line (read_flags.c).
 * Start-up thread only. */
#ifndef NONBIS_SERVER_CONFIG_READING_H
#define NONBIS_SERVER_CONFIG_READING_H

#include "schema/limits.h"
#include "server/config/values.h"

struct reading {
    struct settings *settings;
    enum settings_action action;
    bool check; /* --check was given, whatever else was */
    struct buf *errors;
    bool wrong_usage, wrong_configuration;
    bool bad[SETTING_ROWS_MAX]; /* rows with a refused value */
    struct view routes[LIMIT_ROUTES];
    size_t route_count;
    bool too_many_routes;
};

/* "SOURCE: PROBLEM", without the end of the line. */
void reading_tell(struct reading *reading, struct view source, const char *problem);
/* A setting of that name does not exist: offers the nearest one, written as it would be written there. */
void reading_tell_unknown_setting(struct reading *reading, struct view name, bool variable);
/* Takes a value for a row; `from` is how a message names the place. */
void reading_take_value(struct reading *reading, const struct setting_row *row, struct view value,
                        enum setting_source source, struct view from);

/* A stronger wish wins. */
void reading_take_action(struct reading *reading, enum settings_action action);
/* One argument, and its value when that stands in `next`. Returns how many arguments that were. */
int reading_take_argument(struct reading *reading, const char *argument, const char *next);

#endif
