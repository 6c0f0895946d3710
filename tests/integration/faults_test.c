/* faults_test.c - what an exchange that goes wrong proves (docs/contract.md section 6), through the whole server, once with a body and once with an
 * empty one. Executions are counted at the scripted handler, never taken from our own word. T7. */
#include "tests/support/rig.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEPS_MAX = 6 };

struct fault {
    const char *name;
    struct peer_step steps[STEPS_MAX];
    int status;          /* of the first answer */
    const char *word;    /* its Idempotency-Status */
    const char *problem; /* in its body; NULL: the handler's answer */
    unsigned executions; /* at the handler after a repeat */
    int repeat_status;
    const char *repeat_word;
};

#define UNKNOWN 504, "unknown", "outcome-unknown", 1, 504, "unknown"
#define COMPLETED 200, "executed", NULL, 1, 200, "replayed"

static const struct fault faults[] = {
    { "closes without an answer", { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 } }, UNKNOWN },
    { "reset before the answer", { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 } }, UNKNOWN },
    { "reset after the status line",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_RESET, NULL, 0 } },
      UNKNOWN },
    { "cut inside the status line",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 20", 0 }, { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "cut after the status line",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "cut inside a field",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Le", 0 }, { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "reset inside the head",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", 0 }, { PEER_RESET, NULL, 0 } },
      UNKNOWN },
    { "reset inside the body",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0 },
        { PEER_RESET, NULL, 0 } },
      UNKNOWN },
    { "Content-Length too long",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd", 0 },
        { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "Content-Length too short",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd", 0 } },
      COMPLETED },
    { "unframed body",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nabcd", 0 }, { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "last chunk missing",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 0 },
        { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "last CRLF missing",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n", 0 },
        { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "cut inside a chunk",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", 0 },
        { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "only 100 Continue",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 100 Continue\r\n\r\n", 0 }, { PEER_CLOSE, NULL, 0 } },
      UNKNOWN },
    { "101",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 0 } },
      UNKNOWN },
    { "garbage", { { PEER_BODY, NULL, 0 }, { PEER_SEND, "SSH-2.0-OpenSSH_9\r\n", 0 } }, UNKNOWN },
    { "two lengths",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", 0 } },
      UNKNOWN },
    { "two framings",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
          0 } },
      UNKNOWN },
    { "another coding",
      { { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0 } },
      UNKNOWN },
    { "a control byte in a field",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND,
          "HTTP/1.1 200 OK\r\nX: a\x01"
          "b\r\nContent-Length: 0\r\n\r\n",
          0 } },
      UNKNOWN },
    { "dripped answer",
      { { PEER_BODY, NULL, 0 }, { PEER_DRIP, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 } },
      COMPLETED },
    { "two answers",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
          0 } },
      COMPLETED },
    { "hangs", { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 } }, UNKNOWN },
    { "hangs inside the body",
      { { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0 },
        { PEER_WAIT_END, NULL, 0 } },
      UNKNOWN },
};
enum { FAULT_COUNT = sizeof faults / sizeof faults[0] };

/* For the rows that end by it alone: a machine that stands still for so long would end the others as well. */
static const char *const short_timeouts[] = { "--set", "answer_timeout=400ms", "--set", "hard_timeout=400ms", NULL };

static bool fault_hangs(const struct fault *row)
{
    bool hangs = false;
    for (int i = 0; i < STEPS_MAX && row->steps[i].op != PEER_STOP; i++) {
        hangs = hangs || row->steps[i].op == PEER_WAIT_END;
    }
    return hangs;
}

/* What the rows saw, for one line of figures: each runs in a process of its own, so it lies in memory that they share. */
static struct faults_seen {
    atomic_uint cuts, stored_as_complete, whole, replayed; /* cuts: answers that did not come whole */
    atomic_uint executions_least, executions_most;         /* of a key */
} * seen;

static void faults_note(const struct fault *row, const struct http_answer *repeat, unsigned executions)
{
    bool replayed = http_field_is(repeat, "Idempotency-Status", "replayed");
    bool cut = row->problem != NULL;
    atomic_fetch_add(cut ? &seen->cuts : &seen->whole, 1);
    atomic_fetch_add(cut ? &seen->stored_as_complete : &seen->replayed, replayed ? 1 : 0);
    if (executions < atomic_load(&seen->executions_least)) {
        atomic_store(&seen->executions_least, executions);
    }
    if (executions > atomic_load(&seen->executions_most)) {
        atomic_store(&seen->executions_most, executions);
    }
}

