/* stream_test.c - bodies as they come, in both directions, with slow sides and at flat memory. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#include <sys/socket.h>

enum { BIG = 64 * 1024 * 1024, GROWTH_KIB = 8 * 1024 };

START_TEST(an_upload_of_64_mb_to_a_slow_handler_takes_flat_memory)
{
    struct stage stage;
    struct client client;
    static char block[65536];
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /up-slow HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
    client_send_bytes(&client, block, sizeof block);
    stage_wait(&stage, "paused", 1);
    size_t before = resident_kib();
    /* The rest in steps of 64 KiB: the handler takes a step only after it has paused, and pauses often within one. */
    for (size_t sent = sizeof block; sent < BIG; sent += sizeof block) {
        stage_allow(&stage, sizeof block);
        client_send_bytes(&client, block, sizeof block);
    }
    size_t after = resident_kib();
    stage_allow(&stage, sizeof block);
    client_ask(&client, "", "POST", 200, "received 67108864\n");
    FIGURE("edge: 64 MiB up to a slow handler, %u pauses, resident memory grew by %zu KiB",
           stage_count(&stage, "paused"), after > before ? after - before : 0);
    ck_assert_uint_lt(after, before + GROWTH_KIB);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const char *const downs[] = { "GET /down?size=67108864 HTTP/1.1\r\nHost: h\r\n\r\n",
                                     "GET /down?size=67108864&length=67108864 HTTP/1.1\r\nHost: h\r\n\r\n" };

/* Reads through the connection without keeping it; returns how many bytes came and whether each was the expected one. */
static size_t drain_pattern(struct client *client, bool chunked, bool *good)
{
    size_t seen = client->in.len;
    static char block[65536];
    char last[5] = ""; /* of all that came: the end of a chunked body may come in two pieces */
    *good = true;
    size_t left = chunked ? 0 : BIG - seen;
    while (chunked || left > 0) {
        ssize_t got = recv(client->fd, block, chunked || left > sizeof block ? sizeof block : left, 0);
        ck_assert_int_gt(got, 0);
        for (ssize_t i = 0; !chunked && i < got; i++) {
            *good = *good && block[i] == (char) ('a' + (seen + (size_t) i) % 26);
        }
        seen += (size_t) got;
        left -= chunked ? 0 : (size_t) got;
        size_t part = (size_t) got < sizeof last ? (size_t) got : sizeof last;
        memmove(last, last + part, sizeof last - part);
        memcpy(last + sizeof last - part, block + got - part, part);
        if (chunked && memcmp(last, "0\r\n\r\n", sizeof last) == 0) {
            break;
        }
    }
    return seen;
}

START_TEST(a_download_of_64_mb_to_a_client_that_reads_late_takes_flat_memory)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, downs[_i]);
    client_read_head(&client, &answer);
    stage_wait(&stage, "full", 1); /* the handler ran ahead as far as it may */
    ck_assert_int_eq(answer.status, 200);
    answer_fini(&answer);
    size_t before = resident_kib();
    bool good;
    size_t seen = drain_pattern(&client, _i == 0, &good);
    size_t after = resident_kib();
    ck_assert(good);
    ck_assert_uint_ge(seen, BIG);
    FIGURE("edge: 64 MiB down %s, resident memory grew by %zu KiB", _i == 0 ? "chunked" : "with a length",
           after > before ? after - before : 0);
    ck_assert_uint_lt(after, before + GROWTH_KIB);
    client.in.len = 0;
    stage_wait(&stage, "gone delivered", 1);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const struct {
    const char *request, *body;
} small_downs[] = {
    { "GET /down?size=1 HTTP/1.1\r\nHost: h\r\n\r\n", "a" },
    { "GET /down?size=28 HTTP/1.1\r\nHost: h\r\n\r\n", "abcdefghijklmnopqrstuvwxyzab" },
    { "GET /down?size=0 HTTP/1.1\r\nHost: h\r\n\r\n", "" },
    { "GET /down?size=1&length=1 HTTP/1.1\r\nHost: h\r\n\r\n", "a" },
    { "GET /down?size=28&length=28 HTTP/1.1\r\nHost: h\r\n\r\n", "abcdefghijklmnopqrstuvwxyzab" },
    { "GET /down?size=0&length=0 HTTP/1.1\r\nHost: h\r\n\r\n", "" },
    { "GET /down?size=4&length=3 HTTP/1.1\r\nHost: h\r\n\r\n",
      "abc" }, /* longer than announced: the excess is dropped */
};

