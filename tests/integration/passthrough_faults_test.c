/* passthrough_faults_test.c - what passes through when the handler breaks or the client leaves, at any point (docs/contract.md sections 1 and
 * 5): before the answer began nonbis says so, later the client sees a cut, never a short answer that looks whole. */
#include "tests/support/rig.h"
#include "tests/support/stream_client.h"

#include <sys/socket.h>
#include <unistd.h>

#define HOST "Host: test.example\r\n"

enum { MIB = 1024 * 1024, STALL_MIB = 64 };

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };
static const char *const short_timeout[] = {
    "--store", "memory", "--route", "POST /orders*", "--set", "passthrough_timeout=300ms", NULL
};

/* --- a handler that breaks --- */

enum { BREAK_STEPS_MAX = 5 };
#define CUT 0, NULL

struct breaking {
    const char *name;
    struct peer_step steps[BREAK_STEPS_MAX];
    int status;          /* of nonbis; 0: the answer was begun, and the client sees it cut */
    const char *problem; /* NULL: none */
};

static const struct breaking breakings[] = {
    { "closes before the answer", { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 } }, 502, "upstream-failed" },
    { "resets before the answer", { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 } }, 502, "upstream-failed" },
    { "closes before it has read", { { PEER_CLOSE, NULL, 0 } }, 502, "upstream-failed" },
    { "closes inside the head",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Le", 0 }, { PEER_CLOSE, NULL, 0 } },
      502,
      "upstream-failed" },
    { "resets inside the head",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_RESET, NULL, 0 } },
      502,
      "upstream-failed" },
    { "sends garbage", { { PEER_BODY, NULL, 0 }, { PEER_SEND, "SSH-2.0-OpenSSH\r\n", 0 } }, 502, "upstream-failed" },
    { "sends two lengths",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 0 } },
      502,
      "upstream-failed" },
    { "sends a head without end",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_SEND, "X-A: 0123456789\r\n", 1000 } },
      502,
      "upstream-failed" },
    { "hangs before the answer", { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 } }, 504, "upstream-timeout" },
    { "hangs inside the head",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_WAIT_END, NULL, 0 } },
      504,
      "upstream-timeout" },
    { "closes inside a body with a length",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 0 },
        { PEER_CLOSE, NULL, 0 } },
      CUT },
    { "closes one byte before the end",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 0 },
        { PEER_CLOSE, NULL, 0 } },
      CUT },
    { "resets inside a body with a length",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 0 },
        { PEER_RESET, NULL, 0 } },
      CUT },
    { "closes inside a chunk",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", 0 },
        { PEER_CLOSE, NULL, 0 } },
      CUT },
    { "closes before the last chunk",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 0 },
        { PEER_CLOSE, NULL, 0 } },
      CUT },
    { "sends a broken chunk",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", 0 },
        { PEER_WAIT_END, NULL, 0 } },
      CUT },
    { "resets a body that ends with the connection",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nabc", 0 }, { PEER_RESET, NULL, 0 } },
      CUT },
    { "hangs inside a body",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 0 },
        { PEER_WAIT_END, NULL, 0 } },
      CUT },
};

/* The short timeout is for the rows that end by it alone: a machine that stands still for so long would end the others as well. */
static bool breaking_hangs(const struct breaking *row)
{
    bool hangs = false;
    for (int i = 0; i < BREAK_STEPS_MAX && row->steps[i].op != PEER_STOP; i++) {
        hangs = hangs || row->steps[i].op == PEER_WAIT_END || row->steps[i].op == PEER_WAIT;
    }
    return hangs;
}

