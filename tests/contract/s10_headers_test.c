/* s10_headers_test.c - docs/contract.md section 10, 10.1 to 10.7: what nonbisd says to the client, and what a replay repeats. s10b_handler_test.c has
 * the handler's side. */
#include "tests/contract/disk.h"
#include "tests/contract/scene.h"
#include "tests/support/stream_client.h"

#include <sys/socket.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

/* `unrecorded` is in 6.17, `ignored` in 1.7. */
START_TEST(rule_10_1_every_answer_to_a_keyed_request_on_a_protected_route_has_a_status_word)
{
    struct caller caller;
    EXPECT(post("10.1-done", "x"), 200, "executed");
    EXPECT(post("10.1-done", "x"), 200, "replayed");
    EXPECT(post("10.1-done", "y"), 422, "refused");
    EXPECT(post_with("10.1-done", "X-API-Key: a\r\n", "x"), 422, "refused");
    EXPECT(post("a b", "x"), 400, "refused");
    EXPECT(ASK_RAW("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 9999999\r\n\r\n"), 413,
           "refused");
    peer_script_default(scene.peer, reset);
    EXPECT(post("10.1-lost", "x"), 504, "unknown");
    EXPECT(post("10.1-lost", "x"), 504, "unknown");
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT(post("10.1-free", "x"), 429, "not-executed");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "10.1-run");
    EXPECT(post("10.1-run", "x"), 409, "in-progress");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_10_2_replays_and_nothing_else_say_that_they_are)
{
    EXPECT_NO_FIELD(post("10.2", "x"), "Idempotent-Replayed");
    EXPECT_FIELD(post("10.2", "x"), "Idempotent-Replayed", "true");
    EXPECT_FIELD(post("10.2", "x"), "Idempotent-Replayed", "true");
    EXPECT_NO_FIELD(post("10.2", "y"), "Idempotent-Replayed");
    EXPECT_NO_FIELD(get_status("10.2", ""), "Idempotent-Replayed");
    EXPECT_NO_FIELD(ask("GET", "/open", NULL, NULL), "Idempotent-Replayed");
}
END_TEST

/* "Mon, 30 Nov 2026 23:54:22 GMT" */
static void expect_imf_fixdate(const char *date)
{
    static const char form[] = "Aaa, dd Aaa dddd dd:dd:dd GMT";
    bool good = date != NULL && strlen(date) == sizeof form - 1;
    for (size_t i = 0; good && i < sizeof form - 1; i++) {
        good = form[i] == 'd'   ? date[i] >= '0' && date[i] <= '9'
               : form[i] == 'A' ? date[i] >= 'A' && date[i] <= 'Z'
               : form[i] == 'a' ? date[i] >= 'a' && date[i] <= 'z'
                                : date[i] == form[i];
    }
    ck_assert_msg(good, "no date: %s", date);
}

START_TEST(rule_10_3_a_completed_command_tells_until_when_it_is_replayed)
{
    const struct http_answer *first = post("10.3", "x");
    EXPECT(first, 200, "executed");
    const char *until = field_of(first, "Idempotency-Expires");
    expect_imf_fixdate(until);
    ck_assert_str_ne(until, field_of(first, "Date")); /* ttl is a day: another date, the same hour or the next */
    ck_assert_int_ne(strncmp(until, field_of(first, "Date"), 16), 0);
    EXPECT_FIELD(post("10.3", "x"), "Idempotency-Expires", until);
    EXPECT_FIELD(post("10.3", "y"), "Idempotency-Expires", until);
}
END_TEST

START_TEST(rule_10_3_what_is_not_completed_has_none)
{
    struct caller caller;
    peer_script_default(scene.peer, reset);
    EXPECT_NO_FIELD(post("10.3-lost", "x"), "Idempotency-Expires");
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT_NO_FIELD(post("10.3-free", "x"), "Idempotency-Expires");
    EXPECT_NO_FIELD(ask("POST", "/orders", NULL, "x"), "Idempotency-Expires");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "10.3-run");
    EXPECT_NO_FIELD(post("10.3-run", "x"), "Idempotency-Expires");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
}
END_TEST

