/* s07_status_test.c - docs/contract.md section 7: what became of a command, for its own caller. */
#include "tests/contract/scene.h"

#include <ctype.h>
#include <signal.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"
#define COMMAND "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"

static void expect_members(const char *key, const char *const (*members)[2], size_t count)
{
    const struct http_answer *status = get_status(key, "");
    EXPECT(status, 200, "");
    EXPECT_FIELD(status, "Content-Type", "application/json");
    EXPECT_FIELD(status, "Cache-Control", "no-store");
    for (size_t i = 0; i < count; i++) {
        const char *seen = member_of(status, members[i][0]);
        ck_assert_msg(strcmp(seen, members[i][1]) == 0, "%s is %s, not %s", members[i][0], seen, members[i][1]);
    }
}
#define EXPECT_MEMBERS(key, ...)                                                                                       \
    expect_members((key), (const char *const[][2]){ __VA_ARGS__ },                                                     \
                   sizeof((const char *const[][2]){ __VA_ARGS__ }) / sizeof(const char *const[2]))

/* --- asking --- */

START_TEST(section_7_all_answers_are_no_store_and_none_has_a_status_word)
{
    EXPECT(post("7-all", "x"), 200, "executed");
    static const char *const targets[] = { COMMAND, RESPONSE, "/_nonbis/v1", "/_nonbis/v1/commands/00", "/_nonbis/x" };
    static const char *const methods[] = { "GET", "HEAD", "POST", "DELETE" };
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        for (size_t j = 0; j < sizeof methods / sizeof methods[0]; j++) {
            const struct http_answer *own = ask(methods[j], targets[i], "Idempotency-Key: 7-all\r\n", NULL);
            EXPECT_FIELD(own, "Cache-Control", "no-store");
            EXPECT_NO_FIELD(own, "Idempotency-Status");
        }
    }
    EXPECT_FIELD(void_key("7-all", ""), "Cache-Control", "no-store");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
}
END_TEST

START_TEST(section_7_get_includes_head_and_another_method_is_answered_405_with_allow)
{
    EXPECT(post("7-methods", "x"), 200, "executed");
    const struct http_answer *head = ask("HEAD", COMMAND, "Idempotency-Key: 7-methods\r\n", NULL);
    EXPECT(head, 200, "");
    ck_assert_uint_eq(head->body_len, 0);
    const struct http_answer *wrong = ask("PUT", COMMAND, "Idempotency-Key: 7-methods\r\n", NULL);
    EXPECT_PROBLEM(wrong, 405, "", "method-not-allowed");
    EXPECT_FIELD(wrong, "Allow", "GET, HEAD");
    wrong = ask("GET", VOID, "Idempotency-Key: 7-methods\r\n", NULL);
    EXPECT_PROBLEM(wrong, 405, "", "method-not-allowed");
    EXPECT_FIELD(wrong, "Allow", "POST");
    EXPECT_PROBLEM(ask("GET", "/_nonbis/v1/commands", NULL, NULL), 404, "", "not-found");
}
END_TEST

START_TEST(section_7_a_body_of_up_to_4096_bytes_is_accepted_and_not_read)
{
    char body[4097];
    memset(body, 'x', sizeof body - 1);
    body[4096] = '\0';
    EXPECT(ask("POST", VOID, "Idempotency-Key: 7-body\r\n", body), 200, "");
    EXPECT(ask("GET", COMMAND, "Idempotency-Key: 7-body\r\n", body), 200, "");
    EXPECT(ask("GET", "/_nonbis/v1", NULL, body), 200, "");
}
END_TEST

