/* schedule_test.c - thousands of random runs on a virtual clock: whatever the other side does, the promises about time and
 * about outcomes hold. The other side keeps its own books, which are the measure. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

enum { SCHEDULES = 10000 };

/* The other side: random answers, and what it knows. */
struct other {
    struct suite_random random;
    int64_t asked_until_ms; /* nobody may come earlier */
    int64_t deadline_ms;
    unsigned executions; /* of the command */
    bool executed_known; /* an answer that said so was sent */
    unsigned early, late, sendings;
    bool deduplicates;
    char retry_after[64];
};

static struct lab_step other_serve(struct lab *lab, const struct lab_exchange *exchange, void *arg)
{
    struct other *other = arg;
    struct lab_step step = { .status = 0,
                             .takes_ms = suite_random_below(&other->random, 4) == 0
                                             ? suite_random_below(&other->random, 12000)
                                             : suite_random_below(&other->random, 50) };
    other->early += lab->now_ms < other->asked_until_ms ? 1 : 0;
    other->late += lab->now_ms >= other->deadline_ms ? 1 : 0;
    unsigned kind = suite_random_below(&other->random, 10);
    unsigned seconds = suite_random_below(&other->random, 3) == 0 ? suite_random_below(&other->random, 90)
                                                                  : suite_random_below(&other->random, 4);
    bool asks = suite_random_below(&other->random, 3) == 0;
    (void) snprintf(other->retry_after, sizeof(other->retry_after), "Retry-After: %u", seconds);
    bool in_time = step.takes_ms < exchange->timeout_ms;
    if (exchange->question) {
        step.status = kind < 3 ? 404 : kind < 6 ? 503 : 0;
        step.code = kind >= 6 ? 52 : 0;
    } else if (kind < 2) {
        step.code = 7;
        step.hooks = -1;
    } else {
        other->sendings++;
        bool executes = kind >= 4 && (other->executions == 0 || !other->deduplicates);
        other->executions += executes ? 1 : 0;
        step.code = kind == 4 || kind == 5 ? 52 : 0;
        step.status = kind == 2 ? 429 : kind == 3 ? 503 : kind < 6 ? 0 : kind == 6 ? 500 : kind == 7 ? 504 : 201;
        if (kind == 3) { /* 503 with Retry-After: declared not executed */
            asks = true;
        }
    }
    if (asks && step.status != 0) {
        step.fields = other->retry_after;
        if (in_time) {
            int64_t until_ms = lab->now_ms + step.takes_ms + (int64_t) seconds * 1000;
            other->asked_until_ms = until_ms > other->asked_until_ms ? until_ms : other->asked_until_ms;
        }
    }
    return step;
}

static void schedule_check(struct lab *lab, struct other *other, const struct nonbis_op *op,
                           const struct nonbis_policy *policy, unsigned seed, int64_t began_ms)
{
    int64_t took_ms = lab->now_ms - began_ms;
    enum nonbis_outcome outcome = nonbis_op_outcome(op);
    ck_assert_msg(other->early == 0, "seed %u: sent earlier than asked", seed);
    ck_assert_msg(other->late == 0, "seed %u: sent after the deadline", seed);
    ck_assert_msg(took_ms <= policy_value(policy, NONBIS_DEADLINE_MS) + 50, "seed %u: took %lld ms", seed,
                  (long long) took_ms);
    ck_assert_msg((int64_t) nonbis_op_attempts(op) <= policy_value(policy, NONBIS_ATTEMPTS), "seed %u", seed);
    ck_assert_msg((outcome == NONBIS_NOT_SENT) == (other->sendings == 0), "seed %u: %s", seed, nonbis_op_message(op));
    ck_assert_msg(outcome != NONBIS_NOT_APPLIED || other->executions == 0, "seed %u: %s", seed, nonbis_op_message(op));
    ck_assert_msg(outcome != NONBIS_COMPLETED || other->executions > 0, "seed %u: %s", seed, nonbis_op_message(op));
    /* Nobody said that this side deduplicates unless it does: then nothing happens twice. */
    ck_assert_msg(other->executions <= 1, "seed %u: executed %u times", seed, other->executions);
}

