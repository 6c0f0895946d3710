/* s06b_exchange_test.c - docs/contract.md section 6, 6.7 to 6.17: what complete means, what the handler may say, and what a client's
 * leaving, a crash or a full disk do to a command. */
#include "tests/contract/disk.h"
#include "tests/contract/scene.h"

#include <signal.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };

struct framing_row {
    const char *name, *answer;
    bool complete;
};
static const struct framing_row framings[] = {
    { "Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true },
    { "chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\no\r\n01\r\nk\r\n0\r\n\r\n", true },
    { "no chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true },
    { "204", "HTTP/1.1 204 None\r\n\r\n", true },
    { "304", "HTTP/1.1 304 Same\r\n\r\n", true },
    { "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", false },
    { "another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false },
    { "a control byte", "HTTP/1.1 200 OK\r\nX: a\x02z\r\n" EMPTY, false },
    { "DEL", "HTTP/1.1 200 OK\r\nX: \x7f\r\n" EMPTY, false },
};

START_TEST(rule_6_7_complete_is_what_ends_by_its_framing)
{
    const struct framing_row *row = &framings[_i];
    const char *key = text("6.7-%d", _i);
    handler_answers(row->answer);
    const struct http_answer *first = post(key, "x");
    const char *word = field_of(first, "Idempotency-Status");
    ck_assert_msg(word != NULL && strcmp(word, row->complete ? "executed" : "unknown") == 0, "%s: %d %s", row->name,
                  first->status, word);
    EXPECT(post(key, "x"), row->complete ? first->status : 504, row->complete ? "replayed" : "unknown");
    EXPECT_RUNS(key, 1);
}
END_TEST

START_TEST(rule_6_7_a_head_over_response_header_max_is_garbage)
{
    char padding[6500];
    memset(padding, 'x', sizeof padding - 1);
    padding[sizeof padding - 1] = '\0';
    handler_answers(text("HTTP/1.1 200 OK\r\nX: %.5900s\r\n" EMPTY, padding));
    EXPECT(post("6.7-fits", "x"), 200, "executed");
    handler_answers(text("HTTP/1.1 200 OK\r\nX: %.6200s\r\n" EMPTY, padding));
    EXPECT_PROBLEM(post("6.7-long", "x"), 504, "unknown", "outcome-unknown");
}
END_TEST

START_TEST(rule_6_7_more_than_16_informational_responses_are_garbage)
{
    static const struct peer_step sixteen[] = { { PEER_BODY, NULL, 0 },
                                                { PEER_SEND, "HTTP/1.1 103 Hint\r\nLink: a\r\n\r\n", 16 },
                                                { PEER_SEND, "HTTP/1.1 200 OK\r\n" EMPTY, 0 },
                                                PEER_END };
    static const struct peer_step more[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 103 Hint\r\nLink: a\r\n\r\n", 17 },
                                             { PEER_SEND, "HTTP/1.1 200 OK\r\n" EMPTY, 0 },
                                             PEER_END };
    peer_script_default(scene.peer, sixteen);
    EXPECT(post("6.7-16", "x"), 200, "executed");
    peer_script_default(scene.peer, more);
    EXPECT_PROBLEM(post("6.7-17", "x"), 504, "unknown", "outcome-unknown");
}
END_TEST

START_TEST(rule_6_8_informational_responses_and_trailers_are_dropped)
{
    handler_answers(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hint\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
        "chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n");
    static const char *const requests[] = {
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 6.8\r\nContent-Length: 1\r\n\r\nx",
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 6.8\r\nContent-Length: 1\r\n\r\nx",
        "GET /open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    };
    static const char *const said[] = { "executed", "replayed", "" };
    for (int i = 0; i < 3; i++) {
        int informational = 0;
        int fd = http_connect(scene.address);
        ck_assert(http_send(fd, requests[i], strlen(requests[i])));
        const struct http_answer *answer = keep_answer(http_receive(fd, false, &informational));
        EXPECT(answer, 200, said[i]);
        ck_assert_int_eq(informational, 0);
        ck_assert_str_eq(answer->body, "ok");
        ck_assert_ptr_null(strstr(answer->head, "railer"));
        close(fd);
    }
}
END_TEST

START_TEST(rule_6_9_surplus_bytes_change_nothing_and_end_the_sharing_of_connections)
{
    static const struct peer_step surplus[] = { { PEER_BODY, NULL, 0 },
                                                { PEER_SEND, "HTTP/1.1 200 OK\r\n" EMPTY "surplus", 0 },
                                                PEER_END };
    SCENE_START("--set", "server.loops=1"); /* each loop keeps connections of its own */
    EXPECT(post("a", "x"), 200, "executed");
    EXPECT(post("b", "x"), 200, "executed");
    ck_assert_uint_eq(peer_count_connections(scene.peer), 1);
    peer_script_for_request(scene.peer, 3, surplus);
    EXPECT(post("c", "x"), 200, "executed");
    EXPECT(post("c", "x"), 200, "replayed");
    for (unsigned i = 0; i < 3; i++) {
        EXPECT(post(text("d-%u", i), "x"), 200, "executed");
        ck_assert_uint_eq(peer_count_connections(scene.peer), 2 + i);
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 6);
    scene_end();
}
END_TEST

START_TEST(rule_6_9_upstream_idle_of_0_uses_no_connection_twice)
{
    SCENE_START("--set", "upstream_idle=0s");
    for (unsigned i = 1; i <= 3; i++) {
        EXPECT(post(text("k-%u", i), "x"), 200, "executed");
        ck_assert_uint_eq(peer_count_connections(scene.peer), i);
    }
    scene_end();
}
END_TEST

static const struct peer_step to_the_close[] = {
    { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nto the close", 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
};

START_TEST(rule_6_10_allow_close_delimited_makes_a_body_that_a_close_ends_complete)
{
    SCENE_START("--set", "allow_close_delimited=on");
    peer_script_default(scene.peer, to_the_close);
    EXPECT(post("k", "x"), 200, "executed");
    const struct http_answer *replay = post("k", "x");
    EXPECT(replay, 200, "replayed");
    ck_assert_str_eq(replay->body, "to the close");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_6_10_for_pass_through_such_bodies_are_always_accepted)
{
    peer_script_default(scene.peer, to_the_close);
    const struct http_answer *passed = ask("GET", "/open", NULL, NULL);
    EXPECT(passed, 200, "");
    ck_assert(passed->whole);
    ck_assert_str_eq(passed->body, "to the close");
    EXPECT_PROBLEM(post("6.10", "x"), 504, "unknown", "outcome-unknown");
}
END_TEST

START_TEST(rule_6_11_release_and_unknown_override_the_class_of_the_statuses_they_list)
{
    static const struct {
        const char *answer;
        int status;
        const char *word;
    } rows[] = {
        { "HTTP/1.1 409 Clash\r\n" EMPTY, 409, "not-executed" }, /* release */
        { "HTTP/1.1 500 Oh\r\n" EMPTY, 500, "not-executed" },
        { "HTTP/1.1 502 Bad\r\n" EMPTY, 502, "not-executed" },
        { "HTTP/1.1 200 OK\r\n" EMPTY, 200, "unknown" }, /* unknown */
        { "HTTP/1.1 429 Slow\r\n" EMPTY, 429, "unknown" },
        { "HTTP/1.1 401 No\r\n" EMPTY, 401, "not-executed" }, /* neither: as they are */
        { "HTTP/1.1 504 Late\r\n" EMPTY, 504, "unknown" },
        { "HTTP/1.1 201 Made\r\n" EMPTY, 201, "executed" },
    };
    SCENE_START("--route", "POST /orders release=409,500,502 unknown=200,429");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        handler_answers(rows[i].answer);
        EXPECT(post(text("k-%zu", i), "x"), rows[i].status, rows[i].word);
    }
    scene_end();
}
END_TEST

START_TEST(rule_6_11_release_takes_400_to_599_and_unknown_200_to_599)
{
    static const char *const bad[] = { "POST /a release=399", "POST /a release=600", "POST /a unknown=199",
                                       "POST /a unknown=600", "POST /a release=200" };
    const char *said;
    (void) snprintf(scene.store, sizeof scene.store, "memory");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const more[] = { "--route", bad[i], NULL };
        ck_assert_int_eq(scene_refusal(more, &said), 78);
    }
    const char *const good[] = { "--check", "--route", "POST /a release=400,599 unknown=200,500", NULL };
    ck_assert_int_eq(scene_refusal(good, &said), 0);
}
END_TEST

struct said_row {
    const char *answer;
    int status;
    const char *word;
};
static const struct said_row said_rows[] = {
    { "HTTP/1.1 503 Busy\r\nNonbis-Outcome: COMPLETED\r\n" EMPTY, 503, "executed" },
    { "HTTP/1.1 201 Made\r\nnonbis-outcome: Not-Executed\r\n" EMPTY, 201, "not-executed" },
    { "HTTP/1.1 201 Made\r\nNonbis-Outcome: Unknown\r\n" EMPTY, 201, "unknown" },
    { "HTTP/1.1 201 Made\r\nNonbis-Outcome: executed\r\n" EMPTY, 201, "executed" }, /* another word: */
    { "HTTP/1.1 429 Slow\r\nNonbis-Outcome: done\r\n" EMPTY, 429, "not-executed" }, /* the status decides */
    { "HTTP/1.1 504 Late\r\nNonbis-Outcome:\r\n" EMPTY, 504, "unknown" },
    { "HTTP/1.1 201 Made\r\nNonbis-Outcome: not-executed\r\nNonbis-Outcome: completed\r\n" EMPTY, 201, "unknown" },
    { "HTTP/1.1 201 Made\r\nNonbis-Outcome: completed\r\nNonbis-Outcome: completed\r\n" EMPTY, 201, "executed" },
    { "HTTP/1.1 201 Made\r\nNonbis-Outcome: not-executed\r\nNonbis-Outcome: x\r\n" EMPTY, 201, "not-executed" },
    { "HTTP/1.1 103 Hint\r\nNonbis-Outcome: not-executed\r\n\r\nHTTP/1.1 201 Made\r\n" EMPTY, 201, "executed" },
};

START_TEST(rule_6_12_the_handlers_word_and_what_is_none)
{
    const struct said_row *row = &said_rows[_i];
    handler_answers(row->answer);
    const struct http_answer *answer = post(text("6.12-%d", _i), "x");
    EXPECT(answer, row->status, row->word);
    EXPECT_NO_FIELD(answer, "Nonbis-Outcome");
}
END_TEST

START_TEST(rule_6_12_only_a_complete_answer_has_a_word)
{
    static const struct peer_step cut[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 500 Oh\r\nNonbis-Outcome: not-executed\r\nContent-Length: 2\r\n\r\no", 0 },
        { PEER_CLOSE, NULL, 0 },
        PEER_END
    };
    peer_script_default(scene.peer, cut);
    EXPECT_PROBLEM(post("6.12-cut", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_PROBLEM(post("6.12-cut", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("6.12-cut", 1);
}
END_TEST

START_TEST(rule_6_12_the_word_goes_before_the_route_options_and_is_removed_on_every_route)
{
    SCENE_START("--route", "POST /orders release=409 unknown=200");
    handler_answers("HTTP/1.1 409 Clash\r\nNonbis-Outcome: completed\r\n" EMPTY);
    EXPECT(post("a", "x"), 409, "executed");
    handler_answers("HTTP/1.1 200 OK\r\nNonbis-Outcome: not-executed\r\n" EMPTY);
    EXPECT(post("b", "x"), 200, "not-executed");
    const struct http_answer *passed = ask("GET", "/open", NULL, NULL);
    EXPECT(passed, 200, "");
    EXPECT_NO_FIELD(passed, "Nonbis-Outcome");
    scene_end();
}
END_TEST

START_TEST(rule_6_13_a_kept_connection_that_is_found_closed_is_replaced)
{
    static const struct peer_step then_close[] = {
        { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n" EMPTY, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
    };
    SCENE_START(NULL);
    peer_script_default(scene.peer, then_close);
    for (unsigned i = 1; i <= 3; i++) {
        EXPECT(post(text("k-%u", i), "x"), 200, "executed");
        ck_assert(peer_wait_ended(scene.peer, i));
        ck_assert_uint_eq(peer_count_requests(scene.peer), i);
    }
    scene_end();
}
END_TEST

START_TEST(rule_6_13_nothing_else_is_ever_sent_twice)
{
    SCENE_START("--set", "server.loops=1");
    EXPECT(post("first", "x"), 200, "executed"); /* its connection is kept */
    peer_script_default(scene.peer, reset);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    ck_assert_uint_eq(peer_count_connections(scene.peer), 1); /* it died under a request that had gone out on it */
    scene_end();
}
END_TEST

START_TEST(rule_6_14_a_client_that_leaves_after_its_last_byte_changes_nothing)
{
    static const char request[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 6.14\r\n"
                                  "Content-Type: application/json\r\nContent-Length: 1\r\n\r\nx";
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, request, sizeof request - 1));
    ck_assert(peer_wait_stalled(scene.peer, 1));
    close(fd);
    EXPECT(post("6.14", "x"), 409, "in-progress");
    peer_release(scene.peer, 1);
    ck_assert(daemon_wait_logged(&scene.nonbis, "result=executed status=201"));
    const struct http_answer *status = get_status("6.14", "");
    for (; strstr(status->body, "\"in_progress\"") != NULL; status = get_status("6.14", "")) {
    }
    EXPECT(post("6.14", "x"), 201, "replayed");
    EXPECT_RUNS("6.14", 1);
}
END_TEST

START_TEST(rule_6_14_a_client_that_leaves_before_its_last_byte_did_nothing)
{
    char line[26] = "";
    const char *head = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 6.14-early\r\nExpect: "
                       "100-continue\r\nContent-Length: 2\r\n\r\n";
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, head, strlen(head)));
    ck_assert_int_eq(read(fd, line, 25), 25);
    ck_assert(http_send(fd, "x", 1));
    close(fd);
    EXPECT(post("6.14-other", "x"), 200, "executed");
    EXPECT_PROBLEM(get_status("6.14-early", ""), 404, "", "key-not-seen");
    EXPECT_RUNS("6.14-early", 0);
}
END_TEST

START_TEST(rule_6_14_answer_timeout_ends_the_waiting_and_not_the_execution)
{
    SCENE_START("--set", "answer_timeout=50ms");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    EXPECT_PROBLEM(post("k", "x"), 504, "in-progress", "still-running");
    EXPECT_PROBLEM(post("k", "x"), 409, "in-progress", "in-progress");
    peer_release(scene.peer, 1);
    ck_assert(daemon_wait_logged(&scene.nonbis, "result=executed"));
    EXPECT(post("k", "x"), 201, "replayed");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_6_15_after_a_crash_what_was_in_progress_is_unknown)
{
    struct caller caller;
    SCENE_START(NULL);
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    daemon_kill(&scene.nonbis);
    (void) join(&caller);
    peer_release(scene.peer, 1);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    ck_assert_str_eq(member_of(get_status("k", ""), "cause"), "\"crash\"");
    EXPECT(post("done", "x"), 200, "replayed");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_6_16_behind_an_unknown_outcome_nothing_makes_it_not_executed)
{
    SCENE_START(NULL);
    peer_script_default(scene.peer, reset);
    EXPECT(post("k", "x"), 504, "unknown");
    handler_answers("HTTP/1.1 429 Slow\r\n" EMPTY);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    peer_refuse(scene.peer);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

/* The clock of the store goes on by an hour while the handler works; the timers of the loop do not. */
START_TEST(rule_6_16_not_executed_that_comes_past_the_deadline_ends_the_command_as_unknown)
{
    struct caller caller;
    rig_start_at(&scene, "2030-01-01T00:00:00Z", NULL);
    handler_holds("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n" EMPTY);
    hold(&caller, "k");
    clock_hand_pass(&scene.clock, MOVED_HOUR);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    ck_assert_str_eq(member_of(get_status("k", ""), "completed_at"), "null"); /* its end was not recorded */
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 503, "unknown"); /* unchanged, and not as if the key were free */
    for (int i = 0; i < 2; i++) {
        EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
        const struct http_answer *status = get_status("k", "");
        ck_assert_str_eq(member_of(status, "state"), "\"unknown\"");
        ck_assert_str_eq(member_of(status, "cause"), "\"timeout\"");
        ck_assert_str_eq(member_of(status, "completed_at"), "\"2030-01-01T01:00:00.000Z\"");
        daemon_kill(&scene.nonbis); /* no start finds it in progress */
        rig_restart(&scene, NULL);
    }
    EXPECT_RUNS("k", 1);
    rig_end(&scene);
}
END_TEST

/* The head, which is out before the last byte has come, says that the key will be free. */
static const struct peer_step streamed_busy[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_SEND, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nvery ", 0 },
    { PEER_WAIT, NULL, 0 },
    { PEER_SEND, "busy", 0 },
    PEER_END
};

static const int64_t passes_ms[] = { 0, MOVED_HOUR }; /* while it comes */

START_TEST(rule_6_16_not_executed_that_is_streamed_past_the_deadline_is_cut)
{
    struct caller caller;
    rig_start_at(&scene, "2030-01-01T00:00:00Z", (const char *const[]){ "--set", "response_keep_max=3", NULL });
    peer_script_default(scene.peer, streamed_busy);
    hold(&caller, "k");
    clock_hand_pass(&scene.clock, passes_ms[_i]);
    peer_release(scene.peer, 1);
    const struct http_answer *first = join(&caller);
    ck_assert_int_eq(first->status, 503);
    ck_assert_int_eq(first->whole, _i == 0);
    ck_assert_str_eq(member_of(get_status("k", ""), "state"), _i == 0 ? "\"released\"" : "\"unknown\"");
    EXPECT_RUNS("k", 1);
    rig_end(&scene);
}
END_TEST

START_TEST(rule_6_17_an_outcome_that_cannot_be_stored_is_told_as_unrecorded_and_stored_later)
{
    struct caller caller;
    if (!disk_start(NULL)) {
        return;
    }
    peer_script_default(scene.peer, disk_held_large);
    hold(&caller, "k");
    disk_fill();
    peer_release(scene.peer, 1);
    const struct http_answer *first = join(&caller);
    EXPECT(first, 201, "unrecorded");
    ck_assert_uint_eq(first->body_len, 500000); /* the real answer */
    EXPECT_PROBLEM(post("k", "x"), 409, "in-progress", "in-progress");
    disk_make_room();
    ck_assert(daemon_wait_logged(&scene.nonbis, "is recorded now"));
    const struct http_answer *replay = post("k", "x");
    EXPECT(replay, 201, "replayed");
    ck_assert_uint_eq(replay->body_len, 500000);
    EXPECT_RUNS("k", 1);
    disk_end();
}
END_TEST

SUITE(contract_exchange)
{
    Suite *suite = suite_create("contract/06b-exchange");
    RULE_ROWS(suite, house_plain, rule_6_7_complete_is_what_ends_by_its_framing, framings);
    RULE(suite, house_plain, rule_6_7_a_head_over_response_header_max_is_garbage);
    RULE(suite, house_plain, rule_6_7_more_than_16_informational_responses_are_garbage);
    RULE(suite, house_plain, rule_6_8_informational_responses_and_trailers_are_dropped);
    RULE(suite, house_plain, rule_6_10_for_pass_through_such_bodies_are_always_accepted);
    RULE_ROWS(suite, house_plain, rule_6_12_the_handlers_word_and_what_is_none, said_rows);
    RULE(suite, house_plain, rule_6_12_only_a_complete_answer_has_a_word);
    RULE(suite, house_plain, rule_6_14_a_client_that_leaves_after_its_last_byte_changes_nothing);
    RULE(suite, house_plain, rule_6_14_a_client_that_leaves_before_its_last_byte_did_nothing);
    RULE_ALONE(suite, rule_6_9_surplus_bytes_change_nothing_and_end_the_sharing_of_connections);
    RULE_ALONE(suite, rule_6_9_upstream_idle_of_0_uses_no_connection_twice);
    RULE_ALONE(suite, rule_6_10_allow_close_delimited_makes_a_body_that_a_close_ends_complete);
    RULE_ALONE(suite, rule_6_11_release_and_unknown_override_the_class_of_the_statuses_they_list);
    RULE_ALONE(suite, rule_6_11_release_takes_400_to_599_and_unknown_200_to_599);
    RULE_ALONE(suite, rule_6_12_the_word_goes_before_the_route_options_and_is_removed_on_every_route);
    RULE_ALONE(suite, rule_6_13_a_kept_connection_that_is_found_closed_is_replaced);
    RULE_ALONE(suite, rule_6_13_nothing_else_is_ever_sent_twice);
    RULE_ALONE(suite, rule_6_14_answer_timeout_ends_the_waiting_and_not_the_execution);
    RULE_ALONE(suite, rule_6_15_after_a_crash_what_was_in_progress_is_unknown);
    RULE_ALONE(suite, rule_6_16_behind_an_unknown_outcome_nothing_makes_it_not_executed);
    RULE_ALONE(suite, rule_6_16_not_executed_that_comes_past_the_deadline_ends_the_command_as_unknown);
    RULE_ALONE_ROWS(suite, rule_6_16_not_executed_that_is_streamed_past_the_deadline_is_cut, passes_ms);
    RULE_ALONE(suite, rule_6_17_an_outcome_that_cannot_be_stored_is_told_as_unrecorded_and_stored_later);
    return suite;
}
