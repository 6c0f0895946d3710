/* s07b_unseen_test.c - docs/contract.md section 7, 7.4 to 7.6: what strangers are told, the stored answer, and the contract in force. */
#include "tests/contract/scene.h"

#define EMPTY "Content-Length: 0\r\n\r\n"

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

/* An answer without what comes from the request or from the clock. */
static const char *without_request(const struct http_answer *answer)
{
    static const char *const parts[] = { "urn:nonbis:request:", "Content-Length: ", "Date: " };
    char *all = (char *) (uintptr_t) text("%s\r\n\r\n%s", answer->head, answer->body);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char *from = strstr(all, parts[i]);
        ck_assert_ptr_nonnull(from);
        from += strlen(parts[i]);
        char *to = from + strcspn(from, "\"\r");
        memmove(from, to, strlen(to) + 1);
    }
    return all;
}

START_TEST(rule_7_4_unused_foreign_guarded_and_malformed_ids_get_the_same_404)
{
    static const char *const mine = "X-Tenant: a\r\nAuthorization: Bearer a\r\n";
    static const char *const strangers[] = { "X-Tenant: b\r\nAuthorization: Bearer a\r\n",
                                             "X-Tenant: a\r\nAuthorization: Bearer b\r\n", "X-Tenant: a\r\n" };
    static const char *const no_ids[] = { "00112233445566778899aabbccddeeff", "0", "x",
                                          "00112233445566778899AABBCCDDEEFF0" };
    const struct http_answer *first = post_with("7.4", mine, "x");
    EXPECT(first, 200, "executed");
    const char *path = command_path_of(first);
    EXPECT(ask("GET", path, mine, NULL), 200, "");
    const struct http_answer *unused = get_status("7.4-unused", mine);
    EXPECT_PROBLEM(unused, 404, "", "key-not-seen");
    const char *wanted = without_request(unused);
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        ck_assert_str_eq(without_request(get_status("7.4", strangers[i])), wanted);
        ck_assert_str_eq(without_request(ask("GET", path, strangers[i], NULL)), wanted);
    }
    for (size_t i = 0; i < sizeof no_ids / sizeof no_ids[0]; i++) {
        ck_assert_str_eq(without_request(ask("GET", text("/_nonbis/v1/commands/%s", no_ids[i]), mine, NULL)), wanted);
    }
}
END_TEST

START_TEST(rule_7_4_window_start_is_the_one_of_the_contract_in_force)
{
    ck_assert_str_eq(member_of(get_status("7.4-window", ""), "window_start"),
                     member_of(ask("GET", "/_nonbis/v1", NULL, NULL), "window_start"));
}
END_TEST

START_TEST(rule_7_4_a_released_command_is_told_to_every_caller_of_its_tenant)
{
    handler_answers("HTTP/1.1 401 No\r\n" EMPTY);
    EXPECT(post_with("7.4-free", "X-Tenant: a\r\nAuthorization: Bearer a\r\n", "x"), 401, "not-executed");
    EXPECT(get_status("7.4-free", "X-Tenant: a\r\nAuthorization: Bearer b\r\n"), 200, "");
    EXPECT(get_status("7.4-free", "X-Tenant: a\r\n"), 200, "");
    EXPECT_PROBLEM(get_status("7.4-free", "X-Tenant: b\r\nAuthorization: Bearer a\r\n"), 404, "", "key-not-seen");
}
END_TEST