START_TEST(ten_thousand_random_schedules_keep_every_promise)
{
    static const char *const profiles[] = { "interactive", "standard", "batch", "keyed", "read", "background" };
    static const enum nonbis_server servers[] = { NONBIS_SERVER_KEYED, NONBIS_SERVER_DETECT, NONBIS_SERVER_PLAIN };
    unsigned first = suite_seed(), outcomes[7] = { 0 }, sendings = 0;
    FIGURE("schedules seed=%u", first);
    for (unsigned i = 0; i < SCHEDULES; i++) {
        unsigned seed = first + i;
        struct other other = { .asked_until_ms = 0 };
        suite_random_start(&other.random, seed);
        enum nonbis_server server = servers[suite_random_below(&other.random, 3)];
        struct nonbis_policy policy =
            lab_policy(profiles[suite_random_below(&other.random, 6)], NONBIS_SERVER, (int) server, NONBIS_JITTER,
                       1 + (int) suite_random_below(&other.random, 3), 0);
        other.deduplicates = server == NONBIS_SERVER_KEYED;
        struct lab lab;
        lab_open(&lab, seed, &policy);
        lab.serve = other_serve;
        lab.serve_arg = &other;
        lab.overshoot_ms = suite_random_below(&other.random, 5); /* a busy machine wakes late */
        int64_t began_ms = lab.now_ms;
        other.deadline_ms = began_ms + policy_value(&policy, NONBIS_DEADLINE_MS);
        struct nonbis_op *op = lab_post(&lab);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        schedule_check(&lab, &other, op, &policy, seed, began_ms);
        outcomes[nonbis_op_outcome(op)]++;
        sendings += other.sendings;
        nonbis_op_free(op);
        lab_close(&lab);
    }
    FIGURE("%d schedules: %u sendings; completed %u, not sent %u, not applied %u, unknown %u", SCHEDULES, sendings,
           outcomes[NONBIS_COMPLETED], outcomes[NONBIS_NOT_SENT], outcomes[NONBIS_NOT_APPLIED],
           outcomes[NONBIS_UNKNOWN]);
    ck_assert_uint_gt(outcomes[NONBIS_COMPLETED], 1000); /* the schedules are no idle ones */
    ck_assert_uint_gt(outcomes[NONBIS_UNKNOWN], 1000);
    ck_assert_uint_gt(outcomes[NONBIS_NOT_APPLIED], 100);
    ck_assert_uint_gt(outcomes[NONBIS_NOT_SENT], 50);
}
END_TEST

START_TEST(attempts_that_hang_never_carry_a_run_over_its_deadline)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_KEYED, NONBIS_ATTEMPT_MS, 5000,
                                             NONBIS_DEADLINE_MS, 18000, NONBIS_ATTEMPTS, 10, 0);
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct lab lab;
        lab_open(&lab, seed, &policy);
        lab_step(&lab, (struct lab_step){ .takes_ms = 1000000 });
        struct nonbis_op *op = lab_post(&lab);
        int64_t began_ms = lab.now_ms;
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
        ck_assert_int_le(lab.now_ms - began_ms, 18000);
        for (size_t i = 0; i < lab.log_count; i++) {
            int64_t left_ms = began_ms + 18000 - lab.log[i].at_ms;
            ck_assert_int_le(lab.log[i].timeout_ms, left_ms < 5000 ? left_ms : 5000);
            ck_assert_int_ge(left_ms, 500);
        }
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

/* ---- a hostile other side ----------------------------------------------------------------------------------------- */

