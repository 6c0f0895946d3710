/* terminal_test.c - on a terminal a wait counts down, and Enter ends it, but never earlier than the server asked. */
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

SCENE_ANSWER(busy, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
/* Released by the test, which looks at its clock before. */
static const struct peer_step later[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_WAIT, NULL, 0 },
                                          { PEER_SEND,
                                            "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy", 0 },
                                          PEER_END };

enum { SHOWN_BYTES = 65536, DEADLINE_MS = 20000 };

struct screen {
    int master, slave;
    char shown[SHOWN_BYTES];
    size_t len;
};

static void screen_open(struct screen *screen)
{
    *screen = (struct screen){ .master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };
    ck_assert_int_ge(screen->master, 0);
    ck_assert_int_eq(grantpt(screen->master), 0);
    ck_assert_int_eq(unlockpt(screen->master), 0);
    screen->slave = open(ptsname(screen->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(screen->slave, 0);
}

static void screen_close(struct screen *screen)
{
    close(screen->master);
    close(screen->slave);
}

/* Until the text was shown. */
static bool screen_wait(struct screen *screen, const char *text)
{
    while (strstr(screen->shown, text) == NULL) {
        struct pollfd one = { .fd = screen->master, .events = POLLIN };
        if (poll(&one, 1, DEADLINE_MS) <= 0 || screen->len == SHOWN_BYTES - 1) {
            return false;
        }
        ssize_t got = read(screen->master, screen->shown + screen->len, SHOWN_BYTES - 1 - screen->len);
        if (got <= 0) {
            return false;
        }
        screen->len += (size_t) got;
        screen->shown[screen->len] = '\0';
    }
    return true;
}

/* Longer than a test may take: only Enter ends it. */
#define PATIENCE "--base-delay", "1h", "--max-delay", "1h", "--jitter", "equal", "--deadline", "5h", "--server", "keyed"

START_TEST(a_wait_counts_down_and_enter_ends_it)
{
    struct screen screen;
    struct peer *peer = peer_new();
    struct program run;
    screen_open(&screen);
    peer_script_for_request(peer, 1, busy);
    const struct program_start start = { .terminal_fd = screen.slave };
    program_begin(&run, &start, (const char *[]){ "post", peer_url(peer), "-k", "k", PATIENCE, NULL });
    ck_assert_msg(screen_wait(&screen, "s, Enter = now"), "%s", screen.shown);
    program_expect_words("countdown", screen.shown, "nonbis: key k|attempt 1/4: answered 503|attempt 2/4 in ");
    ck_assert_ptr_null(strstr(screen.shown, "server asked"));
    ck_assert_int_eq(write(screen.master, "\n", 1), 1);
    program_end(&run);
    PROGRAM_EXPECT(run, "Enter", 0);
    ck_assert_str_eq(run.out, "ok");
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    program_free(&run);
    screen_close(&screen);
    peer_free(peer);
}
END_TEST

START_TEST(enter_never_comes_before_what_the_server_asked_for)
{
    struct screen screen;
    struct peer *peer = peer_new();
    struct program run;
    screen_open(&screen);
    peer_script_for_request(peer, 1, later);
    const struct program_start start = { .terminal_fd = screen.slave };
    program_begin(&run, &start, (const char *[]){ "post", peer_url(peer), "-k", "k", PATIENCE, NULL });
    ck_assert(peer_wait_stalled(peer, 1));
    int64_t asked = suite_now_ms();
    peer_release(peer, 1);
    ck_assert_msg(screen_wait(&screen, "(server asked 1s), Enter = now"), "%s", screen.shown);
    ck_assert_int_eq(write(screen.master, "\n", 1), 1);
    ck_assert(peer_wait_requests(peer, 2));
    int64_t waited = suite_now_ms() - asked;
    program_end(&run);
    PROGRAM_EXPECT(run, "Enter", 0);
    ck_assert_msg(waited >= 1000, "sent again after %lld ms, and the server asked for 1000", (long long) waited);
    FIGURE("Enter under Retry-After: 1 sent again after %lld ms", (long long) waited);
    program_free(&run);
    screen_close(&screen);
    peer_free(peer);
}
END_TEST

START_TEST(without_progress_there_are_lines_on_a_terminal_too)
{
    struct screen screen;
    struct peer *peer = peer_new();
    struct program run;
    screen_open(&screen);
    peer_script_for_request(peer, 1, busy);
    const struct program_start start = { .terminal_fd = screen.slave };
    program_begin(&run, &start,
                  (const char *[]){ "post", peer_url(peer), "--server", "keyed", "--base-delay", "5ms", "--jitter",
                                    "equal", "--no-progress", NULL });
    program_end(&run);
    PROGRAM_EXPECT(run, "--no-progress", 0);
    ck_assert(screen_wait(&screen, "attempt 1/4: answered 503; attempt 2/4 in "));
    ck_assert_ptr_null(strstr(screen.shown, "\033"));
    program_free(&run);
    screen_close(&screen);
    peer_free(peer);
}
END_TEST

START_TEST(ctrl_c_on_a_terminal_stops)
{
    struct screen screen;
    struct peer *peer = peer_new();
    struct program run;
    screen_open(&screen);
    peer_refuse(peer);
    const struct program_start start = { .terminal_fd = screen.slave };
    program_begin(&run, &start, (const char *[]){ "post", peer_url(peer), "-k", "k", PATIENCE, NULL });
    ck_assert_msg(screen_wait(&screen, "Enter = now"), "%s", screen.shown);
    ck_assert_int_eq(write(screen.master, "\003", 1), 1);
    program_end(&run);
    PROGRAM_EXPECT(run, "Ctrl-C", 130);
    ck_assert(screen_wait(&screen, "nothing was sent"));
    program_free(&run);
    screen_close(&screen);
    peer_free(peer);
}
END_TEST

SUITE(terminal)
{
    Suite *suite = suite_create("cli/terminal");
    CASE(suite, a_wait_counts_down_and_enter_ends_it);
    CASE(suite, enter_never_comes_before_what_the_server_asked_for);
    CASE(suite, without_progress_there_are_lines_on_a_terminal_too);
    CASE(suite, ctrl_c_on_a_terminal_stops);
    return suite;
}
