/* connect_test.c - making connections: what counts as "not sent", names, Unix sockets, TLS that fails, proxies of the environment,
 * and many at once. Names with several addresses: names_test.c. */
#include "tests/peer/words.h"
#include "tests/upstream/probe.h"
#include "tests/upstream/resolver.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void expect_not_sent(struct probe *probe, struct probe_call *call, const char *says)
{
    ck_assert_msg(call->end == ATTEMPT_NOT_SENT, "ended %s: %s", attempt_end_name(call->end), call->reason);
    ck_assert_msg(strstr(call->reason, says) != NULL, "it says \"%s\"", call->reason);
    ck_assert_uint_eq(call->heads, 0);
    ck_assert_uint_eq(probe_figures(probe).sent, 0);
    ck_assert_uint_eq(probe_figures(probe).connects, 0);
    probe_done(call);
}

START_TEST(a_refused_connection_sent_nothing)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    char says[100];
    probe_open(&probe, probe_options());
    peer_refuse(probe.peer);
    (void) snprintf(says, sizeof says, "connect to 127.0.0.1:%u: Connection refused", peer_port(probe.peer));
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    expect_not_sent(&probe, &call, says);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 0);
    peer_accept_again(probe.peer);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(peer_count_key(probe.peer, "k-1"), 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* Stands before the C library's: a socket has that port already with which it will be connected, as the kernel may choose it. */
static const struct sockaddr_in *near_end;

int socket(int domain, int type, int protocol)
{
    int (*of_library)(int, int, int) = NULL;
    *(void **) &of_library = dlsym(RTLD_NEXT, "socket");
    int fd = of_library(domain, type, protocol);
    if (near_end != NULL) {
        ck_assert_int_eq(bind(fd, (const struct sockaddr *) near_end, sizeof *near_end), 0);
    }
    return fd;
}

/* docs/facts.md 70. The port is free again behind it, for the handler. */
START_TEST(a_connection_to_itself_is_a_refused_one)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int nobody = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(nobody, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(getsockname(nobody, (struct sockaddr *) &address, &len), 0);
    (void) close(nobody);
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64], says[100];
    (void) snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    (void) snprintf(says, sizeof says, "connect to 127.0.0.1:%d: Connection refused", ntohs(address.sin_port));
    probe_open_at(&probe, probe_options(), url);
    near_end = &address;
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    near_end = NULL;
    expect_not_sent(&probe, &call, says);
    probe_close(&probe);
    int handler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_msg(bind(handler, (struct sockaddr *) &address, len) == 0, "the port is kept: %s", strerror(errno));
    (void) close(handler);
}
END_TEST

START_TEST(a_name_that_is_not_known_sent_nothing)
{
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open_at(&probe, probe_options(), "http://missing.test:3000");
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    expect_not_sent(&probe, &call, "connect to missing.test:3000: Could not resolve host: missing.test");
    probe_close(&probe);
}
END_TEST

/* Nobody can end a thread that hangs in the resolver, and nobody may wait for it. */
START_TEST(a_resolver_that_hangs_does_not_stop_the_loop)
{
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct upstream_options options = probe_options();
    int soon_ms = 100 * suite_slowness(); /* but not before the resolver was asked */
    char says[120];
    options.connect_timeout_ms = _i == 0 ? soon_ms : 60000;
    (void) snprintf(says, sizeof says,
                    "connect to slow.test:3000: not made within connect_timeout (%d ms): Resolving timed out", soon_ms);
    resolver_hold();
    probe_open_at(&probe, options, "http://slow.test:3000");
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    (void) loop_run_once(probe.loop, false);
    (void) loop_run_once(probe.loop, false);
    resolver_wait_asked(1);
    if (_i == 0) {
        probe_wait(&call);
        expect_not_sent(&probe, &call, says);
    } else {
        upstream_abort(call.call);
        probe_done(&call);
    }
    probe_close(&probe);
    resolver_release(); /* only now: all of the above went on without an answer */
}
END_TEST

/* --- time --- */

