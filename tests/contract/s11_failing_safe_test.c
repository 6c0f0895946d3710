/* s11_failing_safe_test.c - docs/contract.md section 11: what is durable when, and how the server fails. */
#include "tests/contract/disk.h"
#include "tests/contract/scene.h"
#include "tests/support/crowd.h"

#include <signal.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

START_TEST(rule_11_1_a_claim_is_durable_before_the_first_byte_leaves_for_the_handler)
{
    struct caller caller;
    SCENE_START(NULL);
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    for (int i = 0; i < 3; i++) {
        const char *key = text("k-%d", i);
        caller_start(&caller, scene.address, key);
        ck_assert(peer_wait_requests(scene.peer, (unsigned) i + 1)); /* as soon as the handler has its head */
        daemon_kill(&scene.nonbis);
        (void) join(&caller);
        peer_release(scene.peer, 1);
        SCENE_RESTART(NULL);
        EXPECT_PROBLEM(post(key, "x"), 504, "unknown", "outcome-unknown");
        EXPECT_RUNS(key, 1);
    }
    scene_end();
}
END_TEST

START_TEST(rule_11_1_an_outcome_is_durable_before_it_is_told)
{
    SCENE_START(NULL);
    for (int i = 0; i < 3; i++) {
        const char *key = text("k-%d", i);
        EXPECT(post(key, "x"), 200, "executed");
        daemon_kill(&scene.nonbis);
        SCENE_RESTART(NULL);
        EXPECT(post(key, "x"), 200, "replayed");
        EXPECT_RUNS(key, 1);
    }
    scene_end();
}
END_TEST

START_TEST(rule_11_2_a_store_in_memory_forgets_everything_at_exit_and_says_so_at_start)
{
    scene.peer = peer_new();
    (void) snprintf(scene.store, sizeof scene.store, "memory");
    SCENE_RESTART(NULL);
    ck_assert(daemon_logged(&scene.nonbis, "memory: every key is forgotten when the process ends"));
    EXPECT(post("k", "x"), 200, "executed");
    EXPECT(post("k", "x"), 200, "replayed");
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    SCENE_RESTART(NULL);
    EXPECT(post("k", "x"), 200, "executed");
    EXPECT_RUNS("k", 2);
    scene_end();
}
END_TEST

START_TEST(rule_11_2_believing_more_of_the_handler_does_not_touch_durability)
{
    struct caller caller;
    const char *const more[] = { "--set", "allow_close_delimited=on", "--route", "POST /orders release=409", NULL };
    SCENE_START("--set", "allow_close_delimited=on", "--route", "POST /orders release=409");
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 409 Clash\r\n" EMPTY);
    hold(&caller, "k");
    daemon_kill(&scene.nonbis);
    (void) join(&caller);
    peer_release(scene.peer, 1);
    scene_restart(more);
    EXPECT(post("done", "x"), 200, "replayed");
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    scene_end();
}
END_TEST

struct first_word {
    pthread_t thread;
    struct http_answer answer;
};

static void *first_word_run(void *context)
{
    struct first_word *one = context;
    one->answer = http_post(scene.address, "/orders", "k", "x");
    return NULL;
}

/* The look-ups of copies share a commit with the claim of one of them. Whoever of them is told anything is told what a crash does not undo. */
START_TEST(rule_11_3_a_look_up_is_told_only_once_what_it_was_answered_with_is_durable)
{
    enum { COPIES = 8 };
    struct first_word copies[COPIES];
    int told = 0;
    SCENE_START(NULL);
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    for (int i = 0; i < COPIES; i++) {
        pthread_create(&copies[i].thread, NULL, first_word_run, &copies[i]);
    }
    ck_assert(daemon_wait_logged(&scene.nonbis, "result=in-progress"));
    daemon_kill(&scene.nonbis);
    for (int i = 0; i < COPIES; i++) {
        pthread_join(copies[i].thread, NULL);
        told += copies[i].answer.status == 409;
        http_answer_free(&copies[i].answer);
    }
    ck_assert_int_ge(told, 1);
    peer_release(scene.peer, 1);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    ck_assert_uint_le(peer_count_key(scene.peer, "k"), 1);
    scene_end();
}
END_TEST

