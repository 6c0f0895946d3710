/* transport_answer_test.c - the answer as the libcurl transport hands it over: fields, body, bound, and whether it is whole. */
#include "tests/client/transport_probe.h"
#include "tests/peer/words.h"

#include <time.h>

/* `says` is what the peer sends, then it closes; the answer must come out as written here. */
static const struct row {
    const char *name, *says, *method; /* method NULL: POST */
    int code, status;
    bool head_whole, whole, by_close;
    const char *fields; /* all of them, "Name=value|" */
    const char *body;
} rows[] = {
    { .name = "length",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=2|",
      .body = "ok" },
    { .name = "no reason, lines that end with LF alone",
      .says = "HTTP/1.1 422\nContent-Length: 2\n\nno",
      .status = 422,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=2|",
      .body = "no" },
    { .name = "chunked, with a trailer that says otherwise",
      .says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nIdempotency-Status: executed\r\n\r\n2\r\nok\r\n"
              "0\r\nIdempotency-Status: refused\r\n\r\n",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Transfer-Encoding=chunked|Idempotency-Status=executed|",
      .body = "ok" },
    { .name = "chunked, cut in the trailer",
      .says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T",
      .code = 18,
      .status = 200,
      .head_whole = true,
      .fields = "Transfer-Encoding=chunked|",
      .body = "ok" },
    { .name = "interim answers",
      .says = "HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
              "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
      .status = 201,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=0|",
      .body = "" },
    { .name = "interim answer alone",
      .says = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
      .code = 52,
      .fields = "",
      .body = "" },
    { .name = "several lines of one field, one folded, one empty, blanks around",
      .says = "HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nX-Note:   one \r\n\t two\r\n   three  \r\nretry-after: 120\r\n"
              "X-Empty:\r\nContent-Length: 0\r\n\r\n",
      .status = 429,
      .head_whole = true,
      .whole = true,
      .fields = "Retry-After=3|X-Note=one  two three|retry-after=120|X-Empty=|Content-Length=0|",
      .body = "" },
    { .name = "no framing",
      .says = "HTTP/1.1 200 OK\r\n\r\nuntil the end",
      .status = 200,
      .head_whole = true,
      .by_close = true,
      .fields = "",
      .body = "until the end" },
    { .name = "HTTP/1.0, chunked all the same",
      .says = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Transfer-Encoding=chunked|",
      .body = "ok" },
    { .name = "204 with a length",
      .says = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
      .status = 204,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=5|",
      .body = "" },
    { .name = "304",
      .says = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
      .status = 304,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=5|",
      .body = "" },
    { .name = "HEAD",
      .method = "HEAD",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=5000|",
      .body = "" },
    { .name = "chunked and a length: chunked wins",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n",
      .code = 18,
      .status = 200,
      .head_whole = true,
      .fields = "Content-Length=7|Transfer-Encoding=gzip, Chunked|",
      .body = "" },
    { .name = "chunked and a length",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=7|Transfer-Encoding=chunked|",
      .body = "ok" },
    { .name = "two lengths that contradict each other",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
      .status = 200,
      .head_whole = true,
      .fields = "Content-Length=2|Content-Length=3|",
      .body = "okk" },
    { .name = "one length said twice",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=2|Content-Length=2|",
      .body = "ok" },
    { .name = "a list of lengths",
      .says = "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
      .status = 200,
      .head_whole = true,
      .fields = "Content-Length=2, 3|",
      .body = "ok" },
    { .name = "a coding that is none",
      .says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok",
      .status = 200,
      .head_whole = true,
      .fields = "Transfer-Encoding=identity|",
      .body = "ok" },
    { .name = "cut behind the status line", .says = "HTTP/1.1 200 OK\r\n", .status = 200, .fields = "", .body = "" },
    { .name = "a compressed body is left as it is",
      .says = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8bz",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Encoding=gzip|Content-Length=3|",
      .body = "\x1f\x8bz" },
    { .name = "a redirect is an answer",
      .says = "HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
      .status = 307,
      .head_whole = true,
      .whole = true,
      .fields = "Location=/elsewhere|Content-Length=0|",
      .body = "" },
    { .name = "so is 417",
      .says = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
      .status = 417,
      .head_whole = true,
      .whole = true,
      .fields = "Content-Length=0|",
      .body = "" },
    { .name = "so is 401",
      .says = "HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
      .status = 401,
      .head_whole = true,
      .whole = true,
      .fields = "WWW-Authenticate=Basic realm=\"x\"|Content-Length=0|",
      .body = "" },
    { .name = "a cookie is a field like others",
      .says = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
      .status = 200,
      .head_whole = true,
      .whole = true,
      .fields = "Set-Cookie=a=b|Content-Length=0|",
      .body = "" },
};

