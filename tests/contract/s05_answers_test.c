/* s05_answers_test.c - docs/contract.md section 5: the answers that nonbisd makes itself. s05b_problems_test.c has one case per problem type. */
#include "tests/contract/scene.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

START_TEST(rule_5_1_a_problem_has_these_members_in_json_that_nobody_may_store)
{
    const struct http_answer *problem = ask("POST", "/orders", NULL, "x");
    EXPECT_FIELD(problem, "Content-Type", "application/problem+json");
    EXPECT_FIELD(problem, "Cache-Control", "no-store");
    ck_assert_str_eq(member_of(problem, "type"), "\"urn:nonbis:problem:key-missing\"");
    ck_assert_str_eq(member_of(problem, "status"), "400");
    ck_assert_str_eq(member_of(problem, "retryable"), "false");
    ck_assert_str_eq(member_of(problem, "executed"), "\"unknown\"");
    ck_assert_uint_gt(strlen(member_of(problem, "title")), 10);
    ck_assert_uint_gt(strlen(member_of(problem, "detail")), 10);
    ck_assert_int_eq(strncmp(member_of(problem, "instance"), "\"urn:nonbis:request:", 20), 0);
    EXPECT_LACKS(problem, "\"command\"");
    EXPECT_LACKS(problem, "\"differs\"");
    EXPECT_LACKS(problem, "\"reason\"");
    EXPECT_LACKS(problem, "\"state\"");
    EXPECT_LACKS(problem, "\"window_start\"");
}
END_TEST

START_TEST(rule_5_1_the_last_part_of_instance_is_the_request_in_the_log)
{
    const char *seen[2];
    for (int i = 0; i < 2; i++) {
        seen[i] = member_of(ask("POST", "/orders", NULL, "x"), "instance");
        const char *last = strrchr(seen[i], ':') + 1;
        ck_assert(daemon_wait_logged(&scene.nonbis, text(" request=%.*s", (int) strcspn(last, "\""), last)));
    }
    ck_assert_str_ne(seen[0], seen[1]);
}
END_TEST

START_TEST(rule_5_1_command_is_told_where_the_record_was_read)
{
    const struct http_answer *first = post("5.1-c", "x");
    EXPECT(first, 200, "executed");
    const struct http_answer *reused = post("5.1-c", "y");
    EXPECT_PROBLEM(reused, 422, "refused", "key-reused");
    ck_assert_str_eq(member_of(reused, "command"), text("\"%s\"", command_path_of(first)));
}
END_TEST

START_TEST(rule_5_1_what_stands_before_the_name_is_a_setting)
{
    SCENE_START("--set", "problem_prefix=https://example.org/problems/");
    const struct http_answer *problem = ask("POST", "/orders", NULL, "x");
    ck_assert_int_eq(problem->status, 400);
    ck_assert_str_eq(member_of(problem, "type"), "\"https://example.org/problems/key-missing\"");
    scene_end();
}
END_TEST

START_TEST(rule_5_2_executed_is_unknown_before_the_record_was_read)
{
    /* The key is completed, and whoever could read that would say yes. */
    EXPECT(post("5.2-before", "x"), 200, "executed");
    const struct http_answer *malformed = post_with("5.2-before", "Content-Type: a\r\nContent-Type: b\r\n", "x");
    EXPECT_PROBLEM(malformed, 400, "", "request-malformed");
    ck_assert_str_eq(member_of(malformed, "executed"), "\"unknown\"");
    const struct http_answer *twice = post_with("5.2-before", "Idempotency-Key: 5.2-before\r\n", "x");
    EXPECT_PROBLEM(twice, 400, "refused", "key-malformed");
    ck_assert_str_eq(member_of(twice, "executed"), "\"unknown\"");
}
END_TEST

START_TEST(rule_5_2_executed_speaks_of_the_command_as_of_this_answer)
{
    static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
    EXPECT(post("5.2-yes", "x"), 200, "executed");
    ck_assert_str_eq(member_of(void_key("5.2-yes", ""), "executed"), "\"yes\"");
    peer_script_default(scene.peer, reset);
    ck_assert_str_eq(member_of(post("5.2-unknown", "x"), "executed"), "\"unknown\"");
    ck_assert_str_eq(member_of(void_key("5.2-unknown", ""), "executed"), "\"unknown\"");
    ck_assert_str_eq(member_of(void_key("5.2-no", ""), "executed"), "\"no\"");
    ck_assert_str_eq(member_of(post("5.2-no", "x"), "executed"), "\"no\"");
}
END_TEST

START_TEST(rule_5_3_no_status_word_is_sent_before_the_key_was_read)
{
    EXPECT_PROBLEM(ask("POST", "/orders", NULL, "x"), 400, "", "key-missing");
    EXPECT_PROBLEM(post_with("5.3", "Content-Encoding: a\r\nContent-Encoding: a\r\n", "x"), 400, "",
                   "request-malformed");
    EXPECT_PROBLEM(ask("POST", "/orders/../orders", "Idempotency-Key: 5.3\r\n", "x"), 400, "", "request-malformed");
    EXPECT_PROBLEM(ASK_RAW("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 5.3\r\n\r\n"), 411, "",
                   "request-malformed");
}
END_TEST

START_TEST(rule_5_3_no_status_word_is_sent_with_the_answers_of_status_and_void)
{
    EXPECT(post("5.3-own", "x"), 200, "executed");
    EXPECT(get_status("5.3-own", ""), 200, "");
    EXPECT(get_status("5.3-none", ""), 404, "");
    EXPECT(get_response("5.3-own"), 200, "");
    EXPECT(void_key("5.3-own", ""), 422, "");
    EXPECT(void_key("5.3-void", ""), 200, "");
    EXPECT(void_key("a b", ""), 400, "");
    EXPECT(ask("GET", "/_nonbis/v1", NULL, NULL), 200, "");
}
END_TEST

