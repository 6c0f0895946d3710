/* settings_times_test.c - the settings that are times show their effect in the running server: how long what is kept, and how long is waited for whom. */
#include "tests/integration/settings_scene.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Its clock stands still until the test moves it. */
#define WITH_CLOCK(...) rig_start_at(&rig, "2030-01-01T00:00:00Z", (const char *const[]){ __VA_ARGS__, NULL })

START_TEST(setting_ttl)
{
    WITH_CLOCK(SET("ttl=1s"));
    post("k", 200, "executed");
    clock_hand_pass(&rig.clock, 999);
    post("k", 200, "replayed");
    clock_hand_pass(&rig.clock, 1);
    struct http_answer answer = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(answer, 422, "refused");
    ck_assert_ptr_nonnull(strstr(answer.body, "key-expired"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"executed\":\"yes\""));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_tombstone_ttl)
{
    WITH_CLOCK(SET("ttl=1s"), SET("tombstone_ttl=2s"));
    post("k", 200, "executed");
    clock_hand_pass(&rig.clock, 1999);
    post("k", 422, "refused");
    clock_hand_pass(&rig.clock, 1);
    post("k", 200, "executed"); /* forgotten: a new command */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_connect_timeout)
{
    /* A listener whose backlog is full takes no connection and refuses none. */
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    ck_assert_int_eq(bind(full, (struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(full, 0), 0);
    ck_assert_int_eq(getsockname(full, (struct sockaddr *) &address, &len), 0);
    int fill[8];
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void) connect(fill[i], (struct sockaddr *) &address, sizeof address);
    }
    char upstream[64];
    (void) snprintf(upstream, sizeof upstream, "127.0.0.1:%u", ntohs(address.sin_port));
    (void) snprintf(rig.store, sizeof rig.store, "memory");
    const char *const more[] = { SET("connect_timeout=50ms"), NULL };
    daemon_start(&rig.nonbis, upstream, rig.store, more);
    rig.address = rig.nonbis.listen;
    int64_t start_ms = suite_now_ms();
    post("k", 502, "not-executed");
    ck_assert_int_lt(suite_now_ms() - start_ms, 2000); /* the default */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    for (int i = 0; i < 8; i++) {
        close(fill[i]);
    }
    close(full);
}
END_TEST

START_TEST(setting_answer_timeout)
{
    struct caller caller;
    WITH(SET("answer_timeout=50ms"));
    peer_script_default(rig.peer, held);
    caller_start(&caller, rig.address, "k");
    caller_expect(&caller, 504, "in-progress");
    peer_release(rig.peer, 1);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_hard_timeout)
{
    struct caller caller;
    WITH(SET("answer_timeout=50ms"), SET("hard_timeout=100ms"));
    peer_script_default(rig.peer, never);
    caller_start(&caller, rig.address, "k");
    caller_expect(&caller, 504, "in-progress");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=unknown"));
    post("k", 504, "unknown");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_passthrough_timeout)
{
    WITH(SET("passthrough_timeout=50ms"));
    peer_script_default(rig.peer, never);
    struct http_answer answer = http_request(rig.address, "GET", "/", NULL, NULL);
    ck_assert_int_eq(answer.status, 504);
    ck_assert_ptr_nonnull(strstr(answer.body, "upstream-timeout"));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

/* A byte now and then would outlive every inactivity timeout; these bound the whole. */
static void expect_cut(const char *bytes)
{
    int64_t start_ms = suite_now_ms();
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, bytes, strlen(bytes)));
    struct http_answer answer = http_receive(fd, false, NULL);
    ck_assert(answer.status == 0 || answer.status == 408);
    ck_assert_int_lt(suite_now_ms() - start_ms, 8000);
    http_answer_free(&answer);
    close(fd);
}

START_TEST(setting_header_deadline)
{
    WITH(SET("header_deadline=200ms"));
    expect_cut("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-K");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_body_deadline)
{
    WITH(SET("body_deadline=200ms"));
    expect_cut("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nabc");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_client_idle)
{
    WITH(SET("client_idle=1s"));
    int64_t start_ms = suite_now_ms();
    int fd = http_connect(rig.address);
    ck_assert(http_closes(fd));
    ck_assert_int_lt(suite_now_ms() - start_ms, 10000); /* the default is 75 s */
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_upstream_idle)
{
    WITH(SET("server.loops=1"), SET("upstream_idle=0ms")); /* each loop keeps connections of its own */
    for (int i = 0; i < 3; i++) {
        char key[8];
        (void) snprintf(key, sizeof key, "k%d", i);
        post(key, 200, "executed");
    }
    ck_assert_uint_eq(peer_count_connections(rig.peer), 3);
    rig_end(&rig);
    WITH(SET("server.loops=1"), SET("upstream_idle=1m"));
    for (int i = 0; i < 3; i++) {
        char key[8];
        (void) snprintf(key, sizeof key, "m%d", i);
        post(key, 200, "executed");
    }
    ck_assert_uint_eq(peer_count_connections(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_drain_timeout)
{
    struct caller caller;
    WITH(SET("drain_timeout=50ms"));
    peer_script_default(rig.peer, never);
    caller_start(&caller, rig.address, "k");
    ck_assert(peer_wait_whole(rig.peer, 1));
    int64_t start_ms = suite_now_ms();
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    ck_assert_int_lt(suite_now_ms() - start_ms, 10000); /* the default is 30 s */
    caller_expect(&caller, 504, "unknown");
    peer_free(rig.peer);
}
END_TEST

SUITE(settings_times)
{
    Suite *suite = suite_create("integration/settings-times");
    CASE(suite, setting_ttl);
    CASE(suite, setting_tombstone_ttl);
    CASE(suite, setting_connect_timeout);
    CASE(suite, setting_answer_timeout);
    CASE(suite, setting_hard_timeout);
    CASE(suite, setting_passthrough_timeout);
    CASE(suite, setting_header_deadline);
    CASE(suite, setting_body_deadline);
    CASE(suite, setting_client_idle);
    CASE(suite, setting_upstream_idle);
    CASE(suite, setting_drain_timeout);
    return suite;
}
