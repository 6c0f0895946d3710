/* status_test.c - what became of a command, asked over real sockets (docs/contract.md section 7): told to its own caller, kept from everybody
 * else, and never a reason to execute anything. */
#include "tests/support/caller.h"
#include "tests/support/rig.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"
#define COMMANDS "/_nonbis/v1/commands/"

static const struct peer_step held[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_WAIT, NULL, 0 },
    { PEER_SEND,
      "HTTP/1.1 201 Created\r\nLocation: /orders/7\r\nCache-Control: max-age=60\r\n"
      "Set-Cookie: s=1\r\nContent-Length: 2\r\n\r\nok",
      0 },
    PEER_END
};
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };

static struct rig rig;

static struct http_answer ask(const char *method, const char *target, const char *key, const char *more)
{
    char fields[1024] = "";
    if (key != NULL) {
        (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n%s", key, more);
    } else {
        (void) snprintf(fields, sizeof fields, "%s", more);
    }
    struct http_answer answer = http_request(rig.address, method, target, fields, NULL);
    ck_assert_msg(http_field_is(&answer, "Cache-Control", "no-store"), "%s %s may be cached: %s", method, target,
                  answer.head);
    ck_assert_int_eq(http_field_count(&answer, "Cache-Control"), 1);
    ck_assert_int_eq(http_field_count(&answer, "Idempotency-Status"), 0);
    return answer;
}

#define EXPECT_HOLDS(answer, text)                                                                                     \
    ck_assert_msg(strstr((answer).body, (text)) != NULL, "'%s' is not in %s", (text), (answer).body)

static void expect_problem(const char *method, const char *target, const char *key, const char *more, int status,
                           const char *name)
{
    char type[128];
    struct http_answer answer = ask(method, target, key, more);
    (void) snprintf(type, sizeof type, "\"type\":\"urn:nonbis:problem:%s\"", name);
    ck_assert_msg(answer.status == status, "%s %s: %d instead of %d: %s", method, target, answer.status, status,
                  answer.body);
    EXPECT_HOLDS(answer, type);
    http_answer_free(&answer);
}

/* 200, and these members, by literal text in their order. */
static void expect_status(const char *key, const char *const *texts)
{
    struct http_answer answer = ask("GET", STATUS, key, "");
    ck_assert_msg(answer.status == 200, "%d: %s", answer.status, answer.body);
    for (const char *at = answer.body; *texts != NULL; texts++) {
        at = strstr(at, *texts);
        ck_assert_msg(at != NULL, "%s is not in its place in %s", *texts, answer.body);
    }
    http_answer_free(&answer);
}
#define EXPECT_STATUS(key, ...) expect_status((key), (const char *const[]){ __VA_ARGS__, NULL })

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static void text_of(const cJSON *object, const char *name, char *out, size_t size)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    ck_assert_msg(cJSON_IsString(member), "%s is no string", name);
    (void) snprintf(out, size, "%s", member->valuestring);
}

/* "/_nonbis/v1/commands/ID" of a key, from its status. */
static const char *url_of(const char *key)
{
    static char url[128];
    char id[64];
    struct http_answer answer = ask("GET", STATUS, key, "");
    cJSON *object = cJSON_Parse(answer.body);
    text_of(object, "id", id, sizeof id);
    ck_assert_uint_eq(strlen(id), 32);
    (void) snprintf(url, sizeof url, COMMANDS "%s", id);
    cJSON_Delete(object);
    http_answer_free(&answer);
    return url;
}

