/* exchange_test.c - requests and answers on one connection: bodies, framing, order. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

START_TEST(one_connection_carries_many_exchanges)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    for (int i = 0; i < 20; i++) {
        client_ask(&client, "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST", 200, "hello");
    }
    client_ask(&client, GET("/whole"), "GET", 200, "");
    stage_wait(&stage, "gone delivered", 21);
    ck_assert_uint_eq(stage_count(&stage, "whole 5"), 20);
    stage_call(&stage, stage_count_edge);
    ck_assert_uint_eq(stage.connections, 1);
    ck_assert_uint_eq(stage.requests, 0);
    ck_assert_str_eq(stage.last_peer, "127.0.0.1 loopback");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1"
                         "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n2"
                         "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n");
    client_ask(&client, "", "POST", 200, "1");
    stage_wait(&stage, "head /park", 1);
    stage_wait(&stage, "whole 1", 2);
    stage_call(&stage, stage_answer_parked);
    client_ask(&client, "", "POST", 200, "parked\n");
    client_ask(&client, "", "POST", 200, "3");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const struct {
    const char *request, *event, *body;
    int status;
} bodies[] = {
    { "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "whole 0", "", 200 },
    { "POST /whole HTTP/1.1\r\nHost: h\r\n\r\n", "whole 0", "", 200 },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "whole 3", "abc", 200 },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: "
      "t\r\n\r\n",
      "whole 7", "abcdefg", 200 },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "whole 0", "", 200 },
    { "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "last", "received 3\n", 200 },
    { "POST /up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", "last",
      "received 7\n", 200 },
    { "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "last", "received 0\n", 200 },
};

START_TEST(a_body_arrives_whole_in_either_framing_and_the_connection_stays_in_step)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, bodies[_i].request, "POST", bodies[_i].status, bodies[_i].body);
    ck_assert_uint_eq(stage_count(&stage, bodies[_i].event), 1);
    client_ask(&client, GET("/whole"), "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_body_that_drips_byte_by_byte_is_the_same_body)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    const char *text =
        "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    for (size_t i = 0; i < strlen(text); i++) {
        client_send_bytes(&client, text + i, 1);
    }
    client_ask(&client, "", "POST", 200, "abcdefg");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static void send_chunked(struct client *client, size_t chunks, bool end)
{
    char chunk[5 + 256 + 2 + 1];
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "100\r\n", 5);
    memcpy(chunk + 5 + 256, "\r\n", 3);
    client_send(client, "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < chunks; i++) {
        client_send(client, chunk);
    }
    client_send(client, end ? "0\r\n\r\n" : "");
}

START_TEST(a_chunked_body_of_the_limit_is_taken_and_one_over_it_is_too_large_in_step)
{
    struct stage stage;
    struct client client;
    struct edge_options options = { .connections_max = 10, .client_idle_ms = 60000, .body_max = 1024 };
    stage_start_with(&stage, &options);
    client_connect(&client, &stage);
    struct answer answer;
    send_chunked(&client, 4, true);
    client_read(&client, "POST", &answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_eq(answer.body.len, 1024);
    answer_fini(&answer);
    send_chunked(&client, 5, true);
    client_ask(&client, "", "POST", 413, "too large\n");
    client_ask(&client, GET("/whole"), "GET", 200, "");
    stage_wait(&stage, "gone delivered", 3);
    ck_assert_uint_eq(stage_count(&stage, "too_large"), 1);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_endless_chunked_body_gets_its_413_without_an_end_and_the_connection_closes)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    send_chunked(&client, 2000, false); /* 500 KiB: far over body_max and what is thrown away */
    client_ask(&client, "", "POST", 413, "too large\n");
    ck_assert(client_sees_end(&client));
    stage_wait(&stage, "gone delivered", 1);
    ck_assert_uint_eq(stage_count(&stage, "too_large"), 1);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_answer_at_the_head_leaves_the_body_unread_and_the_pipelined_request_unseen)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /at-head HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" GET("/whole?canary"));
    struct answer answer;
    client_read(&client, "POST", &answer);
    ck_assert_int_eq(answer.status, 403);
    ck_assert(answer_has(&answer, "Connection: close"));
    ck_assert(client_sees_end(&client));
    stage_wait(&stage, "gone delivered", 1);
    ck_assert_uint_eq(stage_count(&stage, "head /whole?canary"), 0);
    answer_fini(&answer);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_answer_at_the_head_reaches_a_client_that_goes_on_sending)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /at-head HTTP/1.1\r\nHost: h\r\nContent-Length: 600000\r\n\r\n");
    static char bytes[600000];
    client_send_bytes(&client, bytes, sizeof bytes);
    client_ask(&client, "", "POST", 403, "no\n");
    ck_assert(client_sees_end(&client));
    ck_assert_msg(!client.reset, "a reset can throw away an answer that was not read yet");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(expect_100_continue_is_answered_only_when_the_head_was_not_refused)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    client_read_head(&client, &answer);
    ck_assert_int_eq(answer.status, 100);
    answer_fini(&answer);
    client_ask(&client, "hi", "POST", 200, "hi");
    client_send(&client, "POST /at-head HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    client_read_head(&client, &answer);
    ck_assert_int_eq(answer.status, 403);
    answer_fini(&answer);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_http_1_0_client_gets_its_answer_and_the_end)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, "POST /whole HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", "POST", 200, "hi");
    ck_assert(client_sees_end(&client));
    client_close(&client);
    client_connect(&client, &stage);
    client_ask(&client, "GET /down?size=30 HTTP/1.0\r\n\r\n", "GET", 200, "abcdefghijklmnopqrstuvwxyzabcd");
    client_close(&client);
    stage_wait(&stage, "gone delivered", 2);
    stage_stop(&stage);
}
END_TEST

