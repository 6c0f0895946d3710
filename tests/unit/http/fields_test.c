/* fields_test.c - server/http/fields.c: contract sections 1, 6 and 10. */
#include "server/http/fields.h"
#include "tests/support/suite.h"

#define FIELD(name, value)                                                                                             \
    {                                                                                                                  \
        { (name), sizeof(name) - 1 },                                                                                  \
        {                                                                                                              \
            (value), sizeof(value) - 1                                                                                 \
        }                                                                                                              \
    }
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void assert_block(struct buf *out, const char *expected)
{
    ck_assert(!out->failed);
    ck_assert_msg(view_equal(buf_view(out), view_of(expected)), "wrote:\n%.*s\nexpected:\n%s", VIEW_ARGS(buf_view(out)),
                  expected);
    buf_fini(out);
}

static const struct fields_added bare = { .via_name = { "nb", 2 } };

START_TEST(end_to_end_fields_reach_the_handler_as_received)
{
    const struct header items[] = { FIELD("hOST", "h:81"),
                                    FIELD("Idempotency-Key", "\"k\";a=1"),
                                    FIELD("traceparent", "00-1-2-01"),
                                    FIELD("X-Empty", ""),
                                    FIELD("Cookie", "a=b"),
                                    FIELD("Content-Type", "text/plain"),
                                    FIELD("Authorization", "Bearer x") };
    struct buf out;
    buf_init(&out, 1000);
    fields_to_handler((struct header_span){ items, ROWS(items) }, &bare, &out);
    assert_block(&out,
                 "hOST: h:81\r\nIdempotency-Key: \"k\";a=1\r\ntraceparent: 00-1-2-01\r\nX-Empty: \r\nCookie: a=b\r\n"
                 "Content-Type: text/plain\r\nAuthorization: Bearer x\r\nVia: 1.1 nb\r\n");
}
END_TEST

START_TEST(what_belongs_to_one_connection_does_not_reach_the_handler)
{
    const struct header items[] = {
        FIELD("Connection", "close, X-Mine"),
        FIELD("connection", "x-other"),
        FIELD("x-mine", "1"),
        FIELD("X-Other", "2"),
        FIELD("Keep-Alive", "timeout=5"),
        FIELD("Proxy-Connection", "close"),
        FIELD("TE", "trailers"),
        FIELD("Transfer-Encoding", "chunked"),
        FIELD("Upgrade", "h2c"),
        FIELD("Trailer", "X-T"),
        FIELD("Proxy-Authenticate", "Basic"),
        FIELD("Proxy-Authorization", "Basic x"),
        FIELD("Content-Length", "5"),
        FIELD("Expect", "100-continue"),
        FIELD("X-Kept", "3"),
    };
    struct buf out;
    buf_init(&out, 1000);
    fields_to_handler((struct header_span){ items, ROWS(items) }, &bare, &out);
    assert_block(&out, "X-Kept: 3\r\nVia: 1.1 nb\r\n");
}
END_TEST

START_TEST(a_client_cannot_speak_for_nonbis_or_for_a_proxy)
{
    const struct header items[] = {
        FIELD("Nonbis-Command-Id", "forged"), FIELD("nonbis-anything", "x"),     FIELD("X-Forwarded-For", "1.2.3.4"),
        FIELD("x-forwarded-proto", "https"),  FIELD("X-Forwarded-Host", "evil"), FIELD("X-Forwarded", "kept"),
    };
    struct fields_added added = { .via_name = { "nb", 2 },
                                  .client_addr = { "127.0.0.1", 9 },
                                  .proto = { "http", 4 },
                                  .host = { "h", 1 },
                                  .command_id = { "0123456789abcdef0123456789abcdef", 32 },
                                  .execution = 4294967295U };
    struct buf out;
    buf_init(&out, 1000);
    fields_to_handler((struct header_span){ items, ROWS(items) }, &added, &out);
    assert_block(&out, "X-Forwarded: kept\r\nVia: 1.1 nb\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                       "X-Forwarded-Host: h\r\nNonbis-Command-Id: 0123456789abcdef0123456789abcdef\r\n"
                       "Nonbis-Execution: 4294967295\r\n");
}
END_TEST

START_TEST(our_via_stands_behind_those_received)
{
    const struct header items[] = { FIELD("Via", "1.0 fred, 1.1 p.example"), FIELD("A", "1"), FIELD("via", "1.1 edge"),
                                    FIELD("Via", "") };
    struct buf out;
    buf_init(&out, 1000);
    fields_to_handler((struct header_span){ items, ROWS(items) }, &bare, &out);
    assert_block(&out, "A: 1\r\nVia: 1.0 fred, 1.1 p.example, 1.1 edge, 1.1 nb\r\n");
}
END_TEST

static const struct {
    struct header field;
    bool loop;
} loops[] = {
    { FIELD("Via", "1.1 nb"), true },
    { FIELD("via", "1.0 other, HTTP/1.1 NB (nonbis)"), true },
    { FIELD("Via", "1.1 nb(comment)"), true },
    { FIELD("Via", "1.1\tnb"), true },
    { FIELD("Via", "1.1 nb2"), false },
    { FIELD("Via", "1.1 n"), false },
    { FIELD("Via", "nb"), false },
    { FIELD("Via", "nb 1.1"), false },
    { FIELD("Via", "1.1 other (nb)"), false },
    { FIELD("Via", ""), false },
    { FIELD("X-Via", "1.1 nb"), false },
};

