/* own_answer.c - what a request for one of our own resources is told (docs/contract.md sections 7 and 8). Owns nothing.
 *
 * A stranger, of another tenant or under another credential, is told the same as about a key that was never used; only a void has to refuse
 * him openly, since it would otherwise seem to have been done. */
#include "schema/wire.h"
#include "server/api/contract_body.h"
#include "server/api/status_body.h"
#include "server/core/status_view.h"
#include "server/digest/digest.h"
#include "server/flow/own_state.h"
#include "server/flow/replays.h"
#include "server/http/fields.h"

#include <stdlib.h>
#include <string.h>

enum { OWN_JSON_MAX = 64 * 1024 }; /* a target of 4 KiB, escaped, fits many times */

/* --- the log, and the counts --- */

static void own_tell_end(const struct own *own, enum result result, int status, const uint8_t *command_id,
                         uint64_t request)
{
    struct log_line line;
    metrics_count_request(own->flow->metrics, METRICS_OWN, result);
    if (!log_enabled(LOG_INFO)) {
        return;
    }
    log_begin(&line, LOG_INFO, "query");
    log_text(&line, "result", result_name(result));
    log_int(&line, "status", status);
    answer_log_request(own->flow, &line, request);
    log_view(&line, "client", own->head->peer);
    log_view(&line, "method",
             view_make(own->head->method.ptr, own->head->method.len < 32 ? own->head->method.len : 32));
    answer_log_path(&line, own->path);
    if (own->key.len > 0) {
        answer_log_key(own->flow, &line, view_of(own->tenant), view_make(own->key.text, own->key.len));
    }
    if (command_id != NULL) {
        answer_log_command(&line, command_id);
    }
    log_end(&line);
}

void own_tell(struct own *own, const struct answer_problem *problem)
{
    struct answer_problem told = *problem;
    told.no_body = view_equal(own->head->method, VIEW("HEAD"));
    uint64_t request = answer_problem(own->flow, own->client, &told);
    const struct problem_row *row = &problem_table[problem->problem];
    own_tell_end(own, result_of_problem(problem->problem), problem->status != 0 ? problem->status : row->status,
                 problem->record.command_id, request);
}

static void own_tell_unavailable(struct own *own, const char *reason, const char *detail)
{
    const struct answer_problem unavailable = { .problem = PROBLEM_UNAVAILABLE, .reason = reason, .detail = detail };
    own_tell(own, &unavailable);
}

/* The same words for whoever may know nothing: no value in it comes from a record. */
static void own_tell_not_seen(struct own *own)
{
    const struct answer_problem not_seen = {
        .problem = PROBLEM_KEY_NOT_SEEN,
        .detail = "no such command is known to this caller; that does not prove that none is under way",
        .window_start_ms = store_window_told(own->flow->commons->live),
    };
    own_tell(own, &not_seen);
}

/* --- what a record allows --- */

/* What the route of that command takes, or the slowest one when its request is not at hand. */
static int64_t own_latency_ms(const struct flow *flow, struct view request)
{
    const struct routes *routes = &flow->settings->routes;
    const char *blank = request.len > 0 ? memchr(request.ptr, ' ', request.len) : NULL;
    int64_t slowest_ms = 0;
    const struct route *route = NULL;
    if (blank != NULL) {
        size_t method_len = (size_t) (blank - request.ptr);
        struct path_form form;
        path_form_init(&form, view_make(blank + 1, request.len - method_len - 1));
        route = route_find(routes, view_make(request.ptr, method_len), buf_view(&form.normal));
        path_form_fini(&form);
    }
    for (unsigned i = 0; route == NULL && i < routes->count; i++) {
        int64_t route_ms = commons_latency_ms(flow->commons, &routes->items[i]);
        slowest_ms = route_ms > slowest_ms ? route_ms : slowest_ms;
    }
    return route != NULL ? commons_latency_ms(flow->commons, route) : slowest_ms;
}

static unsigned own_retry_after_s(const struct own *own)
{
    return problem_retry_after_s(own_latency_ms(own->flow, view_of(own->task.found.request)), digest_random32());
}

static struct answer_record own_record(const struct own *own, const struct status_view *view)
{
    struct answer_record record = { .read = true,
                                    .executed = view->executed,
                                    .command_id = own->task.found.record.command_id };
    if (view->state == RECORD_COMPLETED) {
        record.expires_ms = view->expires_ms + own->flow->commons->store_offset_ms;
    }
    return record;
}

