/* s11b_durable_test.c - docs/contract.md 11.1 and 11.3 with a disk that is held: what waits for it is told to nobody. */
#include "tests/contract/held.h"

#include <unistd.h>

#define GET_STATUS(key) "GET /_nonbis/v1/command HTTP/1.1\r\nHost: a\r\nIdempotency-Key: " key "\r\n\r\n"

/* The answer on `fd`, which then ends. */
static const struct http_answer *receive(int fd)
{
    const struct http_answer *answer = keep_answer(http_receive(fd, false, NULL));
    close(fd);
    return answer;
}

START_TEST(rule_11_1_while_a_claim_is_not_durable_not_a_byte_of_it_has_left_for_the_handler)
{
    held_start();
    sync_hand_hold(&held_disk);
    int caller = held_send(HELD_POST("k"));
    held_wait_taken();
    held_pass_through();
    EXPECT_RUNS("k", 0);
    held_expect_silence(caller);
    sync_hand_let_all(&held_disk);
    EXPECT(receive(caller), 200, "executed");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_11_1_while_an_outcome_is_not_durable_no_caller_has_its_answer)
{
    held_start();
    sync_hand_hold(&held_disk);
    int caller = held_send(HELD_POST("k"));
    held_wait_taken();
    sync_hand_let_one(&held_disk);
    ck_assert(peer_wait_whole(scene.peer, 1));
    held_wait_taken();
    held_pass_through();
    EXPECT_RUNS("k", 1);
    held_expect_silence(caller);
    sync_hand_let_all(&held_disk);
    EXPECT(receive(caller), 200, "executed");
    EXPECT(receive(held_send(HELD_POST("k"))), 200, "replayed");
    scene_end();
}
END_TEST

/* The look-up comes after the claim in one batch, and finds what that has written. */
START_TEST(rule_11_3_while_a_batch_is_not_durable_no_look_up_in_it_is_answered)
{
    held_start();
    sync_hand_hold(&held_disk);
    int before = held_send(HELD_POST("before"));
    held_wait_taken();
    int caller = held_send(HELD_POST("k"));
    int asker = held_send(GET_STATUS("k"));
    held_wait_queued(1, 1);
    sync_hand_let_one(&held_disk);
    sync_hand_expect(&held_disk);
    held_pass_through();
    held_expect_silence(asker);
    held_expect_silence(caller);
    EXPECT_RUNS("k", 0);
    sync_hand_let_all(&held_disk);
    const struct http_answer *status = receive(asker);
    EXPECT(status, 200, "");
    ck_assert_str_eq(member_of(status, "state"), "\"in_progress\"");
    EXPECT(receive(before), 200, "executed");
    EXPECT(receive(caller), 200, "executed");
    scene_end();
}
END_TEST

SUITE(contract_durable)
{
    Suite *suite = suite_create("contract/11b-durable");
    RULE_ALONE(suite, rule_11_1_while_a_claim_is_not_durable_not_a_byte_of_it_has_left_for_the_handler);
    RULE_ALONE(suite, rule_11_1_while_an_outcome_is_not_durable_no_caller_has_its_answer);
    RULE_ALONE(suite, rule_11_3_while_a_batch_is_not_durable_no_look_up_in_it_is_answered);
    return suite;
}
