/* lab.c - see lab.h. */
#include "tests/client/lab.h"

#include <stdarg.h>

/* ---- clock and chance --------------------------------------------------------------------------------------------- */

static int64_t lab_monotonic(struct clock *clock)
{
    return ((struct lab *) (void *) ((char *) clock - offsetof(struct lab, clock)))->now_ms;
}

static int64_t lab_wall(struct clock *clock)
{
    struct lab *lab = (struct lab *) (void *) ((char *) clock - offsetof(struct lab, clock));
    return lab->now_ms + lab->wall_offset_ms;
}

static enum clock_wait lab_wait_until(struct clock *clock, int64_t until_ms, struct waker *waker)
{
    struct lab *lab = (struct lab *) (void *) ((char *) clock - offsetof(struct lab, clock));
    lab->waits++;
    if (lab->while_waiting != NULL) {
        lab->while_waiting(lab, until_ms, waker);
        if (waker_is_cancelled(waker) || atomic_load(&waker->hurried)) {
            waker_quiet(waker);
            return CLOCK_WOKEN;
        }
    }
    if (until_ms > lab->now_ms) {
        lab->now_ms = until_ms;
    }
    lab->now_ms += lab->overshoot_ms;
    return CLOCK_DUE;
}

static bool lab_fill(struct random_source *source, void *bytes, size_t len)
{
    struct lab *lab = (struct lab *) (void *) ((char *) source - offsetof(struct lab, random));
    unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        at[i] = (unsigned char) (suite_random_next(&lab->chance) >> 7);
    }
    return !lab->random_fails;
}

/* ---- transport ---------------------------------------------------------------------------------------------------- */

static void fields_play(struct answer *answer, const char *fields)
{
    while (fields != NULL && *fields != '\0') {
        size_t line = strcspn(fields, "\n"), name = strcspn(fields, ":");
        answer_add_field(answer, view_make(fields, name), view_make(fields + name + 1, line - name - 1));
        fields += line + (fields[line] == '\n' ? 1 : 0);
    }
}

void lab_facts(struct transport_facts *facts, const struct lab_step *step)
{
    facts->code = step->code;
    facts->os_errno = step->os_errno;
    facts->hook_calls = step->hooks < 0 ? 0 : step->hooks == 0 ? 1 : (unsigned) step->hooks;
    facts->bytes_sent = facts->hook_calls > 0 ? 147 : 0;
    int status = step->status != 0 ? step->status : step->code == 0 && step->hooks >= 0 ? 200 : 0;
    if (status != 0) {
        facts->answer.status = status;
        facts->answer.head_whole = true;
        facts->answer.whole = step->code == 0 && !step->cut && !step->by_close;
        facts->answer.by_close = step->by_close;
        fields_play(&facts->answer, step->fields);
        if (step->body != NULL) {
            answer_add_body(&facts->answer, step->body, strlen(step->body));
        }
    }
}

static void text_copy(char *to, size_t size, const char *from)
{
    (void) snprintf(to, size, "%s", from);
}

static struct lab_exchange *lab_log(struct lab *lab, const struct transport_request *request)
{
    ck_assert_uint_lt(lab->log_count, LAB_EXCHANGES_MAX);
    struct lab_exchange *exchange = &lab->log[lab->log_count++];
    *exchange =
        (struct lab_exchange){ .at_ms = lab->now_ms, .fresh = request->fresh, .timeout_ms = request->timeout_ms };
    text_copy(exchange->method, sizeof(exchange->method), request->method);
    text_copy(exchange->url, sizeof(exchange->url), request->url);
    exchange->question = strstr(request->url, "/_nonbis/") != NULL || strcmp(request->method, "OPTIONS") == 0;
    if (request->body_len < sizeof(exchange->body) && request->body_len > 0) {
        memcpy(exchange->body, request->body, request->body_len);
    }
    for (size_t i = 0; i < request->field_count; i++) {
        const struct transport_field *field = &request->fields[i];
        if (strcmp(field->name, "Idempotency-Key") == 0) {
            text_copy(exchange->key, sizeof(exchange->key), field->value);
        } else if (strcmp(field->name, "Prefer") == 0) {
            text_copy(exchange->prefer, sizeof(exchange->prefer), field->value);
        } else if (strcmp(field->name, "Nonbis-Ask") == 0) {
            text_copy(exchange->asked, sizeof(exchange->asked), field->value);
        } else if (strcmp(field->name, "Authorization") == 0) {
            text_copy(exchange->authorization, sizeof(exchange->authorization), field->value);
        }
    }
    return exchange;
}

