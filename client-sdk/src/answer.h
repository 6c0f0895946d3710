/* answer.h - one HTTP answer as it came: status, fields in their order, body up to a bound. Owns its bytes.
 *
 * The transport fills it (final answer only: a 1xx is dropped, a new head clears the fields), classify.c reads it, the operation
 * keeps the last one for its caller. One thread at a time. */
#ifndef NONBIS_CLIENT_ANSWER_H
#define NONBIS_CLIENT_ANSWER_H

#include "common/buf.h"

enum { ANSWER_HEAD_MAX = 256 * 1024 }; /* bytes of names and values */

struct answer {
    int status;      /* 0: no status line came */
    bool head_whole; /* the blank line behind the fields was seen */
    bool whole;      /* and the body ended by Content-Length or last chunk, or there is none (docs/facts.md 3): the
                           transport alone decides this */
    bool by_close;   /* not whole: the body has no framing and ended with the connection, in order */
    bool body_kept;  /* false: larger than the policy keeps; `body` holds its beginning */
    struct buf head; /* name NUL value NUL, again and again */
    struct buf body;
};

void answer_init(struct answer *answer, size_t body_max);
void answer_fini(struct answer *answer);
void answer_clear(struct answer *answer);

/* Takes one field line; blanks around the value are dropped. A name or value with NUL in it is dropped whole. */
void answer_add_field(struct answer *answer, struct view name, struct view value);

/* Appends to the body; what is over the bound is dropped and `body_kept` becomes false. */
void answer_add_body(struct answer *answer, const void *bytes, size_t len);

/* The first value of a field, case of the name does not matter; NULL when it is not there. */
const char *answer_field(const struct answer *answer, const char *name);

/* The index-th line of all, in their order; false past the end. */
bool answer_field_at(const struct answer *answer, size_t index, const char **name, const char **value);

/* Walks the lines of one field: start with `*at` 0; NULL past the last. */
const char *answer_field_next(const struct answer *answer, const char *name, size_t *at);

#endif