START_TEST(blanks_around_a_value_are_trimmed_and_the_raw_target_is_kept)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, "GET /whole/%41//b?x=%42&y=a+b HTTP/1.1\r\nHost: h\r\nX-Note: \t a b \t \r\n\r\n", "GET", 200,
               "");
    ck_assert_uint_eq(stage_count(&stage, "head /whole/%41//b?x=%42&y=a+b"), 1);
    ck_assert_uint_eq(stage_count(&stage, "note [a b]"), 1);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_request_line_without_a_target_harms_nothing)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    struct answer answer;
    client_send(&client, "GET\r\n\r\n");
    client_read(&client, "GET", &answer);
    answer_fini(&answer);
    client_close(&client);
    client_connect(&client, &stage);
    client_ask(&client, GET("/whole"), "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const struct {
    const char *request, *method, *line; /* a line that the head must have, NULL: no length may be announced */
    int status;
    bool stays;
} bodyless[] = {
    { "HEAD /status?code=200&length=123 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", "Content-Length: 123\r\n", 200, true },
    { "HEAD /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody", "HEAD", "Content-Length: 4\r\n", 200, true },
    { "HEAD /status?code=200&length=0 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", "Content-Length: 0\r\n", 200, true },
    { "HEAD /status?code=200 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", NULL, 200, false },
    { "HEAD /down?size=0 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", NULL, 200, false },
    { "HEAD /down?size=0&length=77 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", "Content-Length: 77\r\n", 200, true },
    { "GET /status?code=204 HTTP/1.1\r\nHost: h\r\n\r\n", "GET", NULL, 204, true },
    { "GET /status?code=304&length=99 HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "Content-Length: 99\r\n", 304, true },
    { "GET /status?code=304 HTTP/1.1\r\nHost: h\r\n\r\n", "GET", NULL, 304, false },
    /* The one length that libmicrohttpd takes for "not known". */
    { "HEAD /status?code=200&length=18446744073709551615 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", NULL, 200, false },
    { "HEAD /down?size=0&length=18446744073709551615 HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD", NULL, 200, false },
    { "GET /status?code=304&length=18446744073709551615 HTTP/1.1\r\nHost: h\r\n\r\n", "GET", NULL, 304, false },
    { "GET /down?size=0&length=0 HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "Content-Length: 0\r\n", 200, true },
};

START_TEST(an_answer_without_a_body_leaves_the_connection_in_step_or_ends_it)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, bodyless[_i].request);
    client_read(&client, bodyless[_i].method, &answer);
    ck_assert_int_eq(answer.status, bodyless[_i].status);
    if (bodyless[_i].line != NULL) {
        ck_assert_msg(answer_has(&answer, bodyless[_i].line), "%s", answer.head);
    } else {
        ck_assert_msg(!answer_has(&answer, "Content-Length:"), "%s", answer.head);
    }
    ck_assert_msg(!answer_has(&answer, "Transfer-Encoding:"), "%s", answer.head);
    answer_fini(&answer);
    if (bodyless[_i].stays) {
        client_ask(&client, GET("/whole"), "GET", 200, "");
    } else {
        ck_assert(client_sees_end(&client));
    }
    stage_wait(&stage, "gone delivered", bodyless[_i].stays ? 2 : 1);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_field_that_cannot_be_sent_becomes_a_bare_500)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, GET("/bad-field"), "GET", 500, "");
    stage_wait(&stage, "gone delivered", 1);
    ck_assert(!stage.last_reply_good);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

