/* planner_test.c - client-sdk/src/planner.c: what follows on every finding under every limit, as literals. A random word of
 * one half makes full jitter half of its window: 250 of 500 ms, 2500 of 5000 ms. Cells read
 *
 *     send, status, response, void      now: an attempt, or that question
 *     250>send                          wait so long, then that
 *     unknown/deadline                  stop: outcome and stop reason, with the seconds of RETRY_LATER
 *
 * with $ where a token is taken, and the reason's word behind it. */
#include "client-sdk/src/planner.h"
#include "tests/client/planner_table.h"
#include "tests/support/suite.h"

static int status_of(enum finding finding)
{
    switch (finding) {
    case FINDING_FINAL:
        return 404;
    case FINDING_TURNED_AWAY:
        return 401;
    case FINDING_CONFLICT:
        return 409;
    case FINDING_THROTTLED:
        return 429;
    case FINDING_BUSY:
        return 503;
    case FINDING_FAULT:
        return 500;
    default:
        return 0;
    }
}

static bool shows_contract(enum finding finding)
{
    return (finding >= FINDING_EXECUTED && finding <= FINDING_KEY_VOIDED) ||
           (finding >= FINDING_TOLD_COMPLETED && finding <= FINDING_TOLD_EXPIRED_UNKNOWN);
}

static enum nonbis_server server_of(enum column column)
{
    return column == KEYED    ? NONBIS_SERVER_KEYED
           : column == PLAIN  ? NONBIS_SERVER_PLAIN
           : column == DETECT ? NONBIS_SERVER_DETECT
                              : NONBIS_SERVER_NONBIS;
}

/* The history in which `finding` is the last thing that happened. */
static void history_make(struct history *history, enum finding finding, enum column column)
{
    bool question = finding >= FINDING_TOLD_COMPLETED;
    history_init(history, SAFETY_KEYED, column != NO_BODY, true);
    history_begin(history, column == WAIT ? GOAL_WAIT : column == VOID ? GOAL_VOID : GOAL_RUN, 1000, 31000);
    history->promised = server_of(column) == NONBIS_SERVER_NONBIS;
    if (question || column == AGAIN) {
        history_note_sending(history, 1000000);
        struct reading lost = { .finding = FINDING_LOST, .retry_after_ms = -1 };
        history_note_attempt(history, &lost, 1500);
        history->rested = true;
    }
    struct reading reading = { .finding = finding,
                               .http_status = status_of(finding),
                               .retry_after_ms = column == PATIENCE  ? 120000
                                                 : column == PATIENT ? 3000
                                                                     : -1,
                               .window_start_ms = 1000000,
                               .shows_contract = shows_contract(finding) };
    if (question) {
        if (finding == FINDING_TOLD_NOT_SEEN_DOUBTFUL || finding == FINDING_TOLD_FORGOTTEN) {
            reading.finding = FINDING_TOLD_NOT_SEEN; /* what history makes of it is judged there */
            reading.window_start_ms = finding == FINDING_TOLD_FORGOTTEN ? 1000001 : 0;
        }
        history_note_answer(history, &reading, 2000);
    } else {
        if (finding >= FINDING_CANCELLED_SENT) {
            history_note_sending(history, 1000000);
        }
        history_note_attempt(history, &reading, 2000);
    }
    if (column == ATTEMPTS) {
        history->attempts = 4;
    }
}

static void plan_write(const struct plan *plan, char *text, size_t size)
{
    static const char *const questions[] = { "status", "response", "void", "route" };
    const char *next = plan->action == PLAN_ASK || (plan->action == PLAN_WAIT && plan->next_action == PLAN_ASK)
                           ? questions[plan->ask]
                           : "send";
    char later[32] = "";
    if (plan->retry_after_s >= 0) {
        (void) snprintf(later, sizeof(later), "(%d)", (int) plan->retry_after_s);
    }
    if (plan->action == PLAN_STOP) {
        (void) snprintf(text, size, "%s/%s%s %s", nonbis_outcome_name(plan->outcome), nonbis_stop_name(plan->stop),
                        later, reason_text(plan->reason));
    } else if (plan->action == PLAN_WAIT) {
        (void) snprintf(text, size, "%d>%s%s %s", (int) plan->delay_ms, next, plan->pays ? "$" : "",
                        reason_text(plan->reason));
    } else {
        (void) snprintf(text, size, "%s%s %s", next, plan->pays ? "$" : "", reason_text(plan->reason));
    }
}

