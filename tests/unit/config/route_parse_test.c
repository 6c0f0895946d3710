/* The text of --route (docs/contract.md section 1): what it becomes, and what is said when it is wrong. */
#include "server/config/settings.h"
#include "tests/support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* What the routes of these tests inherit. */
static const struct settings defaults = {
    .ttl_ms = 86400000,
    .tombstone_ttl_ms = INT64_C(2592000000),
    .answer_timeout_ms = 30000,
    .hard_timeout_ms = 120000,
};

static char error_text[4097];

static bool parse(const char *text, struct route *route)
{
    struct buf error;
    buf_init(&error, 4096);
    bool good = route_parse(route, view_of(text), &defaults, &error);
    snprintf(error_text, sizeof(error_text), "%.*s", (int) error.len, error.len > 0 ? error.ptr : "");
    buf_fini(&error);
    return good;
}

static const struct {
    const char *text, *method, *pattern;
    bool required;
    int64_t ttl_ms, tombstone_ttl_ms, answer_ms, hard_ms;
    const char *drop;
} good[] = {
#define INHERITED 86400000, INT64_C(2592000000), 30000, 120000
    { "POST /*", "POST", "/*", true, INHERITED, "" },
    { "  PATCH \t /orders  ", "PATCH", "/orders", true, INHERITED, "" },
    { "* /orders/*", "*", "/orders/*", true, INHERITED, "" },
    { "M-SEARCH /", "M-SEARCH", "/", true, INHERITED, "" },
    { "POST /orders/", "POST", "/orders", true, INHERITED, "" },
    { "POST //orders//%61bc%2a", "POST", "/orders/abc%2A", true, INHERITED, "" },
    { "POST /Orders", "POST", "/Orders", true, INHERITED, "" },
    { "POST /_nonbisx", "POST", "/_nonbisx", true, INHERITED, "" },
    { "POST /x key=optional", "POST", "/x", false, INHERITED, "" },
    { "POST /x key=required", "POST", "/x", true, INHERITED, "" },
    { "\"POST /x\" key=optional", "POST", "/x", false, INHERITED, "" },
    { "\"POST /x\"", "POST", "/x", true, INHERITED, "" },
    { "POST /x ttl=1h", "POST", "/x", true, 3600000, INT64_C(2592000000), 30000, 120000, "" },
    { "POST /x ttl=1000h tombstone_ttl=2000h", "POST", "/x", true, INT64_C(3600000000), INT64_C(7200000000), 30000,
      120000, "" },
    { "POST /x answer_timeout=120s", "POST", "/x", true, 86400000, INT64_C(2592000000), 120000, 120000, "" },
    { "POST /x hard_timeout=29s", "POST", "/x", true, 86400000, INT64_C(2592000000), 29000, 29000, "" },
    { "POST /x hard_timeout=5m answer_timeout=200s", "POST", "/x", true, 86400000, INT64_C(2592000000), 200000, 300000,
      "" },
    { "POST /x replay_drop=X-Request-Id,Server", "POST", "/x", true, INHERITED, "X-Request-Id,Server" },
    { "POST /x replay_drop=", "POST", "/x", true, INHERITED, "" },
#undef INHERITED
};

START_TEST(a_good_text_becomes_a_route)
{
    struct route route;
    ck_assert_msg(parse(good[_i].text, &route), "%s: %s", good[_i].text, error_text);
    ck_assert_str_eq(error_text, "");
    ck_assert(view_equal(route.method, view_of(good[_i].method)));
    ck_assert_msg(view_equal(route.pattern, view_of(good[_i].pattern)), "%.*s", VIEW_ARGS(route.pattern));
    ck_assert(route.key_required == good[_i].required);
    ck_assert_int_eq(route.retention.ttl_ms, good[_i].ttl_ms);
    ck_assert_int_eq(route.retention.tombstone_ttl_ms, good[_i].tombstone_ttl_ms);
    ck_assert_int_eq(route.answer_timeout_ms, good[_i].answer_ms);
    ck_assert_int_eq(route.hard_timeout_ms, good[_i].hard_ms);
    ck_assert(view_equal(route.replay_drop, view_of(good[_i].drop)));
    route_fini(&route);
}
END_TEST

