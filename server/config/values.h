/* values.h - private to server/config: the text of a value, read into its field and written back. No state; any thread.
 *
 * The readers want the whole text, exactly. On failure they return false, change nothing, and append one sentence
 * without a full stop to `error`: what was expected, and what was got. */
#ifndef NONBIS_SERVER_CONFIG_VALUES_H
#define NONBIS_SERVER_CONFIG_VALUES_H

#include "server/config/settings.h"

bool bytes_read(struct view text, int64_t min, int64_t max, int64_t *bytes, struct buf *error);
bool duration_read(struct view text, int64_t min_ms, int64_t max_ms, int64_t *ms, struct buf *error);
bool rate_read(struct view text, int64_t min, int64_t max, int64_t *per_hour, struct buf *error);
bool count_read(struct view text, int64_t min, int64_t max, int64_t *count, struct buf *error);

/* In the largest unit that loses nothing and is usual: 1MiB, 1500 ; 120s, 5m, 24h, 31d. */
void bytes_write(int64_t bytes, struct buf *out);
void duration_write(int64_t ms, struct buf *out);
void rate_write(int64_t per_hour, struct buf *out); /* 100/s, 30/m, 500/h; 0 */

/* Names separated by commas, each a token, none twice; "" is the empty list. `*names` is replaced. */
bool names_read(struct view text, struct setting_names *names, struct buf *error);

/* One row's field. `settings` keeps its old value on failure. */
bool value_read(struct settings *settings, const struct setting_row *row, struct view text, struct buf *error);
void value_write(const struct settings *settings, const struct setting_row *row, struct buf *out);
void value_free(struct settings *settings, const struct setting_row *row);

/* "10ms to 1h", "on or off", "text|json": what a row accepts; nothing for texts and lists. */
void range_write(const struct setting_row *row, struct buf *out);

/* The row of that name ('-' counts as '_'), or NULL. */
const struct setting_row *setting_find(struct view name);

/* "environment NONBIS_TTL", "flag --listen", "flag --set", "default". */
void source_write(const struct settings *settings, const struct setting_row *row, struct buf *out);
void variable_name_write(const char *row_name, struct buf *out); /* NONBIS_TTL */

/* In quotes, harmless and short: for messages about text from outside. */
void shown_write(struct view text, struct buf *out);

/* Forms of single texts (the `check` of their rows), and what must hold between settings; in check.c. */
bool check_listen(struct view text, struct buf *error);
bool check_admin(struct view text, struct buf *error);
bool check_upstream(struct view text, struct buf *error);
bool check_tenant(struct view text, struct buf *error);
bool check_problem_prefix(struct view text, struct buf *error);

/* Appends one line per broken relation; `bad` marks rows whose value was refused, about which nothing more is said. */
bool check_relations(const struct settings *settings, const bool bad[SETTING_ROWS_MAX], struct buf *errors);

#endif
