/* policy_test.c - client-sdk/src/policy.c: the profiles as printed, the options by number and by text. */
#include "client-sdk/src/policy.h"
#include "tests/client/lab.h"
#include "tests/client/step.h"

static const struct {
    const char *profile;
    int64_t attempts, base_ms, cap_ms, attempt_ms, deadline_ms, server_wait_ms, budget_milli, jitter;
} profiles[] = {
    { "interactive", 2, 500, 2000, 5000, 10000, 10000, 3000, NONBIS_JITTER_FULL },
    { "standard", 4, 500, 8000, 10000, 30000, 60000, 10000, NONBIS_JITTER_FULL },
    { NULL, 4, 500, 8000, 10000, 30000, 60000, 10000, NONBIS_JITTER_FULL },
    { "batch", 6, 1000, 30000, 20000, 300000, 120000, 10000, NONBIS_JITTER_FULL },
    { "read", 3, 300, 3000, 8000, 8000, 8000, 20000, NONBIS_JITTER_FULL },
    { "background", 2, 1000, 30000, 15000, 15000, 15000, 20000, NONBIS_JITTER_FULL },
    { "unkeyed", 1, 300, 3000, 8000, 8000, 8000, 3000, NONBIS_JITTER_FULL },
    { "keyed", 2, 500, 2000, 10000, 10000, 10000, 3000, NONBIS_JITTER_FULL },
    { "reconnect", 6, 500, 30000, 20000, 300000, 120000, 10000, NONBIS_JITTER_DECORRELATED },
};

START_TEST(every_profile_has_the_numbers_that_were_printed)
{
    struct nonbis_policy *policy = NULL;
    ck_assert_int_eq(nonbis_policy_new(&policy, profiles[_i].profile), NONBIS_OK);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_ATTEMPTS), profiles[_i].attempts);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_BASE_MS), profiles[_i].base_ms);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_CAP_MS), profiles[_i].cap_ms);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_ATTEMPT_MS), profiles[_i].attempt_ms);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_DEADLINE_MS), profiles[_i].deadline_ms);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_SERVER_WAIT_MS), profiles[_i].server_wait_ms);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_BUDGET_MILLI), profiles[_i].budget_milli);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_JITTER), profiles[_i].jitter);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_MIN_ATTEMPT_MS), 500);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_DEPOSIT_MILLI), 100);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_COST_MILLI), 1000);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_BREAKER_FAILURES), 0);
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_SERVER), NONBIS_SERVER_DETECT);
    ck_assert_ptr_null(policy_contradiction(policy));
    nonbis_policy_free(policy);
}
END_TEST

static const struct {
    const char *name, *text;
    int result;
    enum nonbis_option option;
    int64_t value;
} texts[] = {
    { "attempts", "3", NONBIS_OK, NONBIS_ATTEMPTS, 3 },
    { "attempts", "0", NONBIS_ERROR_RANGE, NONBIS_ATTEMPTS, 4 },
    { "attempts", "101", NONBIS_ERROR_RANGE, NONBIS_ATTEMPTS, 4 },
    { "attempts", "3s", NONBIS_ERROR_RANGE, NONBIS_ATTEMPTS, 4 },
    { "attempts", "-3", NONBIS_ERROR_RANGE, NONBIS_ATTEMPTS, 4 },
    { "attempts", "", NONBIS_ERROR_RANGE, NONBIS_ATTEMPTS, 4 },
    { "deadline", "500ms", NONBIS_OK, NONBIS_DEADLINE_MS, 500 },
    { "deadline", "10s", NONBIS_OK, NONBIS_DEADLINE_MS, 10000 },
    { "deadline", "2m", NONBIS_OK, NONBIS_DEADLINE_MS, 120000 },
    { "deadline", "1h", NONBIS_OK, NONBIS_DEADLINE_MS, 3600000 },
    { "deadline", "7d", NONBIS_OK, NONBIS_DEADLINE_MS, 604800000 },
    { "deadline", "8d", NONBIS_ERROR_RANGE, NONBIS_DEADLINE_MS, 30000 },
    { "deadline", "1500", NONBIS_OK, NONBIS_DEADLINE_MS, 1500 },
    { "deadline", "1.5s", NONBIS_ERROR_RANGE, NONBIS_DEADLINE_MS, 30000 },
    { "deadline", "99999999999999999999s", NONBIS_ERROR_RANGE, NONBIS_DEADLINE_MS, 30000 },
    { "deadline", "9223372036854775807d", NONBIS_ERROR_RANGE, NONBIS_DEADLINE_MS, 30000 },
    { "budget", "3", NONBIS_OK, NONBIS_BUDGET_MILLI, 3000 },
    { "budget", "0.5", NONBIS_OK, NONBIS_BUDGET_MILLI, 500 },
    { "budget-deposit", "0.125", NONBIS_OK, NONBIS_DEPOSIT_MILLI, 125 },
    { "budget-deposit", "0.1", NONBIS_OK, NONBIS_DEPOSIT_MILLI, 100 },
    { "budget-deposit", "0.1234", NONBIS_ERROR_RANGE, NONBIS_DEPOSIT_MILLI, 100 },
    { "budget-deposit", ".5", NONBIS_ERROR_RANGE, NONBIS_DEPOSIT_MILLI, 100 },
    { "budget-deposit", "1.", NONBIS_ERROR_RANGE, NONBIS_DEPOSIT_MILLI, 100 },
    { "jitter", "equal", NONBIS_OK, NONBIS_JITTER, NONBIS_JITTER_EQUAL },
    { "jitter", "none", NONBIS_ERROR_RANGE, NONBIS_JITTER, NONBIS_JITTER_FULL },
    { "server", "keyed", NONBIS_OK, NONBIS_SERVER, NONBIS_SERVER_KEYED },
    { "response-max", "1MiB", NONBIS_OK, NONBIS_RESPONSE_MAX, 1048576 },
    { "response-max", "2GiB", NONBIS_ERROR_RANGE, NONBIS_RESPONSE_MAX, 16777216 },
    { "key-quoted", "on", NONBIS_OK, NONBIS_KEY_QUOTED, 1 },
    { "seed", "4", NONBIS_OK, NONBIS_SEED, 4 },
    { "seed", "-4", NONBIS_ERROR_RANGE, NONBIS_SEED, 0 },
    { "seed", "9223372036854775808", NONBIS_ERROR_RANGE, NONBIS_SEED, 0 },
    { "colour", "red", NONBIS_ERROR_NAME, NONBIS_ATTEMPTS, 4 },
};