START_TEST(a_route_owns_what_it_points_to)
{
    char text[] = "POST /orders/* replay_drop=Server";
    struct route route;
    ck_assert(parse(text, &route));
    memset(text, '#', sizeof(text) - 1);
    ck_assert_str_eq(route.text, "POST /orders/* replay_drop=Server");
    ck_assert(view_equal(route.method, VIEW("POST")));
    ck_assert(view_equal(route.pattern, VIEW("/orders/*")));
    ck_assert(view_equal(route.replay_drop, VIEW("Server")));
    route_fini(&route);
    ck_assert_ptr_eq(route.text, NULL);
}
END_TEST

START_TEST(statuses_are_listed_as_released_or_unknown)
{
    struct route route;
    ck_assert(parse("POST /x release=409,423,599 unknown=200,500", &route));
    for (int status = 100; status < 600; status++) {
        ck_assert(status_set_has(&route.rules.release, status) == (status == 409 || status == 423 || status == 599));
        ck_assert(status_set_has(&route.rules.unknown, status) == (status == 200 || status == 500));
    }
    route_fini(&route);
}
END_TEST

static const struct {
    const char *text, *word; /* that the message must hold */
} bad[] = {
    { "", "expected METHOD PATH" },
    { "   ", "expected METHOD PATH" },
    { "POST", "a path that starts with /" },
    { "/orders", "a method in capitals" },
    { "post /orders", "a method in capitals, such as POST, or *, got \"post\"" },
    { "PO*T /orders", "a method in capitals" },
    { "CONNECT /x", "never served" },
    { "TRACE /x", "never served" },
    { "POST orders", "a path that starts with /" },
    { "POST *", "a path that starts with /" },
    { "POST /a/*/b", "a * at its end only" },
    { "POST /a**", "a * at its end only" },
    { "POST /a?b=1", "without query" },
    { "POST /a#b", "without query and fragment" },
    { "POST /caf\xc3\xa9", "visible ASCII" },
    { "POST /a\"b", "%22" },
    { "POST /a%2", "two hex digits" },
    { "POST /a%zz", "two hex digits" },
    { "POST /a%*", "two hex digits" },
    { "POST /a/../b", "without dot segments" },
    { "POST /a/%2e%2E/b", "without dot segments" },
    { "POST /a%2Fb", "without dot segments, %2F" },
    { "POST /a%00", "without dot segments, %2F and %00" },
    { "POST /_nonbis", "belongs to nonbis" },
    { "POST /_nonbis/*", "belongs to nonbis" },
    { "POST //%5fnonbis/v1", "belongs to nonbis" },
    { "\"POST /x y\"", "between the quotes" },
    { "\"POST /x", "a method in capitals" },
    { "POST /x keys=optional", "unknown option \"keys\"; did you mean key?" },
    { "POST /x ttll=1h", "did you mean ttl?" },
    { "POST /x answer-timeout=1s", "did you mean answer_timeout?" },
    { "POST /x Key=optional", "did you mean key?" },
    { "POST /x colour=red", "options are key, ttl" },
    { "POST /x key", "expected key=VALUE" },
    { "POST /x key=", "key: expected required or optional" },
    { "POST /x key=maybe", "key: expected required or optional, got \"maybe\"" },
    { "POST /x key=optional key=optional", "option key is given twice" },
    { "POST /x ttl=5", "ttl: expected a duration from 1s to 3650d" },
    { "POST /x ttl=5", "the unit is missing" },
    { "POST /x ttl=0s", "ttl: expected a duration from 1s" },
    { "POST /x hard_timeout=25h", "hard_timeout: expected a duration from 10ms to 24h" },
    { "POST /x answer_timeout=9ms", "answer_timeout: expected a duration from 10ms to 1h" },
    { "POST /x ttl=721h", "ttl (721h) to be at most tombstone_ttl (720h); give the route its own tombstone_ttl" },
    { "POST /x tombstone_ttl=23h", "ttl (24h) to be at most tombstone_ttl (23h); give the route its own ttl" },
    { "POST /x answer_timeout=121s",
      "answer_timeout (121s) to be at most hard_timeout (120s); give the route its own hard_timeout" },
    { "POST /x answer_timeout=9s hard_timeout=8s", "answer_timeout (9s) to be at most hard_timeout (8s)" },
    { "POST /x release=200", "status codes from 400 to 599" },
    { "POST /x release=4O1", "got \"4O1\"" },
    { "POST /x release=600", "status codes" },
    { "POST /x unknown=101", "status codes from 200 to 599" },
    { "POST /x release=401,500 unknown=500", "status 500 is in release and in unknown" },
    { "POST /x replay_drop=a,A", "every name once" },
    { "POST /x replay_drop=a:b", "replay_drop: expected field names" },
};

