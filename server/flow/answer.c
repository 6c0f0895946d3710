/* answer.c - see answer.h. */
#include "server/flow/answer.h"

#include "common/http_time.h"
#include "schema/wire.h"
#include "server/digest/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_FIELDS_MAX = 2048, ANSWER_BODY_MAX = 16 * 1024, ANSWER_LOG_PATH_MAX = 256 };

static void answer_command_path(struct buf *out, const uint8_t *command_id)
{
    buf_append(out, VIEW(WIRE_COMMANDS_PATH));
    buf_append_hex(out, command_id, COMMAND_ID_BYTES);
}

void answer_mark(struct buf *fields, const char *status_word, bool replayed, const struct answer_record *record)
{
    if (status_word != NULL) {
        field_block_add(fields, VIEW(WIRE_STATUS), view_of(status_word));
    }
    if (replayed) {
        field_block_add(fields, VIEW(WIRE_REPLAYED), VIEW("true"));
    }
    if (record->expires_ms > 0) {
        char date[HTTP_DATE_BYTES];
        http_date_write(record->expires_ms, date);
        field_block_add(fields, VIEW(WIRE_EXPIRES), view_of(date));
    }
    if (record->command_id != NULL) {
        buf_append(fields, VIEW("Link: <"));
        answer_command_path(fields, record->command_id);
        buf_append(fields, VIEW(">; rel=\"status\"\r\n"));
    }
}

static void answer_problem_fields(struct buf *fields, const struct answer_problem *answer)
{
    const struct problem_row *row = &problem_table[answer->problem];
    field_block_add(fields, VIEW("Content-Type"), VIEW(WIRE_PROBLEM_CONTENT_TYPE));
    field_block_add(fields, VIEW("Cache-Control"), VIEW("no-store"));
    if (row->retry_after) {
        char seconds[16];
        (void) snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s > 0 ? answer->retry_after_s : 1);
        field_block_add(fields, VIEW("Retry-After"), view_of(seconds));
    }
    if (answer->allow != NULL) {
        field_block_add(fields, VIEW("Allow"), view_of(answer->allow));
    }
    if (answer->not_executed) {
        field_block_add(fields, VIEW(WIRE_OUTCOME), VIEW(WIRE_WORD_NOT_EXECUTED));
    }
    const char *word = answer->ignored ? WIRE_WORD_IGNORED : answer->keyed ? row->idempotency_status : NULL;
    answer_mark(fields, word, false, &answer->record);
}

void answer_over_quota(const struct quota_place *place, unsigned latency_s, struct answer_problem *answer)
{
    bool busy = place->answer == QUOTA_BUSY;
    answer->problem = PROBLEM_QUOTA_EXCEEDED;
    answer->reason = busy ? "in-flight" : "rate";
    answer->detail = busy ? "as many commands of this tenant are running as it may have at a time (setting "
                            "tenant_in_flight); nothing was done by this attempt"
                          : "this tenant has brought more new commands than it may (settings tenant_rate and "
                            "tenant_burst); nothing was done by this attempt";
    answer->retry_after_s = busy ? latency_s : place->wait_s;
}

uint64_t answer_problem(struct flow *flow, struct edge_request *request, const struct answer_problem *answer)
{
    char instance[80];
    uint64_t number = atomic_fetch_add(&flow->commons->request_count, 1) + 1;
    (void) snprintf(instance, sizeof instance, "urn:nonbis:request:%s%" PRIu64, flow->commons->instance_prefix, number);
    struct buf command;
    struct buf fields;
    struct buf body;
    buf_init(&command, 128);
    buf_init(&fields, ANSWER_FIELDS_MAX);
    buf_init(&body, ANSWER_BODY_MAX);
    if (answer->record.command_id != NULL) {
        answer_command_path(&command, answer->record.command_id);
    }
    const struct problem_facts facts = {
        .problem = answer->problem,
        .status = answer->status,
        .detail = view_of(answer->detail),
        .instance = view_of(instance),
        .type_prefix = view_of(flow->settings->problem_prefix),
        .executed = answer->record.executed,
        .has_record = answer->record.read && answer->record.command_id != NULL,
        .command = buf_view(&command),
        .differs = answer->differs,
        .reason = view_of(answer->reason),
        .state = view_of(answer->state),
        .window_start_ms = answer->window_start_ms,
    };
    problem_body_write(&facts, &body);
    answer_problem_fields(&fields, answer);
    struct edge_reply reply = {
        .status = answer->status != 0 ? answer->status : problem_table[answer->problem].status,
        .fields = buf_view(&fields),
        .body = answer->no_body ? (struct view){ NULL, 0 } : buf_view(&body),
        .close = answer->close,
    };
    if (answer->no_body) {
        reply.has_length = true;
        reply.length = body.len;
    }
    (void) edge_reply(request, &reply);
    buf_fini(&command);
    buf_fini(&fields);
    buf_fini(&body);
    return number;
}

void answer_log_request(const struct flow *flow, struct log_line *line, uint64_t number)
{
    char request[64];
    if (number > 0) {
        (void) snprintf(request, sizeof request, "%s%" PRIu64, flow->commons->instance_prefix, number);
        log_text(line, "request", request);
    }
}

void answer_log_key(const struct flow *flow, struct log_line *line, struct view tenant, struct view key)
{
    char text[DIGEST_LOG_NAME_BYTES];
    digest_log_name(flow->commons->store.guard_key, tenant, key, text);
    log_text(line, "key", text);
}

void answer_log_command(struct log_line *line, const uint8_t command_id[COMMAND_ID_BYTES])
{
    char id[2 * COMMAND_ID_BYTES + 1];
    for (int i = 0; i < COMMAND_ID_BYTES; i++) {
        (void) snprintf(id + 2 * i, 3, "%02x", command_id[i]);
    }
    log_text(line, "command", id);
}

void answer_log_path(struct log_line *line, struct view target)
{
    size_t len = 0;
    while (len < target.len && len < ANSWER_LOG_PATH_MAX && target.ptr[len] != '?' && target.ptr[len] != '#') {
        len++;
    }
    if (len > 0) {
        log_view(line, "path", view_make(target.ptr, len));
    }
}