START_TEST(a_command_is_told_from_its_claim_to_its_replays)
{
    struct caller caller;
    char wait[16], link[256];
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, held);
    expect_problem("GET", STATUS, "k-1", "", 404, "key-not-seen");
    caller_start(&caller, rig.address, "k-1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    EXPECT_STATUS("k-1",
                  "\"key\":\"k-1\",\"state\":\"in_progress\",\"executed\":\"unknown\",\"executions\":1,\"replays\":0",
                  "\"completed_at\":null,\"expires_at\":null,\"cause\":null,\"resolved\":false",
                  "\"request\":{\"method\":\"POST\",\"target\":\"/orders\"},\"response\":null}");
    struct http_answer running = ask("GET", STATUS, "\"k-1\"", "");
    ck_assert(http_field(&running, "Retry-After", wait, sizeof wait) && strtol(wait, NULL, 10) >= 1);
    peer_release(rig.peer, 1);
    caller_join(&caller);
    RIG_EXPECT(caller.answer, 201, "executed");
    ck_assert(http_field(&caller.answer, "Link", link, sizeof link));
    post("k-1", 201, "replayed");
    post("k-1", 201, "replayed");
    EXPECT_STATUS("k-1", "\"state\":\"completed\",\"executed\":\"yes\",\"executions\":1,\"replays\":2",
                  "\"cause\":null,\"resolved\":false", "\"response\":{\"status\":201,\"length\":2,\"kept\":true}}");
    /* The path that Link names tells the same, byte for byte; HEAD tells the head. */
    struct http_answer by_key = ask("GET", STATUS, "k-1", ""), by_id = ask("GET", url_of("k-1"), NULL, "");
    ck_assert_int_eq(by_id.status, 200);
    ck_assert_str_eq(by_id.body, by_key.body);
    ck_assert_ptr_nonnull(strstr(link, url_of("k-1")));
    ck_assert_int_eq(http_field_count(&by_key, "Retry-After"), 0);
    ck_assert_int_eq(http_field_count(&by_key, "Idempotency-Expires"), 1);
    ck_assert(http_field_is(&by_key, "Link", link));
    struct http_answer head = ask("HEAD", STATUS, "k-1", "");
    ck_assert_int_eq(head.status, 200);
    ck_assert_uint_eq(head.body_len, 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&running);
    http_answer_free(&caller.answer);
    http_answer_free(&by_key);
    http_answer_free(&by_id);
    http_answer_free(&head);
    rig_end(&rig);
}
END_TEST

/* The Date of an answer of the server ("IMF-fixdate" is to the second) against a time of the body, cut to the second. */
START_TEST(times_are_wall_clock_times)
{
    struct tm tm;
    char created[64], completed[64], expires[64], text[64];
    time_t before = time(NULL);
    rig_start(&rig, NULL);
    post("k-1", 200, "executed");
    time_t after = time(NULL);
    struct http_answer answer = ask("GET", STATUS, "k-1", "");
    cJSON *object = cJSON_Parse(answer.body);
    text_of(object, "created_at", created, sizeof created);
    text_of(object, "completed_at", completed, sizeof completed);
    text_of(object, "expires_at", expires, sizeof expires);
    ck_assert_uint_eq(strlen(created), 24);
    bool found = false;
    for (time_t at = before; at <= after + 1 && !found; at++) {
        (void) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&at, &tm));
        found = strncmp(text, created, strlen(text)) == 0;
    }
    ck_assert_msg(found, "created_at %s is not now", created);
    ck_assert_int_le(strcmp(created, completed), 0);
    ck_assert_str_eq(completed + 10, expires + 10); /* ttl is 24 h: another day, the same time of it */
    ck_assert_str_ne(completed, expires);
    cJSON_Delete(object);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(unknown_released_and_crashed_commands_are_told_with_their_cause)
{
    struct caller caller;
    rig_start(&rig, NULL);
    peer_script_for_request(rig.peer, 1, lost);
    peer_script_for_request(rig.peer, 2, busy);
    peer_script_for_request(rig.peer, 3, busy);
    peer_script_for_request(rig.peer, 4, held);
    post("lost", 504, "unknown");
    post("busy", 429, "not-executed");
    post("busy", 429, "not-executed");
    EXPECT_STATUS("lost", "\"state\":\"unknown\",\"executed\":\"unknown\",\"executions\":1", "\"expires_at\":null",
                  "\"cause\":\"reset\"", "\"response\":null");
    EXPECT_STATUS("busy", "\"state\":\"released\",\"executed\":\"no\",\"executions\":2", "\"cause\":null");
    caller_start(&caller, rig.address, "crashed");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    daemon_kill(&rig.nonbis);
    caller_join(&caller);
    peer_release(rig.peer, 1);
    rig_restart(&rig, NULL);
    EXPECT_STATUS("crashed", "\"state\":\"unknown\",\"executed\":\"unknown\",\"executions\":1", "\"cause\":\"crash\"");
    /* Ids are found after a restart, too. */
    struct http_answer by_id = ask("GET", url_of("lost"), NULL, "");
    ck_assert_int_eq(by_id.status, 200);
    EXPECT_HOLDS(by_id, "\"key\":\"lost\"");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 4);
    http_answer_free(&by_id);
    http_answer_free(&caller.answer);
    rig_end(&rig);
}
END_TEST