START_TEST(a_connection_that_nobody_takes_is_given_up_in_time)
{
    /* A listener whose queue is full drops further attempts. */
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    int fillers[4];
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void) connect(fillers[i], (struct sockaddr *) &address, len);
    }
    char url[64];
    (void) snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct upstream_options options = probe_options();
    options.connect_timeout_ms = 50;
    probe_open_at(&probe, options, url);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    expect_not_sent(&probe, &call, ": not made within connect_timeout (50 ms)");
    probe_close(&probe);
    for (int i = 0; i < 4; i++) {
        (void) close(fillers[i]);
    }
    (void) close(listener);
}
END_TEST

/* --- TLS --- */

static const struct peer_step no_tls[][4] = {
    { { PEER_READ_BYTES, NULL, 5 },
      { PEER_SEND, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", 0 },
      DO(PEER_CLOSE) },
    { { PEER_READ_BYTES, NULL, 5 }, DO(PEER_CLOSE) },
    { { PEER_READ_BYTES, NULL, 5 }, DO(PEER_RESET) },
    { DO(PEER_CLOSE) },
};
enum { NO_TLS = sizeof no_tls / sizeof no_tls[0] };

START_TEST(a_failed_tls_handshake_sent_nothing)
{
    struct peer *peer = peer_new();
    struct probe probe = { .peer = peer };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64];
    (void) snprintf(url, sizeof url, "https://127.0.0.1:%u", peer_port(peer));
    peer_script_for_connection(peer, 1, no_tls[_i]);
    probe_open_at(&probe, probe_options(), url);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    (void) snprintf(url, sizeof url, "connect to 127.0.0.1:%u: ", peer_port(peer));
    expect_not_sent(&probe, &call, url);
    ck_assert_uint_eq(peer_count_requests(peer), 0);
    ck_assert_uint_eq(peer_count_connections(peer), 1);
    probe_close(&probe);
}
END_TEST

/* --- https takes a library, which nonbisd does without otherwise --- */

static const struct {
    const char *library, *says;
} no_library[] = {
    { "/nowhere/libcurl.so.4", "/nowhere/libcurl.so.4: cannot open shared object file: No such file or directory" },
    { "/dev/null", "/dev/null: file too short" },
    { "libm.so.6", "undefined symbol: curl_global_init" },
};
enum { NO_LIBRARY = sizeof no_library / sizeof no_library[0] };

START_TEST(https_is_refused_when_the_library_cannot_be_used)
{
    struct buf error;
    struct upstream_target target;
    struct upstream_options options = probe_options();
    struct loop *loop = loop_new();
    options.url = "https://127.0.0.1:1";
    options.curl_library = no_library[_i].library;
    buf_init(&error, 1000);
    ck_assert_ptr_null(upstream_open(loop, &options, &error));
    buf_append_bytes(&error, "", 1);
    ck_assert_msg(strstr(error.ptr, no_library[_i].says) != NULL, "it says \"%s\"", error.ptr);
    ck_assert_ptr_nonnull(strstr(error.ptr, "\"https://\" needs libcurl, which cannot be used: "));
    ck_assert_ptr_nonnull(strstr(error.ptr, "the package libcurl4"));
    buf_clear(&error);
    ck_assert(upstream_parse_url("https://h", &target, &error));
    ck_assert(!upstream_prepare(&target, no_library[_i].library, &error));
    ck_assert_uint_gt(error.len, 0);
    ck_assert(upstream_parse_url("http://h", &target, &error));
    ck_assert(upstream_prepare(&target, no_library[_i].library, &error)); /* nobody needs it */
    buf_fini(&error);
    loop_free(loop);
}
END_TEST

/* --- other ways to the handler --- */

