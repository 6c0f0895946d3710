/* power_test.c - T3: the power is cut (docs/contract.md 11.1), under load and, one after the other, at every sync in the life of a store. Under load: nonbisd is killed when a random number of orders was acknowledged; its folder
 * becomes what the disk has kept (power.h), every second time a mixture with what it had not been asked to keep; nonbisd is started again, and every
 * order of that round is repeated. At the end all are.
 * Some rounds end by a clean stop before the cut. */
#include "tests/proof/faults/power.h"
#include "tests/proof/faults/shim.h"
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

enum { WRITERS = 6, HELD = 2, ANSWERS_MAX = 60, LONG_ROUND = 800, CUTS_MANY = 50 };

/* What SQLite finds in the database and its log, which are left as they are: it works on a copy. */
static bool is_whole(const struct shop *shop)
{
    static const char *const ends[] = { "", "-wal" };
    char copy[800], from[800], to[820];
    (void) snprintf(copy, sizeof copy, "%s.copy", shop->folder);
    for (int i = 0; i < 2; i++) {
        (void) snprintf(from, sizeof from, "%s%s", shop->store, ends[i]);
        (void) snprintf(to, sizeof to, "%s%s", copy, ends[i]);
        FILE *in = fopen(from, "re"), *out = fopen(to, "we");
        char block[65536];
        for (size_t got; in != NULL && (got = fread(block, 1, sizeof block, in)) > 0;) {
            ck_assert_uint_eq(fwrite(block, 1, got, out), got);
        }
        if (in != NULL) {
            (void) fclose(in);
        }
        (void) fclose(out);
    }
    sqlite3 *db = NULL;
    sqlite3_stmt *check = NULL;
    bool good = sqlite3_open(copy, &db) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL) == SQLITE_OK &&
                sqlite3_step(check) == SQLITE_ROW && strcmp((const char *) sqlite3_column_text(check, 0), "ok") == 0;
    (void) sqlite3_finalize(check);
    (void) sqlite3_close(db);
    return good;
}

struct cuts {
    struct shop shop;
    struct power power;
    bool normal;
    unsigned damaged, open_claims, clean_stops, noticed;
};

/* What a disk forgets that was not asked to keep it, the lock file may remember: then the store is an older copy. Only the control may come to that. */
static void start_again(struct cuts *cuts)
{
    struct shop *shop = &cuts->shop;
    int exit_code;
    char lock[720];
    if (cuts->normal && !shop_try(shop, &exit_code)) {
        ck_assert(exit_code == 74 && daemon_logged(&shop->nonbis, "older copy"));
        (void) snprintf(lock, sizeof lock, "%s.lock", shop->store);
        ck_assert_int_eq(unlink(lock), 0);
        cuts->noticed++;
    }
    if (!shop->running) {
        shop_start(shop);
    }
}

static void run_round(struct cuts *cuts, unsigned round, struct suite_random *random)
{
    struct shop *shop = &cuts->shop;
    /* Now and then a long one, in which the log is brought home and begun anew. */
    unsigned answers = 1 + suite_random_below(random, round % 16 == 7 ? LONG_ROUND : ANSWERS_MAX);
    unsigned first = shop->count, unknown = shop_count_unknown(shop);
    enum power_loss loss = suite_random_below(random, 2) == 0 ? POWER_WORST : POWER_MIXED;
    start_again(cuts);
    shop_hold(shop, round % 8 == 5 ? 0 : HELD); /* a clean stop would wait for them */
    shop_rush(shop, WRITERS, answers);
    if (round % 8 == 5) {
        ck_assert_int_eq(shop_stop(shop), 0);
        cuts->clean_stops++;
    } else {
        shop_kill(shop);
    }
    shop_let_go(shop);
    shop_rush_end(shop);
    power_cut(&cuts->power, loss, random);
    cuts->damaged += is_whole(shop) ? 0 : 1;
    start_again(cuts);
    shop_judge(shop, first);
    cuts->open_claims += shop_count_unknown(shop) > unknown ? 1 : 0;
    /* The judging writes too, and so is cut. */
    shop_kill(shop);
    power_cut(&cuts->power, loss, random);
}

