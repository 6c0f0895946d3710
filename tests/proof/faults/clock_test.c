/* clock_test.c - T10: the wall clock is set forward and back by days, while nonbisd runs and while it does not, with orders in flight (docs/contract.md 9.8).
 * A day that goes by is both clocks' (tests/support/clock_hand.h); whoever sets a clock moves one. Held against the time that has really gone by:
 *
 *   an answer is replayed for `ttl`, less what wrong clocks at starts may take, `max_downtime` in all
 *   a key is never free before `tombstone_ttl`, less the same */
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"
#include "tests/support/clock_hand.h"

enum { ORDERS = 2000, REPEATS = 6 };
#define TTL (6 * MOVED_DAY)
#define TOMBSTONE (30 * MOVED_DAY)
#define DOWNTIME MOVED_DAY

struct time_walk {
    struct shop shop;
    struct clock_hand hand;
    struct suite_random random;
    int64_t now_ms; /* that have really gone by */
    int64_t placed_ms[ORDERS];
    unsigned forward, back, passed, restarts, in_flight;
    unsigned replays, expired, again, early_expiry, early_again, odd;
};

static int64_t some_days(struct time_walk *walk, unsigned most)
{
    return (int64_t) suite_random_below(&walk->random, most * 24) * MOVED_HOUR;
}

static void place(struct time_walk *walk)
{
    struct order *order = shop_new(&walk->shop);
    ck_assert_uint_lt(order->number, ORDERS);
    ck_assert_int_eq(shop_post(&walk->shop, order), 200);
    walk->placed_ms[order->number] = walk->now_ms;
}

/* What one of them is told now, against its age. */
static void repeat(struct time_walk *walk)
{
    struct shop *shop = &walk->shop;
    struct order *order = &shop->orders[suite_random_below(&walk->random, shop->count)];
    int64_t age_ms = walk->now_ms - walk->placed_ms[order->number];
    shop_tally(shop);
    unsigned before = order->executions;
    int status = shop_post(shop, order);
    shop_tally(shop);
    if (order->executions > before) {
        walk->again++;
        walk->early_again += age_ms < TOMBSTONE - DOWNTIME ? 1 : 0;
        walk->placed_ms[order->number] = walk->now_ms;
    } else if (status == 200) {
        walk->replays++;
    } else if (status == 422) {
        walk->expired++;
        walk->early_expiry += age_ms < TTL - DOWNTIME ? 1 : 0;
    } else {
        walk->odd++;
    }
}

static void restart(struct time_walk *walk)
{
    if (suite_random_below(&walk->random, 2) == 0) {
        ck_assert_int_eq(shop_stop(&walk->shop), 0);
    } else {
        shop_kill(&walk->shop);
    }
    int64_t off_ms = some_days(walk, 1);
    clock_hand_pass(&walk->hand, off_ms);
    walk->now_ms += off_ms;
    shop_start(&walk->shop);
    walk->restarts++;
}

static void step(struct time_walk *walk)
{
    int64_t days_ms = some_days(walk, 10);
    switch (suite_random_below(&walk->random, 6)) {
    case 0:
        clock_hand_step_wall(&walk->hand, days_ms);
        walk->forward++;
        break;
    case 1:
        clock_hand_step_wall(&walk->hand, -days_ms);
        walk->back++;
        break;
    case 2: /* and it is put right, or wrong, with an order in flight: nothing of it is lost or sent again */
        shop_hold(&walk->shop, 1);
        walk->placed_ms[walk->shop.count - 1] = walk->now_ms;
        clock_hand_step_wall(&walk->hand, suite_random_below(&walk->random, 2) == 0 ? days_ms : -days_ms);
        shop_let_go(&walk->shop);
        walk->in_flight++;
        break;
    case 3:
        restart(walk);
        break;
    default:
        clock_hand_pass(&walk->hand, days_ms / 8);
        walk->now_ms += days_ms / 8;
        walk->passed++;
    }
}

START_TEST(a_wall_clock_that_is_set_by_days_ends_nothing_early_and_runs_nothing_again)
{
    static const char *const kept[] = { "--set", "ttl=144h",         "--set", "tombstone_ttl=720h",
                                        "--set", "max_downtime=24h", NULL };
    struct time_walk *walk = calloc(1, sizeof *walk);
    struct shop *shop = &walk->shop;
    unsigned seed = suite_seed();
    suite_random_start(&walk->random, seed);
    shop_open(shop);
    clock_hand_make(&walk->hand, "2030-01-01T00:00:00Z");
    setenv(MOVED_CLOCK_FILE, walk->hand.path, 1);
    shop->program = "nonbisd-moved";
    shop->more = kept;
    shop_start(shop);
    place(walk);
    for (unsigned i = 0; i < faults_size.clock_steps; i++) {
        step(walk);
        place(walk);
        for (unsigned n = 0; n < REPEATS; n++) {
            repeat(walk);
        }
    }
    ck_assert_int_eq(shop_stop(shop), 0);
    FIGURE(
        "T10 clock seed=%u steps=%u forward=%u back=%u in-flight=%u restarts=%u days-passed=%lld replays=%u expired=%u "
        "executed-after-tombstone=%u early_expiry=%u early_reexec=%u odd=%u lease_uses=monotonic",
        seed, faults_size.clock_steps, walk->forward, walk->back, walk->in_flight, walk->restarts,
        (long long) (walk->now_ms / MOVED_DAY), walk->replays, walk->expired, walk->again - walk->early_again,
        walk->early_expiry, walk->early_again, walk->odd);
    ck_assert_uint_eq(walk->early_expiry + walk->early_again + walk->odd, 0);
    ck_assert(walk->forward > 0 && walk->back > 0 && walk->restarts > 0 && walk->in_flight > 0);
    ck_assert_uint_gt(walk->replays, 0);
    shop_close(shop);
    free(walk);
}
END_TEST

SUITE(faults_clock)
{
    Suite *suite = suite_create("faults/clock");
    CASE_TIMEOUT(suite, a_wall_clock_that_is_set_by_days_ends_nothing_early_and_runs_nothing_again, 300);
    return suite;
}
