/* op_test.c - setting an operation up, keys, status, wait, void. */
#include "client-sdk/src/key_make.h"
#include "client-sdk/src/url.h"
#include "tests/client/lab.h"
#include "tests/client/step.h"

/* ---- keys --------------------------------------------------------------------------------------------------------- */

struct fixed_random {
    struct random_source source;
    unsigned char byte;
    bool fails;
};

static bool fixed_fill(struct random_source *source, void *bytes, size_t len)
{
    struct fixed_random *fixed = (struct fixed_random *) (void *) source;
    memset(bytes, fixed->byte, len);
    return !fixed->fails;
}

START_TEST(a_key_is_a_uuid_of_version_7)
{
    struct fixed_random zero = { { fixed_fill }, 0x00, false }, ones = { { fixed_fill }, 0xFF, false };
    char key[NONBIS_KEY_SIZE];
    ck_assert(key_make(&zero.source, INT64_C(0x017F22E279B0), key)); /* the time of the RFC's example */
    ck_assert_str_eq(key, "017f22e2-79b0-7000-8000-000000000000");
    ck_assert(key_make(&ones.source, 0, key));
    ck_assert_str_eq(key, "00000000-0000-7fff-bfff-ffffffffffff");
    zero.fails = true;
    ck_assert(!key_make(&zero.source, 1, key));
    ck_assert_str_eq(key, "");
}
END_TEST

START_TEST(ten_thousand_keys_are_ten_thousand)
{
    static char keys[10000][NONBIS_KEY_SIZE];
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(nonbis_key_make(keys[i]), NONBIS_OK);
        ck_assert_int_eq(nonbis_key_check(keys[i], NULL), NONBIS_OK);
    }
    qsort(keys, 10000, NONBIS_KEY_SIZE, (int (*)(const void *, const void *)) strcmp);
    for (int i = 1; i < 10000; i++) {
        ck_assert_str_ne(keys[i - 1], keys[i]);
    }
}
END_TEST

static const struct {
    const char *text;
    int result;
} keys[] = {
    { "k", NONBIS_OK },
    { "\"k\"", NONBIS_OK },
    { "", NONBIS_ERROR_KEY },
    { "a b", NONBIS_ERROR_KEY },
    { "a\"b", NONBIS_ERROR_KEY },
    { "\"\"", NONBIS_ERROR_KEY },
    { "k\x7f", NONBIS_ERROR_KEY },
    { "k\xc3\xa9", NONBIS_ERROR_KEY },
};

START_TEST(what_can_be_a_key_is_told)
{
    const char *why = NULL;
    ck_assert_int_eq(nonbis_key_check(keys[_i].text, &why), keys[_i].result);
    ck_assert_ptr_nonnull(why);
}
END_TEST

START_TEST(no_key_is_made_without_chance)
{
    struct lab lab;
    struct nonbis_op *op = NULL;
    lab_open(&lab, 1, NULL);
    lab.random_fails = true;
    ck_assert_int_eq(nonbis_op_new(&op, lab.client, "http://peer/", NULL, 0), NONBIS_ERROR_RANDOM);
    ck_assert_ptr_null(op);
    lab_close(&lab);
}
END_TEST

/* ---- setting up --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *url, *origin, *endpoint; /* NULL: refused */
} urls[] = {
    { "http://h", "http://h", "http://h" },
    { "http://h/", "http://h", "http://h/" },
    { "https://h:8443/a/b?secret=1#x", "https://h:8443", "https://h:8443/a/b" },
    { "HTTP://h?q", "HTTP://h", "HTTP://h" },
    { "http://[::1]:80/x", "http://[::1]:80", "http://[::1]:80/x" },
    { "http://user:pw@h/", NULL, NULL },
    { "http://h/a b", NULL, NULL },
    { "http://h/\r\nX: y", NULL, NULL },
    { "http:///x", NULL, NULL },
    { "http://:80/", NULL, NULL },
    { "http://h\\x", NULL, NULL },
    { "ftp://h/", NULL, NULL },
    { "h/", NULL, NULL },
    { "", NULL, NULL },
};