static bool cut_often(struct cuts *cuts, unsigned count, bool normal, unsigned seed)
{
    static const char *const loops[] = { "--set", "server.loops=2", NULL };
    struct suite_random random;
    if (!shop_shim("power")) {
        return false;
    }
    suite_random_start(&random, seed);
    *cuts = (struct cuts){ .normal = normal };
    shop_open(&cuts->shop);
    power_begin(&cuts->power, cuts->shop.folder, normal);
    for (unsigned round = 0; round < count; round++) {
        cuts->shop.more = round % 2 == 0 ? NULL : loops;
        run_round(cuts, round, &random);
    }
    start_again(cuts);
    shop_judge(&cuts->shop, 0);
    ck_assert_int_eq(shop_stop(&cuts->shop), 0);
    power_end();
    (void) shop_shim(NULL);
    return true;
}

START_TEST(no_order_runs_twice_and_no_answer_is_lost_when_only_what_was_synced_survives)
{
    struct cuts cuts;
    unsigned seed = suite_seed();
    if (!cut_often(&cuts, faults_size.cuts, false, seed)) {
        return;
    }
    const struct shop_wrongs *wrongs = &cuts.shop.wrongs;
    FIGURE("T3 powerloss cuts=%u acked=%u unknown=%u lost=%u double=%u forgotten=%u integrity=%s seed=%u",
           2 * faults_size.cuts, shop_count_acked(&cuts.shop), shop_count_unknown(&cuts.shop), wrongs->lost,
           wrongs->twice, wrongs->forgotten, cuts.damaged == 0 ? "ok" : "damaged", seed);
    FIGURE("powerloss: cuts that met a claim without outcome=%u after-clean-stop=%u bytes-written-and-gone=%llu "
           "names-gone=%u",
           cuts.open_claims, cuts.clean_stops, cuts.power.dropped, cuts.power.names_dropped);
    shop_expect_right(&cuts.shop);
    ck_assert_uint_eq(cuts.damaged, 0);
    /* It met commands in flight, and did take something away; of a few cuts each may come when everything is synced. */
    ck_assert(cuts.power.dropped > 0 || faults_size.cuts < CUTS_MANY);
    ck_assert_uint_ge(cuts.open_claims, faults_size.cuts / 2);
    shop_close(&cuts.shop);
}
END_TEST

/* --- every sync --- */

enum { LIFE_ORDERS = 3 };

/* One process: it starts, takes a few orders, and is stopped. True: the power went in between. */
static bool live(struct shop *shop)
{
    int exit_code = 0;
    bool up = shop_try(shop, &exit_code);
    for (unsigned n = 0; n < LIFE_ORDERS && up; n++) {
        up = shop_post(shop, shop_new(shop)) == 200;
    }
    if (shop->running) {
        exit_code = shop_stop(shop);
    }
    ck_assert_msg(exit_code == 0 || exit_code == -SIGKILL, "nonbisd ended with %d, see %s", exit_code,
                  shop->nonbis.log_path);
    return exit_code == -SIGKILL;
}

struct syncs {
    unsigned points, acked, refused;
    unsigned long long dropped;
    struct shop_wrongs wrongs;
};