START_TEST(a_loop_is_our_own_name_in_via)
{
    struct header items[2] = { FIELD("Via", "1.1 front"), loops[_i].field };
    ck_assert(fields_has_loop((struct header_span){ items, 2 }, VIEW("nb")) == loops[_i].loop);
}
END_TEST

static const char answer[] =
    "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    "Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nDate: today\r\n"
    "Idempotency-Status: replayed\r\nidempotent-replayed: true\r\nIdempotency-Expires: never\r\n"
    "Nonbis-Outcome: completed\r\nNONBIS-x: y\r\nLink: </a>; rel=\"next\"\r\nX-Empty: \r\n"
    "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nAge: 3\r\nWWW-Authenticate: Basic\r\n"
    "Proxy-Authenticate: Basic\r\nProxy-Status: x\r\nRetry-After: 5\r\nRateLimit: a\r\n"
    "ratelimit-policy: b\r\nX-RateLimit-Limit: 9\r\nServer-Timing: t\r\nTrailer: X\r\n"
    "Upgrade: h2c\r\nProxy-Connection: close\r\nTE: x\r\nETag: \"1\"\r\nX-Own: z\r\n";

START_TEST(the_first_client_gets_every_end_to_end_field_in_order)
{
    struct buf out;
    buf_init(&out, 10000);
    fields_to_client(view_of(answer), &out);
    assert_block(
        &out,
        "Content-Type: application/json\r\nDate: today\r\nLink: </a>; rel=\"next\"\r\nSet-Cookie: a=b\r\n"
        "Set-Cookie: c=d\r\nAge: 3\r\nWWW-Authenticate: Basic\r\nProxy-Status: x\r\nRetry-After: 5\r\nRateLimit: a\r\n"
        "ratelimit-policy: b\r\nX-RateLimit-Limit: 9\r\nServer-Timing: t\r\nETag: \"1\"\r\nX-Own: z\r\n");
}
END_TEST

START_TEST(a_replay_lacks_what_was_true_of_the_first_answer_only)
{
    struct buf out;
    buf_init(&out, 10000);
    fields_to_keep(view_of(answer), VIEW(""), &out);
    assert_block(&out, "Content-Type: application/json\r\nLink: </a>; rel=\"next\"\r\nX-RateLimit-Limit: 9\r\n"
                       "ETag: \"1\"\r\nX-Own: z\r\n");
}
END_TEST

START_TEST(a_route_may_drop_more_from_its_replays)
{
    struct buf out;
    buf_init(&out, 10000);
    fields_to_keep(view_of(answer), VIEW("etag , X-RATELIMIT-LIMIT,,Absent"), &out);
    assert_block(&out, "Content-Type: application/json\r\nLink: </a>; rel=\"next\"\r\nX-Own: z\r\n");
}
END_TEST

static const struct {
    const char *block;
    enum fields_word word;
} words[] = {
    { "", FIELDS_WORD_NONE },
    { "Content-Type: completed\r\n", FIELDS_WORD_NONE },
    { "Nonbis-Outcome: completed\r\n", FIELDS_WORD_COMPLETED },
    { "nonbis-outcome: COMPLETED\r\n", FIELDS_WORD_COMPLETED },
    { "Nonbis-Outcome: not-executed\r\n", FIELDS_WORD_NOT_EXECUTED },
    { "Nonbis-Outcome: Not-Executed\r\n", FIELDS_WORD_NOT_EXECUTED },
    { "Nonbis-Outcome: unknown\r\n", FIELDS_WORD_UNKNOWN },
    { "Nonbis-Outcome: maybe\r\n", FIELDS_WORD_NONE },
    { "Nonbis-Outcome: not executed\r\n", FIELDS_WORD_NONE },
    { "Nonbis-Outcome: \r\n", FIELDS_WORD_NONE },
    { "Nonbis-Outcome: maybe\r\nNonbis-Outcome: completed\r\n", FIELDS_WORD_COMPLETED },
    { "Nonbis-Outcome: completed, maybe\r\n", FIELDS_WORD_COMPLETED },
    { "Nonbis-Outcome: completed\r\nNonbis-Outcome: completed\r\n", FIELDS_WORD_COMPLETED },
    { "Nonbis-Outcome: completed\r\nNonbis-Outcome: not-executed\r\n", FIELDS_WORD_UNKNOWN },
    { "Nonbis-Outcome: not-executed, completed\r\n", FIELDS_WORD_UNKNOWN },
    { "Nonbis-Outcome: not-executed, unknown, not-executed\r\n", FIELDS_WORD_UNKNOWN },
};

START_TEST(the_handlers_word_is_read_as_the_contract_says)
{
    ck_assert_msg(fields_handler_word(view_of(words[_i].block)) == words[_i].word, "%s", words[_i].block);
}
END_TEST

SUITE(fields)
{
    Suite *suite = suite_create("http/fields");
    CASE(suite, end_to_end_fields_reach_the_handler_as_received);
    CASE(suite, what_belongs_to_one_connection_does_not_reach_the_handler);
    CASE(suite, a_client_cannot_speak_for_nonbis_or_for_a_proxy);
    CASE(suite, our_via_stands_behind_those_received);
    CASE_LOOP(suite, a_loop_is_our_own_name_in_via, ROWS(loops));
    CASE(suite, the_first_client_gets_every_end_to_end_field_in_order);
    CASE(suite, a_replay_lacks_what_was_true_of_the_first_answer_only);
    CASE(suite, a_route_may_drop_more_from_its_replays);
    CASE_LOOP(suite, the_handlers_word_is_read_as_the_contract_says, ROWS(words));
    return suite;
}
