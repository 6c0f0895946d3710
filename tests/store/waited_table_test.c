/* waited_table_test.c - the table of who waits (server/store/waited.h) by itself, with hashes and times of the test's choice, on loops that the test's
 * thread turns. */
#include "server/store/waited.h"
#include "tests/store/store_fixture.h"

enum { LOOPS = 3, WAIT_MS = 1000 };

static struct loop *loops[LOOPS];
static struct waited_listener listeners[LOOPS];
static unsigned told[LOOPS];
static uint64_t told_hash[LOOPS];
static struct waited *waited;

static void tell(void *context, const struct store_ended *ended)
{
    struct waited_listener *listener = context;
    told[listener - listeners]++;
    told_hash[listener - listeners] = ended->key_hash;
}

static void start(void)
{
    ck_assert(digest_init());
    waited = waited_new(WAIT_MS);
    for (int i = 0; i < LOOPS; i++) {
        loops[i] = loop_new();
        waited_listen(waited, &listeners[i], loops[i], tell, &listeners[i]);
    }
}

static void stop(void)
{
    waited_free(waited);
    for (int i = 0; i < LOOPS; i++) {
        loop_free(loops[i]);
        waited_listener_fini(&listeners[i]);
    }
}

/* Which loops are told of the end of that key: bit i is loop i. */
static unsigned end(uint64_t key_hash)
{
    struct store_ended ended = { .key_hash = key_hash, .execution = 1, .outcome = OUTCOME_COMPLETED };
    unsigned bits = 0;
    waited_end(waited, &ended);
    for (int i = 0; i < LOOPS; i++) {
        told[i] = 0;
        (void) loop_run_once(loops[i], false);
        ck_assert_uint_le(told[i], 1);
        ck_assert(told[i] == 0 || told_hash[i] == key_hash);
        bits |= told[i] << i;
    }
    return bits;
}

START_TEST(a_hash_is_of_tenant_and_key_apart_and_differs_from_run_to_run)
{
    start();
    struct waited *other = waited_new(WAIT_MS);
    uint64_t hash = waited_hash(waited, VIEW("ab"), VIEW("c"));
    ck_assert(hash == waited_hash(waited, VIEW("ab"), VIEW("c")));
    ck_assert(hash != waited_hash(waited, VIEW("a"), VIEW("bc")));
    ck_assert(hash != waited_hash(waited, VIEW("ab"), VIEW("d")));
    ck_assert(hash != waited_hash(other, VIEW("ab"), VIEW("c")));
    waited_free(other);
    stop();
}
END_TEST

START_TEST(an_entry_lives_as_long_as_its_newest_waiter_may_wait)
{
    start();
    ck_assert(waited_add(waited, 1, &listeners[0], 5000));
    ck_assert(waited_add(waited, 2, &listeners[1], 5000));
    ck_assert(waited_add(waited, 2, &listeners[2], 5500));
    waited_tidy(waited, 6000); /* exactly as old as anybody waits */
    ck_assert_uint_eq(waited_count(waited), 2);
    waited_tidy(waited, 6400); /* too early to look again */
    ck_assert_uint_eq(waited_count(waited), 2);
    ck_assert(waited_add(waited, 3, &listeners[0], 6400));
    waited_tidy(waited, 7000);
    ck_assert_uint_eq(waited_count(waited), 1);
    ck_assert_uint_eq(end(1), 0);
    ck_assert_uint_eq(end(2), 0);
    ck_assert_uint_eq(end(3), 1);
    ck_assert_uint_eq(waited_count(waited), 0);
    stop();
}
END_TEST

START_TEST(a_table_that_grows_drops_what_is_too_old)
{
    start();
    for (uint64_t key = 1; key <= 32; key++) {
        ck_assert(waited_add(waited, key, &listeners[0], 1000));
    }
    ck_assert_uint_eq(waited_count(waited), 32);
    ck_assert(waited_add(waited, 33, &listeners[1], 2001)); /* the 33rd of 64 places */
    ck_assert_uint_eq(waited_count(waited), 1);
    ck_assert_uint_eq(end(7), 0);
    ck_assert_uint_eq(end(33), 2);
    for (uint64_t key = 1; key <= 1000; key++) {
        ck_assert(waited_add(waited, key, &listeners[key % 3], 3000));
    }
    for (uint64_t key = 1; key <= 1000; key++) {
        ck_assert_uint_eq(end(key), 1U << key % 3);
    }
    ck_assert_uint_eq(waited_count(waited), 0);
    stop();
}
END_TEST

START_TEST(a_65th_listener_cannot_wait)
{
    static struct waited_listener many[WAITED_LISTENERS_MAX + 1];
    ck_assert(digest_init());
    log_setup((enum log_level) - 1, LOG_TEXT);
    waited = waited_new(WAIT_MS);
    for (int i = 0; i <= WAITED_LISTENERS_MAX; i++) {
        waited_listen(waited, &many[i], NULL, tell, NULL);
        ck_assert_int_eq(waited_add(waited, (uint64_t) i, &many[i], 0), i < WAITED_LISTENERS_MAX);
        waited_listener_fini(&many[i]);
    }
    waited_free(waited);
}
END_TEST

/* Few keys that want the same places, and the last one, so that removing has to move others, also around the end. */
START_TEST(a_random_walk_agrees_with_a_table_that_cannot_be_wrong)
{
    enum { KEYS = 60, STEPS = 20000 };
    unsigned seed = suite_seed(), expected[KEYS] = { 0 }, count = 0, ends = 0;
    struct suite_random random;
    suite_random_start(&random, seed);
    FIGURE("store: walk over the table of who waits, seed=%u", seed);
    start();
    for (int step = 0; step < STEPS; step++) {
        unsigned key = suite_random_below(&random, KEYS), loop = suite_random_below(&random, LOOPS);
        uint64_t hash = (uint64_t) (key / 6) * 1024 + 60 + key % 6; /* ten for each of the places 60 to 63, 0 and 1 */
        if (suite_random_below(&random, 5) < 3) {
            ck_assert(waited_add(waited, hash, &listeners[loop], step / 1000));
            count += expected[key] == 0 ? 1 : 0;
            expected[key] |= 1U << loop;
        } else {
            ck_assert_uint_eq(end(hash), expected[key]);
            count -= expected[key] != 0 ? 1 : 0;
            ends += expected[key] != 0 ? 1 : 0;
            expected[key] = 0;
        }
        ck_assert_uint_eq(waited_count(waited), count);
    }
    FIGURE("store: walk of %d steps, %u ends that somebody waited for", STEPS, ends);
    stop();
}
END_TEST

SUITE(store_waited_table)
{
    Suite *suite = suite_create("store/waited_table");
    CASE(suite, a_hash_is_of_tenant_and_key_apart_and_differs_from_run_to_run);
    CASE(suite, an_entry_lives_as_long_as_its_newest_waiter_may_wait);
    CASE(suite, a_table_that_grows_drops_what_is_too_old);
    CASE(suite, a_65th_listener_cannot_wait);
    CASE(suite, a_random_walk_agrees_with_a_table_that_cannot_be_wrong);
    return suite;
}