START_TEST(rule_7_1_a_command_is_asked_for_by_key_or_by_any_of_its_ids)
{
    const struct http_answer *first = post("7.1", "x");
    EXPECT(first, 200, "executed");
    const char *by_link = command_path_of(first);
    ck_assert_int_eq(strncmp(by_link, "/_nonbis/v1/commands/", 21), 0);
    ck_assert_uint_eq(strspn(by_link + 21, "0123456789abcdef"), 32);
    ck_assert_uint_eq(strlen(by_link), 21 + 32);
    ck_assert_str_eq(by_link + 21, handler_saw_field(1, "Nonbis-Command-Id"));
    const char *by_problem = member_of(post("7.1", "y"), "command");
    ck_assert_str_eq(by_problem, text("\"%s\"", by_link));
    const struct http_answer *by_key = get_status("7.1", ""), *by_id = ask("GET", by_link, NULL, NULL);
    EXPECT(by_key, 200, "");
    EXPECT(by_id, 200, "");
    ck_assert_str_eq(by_key->body, by_id->body);
    ck_assert_str_eq(member_of(by_key, "id"), text("\"%s\"", by_link + 21));
    EXPECT(get_status("\"7.1\"", ""), 200, "");
}
END_TEST

START_TEST(rule_7_1_tenant_and_grammar_of_keys_are_those_of_the_post)
{
    static const char *const tenant = "X-Tenant: a\r\n";
    EXPECT(post_with("7.1-t", tenant, "x"), 200, "executed");
    EXPECT_PROBLEM(get_status("7.1-t", ""), 401, "", "tenant-missing");
    EXPECT_PROBLEM(ask("GET", "/_nonbis/v1/commands/00", NULL, NULL), 401, "", "tenant-missing");
    EXPECT_PROBLEM(get_status("7.1-t", "X-Tenant: a\r\nX-Tenant: a\r\n"), 401, "", "tenant-missing");
    EXPECT_PROBLEM(ask("GET", COMMAND, tenant, NULL), 400, "", "key-missing");
    EXPECT_PROBLEM(get_status("a b", tenant), 400, "", "key-malformed");
    EXPECT_PROBLEM(get_status("7.1-t", "X-Tenant: a\r\nIdempotency-Key: 7.1-t\r\n"), 400, "", "key-malformed");
    EXPECT_PROBLEM(get_status("7.1-t", "X-Tenant: b\r\n"), 404, "", "key-not-seen");
    EXPECT(get_status("7.1-t", tenant), 200, "");
}
END_TEST

START_TEST(rule_7_1_it_only_reads)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_PROBLEM(get_status("7.1-read", ""), 404, "", "key-not-seen");
        EXPECT_PROBLEM(get_response("7.1-read"), 404, "", "key-not-seen");
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    EXPECT(post("7.1-read", "x"), 200, "executed");
    ck_assert_str_eq(handler_saw_field(1, "Nonbis-Execution"), "1");
}
END_TEST