static void cell_make(enum finding finding, enum column column, char *text, size_t size)
{
    struct nonbis_policy policy;
    struct history history;
    ck_assert(policy_init(&policy, "standard"));
    ck_assert_int_eq(nonbis_policy_set(&policy, NONBIS_SERVER, server_of(column)), NONBIS_OK);
    history_make(&history, finding, column);
    const struct plan_input input = { .policy = &policy,
                                      .history = &history,
                                      .now_ms = column == DEADLINE ? 30600 : 2000,
                                      .wall_ms = 1005000,
                                      .random = UINT64_C(1) << 63,
                                      .has_token = column != BUDGET };
    const struct plan plan = plan_next(&input);
    plan_write(&plan, text, size);
}

static bool column_is_meant(enum finding finding, enum column column)
{
    bool question = finding >= FINDING_TOLD_COMPLETED;
    return question ? column != AGAIN : column != WAIT && column != VOID;
}

START_TEST(every_finding_under_every_limit_leads_to_its_step)
{
    enum finding finding = (enum finding) _i;
    bool alike = table[finding][1] == NULL && table[finding][COLUMNS - 1] == NULL && table[finding][BUDGET] == NULL;
    for (int c = 0; c < COLUMNS; c++) {
        char text[128];
        if (column_is_meant(finding, (enum column) c)) {
            const char *expected = alike ? table[finding][0] : table[finding][c];
            cell_make(finding, (enum column) c, text, sizeof(text));
            ck_assert_msg(expected != NULL && strcmp(text, expected) == 0, "%s, column %d: %s instead of %s",
                          finding_name(finding), c, text, expected != NULL ? expected : "nothing");
        }
    }
}
END_TEST

/* ---- beginnings --------------------------------------------------------------------------------------------------- */

static const struct {
    enum goal goal;
    enum standing standing;
    enum nonbis_server server;
    const char *expected;
} beginnings[] = {
    { GOAL_RUN, STANDING_UNSENT, NONBIS_SERVER_NONBIS, "send first-attempt" },
    { GOAL_RUN, STANDING_UNSENT, NONBIS_SERVER_PLAIN, "send first-attempt" },
    { GOAL_RUN, STANDING_NOT_APPLIED, NONBIS_SERVER_NONBIS, "send first-attempt" },
    { GOAL_RUN, STANDING_NOT_APPLIED, NONBIS_SERVER_DETECT, "send first-attempt" },
    { GOAL_RUN, STANDING_NOT_APPLIED, NONBIS_SERVER_PLAIN, "not-applied/not-replayable operation-not-retry-safe" },
    { GOAL_RUN, STANDING_AMBIGUOUS, NONBIS_SERVER_NONBIS, "status outcome-check" },
    { GOAL_RUN, STANDING_AMBIGUOUS, NONBIS_SERVER_DETECT, "status outcome-check" },
    { GOAL_RUN, STANDING_AMBIGUOUS, NONBIS_SERVER_KEYED, "send first-attempt" },
    { GOAL_RUN, STANDING_AMBIGUOUS, NONBIS_SERVER_PLAIN, "unknown/not-replayable operation-not-retry-safe" },
    { GOAL_RUN, STANDING_RUNNING, NONBIS_SERVER_NONBIS, "status outcome-check" },
    { GOAL_RUN, STANDING_UNKNOWN, NONBIS_SERVER_NONBIS, "status outcome-check" },
    { GOAL_RUN, STANDING_COMPLETED, NONBIS_SERVER_NONBIS, "response command-completed" },
    { GOAL_RUN, STANDING_REJECTED, NONBIS_SERVER_NONBIS, "rejected/server-said-no refused" },
    { GOAL_RUN, STANDING_VOIDED, NONBIS_SERVER_NONBIS, "not-applied/server-said-no voided" },
    { GOAL_WAIT, STANDING_UNSENT, NONBIS_SERVER_NONBIS, "status outcome-check" },
    { GOAL_WAIT, STANDING_AMBIGUOUS, NONBIS_SERVER_NONBIS, "status outcome-check" },
    { GOAL_WAIT, STANDING_AMBIGUOUS, NONBIS_SERVER_KEYED, "unknown/server-said-no no-status-resource" },
    { GOAL_WAIT, STANDING_NOT_APPLIED, NONBIS_SERVER_KEYED, "not-applied/server-said-no no-status-resource" },
    { GOAL_WAIT, STANDING_COMPLETED, NONBIS_SERVER_KEYED, "completed/server-said-no no-status-resource" },
    { GOAL_WAIT, STANDING_COMPLETED, NONBIS_SERVER_NONBIS, "response command-completed" },
    { GOAL_VOID, STANDING_UNSENT, NONBIS_SERVER_NONBIS, "void voiding" },
    { GOAL_VOID, STANDING_AMBIGUOUS, NONBIS_SERVER_NONBIS, "status voiding" },
    { GOAL_VOID, STANDING_NOT_APPLIED, NONBIS_SERVER_NONBIS, "status voiding" },
    { GOAL_VOID, STANDING_AMBIGUOUS, NONBIS_SERVER_KEYED, "unknown/server-said-no no-status-resource" },
    { GOAL_VOID, STANDING_COMPLETED, NONBIS_SERVER_KEYED, "completed/server-said-no no-status-resource" },
    { GOAL_VOID, STANDING_VOIDED, NONBIS_SERVER_NONBIS, "not-applied/done voided" },
};

