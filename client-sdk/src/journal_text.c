/* journal_text.c - see journal_text.h. */
#include "client-sdk/src/journal_text.h"

#include "client-sdk/src/journal_digest.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "nonbis-journal ";
static const char check_word[] = "sha256 ";
enum { VERSION = 1, CHECK_LINE = sizeof(check_word) - 1 + JOURNAL_DIGEST_HEX + 1 };

/* ---- writing ------------------------------------------------------------------------------------------------------ */

/* "WORD 4:text" and what follows it. */
static void write_text(struct buf *text, const char *word, const char *value, const char *end)
{
    value = value != NULL ? value : "";
    buf_append_text(text, word);
    buf_append_uint(text, strlen(value));
    buf_append_text(text, ":");
    buf_append_text(text, value);
    buf_append_text(text, end);
}

static void write_body(struct buf *text, const struct journal_record *record)
{
    if (!record->has_body) {
        buf_append_text(text, "body none\n");
        return;
    }
    buf_append_text(text, "body ");
    buf_append_uint(text, record->body_len);
    buf_append_text(text, ":");
    if (record->body_len > 0) {
        buf_append_bytes(text, record->body, record->body_len);
    }
    buf_append_text(text, "\n");
}

void journal_text_write(const struct journal_record *record, struct buf *text)
{
    size_t begin = text->len;
    char check[JOURNAL_DIGEST_HEX + 1];
    buf_printf(text, "%s%d\n", magic, VERSION);
    write_text(text, "key ", record->key, "\n");
    write_text(text, "method ", record->method, "\n");
    write_text(text, "url ", record->url, "\n");
    write_text(text, "status-url ", record->status_url, "\n");
    write_text(text, "name ", record->name, "\n");
    buf_printf(text, "created %" PRId64 "\nown-key %d\n", record->created_wall_ms, record->own_key ? 1 : 0);
    for (size_t i = 0; i < record->field_count; i++) {
        write_text(text, "field ", record->fields[i].name, " ");
        write_text(text, "", record->fields[i].value, "\n");
    }
    for (size_t i = 0; i < record->unstored_count; i++) {
        write_text(text, "unstored ", record->unstored[i], "\n");
    }
    buf_printf(text, "ended %" PRId64 " outcome %d stop %d status %d\n", record->ended_wall_ms, (int) record->outcome,
               (int) record->stop, record->http_status);
    write_body(text, record);
    if (!text->failed) {
        journal_digest_hex(text->ptr + begin, text->len - begin, check);
        buf_printf(text, "%s%s\n", check_word, check);
    }
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* What is not read yet. */
struct cursor {
    char *at, *end;
};

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t len = strlen(word);
    if ((size_t) (cursor->end - cursor->at) < len || memcmp(cursor->at, word, len) != 0) {
        return false;
    }
    cursor->at += len;
    return true;
}

