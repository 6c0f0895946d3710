/* run_exchange.c - one attempt, or one question. See run.h. */
#include "client-sdk/src/run.h"

#include "schema/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_FIELDS = 3,                /* key, Accept, Prefer */
    KEY_FIELD_BYTES = 2 * 255 + 3, /* quoted, every byte escaped */
    QUESTION_URL_BYTES = 8192,
    ORIGIN_SHOWN = 160 /* bytes of it in a sentence */
};

/* The key as a field value. A key with a quote in it has only the quoted form (contract 2.2). */
static void key_field_write(const struct nonbis_op *op, char out[KEY_FIELD_BYTES])
{
    bool quoted = policy_value(&op->client->policy, NONBIS_KEY_QUOTED) != 0 || strchr(op->key, '"') != NULL;
    if (!quoted) {
        (void) snprintf(out, KEY_FIELD_BYTES, "%s", op->key);
        return;
    }
    *out++ = '"';
    for (const char *at = op->key; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            *out++ = '\\';
        }
        *out++ = *at;
    }
    *out++ = '"';
    *out = '\0';
}

/* Fields that speak of the body or the condition of the command say nothing in a question about it. */
static bool field_is_of_command(const char *name)
{
    struct view text = view_of(name);
    return view_starts_with_nocase(text, VIEW("Content-")) || view_starts_with_nocase(text, VIEW("If-")) ||
           view_equal_nocase(text, VIEW("Accept"));
}

/* The fields of a request; room for all of them. Without a key when it is NULL. NULL: out of memory. */
static struct transport_field *fields_make(const struct nonbis_op *op, bool question, const char *key, size_t *count)
{
    struct transport_field *fields = calloc(op->field_count + OWN_FIELDS, sizeof(*fields));
    *count = 0;
    if (fields == NULL) {
        return NULL;
    }
    if (op->key[0] != '\0' && key != NULL) {
        fields[(*count)++] = (struct transport_field){ WIRE_IDEMPOTENCY_KEY, key };
    }
    for (size_t i = 0; i < op->field_count; i++) {
        if (!question || !field_is_of_command(op->fields[i].name)) {
            fields[(*count)++] = (struct transport_field){ op->fields[i].name, op->fields[i].value };
        }
    }
    return fields;
}

/* Everything that an exchange leaves behind is fresh, but for the memory of its buffers. */
static void facts_clear(struct transport_facts *facts)
{
    struct answer answer = facts->answer;
    answer_clear(&answer);
    memset(facts, 0, sizeof(*facts));
    facts->answer = answer;
}

/* One call of the transport. Not even begun counts as an error here of which nothing was sent. */
static void exchange(struct nonbis_op *op, const struct transport_request *request)
{
    struct transport *transport = op->client->parts.transport;
    int64_t began_ms = run_now_ms(op);
    facts_clear(&op->facts);
    if (waker_is_cancelled(&op->waker)) {
        op->facts.cancelled = true;
        return;
    }
    if (!transport->perform(transport, request, &op->facts)) {
        op->facts.hook_calls = 0;
        op->facts.code = 2; /* CURLE_FAILED_INIT: classify.c calls it local */
    }
    if (op->facts.arrived_wall_ms == 0) {
        op->facts.arrived_wall_ms = run_wall_ms(op);
    }
    if (op->facts.elapsed_ms == 0) {
        op->facts.elapsed_ms = run_now_ms(op) - began_ms;
    }
}

static void answer_swap(struct answer *a, struct answer *b)
{
    struct answer kept = *a;
    *a = *b;
    *b = kept;
}

/* ---- attempts ----------------------------------------------------------------------------------------------------- */

