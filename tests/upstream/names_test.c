/* names_test.c - from the handler's name to a connection: one look-up for all, several addresses, silence, and leaving while the
 * resolver is asked. 127.0.0.2 and 127.0.0.3 are this machine, and the peer does not listen there. */
#include "tests/upstream/listener.h"
#include "tests/upstream/probe.h"
#include "tests/upstream/resolver.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* The peer by a name. */
static void open_named(struct probe *probe, struct upstream_options options)
{
    char url[64];
    *probe = (struct probe){ .peer = peer_new() };
    (void) snprintf(url, sizeof url, "http://handler.test:%u", peer_port(probe->peer));
    probe_open_at(probe, options, url);
}

static struct upstream_options never_kept(void)
{
    struct upstream_options options = probe_options();
    options.idle_ms = 0;
    return options;
}

static void expect_answer(struct probe *probe)
{
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_exchange(probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    probe_done(&call);
}

static void expect_not_sent(struct probe *probe, const char *reason)
{
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_exchange(probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_int_eq(call.end, ATTEMPT_NOT_SENT);
    ck_assert_str_eq(call.reason, reason);
    probe_done(&call);
}

static const char *const with_refusals[] = { "127.0.0.1",     "127.0.0.2 127.0.0.1", "127.0.0.2 127.0.0.3 127.0.0.1",
                                             "::1 127.0.0.1", "100::1 127.0.0.1",    "127.0.0.1 127.0.0.2" };

START_TEST(an_address_that_refuses_leads_to_the_next_at_once)
{
    struct probe probe;
    resolver_know(with_refusals[_i]);
    open_named(&probe, probe_options());
    expect_answer(&probe);
    ck_assert_uint_eq(peer_count_key(probe.peer, "k-1"), 1);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    ck_assert_uint_eq(probe_figures(&probe).connects, 1);
    probe_close(&probe);
}
END_TEST

START_TEST(the_address_that_worked_is_the_first_for_the_next_connection)
{
    struct probe probe;
    resolver_know("127.0.0.2 127.0.0.1");
    open_named(&probe, never_kept());
    expect_answer(&probe);
    /* Now somebody listens at the first address, and is not asked. */
    int other = listener_at("127.0.0.2", peer_port(probe.peer), 8);
    expect_answer(&probe);
    ck_assert_int_eq(accept(other, NULL, NULL), -1);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    (void) close(other);
    probe_close(&probe);
}
END_TEST

START_TEST(an_address_that_is_silent_leads_to_the_next_within_the_time)
{
    struct probe probe;
    struct upstream_options options = probe_options();
    int fillers[LISTENER_FILLERS];
    options.connect_timeout_ms = 3000; /* half of it for the first */
    resolver_know("127.0.0.2 127.0.0.1");
    open_named(&probe, options);
    int silent = listener_in_silence("127.0.0.2", peer_port(probe.peer), fillers);
    int64_t from_ms = loop_now_ms(probe.loop);
    expect_answer(&probe);
    ck_assert_int_ge(loop_now_ms(probe.loop) - from_ms, 1500);
    listener_close(silent, fillers);
    probe_close(&probe);
}
END_TEST

/* If each of the eight had half of the time, it would be 4.5 s in all. */
START_TEST(connect_timeout_bounds_all_addresses_together)
{
    struct probe probe;
    struct upstream_options options = probe_options();
    int fillers[LISTENER_FILLERS];
    char reason[160];
    options.connect_timeout_ms = 1000;
    resolver_know("127.0.0.2 127.0.0.2 127.0.0.2 127.0.0.2 127.0.0.2 127.0.0.2 127.0.0.2 127.0.0.2");
    open_named(&probe, options);
    int silent = listener_in_silence("127.0.0.2", peer_port(probe.peer), fillers);
    (void) snprintf(reason, sizeof reason,
                    "connect to handler.test:%u: not made within connect_timeout (1000 ms): Connection timed out",
                    peer_port(probe.peer));
    int64_t from_ms = loop_now_ms(probe.loop);
    expect_not_sent(&probe, reason);
    ck_assert_int_lt(loop_now_ms(probe.loop) - from_ms, 4000);
    listener_close(silent, fillers);
    probe_close(&probe);
}
END_TEST

START_TEST(when_all_addresses_refuse_the_last_is_told_and_the_name_is_asked_again)
{
    struct probe probe;
    char reason[160];
    resolver_know("127.0.0.2 127.0.0.3");
    open_named(&probe, never_kept());
    (void) snprintf(reason, sizeof reason,
                    "connect to handler.test:%u: Connection refused (127.0.0.3, the last of 2 addresses)",
                    peer_port(probe.peer));
    expect_not_sent(&probe, reason);
    resolver_know("127.0.0.1");
    expect_answer(&probe);
    expect_answer(&probe);
    ck_assert_uint_eq(resolver_count_asked(), 2);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_name_that_is_not_known_is_asked_again_by_the_next_connection)
{
    struct probe probe;
    char reason[160];
    open_named(&probe, probe_options());
    (void) snprintf(reason, sizeof reason,
                    "connect to handler.test:%u: Could not resolve host: handler.test (Name or service not known)",
                    peer_port(probe.peer));
    expect_not_sent(&probe, reason);
    resolver_know("127.0.0.1");
    expect_answer(&probe);
    ck_assert_uint_eq(resolver_count_asked(), 2);
    probe_close(&probe);
}
END_TEST

/* --- one look-up for all --- */

enum { CALLS = 50 };

START_TEST(one_look_up_serves_all_that_wait_for_it)
{
    static struct probe_call calls[CALLS];
    struct probe probe;
    resolver_know(_i == 0 ? "127.0.0.1" : "");
    resolver_hold();
    open_named(&probe, probe_options());
    for (int i = 0; i < CALLS; i++) {
        probe_start(&probe, &calls[i], UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    }
    resolver_wait_asked(1);
    upstream_abort(calls[7].call); /* those that leave meanwhile hear nothing */
    probe_turn(&probe);
    resolver_release();
    for (int i = 0; i < CALLS; i++) {
        if (i != 7) {
            probe_wait(&calls[i]);
            ck_assert_int_eq(calls[i].end, _i == 0 ? ATTEMPT_COMPLETE : ATTEMPT_NOT_SENT);
        }
        probe_done(&calls[i]);
    }
    ck_assert_uint_eq(calls[7].ends, 0);
    ck_assert_uint_eq(resolver_count_asked(), 1);
    ck_assert_uint_eq(peer_count_requests(probe.peer), _i == 0 ? CALLS - 1 : 0);
    probe_close(&probe);
}
END_TEST

START_TEST(an_answer_that_comes_after_everybody_left_serves_the_next)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    resolver_know("127.0.0.1");
    resolver_hold();
    open_named(&probe, probe_options());
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    resolver_wait_asked(1);
    upstream_abort(call.call);
    probe_done(&call);
    resolver_release();
    expect_answer(&probe);
    ck_assert_uint_eq(resolver_count_asked(), 1);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    probe_close(&probe);
}
END_TEST

/* The answer lies with the loop, or comes when the loop is gone; it is thrown away, and a sanitizer would say who forgot it. */
START_TEST(an_upstream_is_closed_whatever_the_resolver_does)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    resolver_know("127.0.0.1");
    resolver_hold();
    open_named(&probe, probe_options());
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    resolver_wait_asked(1);
    if (_i == 0) {
        resolver_release();
    }
    upstream_abort(call.call);
    probe_done(&call);
    probe_close(&probe);
    resolver_release();
}
END_TEST

/* --- addresses that are no names --- */

START_TEST(an_ipv6_address_in_brackets_is_connected_to)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *) &address, len) != 0) {
        FIGURE("no IPv6 here: not tried");
        (void) close(listener);
        return;
    }
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    static const char *const hosts[] = { "[::1]", "localhost", "LOCALHOST", "handler.localhost" };
    struct probe probe = { .peer = NULL };
    struct probe_call call = { .deed = PROBE_NOTHING };
    char url[64], seen[400] = "";
    (void) snprintf(url, sizeof url, "http://%s:%u", hosts[_i], ntohs(address.sin6_port));
    probe_open_at(&probe, probe_options(), url);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    while (probe_figures(&probe).sent == 0) {
        probe_turn(&probe);
    }
    int taken = accept(listener, NULL, NULL);
    ck_assert_int_ge(taken, 0);
    ck_assert_int_gt(recv(taken, seen, sizeof seen - 1, 0), 0);
    ck_assert_str_eq(seen, PROBE_POST("0", ""));
    upstream_abort(call.call);
    probe_done(&call);
    (void) close(taken);
    (void) close(listener);
    probe_close(&probe);
}
END_TEST

SUITE(upstream_names)
{
    Suite *suite = suite_create("upstream/names");
    CASE_LOOP(suite, an_address_that_refuses_leads_to_the_next_at_once, sizeof with_refusals / sizeof with_refusals[0]);
    CASE(suite, the_address_that_worked_is_the_first_for_the_next_connection);
    CASE(suite, an_address_that_is_silent_leads_to_the_next_within_the_time);
    CASE(suite, connect_timeout_bounds_all_addresses_together);
    CASE(suite, when_all_addresses_refuse_the_last_is_told_and_the_name_is_asked_again);
    CASE(suite, a_name_that_is_not_known_is_asked_again_by_the_next_connection);
    CASE_LOOP(suite, one_look_up_serves_all_that_wait_for_it, 2);
    CASE(suite, an_answer_that_comes_after_everybody_left_serves_the_next);
    CASE_LOOP(suite, an_upstream_is_closed_whatever_the_resolver_does, 2);
    CASE_LOOP(suite, an_ipv6_address_in_brackets_is_connected_to, 4);
    return suite;
}
