/* memory_test.c - T5: the n-th allocation of a process gets no memory, for n up to the first that a life does not reach; n grows by chance, by a part of itself
 * in the mean, so that every run meets others. nonbisd
 * succeeds or aborts (server/base/memory.h), its libraries may report an error: it may end, and never lies. The command may fail, and says what it knows. */
#include "tests/proof/faults/life.h"
#include "tests/proof/faults/plan.h"
#include "tests/proof/faults/size.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>

static struct suite_random steps;

static unsigned next_of(unsigned nth)
{
    return nth + 1 + suite_random_below(&steps, 2 * nth * faults_size.memory_percent / 100 + 1);
}

struct late_arm {
    struct plan *plan;
    unsigned nth;
    int lasting;
};

static void arm_now(void *context)
{
    struct late_arm *late = context;
    plan_arm(late->plan, PLAN_MEMORY, late->nth, ENOMEM, late->lasting, 0);
}

/* True: this life had such an allocation. */
static bool starve_at(struct lives *lives, struct plan *plan, bool at_start, int lasting, unsigned nth)
{
    struct late_arm late = { plan, nth, lasting };
    struct shop shop;
    shop_open(&shop);
    if (at_start) {
        arm_now(&late);
    }
    const struct life_way way = { " 1 69 70 73 74 78", false, at_start ? NULL : arm_now, &late };
    life_run(&shop, lives, &way);
    plan_disarm(plan);
    bool met = plan->hits > 0;
    life_judge(&shop, lives, at_start ? "memory at the start" : "memory at work", nth);
    lives->points += met ? 1 : 0;
    shop_close(&shop);
    return met;
}

static const struct starving {
    const char *what;
    bool at_start;
    int lasting;
} starvings[] = {
    { "one, from the start", true, 0 },
    { "all from one on, at work", false, 1 },
    { "all from one on, from the start", true, 1 },
    { "one, at work", false, 0 },
};

START_TEST(nonbisd_without_memory_ends_or_goes_on_and_never_lies)
{
    const struct starving *row = &starvings[_i];
    struct lives lives = { 0 };
    if (!shop_shim("memory")) {
        return;
    }
    struct plan *plan = plan_make();
    unsigned nth = 1, seed = suite_seed();
    suite_random_start(&steps, seed);
    while (starve_at(&lives, plan, row->at_start, row->lasting, nth)) {
        nth = next_of(nth);
    }
    plan_end();
    (void) shop_shim(NULL);
    const struct shop_wrongs *wrongs = &lives.wrongs;
    FIGURE("T5 oomloop points=%u program=nonbisd fault='%s' last=%u acked=%u ended-well=%u start-refused=%u (%s ) "
           "exit-74=%u "
           "aborted=%u segv=%u restart-refused=%u lost=%u double=%u denied=%u forgotten=%u seed=%u",
           lives.points, row->what, nth, lives.acked, lives.ends.well, lives.ends.refused_start, lives.ends.codes,
           lives.ends.store_failed, lives.ends.aborted, lives.ends.other, lives.restarts_refused, wrongs->lost,
           wrongs->twice, wrongs->liar, wrongs->forgotten, seed);
    ck_assert_uint_eq(wrongs->lost + wrongs->twice + wrongs->liar + wrongs->forgotten + wrongs->ghosts, 0);
    ck_assert_uint_eq(lives.ends.other + lives.restarts_refused, 0);
    ck_assert_uint_ge(lives.points, faults_size.memory_percent < 100 ? 50 : 3);
}
END_TEST

/* --- the command --- */

enum {
    LATE_ALLOCATIONS = 150
}; /* of a run that is not disturbed: in these lie the journal, the exchange and the answer */

struct posts {
    unsigned done, unsure, nothing_sent, aborted, other, lies;
};

static void note_lie(struct posts *posts, int exit_code, const struct order *order, const char *output)
{
    posts->lies++;
    FIGURE("nonbis says %d of an order that ran %u times: %s", exit_code, order->executions, output);
}