static void fields_write(const struct answer *answer, struct buf *out)
{
    const char *name = NULL, *value = NULL;
    for (size_t i = 0; answer_field_at(answer, i, &name, &value); i++) {
        buf_append_text(out, name);
        buf_append_text(out, "=");
        buf_append_text(out, value);
        buf_append_text(out, "|");
    }
    buf_append_bytes(out, "", 1);
}

START_TEST(an_answer_comes_out_as_it_was_framed)
{
    const struct row *row = &rows[_i];
    const struct peer_step steps[] = { DO(PEER_BODY), SAY(row->says), DO(PEER_CLOSE), PEER_END };
    struct probe probe;
    struct buf fields;
    probe_open(&probe);
    peer_script_default(probe.peer, steps);
    if (row->method != NULL) {
        probe.request.method = row->method;
        probe.request.has_body = false;
    }
    probe_send(&probe);
    const struct answer *answer = &probe.facts.answer;
    buf_init(&fields, 1 << 16);
    fields_write(answer, &fields);
    ck_assert_msg(probe.facts.code == row->code, "%s: code %d, %s", row->name, probe.facts.code, probe.facts.message);
    ck_assert_msg(answer->status == row->status, "%s: status %d", row->name, answer->status);
    ck_assert_msg(answer->head_whole == row->head_whole, "%s: head", row->name);
    ck_assert_msg(answer->whole == row->whole, "%s: whole", row->name);
    ck_assert_msg(answer->by_close == row->by_close, "%s: by close", row->name);
    ck_assert_msg(answer->body_kept, "%s: kept", row->name);
    ck_assert_msg(strcmp(fields.ptr, row->fields) == 0, "%s: fields %s", row->name, fields.ptr);
    ck_assert_msg(view_equal(buf_view(&answer->body), view_of(row->body)), "%s: body %.*s", row->name,
                  VIEW_ARGS(buf_view(&answer->body)));
    ck_assert_msg((probe.facts.message[0] == '\0') == (row->whole || row->by_close), "%s: it says \"%s\"", row->name,
                  probe.facts.message);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    buf_fini(&fields);
    probe_close(&probe);
}
END_TEST

START_TEST(a_body_over_the_bound_is_read_to_its_end_and_kept_up_to_it)
{
    static const struct {
        size_t len;
        bool kept;
    } cases[] = { { 0, true },
                  { PROBE_BODY_MAX - 1, true },
                  { PROBE_BODY_MAX, true },
                  { PROBE_BODY_MAX + 1, false },
                  { 3000000, false } };
    size_t len = cases[_i].len;
    char head[100];
    const struct peer_step steps[] = { DO(PEER_BODY), SAY(head), { PEER_SEND_PATTERN, NULL, len }, PEER_END };
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    (void) snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
    peer_script_default(probe.peer, steps);
    for (int i = 0; i < 2; i++) {
        probe_send(&probe);
        const struct answer *answer = &probe.facts.answer;
        ck_assert_str_eq(probe.facts.message, "");
        ck_assert(answer->whole);
        ck_assert(answer->body_kept == cases[_i].kept);
        ck_assert_uint_eq(answer->body.len, cases[_i].kept ? len : PROBE_BODY_MAX);
        ck_assert(peer_pattern_matches(answer->body.ptr, answer->body.len, 0));
    }
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1); /* read to the end, so that it can be kept */
    probe_close(&probe);
}
END_TEST

