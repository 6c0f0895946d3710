/* s03b_fingerprint_test.c - docs/contract.md section 3, 3.7 to 3.10: what makes a payload the same. */
#include "tests/contract/scene.h"

#include <unistd.h>

/* A POST with this key, written out: "{key}" is where the key's line belongs. */
static const struct http_answer *post_bytes(const char *request_line, const char *fields, const char *key,
                                            const char *rest)
{
    const char *bytes = text("%s HTTP/1.1\r\n%sIdempotency-Key: %s\r\n%s", request_line, fields, key, rest);
    return ask_raw(bytes, strlen(bytes));
}

#define HOST "Host: test.example\r\n"
#define BODY "Content-Length: 2\r\n\r\nok"

struct payload_row {
    const char *request_line, *fields, *rest;
    const char *differs; /* from the first row */
};
static const struct payload_row payloads[] = {
    { "POST /orders?a=1", HOST "Content-Type: a/b\r\n", BODY, NULL },
    { "PATCH /orders?a=1", HOST "Content-Type: a/b\r\n", BODY, "[\"method\"]" },
    { "POST /orders?a=1", "Host: test.example:80\r\nContent-Type: a/b\r\n", BODY, "[\"authority\"]" },
    { "POST /orders?a=1", "Host: Test.example\r\nContent-Type: a/b\r\n", BODY, "[\"authority\"]" },
    { "POST /orders?a=2", HOST "Content-Type: a/b\r\n", BODY, "[\"target\"]" },
    { "POST /orders?a=1&", HOST "Content-Type: a/b\r\n", BODY, "[\"target\"]" },
    { "POST /orders", HOST "Content-Type: a/b\r\n", BODY, "[\"target\"]" },
    { "POST /orders/?a=1", HOST "Content-Type: a/b\r\n", BODY, "[\"target\"]" },
    { "POST /order%73?a=1", HOST "Content-Type: a/b\r\n", BODY, "[\"target\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/B\r\n", BODY, "[\"content-type\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/b;\r\n", BODY, "[\"content-type\"]" },
    { "POST /orders?a=1", HOST, BODY, "[\"content-type\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/b\r\nContent-Encoding: gzip\r\n", BODY, "[\"content-encoding\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/b\r\n", "Content-Length: 2\r\n\r\noK", "[\"body\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/b\r\n", "Content-Length: 3\r\n\r\nok\n", "[\"body\"]" },
    { "POST /orders?a=1", HOST "Content-Type: a/b\r\n", "Content-Length: 0\r\n\r\n", "[\"body\"]" },
    { "PATCH /orders", HOST "Content-Type: a/b\r\n", "Content-Length: 1\r\n\r\no", "[\"method\",\"target\",\"body\"]" },
    { "PATCH /x", "Host: b\r\nContent-Type: b\r\nContent-Encoding: b\r\n", "Content-Length: 1\r\n\r\nb",
      "[\"method\",\"authority\",\"target\",\"content-type\",\"content-encoding\",\"body\"]" },
};

START_TEST(rule_3_7_every_part_counts_and_a_refusal_names_those_that_differ)
{
    const char *key = text("3.7-%d", _i);
    const struct payload_row *first = &payloads[0], *row = &payloads[_i];
    EXPECT(post_bytes(first->request_line, first->fields, key, first->rest), 200, "executed");
    const struct http_answer *other = post_bytes(row->request_line, row->fields, key, row->rest);
    if (row->differs == NULL) {
        EXPECT(other, 200, "replayed");
    } else {
        EXPECT_PROBLEM(other, 422, "refused", "key-reused");
        ck_assert_str_eq(member_of(other, "differs"), row->differs);
        EXPECT_LACKS(other, "a/b"); /* never a stored value */
        EXPECT_LACKS(other, "a=1");
    }
    EXPECT_RUNS(key, 1);
}
END_TEST

START_TEST(rule_3_7_the_bytes_of_the_body_count_without_chunk_framing)
{
    static const char *const framings[] = {
        "Content-Length: 6\r\n\r\nabc\r\nd",
        "Transfer-Encoding: chunked\r\n\r\n6\r\nabc\r\nd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n005\r\nbc\r\nd\r\n0\r\nTrailer: t\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        EXPECT(post_bytes("POST /orders", HOST, "3.7-chunks", framings[i]), 200, i == 0 ? "executed" : "replayed");
    }
    EXPECT_RUNS("3.7-chunks", 1);
}
END_TEST