START_TEST(rule_11_4_an_error_at_commit_ends_the_process_and_the_next_start_reads_the_truth)
{
    struct caller caller;
    disk_start_breakable();
    handler_answers("HTTP/1.1 201 Created\r\n" EMPTY);
    EXPECT(post("done", "x"), 201, "executed");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    hold(&caller, "running");
    disk_break();
    const struct http_answer *broken = post("broken", "x");
    EXPECT_PROBLEM(broken, 503, "refused", "unavailable");
    ck_assert_str_eq(member_of(broken, "reason"), "\"store\"");
    const struct http_answer *fresh = post("new", "x");
    EXPECT_PROBLEM(fresh, 503, "refused", "unavailable");
    ck_assert_str_eq(member_of(fresh, "reason"), "\"store\"");
    peer_release(scene.peer, 1);
    const struct http_answer *finished = join(&caller);
    EXPECT(finished, 201, "unrecorded"); /* its real answer */
    ck_assert_str_eq(finished->body, "ok");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 74);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 2);
    SCENE_RESTART(NULL);
    EXPECT(post("done", "x"), 201, "replayed");
    EXPECT_PROBLEM(post("running", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("running", 1);
    scene_end();
}
END_TEST

/* It is the first: 11.7 needs a second one. */
START_TEST(rule_11_4_a_signal_while_a_failed_store_is_drained_cuts_nothing)
{
    struct caller caller;
    disk_start_breakable();
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    hold(&caller, "running");
    disk_break();
    EXPECT_PROBLEM(post("broken", "x"), 503, "refused", "unavailable");
    daemon_signal(&scene.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&scene.nonbis, "SIGTERM"));
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "unrecorded");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 74);
    peer_free(scene.peer);
}
END_TEST

START_TEST(rule_11_5_on_a_full_disk_replays_and_status_queries_go_on_and_new_commands_are_refused)
{
    int refused = 0;
    if (!disk_start(NULL)) {
        return;
    }
    EXPECT(post("k", "x"), 200, "executed");
    disk_fill();
    for (int i = 0; i < 400 && refused < 3; i++) {
        const struct http_answer *answer = post(text("fill-%d", i), "x");
        if (answer->status == 503) {
            EXPECT_PROBLEM(answer, 503, "refused", "unavailable");
            ck_assert_str_eq(member_of(answer, "reason"), "\"store\"");
            ck_assert_int_eq(http_field_count(answer, "Retry-After"), 1);
            EXPECT_RUNS(text("fill-%d", i), 0);
            refused++;
        }
    }
    ck_assert_int_eq(refused, 3);
    EXPECT(post("k", "x"), 200, "replayed");
    EXPECT(get_status("k", ""), 200, "");
    EXPECT(get_response("k"), 200, "");
    EXPECT_PROBLEM(get_status("new", ""), 404, "", "key-not-seen");
    disk_end();
}
END_TEST

