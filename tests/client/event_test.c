/* event_test.c - what an event carries (struct nonbis_event): the numbers of every step, and never a key, a query, a body or a
 * credential. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

struct told {
    struct nonbis_event events[32];
    size_t count;
    char texts[4096]; /* every text of every event */
};

static int keep(const struct nonbis_event *event, void *arg)
{
    struct told *told = arg;
    ck_assert_uint_lt(told->count, 32);
    told->events[told->count++] = *event;
    size_t len = strlen(told->texts);
    (void) snprintf(told->texts + len, sizeof(told->texts) - len, "%s|%s|%s|%s|%s\n", event->name, event->endpoint,
                    event->method, event->error_kind, event->decision);
    return 0;
}

static struct nonbis_op *told_run(struct lab *lab, struct told *told, const char *name)
{
    struct nonbis_op *op = NULL;
    nonbis_client_on_event(lab->client, keep, told);
    ck_assert_int_eq(nonbis_op_new(&op, lab->client, "http://peer:81/orders?card=4711#x", "sesame", 6), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_key(op, "the-key"), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer hunter2", 0), NONBIS_OK);
    if (name != NULL) {
        ck_assert_int_eq(nonbis_op_set_name(op, name), NONBIS_OK);
    }
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    return op;
}

/* Attempts that take 700 and 300 ms; between them Retry-After: 2 and half of a window of 500 ms. */
START_TEST(an_event_carries_the_numbers_of_its_step)
{
    static const struct {
        enum nonbis_event_kind kind;
        unsigned attempt;
        int64_t delay_ms, server_delay_ms;
        const char *error_kind;
        int http_status;
        const char *decision;
        int64_t left_ms, tokens, elapsed_ms;
        uint64_t bytes;
        enum nonbis_outcome outcome;
    } rows[] = {
        { NONBIS_EVENT_ATTEMPT, 1, 0, -1, "", 0, "", 30000, 10000, 0, 0, NONBIS_NOT_SENT },
        { NONBIS_EVENT_SENT, 1, 0, -1, "", 0, "", 30000, 10000, 0, 0, NONBIS_NOT_SENT },
        { NONBIS_EVENT_ANSWER, 1, 0, -1, "rate-limit", 429, "", 29300, 10000, 700, 147, NONBIS_NOT_APPLIED },
        { NONBIS_EVENT_DECISION, 1, 2250, 2000, "", 0, "server-rate-limit", 29300, 9000, 700, 0, NONBIS_NOT_APPLIED },
        { NONBIS_EVENT_ATTEMPT, 2, 0, -1, "", 0, "", 27050, 9000, 2950, 0, NONBIS_NOT_APPLIED },
        { NONBIS_EVENT_SENT, 2, 0, -1, "", 0, "", 27050, 9000, 2950, 0, NONBIS_NOT_APPLIED },
        { NONBIS_EVENT_ANSWER, 2, 0, -1, "", 201, "", 26750, 9000, 300, 147, NONBIS_COMPLETED },
        { NONBIS_EVENT_OUTCOME, 2, 0, -1, "", 0, "completed", 26750, 9000, 3250, 0, NONBIS_COMPLETED },
    };
    struct nonbis_policy policy = lab_policy("standard", NONBIS_JITTER, NONBIS_JITTER_EQUAL, NONBIS_BASE_MS, 250,
                                             NONBIS_CAP_MS, 250, NONBIS_SERVER, NONBIS_SERVER_KEYED, 0);
    struct told told = { .count = 0 };
    struct lab lab;
    lab_open(&lab, 3, &policy);
    lab_step(&lab, (struct lab_step){ .status = 429, .fields = "Retry-After: 2", .takes_ms = 700 });
    lab_step(&lab, (struct lab_step){ .status = 201, .takes_ms = 300 });
    struct nonbis_op *op = told_run(&lab, &told, NULL);
    ck_assert_uint_eq(told.count, sizeof(rows) / sizeof(rows[0]));
    int64_t delay_ms = told.events[3].delay_ms, off_ms = 0;
    ck_assert_int_ge(delay_ms, 2125); /* the floor, and the window's second half */
    ck_assert_int_lt(delay_ms, 2250);
    for (size_t i = 0; i < told.count; i++) {
        const struct nonbis_event *event = &told.events[i];
        off_ms = i > 3 ? 2250 - delay_ms : 0;
        ck_assert_int_eq(event->kind, rows[i].kind);
        ck_assert_ptr_eq(event->op, op);
        ck_assert_uint_eq(event->attempt, rows[i].attempt);
        ck_assert_uint_eq(event->attempts_max, 4);
        ck_assert_int_eq(event->keyed, 1);
        ck_assert_int_eq(event->delay_ms, i == 3 ? delay_ms : rows[i].delay_ms);
        ck_assert_msg(event->kind == NONBIS_EVENT_ATTEMPT || event->kind == NONBIS_EVENT_SENT ||
                          event->server_delay_ms == rows[i].server_delay_ms,
                      "event %zu: %lld", i, (long long) event->server_delay_ms);
        ck_assert_int_eq(event->http_status, rows[i].http_status);
        ck_assert_int_eq(event->deadline_left_ms, rows[i].left_ms + off_ms);
        ck_assert_int_eq(event->tokens_left_milli, rows[i].tokens);
        ck_assert_int_eq(event->elapsed_ms,
                         event->kind == NONBIS_EVENT_ANSWER ? rows[i].elapsed_ms : rows[i].elapsed_ms - off_ms);
        ck_assert_uint_eq(event->bytes_sent, rows[i].bytes);
        ck_assert_int_eq(event->outcome, rows[i].outcome);
        ck_assert_int_eq(event->stop, event->kind == NONBIS_EVENT_OUTCOME ? NONBIS_STOP_DONE : 0);
    }
    const char *text = told.texts;
    for (size_t i = 0; i < told.count; i++) {
        char line[256];
        (void) snprintf(line, sizeof(line), "POST http://peer:81/orders|http://peer:81/orders|POST|%s|%s\n",
                        rows[i].error_kind, rows[i].decision);
        ck_assert_msg(strncmp(text, line, strlen(line)) == 0, "event %zu: %s instead of %s", i, text, line);
        text += strlen(line);
    }
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(no_event_tells_a_key_a_query_a_body_or_a_credential)
{
    static const char *const secrets[] = { "the-key", "4711", "?", "sesame", "hunter2", "Bearer" };
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct told told = { .count = 0 };
    struct lab lab;
    lab_open(&lab, 3, &policy);
    lab_step(&lab, (struct lab_step) TIMED_OUT);
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step) KEY_REUSED("body"));
    struct nonbis_op *op = told_run(&lab, &told, "charge-card-17");
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_REJECTED);
    ck_assert_ptr_nonnull(strstr(told.texts, "charge-card-17|http://peer:81/orders|POST|"));
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        ck_assert_msg(strstr(told.texts, secrets[i]) == NULL, "%s is told: %s", secrets[i], told.texts);
    }
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(event)
{
    Suite *suite = suite_create("client/event");
    CASE(suite, an_event_carries_the_numbers_of_its_step);
    CASE(suite, no_event_tells_a_key_a_query_a_body_or_a_credential);
    return suite;
}
