/* stream_test.c - bodies that flow: uploads, early answers, back-pressure in both directions, and giving up in every phase. */
#include "tests/peer/words.h"
#include "tests/upstream/probe.h"

#include <sys/resource.h>

#define SEND(text)                                                                                                     \
    {                                                                                                                  \
        PEER_SEND, text, 0                                                                                             \
    }
#define OK_5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"

enum { QUIET_TURNS = 20 }; /* turns of the loop that do not wait: what was going to be told would have been told */

static void turn_without_waiting(struct probe *probe)
{
    for (int i = 0; i < QUIET_TURNS; i++) {
        (void) loop_run_once(probe->loop, false);
    }
}

static void start_upload(struct probe *probe, struct probe_call *call, const char *head)
{
    probe_start_with(probe, call,
                     (struct upstream_request){ .lane = UPSTREAM_PASSTHROUGH, .bytes = view_of(head), .more = true });
}

/* Gives the whole body as it is taken. */
static void upload(struct probe_call *call, struct view body)
{
    while (body.len > 0) {
        unsigned told = call->writables;
        size_t taken = probe_write(call, body);
        ck_assert_uint_le(taken, body.len);
        body = view_make(body.ptr + taken, body.len - taken);
        while (body.len > 0 && call->writables == told) {
            probe_turn(call->probe);
        }
    }
    upstream_finish(call->call);
}

