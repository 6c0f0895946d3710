/* problem_body_test.c - problem details as clients read them (docs/contract.md section 5): parsed again, member by member. */
#include "server/api/problem_body.h"

#include "tests/support/suite.h"

#include <cjson/cJSON.h>

/* A case and its whole body: members, in this order, and nothing else. */
static const struct {
    struct problem_facts facts;
    const char *json;
} rows[] = {
    { { .problem = PROBLEM_KEY_MISSING,
        .type_prefix = { "urn:nonbis:problem:", 19 },
        .detail = { "Send one.", 9 },
        .instance = { "r-1", 3 } },
      "{\"type\":\"urn:nonbis:problem:key-missing\",\"title\":\"This resource needs an "
      "Idempotency-Key.\",\"status\":400,"
      "\"detail\":\"Send one.\",\"instance\":\"r-1\",\"retryable\":false,\"executed\":\"unknown\"}" },
    { { .problem = PROBLEM_REQUEST_MALFORMED, .status = 411, .type_prefix = { "https://p.example/", 18 } },
      "{\"type\":\"https://p.example/request-malformed\",\"title\":\"The request is malformed.\",\"status\":411,"
      "\"retryable\":false,\"executed\":\"unknown\"}" },
    { { .problem = PROBLEM_KEY_EXPIRED,
        .executed = EXECUTED_YES,
        .has_record = true,
        .command = { "/_nonbis/v1/commands/ab", 23 } },
      "{\"type\":\"key-expired\",\"title\":\"The outcome of this command is no longer kept.\",\"status\":422,"
      "\"retryable\":false,\"executed\":\"yes\",\"command\":\"/_nonbis/v1/commands/ab\"}" },
    { { .problem = PROBLEM_KEY_EXPIRED, .executed = EXECUTED_UNKNOWN, .has_record = true },
      "{\"type\":\"key-expired\",\"title\":\"The outcome of this command is no longer kept.\",\"status\":422,"
      "\"retryable\":false,\"executed\":\"unknown\"}" },
    /* executed is said only of a record that was read */
    { { .problem = PROBLEM_KEY_EXPIRED, .executed = EXECUTED_YES, .command = { "/c", 2 } },
      "{\"type\":\"key-expired\",\"title\":\"The outcome of this command is no longer kept.\",\"status\":422,"
      "\"retryable\":false,\"executed\":\"unknown\"}" },
    /* and only where the table says so */
    { { .problem = PROBLEM_IN_PROGRESS, .executed = EXECUTED_YES, .has_record = true, .command = { "/c", 2 } },
      "{\"type\":\"in-progress\",\"title\":\"The command is being executed.\",\"status\":409,"
      "\"retryable\":true,\"executed\":\"unknown\",\"command\":\"/c\"}" },
    { { .problem = PROBLEM_UPSTREAM_NOT_REACHED, .has_record = true, .command = { "/c", 2 } },
      "{\"type\":\"upstream-not-reached\",\"title\":\"The handler could not be reached.\",\"status\":502,"
      "\"retryable\":true,\"executed\":\"no\",\"command\":\"/c\"}" },
    { { .problem = PROBLEM_KEY_REUSED, .has_record = true, .command = { "/c", 2 }, .differs = 4 | 32 },
      "{\"type\":\"key-reused\",\"title\":\"The Idempotency-Key was used for another request.\",\"status\":422,"
      "\"retryable\":false,\"command\":\"/c\",\"differs\":[\"target\",\"body\"]}" },
    { { .problem = PROBLEM_KEY_REUSED, .differs = 63 },
      "{\"type\":\"key-reused\",\"title\":\"The Idempotency-Key was used for another request.\",\"status\":422,"
      "\"retryable\":false,\"differs\":[\"method\",\"authority\",\"target\",\"content-type\",\"content-encoding\","
      "\"body\"]}" },
    /* a stranger is told nothing else */
    { { .problem = PROBLEM_KEY_REUSED, .has_record = true, .command = { "/c", 2 }, .differs = 64 | 32 },
      "{\"type\":\"key-reused\",\"title\":\"The Idempotency-Key was used for another request.\",\"status\":422,"
      "\"retryable\":false,\"differs\":[\"credentials\"]}" },
    { { .problem = PROBLEM_UNAVAILABLE, .reason = { "draining", 8 } },
      "{\"type\":\"unavailable\",\"title\":\"New commands are not accepted at the moment.\",\"status\":503,"
      "\"retryable\":true,\"executed\":\"unknown\",\"reason\":\"draining\"}" },
    { { .problem = PROBLEM_NOT_VOIDABLE, .executed = EXECUTED_YES, .has_record = true, .state = { "completed", 9 } },
      "{\"type\":\"not-voidable\",\"title\":\"The command can no longer be voided.\",\"status\":422,"
      "\"retryable\":false,\"executed\":\"yes\",\"state\":\"completed\"}" },
    { { .problem = PROBLEM_KEY_NOT_SEEN, .window_start_ms = INT64_C(1796000000123) },
      "{\"type\":\"key-not-seen\",\"title\":\"No command with this key is known.\",\"status\":404,"
      "\"retryable\":true,\"executed\":\"unknown\",\"window_start\":\"2026-11-30T00:53:20.123Z\"}" },
    { { .problem = PROBLEM_NOT_FOUND, .executed = EXECUTED_YES },
      "{\"type\":\"not-found\",\"title\":\"There is no such resource.\",\"status\":404,\"retryable\":false}" },
    /* bytes of a request inside a sentence */
    { { .problem = PROBLEM_NOT_FOUND, .detail = { "a\"b\\c\n\0\xFF\xC3\xA4.", 11 } },
      "{\"type\":\"not-found\",\"title\":\"There is no such resource.\",\"status\":404,"
      "\"detail\":\"a\\\"b\\\\c\\n????.\",\"retryable\":false}" },
};