START_TEST(an_expired_command_is_told_as_long_as_its_key_is_remembered)
{
    const char *const more[] = { "--set", "ttl=1s", NULL };
    rig_start(&rig, more);
    post("k-1", 200, "executed");
    struct http_answer answer = ask("GET", STATUS, "k-1", "");
    while (strstr(answer.body, "\"state\":\"completed\"") != NULL) {
        http_answer_free(&answer);
        answer = ask("GET", STATUS, "k-1", "");
    }
    EXPECT_HOLDS(answer, "\"state\":\"expired\",\"executed\":\"yes\"");
    EXPECT_HOLDS(answer, "\"response\":{\"status\":200,\"length\":2,\"kept\":false}");
    ck_assert_int_eq(http_field_count(&answer, "Idempotency-Expires"), 0);
    expect_problem("GET", RESPONSE, "k-1", "", 422, "key-expired");
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(the_stored_answer_is_given_as_a_replay_without_a_payload)
{
    struct caller caller;
    char value[64];
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, held);
    peer_script_for_request(rig.peer, 2, lost);
    peer_script_for_request(rig.peer, 3, busy);
    expect_problem("GET", RESPONSE, "k-1", "", 404, "key-not-seen");
    caller_start(&caller, rig.address, "k-1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    struct http_answer running = ask("GET", RESPONSE, "k-1", "");
    ck_assert_int_eq(running.status, 409);
    EXPECT_HOLDS(running, "in-progress");
    ck_assert(http_field(&running, "Retry-After", value, sizeof value) && strtol(value, NULL, 10) >= 1);
    peer_release(rig.peer, 1);
    caller_join(&caller);
    struct http_answer replay = ask("GET", RESPONSE, "k-1", "Content-Type: text/other\r\n");
    ck_assert_int_eq(replay.status, 201);
    ck_assert_str_eq(replay.body, "ok");
    ck_assert(http_field_is(&replay, "Location", "/orders/7"));
    ck_assert(http_field_is(&replay, "Idempotent-Replayed", "true"));
    ck_assert_int_eq(http_field_count(&replay, "Idempotency-Expires"), 1);
    ck_assert_int_eq(http_field_count(&replay, "Link"), 1);
    ck_assert_int_eq(http_field_count(&replay, "Set-Cookie"), 0);
    struct http_answer head = ask("HEAD", RESPONSE, "k-1", "");
    ck_assert_int_eq(head.status, 201);
    ck_assert(http_field_is(&head, "Content-Length", "2"));
    ck_assert_uint_eq(head.body_len, 0);
    post("lost", 504, "unknown");
    struct http_answer unknown = ask("GET", RESPONSE, "lost", "");
    ck_assert_int_eq(unknown.status, 504);
    EXPECT_HOLDS(unknown, "outcome-unknown");
    EXPECT_HOLDS(unknown, "\"command\":\"/_nonbis/v1/commands/");
    ck_assert_int_eq(http_field_count(&unknown, "Retry-After"), 0);
    post("busy", 429, "not-executed");
    expect_problem("GET", RESPONSE, "busy", "", 404, "key-not-seen");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    http_answer_free(&caller.answer);
    http_answer_free(&running);
    http_answer_free(&replay);
    http_answer_free(&head);
    http_answer_free(&unknown);
    rig_end(&rig);
}
END_TEST

/* --- strangers --- */

/* The answer's bytes without what comes from the request or the clock: the number in `instance`, the length that follows from it, and Date. */
static const char *without_request(const struct http_answer *answer, char *out, size_t size)
{
    static const char *const cut[] = { "urn:nonbis:request:", "Content-Length: ", "Date: " };
    (void) snprintf(out, size, "%s\r\n\r\n%s", answer->head, answer->body);
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        char *from = strstr(out, cut[i]);
        ck_assert_ptr_nonnull(from);
        from += strlen(cut[i]);
        char *to = from + strcspn(from, "\"\r");
        memmove(from, to, strlen(to) + 1);
    }
    return out;
}