/* docs/facts.md 27: head in and head out share a pool. */
static const struct {
    unsigned header_lines, header_bytes;
    const char *target;
    int status;
} heads[] = {
    { 8, 1000, "/fields?size=6144", 200 }, /* 8 KiB in, 6 KiB out */
    { 16, 500, "/fields?size=6144", 200 }, { 95, 20, "/fields?size=6144", 200 },
    { 2, 100, "/fields?size=12000", 200 }, { 8, 1000, "/fields?size=12000", 500 }, /* does not fit: told, not mute */
    { 95, 60, "/fields?size=6144", 431 },  /* refused by us before the handler ran */
    { 95, 100, "/fields?size=6144", 431 }, /* refused by libmicrohttpd */
};

START_TEST(large_heads_in_and_out_are_answered_or_refused_but_never_met_with_silence)
{
    struct stage stage;
    struct client client, other;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_printf(&text, "GET %s HTTP/1.1\r\nHost: h\r\n", heads[_i].target);
    for (unsigned i = 0; i < heads[_i].header_lines; i++) {
        buf_printf(&text, "X-H%03u: %0*u\r\n", i, (int) heads[_i].header_bytes, i);
    }
    buf_append_text(&text, "\r\n");
    client_send_bytes(&client, text.ptr, text.len);
    client_read(&client, "GET", &answer);
    ck_assert_int_eq(answer.status, heads[_i].status);
    if (heads[_i].status == 431) {
        client_connect(&other, &stage); /* its gone() comes after the first one's would have */
        client_ask(&other, GET("/whole"), "GET", 200, "");
        client_close(&other);
    }
    stage_wait(&stage, "gone delivered", 1);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 1);
    answer_fini(&answer);
    buf_fini(&text);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

/* What was read ahead sits in the same pool as the heads. */
static const char *const firsts[] = { "POST /fields?size=6144 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
                                      "POST /up-slow HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n" };

START_TEST(a_deep_pipeline_behind_a_request_leaves_room_for_its_answer)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    static char body[20000];
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, firsts[_i]);
    client_send_bytes(&client, body, _i == 0 ? 0 : sizeof body);
    for (int i = 0; i < 400; i++) {
        client_send(&client, GET("/whole"));
    }
    for (int i = 0; _i == 1 && i < 200; i++) {
        stage_allow(&stage, 100); /* 200 pauses: the read buffer grows at each */
    }
    for (int i = 0; i < 401; i++) {
        client_read(&client, "GET", &answer);
        ck_assert_int_eq(answer.status, 200);
        answer_fini(&answer);
    }
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

SUITE(edge_exchange)
{
    Suite *suite = suite_create("edge/exchange");
    CASE(suite, one_connection_carries_many_exchanges);
    CASE(suite, pipelined_requests_are_answered_in_order);
    CASE_LOOP(suite, a_body_arrives_whole_in_either_framing_and_the_connection_stays_in_step,
              sizeof bodies / sizeof bodies[0]);
    CASE(suite, a_body_that_drips_byte_by_byte_is_the_same_body);
    CASE(suite, a_chunked_body_of_the_limit_is_taken_and_one_over_it_is_too_large_in_step);
    CASE(suite, an_endless_chunked_body_gets_its_413_without_an_end_and_the_connection_closes);
    CASE(suite, an_answer_at_the_head_leaves_the_body_unread_and_the_pipelined_request_unseen);
    CASE(suite, an_answer_at_the_head_reaches_a_client_that_goes_on_sending);
    CASE(suite, expect_100_continue_is_answered_only_when_the_head_was_not_refused);
    CASE(suite, an_http_1_0_client_gets_its_answer_and_the_end);
    CASE(suite, blanks_around_a_value_are_trimmed_and_the_raw_target_is_kept);
    CASE(suite, a_request_line_without_a_target_harms_nothing);
    CASE_LOOP(suite, an_answer_without_a_body_leaves_the_connection_in_step_or_ends_it,
              sizeof bodyless / sizeof bodyless[0]);
    CASE(suite, a_field_that_cannot_be_sent_becomes_a_bare_500);
    CASE_LOOP(suite, large_heads_in_and_out_are_answered_or_refused_but_never_met_with_silence,
              sizeof heads / sizeof heads[0]);
    CASE_LOOP(suite, a_deep_pipeline_behind_a_request_leaves_room_for_its_answer, sizeof firsts / sizeof firsts[0]);
    return suite;
}
