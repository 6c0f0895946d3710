/* connect_test.c - making connections: what counts as "not sent", names, Unix sockets, TLS that fails, proxies of the environment,
 * and many at once. A getaddrinfo of our own stands in for the resolver: no test asks a real one. */
#include "tests/upstream/probe.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define DO(step)                                                                                                       \
    {                                                                                                                  \
        step, NULL, 0                                                                                                  \
    }

/* --- names --- */

static pthread_mutex_t resolver_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resolver_changed = PTHREAD_COND_INITIALIZER;
static bool resolver_asked, resolver_released;

/* The library's threads find this one before the C library's: "missing.test" is no name, "slow.test" hangs. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    if (node != NULL && strcmp(node, "missing.test") == 0) {
        return EAI_NONAME;
    }
    if (node != NULL && strcmp(node, "slow.test") == 0) {
        pthread_mutex_lock(&resolver_lock);
        resolver_asked = true;
        pthread_cond_broadcast(&resolver_changed);
        while (!resolver_released) {
            pthread_cond_wait(&resolver_changed, &resolver_lock);
        }
        pthread_mutex_unlock(&resolver_lock);
        return EAI_NONAME;
    }
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    *(void **) &real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, result);
}

static void resolver_wait_asked(void)
{
    pthread_mutex_lock(&resolver_lock);
    while (!resolver_asked) {
        pthread_cond_wait(&resolver_changed, &resolver_lock);
    }
    pthread_mutex_unlock(&resolver_lock);
}

static void resolver_release(void)
{
    pthread_mutex_lock(&resolver_lock);
    resolver_released = true;
    pthread_cond_broadcast(&resolver_changed);
    pthread_mutex_unlock(&resolver_lock);
}

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

/* libcurl waits for its resolver's thread when it gives a name up, unless it is told not to: the loop would stand still. */
START_TEST(a_resolver_that_hangs_does_not_stop_the_loop)
{
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct upstream_options options = probe_options();
    options.connect_timeout_ms = _i == 0 ? 50 : 60000;
    probe_open_at(&probe, options, "http://slow.test:3000");
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    (void) loop_run_once(probe.loop, false);
    (void) loop_run_once(probe.loop, false);
    resolver_wait_asked();
    if (_i == 0) {
        probe_wait(&call);
        expect_not_sent(&probe, &call,
                        "connect to slow.test:3000: not made within connect_timeout (50 ms): Resolving timed out");
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
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open_at(&probe, probe_options(), "unix:/tmp/nonbis-no-such-directory/x.sock");
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    expect_not_sent(&probe, &call, "connect to unix:/tmp/nonbis-no-such-directory/x.sock: ");
    probe_close(&probe);
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
    CASE(suite, a_name_that_is_not_known_sent_nothing);
    CASE_LOOP(suite, a_resolver_that_hangs_does_not_stop_the_loop, 2);
    CASE(suite, a_connection_that_nobody_takes_is_given_up_in_time);
    CASE_LOOP(suite, a_failed_tls_handshake_sent_nothing, NO_TLS);
    CASE(suite, a_handler_behind_a_unix_socket_is_reached);
    CASE(suite, a_unix_socket_that_is_not_there_sent_nothing);
    CASE(suite, a_handler_named_localhost_is_reached);
    CASE(suite, proxy_variables_of_the_environment_are_ignored);
    CASE(suite, a_handler_that_speaks_first_was_sent_nothing_or_answers_garbage);
    CASE(suite, two_hundred_calls_at_once_each_get_their_own_answer);
    return suite;
}