START_TEST(a_run_begins_by_what_is_known_already)
{
    struct nonbis_policy policy;
    struct history history;
    char text[128];
    ck_assert(policy_init(&policy, NULL));
    ck_assert_int_eq(nonbis_policy_set(&policy, NONBIS_SERVER, beginnings[_i].server), NONBIS_OK);
    history_init(&history, SAFETY_KEYED, true, true);
    history.standing = beginnings[_i].standing;
    history.first_sent_wall_ms = history.standing == STANDING_UNSENT ? 0 : 1000000;
    history_begin(&history, beginnings[_i].goal, 1000, 31000);
    const struct plan_input input = {
        .policy = &policy, .history = &history, .now_ms = 1000, .wall_ms = 1005000, .has_token = true
    };
    const struct plan plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, beginnings[_i].expected);
}
END_TEST

/* ---- the key's age ------------------------------------------------------------------------------------------------ */

static void aged(int64_t age_ms, bool in_window, enum standing standing, enum nonbis_server server, char text[128])
{
    struct nonbis_policy policy;
    struct history history;
    ck_assert(policy_init(&policy, NULL));
    ck_assert_int_eq(nonbis_policy_set(&policy, NONBIS_SERVER, server), NONBIS_OK);
    history_init(&history, SAFETY_KEYED, true, true);
    history_resume(&history, 5000000);
    history.standing = standing;
    history_begin(&history, GOAL_RUN, 1000, 31000);
    history.in_window = in_window;
    const struct plan_input input = {
        .policy = &policy, .history = &history, .now_ms = 1000, .wall_ms = 5000000 + age_ms, .has_token = true
    };
    const struct plan plan = plan_next(&input);
    plan_write(&plan, text, 128);
}