START_TEST(an_upload_arrives_byte_for_byte)
{
    enum { BYTES = 9 * 1024 * 1024 + 17 };
    unsigned seed = suite_seed();
    FIGURE("upload seed=%u", seed);
    struct suite_random random;
    suite_random_start(&random, seed);
    char *body = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) {
        body[i] = (char) suite_random_next(&random);
    }
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct buf head, seen;
    buf_init(&head, 1000);
    buf_init(&seen, 2 * BYTES);
    buf_printf(&head, "PUT /f HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", (int) BYTES);
    probe_open(&probe, probe_options());
    size_t head_bytes = head.len;
    buf_append_bytes(&head, "", 1);
    start_upload(&probe, &call, head.ptr);
    upload(&call, view_make(body, BYTES));
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    probe_expect_body(&call, "ok");
    ck_assert(peer_request(probe.peer, 1, &seen));
    ck_assert_uint_eq(seen.len, head_bytes + BYTES);
    ck_assert_mem_eq(seen.ptr + head_bytes, body, BYTES);
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    buf_fini(&head);
    buf_fini(&seen);
    free(body);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(an_upload_waits_for_a_handler_that_does_not_read)
{
    static const struct peer_step late[] = { DO(PEER_WAIT), DO(PEER_BODY), SEND(OK_5 "hello"), PEER_END };
    enum { BYTES = 64 * 1024 * 1024 };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    char *body = calloc(1, BYTES);
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, late);
    start_upload(&probe, &call, "PUT /f HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
    ck_assert_uint_eq(probe_write(&call, view_make(body, BYTES)), 64 * 1024); /* not connected yet: the buffer alone */
    while (peer_count_requests(probe.peer) == 0) {
        probe_turn(&probe);
    }
    ck_assert(peer_wait_stalled(probe.peer, 1));
    size_t total = 64 * 1024;
    size_t taken;
    while ((taken = probe_write(&call, view_make(body, BYTES))) == BYTES) {
        ck_abort_msg("all of it was taken although nobody reads");
    }
    total += taken;
    unsigned told = call.writables;
    turn_without_waiting(&probe);
    ck_assert_uint_le(call.writables - told, 1);
    peer_release(probe.peer, 1);
    upload(&call, view_make(body, BYTES - total));
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(peer_count_whole(probe.peer), 1);
    free(body);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(an_answer_before_the_upload_ended_passes_and_the_rest_is_swallowed)
{
    static const struct peer_step early[] = { SEND("HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\nto"),
                                              DO(PEER_WAIT), SEND("obig"), DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    char *body = calloc(1, 1 << 24);
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, early);
    start_upload(&probe, &call, "PUT /f HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
    ck_assert_uint_lt(probe_write(&call, view_make(body, 1 << 24)), 1 << 24);
    while (call.bodies == 0) {
        probe_turn(&probe);
    }
    ck_assert_int_eq(call.status, 413);
    ck_assert_uint_ge(call.writables, 1); /* who waits for room learns that there is some */
    ck_assert_uint_eq(probe_write(&call, view_make(body, 1 << 24)), 1 << 24);
    upstream_finish(call.call);
    peer_release(probe.peer, 1);
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    probe_expect_body(&call, "toobig");
    ck_assert_uint_eq(probe_figures(&probe).kept, 0);
    ck_assert(peer_wait_ended(probe.peer, 1));
    free(body);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(an_early_answer_is_read_although_the_handler_reset_the_upload)
{
    static const struct peer_step early[] = { SEND("HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\ntoobig"),
                                              DO(PEER_RESET), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, early);
    start_upload(&probe, &call, "PUT /f HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
    while (peer_count_requests(probe.peer) == 0) {
        (void) loop_run_once(probe.loop, false);
    }
    ck_assert(peer_wait_ended(probe.peer, 1)); /* answer and reset are here; now a write fails */
    if (call.ends == 0) {
        (void) probe_write(&call, VIEW("0123456789"));
        (void) probe_write(&call, VIEW("0123456789"));
        probe_wait(&call);
    }
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "ended %s: %s", attempt_end_name(call.end), call.reason);
    probe_expect_body(&call, "toobig");
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* --- back-pressure of the answer --- */

static long resident_max_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

START_TEST(a_large_answer_flows_in_flat_memory_paused_or_not)
{
    static char part[64 * 1024 + 1];
    memset(part, 'x', sizeof part - 1);
    static const struct peer_step large[] = {
        DO(PEER_BODY), SEND("HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"), { PEER_SEND, part, 1024 }, PEER_END
    };
    struct probe probe;
    struct probe_call call = { .deed = _i == 0 ? PROBE_NOTHING : PROBE_PAUSE_AT_BODY };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, large);
    long before_kib = resident_max_kib();
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n");
    unsigned pauses = 0;
    while (call.ends == 0) {
        unsigned bodies = call.bodies;
        while (call.ends == 0 && call.bodies == bodies) {
            (void) loop_run_once(probe.loop, false);
        }
        if (call.ends > 0) {
            break;
        }
        if (_i == 0) {
            continue;
        }
        ck_assert_uint_eq(call.bodies, bodies + 1); /* one, then it was paused */
        if (pauses++ % 64 == 0) {
            turn_without_waiting(&probe);
            ck_assert_uint_eq(call.bodies, bodies + 1);
            ck_assert_uint_eq(call.ends, 0);
        }
        upstream_resume(call.call);
    }
    long grown_kib = resident_max_kib() - before_kib;
    FIGURE("64 MiB answer: %u pauses, resident memory grew by %ld KiB", pauses, grown_kib);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(call.body_bytes, 67108864);
    ck_assert_int_lt(grown_kib, 16 * 1024);
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

static const struct {
    enum probe_deed deed;
    const char *answer, *body;
    unsigned bodies; /* told before it is resumed */
} pauses[] = {
    { PROBE_PAUSE_AT_HEAD, OK_5 "hello", "hello", 0 },
    { PROBE_PAUSE_AT_BODY, OK_5 "hello", "hello", 1 },
    { PROBE_PAUSE_AT_HEAD, "HTTP/1.1 204 No Content\r\n\r\n", "", 0 },
    { PROBE_PAUSE_AT_HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
      "hello", 0 },
};
enum { PAUSES = sizeof pauses / sizeof pauses[0] };

START_TEST(what_was_read_before_a_pause_is_told_after_it)
{
    struct probe probe;
    struct probe_call call = { .deed = pauses[_i].deed };
    const struct peer_step steps[] = { DO(PEER_BODY), { PEER_SEND, pauses[_i].answer, 0 }, PEER_END };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, steps);
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n");
    while (call.heads == 0) {
        probe_turn(&probe);
    }
    turn_without_waiting(&probe);
    ck_assert_uint_eq(call.bodies, pauses[_i].bodies);
    ck_assert_uint_eq(call.ends, 0);
    call.deed = PROBE_NOTHING;
    call.inside = true;
    upstream_resume(call.call);
    call.inside = false;
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(call.heads, 1);
    probe_expect_body(&call, pauses[_i].body);
    ck_assert_uint_eq(probe_figures(&probe).kept, 1);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(a_pause_before_the_answer_holds_the_answer)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n");
    upstream_pause(call.call);
    while (peer_count_whole(probe.peer) == 0) {
        (void) loop_run_once(probe.loop, false);
    }
    turn_without_waiting(&probe);
    ck_assert_uint_eq(call.heads, 0);
    upstream_resume(call.call);
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    probe_expect_body(&call, "ok");
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

START_TEST(a_pause_stops_the_reading_of_what_is_already_there)
{
    static char part[64 * 1024 + 1];
    memset(part, 'x', sizeof part - 1);
    static const struct peer_step ready[] = { DO(PEER_BODY),
                                              SEND("HTTP/1.1 200 OK\r\nContent-Length: 262144\r\n\r\n"),
                                              { PEER_SEND, part, 4 },
                                              DO(PEER_WAIT),
                                              PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_PAUSE_AT_HEAD };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, ready);
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n");
    upstream_pause(call.call);
    while (peer_count_whole(probe.peer) == 0) {
        (void) loop_run_once(probe.loop, false);
    }
    ck_assert(peer_wait_stalled(probe.peer, 1)); /* more than one read is waiting in the kernel */
    upstream_resume(call.call);
    while (call.heads == 0) {
        probe_turn(&probe);
    }
    turn_without_waiting(&probe);
    ck_assert_uint_eq(call.bodies, 0);
    upstream_resume(call.call);
    probe_wait(&call);
    ck_assert_int_eq(call.end, ATTEMPT_COMPLETE);
    ck_assert_uint_eq(call.body_bytes, 262144);
    probe_done(&call);
    probe_close(&probe);
}
END_TEST

/* --- giving up --- */

/* No callback comes afterwards, and the peer sees its connection end. */
static void expect_aborted(struct probe *probe, struct probe_call *call)
{
    turn_without_waiting(probe);
    ck_assert_uint_eq(call->ends, 0);
    ck_assert_uint_eq(probe_figures(probe).kept, 0);
    ck_assert(peer_wait_ended(probe->peer, peer_count_connections(probe->peer)));
    probe_done(call);
    probe_close(probe);
}

START_TEST(an_abort_while_connecting_leaves_nothing)
{
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_open(&probe, probe_options());
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    if (_i == 1) {
        (void) loop_run_once(probe.loop, false);
    }
    upstream_abort(call.call);
    expect_aborted(&probe, &call);
}
END_TEST

static void abort_hanging_call(void *context)
{
    struct probe_call *call = context;
    upstream_abort(call->call);
    call->call = NULL;
}

START_TEST(a_call_that_hangs_is_given_up_by_the_timer_of_its_caller)
{
    static const struct peer_step hang[] = { DO(PEER_BODY), DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    struct loop_timer timer;
    const char *const requests[] = { PROBE_POST("0", ""), PROBE_POST("2", "{}") };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, hang);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, requests[_i]);
    while (peer_count_whole(probe.peer) == 0) {
        (void) loop_run_once(probe.loop, false);
    }
    ck_assert(upstream_was_sent(call.call));
    loop_timer_init(&timer, probe.loop, abort_hanging_call, &call);
    loop_timer_start(&timer, 1);
    while (call.call != NULL) {
        probe_turn(&probe);
    }
    ck_assert_uint_eq(peer_count_key(probe.peer, "k-1"), 1);
    expect_aborted(&probe, &call);
}
END_TEST

START_TEST(an_abort_inside_a_callback_ends_the_callbacks)
{
    static const struct peer_step answer[] = { DO(PEER_BODY),
                                               SEND("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                                               SEND("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = _i == 0 ? PROBE_ABORT_AT_HEAD : PROBE_ABORT_AT_BODY };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, answer);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    while (call.heads == 0 || (_i == 1 && call.bodies == 0)) {
        probe_turn(&probe);
    }
    ck_assert_uint_eq(call.bodies, (unsigned) _i);
    expect_aborted(&probe, &call);
}
END_TEST

START_TEST(an_abort_of_a_paused_or_just_resumed_call_leaves_nothing)
{
    static const struct peer_step answer[] = { DO(PEER_BODY), SEND(OK_5 "hello"), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_PAUSE_AT_HEAD };
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, answer);
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (call.heads == 0) {
        probe_turn(&probe);
    }
    if (_i == 1) {
        upstream_resume(call.call);
    }
    upstream_abort(call.call);
    ck_assert_uint_eq(call.bodies, 0);
    expect_aborted(&probe, &call);
}
END_TEST

START_TEST(an_abort_inside_an_upload_leaves_nothing)
{
    static const struct peer_step stall[] = { DO(PEER_WAIT), DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    char *body = calloc(1, 1 << 24);
    probe_open(&probe, probe_options());
    peer_script_default(probe.peer, stall);
    start_upload(&probe, &call, "PUT /f HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
    while (peer_count_requests(probe.peer) == 0) {
        (void) loop_run_once(probe.loop, false);
    }
    ck_assert_uint_lt(probe_write(&call, view_make(body, 1 << 24)), 1 << 24);
    upstream_abort(call.call);
    peer_release(probe.peer, 1);
    free(body);
    expect_aborted(&probe, &call);
}
END_TEST

SUITE(upstream_stream)
{
    Suite *suite = suite_create("upstream/stream");
    CASE(suite, an_upload_arrives_byte_for_byte);
    CASE(suite, an_upload_waits_for_a_handler_that_does_not_read);
    CASE(suite, an_answer_before_the_upload_ended_passes_and_the_rest_is_swallowed);
    CASE(suite, an_early_answer_is_read_although_the_handler_reset_the_upload);
    CASE_LOOP(suite, a_large_answer_flows_in_flat_memory_paused_or_not, 2);
    CASE_LOOP(suite, what_was_read_before_a_pause_is_told_after_it, PAUSES);
    CASE(suite, a_pause_stops_the_reading_of_what_is_already_there);
    CASE(suite, a_pause_before_the_answer_holds_the_answer);
    CASE_LOOP(suite, an_abort_while_connecting_leaves_nothing, 2);
    CASE_LOOP(suite, a_call_that_hangs_is_given_up_by_the_timer_of_its_caller, 2);
    CASE_LOOP(suite, an_abort_inside_a_callback_ends_the_callbacks, 2);
    CASE_LOOP(suite, an_abort_of_a_paused_or_just_resumed_call_leaves_nothing, 2);
    CASE(suite, an_abort_inside_an_upload_leaves_nothing);
    return suite;
}
