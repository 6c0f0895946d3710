/* key.h - the grammar of an Idempotency-Key value (docs/contract.md section 2). Pure. Any thread. */
#ifndef NONBIS_COMMON_KEY_H
#define NONBIS_COMMON_KEY_H

#include "common/view.h"

enum { KEY_BYTES_MAX = 255 };

struct key {
    char text[KEY_BYTES_MAX + 1]; /* NUL-terminated for logs; 0x21 to 0x7E only */
    size_t len;                   /* 1 to KEY_BYTES_MAX */
};

enum key_result {
    KEY_OK,
    KEY_EMPTY,       /* nothing, or only blanks, or "" */
    KEY_TOO_LONG,    /* more than KEY_BYTES_MAX bytes after unquoting */
    KEY_BAD_BYTE,    /* a byte outside 0x21 to 0x7E, or a quote in a bare key */
    KEY_BAD_QUOTING, /* starts with a quote and is not one structured-field String (RFC 9651 section 4.2.5) */
    KEY_RESULT_COUNT
};

/* Reads one field value, quoted or bare: `"k"` and `k` give the same key; parameters behind a quoted one are
 * ignored. `*key` is written only for KEY_OK. */
enum key_result key_parse(struct view field_value, struct key *key);

/* A sentence for the problem's `detail`, e.g. "the key is longer than 255 bytes". */
const char *key_result_text(enum key_result result);

#endif
