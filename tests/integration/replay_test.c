/* replay_test.c - the main job over real sockets: one execution, and the recorded answer byte for byte (docs/contract.md sections 2 to 5, 10). */
#include "tests/support/rig.h"

#include <unistd.h>

#define ORDER "{\"item\":\"tea\",\"amount\":3}"

static const struct peer_step answer_order[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_SEND_BYTES,
      "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: /orders/7\r\nX-Custom: a\r\nX-Custom: b\r\n"
      "Link: </orders/7>; rel=\"self\"\r\nSet-Cookie: s=1\r\nServer-Timing: db;dur=1\r\nAge: 3\r\nX-Secret: s\r\n"
      "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nIdempotency-Status: lie\r\nIdempotent-Replayed: lie\r\nNonbis-Foo: x\r\n"
      "Content-Length: 13\r\n\r\n{\"id\":7,\0\xff\r\n}",
      333 },
    PEER_END,
};

static void expect_order(const struct http_answer *answer)
{
    ck_assert_int_eq(answer->status, 201);
    ck_assert(answer->whole);
    ck_assert_uint_eq(answer->body_len, 13);
    ck_assert_mem_eq(answer->body, "{\"id\":7,\0\xff\r\n}", 13);
    ck_assert(http_field_is(answer, "Location", "/orders/7"));
    ck_assert_int_eq(http_field_count(answer, "X-Custom"), 2);
    ck_assert_int_eq(http_field_count(answer, "Date"), 1);
    ck_assert_int_eq(http_field_count(answer, "Idempotency-Status"), 1);
    ck_assert_int_eq(http_field_count(answer, "Nonbis-Foo"), 0);
    ck_assert_int_eq(http_field_count(answer, "Link"), 2); /* the handler's, and ours */
    ck_assert_int_eq(http_field_count(answer, "Idempotency-Expires"), 1);
}

START_TEST(a_repeat_gets_the_recorded_answer_byte_for_byte_and_the_handler_runs_once)
{
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, answer_order);
    struct http_answer first = http_post(rig.address, "/orders?x=1", "k-1", ORDER);
    RIG_EXPECT(first, 201, "executed");
    expect_order(&first);
    ck_assert_int_eq(http_field_count(&first, "Idempotent-Replayed"), 0);
    ck_assert_int_eq(http_field_count(&first, "Set-Cookie"), 1);
    ck_assert(http_field_is(&first, "Date", "Sun, 06 Nov 1994 08:49:37 GMT"));
    for (int i = 0; i < 3; i++) {
        struct http_answer again = http_post(rig.address, "/orders?x=1", i == 1 ? "\"k-1\"" : "k-1", ORDER);
        RIG_EXPECT(again, 201, "replayed");
        expect_order(&again);
        ck_assert(http_field_is(&again, "Idempotent-Replayed", "true"));
        ck_assert_int_eq(http_field_count(&again, "Set-Cookie"), 0);
        ck_assert(!http_field_is(&again, "Date", "Sun, 06 Nov 1994 08:49:37 GMT")); /* a fresh one */
        ck_assert_int_eq(http_field_count(&again, "Server-Timing"), 0);
        ck_assert_int_eq(http_field_count(&again, "Age"), 0);
        http_answer_free(&again);
    }
    http_answer_free(&first);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

/* As the handler wrote it: behind a chunked request (contract 4.4), and where the client asks for the end. */
static const char *const closings[] = {
    "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
    "PUT /orders HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", /* passes through */
};

START_TEST(an_answer_behind_which_the_connection_closes_has_one_date)
{
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, answer_order);
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, closings[_i], strlen(closings[_i])));
    struct http_answer answer = http_receive(fd, false, NULL);
    ck_assert_int_eq(answer.status, 201);
    ck_assert_msg(http_field_count(&answer, "Date") == 1, "%s", answer.head);
    ck_assert(http_field_is(&answer, "Date", "Sun, 06 Nov 1994 08:49:37 GMT"));
    ck_assert(http_field_is(&answer, "Connection", "close"));
    ck_assert(answer.closed || http_closes(fd));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(a_replay_survives_a_restart)
{
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, answer_order);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(first, 201, "executed");
    daemon_kill(&rig.nonbis);
    rig_restart(&rig, NULL);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(again, 201, "replayed");
    expect_order(&again);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