START_TEST(foreign_tenant_other_credential_and_unused_key_are_told_the_same_bytes)
{
    static const char *const more[] = { "--set", "tenant=header:X-Tenant", NULL };
    static const char *const mine = "X-Tenant: a\r\nAuthorization: Bearer mine\r\n";
    char fields[256], url[128], unused[4096], other[4096];
    rig_start(&rig, more);
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: k-1\r\n%s", mine);
    struct http_answer first = http_request(rig.address, "POST", "/orders", fields, "x");
    RIG_EXPECT(first, 200, "executed");
    struct http_answer known = ask("GET", STATUS, "k-1", mine);
    ck_assert_int_eq(known.status, 200);
    cJSON *object = cJSON_Parse(known.body);
    char id[64];
    text_of(object, "id", id, sizeof id);
    (void) snprintf(url, sizeof url, COMMANDS "%s", id);
    cJSON_Delete(object);
    struct http_answer by_id = ask("GET", url, NULL, mine);
    ck_assert_int_eq(by_id.status, 200);
    struct http_answer nobody = ask("GET", STATUS, "unused", mine);
    ck_assert_int_eq(nobody.status, 404);
    EXPECT_HOLDS(nobody, "\"window_start\":\"20");
    EXPECT_HOLDS(nobody, "\"executed\":\"unknown\"");
    (void) without_request(&nobody, unused, sizeof unused);
    const struct {
        const char *target, *key, *fields;
    } strangers[] = {
        { STATUS, "k-1", "X-Tenant: b\r\nAuthorization: Bearer mine\r\n" },
        { STATUS, "k-1", "X-Tenant: a\r\nAuthorization: Bearer other\r\n" },
        { STATUS, "k-1", "X-Tenant: a\r\n" },
        { url, NULL, "X-Tenant: b\r\nAuthorization: Bearer mine\r\n" },
        { url, NULL, "X-Tenant: a\r\nAuthorization: Bearer other\r\n" },
        { url, NULL, "X-Tenant: a\r\nX-API-Key: mine\r\n" },
        { COMMANDS "00112233445566778899aabbccddeeff", NULL, mine },
        { COMMANDS "00000000000000000000000000000000", NULL, mine },
        { COMMANDS "0011", NULL, mine },
        { COMMANDS "00112233445566778899aabbccddeefg", NULL, mine },
        { RESPONSE, "k-1", "X-Tenant: b\r\nAuthorization: Bearer mine\r\n" },
        { RESPONSE, "k-1", "X-Tenant: a\r\nAuthorization: Bearer other\r\n" },
        { RESPONSE, "unused", mine },
    };
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        struct http_answer answer = ask("GET", strangers[i].target, strangers[i].key, strangers[i].fields);
        ck_assert_msg(strcmp(without_request(&answer, other, sizeof other), unused) == 0,
                      "row %zu is told apart:\n%s\nwanted:\n%s", i, other, unused);
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&known);
    http_answer_free(&by_id);
    http_answer_free(&nobody);
    rig_end(&rig);
}
END_TEST

