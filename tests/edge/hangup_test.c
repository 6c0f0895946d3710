/* hangup_test.c - clients that leave while their request waits for an answer and are watched (server/edge/hangup.c). That nothing was told is shown by
 * a second client, who leaves later and is told of. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#include <sys/socket.h>
#include <unistd.h>

#define WATCHED "POST /park-watched HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
#define PARKED "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
#define PIPELINED "GET /whole?pipelined HTTP/1.1\r\nHost: h\r\n\r\n"

enum leaving { HALF_CLOSE, CLOSE, RESET };

static void client_leave(struct client *client, enum leaving how)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (how == RESET) {
        ck_assert_int_eq(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    }
    if (how == HALF_CLOSE) {
        ck_assert_int_eq(shutdown(client->fd, SHUT_WR), 0);
    } else {
        client_close(client);
    }
}

/* By now the loop has met everything that was done before: a client that is watched has left, and that was told. */
static void another_leaves(struct stage *stage)
{
    struct client other;
    unsigned wholes = stage_count(stage, "whole 2"), told = stage_count(stage, "hung up /park-watched?other");
    client_connect(&other, stage);
    client_send(&other, "POST /park-watched?other HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(stage, "whole 2", wholes + 1);
    client_close(&other);
    stage_wait(stage, "hung up /park-watched?other", told + 1);
}

static const struct {
    const char *behind; /* sent behind the request, and not read */
    enum leaving how;
    bool is_last; /* the pipelined request is answered as well */
} leaving_rows[] = {
    { "", HALF_CLOSE, false },       { "", CLOSE, false },        { "", RESET, false },
    { "GE", HALF_CLOSE, false },     { "GE", CLOSE, false },      { "GE", RESET, false },
    { PIPELINED, HALF_CLOSE, true }, { PIPELINED, CLOSE, false }, { PIPELINED, RESET, false },
};

START_TEST(a_watched_client_that_hangs_up_is_told_of_once_and_can_still_be_answered)
{
    struct stage stage;
    struct client client, other;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, WATCHED);
    stage_wait(&stage, "whole 2", 1);
    client_send(&client, leaving_rows[_i].behind);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), 0);
    client_leave(&client, leaving_rows[_i].how);
    stage_wait(&stage, "hung up /park-watched", 1);
    stage_call(&stage, stage_watch_parked); /* it was told already */
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), 1);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered") + stage_count(&stage, "gone lost"), 0);
    stage_call(&stage, stage_answer_parked);
    if (leaving_rows[_i].how == HALF_CLOSE) {
        client_ask(&client, "", "POST", 200, "parked\n");
        if (leaving_rows[_i].is_last) {
            client_ask(&client, "", "GET", 200, "");
        }
        ck_assert(client_sees_end(&client));
        client_close(&client);
    }
    client_connect(&other, &stage);
    client_ask(&other, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&other);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_client_that_left_before_it_was_watched_is_told_of)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, PARKED);
    stage_wait(&stage, "whole 2", 1);
    client_close(&client);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park"), 0);
    stage_call(&stage, stage_watch_parked);
    stage_wait(&stage, "hung up /park", 1);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_client_that_is_not_watched_any_more_is_not_told_of)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, WATCHED);
    stage_wait(&stage, "whole 2", 1);
    stage_call(&stage, stage_unwatch_all);
    stage_call(&stage, stage_unwatch_all);
    client_close(&client);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), 0);
    stage_call(&stage, stage_watch_parked); /* and then it is */
    stage_wait(&stage, "hung up /park-watched", 1);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_answer_ends_the_watch_and_the_connection_goes_on)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    for (unsigned round = 1; round <= 3; round++) {
        client_send(&client, WATCHED);
        stage_wait(&stage, "whole 2", round);
        stage_call(&stage, stage_answer_parked);
        client_ask(&client, "", "POST", 200, "parked\n");
    }
    client_ask(&client, PIPELINED, "GET", 200, "");
    client_leave(&client, HALF_CLOSE);
    ck_assert(client_sees_end(&client));
    client_close(&client);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), 0);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