START_TEST(a_key_older_than_the_servers_memory_is_not_sent_again)
{
    char text[128];
    aged(86399999, false, STANDING_AMBIGUOUS, NONBIS_SERVER_KEYED, text);
    ck_assert_str_eq(text, "send first-attempt");
    aged(86400000, false, STANDING_AMBIGUOUS, NONBIS_SERVER_KEYED, text);
    ck_assert_str_eq(text, "unknown/key-expired key-expired");
    aged(86400000, false, STANDING_NOT_APPLIED, NONBIS_SERVER_KEYED, text);
    ck_assert_str_eq(text, "not-applied/key-expired key-expired");
    aged(86400000, false, STANDING_NOT_APPLIED, NONBIS_SERVER_NONBIS, text); /* it may remember longer than we think */
    ck_assert_str_eq(text, "status outcome-check");
    aged(86400000, true, STANDING_NOT_APPLIED, NONBIS_SERVER_NONBIS, text); /* the server's own word goes before */
    ck_assert_str_eq(text, "send first-attempt");
    struct history history; /* a window that was told in an earlier run has moved on since */
    history_init(&history, SAFETY_KEYED, true, true);
    history.in_window = true;
    history_begin(&history, GOAL_RUN, 1000, 31000);
    ck_assert(!history.in_window);
    aged(86400000, false, STANDING_AMBIGUOUS, NONBIS_SERVER_NONBIS, text); /* asking is always allowed */
    ck_assert_str_eq(text, "status outcome-check");
}
END_TEST

/* ---- waits -------------------------------------------------------------------------------------------------------- */

static struct plan wait_made(struct history *history, struct nonbis_policy *policy, int64_t retry_after)
{
    ck_assert(policy_init(policy, NULL));
    ck_assert_int_eq(nonbis_policy_set(policy, NONBIS_SERVER, NONBIS_SERVER_KEYED), NONBIS_OK);
    history_init(history, SAFETY_KEYED, true, true);
    history_begin(history, GOAL_RUN, 1000, 31000);
    struct reading busy = { .finding = FINDING_THROTTLED, .http_status = 503, .retry_after_ms = retry_after };
    history_note_attempt(history, &busy, 2000);
    const struct plan_input input = { .policy = policy,
                                      .history = history,
                                      .now_ms = 2000,
                                      .wall_ms = 1000,
                                      .random = UINT64_C(1) << 63,
                                      .has_token = true };
    struct plan plan = plan_next(&input);
    history_apply_wait(history, &plan);
    return plan;
}

static struct plan plan_at(const struct history *history, const struct nonbis_policy *policy, int64_t now_ms)
{
    const struct plan_input input = { .policy = policy,
                                      .history = history,
                                      .now_ms = now_ms,
                                      .wall_ms = 1000,
                                      .random = UINT64_MAX,
                                      .has_token = false };
    return plan_next(&input);
}

START_TEST(a_wait_that_was_begun_goes_on_unchanged_and_is_paid_once)
{
    struct history history;
    struct nonbis_policy policy;
    struct plan plan = wait_made(&history, &policy, 3000);
    ck_assert_int_eq(plan.action, PLAN_WAIT);
    ck_assert_int_eq(plan.due_ms, 5250);
    ck_assert_int_eq(plan.delay_ms, 3250);
    ck_assert_int_eq(plan.server_delay_ms, 3000);
    ck_assert(plan.pays);
    plan = plan_at(&history, &policy, 5249);
    ck_assert_int_eq(plan.action, PLAN_WAIT);
    ck_assert_int_eq(plan.due_ms, 5250);
    ck_assert(!plan.pays);
    plan = plan_at(&history, &policy, 5250);
    ck_assert_int_eq(plan.action, PLAN_ATTEMPT);
    ck_assert(!plan.pays);
}
END_TEST

START_TEST(a_hurry_ends_our_part_of_a_wait_but_never_the_servers)
{
    struct history history;
    struct nonbis_policy policy;
    (void) wait_made(&history, &policy, 3000);
    history.hurried = true;
    struct plan plan = plan_at(&history, &policy, 2500);
    ck_assert_int_eq(plan.action, PLAN_WAIT);
    ck_assert_int_eq(plan.due_ms, 5000);
    ck_assert_int_eq(plan_at(&history, &policy, 5000).action, PLAN_ATTEMPT);
    (void) wait_made(&history, &policy, -1);
    history.hurried = true;
    ck_assert_int_eq(plan_at(&history, &policy, 2001).action, PLAN_ATTEMPT);
}
END_TEST

