/* problem_body.c - problem details (RFC 9457) as unformatted JSON (docs/contract.md section 5). Owns nothing beyond a call. */
#include "server/api/problem_body.h"

#include "server/api/json_body.h"

static void body_add_text_unless_empty(struct json_body *body, const char *name, struct view text)
{
    if (text.len > 0) {
        json_body_add_text(body, body->object, name, text);
    }
}

static void body_add_type(struct json_body *body, struct view prefix, const char *name)
{
    struct buf type;
    buf_init(&type, 1024);
    buf_append(&type, prefix);
    buf_append_text(&type, name);
    body->failed |= type.failed;
    json_body_add_text(body, body->object, "type", buf_view(&type));
    buf_fini(&type);
}

static void body_add_executed(struct json_body *body, const struct problem_facts *facts, enum problem_executed tells)
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
    json_body_add_text(body, body->object, "executed", view_of(executed_name(executed)));
}

static void body_add_differs(struct json_body *body, unsigned differs)
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

static void body_fill(struct json_body *body, const struct problem_facts *facts)
{
    const struct problem_row *row = &problem_table[facts->problem];
    /* A stranger to the key is told that alone: neither the parts that differ nor where the command is (section 3). */
    bool stranger = (facts->differs & DIFFERS_CREDENTIALS) != 0;

    body_add_type(body, facts->type_prefix, row->name);
    json_body_add_text(body, body->object, "title", view_of(row->title));
    json_body_add_number(body, body->object, "status", facts->status != 0 ? facts->status : row->status);
    body_add_text_unless_empty(body, "detail", facts->detail);
    body_add_text_unless_empty(body, "instance", facts->instance);
    json_body_add_bool(body, body->object, "retryable", row->retryable);
    body_add_executed(body, facts, row->executed);
    if (facts->has_record && !stranger) {
        body_add_text_unless_empty(body, "command", facts->command);
    }
    body_add_differs(body, stranger ? DIFFERS_CREDENTIALS : facts->differs);
    body_add_text_unless_empty(body, "reason", facts->reason);
    body_add_text_unless_empty(body, "state", facts->state);
    if (facts->window_start_ms != 0) {
        json_body_add_time(body, body->object, "window_start", facts->window_start_ms);
    }
}

void problem_body_write(const struct problem_facts *facts, struct buf *out)
{
    struct json_body body;
    json_body_init(&body);
    if (!body.failed) {
        body_fill(&body, facts);
    }
    json_body_finish(&body, out);
}