START_TEST(a_handler_behind_a_unix_socket_is_reached)
{
    char path[100];
    (void) snprintf(path, sizeof path, "/tmp/nonbis-peer-%d.sock", (int) getpid());
    struct peer *peer = peer_new_unix(path);
    struct probe probe = { .peer = peer };
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open_at(&probe, probe_options(), peer_url(peer));
    for (int i = 0; i < 2; i++) {
        probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("2", "{}"));
        ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
        probe_expect_body(&call, "ok");
        probe_done(&call);
    }
    ck_assert_uint_eq(probe_figures(&probe).connects, 1);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 1);
    ck_assert_uint_eq(peer_count_key(peer, "k-1"), 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_unix_socket_that_is_not_there_sent_nothing)
{
    static const struct {
        const char *path, *says;
    } rows[] = {
        { "/tmp/nonbis-no-such-directory/x.sock",
          "connect to unix:/tmp/nonbis-no-such-directory/x.sock: No such file or directory" },
        { "/dev/null", "connect to unix:/dev/null: Connection refused" },
        { "/dev/null/x.sock", "connect to unix:/dev/null/x.sock: Not a directory" },
    };
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64];
    (void) snprintf(url, sizeof url, "unix:%s", rows[_i].path);
    probe_open_at(&probe, probe_options(), url);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_str_eq(call.reason, rows[_i].says);
    expect_not_sent(&probe, &call, rows[_i].says);
    probe_close(&probe);
}
END_TEST

/* One fills a queue of length 0 behind a listener that takes nobody. In the first round it stays so, in the second there is room
 * before the time is over. */
START_TEST(a_unix_socket_with_a_full_queue_is_waited_for)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void) snprintf(address.sun_path, sizeof address.sun_path, "/tmp/nonbis-crowd-%d.sock", (int) getpid());
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(filler, (struct sockaddr *) &address, sizeof address), 0);
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct upstream_options options = probe_options();
    char url[120];
    options.connect_timeout_ms = _i == 0 ? 50 : 60000;
    (void) snprintf(url, sizeof url, "unix:%s", address.sun_path);
    probe_open_at(&probe, options, url);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    if (_i == 0) {
        probe_wait(&call);
        expect_not_sent(&probe, &call, ": not made within connect_timeout (50 ms): the queue of the socket is full");
    } else {
        for (int i = 0; i < 5; i++) {
            probe_turn(&probe);
        }
        ck_assert_uint_eq(probe_figures(&probe).connects, 0);
        (void) close(accept(listener, NULL, NULL));
        while (probe_figures(&probe).sent == 0) {
            probe_turn(&probe);
        }
        upstream_abort(call.call);
        probe_done(&call);
    }
    probe_close(&probe);
    (void) close(filler);
    (void) close(listener);
    (void) unlink(address.sun_path);
}
END_TEST

START_TEST(a_handler_named_localhost_is_reached)
{
    struct peer *peer = peer_new();
    struct probe probe = { .peer = peer };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64];
    (void) snprintf(url, sizeof url, "http://localhost:%u", peer_port(peer));
    probe_open_at(&probe, probe_options(), url);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(proxy_variables_of_the_environment_are_ignored)
{
    struct peer *proxy = peer_new();
    ck_assert_int_eq(setenv("http_proxy", peer_url(proxy), 1), 0);
    ck_assert_int_eq(setenv("all_proxy", peer_url(proxy), 1), 0);
    ck_assert_int_eq(setenv("ALL_PROXY", peer_url(proxy), 1), 0);
    ck_assert_int_eq(unsetenv("no_proxy"), 0);
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    ck_assert_uint_eq(peer_count_connections(proxy), 0);
    probe_done(&call);
    probe_close(&probe);
    peer_free(proxy);
}
END_TEST