bool own_view(const struct own *own, struct status_view *view)
{
    const struct store_found *found = &own->task.found;
    return status_view_make(&found->record, found->now_ms, view) &&
           status_view_is_for(&found->record, &own->task.claim.credential);
}

/* --- answers --- */

static void own_reply_json(struct own *own, struct buf *fields, const struct buf *body)
{
    field_block_add(fields, VIEW("Content-Type"), VIEW("application/json"));
    field_block_add(fields, VIEW("Cache-Control"), VIEW("no-store"));
    const struct edge_reply reply = { .status = 200, .fields = buf_view(fields), .body = buf_view(body) };
    (void) edge_reply(own->client, &reply);
}

static void own_tell_status(struct own *own, const struct status_view *view)
{
    const struct store_found *found = &own->task.found;
    const struct answer_record record = own_record(own, view);
    const struct status_facts facts = {
        .view = *view,
        .command_id = found->record.command_id,
        .key = found->key != NULL ? view_of(found->key) : view_make(own->key.text, own->key.len),
        .request = view_of(found->request),
        .replays = replays_of(own->flow->commons->replays, found->record.command_id),
        .time_offset_ms = own->flow->commons->store_offset_ms,
    };
    struct buf fields, body;
    buf_init(&fields, 2048);
    buf_init(&body, OWN_JSON_MAX);
    status_body_write(&facts, &body);
    if (view->state == RECORD_IN_PROGRESS) {
        buf_printf(&fields, "Retry-After: %u\r\n", own_retry_after_s(own));
    }
    if (own->wait_ms > 0) {
        buf_printf(&fields, "Preference-Applied: wait=%lld\r\n", (long long) ((own->wait_ms + 999) / 1000));
    }
    answer_mark(&fields, NULL, false, &record);
    own_tell_end(own, result_of_state(view->state), 200, found->record.command_id, 0);
    own_reply_json(own, &fields, &body);
    buf_fini(&fields);
    buf_fini(&body);
}

void own_answer_contract(struct own *own)
{
    const struct settings *settings = own->flow->settings;
    const struct contract_facts facts = {
        .ttl_ms = settings->ttl_ms,
        .tombstone_ttl_ms = settings->tombstone_ttl_ms,
        .body_max = settings->body_max,
        .response_keep_max = settings->response_keep_max,
        .wait_max_ms = settings->wait_max_ms,
        .window_start_ms = store_window_told(own->flow->commons->live),
    };
    struct buf fields, body;
    buf_init(&fields, 512);
    buf_init(&body, OWN_JSON_MAX);
    contract_body_write(&facts, &body);
    own_tell_end(own, RESULT_CONTRACT, 200, NULL, 0);
    own_reply_json(own, &fields, &body);
    buf_fini(&fields);
    buf_fini(&body);
}

void own_answer_route(struct own *own)
{
    const struct route_facts facts = {
        .method = own->method_asked,
        .is_protected = own->route != NULL,
        .key_required = own->route != NULL && own->route->key_required,
        .window_start_ms = store_window_told(own->flow->commons->live),
    };
    struct buf fields, body;
    buf_init(&fields, 512);
    buf_init(&body, OWN_JSON_MAX);
    route_body_write(&facts, &body);
    own_tell_end(own, RESULT_CONTRACT, 200, NULL, 0);
    own_reply_json(own, &fields, &body);
    buf_fini(&fields);
    buf_fini(&body);
}

static void own_answer_status(struct own *own)
{
    struct status_view view;
    if (own_view(own, &view)) {
        own_tell_status(own, &view);
    } else {
        own_tell_not_seen(own);
    }
}

/* A GET may be cached where the POST was not: the handler's own Cache-Control does not go with it. */
static void own_replay(struct own *own, const struct status_view *view)
{
    struct stored_response *response = own->task.found.response;
    const struct answer_record record = own_record(own, view);
    struct view rest = response->fields;
    struct header field;
    struct buf fields;
    buf_init(&fields, 4 * LIMIT_CONNECTION_POOL);
    while (field_block_next(&rest, &field)) {
        if (!header_name_is(field.name, VIEW("Cache-Control"))) {
            field_block_add(&fields, field.name, field.value);
        }
    }
    field_block_add(&fields, VIEW("Cache-Control"), VIEW("no-store"));
    if (!response->kept) {
        field_block_add(&fields, VIEW(WIRE_BODY_NOT_KEPT), VIEW(WIRE_BODY_NOT_KEPT_VALUE));
    }
    answer_mark(&fields, NULL, true, &record);
    own_tell_end(own, RESULT_REPLAYED, response->status, record.command_id, 0);
    const struct edge_reply reply = {
        .status = response->status, .fields = buf_view(&fields), .body = response->body, .body_owner = response
    };
    own->task.found.response = NULL; /* the edge has it now */
    (void) edge_reply(own->client, &reply);
    buf_fini(&fields);
}