START_TEST(an_option_is_set_by_text_or_left_alone)
{
    struct nonbis_policy *policy = NULL;
    ck_assert_int_eq(nonbis_policy_new(&policy, NULL), NONBIS_OK);
    ck_assert_int_eq(nonbis_policy_set_text(policy, texts[_i].name, texts[_i].text), texts[_i].result);
    ck_assert_int_eq(nonbis_policy_get(policy, texts[_i].option), texts[_i].value);
    nonbis_policy_free(policy);
}
END_TEST

START_TEST(every_option_has_a_name_a_help_and_a_place)
{
    struct nonbis_policy *policy = NULL;
    ck_assert_int_eq(nonbis_policy_new(&policy, NULL), NONBIS_OK);
    for (int option = 1; option < NONBIS_OPTION_END; option++) {
        ck_assert_ptr_nonnull(nonbis_option_name((enum nonbis_option) option));
        ck_assert_ptr_nonnull(nonbis_option_help((enum nonbis_option) option));
        int64_t value = nonbis_policy_get(policy, (enum nonbis_option) option);
        ck_assert_int_ge(value, 0);
        ck_assert_int_eq(nonbis_policy_set(policy, (enum nonbis_option) option, value), NONBIS_OK);
    }
    ck_assert_ptr_null(nonbis_option_name((enum nonbis_option) 0));
    ck_assert_ptr_null(nonbis_option_name(NONBIS_OPTION_END));
    ck_assert_int_eq(nonbis_policy_get(policy, NONBIS_OPTION_END), -1);
    ck_assert_int_eq(nonbis_policy_set(policy, NONBIS_OPTION_END, 1), NONBIS_ERROR_MISUSE);
    nonbis_policy_free(policy);
    ck_assert_int_eq(nonbis_policy_new(&policy, "careless"), NONBIS_ERROR_NAME);
}
END_TEST

static const struct {
    enum nonbis_option option;
    int64_t value;
    const char *why;
} contradictions[] = {
    { NONBIS_MIN_ATTEMPT_MS, 30001, "min-attempt is longer than deadline" },
    { NONBIS_BASE_MS, 8001, "base-delay is longer than max-delay" },
    { NONBIS_POLL_MS, 60001, "poll is longer than max-poll" },
    { NONBIS_COST_MILLI, 10001, "budget-cost is larger than budget" },
};

START_TEST(options_that_contradict_each_other_are_told)
{
    struct nonbis_policy policy;
    const char *why = NULL;
    ck_assert(policy_init(&policy, NULL));
    ck_assert_int_eq(nonbis_policy_check(&policy, &why), NONBIS_OK);
    ck_assert_ptr_null(why);
    ck_assert_int_eq(nonbis_policy_set(&policy, contradictions[_i].option, contradictions[_i].value), NONBIS_OK);
    ck_assert_int_eq(nonbis_policy_check(&policy, NULL), NONBIS_ERROR_POLICY);
    ck_assert_int_eq(nonbis_policy_check(&policy, &why), NONBIS_ERROR_POLICY);
    ck_assert_ptr_nonnull(strstr(why, contradictions[_i].why));
    ck_assert_int_eq(nonbis_policy_check(NULL, &why), NONBIS_ERROR_MISUSE);
}
END_TEST

