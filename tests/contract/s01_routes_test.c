/* s01_routes_test.c - docs/contract.md section 1: which requests are protected, and what the others get. The routes of house_routes:
 *
 *   POST /pay    POST /maybe key=optional    POST /first/open key=optional    POST /first/{star}    {star} /any/{star}    PUT /Case */
#include "tests/contract/scene.h"
#include "tests/support/stream_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Without a key: refused where one is required, else it passes. */
static void expect_protected(const char *method, const char *target)
{
    unsigned before = peer_count_requests(scene.peer);
    EXPECT_PROBLEM(ask(method, target, NULL, "x"), 400, "", "key-missing");
    ck_assert_uint_eq(peer_count_requests(scene.peer), before);
}

static void expect_open(const char *method, const char *target)
{
    unsigned before = peer_count_requests(scene.peer);
    EXPECT(ask(method, target, NULL, "x"), 200, "");
    ck_assert_uint_eq(peer_count_requests(scene.peer), before + 1);
}

/* --- routes --- */

START_TEST(rule_1_1_a_route_is_a_method_and_an_exact_path)
{
    expect_protected("POST", "/pay");
    expect_protected("POST", "/pay?order=1");
    expect_open("PUT", "/pay");
    expect_open("GET", "/pay");
    expect_open("POST", "/pay/1");
    expect_open("POST", "/payment");
    expect_open("POST", "/");
}
END_TEST

START_TEST(rule_1_1_a_prefix_that_ends_in_a_star_covers_what_is_below)
{
    expect_protected("POST", "/any/1");
    expect_protected("DELETE", "/any/1/2");
    expect_protected("PURGE", "/any/");
    expect_open("POST", "/anything");
}
END_TEST

START_TEST(rule_1_1_the_first_route_that_matches_counts)
{
    expect_open("POST", "/first/open"); /* key=optional there, though the next route requires one */
    expect_protected("POST", "/first/other");
    EXPECT(ask("POST", "/first/open", "Idempotency-Key: 1.1-first\r\n", "x"), 200, "executed");
}
END_TEST

START_TEST(rule_1_1_a_route_says_whether_a_key_is_required_or_optional)
{
    expect_protected("POST", "/pay");
    expect_open("POST", "/maybe");
    EXPECT(ask("POST", "/pay", "Idempotency-Key: 1.1-required\r\n", "x"), 200, "executed");
    EXPECT(ask("POST", "/maybe", "Idempotency-Key: 1.1-optional\r\n", "x"), 200, "executed");
    EXPECT(ask("POST", "/maybe", "Idempotency-Key: 1.1-optional\r\n", "x"), 200, "replayed");
}
END_TEST

START_TEST(rule_1_2_with_no_route_every_post_and_every_patch_needs_a_key)
{
    expect_protected("POST", "/");
    expect_protected("POST", "/orders/1");
    expect_protected("PATCH", "/anything?at=all");
    expect_open("PUT", "/orders/1");
    expect_open("DELETE", "/orders/1");
    expect_open("GET", "/orders/1");
}
END_TEST

/* --- paths --- */

START_TEST(rule_1_3_paths_are_compared_in_their_normal_form)
{
    expect_protected("POST", "/%70%61y");
    expect_protected("POST", "//pay");
    expect_protected("POST", "/pay/");
    expect_protected("POST", "//%70ay/");
    expect_protected("POST", "/first//other");
    expect_open("POST", "/PAY");
    expect_open("POST", "/p%2Day"); /* that is /p-ay */
    expect_protected("PUT", "/Case");
    expect_open("PUT", "/case");
    expect_open("POST", "/pay%20"); /* not an unreserved character: it stays as it is */
}
END_TEST

START_TEST(rule_1_3_a_prefix_also_matches_the_path_without_its_slash)
{
    expect_protected("POST", "/any");
    expect_protected("POST", "/any/");
}
END_TEST

START_TEST(rule_1_3_the_handler_gets_the_target_as_it_was_received)
{
    EXPECT(ask("POST", "//%70ay/?q=%7e&&", "Idempotency-Key: 1.3-raw\r\n", "x"), 200, "executed");
    ck_assert_str_eq(handler_saw_line(1), "POST //%70ay/?q=%7e&& HTTP/1.1");
    EXPECT(ask("GET", "/a//b/%7e/./..?", NULL, NULL), 200, "");
    ck_assert_str_eq(handler_saw_line(2), "GET /a//b/%7e/./..? HTTP/1.1");
}
END_TEST