START_TEST(rule_7_1_it_goes_on_during_a_drain)
{
    struct caller caller;
    SCENE_START(NULL);
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    daemon_signal(&scene.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    EXPECT(get_status("done", ""), 200, "");
    EXPECT(get_status("k", ""), 200, "");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    peer_free(scene.peer);
}
END_TEST

/* --- 7.2 --- */

static void expect_time(const struct http_answer *status, const char *name)
{
    static const char form[] = "\"dddd-dd-ddTdd:dd:dd.dddZ\"";
    const char *seen = member_of(status, name);
    bool good = strlen(seen) == sizeof form - 1;
    for (size_t i = 0; good && i < sizeof form - 1; i++) {
        good = form[i] == 'd' ? isdigit((unsigned char) seen[i]) != 0 : form[i] == seen[i];
    }
    ck_assert_msg(good, "%s is %s", name, seen);
}

START_TEST(rule_7_2_a_command_that_runs)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "7.2-run");
    EXPECT_MEMBERS("7.2-run", { "key", "\"7.2-run\"" }, { "state", "\"in_progress\"" }, { "executed", "\"unknown\"" },
                   { "executions", "1" }, { "replays", "0" }, { "completed_at", "null" }, { "expires_at", "null" },
                   { "cause", "null" }, { "resolved", "false" }, { "method", "\"POST\"" }, { "target", "\"/orders\"" },
                   { "response", "null" });
    expect_time(get_status("7.2-run", ""), "created_at");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_7_2_a_completed_command_and_its_replays)
{
    handler_answers("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT(ask("POST", "/orders/7?token=secret", "Idempotency-Key: 7.2-done\r\n", "x"), 201, "executed");
    for (int i = 0; i < 2; i++) {
        EXPECT(ask("POST", "/orders/7?token=secret", "Idempotency-Key: 7.2-done\r\n", "x"), 201, "replayed");
    }
    EXPECT_MEMBERS("7.2-done", { "state", "\"completed\"" }, { "executed", "\"yes\"" }, { "executions", "1" },
                   { "replays", "2" }, { "cause", "null" }, { "resolved", "false" }, { "target", "\"/orders/7\"" },
                   { "response", "{\"status\":201" }, { "length", "5" }, { "kept", "true" });
    const struct http_answer *status = get_status("7.2-done", "");
    EXPECT_LACKS(status, "secret");
    expect_time(status, "created_at");
    expect_time(status, "completed_at");
    expect_time(status, "expires_at");
    ck_assert_str_ne(member_of(status, "completed_at"), member_of(status, "expires_at"));
}
END_TEST

START_TEST(rule_7_2_a_released_and_a_voided_command)
{
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("7.2-free", "x"), 429, "not-executed");
    EXPECT(post("7.2-free", "x"), 429, "not-executed");
    EXPECT_MEMBERS("7.2-free", { "state", "\"released\"" }, { "executed", "\"no\"" }, { "executions", "2" },
                   { "expires_at", "null" }, { "cause", "null" }, { "response", "null" });
    expect_time(get_status("7.2-free", ""), "completed_at");
    ck_assert_int_eq(void_key("7.2-void", "")->status, 200);
    EXPECT_MEMBERS("7.2-void", { "state", "\"voided\"" }, { "executed", "\"no\"" }, { "executions", "0" },
                   { "expires_at", "null" }, { "cause", "null" }, { "request", "null" }, { "response", "null" });
    expect_time(get_status("7.2-void", ""), "created_at");
    expect_time(get_status("7.2-void", ""), "completed_at");
}
END_TEST

START_TEST(rule_7_2_an_expired_command)
{
    SCENE_START(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    const char *before = member_of(get_status("k", ""), "completed_at");
    const char *const more[] = { "--set", "max_downtime=365d", NULL };
    scene_pass_time(25 * HOUR_MS, more);
    EXPECT_MEMBERS("k", { "state", "\"expired\"" }, { "executed", "\"yes\"" }, { "replays", "0" },
                   { "response", "{\"status\":200" }, { "length", "2" }, { "kept", "false" });
    ck_assert_str_ne(before, "null");
    scene_end();
}
END_TEST

START_TEST(rule_7_2_a_body_that_was_not_kept)
{
    static const struct peer_step large[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n", 0 },
                                              { PEER_SEND_PATTERN, NULL, 1048577 },
                                              PEER_END };
    peer_script_default(scene.peer, large);
    EXPECT(post("7.2-large", "x"), 200, "executed");
    EXPECT_MEMBERS("7.2-large", { "state", "\"completed\"" }, { "length", "1048577" }, { "kept", "false" });
}
END_TEST

struct cause_row {
    const char *cause;
    struct peer_step steps[4];
};
#define GETS_BODY                                                                                                      \
    {                                                                                                                  \
        PEER_BODY, NULL, 0                                                                                             \
    }
#define SENDS(bytes)                                                                                                   \
    {                                                                                                                  \
        PEER_SEND, (bytes), 0                                                                                          \
    }
static const struct cause_row causes[] = {
    { "\"timeout\"", { GETS_BODY, { PEER_WAIT_END, NULL, 0 } } },
    { "\"reset\"", { GETS_BODY, { PEER_RESET, NULL, 0 } } },
    { "\"cut\"", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), { PEER_CLOSE, NULL, 0 } } },
    { "\"garbage\"", { GETS_BODY, SENDS("hello\r\n\r\n") } },
    { "\"close-delimited\"", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\n\r\nok"), { PEER_CLOSE, NULL, 0 } } },
    { "\"status\"", { GETS_BODY, SENDS("HTTP/1.1 502 Bad\r\n" EMPTY) } },
    { "\"handler\"", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nNonbis-Outcome: unknown\r\n" EMPTY) } },
};

START_TEST(rule_7_2_why_an_outcome_is_unknown)
{
    const char *key = text("7.2-cause-%d", _i);
    peer_script_default(scene.peer, causes[_i].steps);
    EXPECT(post(key, "x"), _i == 5 ? 502 : _i == 6 ? 200 : 504, "unknown");
    EXPECT_MEMBERS(key, { "state", "\"unknown\"" }, { "executed", "\"unknown\"" }, { "executions", "1" },
                   { "cause", causes[_i].cause }, { "expires_at", "null" }, { "response", "null" });
}
END_TEST

START_TEST(rule_7_2_unknown_by_a_crash_and_by_a_drain_that_was_too_short)
{
    struct caller caller;
    SCENE_START("--set", "drain_timeout=0s");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "drained");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    EXPECT(join(&caller), 504, "unknown");
    peer_release(scene.peer, 1);
    SCENE_RESTART(NULL);
    EXPECT_MEMBERS("drained", { "state", "\"unknown\"" }, { "cause", "\"shutdown\"" });
    expect_time(get_status("drained", ""), "completed_at");
    caller_start(&caller, scene.address, "crashed");
    ck_assert(peer_wait_requests(scene.peer, 2));
    daemon_kill(&scene.nonbis);
    (void) join(&caller);
    peer_release(scene.peer, 1);
    SCENE_RESTART(NULL);
    EXPECT_MEMBERS("crashed", { "state", "\"unknown\"" }, { "cause", "\"crash\"" }, { "completed_at", "null" });
    scene_end();
}
END_TEST

