/* front.c - a request arrives: the checks of docs/contract.md section 4 that need no body (1 to 5), in order, and then the room it goes to. */
#include "common/key.h"
#include "schema/limits.h"
#include "schema/wire.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"
#include "server/flow/answer.h"
#include "server/flow/own.h"
#include "server/flow/replay_cache.h"
#include "server/flow/waiters.h"
#include "server/http/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METHOD_ASKED_MAX = 32 };

/* One arriving request while its head is judged. */
struct arrival {
    struct flow *flow;
    struct edge_request *request;
    const struct edge_head *head;
    struct guard_verdict guard;
    const struct route *route; /* NULL: not protected */
    enum metrics_row row;      /* where it is counted when it is refused */
    struct view tenant;
    struct key key;
    struct view method_asked; /* not empty: the request is the question of contract 7.7, about this method */
};

static enum edge_take arrival_refuse(const struct arrival *a, const struct answer_problem *answer)
{
    struct answer_problem whole = *answer;
    whole.no_body = view_equal(a->head->method, VIEW("HEAD"));
    uint64_t request = answer_problem(a->flow, a->request, &whole);
    metrics_count_request(a->flow->metrics, a->row, result_of_problem(answer->problem));
    /* A target that could not be read is shown only where it cannot hold a user name. */
    struct view raw = a->head->target;
    struct view path = a->guard.target.path.len > 0       ? a->guard.target.path
                       : view_starts_with(raw, VIEW("/")) ? raw
                                                          : VIEW("");
    struct log_line line;
    if (log_enabled(LOG_INFO)) {
        log_begin(&line, LOG_INFO, "refused");
        log_text(&line, "problem", problem_table[answer->problem].name);
        log_int(&line, "status", answer->status != 0 ? answer->status : problem_table[answer->problem].status);
        answer_log_request(a->flow, &line, request);
        log_view(&line, "client", a->head->peer);
        log_view(&line, "method", view_make(a->head->method.ptr, a->head->method.len < 32 ? a->head->method.len : 32));
        answer_log_path(&line, path);
        if (answer->reason != NULL) {
            log_text(&line, "reason", answer->reason);
        }
        log_text(&line, "why", answer->detail != NULL ? answer->detail : "");
        log_end(&line);
    }
    return EDGE_REPLIED;
}

static enum edge_take arrival_malformed(const struct arrival *a, int status, const char *detail)
{
    const struct answer_problem answer = {
        .problem = PROBLEM_REQUEST_MALFORMED, .status = status, .detail = detail, .close = true
    };
    return arrival_refuse(a, &answer);
}

/* Fields that settings make us read: one line of each at most. */
static struct guard_verdict arrival_guard(const struct arrival *a)
{
    const struct settings *settings = a->flow->settings;
    struct header read[SETTING_NAMES_MAX + 1];
    struct header_span span = { read, 0 };
    for (size_t i = 0; i < settings->guard.count; i++) {
        read[span.count++] = (struct header){ .name = settings->guard.items[i] };
    }
    if (settings->tenant_field.len > 0) {
        read[span.count++] = (struct header){ .name = settings->tenant_field };
    }
    const struct guard_head head = {
        .method = a->head->method,
        .target = a->head->target,
        .version = a->head->version,
        .headers = a->head->headers,
        .read_fields = &span,
        .header_bytes_max = (size_t) settings->request_header_max,
    };
    return guard_check(&head);
}

static bool path_is_own(struct view normal)
{
    return view_equal(normal, VIEW(WIRE_PREFIX)) || view_starts_with(normal, VIEW(WIRE_PREFIX "/"));
}

/* OPTIONS with Nonbis-Ask: whether a request of that method would be protected here. The question goes the way of the request that it is
 * about, so that its answer proves that this server is on that way. False when it was answered. */
static bool arrival_question(struct arrival *a)
{
    size_t count = view_equal(a->head->method, VIEW("OPTIONS"))
                       ? headers_count(a->head->headers, VIEW(WIRE_ASK), &a->method_asked)
                       : 0;
    bool good = count == 1 && a->method_asked.len > 0 && a->method_asked.len <= METHOD_ASKED_MAX;
    for (size_t i = 0; good && i < a->method_asked.len; i++) {
        good = a->method_asked.ptr[i] >= 'A' && a->method_asked.ptr[i] <= 'Z';
    }
    if (good) {
        return true;
    }
    a->method_asked = VIEW("");
    if (count > 0) {
        (void) arrival_malformed(a, 400, WIRE_ASK " takes one method in capitals");
    }
    return count == 0;
}

