/* classify_test.c - client-sdk/src/classify.c: a row per thing that can be seen. */
#include "tests/client/classify_table.h"

#include <curl/curl.h>

START_TEST(every_exchange_has_its_class)
{
    const struct row *row = &rows[_i];
    struct transport_facts facts;
    struct reading reading;
    transport_facts_init(&facts, 4096);
    lab_facts(&facts, &row->step);
    facts.cancelled = row->cancelled;
    facts.hook_refused = row->refused;
    classify_attempt(&facts, &reading);
    ck_assert_msg(reading.finding == row->finding, "%s: %s instead of %s", row->what, finding_name(reading.finding),
                  finding_name(row->finding));
    ck_assert_msg(strcmp(reading_kind(&reading), row->kind) == 0, "%s: kind %s", row->what, reading_kind(&reading));
    ck_assert_msg(reading.shows_contract == row->contract, "%s", row->what);
    transport_facts_fini(&facts);
}
END_TEST

START_TEST(every_answer_to_a_question_has_its_class)
{
    const struct told_row *row = &told[_i];
    struct transport_facts facts;
    struct reading reading;
    transport_facts_init(&facts, 4096);
    lab_facts(&facts, &row->step);
    classify_answer(row->ask, &facts, &reading);
    ck_assert_msg(reading.finding == row->finding, "%s: %s instead of %s", row->what, finding_name(reading.finding),
                  finding_name(row->finding));
    ck_assert_msg(reading.shows_contract == row->contract, "%s", row->what);
    facts.cancelled = true;
    classify_answer(row->ask, &facts, &reading);
    ck_assert_int_eq(reading.finding, FINDING_CANCELLED);
    transport_facts_fini(&facts);
}
END_TEST

START_TEST(a_status_document_is_read_whole)
{
    static const char document[] =
        "{\"id\":\"d0de0e60d572ea1a279e2920105159f8\",\"key\":\"k\",\"state\":\"completed\",\"executed\":\"yes\","
        "\"executions\":2,\"replays\":3,\"created_at\":\"2026-11-29T12:00:00.123Z\","
        "\"completed_at\":\"2026-11-29T12:00:01.000Z\",\"expires_at\":null,\"cause\":null,\"resolved\":true,"
        "\"request\":{\"method\":\"POST\",\"target\":\"/"
        "orders\"},\"response\":{\"status\":201,\"length\":69,\"kept\":true}}";
    struct transport_facts facts;
    struct told_status status;
    const struct lab_step step = { .fields = JSON, .body = document };
    transport_facts_init(&facts, 4096);
    lab_facts(&facts, &step);
    ck_assert(told_status_read(&facts.answer, &status));
    ck_assert_str_eq(status.id, "d0de0e60d572ea1a279e2920105159f8");
    ck_assert_str_eq(status.state, "completed");
    ck_assert_int_eq(status.executions, 2);
    ck_assert_int_eq(status.replays, 3);
    ck_assert_int_eq(status.created_ms, 1795953600123);
    ck_assert_int_eq(status.completed_ms, 1795953601000);
    ck_assert_int_eq(status.expires_ms, 0);
    ck_assert_str_eq(status.cause, "");
    ck_assert(status.resolved && status.response_kept);
    ck_assert_str_eq(status.request_method, "POST");
    ck_assert_str_eq(status.request_target, "/orders");
    ck_assert_int_eq(status.response_status, 201);
    ck_assert_int_eq(status.response_length, 69);
    transport_facts_fini(&facts);
}
END_TEST

/* classify.c knows these numbers by heart, since it does not include libcurl. */
START_TEST(the_codes_are_those_of_curl)
{
    ck_assert_int_eq(CURLE_UNSUPPORTED_PROTOCOL, 1);
    ck_assert_int_eq(CURLE_FAILED_INIT, 2);
    ck_assert_int_eq(CURLE_URL_MALFORMAT, 3);
    ck_assert_int_eq(CURLE_NOT_BUILT_IN, 4);
    ck_assert_int_eq(CURLE_WEIRD_SERVER_REPLY, 8);
    ck_assert_int_eq(CURLE_OUT_OF_MEMORY, 27);
    ck_assert_int_eq(CURLE_OPERATION_TIMEDOUT, 28);
    ck_assert_int_eq(CURLE_ABORTED_BY_CALLBACK, 42);
    ck_assert_int_eq(CURLE_BAD_FUNCTION_ARGUMENT, 43);
    ck_assert_int_eq(CURLE_INTERFACE_FAILED, 45);
    ck_assert_int_eq(CURLE_SSL_ENGINE_NOTFOUND, 53);
    ck_assert_int_eq(CURLE_SSL_CERTPROBLEM, 58);
    ck_assert_int_eq(CURLE_SSL_CIPHER, 59);
    ck_assert_int_eq(CURLE_PEER_FAILED_VERIFICATION, 60);
    ck_assert_int_eq(CURLE_SSL_CACERT_BADFILE, 77);
}
END_TEST

SUITE(classify)
{
    Suite *suite = suite_create("client/classify");
    CASE_LOOP(suite, every_exchange_has_its_class, sizeof(rows) / sizeof(rows[0]));
    CASE_LOOP(suite, every_answer_to_a_question_has_its_class, sizeof(told) / sizeof(told[0]));
    CASE(suite, a_status_document_is_read_whole);
    CASE(suite, the_codes_are_those_of_curl);
    return suite;
}