START_TEST(a_wrong_text_is_refused_with_what_was_expected)
{
    struct route route;
    ck_assert_msg(!parse(bad[_i].text, &route), "%s", bad[_i].text);
    ck_assert_msg(strstr(error_text, bad[_i].word) != NULL, "%s: %s", bad[_i].text, error_text);
    ck_assert_ptr_eq(route.text, NULL);
    ck_assert_ptr_eq(strchr(error_text, '\n'), NULL);
}
END_TEST

/* Somebody asked for both: neither gives way, and the hint names what is missing in the text. */
START_TEST(a_hard_timeout_below_an_answer_timeout_that_was_asked_for_is_refused)
{
    struct settings asked = defaults;
    struct route route;
    struct buf error;
    for (size_t row = 0; row < setting_table_count; row++) {
        asked.sources[row] = SOURCE_SET;
    }
    buf_init(&error, 4096);
    ck_assert(!route_parse(&route, VIEW("POST /r hard_timeout=5s"), &asked, &error));
    ck_assert(
        view_equal(buf_view(&error), VIEW("expected answer_timeout (30s) to be at most hard_timeout (5s); give the "
                                          "route its own answer_timeout")));
    buf_fini(&error);
}
END_TEST

/* With its options the text may be longer: as it is printed, with all of them, it is. */
START_TEST(a_path_over_4096_bytes_is_refused)
{
    static const char options[] = " key=required ttl=24h";
    char text[4200];
    memset(text, 'a', sizeof(text));
    memcpy(text, "POST /", 6);
    struct route route;
    memcpy(text + 5 + 4096, options, sizeof(options));
    ck_assert_msg(parse(text, &route), "%s", error_text);
    ck_assert_uint_eq(route.pattern.len, 4096);
    route_fini(&route);
    text[5 + 4096] = 'a';
    memcpy(text + 5 + 4097, options, sizeof(options));
    ck_assert(!parse(text, &route));
    ck_assert_ptr_ne(strstr(error_text, "expected a path of at most 4096 bytes, got \"/aaaa"), NULL);
}
END_TEST

SUITE(route_parse)
{
    Suite *suite = suite_create("config/route_parse");
    CASE_LOOP(suite, a_good_text_becomes_a_route, COUNT(good));
    CASE(suite, a_route_owns_what_it_points_to);
    CASE(suite, statuses_are_listed_as_released_or_unknown);
    CASE_LOOP(suite, a_wrong_text_is_refused_with_what_was_expected, COUNT(bad));
    CASE(suite, a_hard_timeout_below_an_answer_timeout_that_was_asked_for_is_refused);
    CASE(suite, a_path_over_4096_bytes_is_refused);
    return suite;
}