START_TEST(a_url_is_taken_apart_or_refused)
{
    struct url_parts parts;
    bool good = url_split(urls[_i].url, &parts);
    ck_assert_msg(good == (urls[_i].origin != NULL), "%s", urls[_i].url);
    if (good) {
        ck_assert(view_equal(parts.origin, view_of(urls[_i].origin)));
        ck_assert(view_equal(parts.endpoint, view_of(urls[_i].endpoint)));
    }
}
END_TEST

static const struct {
    const char *name, *value;
    int result;
} headers[] = {
    { "X-Tenant", "a", NONBIS_OK },
    { "Content-Type", "application/json", NONBIS_OK },
    { "If-Match", "\"7\"", NONBIS_OK },
    { "X-Empty", "", NONBIS_OK },
    { "Idempotency-Key", "other", NONBIS_ERROR_FIELD },
    { "idempotency-KEY", "other", NONBIS_ERROR_FIELD },
    { "Host", "evil", NONBIS_ERROR_FIELD },
    { "Content-Length", "3", NONBIS_ERROR_FIELD },
    { "Transfer-Encoding", "chunked", NONBIS_ERROR_FIELD },
    { "Connection", "close", NONBIS_ERROR_FIELD },
    { "Expect", "100-continue", NONBIS_ERROR_FIELD },
    { "Prefer", "wait=9", NONBIS_ERROR_FIELD },
    { "X-A", "b\r\nX-C: d", NONBIS_ERROR_FIELD },
    { "X-A", "b\nc", NONBIS_ERROR_FIELD },
    { "X A", "b", NONBIS_ERROR_FIELD },
    { "X-A:", "b", NONBIS_ERROR_FIELD },
    { "", "b", NONBIS_ERROR_FIELD },
};

START_TEST(fields_that_are_ours_or_malformed_are_refused)
{
    struct lab lab;
    lab_open(&lab, 1, NULL);
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_header(op, headers[_i].name, headers[_i].value, 0), headers[_i].result);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(the_credential_goes_with_questions_too_and_the_last_value_counts)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, 0);
    struct lab lab;
    lab_open(&lab, 1, &policy);
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .status = 201 });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer old", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "authorization", "Bearer t", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.log_count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(lab.log[i].authorization, "Bearer t");
    }
    ck_assert_str_eq(lab.log[1].url, "http://peer/_nonbis/v1/command");
    ck_assert_ptr_null(strstr(lab.told, "Bearer"));
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(an_exchanged_credential_makes_not_seen_doubtful)
{
    struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_NONBIS, NONBIS_ATTEMPTS, 1, 0);
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        struct lab lab;
        lab_open(&lab, 1, &policy);
        lab_step(&lab, (struct lab_step){ .code = 52 });
        lab_step(&lab, (struct lab_step){ .code = 52 });
        struct nonbis_op *op = lab_post(&lab);
        ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer 1", 0), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
        if (exchanged) {
            ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer 2", 0), NONBIS_OK);
        }
        lab.steps[lab.step_next = lab.step_count] = (struct lab_step) NOT_SEEN;
        lab.step_count++;
        ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_outcome(op), exchanged ? NONBIS_UNKNOWN : NONBIS_NOT_APPLIED);
        nonbis_op_free(op);
        lab_close(&lab);
    }
}
END_TEST

/* ---- status, wait, void ------------------------------------------------------------------------------------------- */

