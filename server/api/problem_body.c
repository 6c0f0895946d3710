/* problem_body.c - problem details (RFC 9457) as unformatted JSON (docs/contract.md section 5). Owns nothing beyond a call. */
#include "server/api/problem_body.h"

#include "server/base/memory.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

/* The object being built; `failed` is sticky, so that a member that could not be added is never silently missing. */
struct body {
    cJSON *object;
    bool failed;
};

/* Text may carry bytes of a request. cJSON stops at NUL and writes bytes over 0x7F as they are, valid UTF-8 or not: all our
 * own words are ASCII, so anything else becomes '?'. */
static char *text_clean(struct view text)
{
    char *clean = memory_text(text);
    for (size_t i = 0; i < text.len; i++) {
        if (clean[i] == '\0' || (unsigned char) clean[i] > 0x7E) {
            clean[i] = '?';
        }
    }
    return clean;
}

static void body_add_text(struct body *body, const char *name, struct view text)
{
    char *clean = text_clean(text);
    body->failed |= cJSON_AddStringToObject(body->object, name, clean) == NULL;
    free(clean);
}

static void body_add_text_unless_empty(struct body *body, const char *name, struct view text)
{
    if (text.len > 0) {
        body_add_text(body, name, text);
    }
}

static void body_add_type(struct body *body, struct view prefix, const char *name)
{
    struct buf type;
    buf_init(&type, 1024);
    buf_append(&type, prefix);
    buf_append_text(&type, name);
    body->failed |= type.failed;
    body_add_text(body, "type", buf_view(&type));
    buf_fini(&type);
}

static void body_add_executed(struct body *body, const struct problem_facts *facts, enum problem_executed tells)
{
    enum executed executed = EXECUTED_UNKNOWN;
    switch (tells) {
    case PROBLEM_TELLS_NOTHING:
        return;
    case PROBLEM_TELLS_NO:
        executed = EXECUTED_NO;
        break;
    case PROBLEM_TELLS_RECORD:
        if (facts->has_record) { /* said only after the record was read */
            executed = facts->executed;
        }
        break;
    case PROBLEM_TELLS_UNKNOWN:
        break;
    }
    body_add_text(body, "executed", view_of(executed_name(executed)));
}

static void body_add_differs(struct body *body, unsigned differs)
{
    if (differs == 0) {
        return;
    }
    cJSON *names = cJSON_AddArrayToObject(body->object, "differs");
    if (names == NULL) {
        body->failed = true;
        return;
    }
    for (unsigned bit = 0; bit <= FINGERPRINT_PART_COUNT; bit++) {
        if ((differs & (1U << bit)) != 0) {
            body->failed |= !cJSON_AddItemToArray(names, cJSON_CreateString(fingerprint_part_name(bit)));
        }
    }
}

static void body_fill(struct body *body, const struct problem_facts *facts)
{
    const struct problem_row *row = &problem_table[facts->problem];
    /* A stranger to the key is told that alone: neither the parts that differ nor where the command is (section 3). */
    bool stranger = (facts->differs & DIFFERS_CREDENTIALS) != 0;

    body_add_type(body, facts->type_prefix, row->name);
    body_add_text(body, "title", view_of(row->title));
    body->failed |=
        cJSON_AddNumberToObject(body->object, "status", facts->status != 0 ? facts->status : row->status) == NULL;
    body_add_text_unless_empty(body, "detail", facts->detail);
    body_add_text_unless_empty(body, "instance", facts->instance);
    body->failed |= cJSON_AddBoolToObject(body->object, "retryable", row->retryable) == NULL;
    body_add_executed(body, facts, row->executed);
    if (facts->has_record && !stranger) {
        body_add_text_unless_empty(body, "command", facts->command);
    }
    body_add_differs(body, stranger ? DIFFERS_CREDENTIALS : facts->differs);
    body_add_text_unless_empty(body, "reason", facts->reason);
}

void problem_body_write(const struct problem_facts *facts, struct buf *out)
{
    struct body body = { .object = cJSON_CreateObject() };
    body.failed = body.object == NULL;
    if (!body.failed) {
        body_fill(&body, facts);
    }
    char *text = body.failed ? NULL : cJSON_PrintUnformatted(body.object);
    if (text != NULL) {
        buf_append_text(out, text);
    } else {
        out->failed = true;
    }
    cJSON_free(text);
    cJSON_Delete(body.object);
}