START_TEST(rule_10_4_a_link_to_the_status_stands_wherever_a_record_exists)
{
    struct caller caller;
    const struct http_answer *first = post("10.4", "x");
    const char *path = command_path_of(first);
    ck_assert_str_eq(path, text("/_nonbis/v1/commands/%s", handler_saw_field(1, "Nonbis-Command-Id")));
    ck_assert_str_eq(command_path_of(post("10.4", "x")), path);
    ck_assert_str_eq(command_path_of(post("10.4", "y")), path);
    EXPECT_NO_FIELD(post("a b", "x"), "Link");
    EXPECT_NO_FIELD(ask("GET", "/open", NULL, NULL), "Link");
    peer_script_default(scene.peer, reset);
    (void) command_path_of(post("10.4-lost", "x"));
    (void) command_path_of(post("10.4-lost", "x"));
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    (void) command_path_of(post("10.4-free", "x"));
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "10.4-run");
    (void) command_path_of(post("10.4-run", "x"));
    peer_release(scene.peer, 1);
    (void) command_path_of(join(&caller));
}
END_TEST

START_TEST(rule_10_4_it_stands_in_addition_to_the_handlers_own)
{
    handler_answers("HTTP/1.1 201 Created\r\nLink: </a>; rel=\"next\"\r\nLink: </b>; rel=\"prev\"\r\n" EMPTY);
    for (int i = 0; i < 2; i++) {
        const struct http_answer *answer = post("10.4-own", "x");
        EXPECT(answer, 201, i == 0 ? "executed" : "replayed");
        ck_assert_int_eq(http_field_count(answer, "Link"), 3);
        ck_assert_ptr_nonnull(strstr(answer->head, "Link: </a>; rel=\"next\""));
        ck_assert_ptr_nonnull(strstr(answer->head, "Link: </b>; rel=\"prev\""));
        ck_assert_ptr_nonnull(strstr(answer->head, "Link: </_nonbis/v1/commands/"));
    }
}
END_TEST

START_TEST(rule_10_5_a_refusal_because_of_credentials_has_neither_link_nor_expires)
{
    EXPECT(post_with("10.5", "Authorization: a\r\n", "x"), 200, "executed");
    const struct http_answer *other = post_with("10.5", "Authorization: b\r\n", "x");
    EXPECT(other, 422, "refused");
    EXPECT_NO_FIELD(other, "Link");
    EXPECT_NO_FIELD(other, "Idempotency-Expires");
}
END_TEST

#define FORGED                                                                                                         \
    "Idempotency-Status: replayed\r\nidempotent-replayed: true\r\nIdempotency-Expires: never\r\nNonbis-Body: "         \
    "not-kept\r\nNonbis-Any: x\r\nNONBIS-OTHER: x\r\n"

START_TEST(rule_10_5_what_the_handler_says_in_our_name_never_passes)
{
    handler_answers("HTTP/1.1 201 Created\r\n" FORGED EMPTY);
    for (int i = 0; i < 3; i++) {
        const struct http_answer *answer = i < 2 ? post("10.5-forged", "x") : ask("GET", "/open", NULL, NULL);
        EXPECT(answer, 201, i == 0 ? "executed" : i == 1 ? "replayed" : "");
        ck_assert_int_eq(http_field_count(answer, "Idempotent-Replayed"), i == 1 ? 1 : 0);
        ck_assert_int_eq(http_field_count(answer, "Idempotency-Expires"), i == 2 ? 0 : 1);
        ck_assert_ptr_null(strstr(answer->head, "never"));
        EXPECT_NO_FIELD(answer, "Nonbis-Body");
        EXPECT_NO_FIELD(answer, "Nonbis-Any");
        EXPECT_NO_FIELD(answer, "Nonbis-Other");
    }
}
END_TEST