/* Any answer to any question, at once, however senseless. */
static struct lab_step senseless(struct lab *lab, const struct lab_exchange *exchange, void *arg)
{
    static const struct lab_step pool[] = {
        LOST,
        NOT_SENT(7),
        TIMED_OUT,
        { .code = 42, .hooks = 2 },
        ANSWER(200),
        ANSWER(404),
        ANSWER(409),
        ANSWER(401),
        ANSWER(500),
        ANSWER(503),
        ANSWER_FIELDS(429, "Retry-After: 0"),
        ANSWER_FIELDS(503, "Retry-After: 0"),
        { .status = 200, .cut = true },
        SAYS(200, "unknown"),
        SAYS(503, "not-executed"),
        SAYS(503, "refused"),
        SAYS_CUT(201, "replayed"),
        WAITS(409, "in-progress", "0", "in-progress"),
        REFUSES(422, "refused", "key-expired", NEVER),
        TELLS(422, "not-voidable", NEVER MEMBER("state", "completed")),
        TELLS(422, "not-voidable", NEVER MEMBER("state", "released")),
        TELLS(422, "not-voidable", NEVER MEMBER("state", "in_progress")),
        TELLS(409, "in-progress", RETRY),
        IS("completed", "yes"),
        IS("in_progress", "unknown"),
        IS("unknown", "unknown"),
        IS("released", "no"),
        IS("expired", "yes"),
        NOT_SEEN,
        REPLAY,
    };
    struct suite_random *random = arg;
    (void) lab;
    (void) exchange;
    return pool[suite_random_below(random, sizeof(pool) / sizeof(pool[0]))];
}

START_TEST(a_run_is_finite_and_in_time_whatever_the_other_side_says)
{
    unsigned first = suite_seed(), most = 0;
    FIGURE("senseless answers seed=%u", first);
    for (unsigned i = 0; i < 6000; i++) {
        struct suite_random random;
        suite_random_start(&random, first + i);
        struct nonbis_policy policy =
            lab_policy("batch", NONBIS_SERVER, 1 + (int) suite_random_below(&random, 4), NONBIS_BUDGET_MILLI, 0, 0);
        struct lab lab;
        lab_open(&lab, first + i, &policy);
        lab.serve = senseless;
        lab.serve_arg = &random;
        struct nonbis_op *op = lab_post(&lab);
        if (i % 3 == 0) {
            ck_assert_int_eq(nonbis_op_set_key(op, "of-the-caller"), NONBIS_OK);
        }
        int64_t began_ms = lab.now_ms;
        ck_assert_int_eq(i % 5 == 0   ? nonbis_op_void(op)
                         : i % 7 == 0 ? nonbis_op_wait(op)
                                      : nonbis_op_run(op),
                         NONBIS_OK);
        most = lab.log_count > most ? (unsigned) lab.log_count : most;
        ck_assert_int_le(lab.now_ms - began_ms, 300000);
        ck_assert_uint_le(lab.log_count, 200);
        ck_assert(nonbis_op_outcome(op) != NONBIS_NOT_SENT || lab.attempts == 0);
        nonbis_op_free(op);
        lab_close(&lab);
    }
    FIGURE("at most %u exchanges in one run of 300 s", most);
}
END_TEST

/* One answer again and again, to everything. */
START_TEST(a_stubborn_other_side_is_not_asked_without_pause)
{
    static const struct lab_step answers[] = {
        TELLS(422, "not-voidable", NEVER MEMBER("state", "completed")),
        TELLS(422, "not-voidable", NEVER MEMBER("state", "released")),
        IS("completed", "yes"),
        IS("released", "no"),
        IS("in_progress", "unknown"),
        SAYS_CUT(201, "replayed"),
        NOT_SEEN,
        LOST,
        SAYS(504, "unknown"),
    };
    for (int goal = 0; goal < 3; goal++) {
        struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
        struct lab lab;
        lab_open(&lab, 3, &policy);
        lab_step(&lab, answers[_i]);
        struct nonbis_op *op = lab_post(&lab);
        ck_assert_int_eq(goal == 0   ? nonbis_op_run(op)
                         : goal == 1 ? nonbis_op_wait(op)
                                     : nonbis_op_void(op),
                         NONBIS_OK);
        ck_assert_msg(lab.log_count <= 25, "goal %d: %zu exchanges in 30 s", goal, lab.log_count);
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

SUITE(schedule)
{
    Suite *suite = suite_create("client/schedule");
    CASE(suite, ten_thousand_random_schedules_keep_every_promise);
    CASE(suite, a_run_is_finite_and_in_time_whatever_the_other_side_says);
    CASE_LOOP(suite, a_stubborn_other_side_is_not_asked_without_pause, 9);
    CASE(suite, attempts_that_hang_never_carry_a_run_over_its_deadline);
    return suite;
}