struct path_row {
    const char *method, *target;
};
static const struct path_row two_readings[] = {
    { "POST", "/any/%2e%2e/any" },  { "POST", "/any/../open" },   { "POST", "/open/../pay" },
    { "POST", "/open/%2E%2e/pay" }, { "POST", "/first%2fother" }, { "POST", "/any%2F1" },
    { "POST", "/any/%00" },         { "POST", "/any/./1" },       { "DELETE", "/open/../any/1" },
    { "GET", "/x/../_nonbis" },     { "GET", "/_nonbis%2fv1" },   { "GET", "/_nonbis/../x" },
    { "GET", "/_nonbis/v1/%00" },   { "POST", "/./pay" },         { "POST", "/%2Fpay" },
};

START_TEST(rule_1_4_a_path_that_could_be_read_as_a_protected_one_is_refused)
{
    const struct path_row *row = &two_readings[_i];
    EXPECT_PROBLEM(ask(row->method, row->target, "Idempotency-Key: 1.4\r\n", "x"), 400, "", "request-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_1_4_whether_a_pattern_is_meant_depends_on_the_method_too)
{
    expect_open("GET", "/open/../pay");
    expect_open("PUT", "/%2fpay");
    expect_open("POST", "/open/../other");
    expect_open("POST", "/open%2fother/%00");
}
END_TEST

/* --- passing through --- */

START_TEST(rule_1_5_status_fields_and_body_pass_unchanged_and_nothing_is_recorded)
{
    handler_answers("HTTP/1.1 418 Teapot\r\nX-Tag: a, b\r\nX-Tag: c\r\nX-Empty:\r\nSet-Cookie: s=1\r\nETag: \"e\"\r\n"
                    "Retry-After: 7\r\nContent-Type: text/tea\r\nContent-Length: 4\r\n\r\na\"b\n");
    for (int i = 0; i < 2; i++) {
        const struct http_answer *passed = ask(
            "PUT", "/open", "Idempotency-Key: 1.5\r\nX-Up: u\r\nContent-Type: a/b\r\nCookie: c=1\r\n", "up\r\n\x01");
        EXPECT(passed, 418, "ignored");
        ck_assert_str_eq(passed->body, "a\"b\n");
        EXPECT_FIELD(passed, "Set-Cookie", "s=1");
        EXPECT_FIELD(passed, "ETag", "\"e\"");
        EXPECT_FIELD(passed, "Retry-After", "7");
        EXPECT_FIELD(passed, "Content-Type", "text/tea");
        ck_assert_int_eq(http_field_count(passed, "X-Tag"), 2);
        EXPECT_NO_FIELD(passed, "Link");
        EXPECT_NO_FIELD(passed, "Idempotency-Expires");
    }
    EXPECT_RUNS("1.5", 2);
    ck_assert_str_eq(handler_saw_field(1, "X-Up"), "u");
    ck_assert_str_eq(handler_saw_field(1, "Content-Type"), "a/b");
    ck_assert_str_eq(handler_saw_field(1, "Cookie"), "c=1");
    ck_assert_ptr_nonnull(strstr(handler_saw(1), "\r\n\r\nup\r\n\x01"));
    EXPECT_PROBLEM(get_status("1.5", ""), 404, "", "key-not-seen");
}
END_TEST

START_TEST(rule_1_5_request_and_response_are_streamed_without_a_limit_of_size)
{
    enum { MANY = 4 * 1024 * 1024 }; /* body_max and response_keep_max are 1 MiB */
    static const struct peer_step script[] = { { PEER_BODY_PATTERN, NULL, 0 },
                                               { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 4194304\r\n\r\n", 0 },
                                               { PEER_SEND_PATTERN, NULL, MANY / 2 },
                                               { PEER_WAIT, NULL, 0 },
                                               { PEER_RESET, NULL, 0 },
                                               PEER_END };
    char head[1024];
    peer_script_default(scene.peer, script);
    int fd = http_connect(scene.address);
    ck_assert(stream_send_text(fd, "PUT /open HTTP/1.1\r\nHost: a\r\nContent-Length: 4194304\r\n\r\n"));
    ck_assert(stream_send_pattern(fd, 0, MANY / 2));
    ck_assert(peer_wait_requests(scene.peer, 1)); /* the handler has it before it is whole */
    ck_assert(stream_send_pattern(fd, MANY / 2, MANY));
    ck_assert(peer_wait_whole(scene.peer, 1));
    stream_read_head(fd, head, sizeof head);
    ck_assert_int_eq(strncmp(head, "HTTP/1.1 200 ", 13), 0);
    ck_assert_uint_eq(stream_read_pattern(fd, 0, MANY / 2), MANY / 2); /* and the client its answer */
    peer_release(scene.peer, 1);
    ck_assert(http_closes(fd));
    close(fd);
}
END_TEST

START_TEST(rule_1_5_back_pressure_reaches_the_client_of_a_handler_that_does_not_read)
{
    enum { FAR_TOO_MANY = 64 * 1024 * 1024 };
    static const struct peer_step reads_late[] = { { PEER_WAIT, NULL, 0 },
                                                   { PEER_BODY_PATTERN, NULL, 0 },
                                                   { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0 },
                                                   PEER_END };
    static char block[64 * 1024];
    uint64_t sent = 0;
    peer_script_default(scene.peer, reads_late);
    int fd = http_connect(scene.address);
    ck_assert(stream_send_text(fd, "PUT /open HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n"));
    ck_assert(peer_wait_stalled(scene.peer, 1));
    /* Until this end takes no more: all buffers between here and the handler are full, far before the end of the body. */
    for (ssize_t went = 0; went >= 0; sent += (uint64_t) (went > 0 ? went : 0)) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        if (poll(&room, 1, 200) == 0) {
            break;
        }
        peer_pattern_write(block, sizeof block, sent);
        went = send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    ck_assert_uint_lt(sent, FAR_TOO_MANY / 2);
    peer_release(scene.peer, 1);
    ck_assert(stream_send_pattern(fd, sent, FAR_TOO_MANY));
    EXPECT(keep_answer(http_receive(fd, false, NULL)), 200, "");
    ck_assert_uint_eq(peer_count_whole(scene.peer), 1);
    close(fd);
}
END_TEST

START_TEST(rule_1_6_an_upgrade_is_dropped)
{
    EXPECT(ask("GET", "/open", "Connection: Upgrade\r\nUpgrade: websocket\r\n", NULL), 200, "");
    ck_assert_ptr_null(handler_saw_field(1, "Upgrade"));
    ck_assert_ptr_null(strstr(handler_saw(1), "pgrade"));
    EXPECT(ask("POST", "/pay", "Idempotency-Key: 1.6\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n", "x"), 200,
           "executed");
    ck_assert_ptr_null(strstr(handler_saw(2), "pgrade"));
}
END_TEST

START_TEST(rule_1_7_a_key_on_an_unprotected_route_is_ignored_and_the_answer_says_so)
{
    static const char *const unsafe[] = { "POST", "PUT", "PATCH", "DELETE", "PURGE" };
    static const char *const safe[] = { "GET", "HEAD", "OPTIONS" };
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        EXPECT(ask(unsafe[i], "/open", "Idempotency-Key: 1.7\r\n", "x"), 200, "ignored");
        EXPECT(ask(unsafe[i], "/open", NULL, "x"), 200, "");
    }
    EXPECT_RUNS("1.7", 5);
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++) {
        EXPECT(ask(safe[i], "/open", "Idempotency-Key: 1.7-s\r\n", NULL), 200, "");
    }
    EXPECT_RUNS("1.7-s", 3);
}
END_TEST

START_TEST(rule_1_8_request_fields_that_begin_with_nonbis_are_removed_on_every_route)
{
    static const char *const forged =
        "Nonbis-Command-Id: 00112233445566778899aabbccddeeff\r\nnonbis-execution: 9\r\n"
        "Nonbis-Outcome: completed\r\nNonbis-: x\r\nNONBIS-ANY: x\r\nX-Nonbis-Any: kept\r\n";
    EXPECT(ask("PUT", "/open", forged, "x"), 200, "");
    EXPECT(ask("POST", "/maybe", forged, "x"), 200, "");
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert_str_eq(handler_saw_field(i, "X-Nonbis-Any"), "kept");
        ck_assert_ptr_null(strstr(handler_saw(i), "\r\nN"));
        ck_assert_ptr_null(strstr(handler_saw(i), "\r\nn"));
    }
    EXPECT(ask("POST", "/pay", text("Idempotency-Key: 1.8\r\n%s", forged), "x"), 200, "executed");
    ck_assert_str_eq(handler_saw_field(3, "Nonbis-Execution"), "1");
    ck_assert_str_ne(handler_saw_field(3, "Nonbis-Command-Id"), "00112233445566778899aabbccddeeff");
    ck_assert_ptr_null(handler_saw_field(3, "Nonbis-Outcome"));
    ck_assert_ptr_null(handler_saw_field(3, "Nonbis-"));
    ck_assert_ptr_null(handler_saw_field(3, "Nonbis-Any"));
}
END_TEST