START_TEST(rule_10_6_a_replay_repeats_status_fields_and_the_bytes_of_the_body)
{
    static const struct peer_step script[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND,
          "HTTP/1.1 299 Odd\r\nContent-Type: application/octet-stream\r\nETag: \"e\"\r\nX-Tag: a\r\nX-Tag: b\r\n"
          "Cache-Control: max-age=5\r\nVary: Accept\r\nContent-Encoding: br\r\nContent-Length: 7\r\n\r\n",
          0 },
        { PEER_SEND_BYTES, "\0\r\n\xff\x01\"x", 7 },
        PEER_END
    };
    peer_script_default(scene.peer, script);
    for (int i = 0; i < 3; i++) {
        const struct http_answer *answer = post("10.6", "x");
        EXPECT(answer, 299, i == 0 ? "executed" : "replayed");
        ck_assert_uint_eq(answer->body_len, 7);
        ck_assert_mem_eq(answer->body, "\0\r\n\xff\x01\"x", 7);
        EXPECT_FIELD(answer, "Content-Type", "application/octet-stream");
        EXPECT_FIELD(answer, "ETag", "\"e\"");
        EXPECT_FIELD(answer, "Cache-Control", "max-age=5");
        EXPECT_FIELD(answer, "Vary", "Accept");
        EXPECT_FIELD(answer, "Content-Encoding", "br");
        EXPECT_FIELD(answer, "Content-Length", "7");
        ck_assert_ptr_nonnull(strstr(answer->head, "X-Tag: a\r\nX-Tag: b"));
    }
    EXPECT_RUNS("10.6", 1);
}
END_TEST

