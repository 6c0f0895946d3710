/* old_names_test.c - the handler's name was known, its addresses are a minute old or were not reached, and the resolver fails or is silent: when the
 * old addresses are used, for how long, and what the log tells of it. Time passes by hand (loop_time.h); what reached the handler is counted there. */
#include "tests/upstream/listener.h"
#include "tests/upstream/loop_time.h"
#include "tests/upstream/probe.h"
#include "tests/upstream/resolver.h"

#include <netdb.h>
#include <sys/mman.h>
#include <unistd.h>

/* The time for a connection is long for a machine that stands still for a while, and short enough for the waits of names.c (5 s, 10 s). */
enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, TIMEOUT_MS = 8 * SECOND, HALF_MS = TIMEOUT_MS / 2 };

#define NOT_RESOLVED(cause) "Could not resolve host: handler.test (" cause ")"
#define FAILED "the look-up of the handler's name \\\"handler.test\\\" failed: "
#define ANSWERED "the look-up of the handler's name \\\"handler.test\\\" is answered again: "

struct scene {
    struct probe probe;
    int log;
};

/* A handler by a name that was looked up, once, a moment ago. No connection is kept. */
static void scene_begin(struct scene *scene, atomic_bool *fails)
{
    struct upstream_options options = probe_options();
    char url[64];
    scene->log = memfd_create("stderr", 0);
    ck_assert_int_eq(dup2(scene->log, STDERR_FILENO), STDERR_FILENO);
    options.idle_ms = 0;
    options.connect_timeout_ms = TIMEOUT_MS;
    options.name_fails = fails;
    scene->probe = (struct probe){ .peer = peer_new() };
    (void) snprintf(url, sizeof url, "http://handler.test:%u", peer_port(scene->probe.peer));
    probe_open_at(&scene->probe, options, url);
    resolver_know("127.0.0.1");
}

static void scene_end(struct scene *scene)
{
    probe_close(&scene->probe);
    close(scene->log);
}

static const char *log_text(const struct scene *scene)
{
    static char text[65536];
    ssize_t len = pread(scene->log, text, sizeof text - 1, 0);
    ck_assert_int_ge(len, 0);
    text[len] = '\0';
    return text;
}

/* How often the log says that. */
static unsigned told(const struct scene *scene, const char *what)
{
    unsigned count = 0;
    for (const char *at = strstr(log_text(scene), what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

/* The number behind it in the log, where it is once. */
static long told_number(const struct scene *scene, const char *what)
{
    const char *at = strstr(log_text(scene), what);
    ck_assert_ptr_nonnull(at);
    return strtol(at + strlen(what), NULL, 10);
}

static void expect_answer(struct scene *scene)
{
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_exchange(&scene->probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    probe_done(&call);
}

static void end_not_sent(struct probe_call *call, const char *why)
{
    probe_wait(call);
    ck_assert_int_eq(call->end, ATTEMPT_NOT_SENT);
    ck_assert_msg(strstr(call->reason, why) != NULL, "%s", call->reason);
    probe_done(call);
}

static void expect_not_sent(struct scene *scene, const char *why)
{
    struct probe_call call = { .deed = PROBE_NOTHING };
    probe_start(&scene->probe, &call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    end_not_sent(&call, why);
}

/* A call that waits for a look-up, the `asked`-th, when so much of its time has passed. */
static void start_and_pass(struct scene *scene, struct probe_call *call, unsigned asked, int64_t ms)
{
    probe_start(&scene->probe, call, UPSTREAM_PROTECTED, PROBE_POST("0", ""));
    resolver_wait_asked(asked);
    loop_time_pass(ms);
}

/* It waits for half of connect_timeout, and then takes the old addresses. */
static void expect_answer_after_half(struct scene *scene, unsigned asked)
{
    struct probe_call call = { .deed = PROBE_NOTHING };
    start_and_pass(scene, &call, asked, HALF_MS);
    probe_wait(&call);
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    probe_done(&call);
}

/* Until the answers of all look-ups so far were taken: the next begin only after that. */
static void expect_asked(struct scene *scene, unsigned count)
{
    resolver_wait_asked(count);
    probe_turn(&scene->probe);
    ck_assert_uint_eq(resolver_count_asked(), count);
}

static const struct failure {
    int code;
    const char *why;
} failures[] = {
    { EAI_AGAIN, FAILED "Temporary failure in name resolution; the addresses that were found 6" },
    { EAI_FAIL, FAILED "Non-recoverable failure in name resolution; the addresses that were found 6" },
    { EAI_MEMORY, FAILED "Memory allocation failure; the addresses that were found 6" },
};

START_TEST(a_look_up_that_fails_leaves_the_old_addresses_in_use_and_is_told_once)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    loop_time_pass(MINUTE);
    resolver_fail(failures[_i].code);
    for (int i = 0; i < 5; i++) {
        expect_answer(&scene);
    }
    ck_assert_uint_eq(told(&scene, failures[_i].why), 1);
    ck_assert_uint_eq(told(&scene, FAILED), 1);
    ck_assert_uint_eq(told(&scene, ANSWERED), 0);
    ck_assert_uint_eq(resolver_count_asked(), 2); /* the last four waited for none */
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 6);
    scene_end(&scene);
}
END_TEST

START_TEST(meanwhile_the_name_is_asked_for_in_the_background_until_it_is_answered)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    loop_time_pass(MINUTE);
    resolver_fail(EAI_AGAIN);
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 2);
    loop_time_pass(2 * SECOND);
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 2);
    resolver_know("127.0.0.1");
    loop_time_pass(3 * SECOND);
    expect_answer(&scene);
    while (told(&scene, ANSWERED "its addresses are used") == 0) {
        probe_turn(&scene.probe);
    }
    ck_assert_uint_eq(resolver_count_asked(), 3);
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 3); /* and holds for a minute again */
    loop_time_pass(MINUTE);
    resolver_fail(EAI_AGAIN);
    expect_answer(&scene);
    ck_assert_uint_eq(told(&scene, FAILED), 2);
    ck_assert_uint_eq(told(&scene, ANSWERED), 1);
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 6);
    scene_end(&scene);
}
END_TEST

