/* no_send_test.c - who only asks never sends: over the whole input of the planner, and over whole runs. The promise of
 * nonbis_op_wait, nonbis_op_void and nonbis_op_status in nonbis.h. */
#include "tests/client/lab.h"
#include "tests/client/step.h"

/* ---- the planner -------------------------------------------------------------------------------------------------- */

struct count {
    unsigned long plans, sends, waits_to_send;
};

static void plan_once(const struct nonbis_policy *policy, const struct history *history, struct count *count)
{
    const struct plan_input input = { .policy = policy,
                                      .history = history,
                                      .now_ms = 2000,
                                      .wall_ms = 1005000,
                                      .random = UINT64_C(1) << 63,
                                      .has_token = true,
                                      .breaker_until_ms = history->rested ? 4000 : 0 };
    const struct plan plan = plan_next(&input);
    count->plans++;
    count->sends += plan.action == PLAN_ATTEMPT ? 1 : 0;
    count->waits_to_send += plan.action == PLAN_WAIT && plan.next_action == PLAN_ATTEMPT ? 1 : 0;
}

/* Every value that a row or a limit looks at; `bits` are the switches. */
static void history_set(struct history *history, enum goal goal, int standing, int finding, unsigned bits)
{
    history_init(history, SAFETY_KEYED, (bits & 1) != 0, (bits & 2) != 0);
    history_begin(history, goal, 1000, 31000);
    history->standing = (enum standing) standing;
    history->has_last = finding < FINDING_COUNT;
    history->last = (enum finding)(finding < FINDING_COUNT ? finding : 0);
    history->answered = (bits & 4) != 0;
    history->no_status_resource = (bits & 8) != 0;
    history->rested = (bits & 16) != 0;
    history->asks = (bits & 32) != 0 ? 1 : 0;
    history->first_sent_wall_ms = (bits & 64) != 0 ? 1000000 : 0;
    history->floor_ms = (bits & 128) != 0 ? 5000 : 0;
    history->exchanges = (bits & 1) != 0 ? 1 : 0;
}

static void plan_all(enum goal goal, struct count *count)
{
    struct nonbis_policy policy;
    struct history history;
    ck_assert(policy_init(&policy, NULL));
    for (int server = NONBIS_SERVER_DETECT; server <= NONBIS_SERVER_PLAIN; server++) {
        ck_assert_int_eq(nonbis_policy_set(&policy, NONBIS_SERVER, server), NONBIS_OK);
        for (int standing = 0; standing < STANDING_COUNT; standing++) {
            for (int finding = 0; finding <= FINDING_COUNT; finding++) { /* the last one: none yet */
                for (unsigned bits = 0; bits < 256; bits++) {
                    history_set(&history, goal, standing, finding, bits);
                    for (int last_ask = ASK_STATUS; last_ask <= ASK_VOID; last_ask++) {
                        history.last_ask = (enum ask) last_ask;
                        history.evidence = (enum evidence) last_ask; /* the two do not meet in any row */
                        plan_once(&policy, &history, count);
                    }
                }
            }
        }
    }
}

START_TEST(no_plan_of_a_wait_or_a_void_sends_the_command)
{
    struct count run = { 0 }, wait = { 0 }, voiding = { 0 };
    plan_all(GOAL_RUN, &run);
    plan_all(GOAL_WAIT, &wait);
    plan_all(GOAL_VOID, &voiding);
    FIGURE("plans of each goal: %lu; sendings of a run %lu, of a wait %lu, of a void %lu", wait.plans,
           run.sends + run.waits_to_send, wait.sends + wait.waits_to_send, voiding.sends + voiding.waits_to_send);
    ck_assert_uint_gt(run.sends, 0); /* else the walk would prove nothing */
    ck_assert_uint_gt(run.waits_to_send, 0);
    ck_assert_uint_eq(wait.sends + wait.waits_to_send, 0);
    ck_assert_uint_eq(voiding.sends + voiding.waits_to_send, 0);
}
END_TEST