START_TEST(one_question_for_the_status_is_one_exchange)
{
    struct lab lab;
    struct nonbis_op *op = NULL;
    const struct nonbis_status *status = NULL;
    lab_open(&lab, 1, NULL);
    ck_assert_int_eq(nonbis_op_new_for_key(&op, lab.client, "http://peer/any", "k-1"), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_status_url(op, "http://front/prefix/"), NONBIS_OK);
    lab_step(&lab, (struct lab_step){ .fields = "Retry-After: 7", .body = STATE("in_progress", "unknown") });
    lab_step(&lab, (struct lab_step) NOT_SEEN);
    lab_step(&lab, (struct lab_step){ .code = 7, .hooks = -1 });
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert(status->answered && status->seen);
    ck_assert_str_eq(status->state, "in_progress");
    ck_assert_int_eq(status->retry_after_ms, 7000);
    ck_assert_str_eq(lab.log[0].url, "http://front/prefix/_nonbis/v1/command");
    ck_assert_str_eq(lab.log[0].key, "k-1");
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert(status->answered && !status->seen);
    ck_assert_int_eq(status->window_start_ms, INT64_C(1793491200000));
    ck_assert_int_eq(nonbis_op_status(op, &status), NONBIS_OK);
    ck_assert(!status->answered);
    ck_assert_uint_eq(lab.log_count, 3);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK); /* nothing to send */
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_DEADLINE);
    ck_assert_uint_eq(lab.attempts, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_wait_polls_until_the_end_and_fetches_the_answer)
{
    struct lab lab;
    struct nonbis_op *op = NULL;
    lab_open(&lab, 1, NULL);
    ck_assert_int_eq(nonbis_op_new_for_key(&op, lab.client, "http://peer/any", "k-1"), NONBIS_OK);
    lab_step(&lab, (struct lab_step){ .fields = "Retry-After: 1", .body = STATE("in_progress", "unknown") });
    lab_step(&lab, (struct lab_step){ .fields = "Retry-After: 1", .body = STATE("in_progress", "unknown") });
    lab_step(&lab, (struct lab_step){ .body = STATE("completed", "yes") });
    lab_step(&lab, (struct lab_step){
                       .status = 402, .fields = "Idempotent-Replayed: true\nX-Reason: empty", .body = "no money" });
    ck_assert_int_eq(nonbis_op_wait(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_int_eq(nonbis_op_http_status(op), 402);
    size_t len = 0;
    const char *body = nonbis_op_body(op, &len);
    ck_assert_uint_eq(len, 8);
    ck_assert_int_eq(memcmp(body, "no money", 8), 0);
    ck_assert_str_eq(nonbis_op_field(op, "x-reason"), "empty");
    ck_assert(nonbis_op_is_final(op) && nonbis_op_body_is_whole(op));
    ck_assert_uint_eq(nonbis_op_marks(op), NONBIS_MARK_REPLAYED);
    ck_assert_uint_eq(lab.attempts, 0);
    ck_assert_str_eq(lab.log[0].prefer, "");
    ck_assert_str_eq(lab.log[1].prefer, "wait=5"); /* it runs: the server may hold the answer */
    ck_assert_str_eq(lab.log[3].url, "http://peer/_nonbis/v1/command/response");
    ck_assert_int_ge(lab.log[1].at_ms - lab.log[0].at_ms, 1000);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

static const struct {
    const char *what;
    struct lab_step steps[4];
    int step_count;
    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
    int final;
} voids[] = {
    /* clang-format off */
    { "never seen", { NOT_SEEN, IS("voided", "no") }, 2, NONBIS_NOT_APPLIED, NONBIS_STOP_DONE, 1 },
    { "released", { IS("released", "no"), IS("voided", "no") }, 2, NONBIS_NOT_APPLIED, NONBIS_STOP_DONE, 1 },
    { "voided before", { IS("voided", "no") }, 1, NONBIS_NOT_APPLIED, NONBIS_STOP_DONE, 1 },
    { "no answer, then voided", { LOST, NOT_SEEN, LOST, IS("voided", "no") }, 4, NONBIS_NOT_APPLIED, NONBIS_STOP_DONE,
      1 },
    { "too late", { IS("completed", "yes") }, 1, NONBIS_COMPLETED, NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "too late meanwhile", { NOT_SEEN, TELLS(422, "not-voidable", NEVER MEMBER("state",
      "completed") MEMBER("executed", "yes")) }, 2, NONBIS_COMPLETED, NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "unknown", { IS("unknown", "unknown") }, 1, NONBIS_UNKNOWN, NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "running for ever", { IS("in_progress", "unknown"), TELLS(409, "in-progress", RETRY) }, 2, NONBIS_IN_PROGRESS,
      NONBIS_STOP_DEADLINE, 0 },
    { "others' key", { NOT_SEEN, TELLS(422, "key-reused", NEVER DIFFERS("credentials")) }, 2, NONBIS_UNKNOWN,
      NONBIS_STOP_SERVER_SAID_NO, 0 },
    { "no nonbis", { ANSWER(404) }, 1, NONBIS_UNKNOWN, NONBIS_STOP_SERVER_SAID_NO, 0 },
    /* clang-format on */
};

START_TEST(a_void_makes_never_of_not_yet_or_tells_that_it_is_too_late)
{
    struct lab lab;
    struct nonbis_op *op = NULL;
    lab_open(&lab, 1, NULL);
    ck_assert_int_eq(nonbis_op_new_for_key(&op, lab.client, "http://peer/any", "k-1"), NONBIS_OK);
    for (int i = 0; i < voids[_i].step_count; i++) {
        lab_step(&lab, voids[_i].steps[i]);
    }
    ck_assert_int_eq(nonbis_op_void(op), NONBIS_OK);
    ck_assert_msg(nonbis_op_outcome(op) == voids[_i].outcome, "%s: %s", voids[_i].what, nonbis_op_message(op));
    ck_assert_msg(nonbis_op_stop(op) == voids[_i].stop, "%s: %s", voids[_i].what, nonbis_op_message(op));
    ck_assert_int_eq(nonbis_op_is_final(op), voids[_i].final);
    ck_assert_int_eq((nonbis_op_marks(op) & NONBIS_MARK_VOIDED) != 0, voids[_i].final);
    ck_assert_uint_eq(lab.attempts, 0);
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(a_key_from_before_the_servers_memory_is_not_voided)
{
    struct lab lab;
    lab_open(&lab, 1, NULL);
    lab_step(&lab, (struct lab_step){ .code = 52 });
    lab_step(&lab, (struct lab_step){ .status = 404 });
    lab_step(&lab,
             (struct lab_step){ .status = 404,
                                .fields = PJ,
                                .body = PROBLEM("key-not-seen", "\"retryable\":true,"
                                                                "\"window_start\":\"2026-12-01T00:00:00.000Z\"") });
    struct nonbis_op *op = lab_post(&lab);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    op->history.no_status_resource = false; /* as in another process */
    ck_assert_int_eq(nonbis_op_void(op), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_outcome(op), NONBIS_UNKNOWN);
    ck_assert_int_eq(nonbis_op_stop(op), NONBIS_STOP_KEY_EXPIRED);
    for (size_t i = 0; i < lab.log_count; i++) {
        ck_assert_ptr_null(strstr(lab.log[i].url, "/void"));
    }
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

START_TEST(the_body_is_the_operations_own)
{
    struct nonbis_op *op = NULL;
    char body[] = "amount=1";
    struct lab lab;
    lab_open(&lab, 1, NULL);
    lab_step(&lab, (struct lab_step){ .code = 7, .hooks = -1 });
    lab_step(&lab, (struct lab_step){ .status = 201 });
    ck_assert_int_eq(nonbis_op_new(&op, lab.client, "http://peer/orders", body, 8), NONBIS_OK);
    memcpy(body, "amount=9", 8);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_uint_eq(lab.log_count, 2);
    ck_assert_str_eq(lab.log[0].body, "amount=1");
    ck_assert_str_eq(lab.log[1].body, "amount=1");
    nonbis_op_free(op);
    lab_close(&lab);
}
END_TEST

SUITE(op)
{
    Suite *suite = suite_create("client/op");
    CASE(suite, a_key_is_a_uuid_of_version_7);
    CASE(suite, ten_thousand_keys_are_ten_thousand);
    CASE_LOOP(suite, what_can_be_a_key_is_told, sizeof(keys) / sizeof(keys[0]));
    CASE(suite, no_key_is_made_without_chance);
    CASE_LOOP(suite, a_url_is_taken_apart_or_refused, sizeof(urls) / sizeof(urls[0]));
    CASE_LOOP(suite, fields_that_are_ours_or_malformed_are_refused, sizeof(headers) / sizeof(headers[0]));
    CASE(suite, the_credential_goes_with_questions_too_and_the_last_value_counts);
    CASE(suite, an_exchanged_credential_makes_not_seen_doubtful);
    CASE(suite, one_question_for_the_status_is_one_exchange);
    CASE(suite, a_wait_polls_until_the_end_and_fetches_the_answer);
    CASE_LOOP(suite, a_void_makes_never_of_not_yet_or_tells_that_it_is_too_late, sizeof(voids) / sizeof(voids[0]));
    CASE(suite, a_key_from_before_the_servers_memory_is_not_voided);
    CASE(suite, the_body_is_the_operations_own);
    return suite;
}
