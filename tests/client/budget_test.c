/* budget_test.c - client-sdk/src/budget.c alone, and at work under a client. */
#include "client-sdk/src/budget.h"
#include "tests/client/lab.h"

#include <pthread.h>

/* Bucket 10, +0.1 for every call, -1 for every retry, 3 retries wanted, every call fails. */
static const struct {
    int calls;
    int64_t size_milli;
    int retries;
} storms[] = {
    { 10, 10000, 10 }, { 100, 10000, 19 }, { 1000, 10000, 109 }, { 10000, 10000, 1009 }, { 100, 0, 300 },
};

START_TEST(when_every_call_fails_retries_stay_a_tenth_of_the_calls_and_what_was_saved)
{
    struct budget budget;
    int retries = 0;
    budget_init(&budget, storms[_i].size_milli, 100, 1000);
    for (int call = 0; call < storms[_i].calls; call++) {
        budget_deposit(&budget);
        for (int retry = 0; retry < 3 && budget_take(&budget); retry++) {
            retries++;
        }
    }
    ck_assert_int_eq(retries, storms[_i].retries);
}
END_TEST

START_TEST(failing_calls_of_a_client_are_retried_as_often_as_its_budget_says)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_KEYED, NONBIS_BUDGET_MILLI,
                                             (int) storms[_i].size_milli, NONBIS_COST_MILLI, 1000, 0);
    struct lab lab;
    lab_open(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .status = 503 });
    for (int call = 0; call < storms[_i].calls; call++) {
        struct nonbis_op *op = lab_post(&lab);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
        enum nonbis_stop stop = nonbis_op_stop(op);
        ck_assert(stop == NONBIS_STOP_BUDGET || stop == NONBIS_STOP_ATTEMPTS);
        nonbis_op_free(op);
        lab.log_count = 0;
    }
    ck_assert_int_eq((int) lab.attempts - storms[_i].calls, storms[_i].retries);
    struct nonbis_stats stats;
    nonbis_client_stats(lab.client, &stats, sizeof(stats));
    ck_assert_int_eq((int) stats.retries, storms[_i].retries);
    ck_assert_int_eq((int) stats.runs, storms[_i].calls);
    FIGURE("%d failing calls of 4 attempts, bucket %d milli-tokens: %d retries", storms[_i].calls,
           (int) storms[_i].size_milli, (int) stats.retries);
    lab_close(&lab);
}
END_TEST

START_TEST(a_bucket_starts_full_and_never_holds_more)
{
    struct budget budget;
    budget_init(&budget, 2000, 100, 1000);
    budget_deposit(&budget);
    ck_assert_int_eq(budget_tokens_milli(&budget), 2000);
    ck_assert(budget_take(&budget));
    ck_assert(budget_take(&budget));
    ck_assert(!budget_has(&budget));
    ck_assert(!budget_take(&budget));
    ck_assert_int_eq(budget_tokens_milli(&budget), 0);
    for (int i = 0; i < 9; i++) {
        budget_deposit(&budget);
    }
    ck_assert(!budget_take(&budget)); /* 0.9 tokens pay nothing */
    budget_deposit(&budget);
    ck_assert(budget_take(&budget));
    ck_assert_int_eq(budget_tokens_milli(&budget), 0);
}
END_TEST

START_TEST(no_budget_means_that_every_retry_is_allowed)
{
    struct budget budget;
    budget_init(&budget, 0, 100, 1000);
    for (int i = 0; i < 1000; i++) {
        ck_assert(budget_has(&budget) && budget_take(&budget));
    }
    ck_assert_int_eq(budget_tokens_milli(&budget), -1);
}
END_TEST

struct taker {
    struct budget *budget;
    atomic_bool *go;
    long taken, deposited, below;
};

static void *taker_run(void *arg)
{
    struct taker *taker = arg;
    while (!atomic_load(taker->go)) {
    }
    for (int i = 0; i < 200000; i++) {
        taker->taken += budget_take(taker->budget) ? 1 : 0;
        taker->below += budget_tokens_milli(taker->budget) < 0 ? 1 : 0;
        if (i % 2 == 0) {
            budget_deposit(taker->budget);
            taker->deposited++;
        }
    }
    return NULL;
}

START_TEST(two_threads_never_take_what_is_not_there)
{
    struct budget budget;
    atomic_bool go = false;
    /* So large that it is never full: then nothing of a deposit is lost and the sum must be right to the last thousandth. */
    budget_init(&budget, 1000000000, 300, 1000);
    atomic_store(&budget.tokens_milli, 5000);
    struct taker takers[2] = { { .budget = &budget, .go = &go }, { .budget = &budget, .go = &go } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, taker_run, &takers[i]), 0);
    }
    atomic_store(&go, true);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    ck_assert_int_eq(takers[0].below + takers[1].below, 0);
    ck_assert_int_eq(takers[0].deposited + takers[1].deposited, 200000);
    long taken = takers[0].taken + takers[1].taken;
    ck_assert_int_eq(budget_tokens_milli(&budget), 5000 + 200000L * 300 - taken * 1000);
    ck_assert_int_ge(budget_tokens_milli(&budget), 0);
}
END_TEST

SUITE(budget)
{
    Suite *suite = suite_create("client/budget");
    CASE_LOOP(suite, when_every_call_fails_retries_stay_a_tenth_of_the_calls_and_what_was_saved,
              sizeof(storms) / sizeof(storms[0]));
    CASE_LOOP(suite, failing_calls_of_a_client_are_retried_as_often_as_its_budget_says,
              sizeof(storms) / sizeof(storms[0]));
    CASE(suite, a_bucket_starts_full_and_never_holds_more);
    CASE(suite, no_budget_means_that_every_retry_is_allowed);
    CASE(suite, two_threads_never_take_what_is_not_there);
    return suite;
}
