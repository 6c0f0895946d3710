/* departure_test.c - clients that leave, at every phase; drain; limits; many clients at once. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const struct {
    const char *request;
    const char *then; /* wait for this event before leaving */
    bool announced;
} leavings[] = {
    { "", NULL, false },
    { "GET /who", NULL, false },
    { "GET /whole HTTP/1.1\r\nHost:", NULL, false },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe", "head /whole", true },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", "head /whole", true },
    { "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe", "head /up", true },
    { "GET /open HTTP/1.1\r\nHost: h\r\n\r\n", "last", true },
    { "GET /down?size=50000000 HTTP/1.1\r\nHost: h\r\n\r\n", "last", true },
    { "GET /down?size=50000000&length=50000000 HTTP/1.1\r\nHost: h\r\n\r\n", "last", true },
};

START_TEST(a_client_that_leaves_is_gone_exactly_once)
{
    struct stage stage;
    struct client client, other;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, leavings[_i].request);
    if (leavings[_i].then != NULL) {
        stage_wait(&stage, leavings[_i].then, 1);
    }
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (_i % 2 == 0) {
        ck_assert_int_eq(setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    }
    client_close(&client);
    if (strncmp(leavings[_i].request, "GET /open", 9) == 0) {
        stage_call(&stage, stage_write_open); /* parked: noticed only by writing */
        stage_call(&stage, stage_end_open);
    }
    if (leavings[_i].announced) {
        stage_wait(&stage, "gone lost", 1);
    }
    client_connect(&other, &stage);
    client_ask(&other, "GET /whole?other HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    stage_wait(&stage, "gone delivered", 1);
    ck_assert_uint_eq(stage_count(&stage, "gone lost"), leavings[_i].announced ? 1 : 0);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 1);
    client_close(&other);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_client_that_left_while_its_request_was_parked_is_gone_once_it_is_answered)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(&stage, "whole 2", 1);
    client_close(&client);
    ck_assert_uint_eq(stage_count(&stage, "gone lost") + stage_count(&stage, "gone delivered"), 0);
    stage_call(&stage, stage_answer_parked);
    client_connect(&client, &stage);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    stage_wait(&stage, "gone delivered", 2); /* "delivered" is what the kernel took (see edge.h) */
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const struct {
    const char *request, *event, *answer; /* the event to wait for before closing the half; NULL: at once */
    void (*then)(struct stage *stage);
} half_closes[] = {
    { "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", NULL, "parked\n", stage_answer_parked },
    { "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "whole 2", "parked\n", stage_answer_parked },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", NULL, "hi", NULL },
    { "POST /up-slow HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "paused", "received 2\n", NULL },
    { "GET /down?size=28 HTTP/1.1\r\nHost: h\r\n\r\n", NULL, "abcdefghijklmnopqrstuvwxyzab", NULL },
};

/* With other connections about: libmicrohttpd happens to treat the one that was silent longest in another order. */
START_TEST(a_client_that_closed_its_sending_half_still_gets_its_answer)
{
    struct stage stage;
    struct client client, other;
    stage_start(&stage);
    client_connect(&other, &stage);
    client_ask(&other, "GET /whole?first HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_connect(&client, &stage);
    client_send(&client, half_closes[_i].request);
    if (half_closes[_i].event != NULL) {
        stage_wait(&stage, half_closes[_i].event, 1);
    }
    ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
    if (half_closes[_i].then != NULL) {
        stage_wait(&stage, "whole 2", 1);
        stage_call(&stage, half_closes[_i].then);
    }
    stage_allow(&stage, 1);
    stage_allow(&stage, 1);
    client_ask(&client, "", "POST", 200, half_closes[_i].answer);
    ck_assert(client_sees_end(&client));
    stage_wait(&stage, "gone delivered", 2);
    client_ask(&other, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&client);
    client_close(&other);
    stage_stop(&stage);
}
END_TEST

static int sudden_fd;

static void send_and_half_close(struct stage *stage)
{
    (void) stage; /* on the loop's thread, so that it finds request and end together */
    static const char text[] = "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n";
    ck_assert_int_eq(send(sudden_fd, text, sizeof text - 1, MSG_NOSIGNAL), (ssize_t) sizeof text - 1);
    ck_assert_int_eq(shutdown(sudden_fd, SHUT_WR), 0);
}

START_TEST(an_end_that_comes_together_with_the_request_is_noticed)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    sudden_fd = client.fd;
    stage_call(&stage, send_and_half_close);
    client_ask(&client, "", "GET", 200, "");
    ck_assert(client_sees_end(&client));
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static pthread_t reader;
static bool armed; /* the reader's thread only */

/* Stands for recv, which libmicrohttpd reads with. An end can come at any moment: here it comes when the connection is about to be read. */
ssize_t recv_with_an_end(int fd, void *bytes, size_t len, int flags) __asm__("recv");
ssize_t recv_with_an_end(int fd, void *bytes, size_t len, int flags)
{
    if ((flags & MSG_PEEK) == 0 && pthread_equal(pthread_self(), reader) && armed) {
        armed = false;
        (void) shutdown(sudden_fd, SHUT_WR); /* or the client has its answer, and has left */
    }
    return recvfrom(fd, bytes, len, flags, NULL, NULL);
}

static void answer_and_arm(struct stage *stage)
{
    reader = pthread_self();
    armed = true;
    stage_answer_parked(stage);
}

START_TEST(a_client_that_closes_its_sending_half_while_its_answer_is_handed_over_gets_it)
{
    struct stage stage;
    struct client client, other;
    stage_start(&stage);
    client_connect(&other, &stage);
    client_ask(&other, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_connect(&client, &stage);
    client_send(&client, "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(&stage, "whole 2", 1);
    sudden_fd = client.fd;
    stage_call(&stage, answer_and_arm);
    client_ask(&client, "", "POST", 200, "parked\n");
    client_close(&client);
    client_close(&other);
    stage_stop(&stage);
}
END_TEST

#define ASK(query) "GET /whole?" query " HTTP/1.1\r\nHost: h\r\n\r\n"

static const struct {
    const char *text; /* sent `times`, then `rest`, then the end */
    int times;
    const char *rest;
    int answers;
} half_closed_pipelines[] = {
    { ASK("1") ASK("2") ASK("3"), 1, "", 3 },
    { ASK("1"), 300, "", 300 }, /* more than is read at a time */
    { ASK("1") "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 1, ASK("3"), 3 },
    { ASK("1"), 1, "GET /wh", 1 },
    { ASK("1"), 1, "GET /whole HTTP/1.1\r\nHos", 1 },
    { ASK("1") ASK("2"), 1, "GET /whole HTTP/1.1\r\nHost: h\r\n", 2 },
};

/* What was sent whole is answered, and an unfinished rest does not keep the connection. */
START_TEST(requests_behind_one_another_are_answered_to_a_client_that_closed_its_sending_half)
{
    struct stage stage;
    struct client client;
    struct buf text;
    stage_start(&stage);
    client_connect(&client, &stage);
    buf_init(&text, SIZE_MAX);
    for (int i = 0; i < half_closed_pipelines[_i].times; i++) {
        buf_append_text(&text, half_closed_pipelines[_i].text);
    }
    buf_append_text(&text, half_closed_pipelines[_i].rest);
    client_send_bytes(&client, text.ptr,
                      text.len); /* in one piece: an end behind a later one may be missed (docs/facts.md 46) */
    buf_fini(&text);
    ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
    for (int i = 0; i < half_closed_pipelines[_i].answers; i++) {
        client_ask(&client, "", "GET", 200, "");
    }
    ck_assert(client_sees_end(&client));
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), (unsigned) half_closed_pipelines[_i].answers);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(quiescing_closes_idle_connections_and_lets_parked_requests_be_answered)
{
    struct stage stage;
    struct client idle, parked, late;
    struct answer answer;
    stage_start(&stage);
    client_connect(&idle, &stage);
    client_ask(&idle, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_connect(&parked, &stage);
    client_send(&parked, "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(&stage, "whole 2", 1);
    stage_call(&stage, stage_quiesce);
    ck_assert(client_sees_end(&idle));
    stage_call(&stage, stage_answer_parked);
    client_read(&parked, "POST", &answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert(answer_has(&answer, "Connection: close"));
    ck_assert(client_sees_end(&parked));
    answer_fini(&answer);
    client_connect(&late, &stage);
    ck_assert(client_sees_end(&late));
    client_close(&idle);
    client_close(&parked);
    client_close(&late);
    stage_stop(&stage);
}
END_TEST

START_TEST(closing_an_edge_with_requests_in_every_phase_cuts_them_and_does_not_abort)
{
    static const char *const texts[] = { "GET /who",
                                         "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe",
                                         "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
                                         "POST /park-watched HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
                                         "POST /up-slow HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe",
                                         "GET /open HTTP/1.1\r\nHost: h\r\n\r\n" };
    struct stage stage;
    struct client clients[6];
    stage_start(&stage);
    for (int i = 0; i < 6; i++) {
        client_connect(&clients[i], &stage);
        client_send(&clients[i], texts[i]);
    }
    stage_wait(&stage, "head /whole", 1);
    stage_wait(&stage, "whole 2", 2);
    stage_wait(&stage, "paused", 1);
    stage_wait(&stage, "last", 1);
    stage_stop(&stage); /* no play is left: each had its gone() */
    for (int i = 0; i < 6; i++) {
        client_close(&clients[i]);
    }
}
END_TEST

START_TEST(a_connection_over_the_limit_gets_503_and_room_comes_back)
{
    struct stage stage;
    struct client first, second, third;
    struct answer answer;
    struct edge_options options = { .connections_max = 1, .client_idle_ms = 60000, .body_max = 10 };
    stage_start_with(&stage, &options);
    client_connect(&first, &stage);
    client_ask(&first, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_connect(&second, &stage);
    client_send(&second, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n");
    client_read(&second, "GET", &answer);
    ck_assert_int_eq(answer.status, 503);
    ck_assert(answer_has(&answer, "Retry-After: 1"));
    ck_assert(client_sees_end(&second));
    answer_fini(&answer);
    client_send(&first, "GET /at-head HTTP/1.1\r\nHost: h\r\n\r\n"); /* closes */
    client_read(&first, "GET", &answer);
    ck_assert(client_sees_end(&first));
    answer_fini(&answer);
    stage_wait(&stage, "gone delivered", 2);
    client_connect(&third, &stage);
    client_ask(&third, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&first);
    client_close(&second);
    client_close(&third);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_idle_connection_is_closed_after_client_idle)
{
    struct stage stage;
    struct client client;
    struct edge_options options = { .connections_max = 10, .client_idle_ms = 1000, .body_max = 10 };
    stage_start_with(&stage, &options);
    client_connect(&client, &stage);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    ck_assert(client_sees_end(&client));
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const struct {
    const char *request, *drip;
    unsigned gone;
} drips[] = {
    { "", "G", 0 },
    { "GET /whole HTTP/1.1\r\nHost: h\r\nX-Drip: ", "x", 0 },
    { "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n", "x", 1 },
};

/* Inactivity never sees this client: it always just sent something. */
START_TEST(a_client_that_drips_is_cut_off_at_the_deadline)
{
    struct stage stage;
    struct client client;
    struct edge_options options = { .connections_max = 10,
                                    .client_idle_ms = 60000,
                                    .body_max = 2000000,
                                    .head_deadline_ms = 1000,
                                    .body_deadline_ms = 1000 };
    stage_start_with(&stage, &options);
    client_connect(&client, &stage);
    client_send(&client, drips[_i].request);
    struct timeval pace = { .tv_usec = 20000 };
    ck_assert_int_eq(setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &pace, sizeof pace), 0);
    char byte;
    int sent = 0;
    ssize_t got;
    while ((got = recv(client.fd, &byte, 1, 0)) < 0 && errno == EAGAIN) {
        client_send(&client, drips[_i].drip);
        sent++;
        ck_assert_int_lt(sent, 500);
    }
    ck_assert_int_le(got, 0);
    ck_assert_int_gt(sent, 0); /* how many fit into the time is for the machine to say */
    stage_wait(&stage, "gone lost", drips[_i].gone);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(a_deadline_does_not_touch_a_request_that_waits_for_its_answer)
{
    struct stage stage;
    struct client client, other;
    struct edge_options options = { .connections_max = 10,
                                    .client_idle_ms = 60000,
                                    .body_max = 2000000,
                                    .head_deadline_ms = 1000,
                                    .body_deadline_ms = 1000 }; /* long enough to send a request in, surely */
    stage_start_with(&stage, &options);
    client_connect(&client, &stage);
    client_send(&client, "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    stage_wait(&stage, "whole 2", 1);
    client_connect(&other, &stage);
    ck_assert(client_sees_end(&other)); /* its own deadline passed meanwhile */
    stage_call(&stage, stage_answer_parked);
    client_ask(&client, "", "POST", 200, "parked\n");
    client_close(&client);
    client_close(&other);
    stage_stop(&stage);
}
END_TEST

/* docs/facts.md 13 and 26: 128 and 256 ready connections at once stalled libmicrohttpd's own loop; a missed resume stalls any. */
static const int crowds[] = { 128, 256, 512 };

START_TEST(clients_in_lock_step_never_stall)
{
    enum { ROUNDS = 20, MOST = 512 };
    static struct client clients[MOST];
    int count = crowds[_i];
    struct stage stage;
    stage_start(&stage);
    for (int i = 0; i < count; i++) {
        client_connect(&clients[i], &stage);
    }
    for (int round = 0; round < ROUNDS; round++) {
        bool parked = round % 2 == 1;
        for (int i = 0; i < count; i++) {
            client_send(&clients[i], parked ? "POST /park HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
                                            : "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
        }
        stage_wait(&stage, "whole 2", (unsigned) (count * (round + 1)));
        if (parked) {
            stage_call(&stage, stage_answer_parked);
        }
        for (int i = 0; i < count; i++) {
            client_ask(&clients[i], "", "POST", 200, parked ? "parked\n" : "hi");
        }
    }
    FIGURE("edge: %d clients in lock step, %d answers, none stalled", count, count * ROUNDS);
    for (int i = 0; i < count; i++) {
        client_close(&clients[i]);
    }
    stage_stop(&stage);
}
END_TEST

SUITE(edge_departure)
{
    Suite *suite = suite_create("edge/departure");
    CASE_LOOP(suite, a_client_that_leaves_is_gone_exactly_once, sizeof leavings / sizeof leavings[0]);
    CASE(suite, a_client_that_left_while_its_request_was_parked_is_gone_once_it_is_answered);
    CASE_LOOP(suite, a_client_that_closed_its_sending_half_still_gets_its_answer,
              sizeof half_closes / sizeof half_closes[0]);
    CASE(suite, an_end_that_comes_together_with_the_request_is_noticed);
    CASE(suite, a_client_that_closes_its_sending_half_while_its_answer_is_handed_over_gets_it);
    CASE_LOOP(suite, requests_behind_one_another_are_answered_to_a_client_that_closed_its_sending_half,
              sizeof half_closed_pipelines / sizeof half_closed_pipelines[0]);
    CASE(suite, quiescing_closes_idle_connections_and_lets_parked_requests_be_answered);
    CASE(suite, closing_an_edge_with_requests_in_every_phase_cuts_them_and_does_not_abort);
    CASE(suite, a_connection_over_the_limit_gets_503_and_room_comes_back);
    CASE(suite, an_idle_connection_is_closed_after_client_idle);
    CASE_LOOP(suite, a_client_that_drips_is_cut_off_at_the_deadline, sizeof drips / sizeof drips[0]);
    CASE(suite, a_deadline_does_not_touch_a_request_that_waits_for_its_answer);
    CASE_LOOP(suite, clients_in_lock_step_never_stall, sizeof crowds / sizeof crowds[0]);
    return suite;
}
