/* log.c - see log.h. Owns the level and the format of the process, and the count of lines that could not be written.
 * Does not own the descriptor: it writes to standard error, whatever that is.
 *
 * Values come from outside, so they are made harmless here: nothing in a value can end the line, forge a field,
 * or steer a terminal. Names and events are literals of the source. Any thread. */
#include "server/base/log.h"

#include "common/http_time.h"
#include "server/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Kept free behind every field, so that a cut line can still be closed:
     * ,"cut":1,"lost":18446744073709551615}\n is 38 bytes. */
    TAIL_BYTES = 40,
    UNIT_BYTES_MAX = 6, /* \u00XX: the longest form of one character */
    MESSAGE_BYTES = 1536
};

static _Atomic int log_level_now = LOG_INFO;
static _Atomic int log_format_now = LOG_TEXT;
static _Atomic uint64_t lines_lost;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&log_level_now, (int) level);
    atomic_store(&log_format_now, (int) format);
}

bool log_enabled(enum log_level level)
{
    return (int) level <= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

static bool format_is_json(void)
{
    return atomic_load_explicit(&log_format_now, memory_order_relaxed) == LOG_JSON;
}

/* The bytes of the well-formed UTF-8 character at the start of `text` that may be shown as it is, or 0: malformed
 * (RFC 3629), or one that steers the display: C1 controls, line and paragraph separators, direction overrides. */
static size_t utf8_shown_bytes(struct view text)
{
    const unsigned char *s = (const unsigned char *) text.ptr;
    size_t len = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : 0;
    if (len == 0 || len > text.len) {
        return 0;
    }
    uint32_t point = (uint32_t) s[0] & (0xFFU >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return 0;
        }
        point = point << 6 | (s[i] & 0x3F);
    }
    bool overlong = (len == 3 && point < 0x800) || (len == 4 && point < 0x10000);
    bool outside = (point >= 0xD800 && point <= 0xDFFF) || point > 0x10FFFF;
    bool steers = point < 0xA0 || (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
                  point == 0x200E || point == 0x200F || point == 0x061C || point == 0xFEFF;
    return overlong || outside || steers ? 0 : len;
}

/* Writes the first character of `text` to `out`; returns how many bytes of `text` that was. */
static size_t escape_one(struct view text, char out[UNIT_BYTES_MAX], size_t *out_len)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char byte = (unsigned char) text.ptr[0];
    char letter = byte == '\n'                  ? 'n'
                  : byte == '\r'                ? 'r'
                  : byte == '\t'                ? 't'
                  : byte == '"' || byte == '\\' ? (char) byte
                                                : '\0';
    if (letter != '\0') {
        out[0] = '\\';
        out[1] = letter;
        *out_len = 2;
        return 1;
    }
    if (byte >= 0x20 && byte < 0x7F) {
        out[0] = (char) byte;
        *out_len = 1;
        return 1;
    }
    size_t shown = byte >= 0x80 ? utf8_shown_bytes(text) : 0;
    if (shown > 0) {
        memcpy(out, text.ptr, shown);
        *out_len = shown;
        return shown;
    }
    const char unit[UNIT_BYTES_MAX] = { '\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15] };
    memcpy(out, unit, sizeof(unit));
    *out_len = sizeof(unit);
    return 1;
}

/* A text value needs quotes unless it is one visible word in which nothing has a meaning. */
static bool word_is_bare(struct view value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char) value.ptr[i];
        if (byte <= 0x20 || byte >= 0x7F || byte == '"' || byte == '\\' || byte == '=') {
            return false;
        }
    }
    return value.len > 0;
}

static size_t line_room(const struct log_line *line)
{
    return sizeof(line->text) - TAIL_BYTES - line->len;
}

static void line_put(struct log_line *line, const char *bytes, size_t len)
{
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
}

static void line_put_text(struct log_line *line, const char *text)
{
    line_put(line, text, strlen(text));
}

/* The value, quoted and escaped where needed, as far as the room goes; whole characters only. */
static void line_put_value(struct log_line *line, struct view value, bool quote)
{
    if (quote) {
        line_put_text(line, "\"");
    }
    while (value.len > 0) {
        char unit[UNIT_BYTES_MAX];
        size_t unit_len = 0;
        size_t used = escape_one(value, unit, &unit_len);
        if (unit_len + 1 > line_room(line)) { /* 1: the closing quote */
            line->cut = true;
            break;
        }
        line_put(line, unit, unit_len);
        value.ptr += used;
        value.len -= used;
    }
    if (quote) {
        line_put_text(line, "\"");
    }
}

/* " name=" or ,"name": ; false when not even an empty value would fit behind it, or the line was cut before. */
static bool line_put_name(struct log_line *line, const char *name, size_t value_bytes_min)
{
    if (!line->on || line->cut) {
        return false;
    }
    if (strlen(name) + 4 + value_bytes_min > line_room(line)) {
        line->cut = true;
        return false;
    }
    bool json = format_is_json();
    line_put_text(line, json ? ",\"" : " ");
    line_put_text(line, name);
    line_put_text(line, json ? "\":" : "=");
    return true;
}