/* The first half of the rows with a body, the second with an empty one. */
START_TEST(a_fault_is_told_as_what_it_proves_and_the_command_is_sent_once)
{
    const struct fault *row = &faults[_i % FAULT_COUNT];
    const char *body = _i < FAULT_COUNT ? "{\"amount\":1}" : "";
    struct rig rig;
    rig_start(&rig, fault_hangs(row) ? short_timeouts : NULL);
    /* A kept connection exists before: the row then happens on a reused one. */
    struct http_answer warm = http_post(rig.address, "/orders", "warm", body);
    RIG_EXPECT(warm, 200, "executed");
    peer_script_for_request(rig.peer, 2, row->steps);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", body);
    struct http_answer repeat = http_post(rig.address, "/orders", "k-1", body);
    unsigned executions = peer_count_key(rig.peer, "k-1");
    faults_note(row, &repeat, executions);
    RIG_EXPECT(first, row->status, row->word);
    if (row->problem != NULL) {
        ck_assert_msg(strstr(first.body, row->problem) != NULL, "%s: %s", row->name, first.body);
    }
    RIG_EXPECT(repeat, row->repeat_status, row->repeat_word);
    ck_assert_msg(executions == row->executions, "%s: %u executions", row->name, executions);
    /* Nothing of a bad answer reaches the next command. */
    static const struct peer_step number[] = { { PEER_BODY, NULL, 0 }, { PEER_NUMBER, NULL, 0 }, PEER_END };
    peer_script_default(rig.peer, number);
    struct http_answer next = http_post(rig.address, "/orders", "k-2", body);
    RIG_EXPECT(next, 200, "executed");
    ck_assert_str_eq(next.body, "3");
    http_answer_free(&warm);
    http_answer_free(&first);
    http_answer_free(&repeat);
    http_answer_free(&next);
    rig_end(&rig);
}
END_TEST

START_TEST(of_all_these_faults_no_cut_answer_was_stored_as_complete)
{
    if (getenv("CK_RUN_CASE") != NULL) {
        FIGURE("the rows before this test did not run: nothing to count");
        return;
    }
    unsigned least = atomic_load(&seen->executions_least), most = atomic_load(&seen->executions_most);
    char executions[32];
    (void) snprintf(executions, sizeof executions, least == most ? "%u" : "%u..%u", least, most);
    FIGURE("T7 upstream_cut cases=%u stored_as_complete=%u execs_per_key=%s whole_answers=%u replayed=%u",
           atomic_load(&seen->cuts), atomic_load(&seen->stored_as_complete), executions, atomic_load(&seen->whole),
           atomic_load(&seen->replayed));
    ck_assert_uint_eq(atomic_load(&seen->cuts), 44);
    ck_assert_uint_eq(atomic_load(&seen->stored_as_complete), 0);
    ck_assert_uint_eq(atomic_load(&seen->whole), 6);
    ck_assert_uint_eq(atomic_load(&seen->replayed), 6);
    ck_assert_uint_eq(least, 1);
    ck_assert_uint_eq(most, 1);
}
END_TEST