START_TEST(every_profile_is_in_the_list_of_names)
{
    static const char *const names[] = { "standard",   "interactive", "batch", "read",
                                         "background", "unkeyed",     "keyed", "reconnect" };
    for (unsigned i = 0; i < 8; i++) {
        struct nonbis_policy *policy = NULL;
        const char *why = NULL;
        ck_assert_str_eq(nonbis_profile_name(i), names[i]);
        ck_assert_int_eq(nonbis_policy_new(&policy, nonbis_profile_name(i)), NONBIS_OK);
        ck_assert_int_eq(nonbis_policy_check(policy, &why), NONBIS_OK);
        nonbis_policy_free(policy);
    }
    ck_assert_ptr_null(nonbis_profile_name(8));
}
END_TEST

/* ---- the seed ----------------------------------------------------------------------------------------------------- */

/* The times at which four attempts are sent that never arrive. */
static void times_of_attempts(unsigned chance, int seed, int64_t times_ms[4], char key[64])
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SEED, seed, 0);
    struct lab lab;
    lab_open(&lab, chance, &policy);
    lab_step(&lab, (struct lab_step){ .code = 7, .hooks = -1 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.log_count, 4);
    for (int i = 0; i < 4; i++) {
        times_ms[i] = lab.log[i].at_ms - lab.log[0].at_ms;
    }
    (void) snprintf(key, 64, "%s", nonbis_op_key(op));
    nonbis_op_free(op);
    lab_close(&lab);
}

START_TEST(a_seed_gives_the_same_waits_again_and_never_the_same_key)
{
    int64_t first[4], again[4], other[4], without[4];
    char keys[4][64];
    times_of_attempts(1, 4, first, keys[0]);
    times_of_attempts(2, 4, again, keys[1]);
    times_of_attempts(1, 5, other, keys[2]);
    times_of_attempts(2, 0, without, keys[3]);
    /* As `nonbis post --dry-run --seed 4` tells them. */
    ck_assert_int_eq(first[1], 215);
    ck_assert_int_eq(first[2], 215 + 892);
    ck_assert_mem_eq(first, again, sizeof(first));
    ck_assert_int_ne(first[3], other[3]);
    ck_assert_int_ne(first[3], without[3]);
    ck_assert_str_ne(keys[0], keys[1]);
}
END_TEST

/* ---- what comes next ---------------------------------------------------------------------------------------------- */

static int note_next(const struct nonbis_event *event, void *arg)
{
    struct buf *told = arg;
    static const char *const words[] = { "", " send", " ask" };
    ck_assert(event->kind == NONBIS_EVENT_DECISION ? event->next != 0 : event->next == 0);
    buf_append_text(told, words[event->next]);
    return 0;
}

START_TEST(a_decision_tells_what_comes_next)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct buf told;
    struct lab lab;
    lab_open(&lab, 1, &policy);
    buf_init(&told, 128);
    nonbis_client_on_event(lab.client, note_next, &told);
    lab_step(&lab, (struct lab_step){ .code = 28 });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .status = 429, .fields = "Retry-After: 2" });
    lab_step(&lab, (struct lab_step) WAITS(409, "in-progress", "1", "in-progress"));
    lab_step(&lab, (struct lab_step) IS_COMPLETED);
    lab_step(&lab, (struct lab_step) REPLAY);
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_uint_eq(told.len, strlen(" ask send send ask"));
    ck_assert_mem_eq(told.ptr, " ask send send ask", told.len);
    buf_fini(&told);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(policy)
{
    Suite *suite = suite_create("client/policy");
    CASE_LOOP(suite, every_profile_has_the_numbers_that_were_printed, sizeof(profiles) / sizeof(profiles[0]));
    CASE_LOOP(suite, an_option_is_set_by_text_or_left_alone, sizeof(texts) / sizeof(texts[0]));
    CASE(suite, every_option_has_a_name_a_help_and_a_place);
    CASE(suite, every_profile_is_in_the_list_of_names);
    CASE(suite, a_seed_gives_the_same_waits_again_and_never_the_same_key);
    CASE(suite, a_decision_tells_what_comes_next);
    CASE_LOOP(suite, options_that_contradict_each_other_are_told, sizeof(contradictions) / sizeof(contradictions[0]));
    return suite;
}