/* A wait must leave min-attempt, 500 ms, of the deadline at 31000; Retry-After alone too long: RETRY_LATER with its seconds. */
static const struct {
    int64_t retry_after_ms;
    int64_t now_ms;
    const char *expected;
} rooms[] = {
    { -1, 30250, "250>send$ backoff-jitter" },
    { -1, 30251, "not-sent/deadline deadline-exceeded" },
    { 0, 30250, "250>send$ backoff-jitter" },
    { 1000, 29250, "1250>send$ server-delay" },
    { 1000, 29251, "not-sent/deadline deadline-exceeded" },
    { 1000, 29500, "not-sent/deadline deadline-exceeded" },
    { 1000, 29501, "not-sent/retry-later(1) server-wait-too-long" },
    { 29000, 2000, "not-sent/retry-later(29) server-wait-too-long" },
    { 28000, 2000, "28250>send$ server-delay" },
    { 60001, 2000, "not-sent/retry-later(61) server-wait-too-long" },
    { 31536000000, 2000, "not-sent/retry-later(31536000) server-wait-too-long" },
};

START_TEST(no_wait_is_begun_that_cannot_end_in_time)
{
    struct nonbis_policy policy;
    struct history history;
    char text[128];
    ck_assert(policy_init(&policy, NULL));
    history_init(&history, SAFETY_KEYED, true, true);
    history_begin(&history, GOAL_RUN, 1000, 31000);
    struct reading refused = { .finding = FINDING_NOT_SENT, .retry_after_ms = rooms[_i].retry_after_ms };
    history_note_attempt(&history, &refused, rooms[_i].now_ms);
    const struct plan_input input = { .policy = &policy,
                                      .history = &history,
                                      .now_ms = rooms[_i].now_ms,
                                      .wall_ms = 1000,
                                      .random = UINT64_C(1) << 63,
                                      .has_token = true };
    const struct plan plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, rooms[_i].expected);
}
END_TEST

START_TEST(an_attempt_gets_its_limit_or_what_is_left)
{
    struct nonbis_policy policy;
    struct history history;
    ck_assert(policy_init(&policy, NULL));
    history_init(&history, SAFETY_KEYED, true, true);
    history_begin(&history, GOAL_RUN, 1000, 31000);
    ck_assert_int_eq(plan_at(&history, &policy, 1000).timeout_ms, 10000);
    ck_assert_int_eq(plan_at(&history, &policy, 21000).timeout_ms, 10000);
    ck_assert_int_eq(plan_at(&history, &policy, 21001).timeout_ms, 9999);
    ck_assert_int_eq(plan_at(&history, &policy, 30999).timeout_ms, 1);
    ck_assert_int_eq(plan_at(&history, &policy, 31000).action, PLAN_STOP);
    ck_assert_int_eq(plan_at(&history, &policy, 31000).stop, NONBIS_STOP_DEADLINE);
}
END_TEST

START_TEST(a_question_about_a_running_command_asks_to_be_held_as_long_as_time_allows)
{
    struct nonbis_policy policy;
    struct history history;
    ck_assert(policy_init(&policy, NULL));
    history_init(&history, SAFETY_KEYED, true, true);
    history_resume(&history, 900);
    history.standing = STANDING_RUNNING;
    history_begin(&history, GOAL_WAIT, 1000, 31000);
    ck_assert_int_eq(plan_at(&history, &policy, 1000).hold_s, 5);
    ck_assert_int_eq(plan_at(&history, &policy, 1000).timeout_ms, 7000); /* status-timeout behind the hold */
    ck_assert_int_eq(plan_at(&history, &policy, 25000).hold_s, 3);
    ck_assert_int_eq(plan_at(&history, &policy, 28000).hold_s, 0);
    ck_assert_int_eq(plan_at(&history, &policy, 30000).timeout_ms, 1000);
}
END_TEST

/* ---- what may be sent without a key ------------------------------------------------------------------------------- */