/* The first waits for half of connect_timeout, the next for nothing; the look-up goes on, and its answer counts. */
START_TEST(a_look_up_that_hangs_costs_one_connection_half_of_connect_timeout)
{
    struct scene scene;
    struct probe_call call = { .deed = PROBE_NOTHING };
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    loop_time_pass(MINUTE);
    resolver_hold();
    start_and_pass(&scene, &call, 2, 0);
    for (int i = 0; i < 5; i++) {
        probe_turn(&scene.probe); /* none of its time passes by hand */
    }
    ck_assert_uint_eq(call.ends, 0);
    ck_assert_uint_eq(told(&scene, FAILED), 0);
    loop_time_pass(HALF_MS);
    probe_wait(&call);
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    probe_done(&call);
    ck_assert_int_ge(told_number(&scene, FAILED "no answer in "), HALF_MS);
    for (int i = 0; i < 5; i++) {
        int64_t from_ms = loop_now_ms(scene.probe.loop);
        expect_answer(&scene);
        ck_assert_int_lt(loop_now_ms(scene.probe.loop) - from_ms, HALF_MS);
    }
    ck_assert_uint_eq(resolver_count_asked(), 2);
    ck_assert_uint_eq(told(&scene, FAILED), 1);
    resolver_release();
    while (told(&scene, ANSWERED) == 0) {
        probe_turn(&scene.probe);
    }
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 7);
    scene_end(&scene);
}
END_TEST

/* The one that waited has its addresses by then, and tries no others. */
START_TEST(an_answer_that_comes_after_half_of_connect_timeout_is_for_the_next_connection)
{
    struct scene scene;
    struct probe_call call = { .deed = PROBE_NOTHING };
    int fillers[LISTENER_FILLERS];
    scene_begin(&scene, NULL);
    resolver_know("127.0.0.1 127.0.0.2");
    expect_answer(&scene);
    int silent = listener_in_silence("127.0.0.2", peer_port(scene.probe.peer), fillers);
    loop_time_pass(MINUTE);
    resolver_hold();
    peer_refuse(scene.probe.peer);
    start_and_pass(&scene, &call, 2, HALF_MS);
    while (told(&scene, FAILED) == 0) {
        probe_turn(&scene.probe);
    }
    peer_accept_again(scene.probe.peer);
    resolver_know("127.0.0.1");
    resolver_release();
    while (told(&scene, ANSWERED) == 0) {
        probe_turn(&scene.probe);
    }
    loop_time_pass(HALF_MS);
    end_not_sent(&call, "Connection timed out");
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 1);
    expect_answer(&scene);
    listener_close(silent, fillers);
    scene_end(&scene);
}
END_TEST

/* Resolvers give up after some seconds; one that does not is left behind, and asked again. */
START_TEST(a_look_up_that_hangs_for_ten_seconds_is_followed_by_another)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    loop_time_pass(MINUTE);
    resolver_hold();
    expect_answer_after_half(&scene, 2);
    loop_time_pass(2 * SECOND); /* six in all, and what this test itself takes */
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 2);
    loop_time_pass(4 * SECOND);
    expect_answer(&scene);
    expect_asked(&scene, 3);
    resolver_release();
    while (told(&scene, ANSWERED) == 0) {
        probe_turn(&scene.probe);
    }
    scene_end(&scene);
}
END_TEST

START_TEST(old_addresses_are_used_for_a_day)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    resolver_fail(EAI_AGAIN);
    loop_time_pass(_i == 0 ? 24 * HOUR - MINUTE : MINUTE);
    expect_answer(&scene);
    loop_time_pass(_i == 0 ? MINUTE : 24 * HOUR - MINUTE);
    expect_not_sent(&scene, NOT_RESOLVED("Temporary failure in name resolution"));
    resolver_know("127.0.0.1");
    expect_answer(&scene);
    ck_assert_uint_eq(told(&scene, ANSWERED), 1);
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 3);
    scene_end(&scene);
}
END_TEST