/* Exit codes as `nonbis help exit-codes` tells them. */
static void note_post(struct posts *posts, int exit_code, const struct order *order, const char *output)
{
    char answer[16];
    (void) snprintf(answer, sizeof answer, "%u", order->ran_as);
    size_t len = strlen(output), answer_len = strlen(answer);
    switch (exit_code) {
    case 0: /* executed, and its answer is in hand */
        posts->done++;
        if (order->executions != 1 || len < answer_len || strcmp(output + len - answer_len, answer) != 0) {
            note_lie(posts, exit_code, order, output);
        }
        break;
    case 11: /* may have been executed */
    case 12:
        posts->unsure++;
        if (strstr(output, "nothing was sent") != NULL) {
            note_lie(posts, exit_code, order, output);
        }
        break;
    case -SIGABRT:
        posts->aborted++;
        break;
    case 2:
    case 10:
    case 14:
    case 15:
    case 70:
    case 73: /* nothing was sent, or nothing was executed */
        posts->nothing_sent++;
        if (order->executions != 0) {
            note_lie(posts, exit_code, order, output);
        }
        break;
    default:
        posts->other++;
        FIGURE("nonbis ended with %d: %s", exit_code, output);
    }
}

static void post_without_memory(struct shop *shop, struct plan *plan, struct posts *posts, int lasting, unsigned nth)
{
    struct order *order = shop_new(shop);
    char url[128], key[32], journal[700], output[8192];
    (void) snprintf(url, sizeof url, "http://%s/orders", shop->nonbis.listen);
    (void) snprintf(key, sizeof key, "order-%u", order->number);
    (void) snprintf(journal, sizeof journal, "%s/journal", shop->folder);
    const char *const post[] = { "post",      url,     "-k",         key,      "-d",       "{\"item\":\"tea\"}",
                                 "--journal", journal, "--deadline", "1500ms", "--jitter", "full",
                                 "-qq",       NULL };
    plan_arm(plan, PLAN_MEMORY, nth, ENOMEM, lasting, 0);
    int exit_code = daemon_run("nonbis", post, output, sizeof output);
    plan_disarm(plan);
    shop_tally(shop);
    note_post(posts, exit_code, order, output);
}

/* So many allocations have gone by undisturbed, of so many. */
static unsigned next_of_command(unsigned nth, unsigned all)
{
    unsigned late = all > LATE_ALLOCATIONS ? all - LATE_ALLOCATIONS : 1, next = next_of(nth);
    if (nth >= late) {
        return nth + faults_size.memory_step;
    }
    return next < late ? next : late;
}

START_TEST(the_command_without_memory_ends_with_what_it_knows_and_resuming_runs_nothing_twice)
{
    struct shop shop;
    struct posts posts = { 0 };
    char journal[700], output[65536];
    if (!shop_shim("memory")) {
        return;
    }
    (void) shop_shim(NULL);
    shop_open(&shop);
    shop_start(&shop);
    (void) shop_shim("memory");
    struct plan *plan = plan_make();
    post_without_memory(&shop, plan, &posts, 0, UINT_MAX);
    unsigned all = plan->count, seed = suite_seed();
    suite_random_start(&steps, seed);
    for (int lasting = 0; lasting < 2; lasting++) {
        for (unsigned nth = 1; nth <= all; nth = next_of_command(nth, all)) {
            post_without_memory(&shop, plan, &posts, lasting, nth);
        }
    }
    plan_end();
    (void) shop_shim(NULL);
    (void) snprintf(journal, sizeof journal, "%s/journal", shop.folder);
    const char *const resume[] = { "resume", "--journal", journal, NULL };
    int exit_code = daemon_run("nonbis", resume, output, sizeof output);
    shop_tally(&shop);
    FIGURE("T5 oomloop points=%u program=nonbis done=%u unsure=%u nothing-sent=%u aborted=%u segv=%u lies=%u "
           "resume-exit=%d "
           "double=%u seed=%u",
           shop.count, posts.done, posts.unsure, posts.nothing_sent, posts.aborted, posts.other, posts.lies, exit_code,
           shop.wrongs.twice, seed);
    ck_assert_uint_eq(posts.lies + posts.other + shop.wrongs.twice, 0);
    ck_assert_uint_ge(posts.done, 1);
    ck_assert_int_eq(shop_stop(&shop), 0);
    shop_close(&shop);
}
END_TEST

SUITE(faults_memory)
{
    Suite *suite = suite_create("faults/memory");
    suite_add_case(suite, nonbisd_without_memory_ends_or_goes_on_and_never_lies,
                   "nonbisd_without_memory_ends_or_goes_on_and_never_lies", 0, (int) faults_size.starvings, 300);
    CASE_TIMEOUT(suite, the_command_without_memory_ends_with_what_it_knows_and_resuming_runs_nothing_twice, 300);
    return suite;
}