START_TEST(rule_10_6_what_a_replay_never_repeats)
{
    static const char *const once[] = { "Age",          "Set-Cookie",  "WWW-Authenticate", "Proxy-Authenticate",
                                        "Proxy-Own",    "Retry-After", "RateLimit",        "RateLimit-Reset",
                                        "Server-Timing" };
    static const char *const never[] = { "X-Hop", "Keep-Alive", "Trailer", "Upgrade", "TE" };
    handler_answers("HTTP/1.1 201 Created\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 1\r\nSet-Cookie: a=b\r\n"
                    "WWW-Authenticate: Basic\r\nProxy-Authenticate: Basic\r\nProxy-Own: 1\r\nRetry-After: 1\r\n"
                    "RateLimit: 1\r\nRateLimit-Reset: 1\r\nServer-Timing: a\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                    "Keep-Alive: timeout=5\r\nTrailer: X\r\nUpgrade: h2c\r\nTE: x\r\nX-Kept: 1\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    const struct http_answer *first = post("10.6-once", "x"), *replay = post("10.6-once", "x");
    EXPECT(first, 201, "executed");
    EXPECT(replay, 201, "replayed");
    ck_assert_str_eq(replay->body, "ok");
    EXPECT_FIELD(first, "Set-Cookie", "a=b"); /* whoever asked first gets his own */
    EXPECT_FIELD(first, "Retry-After", "1");
    EXPECT_FIELD(replay, "X-Kept", "1");
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
        EXPECT_NO_FIELD(replay, once[i]);
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        EXPECT_NO_FIELD(first, never[i]);
        EXPECT_NO_FIELD(replay, never[i]);
    }
    expect_imf_fixdate(field_of(replay, "Date")); /* a fresh one */
    ck_assert_str_ne(field_of(replay, "Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_NO_FIELD(replay, "Transfer-Encoding");
    EXPECT_FIELD(replay, "Content-Length", "2");
}
END_TEST

START_TEST(rule_10_6_a_route_drops_what_its_replay_drop_lists)
{
    handler_answers("HTTP/1.1 201 Created\r\nX-Secret: 1\r\nx-other: 1\r\nX-Kept: 1\r\n" EMPTY);
    const struct http_answer *first = ask("POST", "/drop", "Idempotency-Key: 10.6-drop\r\n", "x");
    EXPECT(first, 201, "executed");
    EXPECT_FIELD(first, "X-Secret", "1");
    const struct http_answer *replay = ask("POST", "/drop", "Idempotency-Key: 10.6-drop\r\n", "x");
    EXPECT(replay, 201, "replayed");
    EXPECT_NO_FIELD(replay, "X-Secret");
    EXPECT_NO_FIELD(replay, "X-Other");
    EXPECT_FIELD(replay, "X-Kept", "1");
}
END_TEST

/* --- 10.7: one byte over response_keep_max --- */

#define OVER 1048577
#define OVER_HEAD "HTTP/1.1 201 Created\r\nX-Tag: t\r\nContent-Type: a/b\r\nContent-Length: 1048577\r\n\r\n"

START_TEST(rule_10_7_a_body_over_the_limit_reaches_its_first_caller_whole_and_is_replayed_without_it)
{
    static const struct peer_step large[] = {
        { PEER_BODY, NULL, 0 }, { PEER_SEND, OVER_HEAD, 0 }, { PEER_SEND_PATTERN, NULL, OVER }, PEER_END
    };
    peer_script_default(scene.peer, large);
    const struct http_answer *first = post("10.7", "x");
    EXPECT(first, 201, "executed");
    ck_assert(first->whole);
    ck_assert_uint_eq(first->body_len, OVER);
    ck_assert(peer_pattern_matches(first->body, OVER, 0));
    EXPECT_NO_FIELD(first, "Idempotency-Expires"); /* it was not completed yet (10.3) */
    EXPECT_NO_FIELD(first, "Nonbis-Body");
    const struct http_answer *replay = post("10.7", "x");
    EXPECT(replay, 201, "replayed");
    ck_assert_uint_eq(replay->body_len, 0);
    EXPECT_FIELD(replay, "Nonbis-Body", "not-kept");
    EXPECT_FIELD(replay, "X-Tag", "t");
    EXPECT_FIELD(replay, "Content-Type", "a/b");
    EXPECT_RUNS("10.7", 1);
}
END_TEST

/* The disk fails before the handler has sent its last byte: nobody may get that one then. */
START_TEST(rule_10_7_the_last_byte_is_held_until_the_record_is_durable)
{
    enum { SENT = 2000000 };
    static const struct peer_step large[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2000001\r\n\r\n",
                                                0 },
                                              { PEER_SEND_PATTERN, NULL, SENT },
                                              { PEER_WAIT, NULL, 0 },
                                              { PEER_SEND, "x", 0 },
                                              PEER_END };
    char head[1024], rest[4];
    static const char request[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k\r\n"
                                  "Content-Type: application/json\r\nContent-Length: 1\r\n\r\nx";
    disk_start_breakable();
    peer_script_default(scene.peer, large);
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, request, sizeof request - 1));
    stream_read_head(fd, head, sizeof head);
    ck_assert_int_eq(strncmp(head, "HTTP/1.1 201 ", 13), 0);
    ck_assert_uint_eq(stream_read_pattern(fd, 0, SENT - 1), SENT - 1);
    disk_break();
    peer_release(scene.peer, 1);
    ck_assert_int_le(recv(fd, rest, 2, MSG_WAITALL), 1); /* the byte before the last, at most */
    close(fd);
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 74);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_10_7_a_body_of_exactly_the_limit_is_kept)
{
    static const struct peer_step fits[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 1048576\r\n\r\n",
                                               0 },
                                             { PEER_SEND_PATTERN, NULL, OVER - 1 },
                                             PEER_END };
    peer_script_default(scene.peer, fits);
    EXPECT(post("10.7-fits", "x"), 201, "executed");
    const struct http_answer *replay = post("10.7-fits", "x");
    EXPECT(replay, 201, "replayed");
    ck_assert_uint_eq(replay->body_len, OVER - 1);
    ck_assert(peer_pattern_matches(replay->body, OVER - 1, 0));
    EXPECT_NO_FIELD(replay, "Nonbis-Body");
}
END_TEST