START_TEST(rule_7_5_the_stored_answer_is_told_as_a_replay)
{
    handler_answers("HTTP/1.1 201 Created\r\nLocation: /orders/7\r\nSet-Cookie: s=1\r\nCache-Control: max-age=60\r\n"
                    "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\na\"b\n");
    EXPECT(post("7.5", "x"), 201, "executed");
    for (int i = 0; i < 2; i++) {
        const struct http_answer *stored = get_response("7.5");
        EXPECT(stored, 201, "");
        ck_assert_str_eq(stored->body, "a\"b\n");
        EXPECT_FIELD(stored, "Location", "/orders/7");
        EXPECT_FIELD(stored, "Content-Type", "text/plain");
        EXPECT_FIELD(stored, "Idempotent-Replayed", "true");
        EXPECT_FIELD(stored, "Cache-Control", "no-store"); /* the handler's does not pass */
        EXPECT_NO_FIELD(stored, "Set-Cookie");
        ck_assert_int_eq(http_field_count(stored, "Idempotency-Expires"), 1);
        ck_assert_int_eq(http_field_count(stored, "Link"), 1);
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
}
END_TEST

START_TEST(rule_7_5_there_is_no_payload_to_compare)
{
    EXPECT(post("7.5-any", "x"), 200, "executed");
    EXPECT(ask("GET", "/_nonbis/v1/command/response",
               "Host2: b\r\nContent-Type: other/type\r\nIdempotency-Key: 7.5-any\r\n", "another body"),
           200, "");
}
END_TEST

START_TEST(rule_7_5_without_an_answer_it_tells_the_problem_that_a_repeat_would_get)
{
    struct caller caller;
    EXPECT_PROBLEM(get_response("7.5-none"), 404, "", "key-not-seen");
    ck_assert_int_eq(void_key("7.5-void", "")->status, 200);
    EXPECT_PROBLEM(get_response("7.5-void"), 422, "", "key-voided");
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("7.5-free", "x"), 429, "not-executed");
    EXPECT_PROBLEM(get_response("7.5-free"), 404, "", "key-not-seen");
    peer_script_default(scene.peer, reset);
    EXPECT(post("7.5-lost", "x"), 504, "unknown");
    EXPECT_PROBLEM(get_response("7.5-lost"), 504, "", "outcome-unknown");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "7.5-run");
    const struct http_answer *running = get_response("7.5-run");
    EXPECT_PROBLEM(running, 409, "", "in-progress");
    ck_assert_int_eq(http_field_count(running, "Retry-After"), 1);
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_7_5_an_expired_answer_is_told_as_such)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    const char *const more[] = { "--set", "max_downtime=365d", NULL };
    scene_pass_time(25 * HOUR_MS, more);
    EXPECT_PROBLEM(get_response("k"), 422, "", "key-expired");
    scene_end();
}
END_TEST

START_TEST(rule_7_6_the_contract_in_force_is_told_to_everybody)
{
    SCENE_START("--set", "tenant=header:X-Tenant", "--set", "ttl=2h", "--set", "tombstone_ttl=3h", "--set",
                "body_max=2KiB", "--set", "response_keep_max=5KiB", "--route", "POST /orders ttl=1h");
    const struct http_answer *contract = ask("GET", "/_nonbis/v1", NULL, NULL);
    EXPECT(contract, 200, "");
    EXPECT_FIELD(contract, "Content-Type", "application/json");
    ck_assert_str_eq(member_of(contract, "version"), "1");
    EXPECT_HOLDS(contract, "\"retention\":{\"ttl\":7200,\"tombstone_ttl\":10800}");
    EXPECT_HOLDS(contract, "\"limits\":{\"body_max\":2048,\"response_keep_max\":5120,\"key_max\":255}");
    ck_assert_uint_gt(strlen(member_of(contract, "key")), 20);
    ck_assert_int_eq(strncmp(member_of(contract, "window_start"), "\"20", 3), 0);
    scene_end();
}
END_TEST

/* The store is then a day older than the clock of the machine says; so is what it remembers. */
START_TEST(rule_7_6_window_start_stays_with_the_store)
{
    SCENE_START(NULL);
    const char *before = member_of(ask("GET", "/_nonbis/v1", NULL, NULL), "window_start");
    scene_pass_time(DAY_MS, NULL);
    const char *after = member_of(ask("GET", "/_nonbis/v1", NULL, NULL), "window_start");
    ck_assert_msg(strcmp(after, before) < 0, "%s became %s", before, after);
    scene_end();
}
END_TEST

/* Each row asks on the way of the request that it is about. */
static const struct route_row {
    const char *target, *method, *told; /* told: of the document */
} routes_asked[] = {
    { "/pay", "POST", "\"method\":\"POST\",\"protected\":true,\"key\":\"required\"," },
    { "/pay?x=1", "POST", "\"protected\":true,\"key\":\"required\"," },
    { "/pay/", "POST", "\"protected\":true,\"key\":\"required\"," },
    { "/p%61y", "POST", "\"protected\":true,\"key\":\"required\"," },
    { "/maybe", "POST", "\"protected\":true,\"key\":\"optional\"," },
    { "/pay", "GET", "\"method\":\"GET\",\"protected\":false,\"key\":null," },
    { "/open", "POST", "\"method\":\"POST\",\"protected\":false,\"key\":null," },
    { "/pay/x", "POST", "\"protected\":false,\"key\":null," },
};