/* True: there is such a sync. */
static bool cut_at_sync(struct syncs *syncs, unsigned process, unsigned nth, bool behind, enum power_loss loss,
                        struct suite_random *random)
{
    struct shop shop;
    struct power power;
    char at[32];
    int exit_code;
    shop_open(&shop);
    power_begin(&power, shop.folder, false);
    (void) snprintf(at, sizeof at, "%u%s", nth, behind ? "+" : "");
    if (process == 0) {
        setenv(POWER_CUT_AT, at, 1);
    }
    bool met = live(&shop);
    if (process == 1) {
        setenv(POWER_CUT_AT, at, 1);
        met = live(&shop);
    }
    unsetenv(POWER_CUT_AT);
    power_cut(&power, loss, random);
    if (!shop_try(&shop, &exit_code)) {
        syncs->refused++;
        FIGURE("powerloss: cut %s sync %u of process %u, %s: the next start is refused with %d, see %s",
               behind ? "behind" : "before", nth, process + 1, loss == POWER_WORST ? "worst" : "mixed", exit_code,
               shop.nonbis.log_path);
    } else {
        shop_judge(&shop, 0);
        ck_assert_int_eq(shop_stop(&shop), 0);
    }
    syncs->points += met ? 1 : 0;
    syncs->dropped += power.dropped;
    syncs->acked += shop_count_acked(&shop);
    syncs->wrongs.lost += shop.wrongs.lost;
    syncs->wrongs.twice += shop.wrongs.twice;
    syncs->wrongs.forgotten += shop.wrongs.forgotten;
    power_end();
    shop_close(&shop);
    return met;
}

START_TEST(a_cut_at_any_sync_in_the_life_of_a_store_loses_nothing_and_the_next_start_works)
{
    struct syncs syncs = { 0 };
    struct suite_random random;
    unsigned seed = suite_seed();
    suite_random_start(&random, seed);
    if (!shop_shim("power")) {
        return;
    }
    for (unsigned way = 0; way < 8; way++) {
        for (unsigned nth = 1 + way % faults_size.sync_stride;
             cut_at_sync(&syncs, way % 2, nth, way / 2 % 2 == 1, way / 4 == 0 ? POWER_WORST : POWER_MIXED, &random);
             nth += faults_size.sync_stride) {
        }
    }
    (void) shop_shim(NULL);
    FIGURE("T3 powerloss-at-sync cuts=%u acked=%u lost=%u double=%u forgotten=%u starts-refused=%u "
           "bytes-written-and-gone=%llu seed=%u",
           syncs.points, syncs.acked, syncs.wrongs.lost, syncs.wrongs.twice, syncs.wrongs.forgotten, syncs.refused,
           syncs.dropped, seed);
    ck_assert_uint_eq(syncs.wrongs.lost + syncs.wrongs.twice + syncs.wrongs.forgotten + syncs.refused, 0);
    ck_assert_uint_ge(syncs.points, 8);
    ck_assert(syncs.dropped > 0); /* before a sync there is something that it was for */
}
END_TEST

/* The control: what the run above looks at is lost when the store does not sync its commits. */
START_TEST(answers_are_lost_and_orders_run_twice_when_commits_are_not_synced)
{
    struct cuts cuts;
    unsigned seed = suite_seed();
    if (!cut_often(&cuts, faults_size.control_cuts, true, seed)) {
        return;
    }
    const struct shop_wrongs *wrongs = &cuts.shop.wrongs;
    FIGURE("T3 powerloss-control synchronous=NORMAL cuts=%u acked=%u lost=%u double=%u (both must be more than 0) "
           "noticed=%u seed=%u",
           2 * faults_size.control_cuts, shop_count_acked(&cuts.shop), wrongs->lost, wrongs->twice, cuts.noticed, seed);
    ck_assert_uint_gt(wrongs->lost, 0);
    ck_assert_uint_gt(wrongs->twice, 0);
    shop_close(&cuts.shop);
}
END_TEST

SUITE(faults_power)
{
    Suite *suite = suite_create("faults/power");
    CASE_TIMEOUT(suite, no_order_runs_twice_and_no_answer_is_lost_when_only_what_was_synced_survives, 600);
    CASE_TIMEOUT(suite, a_cut_at_any_sync_in_the_life_of_a_store_loses_nothing_and_the_next_start_works, 600);
    CASE_TIMEOUT(suite, answers_are_lost_and_orders_run_twice_when_commits_are_not_synced, 200);
    return suite;
}
