/* power_full_test.c - T3: the power is cut while the disk of the store is full (docs/contract.md 11.5): at every sync from when the room that is kept for
 * outcomes is given up until it is kept again, and commands are taken. */
#include "tests/proof/faults/power.h"
#include "tests/proof/faults/shim.h"
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"
#include "tests/support/small_disk.h"

#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { HELD = 4, REFUSED_MAX = 2000, ASK_AGAIN_MS = 20 };

static const char *const keeps[] = { "--set", "store_reserve=3MiB", NULL };

struct cuts {
    unsigned points, acked, given_up, refused;
    struct shop_wrongs wrongs;
};

/* Its end is waited for so long. */
static bool has_ended(const struct shop *shop, int ms)
{
    struct pollfd one = { .fd = pidfd_open(shop->nonbis.pid, 0), .events = POLLIN };
    ck_assert_int_ge(one.fd, 0); /* it is nobody's but ours to reap */
    bool ended = poll(&one, 1, ms) == 1;
    close(one.fd);
    return ended;
}

/* True: the power went in between. From `armed` on, which is made when the disk is full. */
static bool live(struct shop *shop, const char *armed)
{
    bool room = false;
    shop_start(shop);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(shop_post(shop, shop_new(shop)), 200);
    }
    shop_hold(shop, HELD);
    small_disk_fill(shop->folder);
    fclose(fopen(armed, "we"));
    for (unsigned i = 0; i < REFUSED_MAX && shop_post(shop, shop_new(shop)) == 200; i++) {
    }
    shop_let_go(shop);
    small_disk_make_room(shop->folder);
    struct order *fresh = shop_new(shop);
    while (!room && !has_ended(shop, ASK_AGAIN_MS)) { /* which is tried for every 2 s */
        room = shop_query(shop, &shop->orders[0]) == 200 && shop_post(shop, fresh) == 200;
    }
    for (int i = 0; i < 3 && !has_ended(shop, 0); i++) {
        (void) shop_post(shop, shop_new(shop));
    }
    int exit_code = shop_stop(shop);
    ck_assert_msg(exit_code == 0 || exit_code == -SIGKILL, "nonbisd ended with %d, see %s", exit_code,
                  shop->nonbis.log_path);
    return exit_code == -SIGKILL;
}

/* True: there is such a sync. */
static bool cut_at_sync(struct cuts *cuts, unsigned nth, bool behind, enum power_loss loss, struct suite_random *random)
{
    struct shop shop;
    struct power power;
    char at[32], armed[700];
    int exit_code;
    shop_open(&shop);
    shop.more = keeps;
    ck_assert_ptr_nonnull(small_disk_open_any(shop.folder));
    power_begin(&power, shop.folder, false);
    (void) snprintf(armed, sizeof armed, "%s.armed", shop.folder);
    (void) snprintf(at, sizeof at, "%u%s", nth, behind ? "+" : "");
    (void) unlink(armed);
    setenv(POWER_CUT_FROM, armed, 1);
    setenv(POWER_CUT_AT, at, 1);
    bool met = live(&shop, armed);
    cuts->given_up += daemon_logged(&shop.nonbis, "goes to the outcomes of running commands") ? 1 : 0;
    unsetenv(POWER_CUT_AT);
    unsetenv(POWER_CUT_FROM);
    power_cut(&power, loss, random);
    if (!shop_try(&shop, &exit_code)) {
        cuts->refused++;
        FIGURE("powerloss: cut %s sync %u, %s: the next start is refused with %d, see %s", behind ? "behind" : "before",
               nth, loss == POWER_WORST ? "worst" : "mixed", exit_code, shop.nonbis.log_path);
    } else {
        shop_judge(&shop, 0);
        ck_assert_int_eq(shop_stop(&shop), 0);
    }
    cuts->points += met ? 1 : 0;
    cuts->acked += shop_count_acked(&shop);
    cuts->wrongs.lost += shop.wrongs.lost;
    cuts->wrongs.twice += shop.wrongs.twice;
    cuts->wrongs.forgotten += shop.wrongs.forgotten;
    cuts->wrongs.liar += shop.wrongs.liar;
    power_end();
    small_disk_end(shop.folder);
    shop_close(&shop);
    return met;
}

START_TEST(a_cut_at_any_sync_while_the_disk_is_full_loses_nothing_and_the_next_start_works)
{
    struct cuts cuts = { 0 };
    struct suite_random random;
    unsigned seed = suite_seed();
    suite_random_start(&random, seed);
    if (!small_disk_allowed() || !shop_shim("power")) {
        return;
    }
    /* Before and behind a sync, with the worst and with a mixture. The brief form: one of them, that the seed says, at every so manieth. */
    unsigned ways = faults_size.sync_stride == 1 ? 4 : 1;
    for (unsigned way = seed % 4, done = 0; done < ways; way = (way + 1) % 4, done++) {
        for (unsigned nth = 1 + seed / 4 % faults_size.sync_stride;
             cut_at_sync(&cuts, nth, way % 2 == 1, way / 2 == 0 ? POWER_WORST : POWER_MIXED, &random);
             nth += faults_size.sync_stride) {
        }
    }
    (void) shop_shim(NULL);
    FIGURE("T3 powerloss-full cuts=%u gave-its-reserve-up=%u acked=%u lost=%u double=%u denied=%u forgotten=%u "
           "starts-refused=%u seed=%u",
           cuts.points, cuts.given_up, cuts.acked, cuts.wrongs.lost, cuts.wrongs.twice, cuts.wrongs.liar,
           cuts.wrongs.forgotten, cuts.refused, seed);
    ck_assert_uint_ge(cuts.points, 1);
    ck_assert_uint_eq(cuts.wrongs.lost + cuts.wrongs.twice + cuts.wrongs.forgotten + cuts.wrongs.liar + cuts.refused,
                      0);
}
END_TEST

SUITE(faults_power_full)
{
    Suite *suite = suite_create("faults/power-full");
    CASE_TIMEOUT(suite, a_cut_at_any_sync_while_the_disk_is_full_loses_nothing_and_the_next_start_works, 900);
    return suite;
}
