/* life.c - see life.h. */
#include "tests/proof/faults/life.h"

#include <signal.h>

enum {
    LIFE_ORDERS = 4,
    EXIT_STORE = 74, /* docs/contract.md 11.4 */
};

static bool is_listed(const char *codes, int code)
{
    char text[16];
    (void) snprintf(text, sizeof text, " %d", code);
    return strstr(codes, text) != NULL;
}

static void note_end(struct life_ends *ends, int exit_code, bool started, const char *refusals, const struct shop *shop)
{
    if (exit_code == 0) {
        ends->well++;
    } else if (exit_code == -SIGABRT) {
        ends->aborted++;
    } else if (started && exit_code == EXIT_STORE) {
        ends->store_failed++;
    } else if (!started && is_listed(refusals, exit_code)) {
        ends->refused_start++;
        if (!is_listed(ends->codes, exit_code)) {
            size_t len = strlen(ends->codes);
            (void) snprintf(ends->codes + len, sizeof ends->codes - len, " %d", exit_code);
        }
    } else {
        ends->other++;
        FIGURE("nonbisd ended with %d %s, see %s", exit_code, started ? "at work" : "at its start",
               shop->nonbis.log_path);
    }
}

/* New, and repeated at once. What is not answered is asked for: an answer may be missing, but one that is told must be true. False: to be killed now. */
static bool place(struct shop *shop, bool killed)
{
    struct order *order = shop_new(shop);
    for (int i = 0; i < 2; i++) {
        if (shop_post(shop, order) != 200) {
            (void) shop_query(shop, order);
            if (killed) {
                return false;
            }
        }
    }
    return true;
}

void life_run(struct shop *shop, struct lives *lives, const struct life_way *way)
{
    /* An outcome that cannot be stored is waited for in a drain. */
    static const char *const hurried[] = { "--set", "drain_timeout=200ms", NULL };
    int exit_code = 0;
    shop->more = hurried;
    bool served = shop_try(shop, &exit_code), goes_on = served;
    if (served && way->started != NULL) {
        way->started(way->context);
    }
    for (unsigned n = 0; n < LIFE_ORDERS && goes_on; n++) {
        goes_on = place(shop, way->killed);
    }
    if (served && !goes_on) {
        shop_kill(shop);
        lives->killed++;
        return;
    }
    if (served) {
        (void) shop_query(shop, &shop->orders[0]);
        /* One whose store has failed ends by itself; a signal that meets it behind its loops ends it by the signal. */
        bool ending = daemon_logged(&shop->nonbis, "exits 74");
        exit_code = ending ? daemon_wait(&shop->nonbis) : shop_stop(shop);
        shop->running = false;
    }
    note_end(&lives->ends, exit_code, served, way->refusals, shop);
}

void life_judge(struct shop *shop, struct lives *lives, const char *what, unsigned nth)
{
    int exit_code;
    if (!shop_try(shop, &exit_code)) {
        lives->restarts_refused++;
        FIGURE("%s at %u: the next start is refused with %d, see %s", what, nth, exit_code, shop->nonbis.log_path);
        return;
    }
    shop_judge(shop, 0);
    ck_assert_int_eq(shop_stop(shop), 0);
    struct shop_wrongs *all = &lives->wrongs, *one = &shop->wrongs;
    if (one->lost + one->twice + one->liar + one->forgotten + one->ghosts > 0) {
        FIGURE("%s at %u: lost %u, twice %u, denied %u, forgotten %u, ghosts told absent %u; see %s", what, nth,
               one->lost, one->twice, one->liar, one->forgotten, one->ghosts, shop->nonbis.log_path);
    }
    all->lost += one->lost;
    all->twice += one->twice;
    all->liar += one->liar;
    all->forgotten += one->forgotten;
    all->ghosts += one->ghosts;
    lives->acked += shop_count_acked(shop);
}