/* Route and own paths. Returns false when the request was answered. */
static bool arrival_route(struct arrival *a, bool *own)
{
    struct view method = a->method_asked.len > 0 ? a->method_asked : a->head->method;
    struct path_form form;
    path_form_init(&form, a->guard.target.path);
    struct view normal = buf_view(&form.normal);
    struct view resolved = form.ambiguous ? buf_view(&form.resolved) : normal;
    const struct routes *routes = &a->flow->settings->routes;
    bool malformed = form.malformed || form.normal.failed || form.resolved.failed;
    a->route = route_find(routes, method, normal);
    *own = path_is_own(normal);
    bool unclear = form.ambiguous && (a->route != NULL || route_find(routes, method, resolved) != NULL ||
                                      path_is_own(normal) || path_is_own(resolved));
    path_form_fini(&form);
    if (malformed) {
        (void) arrival_malformed(a, 400, "a percent sign in the path is not followed by two hex digits");
        return false;
    }
    if (unclear) {
        (void) arrival_malformed(
            a, 400, "an encoded slash, %00 or a dot segment in the path of a protected route is not accepted");
        return false;
    }
    a->row = *own || a->method_asked.len > 0 ? METRICS_OWN
             : a->route != NULL              ? metrics_row_of(a->route)
                                             : METRICS_PASS_THROUGH;
    return true;
}

static bool arrival_tenant(struct arrival *a)
{
    struct view name = a->flow->settings->tenant_field;
    if (name.len == 0) {
        a->tenant = VIEW("");
        return true;
    }
    size_t count = headers_count(a->head->headers, name, &a->tenant);
    const char *detail = !a->head->peer_is_loopback           ? "the tenant field is believed from trusted peers only"
                         : count == 0                         ? "the tenant field is missing"
                         : count > 1                          ? "the tenant field stands there twice"
                         : a->tenant.len == 0                 ? "the tenant field is empty"
                         : a->tenant.len > LIMIT_TENANT_BYTES ? "the tenant field is too long"
                                                              : NULL;
    if (detail == NULL) {
        return true;
    }
    const struct answer_problem answer = { .problem = PROBLEM_TENANT_MISSING, .detail = detail, .close = true };
    (void) arrival_refuse(a, &answer);
    return false;
}

enum arrival_key { ARRIVAL_ANSWERED, ARRIVAL_KEYED, ARRIVAL_KEYLESS };

static enum arrival_key arrival_key(struct arrival *a)
{
    struct view value = VIEW("");
    size_t count = headers_count(a->head->headers, VIEW(WIRE_IDEMPOTENCY_KEY), &value);
    if (count == 0) {
        if (!a->route->key_required) {
            return ARRIVAL_KEYLESS;
        }
        const struct answer_problem missing = {
            .problem = PROBLEM_KEY_MISSING,
            .detail = "this route needs an Idempotency-Key; make one per intent and repeat it on every retry",
            .close = true,
        };
        (void) arrival_refuse(a, &missing);
        return ARRIVAL_ANSWERED;
    }
    const char *detail = "more than one Idempotency-Key field";
    if (count == 1) {
        enum key_result result = key_parse(value, &a->key);
        if (result == KEY_OK) {
            return ARRIVAL_KEYED;
        }
        detail = key_result_text(result);
    }
    const struct answer_problem malformed = {
        .problem = PROBLEM_KEY_MALFORMED, .detail = detail, .keyed = true, .close = true
    };
    (void) arrival_refuse(a, &malformed);
    return ARRIVAL_ANSWERED;
}

static enum edge_take arrival_relay(struct arrival *a)
{
    struct view ignored_value;
    struct view method = a->head->method;
    bool safe =
        view_equal(method, VIEW("GET")) || view_equal(method, VIEW("HEAD")) || view_equal(method, VIEW("OPTIONS"));
    const struct relay_start start = {
        .request = a->request,
        .head = a->head,
        .target = a->guard.target,
        .guard = &a->guard,
        .ignored = !safe && headers_count(a->head->headers, VIEW(WIRE_IDEMPOTENCY_KEY), &ignored_value) > 0,
    };
    return relay_start(a->flow, &start);
}

static enum edge_take arrival_command(struct arrival *a)
{
    struct view method = a->head->method;
    bool needs_body = view_equal(method, VIEW("POST")) || view_equal(method, VIEW("PATCH"));
    if (needs_body && a->guard.body == GUARD_BODY_NONE) {
        return arrival_malformed(a, 411, "a POST or PATCH on a protected route needs Content-Length or chunked coding");
    }
    if (!arrival_tenant(a)) {
        return EDGE_REPLIED;
    }
    switch (arrival_key(a)) {
    case ARRIVAL_ANSWERED:
        return EDGE_REPLIED;
    case ARRIVAL_KEYLESS:
        return arrival_relay(a);
    case ARRIVAL_KEYED:
        break;
    }
    if (a->guard.body == GUARD_BODY_LENGTH && a->guard.length > (uint64_t) a->flow->settings->body_max) {
        const struct answer_problem large = {
            .problem = PROBLEM_BODY_TOO_LARGE,
            .detail = "the declared length is over what this server takes (setting body_max)",
            .keyed = true,
            .close = true
        };
        return arrival_refuse(a, &large);
    }
    const struct command_start start = {
        .request = a->request,
        .head = a->head,
        .target = a->guard.target,
        .route = a->route,
        .tenant = a->tenant,
        .key = &a->key,
        .host = a->guard.host,
    };
    return command_start(a->flow, &start);
}