struct reuse {
    const char *name, *method, *target, *fields, *body, *differs;
};
static const struct reuse reuses[] = {
    { "body", "POST", "/orders", "Content-Type: application/json\r\n", "{\"item\":\"tea\",\"amount\":4}",
      "\"differs\":[\"body\"]" },
    { "target", "POST", "/orders2", "Content-Type: application/json\r\n", ORDER, "\"differs\":[\"target\"]" },
    { "query", "POST", "/orders?a", "Content-Type: application/json\r\n", ORDER, "\"differs\":[\"target\"]" },
    { "method", "PATCH", "/orders", "Content-Type: application/json\r\n", ORDER, "\"differs\":[\"method\"]" },
    { "content-type", "POST", "/orders", "Content-Type: text/plain\r\n", ORDER, "\"differs\":[\"content-type\"]" },
    { "content-encoding", "POST", "/orders", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", ORDER,
      "\"differs\":[\"content-encoding\"]" },
    { "several", "PATCH", "/orders", "Content-Type: application/json\r\n", "x", "\"differs\":[\"method\",\"body\"]" },
    { "credential", "POST", "/orders", "Content-Type: application/json\r\nAuthorization: Bearer other\r\n", ORDER,
      "\"differs\":[\"credentials\"]" },
    { "credential and body", "POST", "/orders", "Content-Type: application/json\r\nX-API-Key: other\r\n", "x",
      "\"differs\":[\"credentials\"]" },
};

START_TEST(a_key_with_another_payload_is_refused_and_told_what_differs)
{
    const struct reuse *row = &reuses[_i];
    struct rig rig;
    char fields[256];
    rig_start(&rig, NULL);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(first, 200, "executed");
    (void) snprintf(fields, sizeof fields, "%sIdempotency-Key: k-1\r\n", row->fields);
    struct http_answer other = http_request(rig.address, row->method, row->target, fields, row->body);
    RIG_EXPECT(other, 422, "refused");
    ck_assert_msg(strstr(other.body, row->differs) != NULL, "%s: %s", row->name, other.body);
    ck_assert_ptr_nonnull(strstr(other.body, "\"type\":\"urn:nonbis:problem:key-reused\""));
    ck_assert_ptr_null(strstr(other.body, "\"executed\""));
    bool credentials = strstr(row->differs, "credentials") != NULL;
    ck_assert_int_eq(http_field_count(&other, "Link"), credentials ? 0 : 1);
    ck_assert_int_eq(http_field_count(&other, "Idempotency-Expires"), credentials ? 0 : 1);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&other);
    rig_end(&rig);
}
END_TEST

struct key_row {
    const char *lines;
    int status;
    const char *problem;
};
static const struct key_row bad_keys[] = {
    { "", 400, "key-missing" },
    { "Idempotency-Key:\r\n", 400, "key-malformed" },
    { "Idempotency-Key:   \r\n", 400, "key-malformed" },
    { "Idempotency-Key: \"\"\r\n", 400, "key-malformed" },
    { "Idempotency-Key: a b\r\n", 400, "key-malformed" },
    { "Idempotency-Key: \"a\r\n", 400, "key-malformed" },
    { "Idempotency-Key: a\"\r\n", 400, "key-malformed" },
    { "Idempotency-Key: \"a\" b\r\n", 400, "key-malformed" },
    { "Idempotency-Key: caf\xc3\xa9\r\n", 400, "key-malformed" },
    { "Idempotency-Key: a\r\nIdempotency-Key: a\r\n", 400, "key-malformed" },
    { "Idempotency-Key: a\r\nidempotency-key: b\r\n", 400, "key-malformed" },
};

START_TEST(a_missing_or_malformed_key_is_refused_and_nothing_is_forwarded)
{
    struct rig rig;
    rig_start(&rig, NULL);
    for (size_t i = 0; i < sizeof bad_keys / sizeof bad_keys[0]; i++) {
        struct http_answer answer = http_request(rig.address, "POST", "/orders", bad_keys[i].lines, ORDER);
        ck_assert_msg(answer.status == bad_keys[i].status && strstr(answer.body, bad_keys[i].problem) != NULL,
                      "row %zu: %d %s", i, answer.status, answer.body);
        ck_assert_ptr_nonnull(strstr(answer.body, "\"executed\":\"unknown\""));
        ck_assert_int_eq(http_field_count(&answer, "Idempotency-Status"),
                         strcmp(bad_keys[i].problem, "key-missing") == 0 ? 0 : 1);
        http_answer_free(&answer);
    }
    char long_key[300];
    memset(long_key, 'k', sizeof long_key);
    long_key[255] = '\0';
    struct http_answer longest = http_post(rig.address, "/orders", long_key, ORDER);
    RIG_EXPECT(longest, 200, "executed");
    long_key[255] = 'k';
    long_key[256] = '\0';
    struct http_answer over = http_post(rig.address, "/orders", long_key, ORDER);
    RIG_EXPECT(over, 400, "refused");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&longest);
    http_answer_free(&over);
    rig_end(&rig);
}
END_TEST

