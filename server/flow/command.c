/* command.c - the conductor of a keyed request on a protected route: it takes an event, asks core/exchange.h for the next phase and the
 * one deed, and does it. It knows no rule of its own. */
#include "common/key.h"
#include "schema/limits.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/digest/fingerprint_make.h"
#include "server/flow/exchange_state.h"
#include "server/http/fields.h"

#include <stdlib.h>
#include <string.h>

/* --- exchanges are used again: with their buffers they are most of what a request allocates --- */

#ifdef __SANITIZE_ADDRESS__
enum { SPARES_MAX = 0 }; /* whoever touches one that has ended must be seen */
#else
enum { SPARES_MAX = 64 };
#endif
enum { SPARE_BUF_MAX = 2048 /* bytes that a buffer keeps */ };

static struct exchange *exchange_new(struct flow *flow)
{
    struct list_node *node = list_take_first(&flow->spares);
    if (node == NULL) {
        return memory_new(sizeof(struct exchange));
    }
    struct exchange *x = LIST_ITEM(node, struct exchange, node);
    char *texts = x->texts;
    size_t texts_room = x->texts_room;
    const struct buf fields_out = x->fields_out, response_fields = x->response_fields, keep_fields = x->keep_fields;
    memset(x, 0, sizeof *x);
    x->texts = texts;
    x->texts_room = texts_room;
    x->fields_out = fields_out;
    x->response_fields = response_fields;
    x->keep_fields = keep_fields;
    return x;
}

static void exchange_destroy(struct exchange *x)
{
    free(x->texts);
    buf_fini(&x->fields_out);
    buf_fini(&x->response_fields);
    buf_fini(&x->keep_fields);
    free(x);
}

void command_free_spares(struct flow *flow)
{
    struct list_node *node;
    while ((node = list_take_first(&flow->spares)) != NULL) {
        exchange_destroy(LIST_ITEM(node, struct exchange, node));
    }
}

static void exchange_free(struct exchange *x)
{
    struct flow *flow = x->flow;
    exchange_tell_end(x);
    exchange_release_slot(x);
    if (x->client != NULL) {
        edge_set_user(x->client, NULL);
    }
    loop_timer_stop(&x->answer_timer);
    loop_timer_stop(&x->hard_timer);
    list_remove(&flow->exchanges, &x->node);
    free(x->task.found.response);
    free(x->body_copy);
    buf_fini(&x->response_body);
    buf_fini(&x->spill_wait);
    if ((int) flow->spares.count < SPARES_MAX && x->texts_room <= SPARE_BUF_MAX) {
        list_append(&flow->spares, &x->node);
    } else {
        exchange_destroy(x);
    }
    flow_check_quiet(flow);
}

/* The client left before the handler was asked: what is still needed of its request is copied. */
static void exchange_detach(struct exchange *x)
{
    x->client = NULL;
    if (x->phase == PHASE_CLAIMING && x->body_copy == NULL) {
        x->body_copy = memory_copy(x->body.ptr, x->body.len);
        x->body = view_make(x->body_copy, x->body.len);
    }
    exchange_client_left(x);
}

/* A cell that cannot be: a bug of ours. The key stays as it is (in progress becomes unknown at its deadline), the client is told
 * that nothing is known, and the exchange ends. */
static void exchange_impossible(struct exchange *x, enum event event)
{
    log_message(LOG_ERROR, "bug", "event %s in phase %s is impossible; the key is left as it is", event_name(event),
                phase_name(x->phase));
    exchange_abort_call(x, ATTEMPT_SHUTDOWN);
    x->result = RESULT_BUG;
    if (x->client != NULL && !x->answered) {
        x->problem = (struct answer_problem){ .problem = PROBLEM_OUTCOME_UNKNOWN,
                                              .detail = "an internal error; ask for the status of the command",
                                              .record.executed = EXECUTED_UNKNOWN };
        x->phase = PHASE_REPLYING;
        x->answered = true;
        exchange_tell(x, &x->problem);
    }
}