/* On a connection to the handler that is new, and on one that was kept. */
START_TEST(a_handler_that_breaks_is_told_before_the_answer_began_and_shown_as_a_cut_afterwards)
{
    const struct breaking *row = &breakings[_i / 2];
    unsigned request = _i % 2 == 0 ? 1 : 2;
    struct rig rig;
    rig_start(&rig, breaking_hangs(row) ? short_timeout : only_orders);
    if (request == 2) {
        struct http_answer warm = http_request(rig.address, "GET", "/warm", NULL, NULL);
        RIG_EXPECT(warm, 200, "");
        http_answer_free(&warm);
    }
    peer_script_for_request(rig.peer, request, row->steps);
    struct http_answer answer = http_request(rig.address, "PUT", "/x", NULL, "body");
    if (row->status == 0) {
        ck_assert_msg(!answer.whole, "%s: the answer looks whole: %s", row->name, answer.head);
        ck_assert_msg(answer.head == NULL || answer.status == 200, "%s: %d", row->name, answer.status);
    } else {
        ck_assert_msg(answer.status == row->status && strstr(answer.body, row->problem) != NULL, "%s: %d %s", row->name,
                      answer.status, answer.body);
        ck_assert_ptr_null(strstr(answer.body, "\"executed\""));
        ck_assert(http_field_is(&answer, "Content-Type", "application/problem+json"));
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), request); /* sent once */
    ck_assert(peer_wait_ended(rig.peer, 1));
    struct http_answer next = http_request(rig.address, "GET", "/next", NULL, NULL);
    RIG_EXPECT(next, 200, "");
    ck_assert_str_eq(next.body, "ok");
    http_answer_free(&answer);
    http_answer_free(&next);
    rig_end(&rig);
}
END_TEST

START_TEST(a_handler_that_refuses_the_connection_is_a_502)
{
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_refuse(rig.peer);
    static const char *const methods[] = { "GET", "PUT", "HEAD" };
    for (size_t i = 0; i < 3; i++) {
        struct http_answer answer = http_request(rig.address, methods[i], "/x", NULL, i == 1 ? "body" : NULL);
        RIG_EXPECT(answer, 502, "");
        ck_assert(i == 2 ? answer.body_len == 0 : strstr(answer.body, "urn:nonbis:problem:upstream-failed") != NULL);
        http_answer_free(&answer);
    }
    peer_accept_again(rig.peer);
    struct http_answer next = http_request(rig.address, "GET", "/next", NULL, NULL);
    RIG_EXPECT(next, 200, "");
    http_answer_free(&next);
    rig_end(&rig);
}
END_TEST

/* --- while the upload goes on --- */

struct early {
    const char *name;
    struct peer_step steps[BREAK_STEPS_MAX];
    int status;
    const char *body;
};
static const struct early earlies[] = {
    { "413 and closes",
      { { PEER_SEND, "HTTP/1.1 413 Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge", 0 },
        { PEER_WAIT_END, NULL, 0 } },
      413,
      "large" },
    { "413 and reads on",
      { { PEER_SEND, "HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\nlarge", 0 }, { PEER_BODY_PATTERN, NULL, 0 } },
      413,
      "large" },
    { "413 and does not read on",
      { { PEER_SEND, "HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\nlarge", 0 }, { PEER_WAIT, NULL, 0 } },
      413,
      "large" },
    { "413 in chunks, and reads on",
      { { PEER_SEND, "HTTP/1.1 413 Large\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlarge\r\n0\r\n\r\n", 0 },
        { PEER_BODY_PATTERN, NULL, 0 } },
      413,
      "large" },
    { "200 in two halves, and reads on between them",
      { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwhi", 0 },
        { PEER_BODY_PATTERN, NULL, 0 },
        { PEER_SEND, "ler", 0 } },
      200,
      "whiler" },
    { "200 with more than fits on the way, and does not read on",
      { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 33554437\r\n\r\nlarge", 0 },
        { PEER_SEND_PATTERN, NULL, 32 * MIB },
        { PEER_WAIT, NULL, 0 } },
      200,
      "large" },
    { "204 and reads on", { { PEER_SEND, "HTTP/1.1 204 None\r\n\r\n", 0 }, { PEER_BODY_PATTERN, NULL, 0 } }, 204, "" },
    { "resets after some bytes",
      { { PEER_READ_BYTES, NULL, 100000 }, { PEER_RESET, NULL, 0 } },
      502,
      "urn:nonbis:problem:upstream-failed" },
    { "closes after some bytes",
      { { PEER_READ_BYTES, NULL, 100000 }, { PEER_CLOSE, NULL, 0 } },
      502,
      "urn:nonbis:problem:upstream-failed" },
};