/* They may be somebody else's now. */
START_TEST(a_name_that_there_is_no_more_is_an_answer_and_its_addresses_are_forgotten)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    loop_time_pass(MINUTE);
    if (_i == 1) { /* also in the midst of failures */
        resolver_fail(EAI_AGAIN);
        expect_answer(&scene);
        loop_time_pass(5 * SECOND);
    }
    resolver_know("");
    if (_i == 1) {
        expect_answer(&scene); /* which asked, and did not wait */
        while (told(&scene, ANSWERED "Name or service not known") == 0) {
            probe_turn(&scene.probe);
        }
    }
    expect_not_sent(&scene, NOT_RESOLVED("Name or service not known"));
    resolver_fail(EAI_AGAIN);
    expect_not_sent(&scene, NOT_RESOLVED("Temporary failure in name resolution"));
    ck_assert_uint_eq(told(&scene, FAILED), _i == 0 ? 0 : 1);
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), _i == 0 ? 1 : 3);
    scene_end(&scene);
}
END_TEST

START_TEST(a_name_that_was_never_known_has_no_old_addresses)
{
    struct scene scene;
    struct probe_call call = { .deed = PROBE_NOTHING };
    scene_begin(&scene, NULL);
    resolver_fail(EAI_AGAIN);
    expect_not_sent(&scene, NOT_RESOLVED("Temporary failure in name resolution"));
    resolver_hold();
    start_and_pass(&scene, &call, 2, TIMEOUT_MS);
    end_not_sent(&call, "Resolving timed out");
    ck_assert_uint_eq(told(&scene, FAILED), 0);
    ck_assert_uint_eq(peer_count_connections(scene.probe.peer), 0);
    resolver_release();
    scene_end(&scene);
}
END_TEST

/* Nobody listens at them, so the next connection waits for an answer, as when the resolver works: the handler may have moved. When there is none,
 * they are tried again, since the handler may be back. */
START_TEST(old_addresses_that_refuse_are_doubted_and_tried_again)
{
    struct scene scene;
    scene_begin(&scene, NULL);
    expect_answer(&scene);
    peer_refuse(scene.probe.peer);
    expect_not_sent(&scene, "Connection refused");
    resolver_fail(EAI_AGAIN);
    expect_not_sent(&scene, "Connection refused");
    expect_not_sent(&scene, "Connection refused");
    ck_assert_uint_eq(resolver_count_asked(), 3);
    peer_accept_again(scene.probe.peer);
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 4);
    expect_answer(&scene);
    ck_assert_uint_eq(resolver_count_asked(), 4);
    ck_assert_uint_eq(told(&scene, FAILED), 1);
    ck_assert_uint_eq(peer_count_requests(scene.probe.peer), 3);
    scene_end(&scene);
}
END_TEST

START_TEST(of_the_loops_of_one_server_one_tells)
{
    static atomic_bool fails;
    struct scene first, second;
    scene_begin(&first, &fails);
    scene_begin(&second, &fails); /* whose log is both's */
    expect_answer(&first);
    expect_answer(&second);
    loop_time_pass(MINUTE);
    resolver_fail(EAI_AGAIN);
    expect_answer(&first);
    expect_answer(&second);
    ck_assert_uint_eq(told(&second, FAILED), 1);
    resolver_know("127.0.0.1");
    loop_time_pass(5 * SECOND);
    expect_answer(&first);
    expect_answer(&second);
    expect_asked(&first, 6);
    while (told(&second, ANSWERED) == 0) {
        probe_turn(&first.probe);
        probe_turn(&second.probe);
    }
    loop_time_pass(MINUTE);
    expect_answer(&first);
    expect_answer(&second);
    ck_assert_uint_eq(told(&second, FAILED), 1);
    ck_assert_uint_eq(told(&second, ANSWERED), 1);
    scene_end(&second);
    scene_end(&first);
}
END_TEST

SUITE(upstream_old_names)
{
    Suite *suite = suite_create("upstream/old_names");
    CASE_LOOP(suite, a_look_up_that_fails_leaves_the_old_addresses_in_use_and_is_told_once,
              sizeof failures / sizeof failures[0]);
    CASE(suite, meanwhile_the_name_is_asked_for_in_the_background_until_it_is_answered);
    CASE(suite, a_look_up_that_hangs_costs_one_connection_half_of_connect_timeout);
    CASE(suite, an_answer_that_comes_after_half_of_connect_timeout_is_for_the_next_connection);
    CASE(suite, a_look_up_that_hangs_for_ten_seconds_is_followed_by_another);
    CASE_LOOP(suite, old_addresses_are_used_for_a_day, 2);
    CASE_LOOP(suite, a_name_that_there_is_no_more_is_an_answer_and_its_addresses_are_forgotten, 2);
    CASE(suite, a_name_that_was_never_known_has_no_old_addresses);
    CASE(suite, old_addresses_that_refuse_are_doubted_and_tried_again);
    CASE(suite, of_the_loops_of_one_server_one_tells);
    return suite;
}
