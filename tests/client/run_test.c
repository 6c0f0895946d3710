/* run_test.c - whole runs over the lab's scripted other side: what is sent, and what is told in the end. */
#include "tests/client/run_table.h"

START_TEST(a_run_ends_as_it_must)
{
    const struct flow *flow = &flows[_i];
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, (int) flow->server, NONBIS_ATTEMPTS,
                                             flow->attempts_max > 0 ? flow->attempts_max : 4, 0);
    struct lab lab;
    lab_open(&lab, 77, &policy);
    for (int i = 0; i < flow->step_count; i++) {
        lab_step(&lab, flow->steps[i]);
    }
    struct nonbis_op *op = lab_post(&lab);
    int64_t began_ms = lab.now_ms;
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    char end[160];
    (void) snprintf(end, sizeof(end), "%s/%s %d %s", nonbis_outcome_name(nonbis_op_outcome(op)),
                    nonbis_stop_name(nonbis_op_stop(op)), nonbis_op_http_status(op), nonbis_op_reason(op));
    ck_assert_msg(strcmp(end, flow->end) == 0, "%s: %s: %s", flow->what, end, nonbis_op_message(op));
    ck_assert_msg(lab.attempts == flow->attempts, "%s: %zu attempts", flow->what, lab.attempts);
    ck_assert_msg(nonbis_op_stop(op) == NONBIS_STOP_DEADLINE || lab.questions == flow->questions, "%s: %zu questions",
                  flow->what, lab.questions);
    ck_assert_int_le(lab.now_ms - began_ms, 30000);
    for (size_t i = 0; i < lab.log_count; i++) {
        bool about_route = strcmp(lab.log[i].method, "OPTIONS") == 0;
        ck_assert_str_eq(lab.log[i].key, about_route ? "" : nonbis_op_key(op)); /* else there, and the same */
        ck_assert_str_eq(lab.log[i].asked, about_route ? "POST" : "");
        if (!lab.log[i].question) {
            ck_assert_str_eq(lab.log[i].body, "{}");
        }
    }
    ck_assert_uint_eq(lab.events[NONBIS_EVENT_OUTCOME], 1);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* ---- keys and bodies ---------------------------------------------------------------------------------------------- */

static void run_one(struct nonbis_op *op)
{
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
}

START_TEST(without_a_key_there_is_one_attempt_and_no_question)
{
    struct lab lab;
    lab_open(&lab, 1, NULL);
    lab_step(&lab, (struct lab_step){ .code = 52 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_key(op, NULL), NONBIS_OK);
    run_one(op);
    ck_assert_uint_eq(lab.log_count, 1);
    ck_assert_str_eq(lab.log[0].key, "");
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_NOT_REPLAYABLE);
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_ERROR_STATE);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(the_callers_key_goes_out_as_it_is_and_a_quote_in_it_quotes_it)
{
    static const struct {
        const char *given, *kept, *sent;
        int quoted;
    } keys[] = {
        { "cmd_01J", "cmd_01J", "cmd_01J", 0 },     { "\"cmd_01J\"", "cmd_01J", "cmd_01J", 0 },
        { "cmd_01J", "cmd_01J", "\"cmd_01J\"", 1 }, { "\"a\\\"b\"", "a\"b", "\"a\\\"b\"", 0 },
        { "a\\b", "a\\b", "\"a\\\\b\"", 1 },        { "a\\b", "a\\b", "a\\b", 0 },
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct nonbis_policy policy = lab_policy("standard", NONBIS_KEY_QUOTED, keys[i].quoted, 0);
        struct lab lab;
        lab_open(&lab, 1, &policy);
        lab_step(&lab, (struct lab_step){ .status = 200 });
        struct nonbis_op *op = lab_post(&lab);
        ck_assert_int_eq(nonbis_op_set_key(op, keys[i].given), NONBIS_OK);
        ck_assert_str_eq(nonbis_op_key(op), keys[i].kept);
        run_one(op);
        ck_assert_str_eq(lab.log[0].key, keys[i].sent);
        ck_assert_int_eq(nonbis_op_set_key(op, "other"), NONBIS_ERROR_STATE);
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(a_completed_command_with_the_callers_key_is_fetched_by_a_repeat_so_that_payloads_are_compared)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step) IS_COMPLETED);
    lab_step(&lab, (struct lab_step) KEY_REUSED("body"));
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_key(op, "used-before"), NONBIS_OK);
    run_one(op);
    ck_assert_uint_eq(lab.attempts, 2);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_REJECTED); /* not the other command's answer */
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_second_run_goes_on_with_the_same_key_and_asks_first)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, NONBIS_ATTEMPTS, 1, 0);
    struct lab lab;
    lab_open(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step){ .status = 404 }); /* the status is unreachable for now */
    lab_step(&lab, (struct lab_step) SAYS(201, "replayed"));
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_uint_eq(nonbis_op_attempts(op), 2);
    ck_assert_str_eq(lab.log[0].key, lab.log[2].key);
    run_one(op); /* decided: nothing happens any more */
    ck_assert_uint_eq(lab.log_count, 3);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(what_was_learned_about_a_route_serves_the_next_operation)
{
    struct lab lab;
    lab_open(&lab, 1, NULL); /* detect */
    lab_step(&lab, (struct lab_step) SAYS(201, "executed"));
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step) SAYS(201, "executed"));
    struct nonbis_op *first = lab_post(&lab), *second = lab_post(&lab);
    run_one(first);
    run_one(second);
    ck_assert_int_eq(nonbis_op_outcome(second), NONBIS_COMPLETED);
    ck_assert_uint_eq(lab.attempts, 3);
    nonbis_op_free(first);
    nonbis_op_free(second);
    lab_close(&lab);
}
END_TEST

