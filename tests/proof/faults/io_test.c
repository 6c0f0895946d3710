/* io_test.c - T4: the n-th sync or write of the store's files fails, for n from 1 (the brief form: every so manieth, from one that the seed says) until a life of nonbisd meets no such one (life.h; docs/contract.md
 * 11.3 to 11.5, 6.17). A process ends well, or refuses to start, or ends with 74; no answer of it is taken back by what the next start finds. */
#include "tests/proof/faults/life.h"
#include "tests/proof/faults/plan.h"
#include "tests/proof/faults/size.h"

#include <errno.h>

static const struct io_mode {
    const char *what;
    enum plan_operation operation;
    int code, lasting, half, killed;
} io_modes[] = {
    { "EIO of one sync, then kill -9", PLAN_SYNC, EIO, 0, 0, 1 },
    { "EIO of every write from one on", PLAN_WRITE, EIO, 1, 0, 0 },
    { "ENOSPC of one write", PLAN_WRITE, ENOSPC, 0, 0, 0 },
    { "EIO of one sync", PLAN_SYNC, EIO, 0, 0, 0 },
    { "EIO of every sync from one on", PLAN_SYNC, EIO, 1, 0, 0 },
    { "EIO of one write, then kill -9", PLAN_WRITE, EIO, 0, 0, 1 },
    { "EIO of one write", PLAN_WRITE, EIO, 0, 0, 0 },
    { "a short write and ENOSPC from there on", PLAN_WRITE, ENOSPC, 1, 1, 0 },
    { "a short write and ENOSPC from there on, then kill -9", PLAN_WRITE, ENOSPC, 1, 1, 1 },
    { "one short write", PLAN_WRITE, ENOSPC, 0, 1, 0 },
    { "a short write and EIO from there on", PLAN_WRITE, EIO, 1, 1, 0 },
};

/* True: this life had such a step. */
static bool fail_at(struct lives *lives, struct plan *plan, const struct io_mode *mode, unsigned nth)
{
    struct shop shop;
    shop_open(&shop);
    plan_store(shop.folder);
    plan_arm(plan, mode->operation, nth, mode->code, mode->lasting, mode->half);
    const struct life_way way = { .refusals = " 73 74", .killed = mode->killed != 0 };
    life_run(&shop, lives, &way);
    plan_disarm(plan);
    bool met = plan->hits > 0;
    life_judge(&shop, lives, mode->what, nth);
    lives->points += met ? 1 : 0;
    shop_close(&shop);
    return met;
}

START_TEST(an_error_at_any_sync_or_write_in_the_life_of_a_process_leaves_no_lie)
{
    const struct io_mode *mode = &io_modes[_i];
    struct lives lives = { 0 };
    if (!shop_shim("io")) {
        return;
    }
    struct plan *plan = plan_make();
    unsigned seed = suite_seed();
    for (unsigned nth = 1 + seed % faults_size.io_stride; fail_at(&lives, plan, mode, nth);
         nth += faults_size.io_stride) {
    }
    plan_end();
    (void) shop_shim(NULL);
    const struct shop_wrongs *wrongs = &lives.wrongs;
    FIGURE("T4 ioloop points=%u fault='%s' acked=%u ended-well=%u killed=%u start-refused=%u (%s ) exit-74=%u other=%u "
           "restart-refused=%u lost=%u double=%u denied=%u forgotten=%u ghost_reported_absent=%u seed=%u",
           lives.points, mode->what, lives.acked, lives.ends.well, lives.killed, lives.ends.refused_start,
           lives.ends.codes, lives.ends.store_failed, lives.ends.aborted + lives.ends.other, lives.restarts_refused,
           wrongs->lost, wrongs->twice, wrongs->liar, wrongs->forgotten, wrongs->ghosts, seed);
    ck_assert_uint_eq(wrongs->lost + wrongs->twice + wrongs->liar + wrongs->forgotten + wrongs->ghosts, 0);
    ck_assert_uint_eq(lives.ends.aborted + lives.ends.other + lives.restarts_refused, 0);
    ck_assert_uint_ge(lives.points, faults_size.io_stride == 1 ? 18 : 1);
}
END_TEST

SUITE(faults_io)
{
    Suite *suite = suite_create("faults/io");
    suite_add_case(suite, an_error_at_any_sync_or_write_in_the_life_of_a_process_leaves_no_lie,
                   "an_error_at_any_sync_or_write_in_the_life_of_a_process_leaves_no_lie", 0,
                   (int) faults_size.io_modes, 600);
    return suite;
}