START_TEST(rule_5_3_refused_says_nothing_about_earlier_attempts)
{
    EXPECT(post("5.3-done", "x"), 200, "executed");
    EXPECT(post("5.3-done", "y"), 422, "refused");
    EXPECT(post("5.3-done", "x"), 200, "replayed");
    EXPECT_RUNS("5.3-done", 1);
}
END_TEST

START_TEST(rule_5_4_409_never_stands_for_anything_final)
{
    static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
    struct caller caller;
    EXPECT(post("5.4-completed", "x"), 200, "executed");
    EXPECT(post("5.4-completed", "x"), 200, "replayed");
    EXPECT(post("5.4-completed", "y"), 422, "refused");
    peer_script_default(scene.peer, reset);
    EXPECT(post("5.4-unknown", "x"), 504, "unknown");
    EXPECT(post("5.4-unknown", "x"), 504, "unknown");
    ck_assert_int_eq(void_key("5.4-voided", "")->status, 200);
    EXPECT(post("5.4-voided", "x"), 422, "refused");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "5.4-running");
    EXPECT(post("5.4-running", "x"), 409, "in-progress");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    EXPECT(post("5.4-running", "x"), 201, "replayed");
}
END_TEST

START_TEST(rule_5_5_once_the_answer_has_begun_the_clients_connection_is_cut)
{
    static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 },
                                            { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0 },
                                            { PEER_RESET, NULL, 0 },
                                            PEER_END };
    static const struct peer_step hangs[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0 },
                                              { PEER_WAIT_END, NULL, 0 },
                                              PEER_END };
    for (int i = 0; i < 2; i++) {
        peer_script_default(scene.peer, i == 0 ? cut : hangs);
        const struct http_answer *answer = ask("GET", "/open", NULL, NULL);
        ck_assert_msg(!answer->whole, "a cut answer looks whole");
        ck_assert(answer->closed);
        ck_assert_int_ne(answer->status, 502);
        ck_assert_int_ne(answer->status, 504);
    }
}
END_TEST

START_TEST(rule_5_6_retry_after_is_a_whole_number_of_seconds_from_1_to_60)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "5.6");
    for (int i = 0; i < 20; i++) {
        const char *wait = field_of(post("5.6", "x"), "Retry-After");
        ck_assert_ptr_nonnull(wait);
        ck_assert_uint_eq(strspn(wait, "0123456789"), strlen(wait));
        ck_assert_int_ge(strtol(wait, NULL, 10), 1);
        ck_assert_int_le(strtol(wait, NULL, 10), 60);
    }
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_5_7_a_connection_over_the_limit_gets_503_without_a_problem)
{
    SCENE_START("--set", "connections_max=1");
    int first = http_connect(scene.address);
    ck_assert(http_send(first, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27));
    EXPECT(keep_answer(http_receive(first, false, NULL)), 200, "");
    const struct http_answer *over = ask("GET", "/", NULL, NULL);
    EXPECT(over, 503, "");
    EXPECT_NO_FIELD(over, "Content-Type");
    EXPECT_LACKS(over, "problem");
    close(first);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
    scene_end();
}
END_TEST

/* Cookies take room of the connection's memory beside the head that they stand in. */
START_TEST(rule_5_7_heads_that_cannot_share_the_memory_get_431_without_a_problem)
{
    char cookies[6001];
    for (size_t i = 0; i + 4 < sizeof cookies; i += 4) {
        memcpy(cookies + i, "a=b;", 5);
    }
    const struct http_answer *refused = post_with("5.7", text("Cookie: %.6000s\r\n", cookies), "x");
    EXPECT(refused, 431, "");
    EXPECT_NO_FIELD(refused, "Content-Type");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    EXPECT_PROBLEM(get_status("5.7", ""), 404, "", "key-not-seen");
}
END_TEST

SUITE(contract_answers)
{
    Suite *suite = suite_create("contract/05-answers");
    RULE(suite, house_plain, rule_5_1_a_problem_has_these_members_in_json_that_nobody_may_store);
    RULE(suite, house_plain, rule_5_1_the_last_part_of_instance_is_the_request_in_the_log);
    RULE(suite, house_plain, rule_5_1_command_is_told_where_the_record_was_read);
    RULE(suite, house_plain, rule_5_2_executed_is_unknown_before_the_record_was_read);
    RULE(suite, house_plain, rule_5_2_executed_speaks_of_the_command_as_of_this_answer);
    RULE(suite, house_plain, rule_5_3_no_status_word_is_sent_before_the_key_was_read);
    RULE(suite, house_plain, rule_5_3_no_status_word_is_sent_with_the_answers_of_status_and_void);
    RULE(suite, house_plain, rule_5_3_refused_says_nothing_about_earlier_attempts);
    RULE(suite, house_plain, rule_5_4_409_never_stands_for_anything_final);
    RULE(suite, house_plain, rule_5_6_retry_after_is_a_whole_number_of_seconds_from_1_to_60);
    RULE(suite, house_plain, rule_5_7_heads_that_cannot_share_the_memory_get_431_without_a_problem);
    RULE(suite, house_hasty, rule_5_5_once_the_answer_has_begun_the_clients_connection_is_cut);
    RULE_ALONE(suite, rule_5_1_what_stands_before_the_name_is_a_setting);
    RULE_ALONE(suite, rule_5_7_a_connection_over_the_limit_gets_503_without_a_problem);
    return suite;
}