static const struct {
    enum safety safety;
    enum finding finding;
    const char *expected;
} unkeyed[] = {
    { SAFETY_UNKEYED, FINDING_NOT_SENT, "not-sent/not-replayable operation-not-retry-safe" },
    { SAFETY_UNKEYED, FINDING_LOST, "unknown/not-replayable operation-not-retry-safe" },
    { SAFETY_UNKEYED, FINDING_FAULT, "unknown/not-replayable operation-not-retry-safe" },
    { SAFETY_UNKEYED, FINDING_THROTTLED, "not-applied/not-replayable operation-not-retry-safe" },
    { SAFETY_UNKEYED, FINDING_SUCCESS, "completed/done completed" },
    { SAFETY_REPEATABLE, FINDING_NOT_SENT, "250>send$ backoff-jitter" },
    { SAFETY_REPEATABLE, FINDING_LOST, "250>send$ backoff-jitter" },
    { SAFETY_REPEATABLE, FINDING_FAULT, "250>send$ backoff-jitter" },
    { SAFETY_REPEATABLE, FINDING_BUSY, "250>send$ backoff-jitter" },
};

START_TEST(without_a_key_a_write_is_sent_once_and_a_read_may_be_repeated)
{
    struct nonbis_policy policy;
    struct history history;
    char text[128];
    ck_assert(policy_init(&policy, NULL));
    history_init(&history, unkeyed[_i].safety, true, false);
    history_begin(&history, GOAL_RUN, 1000, 31000);
    struct reading reading = { .finding = unkeyed[_i].finding, .retry_after_ms = -1 };
    history_note_attempt(&history, &reading, 2000);
    const struct plan_input input = { .policy = &policy,
                                      .history = &history,
                                      .now_ms = 2000,
                                      .wall_ms = 1000,
                                      .random = UINT64_C(1) << 63,
                                      .has_token = true };
    const struct plan plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, unkeyed[_i].expected);
}
END_TEST

/* ---- the breaker -------------------------------------------------------------------------------------------------- */

START_TEST(an_open_circuit_is_waited_for_or_stops_with_its_seconds)
{
    struct nonbis_policy policy;
    struct history history;
    char text[128];
    ck_assert(policy_init(&policy, NULL));
    history_init(&history, SAFETY_KEYED, true, true);
    history_begin(&history, GOAL_RUN, 1000, 31000);
    struct plan_input input = {
        .policy = &policy, .history = &history, .now_ms = 1000, .has_token = true, .breaker_until_ms = 9000
    };
    struct plan plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, "8000>send circuit-open");
    input.breaker_until_ms = 30501;
    plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, "not-sent/retry-later(30) circuit-open");
    struct reading refused = { .finding = FINDING_NOT_SENT, .retry_after_ms = -1 };
    history_note_attempt(&history, &refused, 2000);
    input.now_ms = 2000;
    input.breaker_until_ms = 9000;
    plan = plan_next(&input);
    plan_write(&plan, text, sizeof(text));
    ck_assert_str_eq(text, "7000>send$ circuit-open");
}
END_TEST

SUITE(planner)
{
    Suite *suite = suite_create("client/planner");
    CASE_LOOP(suite, every_finding_under_every_limit_leads_to_its_step, FINDING_COUNT);
    CASE_LOOP(suite, a_run_begins_by_what_is_known_already, sizeof(beginnings) / sizeof(beginnings[0]));
    CASE(suite, a_key_older_than_the_servers_memory_is_not_sent_again);
    CASE(suite, a_wait_that_was_begun_goes_on_unchanged_and_is_paid_once);
    CASE(suite, a_hurry_ends_our_part_of_a_wait_but_never_the_servers);
    CASE_LOOP(suite, no_wait_is_begun_that_cannot_end_in_time, sizeof(rooms) / sizeof(rooms[0]));
    CASE(suite, an_attempt_gets_its_limit_or_what_is_left);
    CASE(suite, a_question_about_a_running_command_asks_to_be_held_as_long_as_time_allows);
    CASE_LOOP(suite, without_a_key_a_write_is_sent_once_and_a_read_may_be_repeated,
              sizeof(unkeyed) / sizeof(unkeyed[0]));
    CASE(suite, an_open_circuit_is_waited_for_or_stops_with_its_seconds);
    return suite;
}