START_TEST(rule_10_7_the_body_comes_as_it_comes_and_if_it_breaks_off_the_caller_sees_a_cut)
{
    enum { SENT = 2000000 };
    static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 },
                                            { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 3000000\r\n\r\n", 0 },
                                            { PEER_SEND_PATTERN, NULL, SENT },
                                            { PEER_WAIT, NULL, 0 },
                                            { PEER_CLOSE, NULL, 0 },
                                            PEER_END };
    char head[1024];
    static const char request[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 10.7-cut\r\n"
                                  "Content-Type: application/json\r\nContent-Length: 1\r\n\r\nx";
    peer_script_default(scene.peer, cut);
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, request, sizeof request - 1));
    stream_read_head(fd, head, sizeof head);
    ck_assert_int_eq(strncmp(head, "HTTP/1.1 201 ", 13), 0);
    ck_assert_uint_eq(stream_read_pattern(fd, 0, SENT - 1), SENT - 1); /* while the handler has not sent the rest */
    peer_release(scene.peer, 1);
    ck_assert_uint_lt(stream_read_pattern(fd, SENT - 1, 3000000), 3000000);
    close(fd);
    EXPECT_PROBLEM(post("10.7-cut", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("10.7-cut", 1);
}
END_TEST

START_TEST(rule_10_7_a_caller_that_is_too_slow_for_hard_timeout_sees_a_cut_and_the_command_is_unknown)
{
    enum { MANY = 64 * 1024 * 1024 };
    static const struct peer_step endless[] = { { PEER_BODY, NULL, 0 },
                                                { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 67108864\r\n\r\n",
                                                  0 },
                                                { PEER_SEND_PATTERN, NULL, MANY },
                                                PEER_END };
    char head[1024];
    static const char request[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 10.7-slow\r\n"
                                  "Content-Type: application/json\r\nContent-Length: 1\r\n\r\nx";
    peer_script_default(scene.peer, endless);
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, request, sizeof request - 1));
    stream_read_head(fd, head, sizeof head);
    ck_assert(
        daemon_wait_logged(&scene.nonbis, "result=unknown status=201")); /* it was not read any further meanwhile */
    ck_assert_uint_lt(stream_read_pattern(fd, 0, MANY), MANY);
    close(fd);
    EXPECT_PROBLEM(post("10.7-slow", "x"), 504, "unknown", "outcome-unknown");
}
END_TEST

SUITE(contract_headers)
{
    Suite *suite = suite_create("contract/10-headers");
    RULE(suite, house_plain, rule_10_1_every_answer_to_a_keyed_request_on_a_protected_route_has_a_status_word);
    RULE(suite, house_plain, rule_10_2_replays_and_nothing_else_say_that_they_are);
    RULE(suite, house_plain, rule_10_3_a_completed_command_tells_until_when_it_is_replayed);
    RULE(suite, house_plain, rule_10_3_what_is_not_completed_has_none);
    RULE(suite, house_plain, rule_10_4_a_link_to_the_status_stands_wherever_a_record_exists);
    RULE(suite, house_plain, rule_10_4_it_stands_in_addition_to_the_handlers_own);
    RULE(suite, house_plain, rule_10_5_a_refusal_because_of_credentials_has_neither_link_nor_expires);
    RULE(suite, house_plain, rule_10_5_what_the_handler_says_in_our_name_never_passes);
    RULE(suite, house_plain, rule_10_6_a_replay_repeats_status_fields_and_the_bytes_of_the_body);
    RULE(suite, house_plain, rule_10_6_what_a_replay_never_repeats);
    RULE(suite, house_plain, rule_10_7_a_body_over_the_limit_reaches_its_first_caller_whole_and_is_replayed_without_it);
    RULE(suite, house_plain, rule_10_7_a_body_of_exactly_the_limit_is_kept);
    RULE(suite, house_plain, rule_10_7_the_body_comes_as_it_comes_and_if_it_breaks_off_the_caller_sees_a_cut);
    RULE(suite, house_hasty,
         rule_10_7_a_caller_that_is_too_slow_for_hard_timeout_sees_a_cut_and_the_command_is_unknown);
    RULE_ALONE(suite, rule_10_7_the_last_byte_is_held_until_the_record_is_durable);
    RULE(suite, house_routes, rule_10_6_a_route_drops_what_its_replay_drop_lists);
    return suite;
}