START_TEST(an_answer_or_a_break_while_the_upload_goes_on_reaches_the_client)
{
    const struct early *row = &earlies[_i / 2];
    bool chunked = _i % 2 == 1;
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 1, row->steps);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, chunked ? "PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1000000\r\n"
                                           : "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 16777216\r\n\r\n"));
    ck_assert(stream_send_pattern(fd, 0, 16 * MIB));
    ck_assert(!chunked || stream_send_text(fd, "\r\n0\r\n\r\n"));
    struct http_answer answer = http_receive(fd, false, NULL);
    ck_assert_msg(answer.status == row->status && answer.whole, "%s: %d", row->name, answer.status);
    ck_assert_msg(strstr(answer.body, row->body) != NULL, "%s: %.200s", row->name, answer.body);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    struct http_answer next = http_request(rig.address, "GET", "/next", NULL, NULL);
    RIG_EXPECT(next, 200, "");
    http_answer_free(&answer);
    http_answer_free(&next);
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(a_handler_that_stops_reading_is_given_up_after_the_timeout)
{
    static const struct peer_step script[] = { { PEER_WAIT, NULL, 0 }, PEER_END };
    struct rig rig;
    rig_start(&rig, short_timeout);
    peer_script_for_request(rig.peer, 1, script);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 67108864\r\n\r\n"));
    ck_assert(stream_send_pattern(
        fd, 0, (uint64_t) STALL_MIB * MIB)); /* the rest is thrown away once the handler was given up */
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, 504, "");
    ck_assert_ptr_nonnull(strstr(answer.body, "urn:nonbis:problem:upstream-timeout"));
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

/* --- a client that leaves --- */

struct leaving {
    const char *name, *request;
    struct peer_step steps[BREAK_STEPS_MAX];
    bool reset, reads_head;
};
static const struct leaving leavings[] = {
    { "inside its upload",
      "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nabc",
      { { PEER_BODY, NULL, 0 } },
      false,
      false },
    { "inside its upload, with a reset",
      "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nabc",
      { { PEER_BODY, NULL, 0 } },
      true,
      false },
    { "inside a chunk",
      "PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n9\r\nabc",
      { { PEER_BODY, NULL, 0 } },
      false,
      false },
    { "before the last chunk",
      "PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
      { { PEER_BODY, NULL, 0 } },
      false,
      false },
    { "inside a download with a length",
      "GET /x HTTP/1.1\r\n" HOST "\r\n",
      { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", 0 },
        { PEER_SEND_PATTERN, NULL, 1073741824 } },
      false,
      true },
    { "inside a download with a length, with a reset",
      "GET /x HTTP/1.1\r\n" HOST "\r\n",
      { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", 0 },
        { PEER_SEND_PATTERN, NULL, 1073741824 } },
      true,
      true },
    { "inside a download in chunks",
      "GET /x HTTP/1.1\r\n" HOST "\r\n",
      { { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n", 0 },
        { PEER_SEND_PATTERN, NULL, 1073741824 } },
      false,
      true },
};

START_TEST(a_client_that_leaves_frees_the_connection_to_the_handler)
{
    const struct leaving *row = &leavings[_i];
    char head[1024];
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 1, row->steps);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, row->request));
    ck_assert(peer_wait_requests(rig.peer, 1));
    if (row->reads_head) {
        stream_read_head(fd, head, sizeof head);
    }
    if (row->reset) {
        const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(fd);
    ck_assert_msg(peer_wait_ended(rig.peer, 1), "%s: the handler's connection stayed open", row->name);
    ck_assert_uint_eq(peer_count_whole(rig.peer), 0); /* nobody completed the upload in its name */
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=client-left"));
    struct http_answer next = http_request(rig.address, "GET", "/next", NULL, NULL);
    RIG_EXPECT(next, 200, "");
    http_answer_free(&next);
    rig_end(&rig);
}
END_TEST

SUITE(passthrough_faults)
{
    Suite *suite = suite_create("integration/passthrough_faults");
    CASE_LOOP(suite, a_handler_that_breaks_is_told_before_the_answer_began_and_shown_as_a_cut_afterwards,
              2 * sizeof breakings / sizeof breakings[0]);
    CASE(suite, a_handler_that_refuses_the_connection_is_a_502);
    CASE_LOOP(suite, an_answer_or_a_break_while_the_upload_goes_on_reaches_the_client,
              2 * sizeof earlies / sizeof earlies[0]);
    CASE(suite, a_handler_that_stops_reading_is_given_up_after_the_timeout);
    CASE_LOOP(suite, a_client_that_leaves_frees_the_connection_to_the_handler, sizeof leavings / sizeof leavings[0]);
    return suite;
}
