/* status_body_test.c - status and contract as clients read them (docs/contract.md 7.2, 7.6): whole bodies, byte for byte. */
#include "server/api/contract_body.h"
#include "server/api/status_body.h"

#include "tests/support/suite.h"

static const uint8_t id[COMMAND_ID_BYTES] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                              0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
#define ID "\"id\":\"00112233445566778899aabbccddeeff\""

/* 1796000000000 is 2026-11-30T00:53:20Z. */
enum { OFFSET_MS = 250 };
#define AT(ms) INT64_C(1796000000000) + (ms) -OFFSET_MS

static const struct {
    struct status_facts facts;
    const char *json;
} rows[] = {
    { { .view = { RECORD_COMPLETED, EXECUTED_YES, 1, CAUSE_NONE, AT(1), AT(2003), AT(86402003), true, 201, 5000000000,
                  true },
        .key = { "order-\"1\"\\", 10 },
        .request = { "POST /orders/1", 14 },
        .replays = 4294967295 },
      "{" ID ",\"key\":\"order-\\\"1\\\"\\\\\",\"state\":\"completed\",\"executed\":\"yes\",\"executions\":1,"
      "\"replays\":4294967295,\"created_at\":\"2026-11-30T00:53:20.001Z\",\"completed_at\":\"2026-11-30T00:53:22."
      "003Z\","
      "\"expires_at\":\"2026-12-01T00:53:22.003Z\",\"cause\":null,\"resolved\":false,"
      "\"request\":{\"method\":\"POST\",\"target\":\"/orders/1\"},"
      "\"response\":{\"status\":201,\"length\":5000000000,\"kept\":true}}" },
    { { .view = { RECORD_IN_PROGRESS, EXECUTED_UNKNOWN, 2, CAUSE_NONE, AT(1), 0, 0, false, 0, 0, false },
        .key = { "k", 1 },
        .request = { "PATCH /\xC3\xA4", 9 } },
      "{" ID ",\"key\":\"k\",\"state\":\"in_progress\",\"executed\":\"unknown\",\"executions\":2,\"replays\":0,"
      "\"created_at\":\"2026-11-30T00:53:20.001Z\",\"completed_at\":null,\"expires_at\":null,\"cause\":null,"
      "\"resolved\":false,\"request\":{\"method\":\"PATCH\",\"target\":\"/?"
      "?\"},\"response\":null}" },
    { { .view = { RECORD_UNKNOWN, EXECUTED_UNKNOWN, 1, CAUSE_CLOSE_DELIMITED, AT(1), AT(2), 0, false, 0, 0, false },
        .key = { "k", 1 },
        .request = { "POST /", 6 } },
      "{" ID ",\"key\":\"k\",\"state\":\"unknown\",\"executed\":\"unknown\",\"executions\":1,\"replays\":0,"
      "\"created_at\":\"2026-11-30T00:53:20.001Z\",\"completed_at\":\"2026-11-30T00:53:20.002Z\",\"expires_at\":null,"
      "\"cause\":\"close-delimited\",\"resolved\":false,\"request\":{\"method\":\"POST\",\"target\":\"/\"},"
      "\"response\":null}" },
    /* voided before anybody asked for anything */
    { { .view = { RECORD_VOIDED, EXECUTED_NO, 0, CAUSE_NONE, AT(1), AT(1), 0, false, 0, 0, false },
        .key = { "k", 1 },
        .request = { " ", 1 } },
      "{" ID ",\"key\":\"k\",\"state\":\"voided\",\"executed\":\"no\",\"executions\":0,\"replays\":0,"
      "\"created_at\":\"2026-11-30T00:53:20.001Z\",\"completed_at\":\"2026-11-30T00:53:20.001Z\",\"expires_at\":null,"
      "\"cause\":null,\"resolved\":false,\"request\":null,\"response\":null}" },
};