static bool lab_perform(struct transport *transport, const struct transport_request *request,
                        struct transport_facts *facts)
{
    struct lab *lab = (struct lab *) (void *) ((char *) transport - offsetof(struct lab, transport));
    struct lab_exchange *exchange = lab_log(lab, request);
    struct lab_step step;
    if (lab->serve != NULL) {
        step = lab->serve(lab, exchange, lab->serve_arg);
    } else {
        ck_assert_msg(lab->step_count > 0, "nothing is scripted for %s", request->url);
        step = lab->steps[lab->step_next];
        lab->step_next += lab->step_next + 1 < lab->step_count ? 1 : 0;
    }
    if (step.fails) {
        text_copy(facts->message, sizeof(facts->message), "no handle");
        return false;
    }
    if (step.takes_ms >= request->timeout_ms) {
        step = (struct lab_step){ .code = 28, .hooks = step.hooks, .takes_ms = request->timeout_ms };
    }
    if (step.hooks >= 0 && request->before_send != NULL && request->before_send(request->before_send_arg) != 0) {
        facts->hook_calls = 1;
        facts->hook_refused = true;
        facts->code = 42;
        return true;
    }
    lab->now_ms += step.takes_ms;
    lab_facts(facts, &step);
    facts->elapsed_ms = step.takes_ms;
    facts->arrived_wall_ms = lab->now_ms + lab->wall_offset_ms;
    exchange->sent = facts->hook_calls > 0;
    lab->attempts += exchange->sent && !exchange->question ? 1 : 0;
    lab->questions += exchange->question ? 1 : 0;
    return true;
}

static int lab_set_text(struct transport *transport, enum nonbis_client_text which, const char *text)
{
    (void) transport;
    (void) which;
    (void) text;
    return NONBIS_OK;
}

static void lab_free(struct transport *transport)
{
    (void) transport;
}

/* ---- journal ------------------------------------------------------------------------------------------------------ */

static struct lab *lab_of_journal(struct journal *journal)
{
    return (struct lab *) (void *) ((char *) journal - offsetof(struct lab, journal));
}

static int lab_create(struct journal *journal, const struct journal_record *record, struct journal_entry **entry)
{
    struct lab *lab = lab_of_journal(journal);
    if (lab->create_error != 0) {
        return lab->create_error;
    }
    ck_assert_uint_eq(lab->attempts, 0); /* before the first byte */
    lab->created++;
    lab->journal_state = JOURNAL_NEW;
    lab->record = *record;
    *entry = (struct journal_entry *) (void *) lab;
    return NONBIS_OK;
}

static int lab_mark_sent(struct journal *journal, struct journal_entry *entry)
{
    struct lab *lab = lab_of_journal(journal);
    (void) entry;
    if (lab->sent_error != 0) {
        return lab->sent_error;
    }
    lab->sent_at_mark = lab->marked_sent == 0 ? lab->attempts : lab->sent_at_mark;
    lab->marked_sent++;
    lab->journal_state = JOURNAL_SENT;
    return NONBIS_OK;
}

static int lab_mark_ended(struct journal *journal, struct journal_entry *entry, const struct journal_record *record,
                          bool decided)
{
    struct lab *lab = lab_of_journal(journal);
    (void) entry;
    lab->ended++;
    lab->decided = decided;
    lab->record.outcome = record->outcome;
    lab->record.stop = record->stop;
    lab->record.field_count = record->field_count;
    lab->record.unstored_count = record->unstored_count;
    lab->journal_state = decided ? JOURNAL_DONE : lab->journal_state;
    return lab->ended_error;
}

