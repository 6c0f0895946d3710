/* journal.c - fuzzes client-sdk/src/journal_text.c. The input is the text of an entry without its last line, the check, which is put behind
 * it here, since nobody finds one by chance; it is read as it is too.
 *
 * What is read is written as the same bytes (but for zeros before a number) and read again as the same; an entry that is cut, or in which one byte is another, is never taken. */
#include "client-sdk/src/journal_text.h"

#include "client-sdk/src/journal_digest.h"
#include "tests/proof/fuzz/fuzz.h"

/* Of a copy, which the reader takes over. */
static enum journal_text_result read_copy(struct view bytes, struct journal_text *text)
{
    const char *why = NULL;
    char *copy = malloc(bytes.len + 1);
    MUST(copy != NULL);
    if (bytes.len > 0) {
        memcpy(copy, bytes.ptr, bytes.len);
    }
    enum journal_text_result result = journal_text_read(text, copy, bytes.len, &why);
    MUST(why != NULL && why[0] != '\0' && result != JOURNAL_TEXT_MEMORY);
    MUST(result == JOURNAL_TEXT_OK || (text->bytes == NULL && text->fields == NULL && text->unstored == NULL));
    return result;
}

/* Texts end within the entry. */
static void text_must_hold(const struct journal_text *text, const char *value, size_t len)
{
    MUST(value >= text->bytes && value < text->bytes + len && strlen(value) < (size_t) (text->bytes + len - value));
}

static void record_must_hold(const struct journal_text *text, size_t len)
{
    const struct journal_record *record = &text->record;
    const char *const values[] = { record->key, record->method, record->url, record->status_url, record->name };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        text_must_hold(text, values[i], len);
    }
    for (size_t i = 0; i < record->field_count; i++) {
        text_must_hold(text, record->fields[i].name, len);
        text_must_hold(text, record->fields[i].value, len);
    }
    for (size_t i = 0; i < record->unstored_count; i++) {
        text_must_hold(text, record->unstored[i], len);
    }
    MUST(!record->has_body || fuzz_is_inside(view_make(record->body, record->body_len), view_make(text->bytes, len)));
    MUST(record->http_status >= 0);
    MUST(record->outcome >= 0 && record->outcome <= NONBIS_UNKNOWN);
    MUST(record->stop >= 0 && record->stop <= NONBIS_STOP_LOCAL);
}

/* One byte less, and one that is another: `choice` says which. */
static void damage_must_be_seen(struct view bytes, size_t choice)
{
    struct journal_text text;
    MUST(read_copy(view_make(bytes.ptr, choice % bytes.len), &text) != JOURNAL_TEXT_OK);
    char *copy = fuzz_text(bytes);
    memcpy(copy, bytes.ptr, bytes.len);
    copy[choice % bytes.len] = (char) (copy[choice % bytes.len] ^ (1 << (choice >> 20) % 8));
    MUST(read_copy(view_make(copy, bytes.len), &text) != JOURNAL_TEXT_OK);
    free(copy);
}

/* A number that is not as it would be written: zeros before it, or "-0". */
static bool has_padded_number(struct view text)
{
    for (size_t i = 1; i + 2 < text.len; i++) {
        size_t at = i + (text.ptr[i] == '-');
        bool zero = text.ptr[i - 1] == ' ' && text.ptr[at] == '0';
        if (zero && (at > i || (text.ptr[at + 1] >= '0' && text.ptr[at + 1] <= '9'))) {
            return true;
        }
    }
    return false;
}

static bool entry_must_hold(struct view bytes, size_t choice)
{
    struct journal_text text, again;
    if (read_copy(bytes, &text) != JOURNAL_TEXT_OK) {
        return false;
    }
    record_must_hold(&text, bytes.len);
    struct buf first, second;
    buf_init(&first, JOURNAL_TEXT_MAX);
    buf_init(&second, JOURNAL_TEXT_MAX);
    journal_text_write(&text.record, &first);
    MUST(!first.failed && first.len <= bytes.len);
    MUST(has_padded_number(bytes) || view_equal(buf_view(&first), bytes));
    MUST(read_copy(buf_view(&first), &again) == JOURNAL_TEXT_OK);
    journal_text_write(&again.record, &second);
    MUST(view_equal(buf_view(&first), buf_view(&second)));
    damage_must_be_seen(buf_view(&first), choice);
    buf_fini(&first);
    buf_fini(&second);
    journal_text_fini(&text);
    journal_text_fini(&again);
    return true;
}

FUZZ_TARGET(journal)
{
    char check[JOURNAL_DIGEST_HEX + 1];
    struct buf checked;
    size_t choice = fuzz_hash(input);
    (void) entry_must_hold(input, choice);
    buf_init(&checked, input.len + 100);
    buf_append(&checked, input);
    journal_digest_hex(input.len > 0 ? input.ptr : "", input.len, check);
    buf_printf(&checked, "sha256 %s\n", check);
    bool taken = entry_must_hold(buf_view(&checked), choice);
    buf_fini(&checked);
    return taken;
}
