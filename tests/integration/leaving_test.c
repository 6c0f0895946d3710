/* leaving_test.c - the client leaves, at every phase of its exchange (server/core/exchange.h): before its last byte nothing has happened, later nothing
 * about the command changes (docs/contract.md section 6). Each row leaves by FIN and, where that tells something, by RST; what became of the command is told by the next caller and
 * by the handler's count. */
#include "tests/support/rig.h"
#include "tests/support/thread_stall.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGE = 900 * 1000 };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step large[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 900000\r\n\r\n", 0 },
                                          { PEER_SEND, "0123456789", 90000 },
                                          PEER_END };

static struct rig rig;
static int leaving; /* the row: 0 FIN, 1 RST */

#define WITH(...) rig_start(&rig, (const char *const[]){ "--set", "client_idle=1s", __VA_ARGS__, NULL })

static const char request[] =
    "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 5\r\n\r\nhello";

static int send_part(size_t len)
{
    int fd = http_connect(rig.address);
    ck_assert(fd >= 0 && http_send(fd, request, len));
    return fd;
}

static void leave(int fd)
{
    if (leaving == 1) {
        struct linger reset = { .l_onoff = 1 };
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    close(fd);
}

/* The next caller with the same request. */
static struct http_answer repeat(void)
{
    return http_receive(send_part(sizeof request - 1), false, NULL);
}

static void expect_repeat(int status, const char *word, size_t body_len)
{
    struct http_answer answer = repeat();
    RIG_EXPECT(answer, status, word);
    ck_assert_uint_eq(answer.body_len, body_len);
    http_answer_free(&answer);
}

START_TEST(before_the_last_byte_nothing_has_happened)
{
    static const size_t after[] = { 1, 20, sizeof request - 6, sizeof request - 2 }; /* the line, the head, the body */
    leaving = _i;
    WITH(NULL);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        leave(send_part(after[i]));
    }
    if (leaving == 0) { /* a reset may throw away what was not read yet */
        ck_assert(daemon_wait_logged_times(&rig.nonbis, "result=incomplete-request", 2));
    }
    struct http_answer status = http_request(rig.address, "GET", "/_nonbis/v1/command", "Idempotency-Key: k\r\n", NULL);
    ck_assert_int_eq(status.status, 404);
    http_answer_free(&status);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    rig_end(&rig);
}
END_TEST

START_TEST(while_the_claim_is_made_the_command_goes_on)
{
    struct thread_stall stall;
    leaving = 0; /* a reset here may throw away what was not read yet, and nothing tells when it was */
    WITH(NULL);
    struct http_answer before = http_post(rig.address, "/orders", "before", "x");
    RIG_EXPECT(before, 200, "executed");
    http_answer_free(&before);
    if (!thread_stall_store(&stall, rig.nonbis.pid)) {
        FIGURE("claiming: not tested, this machine does not allow it");
        rig_end(&rig);
        return;
    }
    leave(send_part(sizeof request - 1));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1); /* that of before */
    thread_stall_end(&stall);
    ck_assert(peer_wait_whole(rig.peer, 2));
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "result=executed", 2));
    expect_repeat(200, "replayed", 2);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(while_the_handler_has_it_the_command_goes_on)
{
    leaving = _i;
    WITH(NULL);
    peer_script_default(rig.peer, held);
    int fd = send_part(sizeof request - 1);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    leave(fd);
    peer_release(rig.peer, 1);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    expect_repeat(201, "replayed", 2);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(after_still_running_was_told_the_command_goes_on)
{
    leaving = _i;
    WITH("--set", "answer_timeout=50ms");
    peer_script_default(rig.peer, held);
    int fd = send_part(sizeof request - 1);
    struct http_answer told = http_receive(fd, false, NULL);
    RIG_EXPECT(told, 504, "in-progress");
    http_answer_free(&told);
    leave(fd);
    peer_release(rig.peer, 1);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    expect_repeat(201, "replayed", 2);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(while_the_outcome_is_written_it_is_kept)
{
    struct thread_stall stall;
    leaving = _i;
    WITH(NULL);
    peer_script_default(rig.peer, held);
    int fd = send_part(sizeof request - 1);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    if (!thread_stall_store(&stall, rig.nonbis.pid)) {
        FIGURE("recording: not tested, this machine does not allow it");
        peer_release(rig.peer, 1);
        close(fd);
        rig_end(&rig);
        return;
    }
    peer_release(rig.peer, 1);
    ck_assert(peer_wait_whole(rig.peer, 1));
    leave(fd);
    thread_stall_end(&stall);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    expect_repeat(201, "replayed", 2);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

/* It reads the head of a long answer, and no more. */
START_TEST(in_the_middle_of_the_answer_it_stays_whole_for_the_next)
{
    char head[64];
    leaving = _i;
    WITH(NULL);
    peer_script_default(rig.peer, large);
    int fd = send_part(sizeof request - 1);
    ck_assert_int_eq((int) recv(fd, head, sizeof head, MSG_WAITALL), (int) sizeof head);
    leave(fd);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    expect_repeat(201, "replayed", LARGE);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(in_the_middle_of_an_answer_that_is_not_kept_the_command_is_completed)
{
    char head[64];
    leaving = _i;
    WITH("--set", "response_keep_max=1KiB");
    peer_script_default(rig.peer, large);
    int fd = send_part(sizeof request - 1);
    ck_assert_int_eq((int) recv(fd, head, sizeof head, MSG_WAITALL), (int) sizeof head);
    leave(fd);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    struct http_answer answer = repeat();
    RIG_EXPECT(answer, 201, "replayed");
    ck_assert(http_field_is(&answer, "Nonbis-Body", "not-kept"));
    http_answer_free(&answer);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

SUITE(leaving)
{
    Suite *suite = suite_create("integration/leaving");
    CASE_LOOP(suite, before_the_last_byte_nothing_has_happened, 2);
    CASE(suite, while_the_claim_is_made_the_command_goes_on);
    CASE_LOOP(suite, while_the_handler_has_it_the_command_goes_on, 2);
    CASE_LOOP(suite, after_still_running_was_told_the_command_goes_on, 2);
    CASE_LOOP(suite, while_the_outcome_is_written_it_is_kept, 2);
    CASE_LOOP(suite, in_the_middle_of_the_answer_it_stays_whole_for_the_next, 2);
    CASE_LOOP(suite, in_the_middle_of_an_answer_that_is_not_kept_the_command_is_completed, 2);
    return suite;
}
