/* memory_test.c - what is used again between requests keeps little: memory that large requests took is given back when they have ended, and not when
 * the next ones come. */
#include "tests/support/process_memory.h"
#include "tests/support/rig.h"

#include <unistd.h>

enum { CLIENTS = 8, BODY_BYTES = 4 * 1024 * 1024, GROWTH_MAX_KB = 3 * 1024 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEMORY_IS_MEASURED = 0 }; /* a sanitizer keeps freed memory */
#else
enum { MEMORY_IS_MEASURED = 1 };
#endif

static char body[BODY_BYTES];

static int post_begin(const struct rig *rig, int number)
{
    char head[256];
    int fd = http_connect(rig->address);
    int len = snprintf(head, sizeof head,
                       "POST /orders HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\nIdempotency-Key: k-%d\r\n"
                       "Content-Length: %d\r\n\r\n",
                       number, BODY_BYTES);
    ck_assert(http_send(fd, head, (size_t) len) && http_send(fd, body, BODY_BYTES - 1));
    return fd;
}

START_TEST(large_bodies_leave_no_memory_behind_in_a_server_at_rest)
{
    static const char *const more[] = { "--store", "memory", "--set", "body_max=8MiB", NULL };
    struct rig rig;
    int fds[CLIENTS];
    rig_start(&rig, more);
    struct http_answer warm = http_post(rig.address, "/orders", "warm", "{}");
    RIG_EXPECT(warm, 200, "executed");
    http_answer_free(&warm);
    long before_kb = process_memory_own_kb(rig.nonbis.pid);
    for (int i = 0; i < CLIENTS; i++) { /* all of them are there at once */
        fds[i] = post_begin(&rig, i);
    }
    long full_kb = process_memory_own_kb(rig.nonbis.pid);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert(http_send(fds[i], body, 1));
        struct http_answer answer = http_receive(fds[i], false, NULL);
        RIG_EXPECT(answer, 200, "executed");
        http_answer_free(&answer);
        ck_assert(http_closes(fds[i])); /* so its request has ended in there */
        close(fds[i]);
    }
    long after_kb = process_memory_own_kb(rig.nonbis.pid);
    FIGURE("memory before=%ld kB with %d bodies of 4 MiB=%ld kB after them=%ld kB", before_kb, CLIENTS, full_kb,
           after_kb);
    if (MEMORY_IS_MEASURED) {
        ck_assert_int_lt(after_kb - before_kb, GROWTH_MAX_KB);
    }
    rig_end(&rig);
}
END_TEST

/* What the handler has taken whole is kept once, for the client's request: docs/settings.md counts on it. */
START_TEST(a_running_command_holds_its_body_once)
{
    static const char *const more[] = { "--store", "memory", "--set", "body_max=8MiB", NULL };
    static const struct peer_step stalls[] = {
        { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_NUMBER, NULL, 0 }, PEER_END
    };
    struct rig rig;
    int fds[CLIENTS];
    rig_start(&rig, more);
    struct http_answer warm = http_post(rig.address, "/orders", "warm", "{}");
    RIG_EXPECT(warm, 200, "executed");
    http_answer_free(&warm);
    peer_script_default(rig.peer, stalls);
    long before_kb = process_memory_own_kb(rig.nonbis.pid);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = post_begin(&rig, i);
        ck_assert(http_send(fds[i], body, 1));
    }
    ck_assert(peer_wait_stalled(rig.peer, CLIENTS));
    /* Behind its answer the loop has done what it did when the handler read. */
    struct http_answer turn = http_request(rig.address, "GET", "/_nonbis/v1", NULL, NULL);
    ck_assert_int_eq(turn.status, 200);
    http_answer_free(&turn);
    long running_kb = process_memory_own_kb(rig.nonbis.pid) - before_kb;
    FIGURE("memory of %d running commands with bodies of 4 MiB: %ld kB", CLIENTS, running_kb);
    if (MEMORY_IS_MEASURED) {
        ck_assert_int_lt(running_kb, CLIENTS * BODY_BYTES / 1024 * 3 / 2);
    }
    peer_release(rig.peer, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        struct http_answer answer = http_receive(fds[i], false, NULL);
        RIG_EXPECT(answer, 200, "executed");
        http_answer_free(&answer);
        close(fds[i]);
    }
    rig_end(&rig);
}
END_TEST

SUITE(memory)
{
    Suite *suite = suite_create("integration/memory");
    CASE(suite, large_bodies_leave_no_memory_behind_in_a_server_at_rest);
    CASE(suite, a_running_command_holds_its_body_once);
    return suite;
}
