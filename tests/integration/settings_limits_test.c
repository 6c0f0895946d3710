/* settings_limits_test.c - the settings that are limits show their effect in the running server: what is larger, or more at once, is refused or not kept. */
#include "tests/integration/settings_scene.h"
#include "tests/support/crowd.h"

#include <unistd.h>

START_TEST(setting_body_max)
{
    char body[1200];
    WITH(SET("body_max=1KiB"));
    memset(body, 'x', sizeof body);
    body[1024] = '\0';
    struct http_answer fits = http_post(rig.address, "/orders", "k1", body);
    RIG_EXPECT(fits, 200, "executed");
    body[1024] = 'x';
    body[1025] = '\0';
    struct http_answer over = http_post(rig.address, "/orders", "k2", body);
    RIG_EXPECT(over, 413, "refused");
    ck_assert_ptr_nonnull(strstr(over.body, "body-too-large"));
    char chunked[1400];
    (void) snprintf(chunked, sizeof chunked,
                    "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k3\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n401\r\n%s\r\n0\r\n\r\n",
                    body);
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, chunked, strlen(chunked)));
    struct http_answer third = http_receive(fd, false, NULL);
    RIG_EXPECT(third, 413, "refused");
    close(fd);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&fits);
    http_answer_free(&over);
    http_answer_free(&third);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_response_keep_max)
{
    static const struct peer_step three[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0 },
                                              PEER_END };
    WITH(SET("response_keep_max=2B"));
    peer_script_default(rig.peer, three);
    struct http_answer first = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(first, 200, "executed");
    ck_assert_str_eq(first.body, "abc");
    struct http_answer again = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(again, 200, "replayed");
    ck_assert_str_eq(again.body, "");
    ck_assert(http_field_is(&again, "Nonbis-Body", "not-kept"));
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

static struct http_answer post_with_head_of(size_t bytes)
{
    char fields[12000] = "Idempotency-Key: k\r\nX-Long: ";
    size_t start = strlen(fields);
    memset(fields + start, 'x', bytes);
    (void) snprintf(fields + start + bytes, sizeof fields - start - bytes, "\r\n");
    return http_request(rig.address, "POST", "/orders", fields, "x");
}

START_TEST(setting_request_header_max)
{
    WITH(SET("request_header_max=1KiB"));
    struct http_answer fits = post_with_head_of(800);
    RIG_EXPECT(fits, 200, "executed");
    struct http_answer over = post_with_head_of(1100);
    RIG_EXPECT(over, 431, "");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&fits);
    http_answer_free(&over);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_response_header_max)
{
    static char answer[4096];
    static struct peer_step steps[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, answer, 0 }, PEER_END };
    size_t len = (size_t) snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: ");
    memset(answer + len, 'x', 1100);
    (void) snprintf(answer + len + 1100, sizeof answer - len - 1100, "\r\n\r\n");
    WITH(SET("response_header_max=1KiB"));
    peer_script_for_request(rig.peer, 1, steps);
    post("k", 504, "unknown"); /* it cannot be kept whole, so nothing is claimed of it */
    rig_end(&rig);
    WITH(SET("response_header_max=2KiB"));
    peer_script_for_request(rig.peer, 1, steps);
    post("k2", 200, "executed");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_connections_max)
{
    WITH(SET("connections_max=2"));
    int one = http_connect(rig.address);
    int two = http_connect(rig.address);
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (int i = 0; i < 2; i++) {
        ck_assert(http_send(i == 0 ? one : two, request, sizeof request - 1));
        struct http_answer answer = http_receive(i == 0 ? one : two, false, NULL);
        ck_assert_int_eq(answer.status, 200);
        http_answer_free(&answer);
    }
    int three = http_connect(rig.address);
    struct http_answer refused = http_receive(three, false, NULL);
    ck_assert_int_eq(refused.status, 503);
    ck_assert_int_eq(http_field_count(&refused, "Retry-After"), 1);
    http_answer_free(&refused);
    close(one);
    close(two);
    close(three);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_running_max)
{
    struct caller caller;
    WITH(SET("running_max=1"));
    post("done", 200, "executed");
    peer_script_default(rig.peer, held);
    caller_start(&caller, rig.address, "k1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    struct http_answer over = http_post(rig.address, "/orders", "k2", "x");
    RIG_EXPECT(over, 503, "refused");
    ck_assert_ptr_nonnull(strstr(over.body, "\"reason\":\"overloaded\""));
    post("done", 200, "replayed"); /* replays are served while new work is refused */
    peer_release(rig.peer, 2);
    caller_expect(&caller, 201, "executed");
    post("k2", 201, "executed");
    http_answer_free(&over);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_store_queue_max)
{
    static struct crowd_member members[64];
    int overloaded = 0;
    int executed = 0;
    WITH(SET("store_queue_max=1"));
    /* Many at once: more than one claim waits while the store makes the one before durable. */
    for (int round = 0; round < 50 && overloaded == 0; round++) {
        for (int i = 0; i < 64; i++) {
            members[i].address = rig.address;
            (void) snprintf(members[i].key, sizeof members[i].key, "r%d-%d", round, i);
            (void) snprintf(members[i].body, sizeof members[i].body, "x");
        }
        crowd_run(members, 64);
        for (int i = 0; i < 64; i++) {
            if (members[i].answer.status == 503) {
                RIG_EXPECT(members[i].answer, 503, "refused");
                ck_assert_ptr_nonnull(strstr(members[i].answer.body, "\"reason\":\"overloaded\""));
                overloaded++;
            } else {
                RIG_EXPECT(members[i].answer, 200, "executed");
                executed++;
            }
        }
        crowd_free(members, 64);
    }
    ck_assert_int_gt(overloaded, 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) executed);
    rig_end(&rig);
}
END_TEST

SUITE(settings_limits)
{
    Suite *suite = suite_create("integration/settings-limits");
    CASE(suite, setting_body_max);
    CASE(suite, setting_response_keep_max);
    CASE(suite, setting_request_header_max);
    CASE(suite, setting_response_header_max);
    CASE(suite, setting_connections_max);
    CASE(suite, setting_running_max);
    CASE(suite, setting_store_queue_max);
    return suite;
}