START_TEST(a_handler_that_speaks_first_was_sent_nothing_or_answers_garbage)
{
    static const struct peer_step speaks[] = { { PEER_SEND, "220 mail ready\r\n", 0 }, DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_for_connection(probe.peer, 1, speaks);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    /* Which of the two depends on who is quicker; never is it an answer, and never sent twice. */
    ck_assert_int_eq(call.end, probe_figures(&probe).sent == 0 ? ATTEMPT_NOT_SENT : ATTEMPT_GARBAGE);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* The kernel has made the connection before the loop hears of it: what the handler does meanwhile is there when we look. Index 0: it
 * speaks, 1: it closes. */
START_TEST(a_connection_is_looked_at_before_the_request_is_sent)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64];
    (void) snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    probe_open_at(&probe, probe_options(), url);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    int taken = accept(listener, NULL, NULL);
    ck_assert_int_ge(taken, 0);
    if (_i == 0) {
        ck_assert_int_eq(send(taken, "220 mail ready\r\n", 16, 0), 16);
    } else {
        (void) close(taken);
    }
    probe_wait(&call);
    expect_not_sent(&probe, &call, ": connected, but closed or spoken to before the request was sent");
    probe_close(&probe);
    if (_i == 0) {
        (void) close(taken);
    }
    (void) close(listener);
}
END_TEST

/* --- many --- */

enum { MANY = 200 };

START_TEST(two_hundred_calls_at_once_each_get_their_own_answer)
{
    static const struct peer_step together[] = { DO(PEER_BODY), DO(PEER_WAIT), DO(PEER_ECHO), PEER_END };
    static struct probe_call calls[MANY];
    static char requests[MANY][200];
    struct probe probe;
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, together);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            int key = round * MANY + i;
            (void) snprintf(requests[i], sizeof requests[i],
                            "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-%d\r\nContent-Length: 4\r\n\r\n%04d", key,
                            key);
            probe_start(&probe, &calls[i], UPSTREAM_PROTECTED, requests[i]);
        }
        while (peer_count_whole(probe.peer) < (unsigned) (round + 1) * MANY) {
            (void) loop_run_once(probe.loop, false);
        }
        peer_release(probe.peer, MANY);
        for (int i = 0; i < MANY; i++) {
            probe_wait(&calls[i]);
            ck_assert_msg(calls[i].end == ATTEMPT_COMPLETE, "%s", calls[i].reason);
            probe_expect_body(&calls[i], requests[i]);
            probe_done(&calls[i]);
        }
    }
    ck_assert_uint_eq(peer_count_requests(probe.peer), 400);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 200);
    ck_assert_uint_eq(probe_figures(&probe).connects, 200);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 200);
    ck_assert_uint_eq(probe_figures(&probe).sent, 400);
    ck_assert_uint_eq(probe_figures(&probe).kept, 200);
    for (int key = 0; key < 2 * MANY; key++) {
        char text[20];
        (void) snprintf(text, sizeof text, "k-%d", key);
        ck_assert_uint_eq(peer_count_key(probe.peer, text), 1);
    }
    probe_close(&probe);
}
END_TEST

SUITE(upstream_connect)
{
    Suite *suite = suite_create("upstream/connect");
    CASE(suite, a_refused_connection_sent_nothing);
    CASE(suite, a_connection_to_itself_is_a_refused_one);
    CASE(suite, a_name_that_is_not_known_sent_nothing);
    CASE_LOOP(suite, a_resolver_that_hangs_does_not_stop_the_loop, 2);
    CASE(suite, a_connection_that_nobody_takes_is_given_up_in_time);
    CASE_LOOP(suite, a_failed_tls_handshake_sent_nothing, NO_TLS);
    CASE_LOOP(suite, https_is_refused_when_the_library_cannot_be_used, NO_LIBRARY);
    CASE(suite, a_handler_behind_a_unix_socket_is_reached);
    CASE_LOOP(suite, a_unix_socket_that_is_not_there_sent_nothing, 3);
    CASE_LOOP(suite, a_unix_socket_with_a_full_queue_is_waited_for, 2);
    CASE(suite, a_handler_named_localhost_is_reached);
    CASE(suite, proxy_variables_of_the_environment_are_ignored);
    CASE(suite, a_handler_that_speaks_first_was_sent_nothing_or_answers_garbage);
    CASE_LOOP(suite, a_connection_is_looked_at_before_the_request_is_sent, 2);
    CASE(suite, two_hundred_calls_at_once_each_get_their_own_answer);
    return suite;
}
