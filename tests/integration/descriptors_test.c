/* descriptors_test.c - odd standard descriptors: a reader of the log that stands still, and none at all. The server must neither stop nor end. */
#include "tests/support/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *upstream_url;

/* nonbisd on a memory store; `log` becomes its standard error, or -1: 0, 1 and 2 are closed. */
static pid_t start_with(const char *listen, int log)
{
    char program[700];
    (void) snprintf(program, sizeof program, "%.600s/nonbisd", suite_out());
    const char *argv[] = { program,      "--listen",   listen,    "--admin", "off",
                           "--upstream", upstream_url, "--store", "memory",  NULL };
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
    char line[4096] = "";
    char address[64] = "";
    size_t len = 0;
    int ends[2];
    upstream_url = peer_url(peer);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = start_with("127.0.0.1:0", ends[1]);
    close(ends[1]);
    while (strstr(line, " admin=") == NULL) { /* the start line, and then nothing is read any more */
        ssize_t got = read(ends[0], line + len, sizeof line - 1 - len);
        ck_assert_int_gt(got, 0);
        len += (size_t) got;
        line[len] = '\0';
    }
    const char *found = strstr(line, " listen=") + strlen(" listen=");
    (void) snprintf(address, sizeof address, "%.*s", (int) strcspn(found, " "), found);
    post_many(address, 1000); /* more lines than a pipe holds */
    ck_assert_int_eq(ended_with(pid), 0);
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    close(ends[0]);
    peer_free(peer);
}
END_TEST

START_TEST(closed_standard_descriptors_are_no_trap)
{
    struct peer *peer = peer_new();
    struct peer *port = peer_new(); /* a port that is free in a moment */
    char address[64];
    upstream_url = peer_url(peer);
    (void) snprintf(address, sizeof address, "127.0.0.1:%u", peer_port(port));
    peer_free(port);
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

SUITE(descriptors)
{
    Suite *suite = suite_create("integration/descriptors");
    CASE(suite, a_reader_of_the_log_that_stands_still_does_not_stop_the_server);
    CASE(suite, closed_standard_descriptors_are_no_trap);
    return suite;
}