START_TEST(a_status_is_written_as_these_bytes)
{
    struct status_facts facts = rows[_i].facts;
    struct buf out;
    facts.command_id = id;
    facts.time_offset_ms = OFFSET_MS;
    buf_init(&out, 4096);
    status_body_write(&facts, &out);
    ck_assert(!out.failed);
    ck_assert_msg(view_equal(buf_view(&out), view_of(rows[_i].json)), "row %d:\n got %.*s\nwant %s", _i,
                  VIEW_ARGS(buf_view(&out)), rows[_i].json);
    buf_fini(&out);
}
END_TEST

START_TEST(a_status_that_finds_no_room_is_failed_and_not_cut)
{
    struct status_facts facts = rows[0].facts;
    struct buf out;
    facts.command_id = id;
    buf_init(&out, 64);
    status_body_write(&facts, &out);
    ck_assert(out.failed);
    ck_assert_uint_eq(out.len, 0);
    buf_fini(&out);
}
END_TEST

START_TEST(the_contract_is_written_as_these_bytes)
{
    const struct contract_facts facts = { .ttl_ms = 86400000,
                                          .tombstone_ttl_ms = 2592000500,
                                          .body_max = 1048576,
                                          .response_keep_max = 1073741824,
                                          .wait_max_ms = 30000,
                                          .window_start_ms = INT64_C(1796000000000) };
    struct buf out;
    buf_init(&out, 4096);
    contract_body_write(&facts, &out);
    ck_assert(!out.failed);
    static const char json[] =
        "{\"version\":1,\"retention\":{\"ttl\":86400,\"tombstone_ttl\":2592000.5},"
        "\"limits\":{\"body_max\":1048576,\"response_keep_max\":1073741824,\"key_max\":255},"
        "\"key\":\"1 to 255 bytes of visible ASCII (0x21 to 0x7E), case-sensitive; bare without quotation marks, or "
        "one "
        "structured-field String, whose parameters are ignored; \\\"k\\\" and k are the same key\","
        "\"wait_max\":30,\"window_start\":\"2026-11-30T00:53:20.000Z\"}";
    ck_assert_msg(view_equal(buf_view(&out), view_of(json)), " got %.*s\nwant %s", VIEW_ARGS(buf_view(&out)), json);
    buf_fini(&out);
}
END_TEST

START_TEST(the_word_about_a_route_is_written_as_these_bytes)
{
    static const struct {
        struct route_facts facts;
        const char *json;
    } words[] = {
        { { .method = { "POST", 4 },
            .is_protected = true,
            .key_required = true,
            .window_start_ms = INT64_C(1796000000000) },
          "{\"version\":1,\"method\":\"POST\",\"protected\":true,\"key\":\"required\","
          "\"window_start\":\"2026-11-30T00:53:20.000Z\"}" },
        { { .method = { "PATCH", 5 }, .is_protected = true, .window_start_ms = INT64_C(1796000000000) },
          "{\"version\":1,\"method\":\"PATCH\",\"protected\":true,\"key\":\"optional\","
          "\"window_start\":\"2026-11-30T00:53:20.000Z\"}" },
        { { .method = { "GET", 3 }, .window_start_ms = INT64_C(1796000000000) },
          "{\"version\":1,\"method\":\"GET\",\"protected\":false,\"key\":null,"
          "\"window_start\":\"2026-11-30T00:53:20.000Z\"}" },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct buf out;
        buf_init(&out, 4096);
        route_body_write(&words[i].facts, &out);
        ck_assert_msg(view_equal(buf_view(&out), view_of(words[i].json)), " got %.*s\nwant %s",
                      VIEW_ARGS(buf_view(&out)), words[i].json);
        buf_fini(&out);
    }
}
END_TEST

SUITE(status_body)
{
    Suite *suite = suite_create("api/status_body");
    CASE_LOOP(suite, a_status_is_written_as_these_bytes, sizeof rows / sizeof rows[0]);
    CASE(suite, a_status_that_finds_no_room_is_failed_and_not_cut);
    CASE(suite, the_contract_is_written_as_these_bytes);
    CASE(suite, the_word_about_a_route_is_written_as_these_bytes);
    return suite;
}