START_TEST(rule_1_9_paths_at_and_below_our_own_are_never_forwarded)
{
    static const char *const paths[] = { "/_nonbis",    "/_nonbis/",    "/_nonbis/v1/other", "/_nonbis/v9",
                                         "//_nonbis/x", "/%5Fnonbis/x", "/_nonbis/v1?x=/pay" };
    static const char *const methods[] = { "GET", "POST", "PUT", "DELETE", "OPTIONS" };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        for (size_t j = 0; j < sizeof methods / sizeof methods[0]; j++) {
            const struct http_answer *own = ask(methods[j], paths[i], "Idempotency-Key: 1.9\r\n", "x");
            ck_assert_msg(own->status == 404 || own->status == 405 || own->status == 200, "%s %s: %d", methods[j],
                          paths[i], own->status);
        }
    }
    EXPECT_PROBLEM(ask("POST", "/_nonbis", "Idempotency-Key: 1.9\r\n", "x"), 404, "", "not-found");
    EXPECT_PROBLEM(ask("GET", "/_nonbis/v9", NULL, NULL), 404, "", "not-found");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    expect_open("GET", "/_nonbisd"); /* a neighbour by its name only */
    expect_open("GET", "/x/_nonbis");
    expect_open("GET", "/_NONBIS");
}
END_TEST