START_TEST(a_streamed_answer_is_whole_and_in_step)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, small_downs[_i].request, "GET", 200, small_downs[_i].body);
    client_ask(&client, small_downs[_i].request, "GET", 200, small_downs[_i].body);
    stage_wait(&stage, "gone delivered", 2);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(bytes_of_an_open_answer_reach_the_client_before_its_end)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "GET /open HTTP/1.1\r\nHost: h\r\n\r\n");
    stage_wait(&stage, "last", 1);
    stage_call(&stage, stage_write_open);
    client_read_head(&client, &answer);
    char got[10];
    size_t have = client.in.len;
    memcpy(got, client.in.ptr, have);
    while (have < 10) { /* 5 CR LF hello CR LF */
        ssize_t more = recv(client.fd, got + have, 10 - have, 0);
        ck_assert_int_gt(more, 0);
        have += (size_t) more;
    }
    ck_assert_int_eq(memcmp(got, "5\r\nhello\r\n", 10), 0);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 0);
    client.in.len = 0;
    stage_call(&stage, stage_write_open);
    stage_call(&stage, stage_end_open);
    answer_fini(&answer);
    char rest[15];
    ck_assert_int_eq(recv(client.fd, rest, sizeof rest, MSG_WAITALL), 15);
    ck_assert_int_eq(memcmp(rest, "5\r\nhello\r\n0\r\n\r\n", 15), 0);
    stage_wait(&stage, "gone delivered", 1);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

/* The handler may still have something to do (make the outcome durable) when it has written everything. */
START_TEST(an_announced_answer_is_not_over_before_its_handler_says_so)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "GET /open?length=5 HTTP/1.1\r\nHost: h\r\n\r\n");
    stage_wait(&stage, "last", 1);
    stage_call(&stage, stage_write_open);
    client_read_head(&client, &answer);
    while (client.in.len < 4) {
        ssize_t got = recv(client.fd, client.in.ptr + client.in.len, 4 - client.in.len, 0);
        ck_assert_int_gt(got, 0);
        client.in.len += (size_t) got;
    }
    char last;
    ck_assert_int_lt(recv(client.fd, &last, 1, MSG_DONTWAIT), 0);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 0);
    stage_call(&stage, stage_end_open);
    ck_assert_int_eq(recv(client.fd, &last, 1, 0), 1);
    stage_wait(&stage, "gone delivered", 1);
    answer_fini(&answer);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_answer_given_during_the_upload_follows_its_last_byte)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, "POST /up-early HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    stage_wait(&stage, "part", 1);
    client_send(&client, "5\r\nhello\r\n0\r\n\r\n");
    client_ask(&client, "", "POST", 200, "early\n");
    ck_assert_uint_eq(stage_count(&stage, "part"), 1);
    ck_assert_uint_eq(stage_count(&stage, "last"), 0);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

static const char *const cuts[] = { "GET /open HTTP/1.1\r\nHost: h\r\n\r\n",
                                    "GET /open?length=500 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /open HTTP/1.0\r\n\r\n" };

START_TEST(a_cut_answer_ends_in_a_reset)
{
    struct stage stage;
    struct client client;
    struct answer answer;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_send(&client, cuts[_i]);
    stage_wait(&stage, "last", 1);
    stage_call(&stage, stage_write_open);
    client_read_head(&client, &answer);
    ck_assert_int_eq(answer.status, 200);
    stage_call(&stage, stage_cut_all);
    stage_wait(&stage, "gone lost", 1);
    client.in.len = 0;
    while (!client_sees_end(&client)) {
        client.in.len = 0;
    }
    ck_assert(client.reset);
    ck_assert_uint_eq(stage_count(&stage, "gone delivered"), 0);
    answer_fini(&answer);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_answer_shorter_than_announced_is_cut)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    struct answer answer;
    client_send(&client, "GET /down?size=3&length=4 HTTP/1.1\r\nHost: h\r\n\r\n");
    client_read(&client, "GET", &answer);
    ck_assert(!answer.whole);
    ck_assert(client.reset);
    stage_wait(&stage, "gone lost", 1);
    answer_fini(&answer);
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

SUITE(edge_stream)
{
    Suite *suite = suite_create("edge/stream");
    CASE(suite, an_upload_of_64_mb_to_a_slow_handler_takes_flat_memory);
    CASE_LOOP(suite, a_download_of_64_mb_to_a_client_that_reads_late_takes_flat_memory, 2);
    CASE_LOOP(suite, a_streamed_answer_is_whole_and_in_step, sizeof small_downs / sizeof small_downs[0]);
    CASE(suite, bytes_of_an_open_answer_reach_the_client_before_its_end);
    CASE(suite, an_announced_answer_is_not_over_before_its_handler_says_so);
    CASE(suite, an_answer_given_during_the_upload_follows_its_last_byte);
    CASE_LOOP(suite, a_cut_answer_ends_in_a_reset, sizeof cuts / sizeof cuts[0]);
    CASE(suite, an_answer_shorter_than_announced_is_cut);
    return suite;
}
