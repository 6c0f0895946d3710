/* descriptors_test.c - odd standard descriptors: a reader of the log that stands still, and none at all. The server must neither stop nor end. And
 * whether all that may be open at a time can be. */
#include "tests/support/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *upstream_url;

/* nonbisd on a memory store; `log` becomes its standard error, or -1: 0, 1 and 2 are closed. At most CLIENTS connections and one command. */
enum { CLIENTS = 150, SOFT_LIMIT = 64 };

static pid_t start_with(const char *listen, int log)
{
    char program[700];
    (void) snprintf(program, sizeof program, "%.600s/nonbisd", suite_out());
    const char *argv[] = {
        program,      "--listen",   listen,    "--admin", "off",   "--set",         "connections_max=150",
        "--upstream", upstream_url, "--store", "memory",  "--set", "running_max=1", NULL
    };
    pid_t pid = fork();
    if (pid == 0) {
        if (log >= 0) {
            dup2(log, 2);
        } else {
            close(0);
            close(1);
            close(2);
        }
        execv(program, (char *const *) (const void *) argv);
        _exit(127);
    }
    return pid;
}

static int ended_with(pid_t pid)
{
    int status = 0;
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* From the start line on the other end of its standard error; behind it nothing is read any more. */
static void read_address(int log, char *address, size_t size)
{
    char line[4096] = "";
    size_t len = 0;
    while (strstr(line, " admin=") == NULL) {
        ssize_t got = read(log, line + len, sizeof line - 1 - len);
        ck_assert_int_gt(got, 0);
        len += (size_t) got;
        line[len] = '\0';
    }
    const char *found = strstr(line, " listen=") + strlen(" listen=");
    (void) snprintf(address, size, "%.*s", (int) strcspn(found, " "), found);
}

static void post_many(const char *address, int count)
{
    for (int i = 0; i < count; i++) {
        struct http_answer answer = http_post(address, "/orders", "k", "x");
        RIG_EXPECT(answer, 200, i == 0 ? "executed" : "replayed");
        http_answer_free(&answer);
    }
}

START_TEST(a_reader_of_the_log_that_stands_still_does_not_stop_the_server)
{
    struct peer *peer = peer_new();
    char address[64] = "";
    int ends[2];
    upstream_url = peer_url(peer);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = start_with("127.0.0.1:0", ends[1]);
    close(ends[1]);
    read_address(ends[0], address, sizeof address);
    post_many(address, 1000); /* more lines than a pipe holds */
    ck_assert_int_eq(ended_with(pid), 0);
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    close(ends[0]);
    peer_free(peer);
}
END_TEST

/* Without a log nobody tells which port the kernel has chosen: it is one that the kernel gives to nobody, at an address of this process alone. */
START_TEST(closed_standard_descriptors_are_no_trap)
{
    struct peer *peer = peer_new();
    char address[64];
    unsigned mine = (unsigned) getpid();
    upstream_url = peer_url(peer);
    (void) snprintf(address, sizeof address, "127.%u.%u.%u:8622", 64 + (mine >> 16) % 64, mine >> 8 & 255, mine & 255);
    pid_t pid = start_with(address, -1);
    int fd = -1;
    for (int tries = 0; tries < 1000000 && fd < 0; tries++) {
        fd = http_connect(address); /* until it listens */
    }
    ck_assert_int_ge(fd, 0);
    close(fd);
    post_many(address, 500);
    ck_assert_int_eq(ended_with(pid), 0);
    peer_free(peer);
}
END_TEST

/* What passes through takes a connection to the handler for each client as a command does, and is not bounded by running_max. */
START_TEST(every_client_that_may_be_connected_can_have_its_connection_to_the_handler)
{
    static const struct peer_step held[] = { { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 204 No Content\r\n\r\n", 0 },
                                             PEER_END };
    static const char get[] = "GET /p HTTP/1.1\r\nHost: h\r\n\r\n";
    struct peer *peer = peer_new();
    struct rlimit before, few;
    char address[64] = "";
    int ends[2], clients[CLIENTS];
    upstream_url = peer_url(peer);
    peer_script_default(peer, held);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = SOFT_LIMIT;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0); /* the server begins with it, and may raise it */
    pid_t pid = start_with("127.0.0.1:0", ends[1]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(ends[1]);
    read_address(ends[0], address, sizeof address);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = http_connect(address);
        ck_assert_int_ge(clients[i], 0);
        ck_assert(http_send(clients[i], get, sizeof get - 1));
    }
    ck_assert(peer_wait_stalled(peer, CLIENTS));
    peer_release(peer, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        struct http_answer answer = http_receive(clients[i], false, NULL);
        ck_assert_int_eq(answer.status, 204);
        http_answer_free(&answer);
        close(clients[i]);
    }
    ck_assert_int_eq(ended_with(pid), 0);
    close(ends[0]);
    peer_free(peer);
}
END_TEST

SUITE(descriptors)
{
    Suite *suite = suite_create("integration/descriptors");
    CASE(suite, a_reader_of_the_log_that_stands_still_does_not_stop_the_server);
    CASE(suite, closed_standard_descriptors_are_no_trap);
    CASE(suite, every_client_that_may_be_connected_can_have_its_connection_to_the_handler);
    return suite;
}
