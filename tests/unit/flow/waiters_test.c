/* waiters_test.c - who is told of which end (server/flow/waiters.h). That the messages of the store come in an order which never shows the difference is no
 * reason to rely on it. The limits on waiters: tests/integration/waiting_test.c, settings_waiting_test.c, loops_test.c. */
#include "server/digest/digest.h"
#include "server/flow/waiters.h"
#include "tests/support/suite.h"

enum { WAITERS = 4 };

static struct settings settings = { .waiters_per_key = 10, .waiters_per_tenant = 10, .waiters_max = 10 };
static struct waiter_count *count;
static struct waiters *waiters;
static struct waiter all[WAITERS];
static unsigned told[WAITERS];           /* how often */
static uint32_t told_execution[WAITERS]; /* by the end of which one, at last */

static void note(struct waiter *waiter, const struct store_ended *ended)
{
    told[waiter - all]++;
    told_execution[waiter - all] = ended->execution;
}

static void join(unsigned index, uint64_t key_hash, uint32_t execution)
{
    struct store_task task = { .key_hash = key_hash, .found.record.execution = execution };
    all[index].ended = note;
    ck_assert(waiters_join(waiters, &all[index], &task, VIEW("")));
}

static void end(uint64_t key_hash, uint32_t execution)
{
    const struct store_ended ended = {
        .key_hash = key_hash, .execution = execution, .outcome = OUTCOME_NOT_EXECUTED, .answer.status = 503
    };
    waiters_on_ended(waiters, &ended);
}

static void start(void)
{
    ck_assert(digest_init());
    count = waiter_count_new(&settings);
    waiters = waiters_new(count);
}

static void stop(void)
{
    waiters_free(waiters);
    waiter_count_free(count);
}

START_TEST(whoever_waits_for_an_execution_is_not_told_of_an_earlier_one)
{
    start();
    join(0, 7, 1);
    join(1, 7, 2);
    end(7, 1);
    ck_assert_uint_eq(told[0], 1);
    ck_assert_uint_eq(told[1], 0);
    ck_assert(all[1].waiting);
    ck_assert_uint_eq(waiter_count_now(count), 1);
    end(7, 2);
    ck_assert_uint_eq(told[0], 1);
    ck_assert_uint_eq(told[1], 1);
    ck_assert_uint_eq(told_execution[1], 2);
    ck_assert_uint_eq(waiter_count_now(count), 0);
    stop();
}
END_TEST

/* Its own end was told when it had not joined yet: a later one is better than none. */
START_TEST(whoever_waits_for_an_execution_is_told_of_a_later_one)
{
    start();
    join(0, 7, 1);
    end(7, 3);
    ck_assert_uint_eq(told[0], 1);
    ck_assert_uint_eq(told_execution[0], 3);
    ck_assert_uint_eq(waiter_count_now(count), 0);
    stop();
}
END_TEST

/* 7 and 263 lie in one of 256 buckets. */
START_TEST(an_end_is_told_to_every_waiter_of_its_key_and_to_no_other)
{
    start();
    join(0, 7, 1);
    join(1, 263, 1);
    join(2, 7, 1);
    join(3, 7, 1);
    waiters_leave(waiters, &all[3]);
    waiters_leave(waiters, &all[3]);
    end(7, 1);
    ck_assert_uint_eq(told[0], 1);
    ck_assert_uint_eq(told[1], 0);
    ck_assert_uint_eq(told[2], 1);
    ck_assert_uint_eq(told[3], 0);
    ck_assert_uint_eq(waiter_count_now(count), 1);
    waiters_leave(waiters, &all[1]);
    ck_assert_uint_eq(waiter_count_now(count), 0);
    stop();
}
END_TEST

SUITE(flow_waiters)
{
    Suite *suite = suite_create("flow/waiters");
    CASE(suite, whoever_waits_for_an_execution_is_not_told_of_an_earlier_one);
    CASE(suite, whoever_waits_for_an_execution_is_told_of_a_later_one);
    CASE(suite, an_end_is_told_to_every_waiter_of_its_key_and_to_no_other);
    return suite;
}
