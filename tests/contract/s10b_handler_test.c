/* s10b_handler_test.c - docs/contract.md section 10, 10.8 to 10.16: what the handler gets. */
#include "tests/contract/scene.h"

#define EMPTY "Content-Length: 0\r\n\r\n"

START_TEST(rule_10_8_the_request_arrives_as_received_without_hop_by_hop_fields)
{
    static const char *const hops[] = { "Connection",       "Keep-Alive", "X-Hop",  "TE",
                                        "Proxy-Connection", "Upgrade",    "Trailer" };
    EXPECT(ASK_RAW(
               "POST /a%7Eb//c/?q=%20;&r HTTP/1.1\r\nHost: Api.Example:8080\r\nIdempotency-Key: \"10.8\";a=1\r\n"
               "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n"
               "X-Two: 1\r\nx-two: 2\r\nUser-Agent:  u  a \r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
               "TE: trailers\r\nProxy-Connection: x\r\nTrailer: X\r\nContent-Length: 5\r\n\r\n\x01\r\n\"x"),
           200, "executed");
    ck_assert_str_eq(handler_saw_line(1), "POST /a%7Eb//c/?q=%20;&r HTTP/1.1");
    ck_assert_str_eq(handler_saw_field(1, "Host"), "Api.Example:8080");
    ck_assert_str_eq(handler_saw_field(1, "Idempotency-Key"), "\"10.8\";a=1");
    ck_assert_str_eq(handler_saw_field(1, "traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    ck_assert_str_eq(handler_saw_field(1, "tracestate"), "a=b");
    ck_assert_ptr_nonnull(strstr(handler_saw(1), "X-Two: 1\r\nx-two: 2\r\n"));
    ck_assert_str_eq(handler_saw_field(1, "User-Agent"), "u  a");
    ck_assert_ptr_nonnull(strstr(handler_saw(1), "\r\n\r\n\x01\r\n\"x"));
    for (size_t i = 0; i < sizeof hops / sizeof hops[0]; i++) {
        ck_assert_msg(handler_saw_field(1, hops[i]) == NULL, "%s reached the handler: %s", hops[i], handler_saw(1));
    }
}
END_TEST

START_TEST(rule_10_8_a_chunked_body_of_a_protected_request_arrives_with_its_length)
{
    EXPECT(ASK_RAW("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 10.8-chunks\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n2\r\nab\r\n3;x\r\ncde\r\n0\r\n\r\n"),
           200, "executed");
    ck_assert_str_eq(handler_saw_field(1, "Content-Length"), "5");
    ck_assert_ptr_null(handler_saw_field(1, "Transfer-Encoding"));
    ck_assert_ptr_nonnull(strstr(handler_saw(1), "\r\n\r\nabcde"));
}
END_TEST

START_TEST(rule_10_9_via_has_what_was_received_and_this_nonbis_behind_it)
{
    for (unsigned i = 1; i <= 2; i++) {
        const char *method = i == 1 ? "POST" : "GET";
        EXPECT(ask(method, "/orders", "Idempotency-Key: 10.9\r\nVia: 1.0 first\r\nVia: 2 second (c)\r\n", "x"), 200,
               i == 1 ? "executed" : "");
        const char *seen = handler_saw(i);
        const char *first = strstr(seen, "1.0 first"), *second = strstr(seen, "2 second (c)"),
                   *own = strstr(seen, "1.1 nonbis");
        ck_assert_msg(first != NULL && second != NULL && own != NULL && first < second && second < own, "%s", seen);
    }
    EXPECT(ask("GET", "/open", NULL, NULL), 200, "");
    ck_assert_int_eq(strncmp(handler_saw_field(3, "Via"), "1.1 nonbis", 10), 0);
}
END_TEST

START_TEST(rule_10_10_a_via_that_names_this_nonbis_already_is_a_loop)
{
    EXPECT(ask("GET", "/open", NULL, NULL), 200, "");
    const char *own = handler_saw_field(1, "Via");
    static const char *const methods[] = { "POST", "GET" };
    for (size_t i = 0; i < 2; i++) {
        const struct http_answer *loop =
            ask(methods[i], "/orders", text("Idempotency-Key: 10.10\r\nVia: 1.0 first, %s, 1.1 behind\r\n", own), "x");
        EXPECT_PROBLEM(loop, 508, "", "loop-detected");
        EXPECT_FIELD(loop, "Nonbis-Outcome", "not-executed");
    }
    EXPECT(ask("GET", "/open", text("Via: 1.0 first\r\nVia: %s\r\n", own), NULL), 508, "");
    EXPECT(ask("GET", "/open", "Via: 1.1 nonbis-of-somebody-else\r\n", NULL), 200, "");
    EXPECT(ask("GET", "/open", "Via: 1.1 nonbis\r\n", NULL), 200, "");
}
END_TEST

START_TEST(rule_10_11_x_forwarded_fields_are_written_anew)
{
    for (unsigned i = 1; i <= 2; i++) {
        EXPECT(ask(i == 1 ? "POST" : "GET", "/orders", "Idempotency-Key: 10.11\r\n", "x"), 200,
               i == 1 ? "executed" : "");
        ck_assert_str_eq(handler_saw_field(i, "X-Forwarded-For"), "127.0.0.1");
        ck_assert_str_eq(handler_saw_field(i, "X-Forwarded-Proto"), "http");
        ck_assert_str_eq(handler_saw_field(i, "X-Forwarded-Host"), "test.example");
    }
}
END_TEST

START_TEST(rule_10_12_the_command_id_is_random_and_the_same_for_all_executions)
{
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("10.12-a", "x"), 429, "not-executed");
    EXPECT(post("10.12-a", "x"), 429, "not-executed");
    EXPECT(post("10.12-b", "x"), 429, "not-executed");
    const char *a = handler_saw_field(1, "Nonbis-Command-Id"), *b = handler_saw_field(3, "Nonbis-Command-Id");
    ck_assert_uint_eq(strlen(a), 32);
    ck_assert_uint_eq(strspn(a, "0123456789abcdef"), 32);
    ck_assert_str_eq(handler_saw_field(2, "Nonbis-Command-Id"), a);
    ck_assert_str_ne(b, a);
}
END_TEST

START_TEST(rule_10_12_a_request_that_passes_has_no_command)
{
    EXPECT(ask("GET", "/open", NULL, NULL), 200, "");
    ck_assert_ptr_null(handler_saw_field(1, "Nonbis-Command-Id"));
    ck_assert_ptr_null(handler_saw_field(1, "Nonbis-Execution"));
}
END_TEST

START_TEST(rule_10_13_the_number_of_this_execution)
{
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    for (unsigned i = 1; i <= 4; i++) {
        EXPECT(post("10.13", "x"), 429, "not-executed");
        ck_assert_str_eq(handler_saw_field(i, "Nonbis-Execution"), text("%u", i));
    }
}
END_TEST

START_TEST(rule_10_14_what_comes_in_of_the_three_is_kept_for_nobody_and_the_other_fields_pass)
{
    EXPECT(post_with("10.14",
                     "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n"
                     "X-Forwarded-Port: 444\r\nX-Forwarded-Prefix: /p\r\nForwarded: for=6.6.6.6;proto=https\r\n",
                     "x"),
           200, "executed");
    ck_assert_str_eq(handler_saw_field(1, "X-Forwarded-For"), "127.0.0.1");
    ck_assert_str_eq(handler_saw_field(1, "X-Forwarded-Proto"), "http");
    ck_assert_str_eq(handler_saw_field(1, "X-Forwarded-Host"), "test.example");
    ck_assert_str_eq(handler_saw_field(1, "X-Forwarded-Port"), "444");
    ck_assert_str_eq(handler_saw_field(1, "X-Forwarded-Prefix"), "/p");
    ck_assert_str_eq(handler_saw_field(1, "Forwarded"), "for=6.6.6.6;proto=https");
    ck_assert_ptr_null(strstr(handler_saw(1), "evil.example"));
}
END_TEST

START_TEST(rule_10_16_nothing_is_added_for_cors)
{
    handler_answers(
        "HTTP/1.1 204 None\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: X-Own\r\n\r\n");
    const struct http_answer *preflight =
        ask("OPTIONS", "/orders",
            "Origin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
            "idempotency-key\r\n",
            NULL);
    EXPECT(preflight, 204, "");
    EXPECT_FIELD(preflight, "Access-Control-Allow-Headers", "X-Own");
    EXPECT_NO_FIELD(preflight, "Access-Control-Expose-Headers");
    const struct http_answer *executed = post_with("10.16", "Origin: https://shop.example\r\n", "x");
    EXPECT(executed, 204, "executed");
    EXPECT_NO_FIELD(executed, "Access-Control-Expose-Headers");
    const struct http_answer *problem = ask("POST", "/orders", "Origin: https://shop.example\r\n", "x");
    ck_assert_ptr_null(strstr(problem->head, "Access-Control"));
}
END_TEST

SUITE(contract_handler)
{
    Suite *suite = suite_create("contract/10b-handler");
    RULE(suite, house_plain, rule_10_8_the_request_arrives_as_received_without_hop_by_hop_fields);
    RULE(suite, house_plain, rule_10_8_a_chunked_body_of_a_protected_request_arrives_with_its_length);
    RULE(suite, house_plain, rule_10_9_via_has_what_was_received_and_this_nonbis_behind_it);
    RULE(suite, house_plain, rule_10_10_a_via_that_names_this_nonbis_already_is_a_loop);
    RULE(suite, house_plain, rule_10_11_x_forwarded_fields_are_written_anew);
    RULE(suite, house_plain, rule_10_12_the_command_id_is_random_and_the_same_for_all_executions);
    RULE(suite, house_plain, rule_10_12_a_request_that_passes_has_no_command);
    RULE(suite, house_plain, rule_10_13_the_number_of_this_execution);
    RULE(suite, house_plain, rule_10_14_what_comes_in_of_the_three_is_kept_for_nobody_and_the_other_fields_pass);
    RULE(suite, house_plain, rule_10_16_nothing_is_added_for_cors);
    return suite;
}
