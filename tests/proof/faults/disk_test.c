/* disk_test.c - T6: the disk of the store is full (docs/contract.md 11.5, 6.17, 9.9): new commands are refused and not forwarded, replays and queries go on,
 * and all goes on when there is room. In two rounds of four the server keeps room for what runs: every outcome is recorded while the disk is full, and a
 * server that is killed over running commands starts there. In the other two it keeps none: outcomes are told as unrecorded and recorded late. Every second
 * round the full server is killed. */
#include "tests/proof/faults/plan.h"
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"
#include "tests/support/small_disk.h"

#include <errno.h>

enum { WARM = 5, HELD = 4, REFUSALS = 5, TRIES_MAX = 2000 };

struct full {
    struct shop shop;
    unsigned refused, replays, queries, recorded, unrecorded, late, killed_full, full_starts, found_running, recovered;
};

static const char *const keeps[] = { "--set", "store_reserve=3MiB",
                                     NULL }; /* four answers of 500 KB, and their pages */
static const char *const keeps_none[] = { "--set", "store_reserve=0", NULL };

static unsigned count_unrecorded(const struct shop *shop, unsigned first)
{
    unsigned count = 0;
    for (unsigned i = first; i < shop->count; i++) {
        count += shop->orders[i].unrecorded && !shop->orders[i].acked ? 1 : 0;
    }
    return count;
}

static void use_while_full(struct full *full, unsigned first)
{
    struct shop *shop = &full->shop;
    unsigned refused = 0;
    for (unsigned i = 0; i < TRIES_MAX && refused < REFUSALS; i++) {
        refused += shop_post(shop, shop_new(shop)) == 503 ? 1 : 0;
    }
    ck_assert_uint_eq(refused, REFUSALS);
    full->refused += refused;
    for (unsigned i = first; i < first + WARM; i++) {
        full->replays += shop_post(shop, &shop->orders[i]) == 200 ? 1 : 0;
        full->queries += shop_query(shop, &shop->orders[i]) == 200 ? 1 : 0;
    }
}

static void end_by_room(struct full *full, unsigned first, bool kept)
{
    struct shop *shop = &full->shop;
    unsigned unrecorded = count_unrecorded(shop, first);
    small_disk_make_room(shop->folder);
    ck_assert(daemon_wait_logged_times(&shop->nonbis, "is recorded now", (int) unrecorded));
    full->late += unrecorded;
    /* While the disk was full the room may have been given up, kept again by what small outcomes had left of it, and given up for the next ones. */
    int given_up = daemon_count_logged(&shop->nonbis, " goes to the outcomes of running commands");
    ck_assert(!kept || given_up > 0);
    ck_assert(!kept || daemon_wait_logged_times(&shop->nonbis, " again (bytes: ", given_up));
}

static void end_by_kill(struct full *full, bool kept)
{
    struct shop *shop = &full->shop;
    int exit_code;
    shop_kill(shop);
    full->killed_full++;
    if (kept) { /* what ran is made unknown in the room that is kept */
        shop_let_go(shop);
        shop_start(shop);
        char wanted[32];
        (void) snprintf(wanted, sizeof wanted, " recovered=%d ", HELD);
        ck_assert(daemon_logged(&shop->nonbis, wanted));
        shop_kill(shop);
        full->full_starts++;
        full->found_running += HELD;
    } else if (shop_try(shop, &exit_code)) { /* nothing was running, by the store */
        shop_kill(shop);
        full->full_starts++;
    } else {
        ck_assert_int_eq(exit_code, 74);
    }
    small_disk_make_room(shop->folder);
    shop_start(shop);
}

static void run_round(struct full *full, unsigned round)
{
    struct shop *shop = &full->shop;
    unsigned first = shop->count;
    bool kept = round % 4 < 2, killed = round % 2 == 1;
    shop->more = kept ? keeps : keeps_none;
    shop_start(shop);
    for (unsigned i = 0; i < WARM; i++) {
        ck_assert_int_eq(shop_post(shop, shop_new(shop)), 200);
    }
    shop_hold(shop, HELD);
    small_disk_fill(shop->folder);
    use_while_full(full, first);
    if (!kept || !killed) {
        unsigned acked = shop_count_acked(shop);
        shop_let_go(shop);
        full->recorded += kept ? shop_count_acked(shop) - acked : 0;
        full->unrecorded += count_unrecorded(shop, first);
    }
    if (killed) {
        end_by_kill(full, kept);
    } else {
        end_by_room(full, first, kept);
    }
    shop_judge(shop, first);
    full->recovered += shop_post(shop, shop_new(shop)) == 200 ? 1 : 0;
    ck_assert_int_eq(shop_stop(shop), 0);
}

