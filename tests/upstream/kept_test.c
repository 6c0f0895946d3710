/* kept_test.c - when a connection is used again and when not (docs/contract.md section 6, docs/facts.md 45). */
#include "tests/peer/words.h"
#include "tests/upstream/probe.h"

#define KEYED(key) "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: " key "\r\nContent-Length: 4\r\n\r\nbody"
#define OK_2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define SEND(text)                                                                                                     \
    {                                                                                                                  \
        PEER_SEND, text, 0                                                                                             \
    }

static const struct peer_step number[] = { DO(PEER_BODY), DO(PEER_NUMBER), PEER_END };

static void expect_complete(struct probe_call *call, const char *body)
{
    ck_assert_msg(call->end == ATTEMPT_COMPLETE, "ended %s: %s", attempt_end_name(call->end), call->reason);
    probe_expect_body(call, body);
    probe_done(call);
}

START_TEST(calls_one_after_the_other_share_a_connection)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    static const char *const answers[] = { "1", "2", "3", "4", "5" };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, number);
    for (int i = 0; i < 5; i++) {
        probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
        expect_complete(&call, answers[i]);
    }
    struct upstream_figures figures = probe_figures(&probe);
    ck_assert_uint_eq(figures.connects, 1);
    ck_assert_uint_eq(figures.reuses, 4);
    ck_assert_uint_eq(figures.sent, 5);
    ck_assert_uint_eq(figures.kept, 1);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    ck_assert_uint_eq(peer_count_key(probe.peer, "a"), 5);
    probe_close(&probe);
}
END_TEST

START_TEST(commands_and_pass_through_never_share_a_connection)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, number);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "1");
    probe_exchange(&probe, &call, UPSTREAM_PASSTHROUGH, KEYED("b"));
    expect_complete(&call, "2");
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("c"));
    expect_complete(&call, "3");
    probe_exchange(&probe, &call, UPSTREAM_PASSTHROUGH, KEYED("d"));
    expect_complete(&call, "4");
    ck_assert_uint_eq(probe_figures(&probe).connects, 2);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 2);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

/* --- the peer ends a kept connection before the next request: the request goes out once, on a fresh one --- */

static const struct peer_step ends_at_rest[][5] = {
    { DO(PEER_BODY), DO(PEER_NUMBER), DO(PEER_WAIT), DO(PEER_CLOSE) },
    { DO(PEER_BODY), DO(PEER_NUMBER), DO(PEER_WAIT), DO(PEER_RESET) },
    { DO(PEER_BODY), DO(PEER_NUMBER), DO(PEER_WAIT), SEND("HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\n\r\n"),
      DO(PEER_CLOSE) },
};
enum { ENDS_AT_REST = sizeof ends_at_rest / sizeof ends_at_rest[0] };

START_TEST(a_connection_found_closed_before_the_first_byte_is_replaced)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, number);
    peer_script_for_request(probe.peer, 1, ends_at_rest[_i]);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "1");
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    peer_release(probe.peer, 1);
    ck_assert(
        peer_wait_ended(probe.peer, 1)); /* the loop does not turn here: only the look before the reuse can see it */
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("b"));
    expect_complete(&call, "2");
    ck_assert_uint_eq(peer_count_key(probe.peer, "a"), 1);
    ck_assert_uint_eq(peer_count_key(probe.peer, "b"), 1);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2);
    ck_assert_uint_eq(probe_figures(&probe).connects, 2);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 0);
    ck_assert_uint_eq(probe_figures(&probe).sent, 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_connection_that_ends_at_rest_is_dropped_at_once)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, ends_at_rest[_i]);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "1");
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    peer_release(probe.peer, 1);
    while (probe_figures(&probe).kept > 0) {
        probe_turn(&probe);
    }
    probe_close(&probe);
}
END_TEST