START_TEST(a_problem_is_written_as_these_bytes)
{
    struct buf out;
    buf_init(&out, 4096);
    problem_body_write(&rows[_i].facts, &out);
    ck_assert(!out.failed);
    ck_assert_msg(view_equal(buf_view(&out), view_of(rows[_i].json)), "row %d:\n got %.*s\nwant %s", _i,
                  VIEW_ARGS(buf_view(&out)), rows[_i].json);
    buf_fini(&out);
}
END_TEST

static const char *text_member(const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    ck_assert_msg(cJSON_IsString(member), "%s is no string", name);
    return member->valuestring;
}

START_TEST(a_full_problem_reads_back_member_by_member)
{
    struct problem_facts facts = { .problem = PROBLEM_NOT_VOIDABLE,
                                   .status = 0,
                                   .detail = VIEW("The command was executed."),
                                   .instance = VIEW("0123456789abcdef"),
                                   .type_prefix = VIEW("urn:nonbis:problem:"),
                                   .executed = EXECUTED_YES,
                                   .has_record = true,
                                   .command = VIEW("/_nonbis/v1/commands/00ff"),
                                   .differs = 1,
                                   .reason = VIEW("store") };
    struct buf out;
    buf_init(&out, 4096);
    problem_body_write(&facts, &out);
    cJSON *read = cJSON_ParseWithLength(out.ptr, out.len);
    ck_assert_ptr_nonnull(read);
    ck_assert_str_eq(text_member(read, "type"), "urn:nonbis:problem:not-voidable");
    ck_assert_str_eq(text_member(read, "title"), "The command can no longer be voided.");
    ck_assert_int_eq(cJSON_GetObjectItemCaseSensitive(read, "status")->valueint, 422);
    ck_assert_str_eq(text_member(read, "detail"), "The command was executed.");
    ck_assert_str_eq(text_member(read, "instance"), "0123456789abcdef");
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(read, "retryable")));
    ck_assert_str_eq(text_member(read, "executed"), "yes");
    ck_assert_str_eq(text_member(read, "command"), "/_nonbis/v1/commands/00ff");
    const cJSON *differs = cJSON_GetObjectItemCaseSensitive(read, "differs");
    ck_assert_int_eq(cJSON_GetArraySize(differs), 1);
    ck_assert_str_eq(cJSON_GetArrayItem(differs, 0)->valuestring, "method");
    ck_assert_str_eq(text_member(read, "reason"), "store");
    ck_assert_int_eq(cJSON_GetArraySize(read), 10);
    cJSON_Delete(read);
    buf_fini(&out);
}
END_TEST

START_TEST(every_problem_is_json_with_its_type_and_status)
{
    struct problem_facts facts = { .problem = (enum problem) _i, .type_prefix = VIEW("urn:nonbis:problem:") };
    struct buf out;
    buf_init(&out, 4096);
    problem_body_write(&facts, &out);
    cJSON *read = cJSON_ParseWithLength(out.ptr, out.len);
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(strncmp(text_member(read, "type"), "urn:nonbis:problem:", 19), 0);
    ck_assert_int_ge(cJSON_GetObjectItemCaseSensitive(read, "status")->valueint, 400);
    ck_assert(cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(read, "retryable")));
    cJSON_Delete(read);
    buf_fini(&out);
}
END_TEST

START_TEST(a_body_over_the_ceiling_fails_the_buffer)
{
    struct problem_facts facts = { .problem = PROBLEM_NOT_FOUND };
    struct buf out;
    buf_init(&out, 20);
    problem_body_write(&facts, &out);
    ck_assert(out.failed);
    buf_fini(&out);
}
END_TEST

static void *no_memory(size_t bytes)
{
    (void) bytes;
    return NULL;
}

START_TEST(a_body_that_could_not_be_built_fails_the_buffer)
{
    cJSON_Hooks hooks = { no_memory, free };
    cJSON_InitHooks(&hooks);
    struct problem_facts facts = { .problem = PROBLEM_NOT_FOUND };
    struct buf out;
    buf_init(&out, 4096);
    problem_body_write(&facts, &out);
    cJSON_InitHooks(NULL);
    ck_assert(out.failed);
    ck_assert_uint_eq(out.len, 0);
    buf_fini(&out);
}
END_TEST

SUITE(api_problem_body)
{
    Suite *suite = suite_create("api/problem_body");
    CASE_LOOP(suite, a_problem_is_written_as_these_bytes, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, a_full_problem_reads_back_member_by_member);
    CASE_LOOP(suite, every_problem_is_json_with_its_type_and_status, PROBLEM_COUNT);
    CASE(suite, a_body_over_the_ceiling_fails_the_buffer);
    CASE(suite, a_body_that_could_not_be_built_fails_the_buffer);
    return suite;
}
