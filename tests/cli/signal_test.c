/* signal_test.c - INT and TERM end a run at once; what is told then depends on whether anything was sent. */
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <signal.h>

static const struct peer_step hang[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };
SCENE_ANSWER(later, "HTTP/1.1 429 Slow\r\nRetry-After: 20\r\nContent-Length: 4\r\n\r\nslow");

static void end_by(struct program *run, int number, const char *name, int code)
{
    int64_t began_ms = suite_now_ms();
    kill(run->pid, number);
    program_end(run);
    FIGURE("%s: ended %lld ms after the signal", name, (long long) (suite_now_ms() - began_ms));
    PROGRAM_EXPECT(*run, name, code);
}

/* Waits for longer than any test may: only the signal ends it. */
#define PATIENCE "--base-delay", "1h", "--max-delay", "1h", "--jitter", "equal", "--deadline", "5h"

static void wait_before_sending(int number, int code)
{
    struct peer *peer = peer_new();
    struct program run;
    peer_refuse(peer);
    program_begin(&run, NULL, (const char *[]){ "post", peer_url(peer), "-k", "k", PATIENCE, NULL });
    ck_assert(program_wait_err(&run, "attempt 2/4 in "));
    end_by(&run, number, "in a wait, nothing sent", code);
    program_expect_words("message", run.err, "nothing was sent|cancelled");
    program_free(&run);
    peer_free(peer);
}

START_TEST(a_signal_in_a_wait_before_anything_was_sent_is_its_own_code)
{
    wait_before_sending(SIGINT, 130);
    wait_before_sending(SIGTERM, 143);
}
END_TEST

START_TEST(a_signal_in_a_transfer_leaves_the_outcome_unknown)
{
    static const int signals[] = { SIGINT, SIGTERM };
    for (size_t i = 0; i < 2; i++) {
        struct peer *peer = peer_new();
        struct program run;
        peer_script_default(peer, hang);
        program_begin(&run, NULL,
                      (const char *[]){ "post", peer_url(peer), "-k", "k", "-d", "x", "--attempt-timeout", "1h",
                                        "--deadline", "5h", NULL });
        ck_assert(peer_wait_whole(peer, 1));
        end_by(&run, signals[i], "in a transfer", 11);
        program_expect_words("message", run.err, "it may have been executed|cancelled|nonbis resume 'k'");
        ck_assert_str_eq(run.out, "");
        ck_assert_uint_eq(peer_count_requests(peer), 1);
        program_free(&run);
        struct program list = program_run((const char *[]){ "journal", "ls", "--undecided", NULL });
        program_expect_words("journal", list.out, "sent |unknown| k POST http");
        program_free(&list);
        struct program prune =
            program_run((const char *[]){ "journal", "prune", "--undecided", "--older-than", "0ms", NULL });
        PROGRAM_EXPECT(prune, "prune", 0);
        program_free(&prune);
        peer_free(peer);
    }
}
END_TEST

START_TEST(a_signal_in_a_wait_after_a_refusal_says_not_executed)
{
    struct peer *peer = peer_new();
    struct program run;
    peer_script_default(peer, later);
    program_begin(&run, NULL, (const char *[]){ "post", peer_url(peer), "-k", "k", PATIENCE, NULL });
    ck_assert(program_wait_err(&run, "(server asked 20s)"));
    end_by(&run, SIGINT, "in a wait after 429", 15);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(a_hangup_loses_nothing)
{
    struct peer *peer = peer_new();
    struct program run;
    peer_script_for_request(peer, 1, hang);
    program_begin(&run, NULL,
                  (const char *[]){ "post", peer_url(peer), "-k", "k", "-d", "x", "--attempt-timeout", "1h",
                                    "--deadline", "5h", "--server", "keyed", NULL });
    ck_assert(peer_wait_whole(peer, 1));
    end_by(&run, SIGHUP, "hangup", -SIGHUP);
    program_free(&run);
    struct program resumed = program_run((const char *[]){ "resume", "--server", "keyed", NULL });
    PROGRAM_EXPECT(resumed, "resume", 0);
    ck_assert_str_eq(scene_body(peer, 2), "x");
    ck_assert_uint_eq(peer_count_key(peer, "k"), 2);
    program_free(&resumed);
    peer_free(peer);
}
END_TEST

SUITE(signal)
{
    Suite *suite = suite_create("cli/signal");
    CASE(suite, a_signal_in_a_wait_before_anything_was_sent_is_its_own_code);
    CASE(suite, a_signal_in_a_transfer_leaves_the_outcome_unknown);
    CASE(suite, a_signal_in_a_wait_after_a_refusal_says_not_executed);
    CASE(suite, a_hangup_loses_nothing);
    return suite;
}
