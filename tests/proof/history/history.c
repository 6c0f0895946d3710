/* history.c - see history.h. */
#include "tests/proof/history/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[HISTORY_KINDS] = { "arrival", "attempt", "status", "void", "plan", "fault", "quiet" };

/* The words of a line; `size` 0: a number. */
#define TEXT(name)                                                                                                     \
    {                                                                                                                  \
#name, offsetof(struct history_event, name), sizeof(((struct history_event *) 0)->name)                        \
    }
#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct history_event, name), 0                                                                 \
    }
static const struct {
    const char *name;
    size_t offset, size;
} words[] = { NUMBER(no),         TEXT(tenant),    TEXT(key),  TEXT(payload), TEXT(does),  NUMBER(number),
              TEXT(command),      NUMBER(answer),  TEXT(word), TEXT(problem), TEXT(state), TEXT(executed),
              NUMBER(executions), TEXT(execution), TEXT(body), TEXT(fields),  TEXT(fault) };
enum { WORDS = sizeof words / sizeof words[0] };

void history_init(struct history *history)
{
    *history = (struct history){ 0 };
}

void history_fini(struct history *history)
{
    free(history->events);
    history_init(history);
}

struct history_event *history_add(struct history *history, enum history_kind kind)
{
    if (history->count == history->room) {
        history->room = history->room == 0 ? 1024 : 2 * history->room;
        history->events = realloc(history->events, history->room * sizeof *history->events);
        if (history->events == NULL) {
            abort();
        }
    }
    struct history_event *event = &history->events[history->count++];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    return event;
}

/* --- reading --- */

static bool read_time(struct view text, int64_t *ns)
{
    uint64_t number;
    if (!view_to_uint64(text, &number) || number >= INT64_MAX) {
        return false;
    }
    *ns = (int64_t) number;
    return true;
}

/* "5", "5..9", or "5.." */
static bool read_at(struct view text, struct history_event *event)
{
    const char *dots = text.len > 2 ? memmem(text.ptr, text.len, "..", 2) : NULL;
    if (dots == NULL) {
        bool good = read_time(text, &event->from);
        event->to = event->from;
        return good;
    }
    struct view from = view_make(text.ptr, (size_t) (dots - text.ptr));
    struct view to = view_make(dots + 2, text.len - from.len - 2);
    event->to = HISTORY_NEVER;
    return read_time(from, &event->from) && (to.len == 0 || read_time(to, &event->to)) && event->from <= event->to;
}

static bool read_word(struct view name, struct view value, struct history_event *event)
{
    if (view_equal(name, VIEW("at"))) {
        return read_at(value, event);
    }
    for (size_t i = 0; i < WORDS; i++) {
        char *place = (char *) event + words[i].offset;
        if (!view_equal(name, view_of(words[i].name))) {
            continue;
        }
        if (words[i].size > 0) {
            (void) snprintf(place, words[i].size, "%.*s", VIEW_ARGS(value));
            return value.len < words[i].size;
        }
        uint64_t number;
        if (!view_to_uint64(value, &number) || number > UINT32_MAX) {
            return false;
        }
        unsigned small = (unsigned) number;
        memcpy(place, &small, sizeof small);
        return true;
    }
    return false;
}

static bool read_line(struct history *history, struct view line)
{
    struct view rest = line, item;
    if (line.len == 0 || line.ptr[0] == '#') {
        return true;
    }
    if (!view_next_item(&rest, ' ', &item)) {
        return false;
    }
    struct history_event *event = NULL;
    for (int kind = 0; kind < HISTORY_KINDS && event == NULL; kind++) {
        if (view_equal(item, view_of(kinds[kind]))) {
            event = history_add(history, (enum history_kind) kind);
        }
    }
    while (event != NULL && view_next_item(&rest, ' ', &item)) {
        const char *equals = memchr(item.ptr, '=', item.len);
        size_t name_len = equals != NULL ? (size_t) (equals - item.ptr) : 0;
        if (equals == NULL ||
            !read_word(view_make(item.ptr, name_len), view_make(equals + 1, item.len - name_len - 1), event)) {
            return false;
        }
    }
    return event != NULL;
}

size_t history_read(struct history *history, struct view text)
{
    size_t number = 0;
    for (const char *end; text.len > 0 && (end = memchr(text.ptr, '\n', text.len)) != NULL;) {
        struct view line = view_make(text.ptr, (size_t) (end - text.ptr));
        number++;
        if (!read_line(history, line)) {
            return number;
        }
        text = view_make(end + 1, text.len - line.len - 1);
    }
    return 0;
}

/* --- writing --- */

void history_write_event(const struct history_event *event, struct buf *out)
{
    buf_append_text(out, kinds[event->kind]);
    if (event->kind != HISTORY_PLAN && event->kind != HISTORY_FAULT) {
        buf_printf(out, " at=%" PRId64, event->from);
        if (event->to != event->from) {
            buf_append_text(out, "..");
        }
        if (event->to != event->from && event->to != HISTORY_NEVER) {
            buf_printf(out, "%" PRId64, event->to);
        }
    }
    for (size_t i = 0; i < WORDS; i++) {
        const char *place = (const char *) event + words[i].offset;
        unsigned number = 0;
        if (words[i].size > 0 && place[0] != '\0') {
            buf_printf(out, " %s=%s", words[i].name, place);
        } else if (words[i].size == 0 && (memcpy(&number, place, sizeof number), number != 0)) {
            buf_printf(out, " %s=%u", words[i].name, number);
        }
    }
    buf_append_text(out, "\n");
}

/* --- hashes --- */

static uint64_t fnv(struct view bytes)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes.len; i++) {
        hash = (hash ^ (unsigned char) bytes.ptr[i]) * 0x100000001b3U;
    }
    return hash;
}

void history_hash(struct view bytes, char hash[HISTORY_WORD_MAX])
{
    (void) snprintf(hash, HISTORY_WORD_MAX, "%016" PRIx64, fnv(bytes));
}

void history_hash_head(struct view head, char hash[HISTORY_WORD_MAX])
{
    static const char *const of_one_telling[] = {
        "Date:", "Connection:",         "Keep-Alive:",          "Content-Length:", "Transfer-Encoding:",
        "Via:",  "Idempotency-Status:", "Idempotent-Replayed:",
    };
    uint64_t sum = 0;
    while (head.len > 0) {
        const char *end = memmem(head.ptr, head.len, "\r\n", 2);
        struct view line = view_make(head.ptr, end != NULL ? (size_t) (end - head.ptr) : head.len);
        bool counts = true;
        for (size_t i = 0; i < sizeof of_one_telling / sizeof of_one_telling[0]; i++) {
            counts = counts && !view_starts_with_nocase(line, view_of(of_one_telling[i]));
        }
        sum += counts ? fnv(line) : 0; /* a sum: the order of fields means nothing */
        size_t taken = end != NULL ? line.len + 2 : line.len;
        head = view_make(head.ptr + taken, head.len - taken);
    }
    (void) snprintf(hash, HISTORY_WORD_MAX, "%016" PRIx64, sum);
}