/* Behind rounds without a kill every outcome is there: an unrecorded one that never came would be unknown. Where room is kept, all are there at once. */
START_TEST(on_a_full_disk_replays_and_queries_go_on_and_with_room_all_goes_on)
{
    struct full full = { 0 };
    struct shop *shop = &full.shop;
    unsigned lost_outcomes = 0;
    if (!small_disk_allowed()) {
        return;
    }
    shop_open(shop);
    const char *kind = small_disk_open_any(shop->folder);
    ck_assert_ptr_nonnull(kind);
    for (unsigned round = 0; round < faults_size.disk_rounds; round++) {
        unsigned first = shop->count;
        run_round(&full, round);
        for (unsigned i = first; i < shop->count && round % 2 == 0; i++) {
            lost_outcomes += shop->orders[i].acked || shop->orders[i].executions == 0 ? 0 : 1;
        }
    }
    shop->more = keeps_none;
    shop_start(shop);
    shop_judge(shop, 0);
    ck_assert_int_eq(shop_stop(shop), 0);
    const struct shop_wrongs *wrongs = &shop->wrongs;
    FIGURE(
        "T6 enospc disk=%s rounds=%u claims_refused=%u replays_ok=%u of %u status_ok=%u recorded_while_full=%u of %u "
        "unrecorded=%u (where nothing is kept) recorded_late=%u outcomes_lost=%u killed_full=%u started_full=%u "
        "found_running=%u recovered=%u acked=%u lost=%u double=%u denied=%u forgotten=%u",
        kind, faults_size.disk_rounds, full.refused, full.replays, WARM * faults_size.disk_rounds, full.queries,
        full.recorded, (faults_size.disk_rounds + 3) / 4 * HELD, full.unrecorded, full.late, lost_outcomes,
        full.killed_full, full.full_starts, full.found_running, full.recovered, shop_count_acked(shop), wrongs->lost,
        wrongs->twice, wrongs->liar, wrongs->forgotten);
    ck_assert_uint_eq(full.replays, WARM * faults_size.disk_rounds);
    ck_assert_uint_eq(full.queries, WARM * faults_size.disk_rounds);
    ck_assert_uint_eq(full.recovered, faults_size.disk_rounds);
    ck_assert_uint_eq(full.recorded, (faults_size.disk_rounds + 3) / 4 * HELD);
    ck_assert_uint_ge(full.unrecorded, 1);
    ck_assert_uint_eq(lost_outcomes, 0);
    shop_expect_right(shop);
    shop_close(shop);
    small_disk_end(shop->folder);
}
END_TEST

/* Of the disk quota of whoever runs the server: the kernel says another word, and means the same. */
START_TEST(a_quota_that_is_used_up_is_a_full_disk)
{
    struct shop shop;
    if (!shop_shim("io")) {
        return;
    }
    struct plan *plan = plan_make();
    shop_open(&shop);
    plan_store(shop.folder);
    shop_start(&shop);
    ck_assert_int_eq(shop_post(&shop, shop_new(&shop)), 200);
    shop_hold(&shop, HELD);
    plan_arm(plan, PLAN_WRITE, 1, EDQUOT, 1, 0);
    struct order *refused = shop_new(&shop);
    ck_assert_int_eq(shop_post(&shop, refused), 503);
    ck_assert_int_eq(shop_post(&shop, &shop.orders[0]), 200);
    ck_assert_int_eq(shop_query(&shop, &shop.orders[0]), 200);
    shop_let_go(&shop);
    unsigned unrecorded = count_unrecorded(&shop, 0);
    ck_assert_uint_eq(unrecorded, HELD);
    plan_disarm(plan);
    ck_assert(daemon_wait_logged_times(&shop.nonbis, "is recorded now", HELD));
    ck_assert(daemon_wait_logged(&shop.nonbis, " again (bytes: "));
    ck_assert_int_eq(shop_post(&shop, refused), 200);
    shop_judge(&shop, 0);
    ck_assert_uint_eq(shop_count_acked(&shop), 1 + HELD + 1);
    shop_expect_right(&shop);
    ck_assert_int_eq(shop_stop(&shop), 0);
    plan_end();
    (void) shop_shim(NULL);
    shop_close(&shop);
}
END_TEST

SUITE(faults_disk)
{
    Suite *suite = suite_create("faults/disk");
    CASE_TIMEOUT(suite, a_quota_that_is_used_up_is_a_full_disk, 60);
    CASE_TIMEOUT(suite, on_a_full_disk_replays_and_queries_go_on_and_with_room_all_goes_on, 300);
    return suite;
}
