/* waiting_written_test.c - requests that wait for a running command (docs/contract.md 7.3, 10.15), however they are written and whatever is sent behind
 * them: they wait, and their connection stays in step. */
#include "tests/integration/waiting_scene.h"

#include <sys/socket.h>
#include <unistd.h>

/* --- odd requests --- */

#define POST_WAITS HEAD("POST", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\n\r\nx")
#define STATUS_WAITS HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "\r\n")
#define BEHIND                                                                                                         \
    HEAD("GET", "/behind", "1.1", "Idempotency-Key: g\r\n\r\n")                                                        \
    HEAD("POST", "/orders", "1.1", "Idempotency-Key: b\r\nContent-Length: 1\r\n\r\nx")

static const struct {
    const char *text;
    int status;
    const char *word;
    int half_status; /* when the client closes its sending side meanwhile */
    const char *half_word;
} pipelines[] = {
    { POST_WAITS BEHIND, 201, "replayed", 409, "in-progress" },
    { STATUS_WAITS BEHIND, 200, "", 200, "" },
};

START_TEST(requests_behind_one_that_waits_are_answered_in_their_order)
{
    scene_start("debug", NULL);
    int first = scene_start_command("k");
    int fd = scene_send(pipelines[_i].text);
    scene_wait_for_waiters(1);
    scene_round_trip("k");
    ck_assert(!scene_has_answer(fd));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1); /* what is behind has not begun */
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    sender_expect(fd, pipelines[_i].status, pipelines[_i].word);
    sender_expect(fd, 200, "");
    sender_expect_last(fd, 200, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    rig_end(&rig);
}
END_TEST

START_TEST(requests_behind_one_that_waits_are_answered_to_a_client_that_has_closed_its_sending_side)
{
    scene_start("debug", NULL);
    int first = scene_start_command("k");
    int fd = scene_send(pipelines[_i].text);
    (void) shutdown(fd, SHUT_WR);
    sender_expect(fd, pipelines[_i].half_status, pipelines[_i].half_word);
    sender_expect(fd, 200, "");
    sender_expect(fd, 200, "executed");
    ck_assert(http_closes(fd));
    close(fd);
    ck_assert_uint_eq(peer_count_key(rig.peer, "b"), 1);
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    rig_end(&rig);
}
END_TEST

/* What is behind may run, or not: but never twice, and what runs ends. */
START_TEST(a_reset_behind_a_pipeline_that_waits_harms_nobody)
{
    scene_start("debug", "waiters_max=8");
    int first = scene_start_command("k");
    for (int i = 0; i < 2 * SCENE_LOOPS; i++) {
        int fd = scene_send(pipelines[_i].text);
        scene_wait_for_waiters(i + 1);
        sender_reset(fd);
    }
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    scene_expect_free_places("k-2", 8);
    ck_assert_uint_le(peer_count_key(rig.peer, "b"), 1);
    rig_end(&rig);
}
END_TEST

static const struct {
    const char *text, *rest; /* `rest` is sent after 100 Continue */
    int status;
    const char *word;
    bool head, closes;
} oddities[] = {
    { HEAD("HEAD", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "\r\n"), NULL, 200, "", true, false },
    { HEAD("HEAD", "/orders", "1.1", "Idempotency-Key: k\r\n" WAITS "\r\n"), NULL, 200, "", true, false }, /* passes */
    { HEAD("POST", "/orders", "1.1",
           "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\nExpect: 100-continue\r\n\r\n"),
      "x", 201, "replayed", false, false },
    { HEAD("POST", "/orders", "1.1",
           "Idempotency-Key: k\r\n" WAITS "Transfer-Encoding: chunked\r\n\r\n") "1\r\nx\r\n0\r\n\r\n",
      NULL, 201, "replayed", false, true },
    { HEAD("POST", "/orders", "1.0", "Idempotency-Key: k\r\n" WAITS "Content-Length: 1\r\n\r\nx"), NULL, 201,
      "replayed", false, true },
    { HEAD("GET", STATUS, "1.0", "Idempotency-Key: k\r\n" WAITS "\r\n"), NULL, 200, "", false, true },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "Connection: close\r\n\r\n"), NULL, 200, "", false,
      true },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 3\r\n\r\nabc"), NULL, 200, "", false,
      false },
    { HEAD("GET", STATUS, "1.1", "Idempotency-Key: k\r\n" WAITS "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"),
      "abc", 200, "", false, false },
};

START_TEST(however_it_is_written_a_request_waits_and_its_connection_stays_in_step)
{
    bool waits = strstr(oddities[_i].text, "HEAD /orders") == NULL;
    int informational = 0;
    scene_start("debug", NULL);
    int first = scene_start_command("k");
    int fd = scene_send(oddities[_i].text);
    if (oddities[_i].rest != NULL) {
        char line[26] = "";
        ck_assert_int_eq(recv(fd, line, 25, MSG_WAITALL), 25);
        ck_assert_str_eq(line, "HTTP/1.1 100 Continue\r\n\r\n");
        ck_assert(http_send(fd, oddities[_i].rest, strlen(oddities[_i].rest)));
    }
    if (waits) {
        scene_wait_for_waiters(1);
        ck_assert(!scene_has_answer(fd));
    }
    peer_release(rig.peer, 1);
    struct http_answer answer = http_receive(fd, oddities[_i].head, &informational);
    RIG_EXPECT(answer, oddities[_i].status, oddities[_i].word);
    ck_assert(answer.whole);
    ck_assert_int_eq(informational, 0);
    if (waits && oddities[_i].status == 200) {
        ck_assert(http_field_is(&answer, "Preference-Applied", "wait=20"));
    }
    sender_expect_last(first, 201, "executed");
    if (oddities[_i].closes) {
        ck_assert(http_closes(fd));
    } else {
        ck_assert(sender_post_on(fd, "k", ""));
        sender_expect(fd, 201, "replayed");
    }
    close(fd);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

SUITE(waiting_written)
{
    Suite *suite = suite_create("integration/waiting_written");
    CASE_LOOP(suite, requests_behind_one_that_waits_are_answered_in_their_order, 2);
    CASE_LOOP(suite, requests_behind_one_that_waits_are_answered_to_a_client_that_has_closed_its_sending_side, 2);
    CASE_LOOP(suite, a_reset_behind_a_pipeline_that_waits_harms_nobody, 2);
    CASE_LOOP(suite, however_it_is_written_a_request_waits_and_its_connection_stays_in_step,
              sizeof oddities / sizeof oddities[0]);
    return suite;
}