static const char *own_detail(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_KEY_EXPIRED:
        return "this key was used before and its answer is no longer kept";
    case VERDICT_KEY_VOIDED:
        return "this key was voided before anything was executed; there is no answer and never will be";
    case VERDICT_OUTCOME_UNKNOWN:
        return "the command may or may not have been executed; there is no answer to replay";
    default:
        return "the command is still running; ask again later";
    }
}

static void own_answer_response(struct own *own)
{
    const struct store_found *found = &own->task.found;
    enum verdict verdict = found->decision.verdict;
    struct status_view view;
    bool nothing = verdict == VERDICT_FORWARD || verdict == VERDICT_KEY_REUSED || verdict == VERDICT_IMPOSSIBLE;
    if (!own_view(own, &view) || nothing) {
        own_tell_not_seen(own);
    } else if (found->response != NULL) {
        own_replay(own, &view);
    } else {
        const struct answer_problem problem = { .problem = problem_of_verdict(verdict),
                                                .detail = own_detail(verdict),
                                                .record = own_record(own, &view),
                                                .retry_after_s = own_retry_after_s(own) };
        own_tell(own, &problem);
    }
}

static void own_refuse_void(struct own *own, const struct status_view *view)
{
    bool running = view->state == RECORD_IN_PROGRESS;
    const struct answer_problem refusal = {
        .problem = running ? PROBLEM_IN_PROGRESS : PROBLEM_NOT_VOIDABLE,
        .detail = running ? "the command is running and cannot be voided; ask for its status later"
                          : "only a command that was never seen, or that was released, can be voided",
        .state = running ? NULL : record_state_name(view->state),
        .record = own_record(own, view),
        .retry_after_s = own_retry_after_s(own),
    };
    own_tell(own, &refusal);
}

static void own_answer_void(struct own *own)
{
    const struct store_found *found = &own->task.found;
    const struct flow *flow = own->flow;
    struct status_view view;
    bool known = status_view_make(&found->record, found->now_ms, &view);
    if (known && !status_view_is_for(&found->record, &own->task.claim.credential)) {
        const struct answer_problem stranger = { .problem = PROBLEM_KEY_REUSED,
                                                 .detail = "this key was used before under another credential",
                                                 .differs = DIFFERS_CREDENTIALS };
        own_tell(own, &stranger);
    } else if ((!known || view.state == RECORD_RELEASED) && own->quota.answer != QUOTA_TAKEN) {
        struct answer_problem over = { .problem = PROBLEM_QUOTA_EXCEEDED };
        answer_over_quota(&own->quota, own_retry_after_s(own), &over);
        own_tell(own, &over);
    } else if (!known || view.state == RECORD_RELEASED) {
        own_tell_unavailable(own, flow->draining ? flow->draining_reason : "overloaded",
                             flow->draining ? "the server is stopping; nothing was voided"
                                            : "more commands are running or waiting than this server takes; nothing "
                                              "was voided");
    } else if (view.state == RECORD_VOIDED) {
        own_tell_status(own, &view);
    } else {
        own_refuse_void(own, &view);
    }
}

void own_answer_found(struct own *own)
{
    if (own->task.result != STORE_OK) {
        own_tell_unavailable(own, "store",
                             own->resource == OWN_VOID ? "the void could not be made durable"
                                                       : "the record could not be read");
        return;
    }
    switch (own->resource) {
    case OWN_STATUS:
    case OWN_STATUS_ID:
        own_answer_status(own);
        return;
    case OWN_RESPONSE:
        own_answer_response(own);
        return;
    case OWN_VOID:
        own_answer_void(own);
        return;
    case OWN_NOTHING:
    case OWN_CONTRACT: /* ask no store */
    case OWN_ROUTE:
        break;
    }
}