/* Larger than we keep, smaller than what libcurl refuses by itself (300 KiB). */
START_TEST(a_head_that_is_too_large_is_no_answer)
{
    static const char line[] = "X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n";
    static const struct peer_step steps[] = {
        DO(PEER_BODY), SAY("HTTP/1.1 200 OK\r\n"), { PEER_SEND, line, 3400 }, SAY("Content-Length: 0\r\n\r\n"), PEER_END
    };
    struct probe probe;
    probe_open(&probe);
    peer_script_default(probe.peer, steps);
    probe_send(&probe);
    ck_assert_int_ne(probe.facts.code, 0);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert(!probe.facts.answer.head_whole);
    ck_assert(!probe.facts.answer.whole);
    ck_assert_msg(strstr(probe.facts.message, "its head is larger than 262144 bytes") != NULL, "it says \"%s\"",
                  probe.facts.message);
    probe_close(&probe);
}
END_TEST

/* libcurl keeps every trailer line until the next exchange; the answer has come, but nobody can say that it is whole. Lines of 64
 * bytes. */
static const struct {
    const char *line;
    unsigned count;
    bool whole;
} trailers[] = {
    { "X-Filler: 0123456789012345678901234567890123456789012345678901\r\n", 4096, true },
    { "X-Filler: 0123456789012345678901234567890123456789012345678901\r\n", 4097, false },
    { "a:\r\n", 100000000, false },
};

START_TEST(trailers_without_end_are_no_end_of_an_answer)
{
    const struct peer_step steps[] = { DO(PEER_BODY),
                                       SAY("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"),
                                       { PEER_SEND, trailers[_i].line, trailers[_i].count },
                                       SAY("\r\n"),
                                       DO(PEER_WAIT_END),
                                       PEER_END };
    struct probe probe;
    probe_open(&probe);
    peer_script_default(probe.peer, steps);
    probe_send(&probe);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert(probe.facts.answer.head_whole);
    ck_assert(probe.facts.answer.whole == trailers[_i].whole);
    ck_assert_msg((strstr(probe.facts.message, "its trailers are larger than 262144 bytes") == NULL) ==
                      trailers[_i].whole,
                  "it says \"%s\"", probe.facts.message);
    probe_close(&probe);
}
END_TEST

START_TEST(nothing_of_an_earlier_answer_is_left_in_the_next_one)
{
    static const struct peer_step first[] = {
        DO(PEER_BODY), SAY("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"), PEER_END
    };
    struct probe probe;
    probe_open(&probe);
    peer_script_for_request(probe.peer, 1, first);
    probe_send(&probe);
    ck_assert_str_eq(answer_field(&probe.facts.answer, "Retry-After"), "7");
    probe_send(&probe);
    ck_assert_ptr_null(answer_field(&probe.facts.answer, "Retry-After"));
    ck_assert_int_eq(probe.facts.answer.status, 200);
    ck_assert_uint_eq(probe.facts.answer.body.len, 2);
    peer_refuse(probe.peer);
    probe.request.fresh = true;
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.answer.status, 0);
    ck_assert_uint_eq(probe.facts.answer.body.len, 0);
    ck_assert_uint_eq(probe.facts.bytes_sent, 0);
    ck_assert_uint_eq(probe.facts.hook_calls, 0);
    probe_close(&probe);
}
END_TEST

START_TEST(the_moment_of_the_head_is_told_on_the_wall_clock)
{
    struct probe probe;
    struct timespec before, after;
    probe_open(&probe);
    clock_gettime(CLOCK_REALTIME, &before);
    probe_send(&probe);
    clock_gettime(CLOCK_REALTIME, &after);
    ck_assert_int_ge(probe.facts.arrived_wall_ms, (int64_t) before.tv_sec * 1000 + before.tv_nsec / 1000000);
    ck_assert_int_le(probe.facts.arrived_wall_ms, (int64_t) after.tv_sec * 1000 + after.tv_nsec / 1000000);
    probe_close(&probe);
}
END_TEST

SUITE(transport_answer)
{
    Suite *suite = suite_create("client/transport_answer");
    CASE_LOOP(suite, an_answer_comes_out_as_it_was_framed, sizeof rows / sizeof rows[0]);
    CASE_LOOP(suite, a_body_over_the_bound_is_read_to_its_end_and_kept_up_to_it, 5);
    CASE(suite, a_head_that_is_too_large_is_no_answer);
    CASE_LOOP(suite, trailers_without_end_are_no_end_of_an_answer, sizeof trailers / sizeof trailers[0]);
    CASE(suite, nothing_of_an_earlier_answer_is_left_in_the_next_one);
    CASE(suite, the_moment_of_the_head_is_told_on_the_wall_clock);
    return suite;
}