START_TEST(a_missing_tenant_or_key_a_wrong_method_or_path_is_refused)
{
    static const char *const more[] = { "--set", "tenant=header:X-Tenant", NULL };
    static const char *const tenant = "X-Tenant: a\r\n";
    rig_start(&rig, more);
    static const struct {
        const char *method, *target, *key, *problem;
        int status;
        bool tenant;
    } rows[] = {
        { "GET", STATUS, "k", "tenant-missing", 401, false },
        { "GET", COMMANDS "00", NULL, "tenant-missing", 401, false },
        { "GET", RESPONSE, "k", "tenant-missing", 401, false },
        { "POST", VOID, "k", "tenant-missing", 401, false },
        { "GET", STATUS, NULL, "key-missing", 400, true },
        { "GET", RESPONSE, NULL, "key-missing", 400, true },
        { "POST", VOID, NULL, "key-missing", 400, true },
        { "GET", STATUS, "a b", "key-malformed", 400, true },
        { "GET", STATUS, "a\r\nIdempotency-Key: b", "key-malformed", 400, true },
        { "POST", VOID, "\"\"", "key-malformed", 400, true },
        { "POST", STATUS, "k", "method-not-allowed", 405, true },
        { "DELETE", COMMANDS "00", NULL, "method-not-allowed", 405, false },
        { "OPTIONS", "/_nonbis/v1", NULL, "method-not-allowed", 405, false },
        { "PUT", RESPONSE, "k", "method-not-allowed", 405, true },
        { "GET", VOID, "k", "method-not-allowed", 405, true },
        { "GET", "/_nonbis/v1/commands", "k", "not-found", 404, false },
        { "GET", COMMANDS "00/11", NULL, "not-found", 404, false },
        { "GET", "/_nonbis/v1/command/other", "k", "not-found", 404, false },
        { "GET", "/_nonbis/v2", NULL, "not-found", 404, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_problem(rows[i].method, rows[i].target, rows[i].key, rows[i].tenant ? tenant : "", rows[i].status,
                       rows[i].problem);
    }
    struct http_answer wrong = ask("POST", STATUS, "k", tenant);
    ck_assert(http_field_is(&wrong, "Allow", "GET, HEAD"));
    http_answer_free(&wrong);
    wrong = ask("GET", VOID, "k", tenant);
    ck_assert(http_field_is(&wrong, "Allow", "POST"));
    http_answer_free(&wrong);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    rig_end(&rig);
}
END_TEST

START_TEST(the_contract_in_force_is_told_to_everybody)
{
    static const char *const more[] = { "--set", "tenant=header:X-Tenant", "--set", "ttl=2h",
                                        "--set", "body_max=2KiB",          NULL };
    rig_start(&rig, more);
    struct http_answer answer = ask("GET", "/_nonbis/v1", NULL, "");
    ck_assert_int_eq(answer.status, 200);
    ck_assert(http_field_is(&answer, "Content-Type", "application/json"));
    EXPECT_HOLDS(answer, "{\"version\":1,\"retention\":{\"ttl\":7200,\"tombstone_ttl\":2592000},"
                         "\"limits\":{\"body_max\":2048,\"response_keep_max\":1048576,\"key_max\":255}");
    EXPECT_HOLDS(answer, "\"wait_max\":30,\"window_start\":\"20");
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(status_goes_on_while_the_server_drains_and_reads_only)
{
    struct caller caller;
    rig_start(&rig, NULL);
    post("done", 200, "executed");
    struct http_answer voided = ask("POST", VOID, "gone", "");
    ck_assert_int_eq(voided.status, 200);
    peer_script_default(rig.peer, held);
    caller_start(&caller, rig.address, "k-1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, "drain"));
    EXPECT_STATUS("k-1", "\"state\":\"in_progress\"");
    EXPECT_STATUS("done", "\"state\":\"completed\"");
    expect_problem("GET", STATUS, "unused", "", 404, "key-not-seen");
    struct http_answer replay = ask("GET", RESPONSE, "done", "");
    ck_assert_int_eq(replay.status, 200);
    /* A void is new work; one that was done before is told all the same. */
    struct http_answer refused = ask("POST", VOID, "unused", "");
    ck_assert_int_eq(refused.status, 503);
    EXPECT_HOLDS(refused, "\"reason\":\"draining\"");
    ck_assert_int_eq(http_field_count(&refused, "Retry-After"), 1);
    struct http_answer again = ask("POST", VOID, "gone", "");
    ck_assert_int_eq(again.status, 200);
    peer_release(rig.peer, 1);
    caller_join(&caller);
    RIG_EXPECT(caller.answer, 201, "executed");
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    rig_restart(&rig, NULL);
    expect_problem("GET", STATUS, "unused", "", 404, "key-not-seen");
    http_answer_free(&voided);
    http_answer_free(&caller.answer);
    http_answer_free(&replay);
    http_answer_free(&refused);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

START_TEST(questions_share_a_connection_and_a_body_with_them_is_small_and_framed)
{
    rig_start(&rig, NULL);
    static const char twice[] = "GET " STATUS " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n\r\n"
                                "POST " VOID " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}"
                                "GET " STATUS " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n\r\n";
    static const int wanted[] = { 404, 200, 200 };
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, twice, sizeof twice - 1));
    for (int i = 0; i < 3; i++) {
        struct http_answer answer = http_receive(fd, false, NULL);
        ck_assert_int_eq(answer.status, wanted[i]);
        http_answer_free(&answer);
    }
    close(fd);
    expect_problem("POST", VOID, "k2", "Content-Length: 4097\r\n", 413, "body-too-large");
    expect_problem("POST", VOID, "k2", "Transfer-Encoding: chunked\r\n", 411, "request-malformed");
    expect_problem("GET", STATUS, "k2", "", 404, "key-not-seen");
    rig_end(&rig);
}
END_TEST

SUITE(status)
{
    Suite *suite = suite_create("integration/status");
    CASE(suite, a_command_is_told_from_its_claim_to_its_replays);
    CASE(suite, times_are_wall_clock_times);
    CASE(suite, unknown_released_and_crashed_commands_are_told_with_their_cause);
    CASE(suite, an_expired_command_is_told_as_long_as_its_key_is_remembered);
    CASE(suite, the_stored_answer_is_given_as_a_replay_without_a_payload);
    CASE(suite, foreign_tenant_other_credential_and_unused_key_are_told_the_same_bytes);
    CASE(suite, a_missing_tenant_or_key_a_wrong_method_or_path_is_refused);
    CASE(suite, the_contract_in_force_is_told_to_everybody);
    CASE(suite, status_goes_on_while_the_server_drains_and_reads_only);
    CASE(suite, questions_share_a_connection_and_a_body_with_them_is_small_and_framed);
    return suite;
}