SUITE(contract_routes)
{
    Suite *suite = suite_create("contract/01-routes");
    RULE(suite, house_routes, rule_1_1_a_route_is_a_method_and_an_exact_path);
    RULE(suite, house_routes, rule_1_1_a_prefix_that_ends_in_a_star_covers_what_is_below);
    RULE(suite, house_routes, rule_1_1_the_first_route_that_matches_counts);
    RULE(suite, house_routes, rule_1_1_a_route_says_whether_a_key_is_required_or_optional);
    RULE(suite, house_routes, rule_1_3_paths_are_compared_in_their_normal_form);
    RULE(suite, house_routes, rule_1_3_a_prefix_also_matches_the_path_without_its_slash);
    RULE(suite, house_routes, rule_1_3_the_handler_gets_the_target_as_it_was_received);
    RULE_ROWS(suite, house_routes, rule_1_4_a_path_that_could_be_read_as_a_protected_one_is_refused, two_readings);
    RULE(suite, house_routes, rule_1_4_whether_a_pattern_is_meant_depends_on_the_method_too);
    RULE(suite, house_routes, rule_1_5_status_fields_and_body_pass_unchanged_and_nothing_is_recorded);
    RULE(suite, house_routes, rule_1_5_request_and_response_are_streamed_without_a_limit_of_size);
    RULE(suite, house_routes, rule_1_5_back_pressure_reaches_the_client_of_a_handler_that_does_not_read);
    RULE(suite, house_routes, rule_1_6_an_upgrade_is_dropped);
    RULE(suite, house_routes, rule_1_7_a_key_on_an_unprotected_route_is_ignored_and_the_answer_says_so);
    RULE(suite, house_routes, rule_1_8_request_fields_that_begin_with_nonbis_are_removed_on_every_route);
    RULE(suite, house_routes, rule_1_9_paths_at_and_below_our_own_are_never_forwarded);
    RULE(suite, house_plain, rule_1_2_with_no_route_every_post_and_every_patch_needs_a_key);
    return suite;
}