static void exchange_do(struct exchange *x, enum deed deed, enum event event)
{
    switch (deed) {
    case DEED_NONE:
        return;
    case DEED_CLAIM:
        exchange_claim(x);
        return;
    case DEED_FORWARD:
        exchange_forward(x);
        return;
    case DEED_RECORD:
    case DEED_RECORD_UNKNOWN:
        if (deed == DEED_RECORD_UNKNOWN) {
            exchange_abort_call(x, event == EVENT_STOP ? ATTEMPT_SHUTDOWN : ATTEMPT_TIMEOUT);
        }
        exchange_record(x);
        return;
    case DEED_ANSWER:
        if (event == EVENT_STOP) {
            exchange_tell_stopping(x);
        }
        exchange_answer(x, false);
        return;
    case DEED_ANSWER_UNRECORDED:
        exchange_answer(x, true);
        return;
    case DEED_TELL_STILL_RUNNING:
        exchange_tell_still_running(x);
        return;
    case DEED_DETACH:
        exchange_detach(x);
        return;
    case DEED_FREE:
        exchange_free(x);
        return;
    case DEED_WAIT:
        exchange_wait(x);
        return;
    case DEED_IMPOSSIBLE:
    case DEED_COUNT:
        break;
    }
    exchange_impossible(x, event);
}

void exchange_event(struct exchange *x, enum event event)
{
    struct step step = exchange_next(x->phase, event);
    if (x->phase == PHASE_READING && step.next != PHASE_READING) {
        x->flow->reading--;
    }
    if (x->phase == PHASE_WAITING && step.next != PHASE_WAITING) {
        exchange_wait_end(x);
    }
    x->phase = step.next;
    exchange_do(x, step.deed, event);
}

/* --- events of the client --- */

static void command_fingerprint(struct exchange *x)
{
    const struct view parts[FINGERPRINT_PART_COUNT] = {
        [FINGERPRINT_METHOD] = view_of(x->method),
        [FINGERPRINT_AUTHORITY] = view_of(x->authority),
        [FINGERPRINT_TARGET] = view_of(x->origin),
        [FINGERPRINT_CONTENT_TYPE] = x->content_type,
        [FINGERPRINT_CONTENT_ENCODING] = x->content_encoding,
        [FINGERPRINT_BODY] = x->body,
    };
    fingerprint_make(parts, &x->task.claim.fingerprint);
    const struct setting_names *guard = &x->flow->settings->guard;
    credential_make(x->flow->commons->store.guard_key, guard->items, guard->count, x->headers,
                    &x->task.claim.credential);
}

static void command_whole(void *guest, struct view body)
{
    struct exchange *x = guest;
    x->body = body;
    x->whole_us = clock_monotonic_us();
    command_fingerprint(x);
    exchange_wait_begin(x, x->headers);
    exchange_event(x, EVENT_BODY_WHOLE);
}

static void command_too_large(void *guest)
{
    struct exchange *x = guest;
    x->problem = (struct answer_problem){ .problem = PROBLEM_BODY_TOO_LARGE,
                                          .detail = "the body is longer than this server takes (setting body_max)",
                                          .keyed = true,
                                          .close = true };
    x->result = RESULT_REFUSED;
    exchange_event(x, EVENT_REFUSED);
}

static void command_drained(void *guest)
{
    exchange_drained(guest);
}

static void command_gone(void *guest, bool delivered)
{
    (void)
        delivered; /* handed to the kernel, or not: either way the client's part is over, and the record is what counts */
    struct exchange *x = guest;
    bool answered = x->answered;
    x->client = NULL;
    exchange_event(x, answered ? EVENT_ANSWERED : EVENT_CLIENT_GONE);
}

/* A client that waits and closes its side has left, or will read what there is: either way its wait is over. */
static void command_hung_up(void *guest)
{
    struct exchange *x = guest;
    if (x->phase == PHASE_WAITING) {
        exchange_event(x, EVENT_ANSWER_DEADLINE);
    }
}

static const struct guest_ops command_ops = {
    .whole = command_whole,
    .too_large = command_too_large,
    .drained = command_drained,
    .gone = command_gone,
    .hung_up = command_hung_up,
};

/* --- start and stop --- */

