/* loop_test.c - what a watch reports of the other end of a socket, and whose turn it is when timers want to go on at once (server/base/loop.h). */
#include "server/base/loop.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A TCP connection: the near end is watched, the far end is the test's. */
static void connection_make(int *near, int *far)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    *far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(*far, (struct sockaddr *) &address, len), 0);
    *near = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(*near, 0);
    (void) close(listener);
}

static int calls, reported;

static void note(void *context, int events)
{
    (void) context;
    calls++;
    reported = events;
}

enum deed { NOTHING, BYTES, HALF_CLOSE, CLOSE, RESET };

static const struct watch_row {
    const char *what;
    int watched;
    enum deed first, second;
    int reported;
    bool pauses;
} watch_rows[] = {
    { "nothing happens", LOOP_HANGUP, NOTHING, NOTHING, 0, false },
    { "bytes are no end", LOOP_HANGUP, BYTES, NOTHING, 0, false },
    { "bytes are bytes", LOOP_READABLE | LOOP_HANGUP, BYTES, NOTHING, LOOP_READABLE, false },
    { "half closed", LOOP_HANGUP, HALF_CLOSE, NOTHING, LOOP_HANGUP, false },
    { "half closed behind unread bytes", LOOP_HANGUP, BYTES, HALF_CLOSE, LOOP_HANGUP, false },
    { "closed", LOOP_HANGUP, CLOSE, NOTHING, LOOP_HANGUP, false },
    { "closed behind unread bytes", LOOP_HANGUP, BYTES, CLOSE, LOOP_HANGUP, false },
    { "closed, and readable is asked for", LOOP_READABLE | LOOP_HANGUP, CLOSE, NOTHING, LOOP_READABLE | LOOP_HANGUP,
      false },
    { "closed, and only readable is asked for", LOOP_READABLE, CLOSE, NOTHING, LOOP_READABLE, false },
    { "reset", LOOP_HANGUP, RESET, NOTHING, LOOP_READABLE | LOOP_WRITABLE | LOOP_HANGUP, true },
    { "reset behind unread bytes", LOOP_HANGUP, BYTES, RESET, LOOP_READABLE | LOOP_WRITABLE | LOOP_HANGUP, true },
    { "reset, and only readable is asked for", LOOP_READABLE, RESET, NOTHING, LOOP_READABLE | LOOP_WRITABLE, true },
};

static void do_deed(int far, enum deed deed)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    switch (deed) {
    case NOTHING:
        return;
    case BYTES:
        ck_assert_int_eq(send(far, "x", 1, MSG_NOSIGNAL), 1);
        return;
    case HALF_CLOSE:
        ck_assert_int_eq(shutdown(far, SHUT_WR), 0);
        return;
    case RESET:
        ck_assert_int_eq(setsockopt(far, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
        (void) close(far);
        return;
    case CLOSE:
        (void) close(far);
    }
}

/* What was done at the far end has arrived at the near one: the kernel may take its time, also on one machine. */
static void expect_arrived(int near, enum deed deed)
{
    static const short told[] = { [BYTES] = POLLIN, [HALF_CLOSE] = POLLRDHUP, [CLOSE] = POLLRDHUP, [RESET] = POLLERR };
    struct pollfd arrival = { .fd = near, .events = told[deed] };
    if (deed != NOTHING) {
        ck_assert_int_eq(poll(&arrival, 1, -1), 1); /* the case's time limit is the guard */
        ck_assert_int_ne(arrival.revents & told[deed], 0);
    }
}

START_TEST(a_watch_tells_of_the_end_that_it_was_asked_for)
{
    const struct watch_row *row = &watch_rows[_i];
    struct loop *loop = loop_new();
    int near, far;
    connection_make(&near, &far);
    struct loop_watch *watch = loop_watch_new(loop, near, note, NULL);
    loop_watch_set(watch, row->watched);
    do_deed(far, row->first);
    expect_arrived(near, row->first);
    do_deed(far, row->second);
    expect_arrived(near, row->second);
    for (int turn = 0; turn < 3; turn++) {
        (void) loop_run_once(loop, false);
    }
    ck_assert_msg(reported == row->reported, "%s: reported %d", row->what, reported);
    ck_assert_msg(calls == (row->reported == 0 ? 0 : row->pauses ? 1 : 3), "%s: told %d times", row->what, calls);
    calls = 0;
    loop_watch_set(watch, 0);
    (void) loop_run_once(loop, false);
    ck_assert_int_eq(calls, 0);
    loop_watch_close(watch);
    loop_free(loop);
    (void) close(near);
    if (row->first != CLOSE && row->first != RESET && row->second != CLOSE && row->second != RESET) {
        (void) close(far);
    }
}
END_TEST

/* --- timers that go on at once --- */

enum { AT_ONCE_MAX = 1000 };

static struct loop_timer at_once[3], far_off[AT_ONCE_MAX];
static unsigned fired[3];

static void fire_again(void *context)
{
    struct loop_timer *timer = context;
    if (++fired[timer - at_once] < AT_ONCE_MAX) {
        loop_timer_start(timer, 0);
    }
}

static void fire_late(void *context)
{
    (void) context;
    ck_abort_msg("an hour is over");
}

/* Index: how many other timers wait meanwhile. libuv would call such a timer again and again within a turn (docs/facts.md 71). */
static const size_t others[] = { 0, 1, AT_ONCE_MAX };

START_TEST(timers_that_start_again_with_0_ms_leave_each_turn_to_everybody_else)
{
    struct loop *loop = loop_new();
    int near, far;
    connection_make(&near, &far);
    struct loop_watch *watch = loop_watch_new(loop, near, note, NULL);
    loop_watch_set(watch, LOOP_READABLE);
    do_deed(far, BYTES);
    expect_arrived(near, BYTES);
    for (size_t i = 0; i < others[_i]; i++) {
        loop_timer_init(&far_off[i], loop, fire_late, NULL);
        loop_timer_start(&far_off[i], 3600 * 1000);
    }
    for (size_t i = 0; i < 3; i++) {
        loop_timer_init(&at_once[i], loop, fire_again, &at_once[i]);
        loop_timer_start(&at_once[i], 0);
    }
    (void) loop_run_once(loop, false);
    ck_assert_int_eq(calls, 1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(fired[i], 1);
    }
    while (fired[0] < AT_ONCE_MAX || fired[1] < AT_ONCE_MAX || fired[2] < AT_ONCE_MAX) {
        (void) loop_run_once(loop, false);
    }
    ck_assert_int_eq(calls, AT_ONCE_MAX);
    for (size_t i = 0; i < others[_i]; i++) {
        loop_timer_stop(&far_off[i]);
    }
    loop_watch_close(watch);
    loop_free(loop);
    (void) close(near);
    (void) close(far);
}
END_TEST

SUITE(base_loop)
{
    Suite *suite = suite_create("base/loop");
    CASE_LOOP(suite, a_watch_tells_of_the_end_that_it_was_asked_for, sizeof watch_rows / sizeof watch_rows[0]);
    CASE_LOOP(suite, timers_that_start_again_with_0_ms_leave_each_turn_to_everybody_else,
              sizeof others / sizeof others[0]);
    return suite;
}