/* Digits, and the word behind them. */
static bool take_number(struct cursor *cursor, uint64_t max, const char *behind, uint64_t *number)
{
    char *at = cursor->at;
    uint64_t value = 0;
    for (; at < cursor->end && *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t) (*at - '0');
        if (digit > max || value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (at == cursor->at) {
        return false;
    }
    cursor->at = at;
    *number = value;
    return take_word(cursor, behind);
}

static bool take_time(struct cursor *cursor, const char *behind, int64_t *ms)
{
    uint64_t number = 0;
    bool before = take_word(cursor, "-"); /* 1970, for clocks that never knew better */
    if (!take_number(cursor, INT64_MAX, behind, &number)) {
        return false;
    }
    *ms = before ? -(int64_t) number : (int64_t) number;
    return true;
}

static bool take_int(struct cursor *cursor, int max, const char *behind, int *number)
{
    uint64_t value = 0;
    if (!take_number(cursor, (uint64_t) max, behind, &value)) {
        return false;
    }
    *number = (int) value;
    return true;
}

/* "4:text" and one byte, which becomes the text's NUL. */
static bool take_text(struct cursor *cursor, char behind, const char **text)
{
    uint64_t len = 0;
    if (!take_number(cursor, JOURNAL_TEXT_MAX, ":", &len) || (uint64_t) (cursor->end - cursor->at) < len + 1 ||
        cursor->at[len] != behind || memchr(cursor->at, '\0', (size_t) len) != NULL) {
        return false;
    }
    *text = cursor->at;
    cursor->at[len] = '\0';
    cursor->at += len + 1;
    return true;
}

static bool take_body(struct cursor *cursor, struct journal_record *record)
{
    uint64_t len = 0;
    if (take_word(cursor, "body none\n")) {
        return true;
    }
    if (!take_word(cursor, "body ") || !take_number(cursor, JOURNAL_TEXT_MAX, ":", &len) ||
        (uint64_t) (cursor->end - cursor->at) < len + 1 || cursor->at[len] != '\n') {
        return false;
    }
    record->has_body = true;
    record->body = cursor->at;
    record->body_len = (size_t) len;
    cursor->at += len + 1;
    return true;
}

static bool take_ending(struct cursor *cursor, struct journal_record *record)
{
    int outcome = 0, stop = 0;
    bool taken = take_word(cursor, "ended ") && take_time(cursor, " outcome ", &record->ended_wall_ms) &&
                 take_int(cursor, NONBIS_UNKNOWN, " stop ", &outcome) &&
                 take_int(cursor, NONBIS_STOP_LOCAL, " status ", &stop) &&
                 take_int(cursor, INT_MAX, "\n", &record->http_status);
    record->outcome = (enum nonbis_outcome) outcome;
    record->stop = (enum nonbis_stop) stop;
    return taken;
}

static enum journal_text_result take_fields(struct cursor *cursor, struct journal_text *text)
{
    size_t cap = 0;
    while (take_word(cursor, "field ")) {
        if (text->record.field_count == cap) {
            cap = cap > 0 ? cap * 2 : 4;
            struct transport_field *grown = realloc(text->fields, cap * sizeof(*grown));
            if (grown == NULL) {
                return JOURNAL_TEXT_MEMORY;
            }
            text->fields = grown;
        }
        struct transport_field *field = &text->fields[text->record.field_count];
        if (!take_text(cursor, ' ', &field->name) || !take_text(cursor, '\n', &field->value)) {
            return JOURNAL_TEXT_DAMAGED;
        }
        text->record.field_count++;
    }
    text->record.fields = text->fields;
    return JOURNAL_TEXT_OK;
}

static enum journal_text_result take_unstored(struct cursor *cursor, struct journal_text *text)
{
    size_t cap = 0;
    while (take_word(cursor, "unstored ")) {
        if (text->record.unstored_count == cap) {
            cap = cap > 0 ? cap * 2 : 4;
            const char **grown = realloc((void *) text->unstored, cap * sizeof(*grown));
            if (grown == NULL) {
                return JOURNAL_TEXT_MEMORY;
            }
            text->unstored = grown;
        }
        if (!take_text(cursor, '\n', &text->unstored[text->record.unstored_count])) {
            return JOURNAL_TEXT_DAMAGED;
        }
        text->record.unstored_count++;
    }
    text->record.unstored = text->unstored;
    return JOURNAL_TEXT_OK;
}

static enum journal_text_result take_record(struct cursor *cursor, struct journal_text *text)
{
    struct journal_record *record = &text->record;
    int own_key = 0;
    bool taken = take_word(cursor, "key ") && take_text(cursor, '\n', &record->key) && take_word(cursor, "method ") &&
                 take_text(cursor, '\n', &record->method) && take_word(cursor, "url ") &&
                 take_text(cursor, '\n', &record->url) && take_word(cursor, "status-url ") &&
                 take_text(cursor, '\n', &record->status_url) && take_word(cursor, "name ") &&
                 take_text(cursor, '\n', &record->name) && take_word(cursor, "created ") &&
                 take_time(cursor, "\nown-key ", &record->created_wall_ms) && take_int(cursor, 1, "\n", &own_key);
    if (!taken) {
        return JOURNAL_TEXT_DAMAGED;
    }
    record->own_key = own_key != 0;
    enum journal_text_result result = take_fields(cursor, text);
    if (result == JOURNAL_TEXT_OK) {
        result = take_unstored(cursor, text);
    }
    if (result != JOURNAL_TEXT_OK) {
        return result;
    }
    return take_ending(cursor, record) && take_body(cursor, record) && cursor->at == cursor->end ? JOURNAL_TEXT_OK
                                                                                                 : JOURNAL_TEXT_DAMAGED;
}

/* First line and check; the cursor is then what lies between them. */
static enum journal_text_result take_frame(struct cursor *cursor, const char **why)
{
    char *begin = cursor->at;
    uint64_t version = 0;
    char check[JOURNAL_DIGEST_HEX + 1];
    *why = "it is no entry of a journal, or cut short";
    if (!take_word(cursor, magic) || !take_number(cursor, INT_MAX, "\n", &version) || version == 0) {
        return JOURNAL_TEXT_DAMAGED;
    }
    if (version > VERSION) {
        *why = "a newer version of this library wrote it";
        return JOURNAL_TEXT_NEWER;
    }
    if (cursor->end - cursor->at < CHECK_LINE) {
        return JOURNAL_TEXT_DAMAGED;
    }
    cursor->end -= CHECK_LINE;
    *why = "its check does not fit: it is cut short or damaged";
    journal_digest_hex(begin, (size_t) (cursor->end - begin), check);
    const char *line = cursor->end;
    bool fits = memcmp(line, check_word, sizeof(check_word) - 1) == 0 &&
                memcmp(line + sizeof(check_word) - 1, check, JOURNAL_DIGEST_HEX) == 0 && line[CHECK_LINE - 1] == '\n';
    return fits ? JOURNAL_TEXT_OK : JOURNAL_TEXT_DAMAGED;
}

enum journal_text_result journal_text_read(struct journal_text *text, char *bytes, size_t len, const char **why)
{
    *text = (struct journal_text){ .bytes = bytes };
    struct cursor cursor = { bytes, bytes + len };
    enum journal_text_result result = take_frame(&cursor, why);
    if (result == JOURNAL_TEXT_OK) {
        result = take_record(&cursor, text);
        *why = result == JOURNAL_TEXT_MEMORY ? "out of memory" : "its lines are not those of an entry";
    }
    if (result != JOURNAL_TEXT_OK) {
        journal_text_fini(text);
    }
    return result;
}

void journal_text_fini(struct journal_text *text)
{
    free(text->fields);
    free((void *) text->unstored);
    free(text->bytes);
    *text = (struct journal_text){ .bytes = NULL };
}
