/* limits_test.c - T13 and T14: too few descriptors and too little memory for those who come. Clients may have to wait or be turned away; nothing runs twice,
 * nothing that was answered is lost, and afterwards all is as before. */
#include "tests/proof/faults/memory_cap.h"
#include "tests/proof/faults/shop.h"
#include "tests/proof/faults/size.h"
#include "tests/support/process_memory.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- descriptors --- */

enum { DESCRIPTORS = 64, LOOKS_MS = 20000 };

/* The limit is for descriptors to come; few of it are open at the start. */
static void start_with_few(struct shop *shop)
{
    const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };
    shop_start(shop);
    ck_assert_int_eq(prlimit(shop->nonbis.pid, RLIMIT_NOFILE, &few, NULL), 0);
}

/* Connections that say nothing take every descriptor, so that the fault is met however slowly the crowd comes; then they leave. */
static void take_all(struct shop *shop)
{
    int fds[DESCRIPTORS + 16];
    for (int i = 0; i < DESCRIPTORS + 16; i++) {
        fds[i] = http_connect(shop->nonbis.listen); /* over the limit they wait in the kernel's queue */
        ck_assert_int_ge(fds[i], 0);
    }
    ck_assert(daemon_wait_logged(&shop->nonbis, "cannot take connections"));
    for (int i = 0; i < DESCRIPTORS + 16; i++) {
        close(fds[i]);
    }
}

START_TEST(with_64_descriptors_a_crowd_waits_or_is_turned_away_and_nothing_leaks_or_runs_twice)
{
    struct shop shop;
    shop_open(&shop);
    start_with_few(&shop);
    unsigned before = process_descriptors(shop.nonbis.pid);
    take_all(&shop);
    for (unsigned round = 0; round < 2; round++) {
        shop_crowd(&shop, faults_size.crowd);
    }
    unsigned answered = shop_count_acked(&shop), starved = 0, after = 0;
    starved = (unsigned) daemon_count_logged(&shop.nonbis, "cannot take connections");
    shop_judge(&shop, 0); /* whoever got no answer comes again */
    /* Until it has seen who has left, and has closed what it kept to the handler; that goes by time, and not by how many look. */
    int64_t until_ms = suite_now_ms() + (int64_t) LOOKS_MS * suite_slowness();
    do {
        (void) shop_query(&shop, &shop.orders[0]);
        after = process_descriptors(shop.nonbis.pid);
    } while (after > before && suite_now_ms() < until_ms);
    unsigned denied = 0;
    for (unsigned i = 0; i < shop.count; i++) {
        denied += shop.orders[i].denied;
    }
    FIGURE(
        "T13 fds limit=%d clients=%u answered-at-once=%u turned-away=%u accept_err=%u leaked=%d recovered=%d lost=%u "
        "double=%u denied-and-ran=%u forgotten=%u",
        DESCRIPTORS, shop.count, answered, denied, starved, after <= before ? 0 : (int) (after - before),
        shop_count_acked(&shop) == shop.count, shop.wrongs.lost, shop.wrongs.twice, shop.wrongs.liar,
        shop.wrongs.forgotten);
    ck_assert_uint_ge(starved, 1);
    ck_assert_uint_le(after, before);
    ck_assert_uint_eq(shop_count_acked(&shop) + shop_count_unknown(&shop), shop.count);
    shop_expect_right(&shop);
    ck_assert_int_eq(shop_stop(&shop), 0);
    shop_close(&shop);
}
END_TEST

/* --- memory --- */

enum { CAP_MB = 64, BODY = 250 * 1024, TOO_LARGE = 400 * 1024, ROUNDS = 3 };

static char *make_body(size_t len)
{
    char *body = malloc(len + 1);
    memset(body, 'x', len);
    body[len] = '\0';
    return body;
}

/* An answer of 2 MB, which is passed on and not kept. */
static const struct peer_step large[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n", 0 },
                                          { PEER_SEND, "0123456789", 200000 },
                                          PEER_END };