/* Inside the hook: connected, and no byte has left. */
static int attempt_sending(void *arg)
{
    struct nonbis_op *op = arg;
    if (waker_is_cancelled(&op->waker)) {
        op->facts.cancelled = true;
        return 1;
    }
    int error = run_journal_sending(op);
    if (error != NONBIS_OK) {
        op->history.local_error = error;
        return 1;
    }
    if (!run_event(op, NONBIS_EVENT_SENT, NULL, NULL)) {
        op->history.caller_stop = true;
        return 1;
    }
    history_note_sending(&op->history, run_wall_ms(op));
    return 0;
}

static void attempt_remember(struct nonbis_op *op, const struct reading *reading, int64_t delay_ms, enum reason reason,
                             int64_t started_wall_ms)
{
    if (op->attempt_count == OP_ATTEMPTS_MAX) {
        return;
    }
    if (op->attempt_count == op->attempt_cap) {
        unsigned cap = op->attempt_cap > 0 ? op->attempt_cap * 2 : 4;
        struct nonbis_attempt *grown = realloc(op->attempts, cap * sizeof(*grown));
        if (grown == NULL) {
            return; /* the past is told as far as it could be kept */
        }
        op->attempts = grown;
        op->attempt_cap = cap;
    }
    op->attempts[op->attempt_count++] =
        (struct nonbis_attempt){ .number = op->history.exchanges,
                                 .result = finding_name(reading->finding),
                                 .error_kind = reading_kind(reading),
                                 .sent = op->facts.hook_calls > 0 && !op->facts.hook_refused,
                                 .http_status = reading->http_status,
                                 .transport_code = op->facts.code,
                                 .bytes_sent = op->facts.bytes_sent,
                                 .elapsed_ms = op->facts.elapsed_ms,
                                 .delay_ms = delay_ms,
                                 .delay_reason = op->history.exchanges > 1 ? reason_text(reason) : "",
                                 .started_wall_ms = started_wall_ms };
}

static void marks_set(struct nonbis_op *op, const struct reading *reading)
{
    op->marks &=
        ~(unsigned) (NONBIS_MARK_REPLAYED | NONBIS_MARK_UNRECORDED | NONBIS_MARK_BODY_LOST | NONBIS_MARK_CREDENTIALS);
    op->marks |=
        (reading->replayed ? (unsigned) NONBIS_MARK_REPLAYED : 0) |
        (reading->finding == FINDING_UNRECORDED ? (unsigned) NONBIS_MARK_UNRECORDED : 0) |
        (reading->ignores_key ? (unsigned) NONBIS_MARK_IGNORED : 0) |
        (reading->body_lost || reading->finding == FINDING_KEY_EXPIRED_EXECUTED ? (unsigned) NONBIS_MARK_BODY_LOST
                                                                                : 0) |
        (reading->finding == FINDING_KEY_FOREIGN ? (unsigned) NONBIS_MARK_CREDENTIALS : 0);
}

static void breaker_note(struct nonbis_op *op, enum finding finding)
{
    struct nonbis_client *client = op->client;
    pthread_mutex_lock(&client->lock);
    switch (finding) {
    case FINDING_CANCELLED:
    case FINDING_CANCELLED_SENT:
    case FINDING_HELD_BACK:
    case FINDING_LOCAL:
        breaker_forget(&client->breaker);
        break;
    case FINDING_OFFLINE:
    case FINDING_NOT_SENT:
    case FINDING_RESEND_BLOCKED:
    case FINDING_LOST:
    case FINDING_CUT:
    case FINDING_REPLAY_CUT:
    case FINDING_UNAVAILABLE:
    case FINDING_THROTTLED:
    case FINDING_BUSY:
    case FINDING_FAULT:
        breaker_report(&client->breaker, run_now_ms(op), false);
        break;
    default:
        breaker_report(&client->breaker, run_now_ms(op), true);
        break;
    }
    pthread_mutex_unlock(&client->lock);
}