struct class_row {
    const char *name, *answer;
    int status;
    const char *word, *again_word; /* of the answer, and of a repeat */
    int again_status;
    unsigned executions; /* counted at the handler after the repeat */
};
static const struct class_row classes[] = {
    { "200 is completed", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "executed", "replayed", 200, 1 },
    { "404 is completed", "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", 404, "executed", "replayed", 404, 1 },
    { "500 is completed", "HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\nx", 500, "executed", "replayed", 500, 1 },
    { "204 is completed", "HTTP/1.1 204 None\r\n\r\n", 204, "executed", "replayed", 204, 1 },
    { "chunked is completed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200,
      "executed", "replayed", 200, 1 },
    { "100 then 200", "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "executed",
      "replayed", 200, 1 },
    { "401 is released", "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", 401, "not-executed",
      "not-executed", 401, 2 },
    { "425 is released", "HTTP/1.1 425 Early\r\nContent-Length: 0\r\n\r\n", 425, "not-executed", "not-executed", 425,
      2 },
    { "429 is released", "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 429, "not-executed", "not-executed", 429,
      2 },
    { "503 with Retry-After is released", "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", 503,
      "not-executed", "not-executed", 503, 2 },
    { "503 without is unknown", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, "unknown", "unknown", 504, 1 },
    { "408 is unknown", "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n", 408, "unknown", "unknown", 504, 1 },
    { "502 is unknown", "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", 502, "unknown", "unknown", 504, 1 },
    { "504 is unknown", "HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n", 504, "unknown", "unknown", 504, 1 },
    { "the handler says not-executed", "HTTP/1.1 500 No\r\nNonbis-Outcome: Not-Executed\r\nContent-Length: 0\r\n\r\n",
      500, "not-executed", "not-executed", 500, 2 },
    { "the handler says completed", "HTTP/1.1 503 No\r\nNonbis-Outcome: completed\r\nContent-Length: 0\r\n\r\n", 503,
      "executed", "replayed", 503, 1 },
    { "the handler says unknown", "HTTP/1.1 200 OK\r\nNonbis-Outcome: unknown\r\nContent-Length: 0\r\n\r\n", 200,
      "unknown", "unknown", 504, 1 },
    { "the handler contradicts itself",
      "HTTP/1.1 200 OK\r\nNonbis-Outcome: completed\r\nNonbis-Outcome: not-executed\r\nContent-Length: 0\r\n\r\n", 200,
      "unknown", "unknown", 504, 1 },
};

START_TEST(what_a_complete_answer_proves_decides_the_repeat)
{
    const struct class_row *row = &classes[_i];
    const struct peer_step script[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, row->answer, 0 }, PEER_END };
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, script);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(first, row->status, row->word);
    ck_assert_int_eq(http_field_count(&first, "Nonbis-Outcome"), 0);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(again, row->again_status, row->again_word);
    if (row->again_status == 504) {
        ck_assert_ptr_nonnull(strstr(again.body, "outcome-unknown"));
        ck_assert_ptr_nonnull(strstr(again.body, "\"executed\":\"unknown\""));
        ck_assert_int_eq(http_field_count(&again, "Retry-After"), 0);
        ck_assert_int_eq(http_field_count(&again, "Link"), 1);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), row->executions);
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

static const char *request_line_of(struct buf *request, const char *name, char *value, size_t size)
{
    buf_append_bytes(request, "", 1);
    struct http_answer as_answer = { .head = request->ptr };
    return http_field(&as_answer, name, value, size) ? value : NULL;
}