/* ---- cancel, hurry, callbacks ------------------------------------------------------------------------------------- */

static struct nonbis_op *waiting_op;

static void cancel_while_waiting(struct lab *lab, int64_t until_ms, struct waker *waker)
{
    (void) until_ms;
    (void) waker;
    lab->now_ms += 1;
    nonbis_op_cancel(waiting_op);
}

START_TEST(a_cancel_ends_a_wait_and_the_outcome_says_what_is_known)
{
    static const struct {
        struct lab_step step;
        enum nonbis_outcome outcome;
    } rows[] = {
        { { .code = 7, .hooks = -1 }, NONBIS_NOT_SENT },
        { { .code = 52 }, NONBIS_UNKNOWN },
        { { .status = 429 }, NONBIS_NOT_APPLIED },
        { WAITS(409, "in-progress", "1", "in-progress"), NONBIS_IN_PROGRESS },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab lab;
        lab_open(&lab, 5, NULL);
        lab.while_waiting = cancel_while_waiting;
        lab_step(&lab, rows[i].step);
        waiting_op = lab_post(&lab);
        run_one(waiting_op);
        ck_assert_int_eq(nonbis_op_outcome(waiting_op), rows[i].outcome);
        ck_assert_int_eq(nonbis_op_stop(waiting_op), NONBIS_STOP_CANCELLED);
        ck_assert_uint_eq(lab.log_count, 1);
        run_one(waiting_op); /* it lasts */
        ck_assert_uint_eq(lab.log_count, 1);
        ck_assert_int_eq(nonbis_op_outcome(waiting_op), rows[i].outcome);
        nonbis_op_free(waiting_op);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(cancelled_before_it_runs_nothing_is_sent)
{
    struct lab lab;
    lab_open_with_journal(&lab, 5, NULL);
    struct nonbis_op *op = lab_post(&lab);
    nonbis_op_cancel(op);
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_NOT_SENT);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_CANCELLED);
    ck_assert_uint_eq(lab.log_count, 0);
    ck_assert_uint_eq(lab.created, 0);
    nonbis_op_uncancel(op);
    lab_step(&lab, (struct lab_step){ .status = 201 });
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

static void hurry_while_waiting(struct lab *lab, int64_t until_ms, struct waker *waker)
{
    (void) until_ms;
    (void) waker;
    if (lab->waits == 1) {
        lab->now_ms += 10;
        nonbis_op_retry_now(waiting_op);
    }
}

START_TEST(retry_now_ends_a_wait_but_not_what_the_server_asked_for)
{
    static const struct {
        const char *fields;
        int64_t least_ms, most_ms;
    } rows[] = { { "", 10, 10 }, { "Retry-After: 4", 4000, 4000 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nonbis_policy policy =
            lab_policy("batch", NONBIS_SERVER, NONBIS_SERVER_KEYED, NONBIS_JITTER, NONBIS_JITTER_EQUAL, 0);
        struct lab lab;
        lab_open(&lab, 5, &policy);
        lab.while_waiting = hurry_while_waiting;
        lab_step(&lab, (struct lab_step){ .status = 503, .fields = rows[i].fields });
        lab_step(&lab, (struct lab_step){ .status = 201 });
        waiting_op = lab_post(&lab);
        run_one(waiting_op);
        int64_t between = lab.log[1].at_ms - lab.log[0].at_ms;
        ck_assert_int_ge(between, rows[i].least_ms);
        ck_assert_int_le(between, rows[i].most_ms);
        nonbis_op_free(waiting_op);
        lab_close(&lab);
    }
}
END_TEST

static const struct {
    enum nonbis_event_kind kind;
    size_t attempts;
    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
} callbacks[] = {
    { NONBIS_EVENT_ATTEMPT, 0, NONBIS_NOT_SENT, NONBIS_STOP_CALLER },
    { NONBIS_EVENT_SENT, 0, NONBIS_NOT_SENT, NONBIS_STOP_CALLER },
    { NONBIS_EVENT_ANSWER, 1, NONBIS_UNKNOWN, NONBIS_STOP_CALLER },
    { NONBIS_EVENT_DECISION, 1, NONBIS_UNKNOWN, NONBIS_STOP_CALLER },
    { NONBIS_EVENT_ASK, 1, NONBIS_UNKNOWN, NONBIS_STOP_CALLER },
    { NONBIS_EVENT_TOLD, 1, NONBIS_IN_PROGRESS, NONBIS_STOP_CALLER },
};

START_TEST(the_callback_may_stop_a_run_anywhere)
{
    struct lab lab;
    lab_open(&lab, 5, NULL);
    lab.stop_at_event = callbacks[_i].kind;
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step) IS_RUNNING);
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    ck_assert_uint_eq(lab.attempts, callbacks[_i].attempts);
    ck_assert_int_eq(nonbis_op_outcome(op), callbacks[_i].outcome);
    ck_assert_int_eq(nonbis_op_stop(op), callbacks[_i].stop);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_callback_that_says_stop_with_the_final_answer_does_not_hide_it)
{
    struct lab lab;
    lab_open(&lab, 5, NULL);
    lab.stop_at_event = NONBIS_EVENT_ANSWER;
    lab_step(&lab, (struct lab_step){ .status = 201 });
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_DONE);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(events_tell_every_step_and_its_reason)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open(&lab, 5, &policy);
    lab_step(&lab, (struct lab_step){ .code = 28 });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .status = 429, .fields = "Retry-After: 2" });
    lab_step(&lab, (struct lab_step) SAYS(201, "executed"));
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    ck_assert_str_eq(lab.told, "attempt 1 \n"
                               "sent 1 \n"
                               "answer 1 timeout\n"
                               "decision 1 outcome-check\n"
                               "ask 1 \n"
                               "told 1 not-seen\n"
                               "decision 1 not-seen\n"
                               "attempt 2 \n"
                               "sent 2 \n"
                               "answer 2 rate-limit\n"
                               "decision 2 server-rate-limit\n"
                               "attempt 3 \n"
                               "sent 3 \n"
                               "answer 3 \n"
                               "outcome 3 completed\n");
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(the_counters_add_up)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open(&lab, 5, &policy);
    lab_step(&lab, (struct lab_step){ .code = 28, .takes_ms = 700 });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .status = 429, .fields = "Retry-After: 2" });
    lab_step(&lab, (struct lab_step) SAYS(201, "replayed"));
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    struct nonbis_stats stats;
    nonbis_client_stats(lab.client, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.runs, 1);
    ck_assert_uint_eq(stats.attempts, 3);
    ck_assert_uint_eq(stats.retries, 2);
    ck_assert_uint_eq(stats.outcomes[NONBIS_COMPLETED], 1);
    ck_assert_uint_eq(stats.stops[NONBIS_STOP_DONE], 1);
    ck_assert_uint_eq(stats.completed_after_retry, 1);
    ck_assert_uint_eq(stats.failed_after_retry, 0);
    ck_assert_uint_eq(stats.ambiguous, 1);
    ck_assert_uint_eq(stats.ambiguous_resolved, 1);
    ck_assert_uint_eq(stats.timeouts, 1);
    ck_assert_uint_eq(stats.rate_limited, 1);
    ck_assert_uint_eq(stats.replays, 1);
    ck_assert_uint_eq(stats.status_asked, 1);
    ck_assert_uint_eq(stats.retry_on[2], 1);                 /* 429 */
    ck_assert_uint_eq(stats.retry_on[5], 1);                 /* no answer */
    ck_assert_uint_eq(stats.delays[5] + stats.delays[4], 1); /* of 2 s and some jitter */
    ck_assert_uint_eq(stats.elapsed_ms, stats.wait_ms + 700);
    ck_assert_int_eq(stats.tokens_milli, 8000);
    uint64_t old_caller[2] = { 0, 0 };
    nonbis_client_stats(lab.client, (struct nonbis_stats *) (void *) old_caller, sizeof(uint64_t));
    ck_assert_uint_eq(old_caller[0], 1);
    ck_assert_uint_eq(old_caller[1], 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

/* ---- offline ------------------------------------------------------------------------------------------------------ */

START_TEST(no_network_burns_neither_attempts_nor_tokens)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_BUDGET_MILLI, 1000, NONBIS_CAP_MS, 500, 0);
    struct lab lab;
    lab_open(&lab, 5, &policy);
    for (int i = 0; i < 12; i++) {
        lab_step(&lab, (struct lab_step){ .code = 7, .os_errno = 101 /* ENETUNREACH */, .hooks = -1 });
    }
    lab_step(&lab, (struct lab_step){ .status = 201 });
    struct nonbis_op *op = lab_post(&lab);
    run_one(op);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_uint_eq(lab.log_count, 13);
    struct nonbis_stats stats;
    nonbis_client_stats(lab.client, &stats, sizeof(stats));
    ck_assert_int_eq(stats.tokens_milli, 1000);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(run)
{
    Suite *suite = suite_create("client/run");
    CASE_LOOP(suite, a_run_ends_as_it_must, sizeof(flows) / sizeof(flows[0]));
    CASE(suite, without_a_key_there_is_one_attempt_and_no_question);
    CASE(suite, the_callers_key_goes_out_as_it_is_and_a_quote_in_it_quotes_it);
    CASE(suite, a_completed_command_with_the_callers_key_is_fetched_by_a_repeat_so_that_payloads_are_compared);
    CASE(suite, a_second_run_goes_on_with_the_same_key_and_asks_first);
    CASE(suite, what_was_learned_about_a_route_serves_the_next_operation);
    CASE(suite, a_cancel_ends_a_wait_and_the_outcome_says_what_is_known);
    CASE(suite, cancelled_before_it_runs_nothing_is_sent);
    CASE(suite, retry_now_ends_a_wait_but_not_what_the_server_asked_for);
    CASE_LOOP(suite, the_callback_may_stop_a_run_anywhere, sizeof(callbacks) / sizeof(callbacks[0]));
    CASE(suite, a_callback_that_says_stop_with_the_final_answer_does_not_hide_it);
    CASE(suite, events_tell_every_step_and_its_reason);
    CASE(suite, the_counters_add_up);
    CASE(suite, no_network_burns_neither_attempts_nor_tokens);
    return suite;
}