static void command_on_answer_timer(void *context)
{
    struct exchange *x = context;
    /* The rival's claim may be over before our patience is: then its record is unknown, and nobody else would say so. */
    exchange_event(x, x->phase == PHASE_WAITING && exchange_may_wait(x) ? EVENT_RIVAL_ENDED : EVENT_ANSWER_DEADLINE);
}

static void command_on_hard_timer(void *context)
{
    exchange_event(context, EVENT_HARD_DEADLINE);
}

static const char *texts_add(char **end, struct view text)
{
    char *at = *end;
    if (text.len > 0) {
        memcpy(at, text.ptr, text.len);
    }
    at[text.len] = '\0';
    *end = at + text.len + 1;
    return at;
}

/* The texts that outlive the head. */
static void exchange_copy_texts(struct exchange *x, const struct command_start *start)
{
    struct view method = start->head->method, origin = start->target.origin, authority = start->target.authority;
    size_t room = method.len + origin.len + authority.len + 3;
    if (room > x->texts_room) {
        x->texts = memory_resize(x->texts, room);
        x->texts_room = room;
    }
    char *end = x->texts;
    x->method = texts_add(&end, method);
    x->origin = texts_add(&end, origin);
    x->authority = texts_add(&end, authority);
    x->path_len = start->target.path.len;
}

enum edge_take command_start(struct flow *flow, const struct command_start *start)
{
    struct exchange *x = exchange_new(flow);
    x->guest.ops = &command_ops;
    x->flow = flow;
    x->phase = PHASE_READING;
    x->client = start->request;
    x->route = start->route;
    x->key = *start->key;
    memcpy(x->tenant, start->tenant.ptr, start->tenant.len);
    exchange_copy_texts(x, start);
    x->headers = start->head->headers;
    (void) headers_count(x->headers, VIEW("Content-Type"), &x->content_type);
    (void) headers_count(x->headers, VIEW("Content-Encoding"), &x->content_encoding);
    x->started_us = clock_monotonic_us();
    x->state_before = x->state_after = RECORD_STATE_COUNT;
    buf_reuse(&x->fields_out, 2 * LIMIT_CONNECTION_POOL, SPARE_BUF_MAX);
    const struct fields_added added = {
        .via_name = view_of(flow->commons->via_name),
        .client_addr = start->head->peer,
        .proto = VIEW("http"),
        .host = start->host,
    };
    fields_to_handler(x->headers, &added, &x->fields_out);
    buf_reuse(&x->response_fields, 4 * LIMIT_CONNECTION_POOL, SPARE_BUF_MAX);
    buf_init(&x->response_body, (size_t) flow->settings->response_keep_max);
    buf_reuse(&x->keep_fields, 4 * LIMIT_CONNECTION_POOL, SPARE_BUF_MAX);
    buf_init(&x->spill_wait, SIZE_MAX);
    loop_timer_init(&x->answer_timer, flow->loop, command_on_answer_timer, x);
    loop_timer_init(&x->hard_timer, flow->loop, command_on_hard_timer, x);
    list_append(&flow->exchanges, &x->node);
    flow->reading++;
    edge_set_user(start->request, x);
    return EDGE_COLLECT;
}

size_t command_stop_all(struct flow *flow)
{
    size_t running = 0;
    struct list_node *node = flow->exchanges.head.next;
    while (node != &flow->exchanges.head) {
        struct exchange *x = LIST_ITEM(node, struct exchange, node);
        node = node->next; /* the event may free this one, and no other */
        running += x->phase == PHASE_FORWARDING ? 1 : 0;
        if (x->phase == PHASE_READING) {
            edge_reply_cut(x->client); /* the rest of its body may never come, and nothing has happened yet */
        } else {
            exchange_event(x, EVENT_STOP);
        }
    }
    return running;
}

void command_stop_waiting(struct flow *flow)
{
    struct list_node *node = flow->exchanges.head.next;
    while (node != &flow->exchanges.head) {
        struct exchange *x = LIST_ITEM(node, struct exchange, node);
        node = node->next; /* as above */
        if (x->phase == PHASE_WAITING) {
            exchange_event(x, EVENT_ANSWER_DEADLINE);
        }
    }
}
