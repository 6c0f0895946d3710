/* key.c - fuzzes common/key.c. The input is a field value.
 *
 * A key that is taken is 1 to 255 bytes of visible ASCII; it is the same key however it is written (quoted, bare, blanks around); what is
 * refused writes nothing. */
#include "common/key.h"

#include "tests/proof/fuzz/fuzz.h"

/* A key in quotes, as any writer of structured fields would put it (RFC 9651 section 4.1.6). */
static void write_quoted(struct buf *out, const struct key *key)
{
    buf_append_text(out, "\t \"");
    for (size_t i = 0; i < key->len; i++) {
        if (key->text[i] == '"' || key->text[i] == '\\') {
            buf_append_text(out, "\\");
        }
        buf_append_bytes(out, key->text + i, 1);
    }
    buf_append_text(out, "\"; a;b=1; c=\"x,y\" \t");
}

static void must_be_read_as(struct view text, const struct key *key)
{
    struct key again;
    MUST(key_parse(text, &again) == KEY_OK);
    MUST(again.len == key->len && memcmp(again.text, key->text, key->len + 1) == 0);
}

static bool is_visible(struct view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x21 || text.ptr[i] > 0x7E) {
            return false;
        }
    }
    return true;
}

FUZZ_TARGET(key)
{
    struct key key, untouched;
    memset(&key, 0x5A, sizeof(key));
    untouched = key;
    enum key_result result = key_parse(input, &key);
    MUST(result < KEY_RESULT_COUNT && key_result_text(result)[0] != '\0');
    struct view text = view_trim(input);
    bool has_quote = text.len > 0 && memchr(text.ptr, '"', text.len) != NULL;
    if (!has_quote) { /* bare: the grammar is short enough to be written a second time */
        enum key_result expected = text.len == 0              ? KEY_EMPTY
                                   : !is_visible(text)        ? KEY_BAD_BYTE
                                   : text.len > KEY_BYTES_MAX ? KEY_TOO_LONG
                                                              : KEY_OK;
        MUST(result == expected);
    }
    if (result != KEY_OK) {
        MUST(memcmp(&key, &untouched, sizeof(key)) == 0);
        return false;
    }
    MUST(key.len >= 1 && key.len <= 255 && key.len <= text.len);
    MUST(key.text[key.len] == '\0' && is_visible(view_make(key.text, key.len)));
    struct buf written;
    buf_init(&written, 1024);
    write_quoted(&written, &key);
    must_be_read_as(buf_view(&written), &key);
    buf_fini(&written);
    if (memchr(key.text, '"', key.len) == NULL) {
        must_be_read_as(view_make(key.text, key.len), &key);
    }
    return true;
}