START_TEST(only_one_kept_connection_is_tried_before_a_fresh_one_is_made)
{
    struct probe probe;
    struct probe_call calls[3] = { { .deed = PROBE_NOTHING } };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, number);
    peer_script_for_request(probe.peer, 1, ends_at_rest[0]);
    peer_script_for_request(probe.peer, 2, ends_at_rest[0]);
    probe_start(&probe, &calls[0], UPSTREAM_PROTECTED, KEYED("a"));
    probe_start(&probe, &calls[1], UPSTREAM_PROTECTED, KEYED("a"));
    probe_wait(&calls[0]);
    probe_wait(&calls[1]);
    ck_assert_uint_eq(probe_figures(&probe).kept, 2);
    peer_release(probe.peer, 2);
    ck_assert(peer_wait_ended(probe.peer, 2));
    probe_start(&probe, &calls[2], UPSTREAM_PROTECTED, KEYED("b"));
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    probe_wait(&calls[2]);
    ck_assert_int_eq(calls[2].end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(probe_figures(&probe).connects, 3);
    ck_assert_uint_eq(peer_count_key(probe.peer, "b"), 1);
    probe_done(&calls[0]);
    probe_done(&calls[1]);
    probe_done(&calls[2]);
    probe_close(&probe);
}
END_TEST

START_TEST(when_the_fresh_connection_is_refused_nothing_was_sent)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, ends_at_rest[0]);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "1");
    peer_release(probe.peer, 1);
    ck_assert(peer_wait_ended(probe.peer, 1));
    peer_refuse(probe.peer);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("b"));
    ck_assert_int_eq(call.end, ATTEMPT_NOT_SENT);
    ck_assert_uint_eq(probe_figures(&probe).sent, 1);
    ck_assert_uint_eq(peer_count_key(probe.peer, "b"), 0);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* --- the peer ends a kept connection after it read the next request: unknown, and never sent again --- */

static const struct {
    struct peer_step steps[4];
    enum attempt_end end;
} ends_in_use[] = {
    { { DO(PEER_BODY), DO(PEER_CLOSE) }, ATTEMPT_RESET },
    { { DO(PEER_BODY), DO(PEER_RESET) }, ATTEMPT_RESET },
    { { DO(PEER_BODY), DO(PEER_SHUTDOWN), DO(PEER_WAIT_END) }, ATTEMPT_RESET },
    { { DO(PEER_BODY), SEND("HTTP/1.1 200 OK\r\nContent-"), DO(PEER_CLOSE) }, ATTEMPT_CUT },
    { { DO(PEER_BODY), SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), DO(PEER_RESET) }, ATTEMPT_CUT },
};
enum { ENDS_IN_USE = sizeof ends_in_use / sizeof ends_in_use[0] };

START_TEST(a_kept_connection_that_ends_after_the_request_was_read_sends_nothing_again)
{
    static const char *const requests[] = {
        KEYED("b"), "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n"
    };
    unsigned execs = 0;
    for (int empty = 0; empty < 2; empty++) {
        struct probe probe;
        struct probe_call call = { .deed = PROBE_NOTHING };
        probe_open(&probe, probe_options());
        peer_script_default(probe.peer, number);
        peer_script_for_request(probe.peer, 2, ends_in_use[_i].steps);
        probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
        expect_complete(&call, "1");
        probe_start(&probe, &call, UPSTREAM_PROTECTED, requests[empty]);
        ck_assert(upstream_was_sent(call.call));
        probe_wait(&call);
        ck_assert_msg(call.end == ends_in_use[_i].end, "ended %s: %s", attempt_end_name(call.end), call.reason);
        probe_done(&call);
        ck_assert_uint_eq(probe_figures(&probe).connects, 1);
        ck_assert_uint_eq(probe_figures(&probe).reuses, 1);
        ck_assert_uint_eq(probe_figures(&probe).kept, 0);
        /* A request behind it shows that the peer would have counted a second copy. */
        probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("c"));
        expect_complete(&call, "3");
        execs += peer_count_key(probe.peer, "b");
        ck_assert_uint_eq(peer_count_key(probe.peer, "b"), 1);
        ck_assert_uint_eq(peer_count_requests(probe.peer), 3);
        ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
        probe_close(&probe);
    }
    FIGURE("T8 resend ended='%s' commands=2 execs=%u", attempt_end_name(ends_in_use[_i].end), execs);
}
END_TEST

/* --- what is left over from an answer never reaches the next call --- */

static const char *const surplus[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay",
    "HTTP/1.1 204 No Content\r\n\r\nbody",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\r\n",
};
enum { SURPLUS = sizeof surplus / sizeof surplus[0] };

START_TEST(bytes_after_an_answer_never_reach_the_next_call)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    const struct peer_step steps[] = { DO(PEER_BODY), { PEER_SEND, surplus[_i], 0 }, PEER_END };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, number);
    peer_script_for_request(probe.peer, 1, steps);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(probe_figures(&probe).kept, 0);
    probe_done(&call);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("b"));
    expect_complete(&call, "2");
    ck_assert_uint_eq(probe_figures(&probe).connects, 2);
    ck_assert_uint_eq(peer_count_key(probe.peer, "b"), 1);
    probe_close(&probe);
}
END_TEST

