/* own.c - see own.h. What a request below /_nonbis asks for, whether it may, and what the store is asked. What is told then: own_answer.c. */
#include "schema/limits.h"
#include "schema/wire.h"
#include "server/base/memory.h"
#include "server/digest/fingerprint_make.h"
#include "server/flow/own_state.h"

#include <stdlib.h>
#include <string.h>

enum { OWN_BODY_MAX = 4096 }; /* of a body that nobody reads */

/* --- which resource --- */

static const struct {
    struct view path; /* normal form */
    enum own_resource resource;
} own_paths[] = {
    { { WIRE_CONTRACT_PATH, sizeof WIRE_CONTRACT_PATH - 1 }, OWN_CONTRACT },
    { { WIRE_COMMAND_PATH, sizeof WIRE_COMMAND_PATH - 1 }, OWN_STATUS },
    { { WIRE_RESPONSE_PATH, sizeof WIRE_RESPONSE_PATH - 1 }, OWN_RESPONSE },
    { { WIRE_VOID_PATH, sizeof WIRE_VOID_PATH - 1 }, OWN_VOID },
};

/* `*id` is what stands for the id of OWN_STATUS_ID, in `form`. */
static enum own_resource own_find(const struct path_form *form, struct view *id)
{
    struct view path = buf_view(&form->normal);
    for (size_t i = 0; i < sizeof own_paths / sizeof own_paths[0]; i++) {
        if (view_equal(path, own_paths[i].path)) {
            return own_paths[i].resource;
        }
    }
    size_t prefix = sizeof WIRE_COMMANDS_PATH - 1;
    if (!view_starts_with(path, VIEW(WIRE_COMMANDS_PATH)) ||
        memchr(path.ptr + prefix, '/', path.len - prefix) != NULL) {
        return OWN_NOTHING;
    }
    *id = view_make(path.ptr + prefix, path.len - prefix);
    return OWN_STATUS_ID;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no id stays all zeros, which no command has: the same look-up is done for it. */
static void own_read_id(struct view text, uint8_t id[COMMAND_ID_BYTES])
{
    memset(id, 0, COMMAND_ID_BYTES);
    if (text.len != 2 * (size_t) COMMAND_ID_BYTES) {
        return;
    }
    for (size_t i = 0; i < COMMAND_ID_BYTES; i++) {
        int high = hex_digit(text.ptr[2 * i]), low = hex_digit(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            memset(id, 0, COMMAND_ID_BYTES);
            return;
        }
        id[i] = (uint8_t) (high * 16 + low);
    }
}

/* NULL: the method is allowed. */
static const char *own_allow(enum own_resource resource, struct view method)
{
    if (resource == OWN_VOID) {
        return view_equal(method, VIEW("POST")) ? NULL : "POST";
    }
    if (resource == OWN_ROUTE) {
        return NULL; /* that it is OPTIONS made it this question */
    }
    return view_equal(method, VIEW("GET")) || view_equal(method, VIEW("HEAD")) ? NULL : "GET, HEAD";
}

bool own_needs_tenant(const struct own_start *start)
{
    struct path_form form;
    struct view id;
    path_form_init(&form, start->guard->target.path);
    enum own_resource resource = own_find(&form, &id);
    path_form_fini(&form);
    return resource > OWN_CONTRACT && own_allow(resource, start->head->method) == NULL;
}

/* --- the store --- */

static void own_forget_found(struct own *own)
{
    struct store_found *found = &own->task.found;
    free(found->response);
    free(found->request);
    free(found->key);
    *found = (struct store_found){ .response = NULL };
}

static void own_free(struct own *own)
{
    own_forget_found(own);
    free(own);
}

static void own_leave_running(struct own *own)
{
    if (own->holds_slot) {
        own->holds_slot = false;
        commons_leave_running(own->flow->commons, &own->quota, own->task.found.claimed);
    }
}

static void own_done(struct store_task *task)
{
    struct own *own = LIST_ITEM(task, struct own, task);
    struct flow *flow = own->flow;
    own->asked = false;
    list_remove(&flow->queries, &own->node);
    own_leave_running(own);
    if (own->client != NULL) {
        if (!own_wait(own)) {
            own_answer_found(own); /* its end frees */
        }
    } else {
        own_free(own);
    }
    flow_check_quiet(flow);
}

static void own_prepare(struct own *own)
{
    struct flow *flow = own->flow;
    struct store_task *task = &own->task;
    struct store_claim *claim = &task->claim;
    claim->tenant = view_of(own->tenant);
    claim->key = view_make(own->key.text, own->key.len);
    claim->method = claim->target = VIEW("");
    task->home = flow->loop;
    task->done = own_done;
    task->kind = STORE_TASK_LOOK_UP;
    task->look_up_id = own->resource == OWN_STATUS_ID;
    claim->may_wait = own_may_wait(own);
    if (own->resource == OWN_RESPONSE) {
        task->kind = STORE_TASK_CLAIM; /* decides as for a repeat, and writes nothing */
        claim->any_payload = true;
    } else if (own->resource == OWN_VOID) {
        task->kind = STORE_TASK_VOID;
        task->retention = (struct retention){ flow->settings->ttl_ms, flow->settings->tombstone_ttl_ms };
        own->holds_slot = !flow->draining && commons_enter_running(flow->commons, claim->tenant, &own->quota);
        claim->may_claim = own->holds_slot;
        digest_random(claim->command_id, sizeof claim->command_id);
    }
}

void own_ask(struct own *own)
{
    struct flow *flow = own->flow;
    own_forget_found(own); /* of an earlier look */
    own_prepare(own);
    if (!store_desk_submit(flow->desk, &own->task)) {
        own_leave_running(own);
        const struct answer_problem full = { .problem = PROBLEM_UNAVAILABLE,
                                             .reason = "overloaded",
                                             .detail = "the store's queue is full; nothing was read or written" };
        own_tell(own, &full);
        return;
    }
    own->asked = true;
    list_append(&flow->queries, &own->node);
}

/* --- events of the client --- */

static void own_whole(void *guest, struct view body)
{
    struct own *own = guest;
    (void) body;
    if (own->resource == OWN_CONTRACT || own->resource == OWN_ROUTE) {
        if (own->resource == OWN_CONTRACT) {
            own_answer_contract(own);
        } else {
            own_answer_route(own);
        }
        return;
    }
    if (own->flow->stopped) {
        /* The drain is over: nothing new may hold it open. */
        const struct answer_problem stopping = { .problem = PROBLEM_UNAVAILABLE,
                                                 .reason = own->flow->draining_reason,
                                                 .detail = "the server is stopping",
                                                 .close = true };
        own_tell(own, &stopping);
        return;
    }
    own_wait_begin(own);
    own_ask(own);
}

static void own_too_large(void *guest)
{
    const struct answer_problem large = { .problem = PROBLEM_BODY_TOO_LARGE,
                                          .detail = "this resource takes no such body",
                                          .close = true };
    own_tell(guest, &large);
}

static void own_drained(void *guest)
{
    (void) guest; /* nothing is streamed */
}

static void own_gone(void *guest, bool delivered)
{
    struct own *own = guest;
    (void) delivered;
    own_wait_end(own);
    own->client = NULL;
    own->head = NULL;
    if (!own->asked) {
        own_free(own);
    }
}

static const struct guest_ops own_ops = {
    .whole = own_whole,
    .too_large = own_too_large,
    .drained = own_drained,
    .gone = own_gone,
    .hung_up = own_hung_up,
};

/* --- the checks that need no record, in the order of section 4 --- */

static bool own_read_key(struct own *own, struct answer_problem *refusal)
{
    struct view value = VIEW("");
    size_t count = headers_count(own->head->headers, VIEW(WIRE_IDEMPOTENCY_KEY), &value);
    if (count == 0) {
        *refusal = (struct answer_problem){ .problem = PROBLEM_KEY_MISSING,
                                            .detail = "name the command by its Idempotency-Key" };
        return false;
    }
    enum key_result result = count == 1 ? key_parse(value, &own->key) : KEY_OK;
    if (count == 1 && result == KEY_OK) {
        return true;
    }
    *refusal = (struct answer_problem){ .problem = PROBLEM_KEY_MALFORMED,
                                        .detail = count > 1 ? "more than one Idempotency-Key field"
                                                            : key_result_text(result) };
    return false;
}

/* False: `*refusal` is the answer. */
static bool own_check(struct own *own, const struct guard_verdict *guard, struct answer_problem *refusal)
{
    if (own->resource == OWN_NOTHING) {
        *refusal = (struct answer_problem){ .problem = PROBLEM_NOT_FOUND, .detail = "there is nothing at this path" };
        return false;
    }
    const char *allow = own_allow(own->resource, own->head->method);
    if (allow != NULL) {
        *refusal = (struct answer_problem){ .problem = PROBLEM_METHOD_NOT_ALLOWED, .allow = allow };
        return false;
    }
    if (guard->body == GUARD_BODY_CHUNKED) {
        *refusal = (struct answer_problem){ .problem = PROBLEM_REQUEST_MALFORMED,
                                            .status = 411,
                                            .detail = "this resource takes a body with Content-Length, or none" };
        return false;
    }
    if (own->resource >= OWN_STATUS && own->resource != OWN_STATUS_ID && !own_read_key(own, refusal)) {
        return false;
    }
    if (guard->body == GUARD_BODY_LENGTH && guard->length > OWN_BODY_MAX) {
        *refusal =
            (struct answer_problem){ .problem = PROBLEM_BODY_TOO_LARGE, .detail = "this resource takes no such body" };
        return false;
    }
    return true;
}

enum edge_take own_start(struct flow *flow, const struct own_start *start)
{
    struct own *own = memory_new(sizeof *own);
    struct path_form form;
    struct view id = VIEW("");
    own->guest.ops = &own_ops;
    own->flow = flow;
    own->client = start->request;
    own->head = start->head;
    own->path = start->guard->target.path;
    path_form_init(&form, own->path);
    own->resource = start->method_asked.len > 0 ? OWN_ROUTE : own_find(&form, &id);
    own->method_asked = start->method_asked;
    own->route = start->route;
    own_read_id(id, own->task.claim.command_id);
    path_form_fini(&form);
    if (start->tenant.len > 0) {
        memcpy(own->tenant, start->tenant.ptr, start->tenant.len);
    }
    struct answer_problem refusal;
    if (!own_check(own, start->guard, &refusal)) {
        refusal.close = true; /* the body, if there is one, is not read */
        own_tell(own, &refusal);
        own_free(own);
        return EDGE_REPLIED;
    }
    credential_make(flow->commons->store.guard_key, flow->settings->guard.items, flow->settings->guard.count,
                    start->head->headers, &own->task.claim.credential);
    edge_set_user(start->request, own);
    return EDGE_COLLECT;
}