START_TEST(rule_3_7_an_absent_field_counts_as_empty)
{
    EXPECT(post_bytes("POST /orders", HOST, "3.7-absent", BODY), 200, "executed");
    EXPECT(post_bytes("POST /orders", HOST "Content-Type:\r\nContent-Encoding: \r\n", "3.7-absent", BODY), 200,
           "replayed");
    EXPECT(post_bytes("POST /orders", HOST "Content-Type:\r\n", "3.7-empty", BODY), 200, "executed");
    EXPECT(post_bytes("POST /orders", HOST, "3.7-empty", BODY), 200, "replayed");
}
END_TEST

START_TEST(rule_3_8_nothing_else_counts)
{
    static const char *const others[] = {
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "User-Agent: another/2\r\n",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n",
        "X-Request-Id: 2\r\nX-Correlation-Id: 3\r\n",
        "Accept: text/html\r\nAccept-Language: de\r\nCookie: a=b\r\n",
        "Content-Language: de\r\nContent-Disposition: inline\r\nForwarded: for=1.2.3.4\r\n",
        "Connection: close\r\n",
    };
    EXPECT(post_with("3.8", "User-Agent: one/1\r\n", "x"), 200, "executed");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        EXPECT(post_with("3.8", others[i], "x"), 200, "replayed");
    }
    EXPECT_RUNS("3.8", 1);
}
END_TEST

START_TEST(rule_3_9_a_target_in_absolute_form_is_brought_to_origin_form_and_forwarded_so)
{
    EXPECT(post_bytes("POST http://test.example/orders?q", HOST, "3.9", BODY), 200, "executed");
    ck_assert_str_eq(handler_saw_line(1), "POST /orders?q HTTP/1.1");
    EXPECT(post_bytes("POST /orders?q", HOST, "3.9", BODY), 200, "replayed");
    EXPECT(ASK_RAW("GET http://test.example/open?q HTTP/1.1\r\n" HOST "\r\n"), 200, "");
    ck_assert_str_eq(handler_saw_line(2), "GET /open?q HTTP/1.1");
}
END_TEST

START_TEST(rule_3_9_an_authority_that_is_not_the_one_of_host_is_refused)
{
    static const char *const authorities[] = { "other.example", "test.example:80", "test.example.", "u@test.example" };
    for (size_t i = 0; i < sizeof authorities / sizeof authorities[0]; i++) {
        EXPECT_PROBLEM(post_bytes(text("POST http://%s/orders", authorities[i]), HOST, "3.9-o", BODY), 400, "",
                       "request-malformed");
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_3_10_a_released_key_does_not_take_another_payload)
{
    handler_answers("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n");
    EXPECT(post("3.10", "x"), 429, "not-executed");
    const struct http_answer *other = post("3.10", "y");
    EXPECT_PROBLEM(other, 422, "refused", "key-reused");
    ck_assert_str_eq(member_of(other, "differs"), "[\"body\"]");
    EXPECT(post("3.10", "x"), 429, "not-executed");
    EXPECT_RUNS("3.10", 2);
}
END_TEST

START_TEST(rule_3_10_the_fingerprint_is_kept_as_long_as_the_key)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    scene_pass_time(29 * DAY_MS, NULL); /* max_downtime is a day: it has expired, and is remembered */
    EXPECT_PROBLEM(post("k", "y"), 422, "refused", "key-reused");
    EXPECT_PROBLEM(post("k", "x"), 422, "refused", "key-expired");
    scene_end();
}
END_TEST

SUITE(contract_fingerprint)
{
    Suite *suite = suite_create("contract/03b-fingerprint");
    RULE_ROWS(suite, house_plain, rule_3_7_every_part_counts_and_a_refusal_names_those_that_differ, payloads);
    RULE(suite, house_plain, rule_3_7_the_bytes_of_the_body_count_without_chunk_framing);
    RULE(suite, house_plain, rule_3_7_an_absent_field_counts_as_empty);
    RULE(suite, house_plain, rule_3_8_nothing_else_counts);
    RULE(suite, house_plain, rule_3_9_a_target_in_absolute_form_is_brought_to_origin_form_and_forwarded_so);
    RULE(suite, house_plain, rule_3_9_an_authority_that_is_not_the_one_of_host_is_refused);
    RULE(suite, house_plain, rule_3_10_a_released_key_does_not_take_another_payload);
    RULE_ALONE(suite, rule_3_10_the_fingerprint_is_kept_as_long_as_the_key);
    return suite;
}
