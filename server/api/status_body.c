/* status_body.c - see status_body.h. Members always stand there, in this order; what is not known is null. */
#include "server/api/status_body.h"

#include "server/api/json_body.h"

#include <string.h>

static int64_t wall(const struct status_facts *facts, int64_t store_ms)
{
    return store_ms == 0 ? 0 : store_ms + facts->time_offset_ms;
}

static void status_add_id(struct json_body *body, const uint8_t *command_id)
{
    struct buf id;
    buf_init(&id, 64);
    buf_append_hex(&id, command_id, COMMAND_ID_BYTES);
    json_body_add_text(body, body->object, "id", buf_view(&id));
    body->failed |= id.failed;
    buf_fini(&id);
}

static void status_add_request(struct json_body *body, struct view request)
{
    const char *blank = request.len > 0 ? memchr(request.ptr, ' ', request.len) : NULL;
    size_t method_len = blank != NULL ? (size_t) (blank - request.ptr) : 0;
    if (method_len == 0) {
        json_body_add_null(body, body->object, "request"); /* voided before anybody asked for anything */
        return;
    }
    cJSON *object = json_body_add_object(body, "request");
    json_body_add_text(body, object, "method", view_make(request.ptr, method_len));
    json_body_add_text(body, object, "target", view_make(blank + 1, request.len - method_len - 1));
}

static void status_add_response(struct json_body *body, const struct status_view *view)
{
    if (!view->has_response) {
        json_body_add_null(body, body->object, "response");
        return;
    }
    cJSON *object = json_body_add_object(body, "response");
    json_body_add_number(body, object, "status", view->response_status);
    json_body_add_number(body, object, "length", (double) view->response_bytes);
    json_body_add_bool(body, object, "kept", view->response_kept);
}

void status_body_write(const struct status_facts *facts, struct buf *out)
{
    const struct status_view *view = &facts->view;
    struct json_body body;
    json_body_init(&body);
    status_add_id(&body, facts->command_id);
    json_body_add_text(&body, body.object, "key", facts->key);
    json_body_add_text(&body, body.object, "state", view_of(record_state_name(view->state)));
    json_body_add_text(&body, body.object, "executed", view_of(executed_name(view->executed)));
    json_body_add_number(&body, body.object, "executions", view->executions);
    json_body_add_number(&body, body.object, "replays", facts->replays);
    json_body_add_time(&body, body.object, "created_at", wall(facts, view->created_ms));
    json_body_add_time(&body, body.object, "completed_at", wall(facts, view->completed_ms));
    json_body_add_time(&body, body.object, "expires_at", wall(facts, view->expires_ms));
    if (view->cause == CAUSE_NONE) {
        json_body_add_null(&body, body.object, "cause");
    } else {
        json_body_add_text(&body, body.object, "cause", view_of(cause_name(view->cause)));
    }
    json_body_add_bool(&body, body.object, "resolved", false); /* nobody can resolve yet */
    status_add_request(&body, facts->request);
    status_add_response(&body, view);
    json_body_finish(&body, out);
}
