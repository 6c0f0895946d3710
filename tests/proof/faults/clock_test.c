/* clock_test.c - T10: the wall clock is set forward and back by days, while nonbisd runs and while it does not, with orders in flight (docs/contract.md 9.8).
 * A day that goes by is both clocks' (tests/support/clock_hand.h); whoever sets a clock moves one. Held against the time that has really gone by:
 *
 *   an answer is replayed for `ttl`, less what starts took since it was placed, and no longer than the server was off beside it
 *   a key is never free before `tombstone_ttl`, less the same, and its end comes as much later at most
 *
 * A start takes `max_downtime` at most, and only when the wall clock was set forward since the start before: by how much, when that is less. That is
 * summed up over the starts (`taken_ms`), since each of several wrong clocks looks like a server that was off. */
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"
#include "tests/support/clock_hand.h"

enum { ORDERS = 2000, REPEATS = 6, CHOICES = 32, STEPS = 6 };
#define TTL (6 * MOVED_DAY)
#define TOMBSTONE (30 * MOVED_DAY)
#define DOWNTIME MOVED_DAY

struct time_walk {
    struct shop shop;
    struct clock_hand hand;
    struct suite_random random;
    int64_t now_ms;            /* that have really gone by */
    int64_t wrong_ms;          /* by which the wall clock is ahead of that, or behind */
    int64_t wrong_at_start_ms; /* at the newest start */
    int64_t taken_ms, off_ms;  /* what starts may have taken by now, and how long the server was off, in all */
    struct placed {
        int64_t now_ms, taken_ms, off_ms; /* as they were when the order ran */
    } placed[ORDERS];
    unsigned forward, back, passed, restarts, in_flight;
    unsigned replays, expired, again, early_expiry, early_again, late, odd;
};

static int64_t some_days(struct time_walk *walk, unsigned most)
{
    return (int64_t) suite_random_below(&walk->random, most * 24) * MOVED_HOUR;
}

static void note_placed(struct time_walk *walk, unsigned number)
{
    ck_assert_uint_lt(number, ORDERS);
    walk->placed[number] = (struct placed){ walk->now_ms, walk->taken_ms, walk->off_ms };
}

static void place(struct time_walk *walk)
{
    struct order *order = shop_new(&walk->shop);
    ck_assert_int_eq(shop_post(&walk->shop, order), 200);
    note_placed(walk, order->number);
}

/* How old an order is by store time, at least and at most. */
static int64_t youngest(const struct time_walk *walk, unsigned number)
{
    const struct placed *placed = &walk->placed[number];
    return walk->now_ms - placed->now_ms - (walk->off_ms - placed->off_ms);
}

static int64_t oldest(const struct time_walk *walk, unsigned number)
{
    const struct placed *placed = &walk->placed[number];
    return walk->now_ms - placed->now_ms + walk->taken_ms - placed->taken_ms;
}

/* Of some, the one that comes to an end next: there a wrong end shows. */
static unsigned choose(struct time_walk *walk)
{
    unsigned chosen = 0;
    int64_t least_ms = INT64_MAX;
    for (int i = 0; i < CHOICES; i++) {
        unsigned number = suite_random_below(&walk->random, walk->shop.count);
        int64_t age_ms = oldest(walk, number);
        int64_t left_ms = age_ms < TTL ? TTL - age_ms : age_ms < TOMBSTONE ? TOMBSTONE - age_ms : INT64_MAX - 1;
        if (left_ms < least_ms) {
            least_ms = left_ms;
            chosen = number;
        }
    }
    return chosen;
}

/* What it is told now, against its age. */
static void repeat(struct time_walk *walk, unsigned number)
{
    struct shop *shop = &walk->shop;
    struct order *order = &shop->orders[number];
    int64_t youngest_ms = youngest(walk, number), oldest_ms = oldest(walk, number);
    shop_tally(shop);
    unsigned before = order->executions;
    int status = shop_post(shop, order);
    shop_tally(shop);
    if (order->executions > before) {
        walk->again++;
        walk->early_again += oldest_ms < TOMBSTONE;
        note_placed(walk, order->number);
    } else if (status == 200) {
        walk->replays++;
        walk->late += youngest_ms >= TTL;
    } else if (status == 422) {
        walk->expired++;
        walk->early_expiry += oldest_ms < TTL;
        walk->late += youngest_ms >= TOMBSTONE;
    } else {
        walk->odd++;
    }
}

static void set_wall(struct time_walk *walk, int64_t ms)
{
    clock_hand_step_wall(&walk->hand, ms);
    walk->wrong_ms += ms;
}

static void restart(struct time_walk *walk)
{
    if (suite_random_below(&walk->random, 2) == 0) {
        ck_assert_int_eq(shop_stop(&walk->shop), 0);
    } else {
        shop_kill(&walk->shop);
    }
    int64_t off_ms = some_days(walk, 1), forward_ms = walk->wrong_ms - walk->wrong_at_start_ms;
    clock_hand_pass(&walk->hand, off_ms);
    walk->now_ms += off_ms;
    walk->off_ms += off_ms;
    walk->taken_ms += forward_ms <= 0 ? 0 : forward_ms < DOWNTIME ? forward_ms : DOWNTIME;
    walk->wrong_at_start_ms = walk->wrong_ms;
    shop_start(&walk->shop);
    walk->restarts++;
}

/* One of STEPS; what is none of the first four is time that goes by. */
static void step(struct time_walk *walk, unsigned kind)
{
    int64_t days_ms = some_days(walk, 10);
    switch (kind) {
    case 0:
        set_wall(walk, days_ms);
        walk->forward++;
        break;
    case 1:
        set_wall(walk, -days_ms);
        walk->back++;
        break;
    case 2: /* and it is put right, or wrong, with an order in flight: nothing of it is lost or sent again */
        shop_hold(&walk->shop, 1);
        note_placed(walk, walk->shop.count - 1);
        set_wall(walk, suite_random_below(&walk->random, 2) == 0 ? days_ms : -days_ms);
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
        /* Each kind once, and then as it comes: by chance alone one of them would be missing from some short walks. */
        step(walk, i < STEPS ? i : suite_random_below(&walk->random, STEPS));
        place(walk);
        for (unsigned n = 0; n < REPEATS; n++) {
            repeat(walk, n % 2 == 0 ? choose(walk) : suite_random_below(&walk->random, shop->count));
        }
    }
    ck_assert_int_eq(shop_stop(shop), 0);
    FIGURE(
        "T10 clock seed=%u steps=%u forward=%u back=%u in-flight=%u restarts=%u days-passed=%lld replays=%u expired=%u "
        "executed-after-tombstone=%u early_expiry=%u early_reexec=%u late=%u odd=%u days-taken=%.1f "
        "unknown=%u lease_uses=%s",
        seed, faults_size.clock_steps, walk->forward, walk->back, walk->in_flight, walk->restarts,
        (long long) (walk->now_ms / MOVED_DAY), walk->replays, walk->expired, walk->again - walk->early_again,
        walk->early_expiry, walk->early_again, walk->late, walk->odd, (double) walk->taken_ms / (double) MOVED_DAY,
        shop_count_unknown(shop), shop_count_unknown(shop) == 0 ? "monotonic" : "wall");
    ck_assert_uint_eq(shop_count_unknown(shop), 0); /* no deadline of a claim has passed by the wall clock */
    ck_assert_uint_eq(walk->early_expiry, 0);
    ck_assert_uint_eq(walk->early_again, 0);
    ck_assert_uint_eq(walk->late, 0);
    ck_assert_uint_eq(walk->odd, 0);
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