/* From its first byte on, not from its last. */
START_TEST(an_answer_on_its_way_to_a_slow_client_ends_the_watch)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /park-watched?size=16000000 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(&stage, "whole 2", 1);
    stage_call(&stage, stage_answer_parked);
    client_read_head(&client, &answer);
    client_leave(&client, HALF_CLOSE);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched?size=16000000"), 0);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 0); /* still on its way */
    client_close(&client);
    answer_fini(&answer);
    stage_wait(&stage, "gone lost", 1);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_streaming_answer_ends_the_watch_when_it_begins)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "GET /open-watched HTTP/1.1\r\nHost: h\r\n\r\n");
    stage_wait(&stage, "last", 1);
    client_leave(&client, HALF_CLOSE);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /open-watched"), 0);
    stage_call(&stage, stage_answer_parked);
    stage_call(&stage, stage_end_open);
    client_ask(&client, "", "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

/* Our own reset is no client that leaves. */
START_TEST(a_cut_ends_the_watch)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, WATCHED);
    stage_wait(&stage, "whole 2", 1);
    stage_call(&stage, stage_cut_all);
    stage_wait(&stage, "gone lost", 1);
    client_close(&client);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), 0);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

/* Descriptors are given out again at once: a watch that outlived its connection would be met by the next one. */
START_TEST(connections_that_come_and_go_are_each_watched_for_themselves)
{
    enum { ROUNDS = 60, TOGETHER = 8 };
    unsigned seed = suite_seed(), left = 0, stayed = 0;
    struct suite_random random;
    struct stage stage;
    struct client clients[TOGETHER];
    suite_random_start(&random, seed);
    FIGURE("edge: connections that come and go, seed=%u", seed);
    stage_start(&stage);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned leaves = suite_random_next(&random);
        for (int i = 0; i < TOGETHER; i++) {
            client_connect(&clients[i], &stage);
            client_send(&clients[i], WATCHED);
        }
        stage_wait(&stage, "whole 2", (unsigned) ((round + 1) * TOGETHER));
        for (int i = 0; i < TOGETHER; i++) {
            if ((leaves >> i & 1) != 0) {
                client_leave(&clients[i], (leaves >> (8 + i) & 1) != 0 ? RESET : CLOSE);
                left++;
            }
        }
        stage_wait(&stage, "hung up /park-watched", left);
        stage_call(&stage, stage_answer_parked);
        for (int i = 0; i < TOGETHER; i++) {
            if ((leaves >> i & 1) == 0) {
                client_ask(&clients[i], "", "POST", 200, "parked\n");
                client_close(&clients[i]);
                stayed++;
            }
        }
    }
    FIGURE("edge: %u clients left and were told of, %u stayed and were answered", left, stayed);
    another_leaves(&stage);
    ck_assert_uint_eq(stage_count(&stage, "hung up /park-watched"), left);
    stage_call(&stage, stage_answer_parked);
    stage_stop(&stage);
}
END_TEST

SUITE(edge_hangup)
{
    Suite *suite = suite_create("edge/hangup");
    CASE_LOOP(suite, a_watched_client_that_hangs_up_is_told_of_once_and_can_still_be_answered,
              sizeof leaving_rows / sizeof leaving_rows[0]);
    CASE(suite, a_client_that_left_before_it_was_watched_is_told_of);
    CASE(suite, a_client_that_is_not_watched_any_more_is_not_told_of);
    CASE(suite, an_answer_ends_the_watch_and_the_connection_goes_on);
    CASE(suite, an_answer_on_its_way_to_a_slow_client_ends_the_watch);
    CASE(suite, a_streaming_answer_ends_the_watch_when_it_begins);
    CASE(suite, a_cut_ends_the_watch);
    CASE(suite, connections_that_come_and_go_are_each_watched_for_themselves);
    return suite;
}