static void lab_close_entry(struct journal *journal, struct journal_entry *entry)
{
    (void) entry;
    lab_of_journal(journal)->closed++;
}

static const char *lab_message(struct journal *journal)
{
    (void) journal;
    return "the lab's journal says no";
}

static void lab_free_journal(struct journal *journal)
{
    (void) journal;
}

/* ---- the lab ------------------------------------------------------------------------------------------------------ */

static int lab_event(const struct nonbis_event *event, void *arg)
{
    struct lab *lab = arg;
    static const char *const kinds[] = { "", "attempt", "sent", "answer", "decision", "ask", "told", "outcome" };
    size_t len = strlen(lab->told);
    lab->events[event->kind]++;
    if (len + 128 < sizeof(lab->told)) {
        (void) snprintf(lab->told + len, sizeof(lab->told) - len, "%s %u %s%s\n", kinds[event->kind], event->attempt,
                        event->error_kind, event->decision);
    }
    return lab->stop_at_event == (unsigned) event->kind ? 1 : 0;
}

static void lab_make(struct lab *lab, unsigned seed, const struct nonbis_policy *policy, bool with_journal)
{
    memset(lab, 0, sizeof(*lab));
    lab->clock = (struct clock){ lab_monotonic, lab_wall, lab_wait_until };
    lab->now_ms = 1000000;
    lab->wall_offset_ms = INT64_C(1795953600000) - lab->now_ms; /* 2026-11-29T12:00:00Z */
    lab->random = (struct random_source){ lab_fill };
    suite_random_start(&lab->chance, seed);
    lab->transport = (struct transport){ lab_perform, lab_set_text, lab_free };
    lab->journal = (struct journal){ .create = lab_create,
                                     .mark_sent = lab_mark_sent,
                                     .mark_ended = lab_mark_ended,
                                     .close = lab_close_entry,
                                     .message = lab_message,
                                     .free = lab_free_journal };
    lab->log = calloc(LAB_EXCHANGES_MAX, sizeof(*lab->log));
    const struct client_parts parts = { .transport = &lab->transport,
                                        .clock = &lab->clock,
                                        .random = &lab->random,
                                        .journal = with_journal ? &lab->journal : NULL };
    ck_assert_int_eq(client_make(&lab->client, policy, &parts), NONBIS_OK);
    nonbis_client_on_event(lab->client, lab_event, lab);
}

void lab_open(struct lab *lab, unsigned seed, const struct nonbis_policy *policy)
{
    lab_make(lab, seed, policy, false);
}

void lab_open_with_journal(struct lab *lab, unsigned seed, const struct nonbis_policy *policy)
{
    lab_make(lab, seed, policy, true);
}

void lab_close(struct lab *lab)
{
    nonbis_client_free(lab->client);
    free(lab->log);
}

void lab_step(struct lab *lab, struct lab_step step)
{
    ck_assert_uint_lt(lab->step_count, LAB_STEPS_MAX);
    lab->steps[lab->step_count++] = step;
}

struct nonbis_policy lab_policy(const char *profile, ...)
{
    struct nonbis_policy policy;
    va_list rest;
    ck_assert(policy_init(&policy, profile));
    va_start(rest, profile);
    for (int option; (option = va_arg(rest, int)) != 0;) {
        ck_assert_int_eq(nonbis_policy_set(&policy, (enum nonbis_option) option, va_arg(rest, int)), NONBIS_OK);
    }
    va_end(rest);
    return policy;
}

struct nonbis_op *lab_post(struct lab *lab)
{
    struct nonbis_op *op = NULL;
    ck_assert_int_eq(nonbis_op_new(&op, lab->client, "http://peer/orders", "{}", 2), NONBIS_OK);
    return op;
}