void run_attempt(struct nonbis_op *op, const struct plan *plan, struct reading *reading)
{
    struct nonbis_client *client = op->client;
    char key[KEY_FIELD_BYTES];
    int64_t started_wall_ms = run_wall_ms(op);
    int64_t delay_ms = op->history.waiting ? op->history.delay_ms : 0;
    struct transport_request request = { .method = op->method,
                                         .url = op->url,
                                         .body = op->body,
                                         .body_len = op->body_len,
                                         .has_body = strcmp(op->method, "GET") != 0 && strcmp(op->method, "HEAD") != 0,
                                         .timeout_ms = plan->timeout_ms,
                                         .connect_timeout_ms = policy_value(&client->policy, NONBIS_CONNECT_MS),
                                         .fresh = plan->fresh,
                                         .before_send = attempt_sending,
                                         .before_send_arg = op,
                                         .waker = &op->waker };
    key_field_write(op, key);
    struct transport_field *fields = fields_make(op, false, key, &request.field_count);
    request.fields = fields;
    pthread_mutex_lock(&client->lock);
    breaker_begin(&client->breaker, run_now_ms(op));
    pthread_mutex_unlock(&client->lock);
    facts_clear(&op->facts);
    if (fields == NULL) {
        op->history.local_error = NONBIS_ERROR_MEMORY;
        op->facts.hook_refused = true;
    } else if (!run_event(op, NONBIS_EVENT_ATTEMPT, NULL, plan)) {
        op->history.caller_stop = true;
        op->facts.hook_refused = true;
    } else {
        exchange(op, &request);
    }
    if (op->history.local_error == NONBIS_ERROR_JOURNAL) {
        /* What the transport says of it is only that its hook said no. */
        struct journal *journal = client->parts.journal;
        (void) snprintf(op->facts.message, sizeof(op->facts.message), "%s", journal->message(journal));
    }
    (void) snprintf(op->attempt_message, sizeof(op->attempt_message), "%s", op->facts.message);
    free(fields);
    classify_attempt(&op->facts, reading);
    if (reading->finding == FINDING_LOCAL && op->history.local_error == 0) {
        op->history.local_error = NONBIS_ERROR_TRANSPORT;
    }
    history_note_attempt(&op->history, reading, run_now_ms(op));
    breaker_note(op, reading->finding);
    attempt_remember(op, reading, delay_ms, plan->reason, started_wall_ms);
    marks_set(op, reading);
    if (reading->http_status != 0) {
        answer_swap(&op->answer, &op->facts.answer);
    }
    run_count_attempt(op, reading);
    if (!run_event(op, NONBIS_EVENT_ANSWER, reading, plan)) {
        op->history.caller_stop = true;
    }
}

/* ---- questions ---------------------------------------------------------------------------------------------------- */

static void status_fill(struct nonbis_op *op, const struct reading *reading)
{
    bool told = reading->finding >= FINDING_TOLD_COMPLETED && reading->finding <= FINDING_TOLD_FORGOTTEN;
    bool seen = told && reading->finding < FINDING_TOLD_NOT_SEEN;
    op->told = reading->status;
    const struct told_status *from = &op->told;
    op->status = (struct nonbis_status){ .answered = told,
                                         .seen = seen,
                                         .state = from->state,
                                         .executed = from->executed,
                                         .id = from->id,
                                         .cause = from->cause,
                                         .request_method = from->request_method,
                                         .request_target = from->request_target,
                                         .executions = from->executions,
                                         .replays = from->replays,
                                         .created_ms = from->created_ms,
                                         .completed_ms = from->completed_ms,
                                         .expires_ms = from->expires_ms,
                                         .window_start_ms = reading->window_start_ms,
                                         .retry_after_ms = reading->retry_after_ms,
                                         .response_status = from->response_status,
                                         .response_length = from->response_length,
                                         .response_kept = from->response_kept,
                                         .resolved = from->resolved };
    if (!told) {
        (void) snprintf(op->message, sizeof(op->message), "%.*s: the question for the status had no usable answer: %s",
                        ORIGIN_SHOWN, op->origin,
                        op->facts.message[0] != '\0' ? op->facts.message : finding_name(reading->finding));
    }
}