START_TEST(rule_7_3_while_it_runs_there_is_a_retry_after)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "7.3");
    const char *wait = field_of(get_status("7.3", ""), "Retry-After");
    ck_assert_ptr_nonnull(wait);
    ck_assert_uint_eq(strspn(wait, "0123456789"), strlen(wait));
    ck_assert_int_ge(strtol(wait, NULL, 10), 1);
    ck_assert_int_le(strtol(wait, NULL, 10), 60);
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    EXPECT_NO_FIELD(get_status("7.3", ""), "Retry-After");
}
END_TEST

SUITE(contract_status)
{
    Suite *suite = suite_create("contract/07-status");
    RULE(suite, house_plain, section_7_all_answers_are_no_store_and_none_has_a_status_word);
    RULE(suite, house_plain, section_7_get_includes_head_and_another_method_is_answered_405_with_allow);
    RULE(suite, house_plain, section_7_a_body_of_up_to_4096_bytes_is_accepted_and_not_read);
    RULE(suite, house_plain, rule_7_1_a_command_is_asked_for_by_key_or_by_any_of_its_ids);
    RULE(suite, house_plain, rule_7_1_it_only_reads);
    RULE(suite, house_plain, rule_7_2_a_command_that_runs);
    RULE(suite, house_plain, rule_7_2_a_completed_command_and_its_replays);
    RULE(suite, house_plain, rule_7_2_a_released_and_a_voided_command);
    RULE(suite, house_plain, rule_7_2_a_body_that_was_not_kept);
    RULE(suite, house_plain, rule_7_3_while_it_runs_there_is_a_retry_after);
    RULE(suite, house_tenants, rule_7_1_tenant_and_grammar_of_keys_are_those_of_the_post);
    RULE_ROWS(suite, house_hasty, rule_7_2_why_an_outcome_is_unknown, causes);
    RULE_ALONE(suite, rule_7_1_it_goes_on_during_a_drain);
    RULE_ALONE(suite, rule_7_2_an_expired_command);
    RULE_ALONE(suite, rule_7_2_unknown_by_a_crash_and_by_a_drain_that_was_too_short);
    return suite;
}
