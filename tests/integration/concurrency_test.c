/* concurrency_test.c - copies of one command at the same time (docs/contract.md sections 4 and 5). The handler holds its answer until every copy has
 * been received by nonbisd, so the copies overlap by construction; executions are counted at the handler. */
#include "tests/support/crowd.h"
#include "tests/support/rig.h"

#include <pthread.h>

enum { CLIENTS = 64, KEYS = 8, ROUNDS = 50 };

/* Holds the answer until the test lets it go. */
static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

static void *crowd_thread(void *members)
{
    crowd_run(members, CLIENTS);
    return NULL;
}

START_TEST(of_64_copies_at_once_one_is_executed_and_the_others_are_told_to_come_back)
{
    static struct crowd_member members[CLIENTS];
    struct rig rig;
    pthread_t thread;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, held);
    for (int i = 0; i < CLIENTS; i++) {
        members[i].address = rig.address;
        (void) snprintf(members[i].key, sizeof members[i].key, "k-1");
        (void) snprintf(members[i].body, sizeof members[i].body, "{\"amount\":1}");
    }
    pthread_create(&thread, NULL, crowd_thread, members);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    /* The handler answers only after all 63 others have got theirs. */
    int out = 0;
    for (int turn = 0; turn < 1000 && out < CLIENTS - 1; turn++) {
        struct http_answer probe = http_post(rig.address, "/orders", "k-1", "{\"amount\":1}");
        RIG_EXPECT(probe, 409, "in-progress");
        http_answer_free(&probe);
        out = daemon_count_logged(&rig.nonbis, "result=in-progress") - (turn + 1);
    }
    ck_assert_int_eq(out, CLIENTS - 1);
    peer_release(rig.peer, 1);
    pthread_join(thread, NULL);
    int executed = 0;
    int in_progress = 0;
    for (int i = 0; i < CLIENTS; i++) {
        char wait[16];
        if (members[i].answer.status == 201) {
            executed++;
            RIG_EXPECT(members[i].answer, 201, "executed");
        } else {
            RIG_EXPECT(members[i].answer, 409, "in-progress");
            ck_assert(http_field(&members[i].answer, "Retry-After", wait, sizeof wait) && strtol(wait, NULL, 10) >= 1);
            in_progress++;
        }
    }
    crowd_free(members, CLIENTS);
    FIGURE("one key, %d clients: executed=%d in_progress_409=%d executions_at_handler=%u", CLIENTS, executed,
           in_progress, peer_count_requests(rig.peer));
    ck_assert_int_eq(executed, 1);
    ck_assert_int_eq(in_progress, CLIENTS - 1);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

struct round_counts {
    int executed, replayed, in_progress, reused;
};

/* One round: 64 clients on 8 keys, half of them with another payload. Whoever claims a key first fixes its payload. */
static void run_round(struct rig *rig, int round, struct round_counts *counts)
{
    static struct crowd_member members[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        members[i].address = rig->address;
        (void) snprintf(members[i].key, sizeof members[i].key, "r%d-k%d", round, i % KEYS);
        (void) snprintf(members[i].body, sizeof members[i].body, "{\"amount\":%d}", 1 + (i / KEYS) % 2);
    }
    crowd_run(members, CLIENTS);
    for (int key = 0; key < KEYS; key++) {
        int winner = 0; /* the payload that ran */
        for (int i = key; i < CLIENTS; i += KEYS) {
            int payload = 1 + (i / KEYS) % 2;
            int status = members[i].answer.status;
            ck_assert_msg(status == 200 || status == 409 || status == 422, "status %d", status);
            if (status != 422) {
                ck_assert_msg(winner == 0 || winner == payload, "both payloads of a key were accepted");
                winner = payload;
            }
            counts->executed += http_field_is(&members[i].answer, "Idempotency-Status", "executed");
            counts->replayed += http_field_is(&members[i].answer, "Idempotency-Status", "replayed");
            counts->in_progress += status == 409;
            counts->reused += status == 422;
        }
        ck_assert_int_ne(winner, 0);
        for (int i = key; i < CLIENTS; i += KEYS) {
            bool won = 1 + (i / KEYS) % 2 == winner;
            ck_assert_msg(won == (members[i].answer.status != 422), "the other payload was not refused");
        }
        char name[64];
        (void) snprintf(name, sizeof name, "r%d-k%d", round, key);
        ck_assert_uint_eq(peer_count_key(rig->peer, name), 1);
    }
    crowd_free(members, CLIENTS);
}

START_TEST(of_two_payloads_under_one_key_one_wins_and_the_other_is_refused_every_time)
{
    struct rig rig;
    struct round_counts counts = { 0 };
    rig_start(&rig, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(&rig, round, &counts);
    }
    FIGURE("two payloads, %d rounds of %d clients on %d keys: executed=%d replayed=%d in_progress_409=%d reused_422=%d "
           "executions_at_handler=%u",
           ROUNDS, CLIENTS, KEYS, counts.executed, counts.replayed, counts.in_progress, counts.reused,
           peer_count_requests(rig.peer));
    ck_assert_uint_eq(peer_count_requests(rig.peer), ROUNDS * KEYS);
    ck_assert_int_eq(counts.executed, ROUNDS * KEYS);
    ck_assert_int_eq(counts.reused, ROUNDS * CLIENTS / 2);
    ck_assert_int_gt(counts.in_progress, 0);
    rig_end(&rig);
}
END_TEST

SUITE(concurrency)
{
    Suite *suite = suite_create("integration/concurrency");
    CASE(suite, of_64_copies_at_once_one_is_executed_and_the_others_are_told_to_come_back);
    CASE(suite, of_two_payloads_under_one_key_one_wins_and_the_other_is_refused_every_time);
    return suite;
}