START_TEST(the_handler_gets_the_request_as_received_and_what_nonbis_adds)
{
    struct rig rig;
    char value[256];
    char id_first[64];
    rig_start(&rig, NULL);
    static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                             PEER_END };
    peer_script_for_request(rig.peer, 1, busy);
    for (int i = 1; i <= 2; i++) {
        struct http_answer answer = http_request(
            rig.address, "POST", "/a%7Eb//c/?q=%20",
            "Idempotency-Key: \"k-1\"\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: timeout=9\r\n"
            "Nonbis-Command-Id: forged\r\nNonbis-Execution: 99\r\nX-Forwarded-For: 6.6.6.6\r\n"
            "traceparent: 00-1-2-01\r\nVia: 1.0 before\r\n",
            ORDER);
        ck_assert_int_eq(answer.status, i == 1 ? 429 : 200);
        http_answer_free(&answer);
        struct buf request;
        buf_init(&request, 1 << 20);
        ck_assert(peer_request(rig.peer, (unsigned) i, &request));
        ck_assert_str_eq(request_line_of(&request, "Nonbis-Execution", value, sizeof value), i == 1 ? "1" : "2");
        ck_assert_ptr_nonnull(strstr(request.ptr, "POST /a%7Eb//c/?q=%20 HTTP/1.1\r\n"));
        ck_assert_str_eq(request_line_of(&request, "Host", value, sizeof value), "test.example");
        ck_assert_str_eq(request_line_of(&request, "Idempotency-Key", value, sizeof value), "\"k-1\"");
        ck_assert_str_eq(request_line_of(&request, "traceparent", value, sizeof value), "00-1-2-01");
        ck_assert_str_eq(request_line_of(&request, "X-Forwarded-For", value, sizeof value), "127.0.0.1");
        ck_assert_str_eq(request_line_of(&request, "X-Forwarded-Proto", value, sizeof value), "http");
        ck_assert_str_eq(request_line_of(&request, "X-Forwarded-Host", value, sizeof value), "test.example");
        ck_assert(strncmp(request_line_of(&request, "Via", value, sizeof value), "1.0 before, 1.1 nonbis-", 23) == 0);
        ck_assert_ptr_null(request_line_of(&request, "X-Hop", value, sizeof value));
        ck_assert_ptr_null(request_line_of(&request, "TE", value, sizeof value));
        ck_assert_ptr_null(request_line_of(&request, "Keep-Alive", value, sizeof value));
        ck_assert_ptr_nonnull(request_line_of(&request, "Nonbis-Command-Id", value, sizeof value));
        ck_assert_uint_eq(strlen(value), 32);
        if (i == 1) {
            (void) snprintf(id_first, sizeof id_first, "%.63s", value);
        } else {
            ck_assert_str_eq(value, id_first); /* the command keeps its id over executions */
        }
        buf_fini(&request);
    }
    rig_end(&rig);
}
END_TEST

START_TEST(a_request_that_passed_here_before_is_a_loop)
{
    struct rig rig;
    char value[256];
    char fields[512];
    rig_start(&rig, NULL);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    struct buf request;
    buf_init(&request, 1 << 20);
    ck_assert(peer_request(rig.peer, 1, &request));
    ck_assert_ptr_nonnull(request_line_of(&request, "Via", value, sizeof value));
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: k-2\r\nVia: %s\r\n", value);
    struct http_answer looped = http_request(rig.address, "POST", "/orders", fields, ORDER);
    RIG_EXPECT(looped, 508, "");
    ck_assert(http_field_is(&looped, "Nonbis-Outcome", "not-executed"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    buf_fini(&request);
    http_answer_free(&first);
    http_answer_free(&looped);
    rig_end(&rig);
}
END_TEST

START_TEST(a_response_over_the_limit_reaches_the_first_caller_whole_and_is_replayed_without_its_body)
{
    static const struct peer_step big[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 201 Created\r\nX-Tag: t\r\nContent-Length: 3000000\r\n\r\n", 0 },
        { PEER_SEND, "0123456789", 300000 },
        PEER_END
    };
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, big);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(first, 201, "executed");
    ck_assert(first.whole);
    ck_assert_uint_eq(first.body_len, 3000000);
    ck_assert_mem_eq(first.body + 2999990, "0123456789", 10);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(again, 201, "replayed");
    ck_assert_uint_eq(again.body_len, 0);
    ck_assert(http_field_is(&again, "Nonbis-Body", "not-kept"));
    ck_assert(http_field_is(&again, "X-Tag", "t"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

START_TEST(a_response_over_the_limit_that_is_cut_is_seen_cut_and_is_unknown)
{
    static const struct peer_step big[] = { { PEER_BODY, NULL, 0 },
                                            { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 3000000\r\n\r\n", 0 },
                                            { PEER_SEND, "0123456789", 299999 },
                                            { PEER_CLOSE, NULL, 0 },
                                            PEER_END };
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, big);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", ORDER);
    ck_assert(!first.whole);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", ORDER);
    RIG_EXPECT(again, 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

SUITE(replay)
{
    Suite *suite = suite_create("integration/replay");
    CASE(suite, a_repeat_gets_the_recorded_answer_byte_for_byte_and_the_handler_runs_once);
    CASE_LOOP(suite, an_answer_behind_which_the_connection_closes_has_one_date, sizeof closings / sizeof closings[0]);
    CASE(suite, a_replay_survives_a_restart);
    CASE_LOOP(suite, a_key_with_another_payload_is_refused_and_told_what_differs, sizeof reuses / sizeof reuses[0]);
    CASE(suite, a_missing_or_malformed_key_is_refused_and_nothing_is_forwarded);
    CASE_LOOP(suite, what_a_complete_answer_proves_decides_the_repeat, sizeof classes / sizeof classes[0]);
    CASE(suite, the_handler_gets_the_request_as_received_and_what_nonbis_adds);
    CASE(suite, a_request_that_passed_here_before_is_a_loop);
    CASE(suite, a_response_over_the_limit_reaches_the_first_caller_whole_and_is_replayed_without_its_body);
    CASE(suite, a_response_over_the_limit_that_is_cut_is_seen_cut_and_is_unknown);
    return suite;
}