START_TEST(rule_7_7_whether_a_route_is_protected_is_told_where_the_route_is)
{
    for (size_t i = 0; i < sizeof routes_asked / sizeof routes_asked[0]; i++) {
        const struct route_row *row = &routes_asked[i];
        const struct http_answer *told = ask("OPTIONS", row->target, text("Nonbis-Ask: %s\r\n", row->method), NULL);
        EXPECT(told, 200, "");
        EXPECT_FIELD(told, "Content-Type", "application/json");
        EXPECT_FIELD(told, "Cache-Control", "no-store");
        EXPECT_HOLDS(told, row->told);
        ck_assert_str_eq(member_of(told, "version"), "1");
        ck_assert_str_eq(member_of(told, "window_start"),
                         member_of(ask("GET", "/_nonbis/v1", NULL, NULL), "window_start"));
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_7_7_it_is_told_to_everybody_and_other_questions_pass)
{
    SCENE_START("--set", "tenant=header:X-Tenant");
    EXPECT_HOLDS(ask("OPTIONS", "/orders", "Nonbis-Ask: POST\r\n", NULL), "\"protected\":true");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    EXPECT(ask("OPTIONS", "/orders", NULL, NULL), 200, "");
    EXPECT(ask("GET", "/orders", "Nonbis-Ask: POST\r\n", NULL), 200, "");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 2);
    ck_assert_ptr_null(handler_saw_field(2, "Nonbis-Ask"));
    scene_end();
}
END_TEST

START_TEST(rule_7_7_a_question_that_cannot_be_read_is_refused)
{
    static const char *const fields[] = { "Nonbis-Ask:\r\n", "Nonbis-Ask: post\r\n", "Nonbis-Ask: POST, PUT\r\n",
                                          "Nonbis-Ask: POST\r\nNonbis-Ask: POST\r\n",
                                          "Nonbis-Ask: POSTPOSTPOSTPOSTPOSTPOSTPOSTPOSTX\r\n" };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        EXPECT_PROBLEM(ask("OPTIONS", "/pay", fields[i], NULL), 400, "", "request-malformed");
    }
    /* As the request itself would be. */
    EXPECT_PROBLEM(ask("OPTIONS", "/x/%2e%2e/pay", "Nonbis-Ask: POST\r\n", NULL), 400, "", "request-malformed");
    EXPECT_PROBLEM(ask("OPTIONS", "/_nonbis/v1", "Nonbis-Ask: POST\r\n", NULL), 405, "", "method-not-allowed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

SUITE(contract_unseen)
{
    Suite *suite = suite_create("contract/07b-unseen");
    RULE(suite, house_tenants, rule_7_4_unused_foreign_guarded_and_malformed_ids_get_the_same_404);
    RULE(suite, house_tenants, rule_7_4_a_released_command_is_told_to_every_caller_of_its_tenant);
    RULE(suite, house_plain, rule_7_4_window_start_is_the_one_of_the_contract_in_force);
    RULE(suite, house_plain, rule_7_5_the_stored_answer_is_told_as_a_replay);
    RULE(suite, house_plain, rule_7_5_there_is_no_payload_to_compare);
    RULE(suite, house_plain, rule_7_5_without_an_answer_it_tells_the_problem_that_a_repeat_would_get);
    RULE_ALONE(suite, rule_7_5_an_expired_answer_is_told_as_such);
    RULE_ALONE(suite, rule_7_6_the_contract_in_force_is_told_to_everybody);
    RULE_ALONE(suite, rule_7_6_window_start_stays_with_the_store);
    RULE(suite, house_routes, rule_7_7_whether_a_route_is_protected_is_told_where_the_route_is);
    RULE_ALONE(suite, rule_7_7_it_is_told_to_everybody_and_other_questions_pass);
    RULE(suite, house_routes, rule_7_7_a_question_that_cannot_be_read_is_refused);
    return suite;
}