static void line_open(struct log_line *line, enum log_level level, const char *event)
{
    int saved = errno;
    char time[RFC3339_BYTES];
    rfc3339_write(clock_wall_ms(), time);
    bool json = format_is_json();
    line_put_text(line, json ? "{\"time\":\"" : "");
    line_put_text(line, time);
    line_put_text(line, json ? "\",\"level\":\"" : " ");
    line_put_text(line, level_names[level]);
    if (!json) { /* the events stand in one column */
        line_put(line, "      ", 6 - strlen(level_names[level]));
    }
    line_put_text(line, json ? "\",\"event\":" : "");
    line_put_value(line, view_of(event), json || !word_is_bare(view_of(event)));
    errno = saved;
}

static void line_init(struct log_line *line, enum log_level level, bool on)
{
    line->len = 0;
    line->cut = false;
    line->level = level;
    line->on = on;
}

void log_begin(struct log_line *line, enum log_level level, const char *event)
{
    line_init(line, level, log_enabled(level));
    if (line->on) {
        line_open(line, level, event);
    }
}

void log_begin_always(struct log_line *line, enum log_level level, const char *event)
{
    line_init(line, level, true);
    line_open(line, level, event);
}

void log_view(struct log_line *line, const char *name, struct view value)
{
    if (line_put_name(line, name, 2)) {
        line_put_value(line, value, format_is_json() || !word_is_bare(value));
    }
}

void log_text(struct log_line *line, const char *name, const char *value)
{
    log_view(line, name, view_of(value));
}

/* Decimal digits at the end of `digits`; returns the first. */
static const char *number_digits(char digits[24], uint64_t number)
{
    char *at = digits + 23;
    *at = '\0';
    do {
        *--at = (char) ('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return at;
}

void log_int(struct log_line *line, const char *name, int64_t value)
{
    if (!line_put_name(line, name, 20)) {
        return;
    }
    char digits[24];
    line_put_text(line, value < 0 ? "-" : "");
    line_put_text(line, number_digits(digits, value < 0 ? 0 - (uint64_t) value : (uint64_t) value));
}

/* The room of these was kept free. */
static void line_close(struct log_line *line, uint64_t lost)
{
    bool json = format_is_json();
    char digits[24];
    if (line->cut) {
        line_put_text(line, json ? ",\"cut\":1" : " cut=1");
    }
    if (lost > 0) {
        line_put_text(line, json ? ",\"lost\":" : " lost=");
        line_put_text(line, number_digits(digits, lost));
    }
    line_put_text(line, json ? "}\n" : "\n");
}

/* What this thread has not written yet. One write stays within PIPE_BUF, so lines of several threads never mix in a pipe. */
static _Thread_local struct {
    char text[PIPE_BUF];
    size_t len;
    uint64_t lines;
    bool on;
} held;

static ssize_t log_write_now(const char *text, size_t len)
{
    ssize_t written;
    do {
        written = write(STDERR_FILENO, text, len);
    } while (written < 0 && errno == EINTR);
    return written;
}

/* A pipe whose reader stands still must not stop the server: up to PIPE_BUF fit when poll says so, as long as no other thread takes
 * that room first. Of a file on a full disk a part may fit: what comes next begins a line of its own. */
static bool log_write_if_room(const char *text, size_t len)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool torn; /* a line was begun and has no end */
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
    ssize_t written = -1;
    (void) pthread_mutex_lock(&lock);
    if (poll(&room, 1, 0) != 0) {
        torn = torn && log_write_now("\n", 1) != 1;
        written = torn ? -1 : log_write_now(text, len);
        torn = torn || (written > 0 && written < (ssize_t) len);
    }
    (void) pthread_mutex_unlock(&lock);
    return written == (ssize_t) len;
}

/* What does not fit into a full pipe that must not block, or on a full disk, is counted and told by the next line. */
static void log_write(const char *text, size_t len, uint64_t lines)
{
    if (!log_write_if_room(text, len)) {
        atomic_fetch_add(&lines_lost, lines);
    }
}

void log_hold(void)
{
    held.on = true;
}

void log_flush(void)
{
    if (held.len > 0) {
        int saved = errno;
        log_write(held.text, held.len, held.lines);
        held.len = 0;
        held.lines = 0;
        errno = saved;
    }
}

void log_end(struct log_line *line)
{
    if (!line->on) {
        return;
    }
    int saved = errno;
    line->on = false;
    uint64_t lost = atomic_exchange(&lines_lost, 0);
    line_close(line, lost);
    if (held.on && line->level >= LOG_INFO) {
        if (held.len + line->len > sizeof held.text) {
            log_flush();
        }
        memcpy(held.text + held.len, line->text, line->len);
        held.len += line->len;
        held.lines += 1 + lost;
    } else {
        log_flush();
        log_write(line->text, line->len, 1 + lost);
    }
    errno = saved;
}

void log_message(enum log_level level, const char *event, const char *format, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    int saved = errno;
    struct log_line line;
    log_begin(&line, level, event);
    char message[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    log_text(&line, "message", len < 0 ? format : message);
    line.cut = line.cut || len >= (int) sizeof(message);
    log_end(&line);
    errno = saved;
}