START_TEST(rule_11_5_on_a_full_disk_the_outcome_of_every_running_command_is_recorded)
{
    enum { RUNNING = 8 };
    struct caller callers[RUNNING];
    int refused = 0;
    if (!disk_start(NULL)) {
        return;
    }
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    for (int i = 0; i < RUNNING; i++) {
        hold(&callers[i], text("run-%d", i));
    }
    ck_assert(peer_wait_stalled(scene.peer, RUNNING)); /* all of them are claimed */
    disk_fill();
    handler_answers("HTTP/1.1 201 Created\r\n" EMPTY);
    for (int i = 0; i < 400 && refused == 0; i++) {
        refused = post(text("fill-%d", i), "x")->status == 503;
    }
    ck_assert_int_eq(refused, 1);
    peer_release(scene.peer, RUNNING);
    for (int i = 0; i < RUNNING; i++) {
        EXPECT(join(&callers[i]), 201, "executed");
    }
    ck_assert(daemon_logged(&scene.nonbis, "goes to the outcomes of running commands"));
    EXPECT_PROBLEM(post("new", "x"), 503, "refused", "unavailable");
    struct http_answer ready = http_request(scene.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_ptr_nonnull(strstr(ready.body, "no-reserve\n"));
    http_answer_free(&ready);
    daemon_kill(&scene.nonbis);
    SCENE_RESTART(NULL);
    for (int i = 0; i < RUNNING; i++) {
        EXPECT(post(text("run-%d", i), "x"), 201, "replayed");
        EXPECT_RUNS(text("run-%d", i), 1);
    }
    EXPECT_RUNS("new", 0);
    disk_make_room();
    ck_assert(daemon_wait_logged(&scene.nonbis, "is kept in"));
    EXPECT(post("new", "x"), 201, "executed");
    disk_end();
}
END_TEST

/* SIGTERM or SIGINT, by the loop's index. */
static const int drain_signals[] = { SIGTERM, SIGINT };

START_TEST(rule_11_6_a_drain_refuses_new_commands_and_lets_running_ones_finish)
{
    struct caller caller;
    SCENE_START(NULL);
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    daemon_signal(&scene.nonbis, drain_signals[_i]);
    ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    const struct http_answer *fresh = post("new", "x");
    EXPECT_PROBLEM(fresh, 503, "refused", "unavailable");
    ck_assert_str_eq(member_of(fresh, "reason"), "\"draining\"");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    SCENE_RESTART(NULL);
    EXPECT(post("k", "x"), 201, "replayed");
    scene_end();
}
END_TEST

START_TEST(rule_11_6_at_the_end_of_a_drain_callers_get_what_is_recorded_and_the_rest_leaves_no_trace)
{
    static const struct peer_step half[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             PEER_END };
    const char *head = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: half-sent\r\nExpect: "
                       "100-continue\r\nContent-Length: 2\r\n\r\n";
    struct caller caller;
    char line[26] = "";
    SCENE_START("--set", "drain_timeout=100ms");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    int incomplete = http_connect(scene.address);
    ck_assert(http_send(incomplete, head, strlen(head)));
    ck_assert_int_eq(read(incomplete, line, 25), 25);
    peer_script_default(scene.peer, half);
    int passing = http_connect(scene.address);
    ck_assert(http_send(passing, "GET /open HTTP/1.1\r\nHost: a\r\n\r\n", 31));
    ck_assert(peer_wait_stalled(scene.peer, 2));
    daemon_signal(&scene.nonbis, SIGTERM);
    EXPECT_PROBLEM(join(&caller), 504, "unknown", "outcome-unknown");
    ck_assert(!keep_answer(http_receive(passing, false, NULL))->whole);
    ck_assert(http_closes(incomplete));
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    peer_release(scene.peer, 2);
    close(incomplete);
    close(passing);
    SCENE_RESTART(NULL);
    ck_assert(daemon_logged(&scene.nonbis, " recovered=0 ")); /* it is recorded, and not found open */
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_PROBLEM(get_status("half-sent", ""), 404, "", "key-not-seen");
    EXPECT_RUNS("half-sent", 0);
    scene_end();
}
END_TEST

START_TEST(rule_11_7_a_second_signal_ends_the_process_at_once_and_loses_nothing_durable)
{
    struct caller caller;
    SCENE_START(NULL);
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 201 Created\r\n" EMPTY);
    hold(&caller, "k");
    daemon_signal(&scene.nonbis, SIGINT);
    ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
    daemon_signal(&scene.nonbis, SIGTERM);
    ck_assert_int_ne(daemon_wait(&scene.nonbis), 0);
    ck_assert_int_eq(join(&caller)->status, 0);
    peer_release(scene.peer, 1);
    SCENE_RESTART(NULL);
    EXPECT(post("done", "x"), 200, "replayed");
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

SUITE(contract_failing_safe)
{
    Suite *suite = suite_create("contract/11-failing-safe");
    RULE_ALONE(suite, rule_11_1_a_claim_is_durable_before_the_first_byte_leaves_for_the_handler);
    RULE_ALONE(suite, rule_11_1_an_outcome_is_durable_before_it_is_told);
    RULE_ALONE(suite, rule_11_2_a_store_in_memory_forgets_everything_at_exit_and_says_so_at_start);
    RULE_ALONE(suite, rule_11_2_believing_more_of_the_handler_does_not_touch_durability);
    RULE_ALONE(suite, rule_11_3_a_look_up_is_told_only_once_what_it_was_answered_with_is_durable);
    RULE_ALONE(suite, rule_11_4_an_error_at_commit_ends_the_process_and_the_next_start_reads_the_truth);
    RULE_ALONE(suite, rule_11_4_a_signal_while_a_failed_store_is_drained_cuts_nothing);
    RULE_ALONE(suite, rule_11_5_on_a_full_disk_the_outcome_of_every_running_command_is_recorded);
    RULE_ALONE(suite, rule_11_5_on_a_full_disk_replays_and_status_queries_go_on_and_new_commands_are_refused);
    RULE_ALONE_ROWS(suite, rule_11_6_a_drain_refuses_new_commands_and_lets_running_ones_finish, drain_signals);
    RULE_ALONE(suite, rule_11_6_at_the_end_of_a_drain_callers_get_what_is_recorded_and_the_rest_leaves_no_trace);
    RULE_ALONE(suite, rule_11_7_a_second_signal_ends_the_process_at_once_and_loses_nothing_durable);
    return suite;
}