/* ---- whole runs --------------------------------------------------------------------------------------------------- */

static const struct lab_step others[] = { LOST,
                                          TIMED_OUT,
                                          NOT_SENT(7),
                                          ANSWER(404),
                                          ANSWER(503),
                                          ANSWER(401),
                                          IS_COMPLETED,
                                          IS_RUNNING,
                                          IS("released", "no"),
                                          IS("voided", "no"),
                                          IS("unknown", "unknown"),
                                          IS("expired", "yes"),
                                          NOT_SEEN,
                                          REPLAY,
                                          TELLS(422, "not-voidable", NEVER MEMBER("state", "completed")),
                                          WAITS(409, "in-progress", "1", "in-progress") };

static struct lab_step play(struct lab *lab, const struct lab_exchange *exchange, void *arg)
{
    (void) arg;
    (void) exchange;
    return others[suite_random_below(&lab->chance, sizeof(others) / sizeof(others[0]))];
}

static struct nonbis_op *op_of_any_past(struct lab *lab, unsigned kind)
{
    struct nonbis_op *op = NULL;
    if (kind == 0) {
        op = lab_post(lab);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        return op;
    }
    if (kind == 1) {
        ck_assert_int_eq(nonbis_op_new_for_key(&op, lab->client, "http://peer/", "k-7"), NONBIS_OK);
        return op;
    }
    const struct journal_record record = { .key = "k-7",
                                           .method = "POST",
                                           .url = "http://peer/orders",
                                           .body = "{}",
                                           .body_len = 2,
                                           .has_body = true,
                                           .own_key = kind % 2 == 0,
                                           .created_wall_ms = lab->now_ms + lab->wall_offset_ms - 1000,
                                           .outcome = (enum nonbis_outcome)(kind / 4 % 7),
                                           .stop = NONBIS_STOP_DONE };
    ck_assert_int_eq(op_make_from_record(&op, lab->client, &record, (struct journal_entry *) (void *) lab,
                                         (enum journal_state)(kind / 28 % 3)),
                     NONBIS_OK);
    return op;
}

START_TEST(no_wait_void_or_status_of_any_past_sends_the_command)
{
    unsigned seed = suite_seed();
    size_t questions = 0;
    for (unsigned round = 0; round < 1000; round++) {
        const struct nonbis_status *status = NULL;
        struct nonbis_policy policy = lab_policy("interactive", NONBIS_DEADLINE_MS, 5000, NONBIS_SERVER,
                                                 1 + (int) (round % 4), NONBIS_BUDGET_MILLI, 0, 0);
        struct lab lab;
        lab_open_with_journal(&lab, seed + round, &policy);
        lab.serve = play;
        struct nonbis_op *op = op_of_any_past(&lab, round / 4);
        for (int call = 0; call < 4; call++) {
            size_t before = lab.log_count;
            switch (suite_random_below(&lab.chance, 3)) {
            case 0:
                ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
                break;
            case 1:
                ck_assert_int_eq(nonbis_op_void(op), NONBIS_OK);
                break;
            default:
                ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
                break;
            }
            for (size_t i = before; i < lab.log_count; i++) {
                ck_assert_msg(lab.log[i].question, "seed %u, round %u: %s %s was sent", seed, round, lab.log[i].method,
                              lab.log[i].url);
            }
            questions += lab.log_count - before;
        }
        nonbis_op_free(op);
        lab_close(&lab);
    }
    FIGURE("seed %u: 4000 waits, voids and status queries, %zu questions, nothing sent", seed, questions);
    ck_assert_uint_gt(questions, 1000);
}
END_TEST

SUITE(no_send)
{
    Suite *suite = suite_create("client/no_send");
    CASE(suite, no_plan_of_a_wait_or_a_void_sends_the_command);
    CASE(suite, no_wait_void_or_status_of_any_past_sends_the_command);
    return suite;
}
