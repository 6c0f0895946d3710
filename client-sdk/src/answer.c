/* answer.c - see answer.h. */
#include "client-sdk/src/answer.h"

#include <string.h>

void answer_init(struct answer *answer, size_t body_max)
{
    *answer = (struct answer){ .body_kept = true };
    buf_init(&answer->head, ANSWER_HEAD_MAX);
    buf_init(&answer->body, body_max);
}

void answer_fini(struct answer *answer)
{
    buf_fini(&answer->head);
    buf_fini(&answer->body);
}

void answer_clear(struct answer *answer)
{
    answer->status = 0;
    answer->head_whole = answer->whole = answer->by_close = false;
    answer->body_kept = true;
    buf_clear(&answer->head);
    buf_clear(&answer->body);
}

static bool has_nul(struct view text)
{
    return text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL;
}

void answer_add_field(struct answer *answer, struct view name, struct view value)
{
    value = view_trim(value);
    size_t before = answer->head.len;
    if (has_nul(name) || has_nul(value)) {
        return;
    }
    buf_append(&answer->head, name);
    buf_append_bytes(&answer->head, "", 1);
    buf_append(&answer->head, value);
    buf_append_bytes(&answer->head, "", 1);
    if (answer->head.failed) {
        answer->head.len = before; /* never half a field */
    }
}

void answer_add_body(struct answer *answer, const void *bytes, size_t len)
{
    size_t room = answer->body.max - answer->body.len;
    if (len > room) {
        answer->body_kept = false;
        len = room;
    }
    if (len > 0) {
        buf_append_bytes(&answer->body, bytes, len);
    }
    if (answer->body.failed) {
        answer->body_kept = false;
    }
}

/* The field that begins at `*at`; moves behind it. */
static bool field_next(const struct answer *answer, size_t *at, const char **name, const char **value)
{
    if (*at >= answer->head.len) {
        return false;
    }
    *name = answer->head.ptr + *at;
    *value = *name + strlen(*name) + 1;
    *at = (size_t) (*value - answer->head.ptr) + strlen(*value) + 1;
    return true;
}

const char *answer_field_next(const struct answer *answer, const char *wanted, size_t *at)
{
    const char *name = NULL, *value = NULL;
    while (field_next(answer, at, &name, &value)) {
        if (view_equal_nocase(view_of(name), view_of(wanted))) {
            return value;
        }
    }
    return NULL;
}

const char *answer_field(const struct answer *answer, const char *name)
{
    size_t at = 0;
    return answer_field_next(answer, name, &at);
}

bool answer_field_at(const struct answer *answer, size_t index, const char **name, const char **value)
{
    size_t at = 0;
    while (field_next(answer, &at, name, value)) {
        if (index-- == 0) {
            return true;
        }
    }
    return false;
}
