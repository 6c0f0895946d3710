/* exchange_test.c - one call on a fresh connection against everything that a handler or a network can do to it: the rows of
 * docs/contract.md section 6. Each row runs with a request body and with an empty one. */
#include "tests/peer/words.h"
#include "tests/upstream/probe.h"

enum { STEPS_MAX = 6 };

struct row {
    const char *name;
    struct peer_step steps[STEPS_MAX];
    enum attempt_end end;
    int status;       /* 0: no head was told */
    const char *body; /* what was told of it */
    const char *says; /* part of the reason */
    unsigned kept;    /* connections at rest afterwards */
};

#define SEND(text)                                                                                                     \
    {                                                                                                                  \
        PEER_SEND, text, 0                                                                                             \
    }
#define OK "HTTP/1.1 200 OK\r\n"

static const struct row rows[] = {
    { "length", { DO(PEER_BODY), SEND(OK "Content-Length: 5\r\n\r\nhello") }, ATTEMPT_COMPLETE, 200, "hello", "", 1 },
    { "drip",
      { DO(PEER_BODY), { PEER_DRIP, OK "Content-Length: 5\r\n\r\nhello", 0 } },
      ATTEMPT_COMPLETE,
      200,
      "hello",
      "",
      1 },
    { "chunks",
      { DO(PEER_BODY), SEND(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n") },
      ATTEMPT_COMPLETE,
      200,
      "hello",
      "",
      1 },
    { "no body", { DO(PEER_BODY), SEND("HTTP/1.1 204 No Content\r\n\r\n") }, ATTEMPT_COMPLETE, 204, "", "", 1 },
    { "empty body", { DO(PEER_BODY), SEND(OK "Content-Length: 0\r\n\r\n") }, ATTEMPT_COMPLETE, 200, "", "", 1 },
    { "interim answers first",
      { DO(PEER_BODY), SEND("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        SEND("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok") },
      ATTEMPT_COMPLETE,
      201,
      "ok",
      "",
      1 },
    { "Connection: close",
      { DO(PEER_BODY), SEND(OK "Connection: close\r\nContent-Length: 2\r\n\r\nok") },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      0 },
    { "Keep-Alive shorter than the margin",
      { DO(PEER_BODY), SEND(OK "Keep-Alive: timeout=0\r\nContent-Length: 2\r\n\r\nok") },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      0 },
    { "whole, then closed",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\n\r\nok"), DO(PEER_CLOSE) },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      2 },
    { "whole, then reset",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\n\r\nok"), DO(PEER_RESET) },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      2 },
    { "two answers",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      0 },
    { "length too short",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\n\r\nokay") },
      ATTEMPT_COMPLETE,
      200,
      "ok",
      "",
      0 },
    { "closed unanswered", { DO(PEER_BODY), DO(PEER_CLOSE) }, ATTEMPT_RESET, 0, "", "before the first byte", 0 },
    { "reset unanswered", { DO(PEER_BODY), DO(PEER_RESET) }, ATTEMPT_RESET, 0, "", "Connection reset by peer", 0 },
    { "only FIN", { DO(PEER_BODY), DO(PEER_SHUTDOWN), DO(PEER_WAIT_END) }, ATTEMPT_RESET, 0, "", "closed by it", 0 },
    { "interim answer, then closed",
      { DO(PEER_BODY), SEND("HTTP/1.1 100 Continue\r\n\r\n"), DO(PEER_CLOSE) },
      ATTEMPT_RESET,
      0,
      "",
      "before the first byte",
      0 },
    { "reset after the first byte", { DO(PEER_BODY), SEND("H"), DO(PEER_RESET) }, ATTEMPT_CUT, 0, "", "inside", 0 },
    { "closed after the first byte", { DO(PEER_BODY), SEND("H"), DO(PEER_CLOSE) }, ATTEMPT_CUT, 0, "", "inside", 0 },
    { "cut status line", { DO(PEER_BODY), SEND("HTTP/1.1 200 O"), DO(PEER_CLOSE) }, ATTEMPT_CUT, 0, "", "inside", 0 },
    { "after the status line", { DO(PEER_BODY), SEND(OK), DO(PEER_CLOSE) }, ATTEMPT_CUT, 0, "", "inside", 0 },
    { "half a field", { DO(PEER_BODY), SEND(OK "Content-Le"), DO(PEER_CLOSE) }, ATTEMPT_CUT, 0, "", "inside", 0 },
    { "no blank line",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\n"), DO(PEER_RESET) },
      ATTEMPT_CUT,
      0,
      "",
      "inside",
      0 },
    { "length too long",
      { DO(PEER_BODY), SEND(OK "Content-Length: 9\r\n\r\nhello"), DO(PEER_CLOSE) },
      ATTEMPT_CUT,
      200,
      "hello",
      "inside",
      0 },
    { "reset inside the body",
      { DO(PEER_BODY), SEND(OK "Content-Length: 9\r\n\r\nhello"), DO(PEER_RESET) },
      ATTEMPT_CUT,
      200,
      "hello",
      "inside",
      0 },
    { "missing last chunk",
      { DO(PEER_BODY), SEND(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), DO(PEER_CLOSE) },
      ATTEMPT_CUT,
      200,
      "hello",
      "inside",
      0 },
    { "last chunk without its end",
      { DO(PEER_BODY), SEND(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"), DO(PEER_CLOSE) },
      ATTEMPT_CUT,
      200,
      "hello",
      "inside",
      0 },
    { "unframed body",
      { DO(PEER_BODY), SEND(OK "\r\nhello"), DO(PEER_CLOSE) },
      ATTEMPT_CLOSE_DELIMITED,
      200,
      "hello",
      "only by the close",
      0 },
    { "unframed body, reset",
      { DO(PEER_BODY), SEND(OK "\r\nhello"), DO(PEER_RESET) },
      ATTEMPT_CUT,
      200,
      "hello",
      "inside",
      0 },
    { "switching protocols",
      { DO(PEER_BODY), SEND("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n") },
      ATTEMPT_GARBAGE,
      0,
      "",
      "101",
      0 },
    { "another protocol", { DO(PEER_BODY), SEND("SSH-2.0-x\r\n") }, ATTEMPT_GARBAGE, 0, "", "not a well-formed", 0 },
    { "two framings",
      { DO(PEER_BODY), SEND(OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok") },
      ATTEMPT_GARBAGE,
      0,
      "",
      "not a well-formed",
      0 },
    { "bad chunk",
      { DO(PEER_BODY), SEND(OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n") },
      ATTEMPT_GARBAGE,
      200,
      "",
      "not a well-formed",
      0 },
    { "head over the limit",
      { DO(PEER_BODY), SEND(OK), { PEER_SEND, "X: 0123456789012345678901234567890123456789\r\n", 200 } },
      ATTEMPT_GARBAGE,
      0,
      "",
      "longer than response_header_max",
      0 },
};
enum { ROWS = sizeof rows / sizeof rows[0], KEPT_OR_NOT = 2 };

static void check_row(const struct row *row, const char *request)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, row->steps);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, request);
    ck_assert_msg(!upstream_was_sent(call.call), "%s: sent before it was connected", row->name);
    probe_wait(&call);
    ck_assert_msg(call.end == row->end, "%s: ended %s (%s)", row->name, attempt_end_name(call.end), call.reason);
    ck_assert_msg(call.status == row->status, "%s: status %d", row->name, call.status);
    ck_assert_msg(strstr(call.reason, row->says) != NULL, "%s: it says \"%s\"", row->name, call.reason);
    probe_expect_body(&call, row->body);
    struct upstream_figures figures = probe_figures(&probe);
    ck_assert_msg(row->kept == KEPT_OR_NOT || figures.kept == row->kept, "%s: %u kept", row->name,
                  (unsigned) figures.kept);
    ck_assert_uint_eq(figures.connects, 1);
    ck_assert_uint_eq(figures.sent, 1);
    /* Whatever else was going to be sent would have been sent before the connections closed. */
    upstream_close(probe.upstream);
    probe.upstream = NULL;
    ck_assert(peer_wait_ended(probe.peer, 1));
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    ck_assert_uint_eq(peer_count_key(probe.peer, "k-1"), 1);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    probe_done(&call);
    probe_close(&probe);
}

START_TEST(every_way_in_which_an_exchange_ends_is_told_and_sends_once)
{
    check_row(&rows[_i], PROBE_POST("11", "{\"item\": 1}"));
}
END_TEST

START_TEST(every_way_in_which_an_exchange_ends_with_an_empty_body_is_told_and_sends_once)
{
    check_row(&rows[_i], PROBE_POST("0", ""));
}
END_TEST

START_TEST(the_request_arrives_byte_for_byte)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct buf seen;
    buf_init(&seen, 10000);
    probe_open(&probe, probe_options());
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("11", "{\"item\": 1}"));
    ck_assert(peer_request(probe.peer, 1, &seen));
    ck_assert(view_equal(buf_view(&seen), VIEW("POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-1\r\n"
                                               "Content-Length: 11\r\n\r\n{\"item\": 1}")));
    ck_assert(call.has_length);
    ck_assert_uint_eq(call.length, 2);
    ck_assert_uint_eq(call.heads, 1);
    buf_fini(&seen);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* Row "a response byte before the request was written": what the handler read then is not known. */
START_TEST(an_answer_before_a_large_command_was_written_is_garbage)
{
    static const struct peer_step early[] = { SEND("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"),
                                              DO(PEER_WAIT), PEER_END };
    enum { BODY = 64 * 1024 * 1024 };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, early);
    struct buf request;
    buf_init(&request, BODY + 1000);
    buf_printf(&request, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", BODY);
    char *body = buf_reserve(&request, BODY);
    memset(body, 'x', BODY);
    request.len += BODY;
    probe_start_with(&probe, &call,
                     (struct upstream_request){ .lane = UPSTREAM_PROTECTED, .bytes = buf_view(&request) });
    buf_fini(&request);
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_GARBAGE);
    ck_assert_int_eq(call.status, 0);
    ck_assert_ptr_nonnull(strstr(call.reason, "before the request was written"));
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    ck_assert_uint_eq(peer_count_whole(probe.peer), 0);
    ck_assert_uint_eq(probe_figures(&probe).kept, 0);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(a_reset_while_a_large_command_is_written_is_a_reset)
{
    static const struct peer_step reset[] = { DO(PEER_RESET), PEER_END };
    enum { BODY = 64 * 1024 * 1024 };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, reset);
    char *request = calloc(1, BODY);
    int head = snprintf(request, BODY, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", BODY);
    probe_start_with(
        &probe, &call,
        (struct upstream_request){ .lane = UPSTREAM_PROTECTED, .bytes = { request, BODY + (size_t) head - 1000 } });
    free(request);
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_RESET);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(a_body_that_ends_by_close_is_complete_where_that_is_allowed)
{
    static const struct peer_step unframed[] = { DO(PEER_BODY), SEND(OK "\r\nhello"), DO(PEER_CLOSE), PEER_END };
    static const struct peer_step cut[] = { DO(PEER_BODY), SEND(OK "\r\nhello"), DO(PEER_RESET), PEER_END };
    struct probe probe;
    struct probe_call calls[2] = { { .deed = PROBE_NOTHING }, { .deed = PROBE_NOTHING } };
    struct upstream_options options = probe_options();
    options.allow_close_delimited = true;
    probe_open(&probe, options);
    peer_script_for_request(probe.peer, 1, unframed);
    peer_script_for_request(probe.peer, 2, cut);
    probe_exchange(&probe, &calls[0], UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    probe_exchange(&probe, &calls[1], UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_int_eq(calls[0].end, ATTEMPT_COMPLETE);
    probe_expect_body(&calls[0], "hello");
    ck_assert(!calls[0].has_length);
    ck_assert_int_eq(calls[1].end, ATTEMPT_CUT);
    ck_assert_uint_eq(probe_figures(&probe).kept, 0);
    probe_done(&calls[0]);
    probe_done(&calls[1]);
    probe_close(&probe);
}
END_TEST

START_TEST(an_answer_to_head_has_a_length_and_no_body)
{
    static const struct peer_step head[] = { SEND(OK "Content-Length: 5\r\n\r\n"), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, head);
    probe_start_with(&probe, &call,
                     (struct upstream_request){ .lane = UPSTREAM_PASSTHROUGH,
                                                .bytes = VIEW("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"),
                                                .head_method = true });
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert(call.has_length);
    ck_assert_uint_eq(call.length, 5);
    ck_assert_uint_eq(call.bodies, 0);
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

SUITE(upstream_exchange)
{
    Suite *suite = suite_create("upstream/exchange");
    CASE_LOOP(suite, every_way_in_which_an_exchange_ends_is_told_and_sends_once, ROWS);
    CASE_LOOP(suite, every_way_in_which_an_exchange_ends_with_an_empty_body_is_told_and_sends_once, ROWS);
    CASE(suite, the_request_arrives_byte_for_byte);
    CASE(suite, an_answer_before_a_large_command_was_written_is_garbage);
    CASE(suite, a_reset_while_a_large_command_is_written_is_a_reset);
    CASE(suite, a_body_that_ends_by_close_is_complete_where_that_is_allowed);
    CASE(suite, an_answer_to_head_has_a_length_and_no_body);
    return suite;
}
