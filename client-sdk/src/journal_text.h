/* journal_text.h - the text of one entry: a record to bytes, bytes to a record. Pure. Any thread.
 *
 *     nonbis-journal 1
 *     key 36:019245f0-0000-7000-8000-000000000001
 *     method 4:POST
 *     url 30:http://127.0.0.1:8620/orders/1
 *     status-url 0:
 *     name 0:
 *     created 1732881600123
 *     own-key 1
 *     field 12:Content-Type 16:application/json
 *     unstored 13:Authorization
 *     ended 1732881600456 outcome 1 stop 1 status 201
 *     body 2:{}
 *     sha256 (64 digits, over all lines above)
 *
 * Lengths are bytes, so a value may hold anything; `field` and `unstored` come any number of times; `body none` is a record without one,
 * `ended 0 ...` one of which no run has ended. Times are wall milliseconds, numbers those of nonbis.h. A reader takes exactly
 * this, in this order: whatever is cut, changed or newer is told, never guessed at. */
#ifndef NONBIS_CLIENT_JOURNAL_TEXT_H
#define NONBIS_CLIENT_JOURNAL_TEXT_H

#include "client-sdk/src/journal.h"
#include "common/buf.h"

enum { JOURNAL_TEXT_MAX = 1 << 30 }; /* bytes of an entry */

/* What was read, and what it lies in. */
struct journal_text {
    struct journal_record record;
    struct transport_field *fields;
    const char **unstored;
    char *bytes;
};

enum journal_text_result {
    JOURNAL_TEXT_OK,
    JOURNAL_TEXT_DAMAGED,
    JOURNAL_TEXT_NEWER, /* a version that we do not know */
    JOURNAL_TEXT_MEMORY
};

/* Appends; `text->failed` when it does not fit. NULL texts are "". */
void journal_text_write(const struct journal_record *record, struct buf *text);

/* Takes `bytes` over, also when it fails; room for `len` + 1. `*why` is then what is wrong, as the end of a sentence. */
enum journal_text_result journal_text_read(struct journal_text *text, char *bytes, size_t len, const char **why);

void journal_text_fini(struct journal_text *text);

#endif