/* --- age --- */

static const struct {
    int64_t idle_ms;
    const char *answer;
} ages[] = {
    { 30, OK_2 },
    { 3600000, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok" },
    { 30, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 2\r\n\r\nok" },
};
enum { AGES = sizeof ages / sizeof ages[0] };

START_TEST(an_old_connection_is_closed_and_not_used_again)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    const struct peer_step steps[] = { DO(PEER_BODY), { PEER_SEND, ages[_i].answer, 0 }, PEER_END };
    struct upstream_options options = probe_options();
    options.idle_ms = ages[_i].idle_ms;
    probe_open(&probe, options);
    peer_script_default(probe.peer, steps);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "ok");
    while (probe_figures(&probe).kept > 0) {
        probe_turn(&probe);
    }
    ck_assert(peer_wait_ended(probe.peer, 1));
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("b"));
    expect_complete(&call, "ok");
    ck_assert_uint_eq(probe_figures(&probe).connects, 2);
    probe_close(&probe);
}
END_TEST

START_TEST(with_an_idle_time_of_nothing_no_connection_is_kept)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct upstream_options options = probe_options();
    options.idle_ms = 0;
    probe_open(&probe, options);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, KEYED("a"));
    expect_complete(&call, "ok");
    ck_assert_uint_eq(probe_figures(&probe).kept, 0);
    probe_close(&probe);
}
END_TEST

/* --- the next call starts where the last one ends --- */

enum { CHAIN = 100 };

struct chain {
    struct probe *probe;
    unsigned ended;
};

static void chain_head(void *context, int status, struct view fields, bool has_length, uint64_t length)
{
    (void) context, (void) fields, (void) has_length, (void) length;
    ck_assert_int_eq(status, 200);
}

static void chain_body(void *context, struct view bytes)
{
    (void) context, (void) bytes;
}

static void chain_end(void *context, const struct upstream_end *end);

static const struct upstream_events chain_events = { .head = chain_head, .body = chain_body, .end = chain_end };

static void chain_start(struct chain *chain)
{
    const struct upstream_request request = { .lane = UPSTREAM_PROTECTED, .bytes = VIEW(KEYED("a")) };
    (void) upstream_start(chain->probe->upstream, &request, &chain_events, chain);
}

static void chain_end(void *context, const struct upstream_end *end)
{
    struct chain *chain = context;
    ck_assert_int_eq(end->end, ATTEMPT_COMPLETE);
    if (++chain->ended < CHAIN) {
        chain_start(chain);
    }
}

START_TEST(a_call_started_by_the_end_of_another_takes_over_its_connection)
{
    struct probe probe;
    struct chain chain = { &probe, 0 };
    probe_open(&probe, probe_options());
    chain_start(&chain);
    while (chain.ended < CHAIN) {
        probe_turn(&probe);
    }
    ck_assert_uint_eq(probe_figures(&probe).connects, 1);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 99);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 100);
    probe_close(&probe);
}
END_TEST

SUITE(upstream_kept)
{
    Suite *suite = suite_create("upstream/kept");
    CASE(suite, calls_one_after_the_other_share_a_connection);
    CASE(suite, commands_and_pass_through_never_share_a_connection);
    CASE_LOOP(suite, a_connection_found_closed_before_the_first_byte_is_replaced, ENDS_AT_REST);
    CASE_LOOP(suite, a_connection_that_ends_at_rest_is_dropped_at_once, ENDS_AT_REST);
    CASE(suite, only_one_kept_connection_is_tried_before_a_fresh_one_is_made);
    CASE(suite, when_the_fresh_connection_is_refused_nothing_was_sent);
    CASE_LOOP(suite, a_kept_connection_that_ends_after_the_request_was_read_sends_nothing_again, ENDS_IN_USE);
    CASE_LOOP(suite, bytes_after_an_answer_never_reach_the_next_call, SURPLUS);
    CASE_LOOP(suite, an_old_connection_is_closed_and_not_used_again, AGES);
    CASE(suite, with_an_idle_time_of_nothing_no_connection_is_kept);
    CASE(suite, a_call_started_by_the_end_of_another_takes_over_its_connection);
    return suite;
}