START_TEST(a_handler_that_refuses_the_connection_releases_the_key)
{
    struct rig rig;
    rig_start(&rig, NULL);
    peer_refuse(rig.peer);
    for (int i = 0; i < 2; i++) {
        struct http_answer refused = http_post(rig.address, "/orders", "k-1", "x");
        RIG_EXPECT(refused, 502, "not-executed");
        ck_assert_ptr_nonnull(strstr(refused.body, "\"executed\":\"no\""));
        ck_assert_ptr_nonnull(strstr(refused.body, "\"retryable\":true"));
        ck_assert_int_eq(http_field_count(&refused, "Retry-After"), 1);
        http_answer_free(&refused);
    }
    peer_accept_again(rig.peer);
    struct http_answer other = http_post(rig.address, "/orders", "k-1", "y");
    RIG_EXPECT(other, 422, "refused"); /* the payload is remembered, released or not */
    struct http_answer again = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(again, 200, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&other);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

START_TEST(a_kept_connection_that_was_closed_while_idle_is_replaced)
{
    static const struct peer_step then_close[] = { { PEER_BODY, NULL, 0 },
                                                   { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                                   { PEER_CLOSE, NULL, 0 },
                                                   PEER_END };
    struct rig rig;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, then_close);
    for (unsigned i = 1; i <= 20; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%u", i);
        struct http_answer answer = http_post(rig.address, "/orders", key, "x");
        RIG_EXPECT(answer, 200, "executed");
        ck_assert(peer_wait_ended(rig.peer, i));
        ck_assert_uint_eq(peer_count_key(rig.peer, key), 1);
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 20);
    rig_end(&rig);
}
END_TEST

/* Surplus that comes late looks like the next command's answer. Whoever sent some once gets a connection for each command. */
START_TEST(a_handler_that_sent_surplus_bytes_gets_a_connection_for_each_command)
{
    static const struct peer_step twice[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
          0 },
        PEER_END
    };
    const char *const one_pool[] = { "--set", "server.loops=1", NULL };
    struct rig rig;
    rig_start(&rig, one_pool);
    peer_script_for_request(rig.peer, 3, twice);
    for (unsigned i = 1; i <= 6; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%u", i);
        struct http_answer answer = http_post(rig.address, "/orders", key, "x");
        RIG_EXPECT(answer, 200, "executed");
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 6);
    ck_assert_uint_eq(peer_count_connections(rig.peer), 4); /* one for 1 to 3, and one each for 4, 5, 6 */
    ck_assert(daemon_logged(&rig.nonbis, "behind a complete answer"));
    rig_end(&rig);
}
END_TEST

/* What one loop finds out about the handler holds for the connections that the others have kept. */
START_TEST(surplus_bytes_end_the_keeping_of_connections_on_every_loop)
{
    static const struct peer_step twice[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
          0 },
        PEER_END
    };
    const char *const two[] = { "--set", "server.loops=2", NULL };
    struct rig rig;
    rig_start(&rig, two);
    peer_script_for_request(rig.peer, 3, twice);
    for (unsigned i = 1; i <= 6; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%u", i);
        struct http_answer answer = http_post(rig.address, "/orders", key, "x");
        RIG_EXPECT(answer, 200, "executed");
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 6);
    ck_assert_uint_eq(peer_count_connections(rig.peer), 5); /* one of each loop for 1 to 3, then one each */
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "behind a complete answer"), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(an_answer_before_the_request_has_ended_is_unknown)
{
    static const struct peer_step early[] = { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                              { PEER_WAIT_END, NULL, 0 },
                                              PEER_END };
    const char *const more[] = { "--set", "body_max=64MiB", NULL };
    struct rig rig;
    rig_start(&rig, more);
    peer_script_for_request(rig.peer, 1, early);
    size_t size = 32 * 1024 * 1024;
    char *body = malloc(size + 1);
    memset(body, 'x', size);
    body[size] = '\0';
    struct http_answer first = http_post(rig.address, "/orders", "k-1", body);
    RIG_EXPECT(first, 504, "unknown");
    struct http_answer again = http_post(rig.address, "/orders", "k-1", body);
    RIG_EXPECT(again, 504, "unknown");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&again);
    free(body);
    rig_end(&rig);
}
END_TEST

START_TEST(a_slow_handler_gives_still_running_and_its_outcome_is_recorded)
{
    static const struct peer_step slow[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Made\r\nContent-Length: 4\r\n\r\nlate", 0 },
                                             PEER_END };
    const char *const more[] = { "--set", "answer_timeout=100ms", NULL };
    struct rig rig;
    rig_start(&rig, more);
    peer_script_default(rig.peer, slow);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(first, 504, "in-progress");
    ck_assert_ptr_nonnull(strstr(first.body, "still-running"));
    ck_assert_int_eq(http_field_count(&first, "Retry-After"), 1);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(again, 409, "in-progress");
    ck_assert_int_eq(http_field_count(&again, "Retry-After"), 1);
    peer_release(rig.peer, 1);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed status=504 told=still-running"));
    struct http_answer replay = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(replay, 201, "replayed");
    ck_assert_str_eq(replay.body, "late");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&first);
    http_answer_free(&again);
    http_answer_free(&replay);
    rig_end(&rig);
}
END_TEST