static enum edge_take arrival_own(struct arrival *a)
{
    struct own_start start = {
        .request = a->request, .head = a->head, .guard = &a->guard, .method_asked = a->method_asked, .route = a->route
    };
    if (a->method_asked.len == 0 && own_needs_tenant(&start) && !arrival_tenant(a)) {
        return EDGE_REPLIED;
    }
    start.tenant = a->tenant;
    return own_start(a->flow, &start);
}

static enum edge_take front_head(void *context, struct edge_request *request, const struct edge_head *head)
{
    struct arrival a = { .flow = context, .request = request, .head = head, .row = METRICS_NOWHERE };
    a.guard = arrival_guard(&a);
    if (a.guard.status != 0) {
        return arrival_malformed(&a, a.guard.status, a.guard.detail);
    }
    if (!head->exact) {
        return arrival_malformed(
            &a, 400, "the head holds a bare LF, a NUL, a folded line, an empty field name, or a blank too many");
    }
    if (a.guard.body == GUARD_BODY_CHUNKED) {
        /* libmicrohttpd takes LF for CR LF between chunks and shows none of it: whoever framed these bytes may see another end of
         * them, so nothing that follows on this connection is believed to be a request. */
        edge_close_after(request);
    }
    bool own = false;
    if (!arrival_question(&a) || !arrival_route(&a, &own)) {
        return EDGE_REPLIED;
    }
    if (own) {
        a.method_asked = VIEW(""); /* our own paths are what they are */
    }
    if (own || a.method_asked.len > 0) {
        return arrival_own(&a);
    }
    if (fields_has_loop(head->headers, view_of(a.flow->commons->via_name))) {
        const struct answer_problem loop = {
            .problem = PROBLEM_LOOP_DETECTED,
            .detail = "this request has passed here before: the upstream leads back to this nonbis",
            .not_executed = true,
            .close = true
        };
        return arrival_refuse(&a, &loop);
    }
    if (a.flow->stopped) {
        /* The drain is over: nothing new may hold it open. */
        const struct answer_problem stopping = { .problem = PROBLEM_UNAVAILABLE,
                                                 .reason = a.flow->draining_reason,
                                                 .detail = "the server is stopping",
                                                 .close = true };
        return arrival_refuse(&a, &stopping);
    }
    return a.route != NULL ? arrival_command(&a) : arrival_relay(&a);
}

/* --- the rest of a request's events go to its guest --- */

static void front_whole(void *context, struct edge_request *request, struct view body)
{
    (void) context;
    struct guest *guest = edge_user(request);
    guest->ops->whole(guest, body);
}

static void front_too_large(void *context, struct edge_request *request)
{
    (void) context;
    struct guest *guest = edge_user(request);
    guest->ops->too_large(guest);
}

static size_t front_part(void *context, struct edge_request *request, struct view bytes)
{
    (void) context;
    struct guest *guest = edge_user(request);
    return guest->ops->part(guest, bytes);
}

static void front_last(void *context, struct edge_request *request)
{
    (void) context;
    struct guest *guest = edge_user(request);
    guest->ops->last(guest);
}

static void front_drained(void *context, struct edge_request *request)
{
    (void) context;
    struct guest *guest = edge_user(request);
    if (guest != NULL) {
        guest->ops->drained(guest);
    }
}

static void front_hung_up(void *context, struct edge_request *request)
{
    (void) context;
    struct guest *guest = edge_user(request);
    if (guest != NULL && guest->ops->hung_up != NULL) {
        guest->ops->hung_up(guest);
    }
}

static void front_gone(void *context, struct edge_request *request, bool delivered)
{
    (void) context;
    struct guest *guest = edge_user(request);
    if (guest != NULL) {
        guest->ops->gone(guest, delivered);
    }
}

const struct edge_handler front_handler = {
    .head = front_head,
    .whole = front_whole,
    .too_large = front_too_large,
    .part = front_part,
    .last = front_last,
    .drained = front_drained,
    .gone = front_gone,
    .hung_up = front_hung_up,
};

/* --- the flow itself --- */

void flow_init(struct flow *flow, struct loop *loop, struct commons *commons)
{
    *flow = (struct flow){ .loop = loop, .settings = commons->settings, .commons = commons };
    list_init(&flow->exchanges);
    list_init(&flow->spares);
    list_init(&flow->relays);
    list_init(&flow->queries);
    list_init(&flow->late);
    flow->waiters = waiters_new(commons->waiter_count);
    flow->metrics = metrics_new(commons->settings->routes.count);
    flow->replay_cache = replay_cache_new((size_t) (commons->settings->replay_cache / commons->settings->loops));
}

void flow_fini(struct flow *flow)
{
    command_free_spares(flow);
    buf_fini(&flow->bytes);
    buf_fini(&flow->fields);
    waiters_free(flow->waiters);
    metrics_free(flow->metrics);
    replay_cache_free(flow->replay_cache);
}

bool flow_is_quiet(const struct flow *flow)
{
    return flow->exchanges.count == flow->reading && flow->relays.count == 0 && flow->queries.count == 0 &&
           flow->late.count == 0;
}

void flow_check_quiet(struct flow *flow)
{
    if (flow_is_quiet(flow) && flow->quiet != NULL) {
        flow->quiet(flow->quiet_context);
    }
}
