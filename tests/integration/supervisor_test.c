/* supervisor_test.c - what a supervisor is told on the socket that NOTIFY_SOCKET names (server/base/supervisor.h): ready when the ports are open, and at
 * the end for how long it may go on. Without a socket, and with one that nobody reads, the server works the same. */
#include "tests/support/rig.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct rig rig;

/* A socket of that name (a file, or @ and a name that is none). */
static int supervisor_open(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    ck_assert_uint_lt(len, sizeof address.sun_path);
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    socklen_t room = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    ck_assert_int_eq(bind(fd, (struct sockaddr *) &address, room), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void supervisor_hears(int fd, const char *wanted)
{
    char said[256];
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    ck_assert_int_eq(poll(&readable, 1, 20000), 1);
    ssize_t len = recv(fd, said, sizeof said - 1, 0);
    ck_assert_int_ge(len, 0);
    said[len] = '\0';
    ck_assert_str_eq(said, wanted);
}

static bool supervisor_hears_nothing(int fd)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    return poll(&readable, 1, 0) == 0;
}

START_TEST(a_supervisor_is_told_when_the_ports_are_open_and_how_long_the_end_may_take)
{
    static const char *const more[] = { "--set", "drain_timeout=7s", NULL };
    char name[64], folder[32] = "/tmp/nonbis-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder)); /* short enough for a socket's name */
    (void) snprintf(name, sizeof name, _i == 0 ? "%s/socket" : "@%s", folder);
    int fd = supervisor_open(name);
    rig_start(&rig, more);
    supervisor_hears(fd, "READY=1");
    struct http_answer answer = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(answer, 200, "executed");
    http_answer_free(&answer);
    ck_assert(supervisor_hears_nothing(fd));
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    supervisor_hears(fd, "STOPPING=1\nEXTEND_TIMEOUT_USEC=27000000");
    ck_assert(supervisor_hears_nothing(fd));
    (void) close(fd);
    (void) unlink(name);
    (void) rmdir(folder);
    peer_free(rig.peer);
}
END_TEST

START_TEST(a_start_that_is_refused_says_nothing_to_the_supervisor)
{
    char name[64];
    int exit_code = 0;
    struct daemon refused;
    (void) snprintf(name, sizeof name, "@nonbis-test-%ld", (long) getpid());
    int fd = supervisor_open(name);
    static const char *const arguments[] = {
        "--upstream", "http://127.0.0.1:9",     "--listen", "127.0.0.1:0", "--admin", "off",
        "--store",    "/nonexistent/nonbis.db", NULL
    };
    ck_assert(!daemon_try(&refused, "nonbisd", arguments, &exit_code));
    ck_assert_int_eq(exit_code, 73);
    ck_assert(supervisor_hears_nothing(fd));
    (void) close(fd);
}
END_TEST

static const struct {
    const char *name, *why;
} deaf[] = {
    { "/nonexistent/socket", "No such file or directory" },
    { "@nonbis-that-nobody-made", "Connection refused" },
    { "/a-name-that-is-much-longer-than-any-that-a-socket-can-have-on-this-system-because-the-room-for-it-is-108-bytes",
      "File name too long" },
};

START_TEST(a_supervisor_that_cannot_be_told_is_a_warning_and_no_more)
{
    char wanted[256];
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", deaf[_i].name, 1), 0);
    rig_start(&rig, NULL);
    (void) snprintf(wanted, sizeof wanted,
                    " warn  supervisor message=\"could not tell READY=1 to the socket %s (NOTIFY_SOCKET): %s.",
                    deaf[_i].name, deaf[_i].why);
    ck_assert(daemon_wait_logged(&rig.nonbis, wanted));
    struct http_answer answer = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(answer, 200, "executed");
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

SUITE(supervisor)
{
    Suite *suite = suite_create("integration/supervisor");
    CASE_LOOP(suite, a_supervisor_is_told_when_the_ports_are_open_and_how_long_the_end_may_take, 2);
    CASE(suite, a_start_that_is_refused_says_nothing_to_the_supervisor);
    CASE_LOOP(suite, a_supervisor_that_cannot_be_told_is_a_warning_and_no_more, sizeof deaf / sizeof deaf[0]);
    return suite;
}