START_TEST(a_client_that_leaves_changes_nothing_once_its_request_is_whole)
{
    static const struct peer_step slow[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok", 0 },
                                             PEER_END };
    /* libmicrohttpd can miss a close that arrives together with data; its inactivity timeout finds it. */
    const char *const more[] = { "--set", "client_idle=1s", NULL };
    struct rig rig;
    rig_start(&rig, more);
    peer_script_default(rig.peer, slow);
    static const char request[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nContent-Type: "
                                  "application/json\r\nIdempotency-Key: k-1\r\nContent-Length: 1\r\n\r\nx";
    /* Before the last body byte: nothing happened. */
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, request, sizeof request - 2));
    close(fd);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=incomplete-request"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    /* After it: the exchange goes on. */
    fd = http_connect(rig.address);
    ck_assert(http_send(fd, request, sizeof request - 1));
    ck_assert(peer_wait_whole(rig.peer, 1));
    close(fd);
    peer_release(rig.peer, 1);
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    struct http_answer replay = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(replay, 201, "replayed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&replay);
    rig_end(&rig);
}
END_TEST

/* Fields without a blank grow by one byte each on their way to the client: the head of an answer that the handler was allowed may then not fit
 * beside that of a request with many fields. */
START_TEST(a_streamed_answer_whose_head_cannot_be_sent_is_a_bare_500_and_nobody_waits_for_it)
{
    enum { ANSWER_FIELDS = 1210, REQUEST_FIELDS = 90, BODY_BYTES = 5000, TEXT_BYTES = 16 * 1024 };
    static char answer[TEXT_BYTES], request[TEXT_BYTES];
    static const struct peer_step script[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, answer, 0 }, PEER_END };
    static const char *const more[] = { "--set", "response_keep_max=1KiB", NULL };
    int at = snprintf(answer, TEXT_BYTES, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n", BODY_BYTES);
    for (int i = 0; i < ANSWER_FIELDS; i++) {
        at += snprintf(answer + at, TEXT_BYTES - (size_t) at, "%c:v\r\n", 'a' + i % 26);
    }
    (void) snprintf(answer + at, TEXT_BYTES - (size_t) at, "\r\n%0*d", BODY_BYTES, 0);
    int len = snprintf(request, TEXT_BYTES,
                       "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k-1\r\nContent-Length: 2\r\n");
    for (int i = 0; i < REQUEST_FIELDS; i++) {
        len += snprintf(request + len, TEXT_BYTES - (size_t) len, "X-%02d: %025d\r\n", i, 0);
    }
    len += snprintf(request + len, TEXT_BYTES - (size_t) len, "\r\n{}");
    struct rig rig;
    rig_start(&rig, more);
    peer_script_default(rig.peer, script);
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, request, (size_t) len));
    struct http_answer bare = http_receive(fd, false, NULL);
    RIG_EXPECT(bare, 500, "");
    close(fd);
    /* It was executed, and a smaller request is told so. */
    struct http_answer again = http_request(rig.address, "POST", "/orders", "Idempotency-Key: k-1\r\n", "{}");
    RIG_EXPECT(again, 200, "replayed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 1);
    http_answer_free(&bare);
    http_answer_free(&again);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0); /* the log has the error that the head did not fit */
    peer_free(rig.peer);
}
END_TEST

SUITE(faults)
{
    Suite *suite = suite_create("integration/faults");
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED) {
        perror("integration/faults: memory that tests share");
        abort();
    }
    *seen = (struct faults_seen){ .executions_least = UINT_MAX };
    CASE_LOOP(suite, a_fault_is_told_as_what_it_proves_and_the_command_is_sent_once, 2 * FAULT_COUNT);
    CASE(suite, of_all_these_faults_no_cut_answer_was_stored_as_complete); /* behind it */
    CASE(suite, a_handler_that_refuses_the_connection_releases_the_key);
    CASE(suite, a_kept_connection_that_was_closed_while_idle_is_replaced);
    CASE(suite, a_handler_that_sent_surplus_bytes_gets_a_connection_for_each_command);
    CASE(suite, surplus_bytes_end_the_keeping_of_connections_on_every_loop);
    CASE(suite, an_answer_before_the_request_has_ended_is_unknown);
    CASE(suite, a_slow_handler_gives_still_running_and_its_outcome_is_recorded);
    CASE(suite, a_client_that_leaves_changes_nothing_once_its_request_is_whole);
    CASE(suite, a_streamed_answer_whose_head_cannot_be_sent_is_a_bare_500_and_nobody_waits_for_it);
    return suite;
}