START_TEST(within_a_cap_of_64_mb_bounded_settings_take_large_bodies_and_nothing_is_killed)
{
    static const char *const bounded[] = { "--set", "body_max=256KiB",     "--set", "response_keep_max=256KiB",
                                           "--set", "connections_max=100", "--set", "running_max=32",
                                           NULL };
    struct shop shop;
    struct memory_cap cap;
    char *body = make_body(BODY), *too_large = make_body(TOO_LARGE);
    unsigned refused = 0, streamed = 0;
    if (!memory_cap_allowed()) {
        free(body);
        free(too_large);
        return;
    }
    shop_open(&shop);
    shop.more = bounded;
    shop.body = body;
    shop_start(&shop);
    if (!memory_cap_make(&cap, shop.nonbis.pid, CAP_MB)) {
        daemon_kill(&shop.nonbis);
        return;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        shop_crowd(&shop, faults_size.bodies);
        struct http_answer answer = http_post(shop.nonbis.listen, "/orders", "too-large", too_large);
        refused += answer.status == 413 ? 1 : 0;
        http_answer_free(&answer);
    }
    shop_judge(&shop, 0);
    peer_script_default(shop.peer, large);
    unsigned first = shop.count;
    shop_crowd(&shop, faults_size.bodies / 4);
    for (unsigned i = first; i < shop.count; i++) {
        streamed += shop.orders[i].acked ? 1 : 0;
    }
    shop_tally(&shop);
    long peak_kb = process_memory_peak_kb(shop.nonbis.pid);
    ck_assert_int_eq(shop_stop(&shop), 0);
    FIGURE("T14 mem cap=%dMB by=%s oom_kill=%u bodies=%u of %d bytes acked=%u 413=%u streamed=%u of %u rss_max=%ldkB "
           "lost=%u double=%u denied-and-ran=%u",
           CAP_MB, cap.kind, memory_cap_kills(&cap), shop.count, BODY, shop_count_acked(&shop), refused, streamed,
           shop.count - first, peak_kb, shop.wrongs.lost, shop.wrongs.twice, shop.wrongs.liar);
    ck_assert_uint_eq(memory_cap_kills(&cap), 0);
    ck_assert_uint_eq(refused, ROUNDS);
    ck_assert_uint_eq(streamed, shop.count - first); /* fewer at once than may run: none is refused */
    shop_expect_right(&shop);
    memory_cap_end(&cap);
    shop_close(&shop);
    free(body);
    free(too_large);
}
END_TEST

/* Settings that allow more than the machine has: it ends, and lies to nobody. */
START_TEST(a_process_that_outgrows_its_memory_ends_and_the_next_start_tells_the_truth)
{
    static const char *const generous[] = { "--set", "body_max=1MiB", NULL };
    struct shop shop;
    char *body = make_body((size_t) 1000 * 1000);
    unsigned ended = 0;
    int exit_code = 0;
    if (!memory_cap_allowed()) {
        free(body);
        return;
    }
    shop_open(&shop);
    shop.more = generous;
    shop.body = body;
    for (unsigned round = 0; round < 2; round++) {
        shop_start(&shop);
        ck_assert_int_eq(shop_post(&shop, shop_new(&shop)), 200);
        shop_hold(&shop, 4);
        memory_cap_address_space(shop.nonbis.pid, 6);
        shop_crowd(&shop, faults_size.bodies / 2);
        shop_let_go(&shop);
        /* It is over already, or was not met and is stopped. */
        exit_code = shop_stop(&shop);
        ended += exit_code != 0 ? 1 : 0;
        ck_assert_msg(exit_code == 0 || exit_code == -SIGABRT, "nonbisd ended with %d, see %s", exit_code,
                      shop.nonbis.log_path);
        shop_start(&shop);
        shop_judge(&shop, 0);
        ck_assert_int_eq(shop_stop(&shop), 0);
    }
    FIGURE("T14 mem outgrown aborted=%u of 2 acked=%u unknown=%u lost=%u double=%u denied-and-ran=%u forgotten=%u",
           ended, shop_count_acked(&shop), shop_count_unknown(&shop), shop.wrongs.lost, shop.wrongs.twice,
           shop.wrongs.liar, shop.wrongs.forgotten);
    ck_assert_uint_ge(ended, 1);
    shop_expect_right(&shop);
    shop_close(&shop);
    free(body);
}
END_TEST

SUITE(faults_limits)
{
    Suite *suite = suite_create("faults/limits");
    CASE_TIMEOUT(suite, with_64_descriptors_a_crowd_waits_or_is_turned_away_and_nothing_leaks_or_runs_twice, 200);
    CASE_TIMEOUT(suite, within_a_cap_of_64_mb_bounded_settings_take_large_bodies_and_nothing_is_killed, 200);
    CASE_TIMEOUT(suite, a_process_that_outgrows_its_memory_ends_and_the_next_start_tells_the_truth, 200);
    return suite;
}
