/* log.h - one line per event on stderr. Never bodies, credentials or whole keys: callers pass a digest. Any thread; lines are
 * written whole with one write(). errno is preserved.
 *
 *   text:  2026-11-29T12:00:00.123Z info  start listen=127.0.0.1:8620 upstream=http://127.0.0.1:3000
 *   json:  {"time":"...","level":"info","event":"start","listen":"127.0.0.1:8620",...} */
#ifndef NONBIS_SERVER_BASE_LOG_H
#define NONBIS_SERVER_BASE_LOG_H

#include "common/view.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);

/* A line under construction; on the caller's stack. Values are quoted and escaped where needed; a line that grows over its room
 * is cut and ends with "cut=1". */
struct log_line {
    char text[2048];
    size_t len;
    enum log_level level;
    bool on, cut;
};

void log_begin(struct log_line *line, enum log_level level, const char *event);
/* Written whatever the level of the process is: for the one line that tells where it listens. */
void log_begin_always(struct log_line *line, enum log_level level, const char *event);
void log_text(struct log_line *line, const char *name, const char *value);
void log_view(struct log_line *line, const char *name, struct view value);
void log_int(struct log_line *line, const char *name, int64_t value);
void log_end(struct log_line *line);

/* Lines of level info and debug that the calling thread ends from now on are held, some at a time, until log_flush: the loop
 * calls that before it waits. Warnings and errors are written at once, after what was held. */
void log_hold(void);
void log_flush(void);

/* For plain events: log_message(LOG_WARN, "store", "the disk is slow: %d ms", ms) -> event=store message="..." */
void log_message(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