/* Where the question goes: that about the route goes where the command goes. False when the URL does not fit. */
static bool question_url(const struct nonbis_op *op, enum ask ask, char out[QUESTION_URL_BYTES])
{
    static const char *const paths[] = { [ASK_STATUS] = WIRE_COMMAND_PATH,
                                         [ASK_RESPONSE] = WIRE_RESPONSE_PATH,
                                         [ASK_VOID] = WIRE_VOID_PATH,
                                         [ASK_ROUTE] = "" };
    const char *base = ask == ASK_ROUTE ? op->url : op->status_url != NULL ? op->status_url : op->origin;
    int len = snprintf(out, QUESTION_URL_BYTES, "%s%s", base, paths[ask]);
    return len > 0 && len < QUESTION_URL_BYTES;
}

static const char *question_method(enum ask ask)
{
    return ask == ASK_VOID ? "POST" : ask == ASK_ROUTE ? "OPTIONS" : "GET";
}

/* What belongs to the operation of what was told. The route is no part of the command's status. */
static void answer_take(struct nonbis_op *op, const struct reading *reading)
{
    if (reading->finding == FINDING_TOLD_ANSWER) {
        marks_set(op, reading);
        answer_swap(&op->answer, &op->facts.answer);
    } else if (reading->finding == FINDING_TOLD_EXPIRED_EXECUTED) {
        op->marks |= NONBIS_MARK_BODY_LOST;
    } else if (reading->finding == FINDING_TOLD_UNPROTECTED) {
        op->marks |= NONBIS_MARK_IGNORED;
    }
    if (reading->ask != ASK_ROUTE) {
        status_fill(op, reading);
    }
}

void run_ask(struct nonbis_op *op, const struct plan *plan, struct reading *reading)
{
    char url[QUESTION_URL_BYTES], key[KEY_FIELD_BYTES], hold[40];
    struct transport_request request = { .method = question_method(plan->ask),
                                         .url = url,
                                         .has_body = plan->ask == ASK_VOID,
                                         .timeout_ms = plan->timeout_ms,
                                         .connect_timeout_ms = policy_value(&op->client->policy, NONBIS_CONNECT_MS),
                                         .fresh = plan->fresh,
                                         .waker = &op->waker };
    key_field_write(op, key);
    struct transport_field *fields = fields_make(op, true, plan->ask == ASK_ROUTE ? NULL : key, &request.field_count);
    facts_clear(&op->facts);
    if (fields == NULL || !question_url(op, plan->ask, url)) {
        op->history.local_error = fields == NULL ? NONBIS_ERROR_MEMORY : NONBIS_ERROR_URL;
    } else if (!run_event(op, NONBIS_EVENT_ASK, NULL, plan)) {
        op->history.caller_stop = true;
    } else {
        fields[request.field_count++] =
            (struct transport_field){ "Accept", "application/json, application/problem+json" };
        if (plan->hold_s > 0) {
            (void) snprintf(hold, sizeof(hold), "wait=%lld", (long long) plan->hold_s);
            fields[request.field_count++] = (struct transport_field){ "Prefer", hold };
        }
        if (plan->ask == ASK_ROUTE) {
            fields[request.field_count++] = (struct transport_field){ WIRE_ASK, op->method };
        }
        request.fields = fields;
        exchange(op, &request);
    }
    free(fields);
    classify_answer(plan->ask, &op->facts, reading);
    history_note_answer(&op->history, reading, run_now_ms(op));
    answer_take(op, reading);
    pthread_mutex_lock(&op->client->lock);
    op->client->stats.status_asked++;
    pthread_mutex_unlock(&op->client->lock);
    if (!run_event(op, NONBIS_EVENT_TOLD, reading, plan)) {
        op->history.caller_stop = true;
    }
}
