/* transport_rows_test.c - what one exchange of the libcurl transport proves, row by row: was it sent, how many bytes, what came
 * back. Executions are counted at the peer. */
#include "tests/client/transport_probe.h"
#include "tests/peer/words.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum {
    REQUEST_BYTES =
        110, /* POST /orders, Host with a port of five digits, User-Agent, Idempotency-Key, Content-Length, {} */
    SHORT_MS = 800
};

static const struct peer_step closes[] = { DO(PEER_CLOSE), PEER_END };
static const struct peer_step resets[] = { DO(PEER_RESET), PEER_END };
static const struct peer_step is_silent[] = { DO(PEER_WAIT_END), PEER_END };
static const struct peer_step reads_and_closes[] = { DO(PEER_BODY), DO(PEER_CLOSE), PEER_END };
static const struct peer_step reads_and_resets[] = { DO(PEER_BODY), DO(PEER_RESET), PEER_END };
static const struct peer_step reads_and_waits[] = { DO(PEER_BODY), DO(PEER_WAIT_END), PEER_END };
static const struct peer_step cuts_the_status_line[] = { DO(PEER_BODY), SAY("HTTP/1.1 20"), DO(PEER_CLOSE), PEER_END };
static const struct peer_step says_garbage[] = { DO(PEER_BODY), SAY("ready\r\n\r\n"), DO(PEER_CLOSE), PEER_END };
static const struct peer_step cuts_the_head[] = { DO(PEER_BODY), SAY("HTTP/1.1 200 OK\r\nContent-Le"), DO(PEER_CLOSE),
                                                  PEER_END };
static const struct peer_step cuts_the_body[] = { DO(PEER_BODY),
                                                  SAY("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
                                                  DO(PEER_CLOSE), PEER_END };
static const struct peer_step resets_in_the_body[] = { DO(PEER_BODY),
                                                       SAY("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
                                                       DO(PEER_RESET), PEER_END };
static const struct peer_step stalls_in_the_body[] = { DO(PEER_BODY),
                                                       SAY("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
                                                       DO(PEER_WAIT_END), PEER_END };
static const struct peer_step cuts_the_chunks[] = {
    DO(PEER_BODY), SAY("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), DO(PEER_CLOSE), PEER_END
};
static const struct peer_step switches[] = { DO(PEER_BODY),
                                             SAY("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
                                             DO(PEER_WAIT_END), PEER_END };

/* What is not set is 0. `codes`: where two can come, by who is faster; the class must not depend on it (docs/facts.md 2). */
static const struct row {
    const char *name, *url; /* url NULL: the peer's */
    const struct peer_step *at_connection, *at_request;
    bool refuses, ends_before_we_send; /* the peer acts before connect() comes back */
    int64_t timeout_ms;
    int codes[2], os_errno;
    unsigned hook_calls, bytes, handled;
    int status;
    bool head_whole;
    const char *says;
} rows[] = {
    { .name = "name not resolved",
      .url = "http://missing.test/orders",
      .codes = { 6 },
      .says = "connecting to missing.test: Could not resolve host: missing.test" },
    { .name = "refused", .refuses = true, .codes = { 7 }, .os_errno = ECONNREFUSED, .says = "Connection refused" },
    { .name = "reset at accept",
      .at_connection = resets,
      .ends_before_we_send = true,
      .codes = { 7 },
      .os_errno = ECONNRESET,
      .says = "Connection reset by peer" },
    { .name = "TLS handshake hangs",
      .url = "https",
      .at_connection = is_silent,
      .timeout_ms = SHORT_MS,
      .codes = { 28 },
      .says = "not done within 800 ms" },
    { .name = "TLS handshake is cut",
      .url = "https",
      .at_connection = closes,
      .codes = { 35 },
      .says = "connecting to" },
    { .name = "closed right after accept",
      .at_connection = closes,
      .ends_before_we_send = true,
      .codes = { 52, 56 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .says = "waiting for the answer of 127.0.0.1:" },
    { .name = "read then closed",
      .at_request = reads_and_closes,
      .codes = { 52 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .says = "the connection ended without one" },
    { .name = "read then reset",
      .at_request = reads_and_resets,
      .codes = { 56 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .says = "Connection reset by peer" },
    { .name = "no answer",
      .at_request = reads_and_waits,
      .timeout_ms = SHORT_MS,
      .codes = { 28 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .says = "not done within 800 ms" },
    { .name = "status line cut",
      .at_request = cuts_the_status_line,
      .codes = { 52 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .says = "the connection ended without one" },
    { .name = "garbage",
      .at_request = says_garbage,
      .codes = { 1 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .says = "what came is no HTTP/1.1" },
    { .name = "head cut",
      .at_request = cuts_the_head,
      .codes = { 0 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 200,
      .says = "it ended within its head" },
    { .name = "200 with its body cut",
      .at_request = cuts_the_body,
      .codes = { 18 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 200,
      .head_whole = true,
      .says = "reading the answer of 127.0.0.1:" },
    { .name = "200 with its body reset",
      .at_request = resets_in_the_body,
      .codes = { 56 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 200,
      .head_whole = true,
      .says = "Connection reset by peer" },
    { .name = "200 with a body that stalls",
      .at_request = stalls_in_the_body,
      .timeout_ms = SHORT_MS,
      .codes = { 28 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 200,
      .head_whole = true,
      .says = "with 4 out of 10 bytes received" },
    { .name = "200 without its last chunk",
      .at_request = cuts_the_chunks,
      .codes = { 18 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 200,
      .head_whole = true,
      .says = "reading the answer of 127.0.0.1:" },
    { .name = "switched protocols",
      .at_request = switches,
      .codes = { 23 },
      .hook_calls = 1,
      .bytes = REQUEST_BYTES,
      .handled = 1,
      .status = 101,
      .says = "it switched to another protocol" },
};

static void wait_for_the_end(void *arg)
{
    ck_assert(peer_wait_ended(arg, 1));
}

START_TEST(an_exchange_that_fails_tells_what_is_certain)
{
    const struct row *row = &rows[_i];
    struct probe probe;
    probe_open(&probe);
    if (row->url != NULL && strcmp(row->url, "https") == 0) {
        (void) snprintf(probe.url, sizeof probe.url, "https://127.0.0.1:%u/orders", peer_port(probe.peer));
    } else if (row->url != NULL) {
        probe_aim(&probe, row->url);
    }
    if (row->at_connection != NULL) {
        peer_script_for_connection(probe.peer, 1, row->at_connection);
    }
    if (row->at_request != NULL) {
        peer_script_default(probe.peer, row->at_request);
    }
    if (row->refuses) {
        peer_refuse(probe.peer);
    }
    if (row->ends_before_we_send) {
        probe_after_connect(wait_for_the_end, probe.peer);
    }
    if (row->timeout_ms > 0) {
        probe.request.timeout_ms = row->timeout_ms;
    }
    probe_send(&probe);
    const struct transport_facts *facts = &probe.facts;
    ck_assert_msg(facts->code == row->codes[0] || (row->codes[1] != 0 && facts->code == row->codes[1]),
                  "%s: code %d, %s", row->name, facts->code, facts->message);
    ck_assert_msg(facts->hook_calls == row->hook_calls, "%s: hook called %u times", row->name, facts->hook_calls);
    ck_assert_msg(probe.asked == row->hook_calls, "%s: asked %u times", row->name, probe.asked);
    ck_assert_msg(facts->bytes_sent == row->bytes, "%s: %llu bytes", row->name, (unsigned long long) facts->bytes_sent);
    ck_assert_msg(facts->os_errno == row->os_errno, "%s: errno %d", row->name, facts->os_errno);
    ck_assert_msg(facts->answer.status == row->status, "%s: status %d", row->name, facts->answer.status);
    ck_assert_msg(facts->answer.head_whole == row->head_whole, "%s: head", row->name);
    ck_assert_msg(!facts->answer.whole && !facts->answer.by_close, "%s: whole", row->name);
    ck_assert_msg(!facts->cancelled && !facts->hook_refused, "%s: flags", row->name);
    ck_assert_msg(strstr(facts->message, row->says) != NULL, "%s: it says \"%s\"", row->name, facts->message);
    ck_assert_msg(peer_count_requests(probe.peer) == row->handled, "%s: %u requests at the peer", row->name,
                  peer_count_requests(probe.peer));
    ck_assert_msg(facts->elapsed_ms >= row->timeout_ms - 1, "%s: over after %lld ms", row->name,
                  (long long) facts->elapsed_ms);
    probe_close(&probe);
}
END_TEST

START_TEST(the_bytes_that_are_counted_are_those_that_the_peer_has)
{
    static const struct {
        size_t body;
        uint64_t bytes;
    } cases[] = { { 0, 108 }, { 2, 110 }, { 65535, 112 + 65535 }, { 65536, 112 + 65536 }, { 3000000, 114 + 3000000 } };
    struct probe probe;
    char *body = calloc(1, cases[_i].body + 1);
    probe_open(&probe);
    probe.request.body = body;
    probe.request.body_len = cases[_i].body;
    probe_send(&probe);
    ck_assert_str_eq(probe.facts.message, "");
    ck_assert(probe.facts.answer.whole);
    ck_assert_uint_eq(probe.facts.bytes_sent, cases[_i].bytes);
    struct buf received;
    buf_init(&received, 1 << 24);
    ck_assert(peer_request(probe.peer, 1, &received));
    ck_assert_uint_eq(received.len, cases[_i].bytes);
    buf_fini(&received);
    free(body);
    probe_close(&probe);
}
END_TEST

/* ---- the hook ----------------------------------------------------------------------------------------------------- */

static int refuses_when_connected(void *arg)
{
    struct probe *probe = arg;
    probe->asked++;
    ck_assert(peer_wait_connections(probe->peer, 1));
    ck_assert_uint_eq(peer_count_requests(probe->peer), 0);
    return 1;
}

START_TEST(what_the_caller_refuses_in_the_hook_is_connected_but_never_sent)
{
    struct probe probe;
    probe_open(&probe);
    probe.request.before_send = refuses_when_connected;
    probe_send(&probe);
    ck_assert_uint_eq(probe.asked, 1);
    ck_assert(probe.facts.hook_refused);
    ck_assert(!probe.facts.cancelled);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert_uint_eq(probe.facts.bytes_sent, 0);
    ck_assert_int_eq(probe.facts.code, 42);
    ck_assert_ptr_nonnull(strstr(probe.facts.message, "held back, nothing was sent"));
    probe_close(&probe);
}
END_TEST

static int is_cancelled_meanwhile(void *arg)
{
    struct probe *probe = arg;
    waker_cancel(&probe->waker);
    return 0;
}

START_TEST(a_cancel_that_comes_while_the_caller_is_asked_ends_a_sending_that_began)
{
    struct probe probe;
    probe_open(&probe);
    peer_script_default(probe.peer, reads_and_waits);
    probe.request.before_send = is_cancelled_meanwhile;
    probe_send(&probe);
    ck_assert(probe.facts.cancelled);
    ck_assert(!probe.facts.hook_refused);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert_uint_eq(probe.facts.bytes_sent, REQUEST_BYTES);
    probe_close(&probe);
}
END_TEST

static void cancel_now(void *arg)
{
    waker_cancel(arg);
}

START_TEST(a_question_without_a_caller_to_ask_is_counted_too)
{
    struct probe probe;
    probe_open(&probe);
    probe.request.before_send = NULL;
    probe_send(&probe);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert(probe.facts.answer.whole);
    probe_close(&probe);
}
END_TEST

/* A Unix socket is connected at once, so that nothing but the hook lies between that and the first byte. */
START_TEST(a_cancel_that_comes_with_the_connection_sends_nothing)
{
    struct probe probe;
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s/nonbis-rows-%d.sock", P_tmpdir, (int) getpid());
    probe_open_unix(&probe, path);
    probe_after_connect(cancel_now, &probe.waker);
    probe_send(&probe);
    ck_assert(probe.facts.cancelled);
    ck_assert(probe.facts.hook_refused);
    ck_assert_uint_eq(probe.asked, 0);
    ck_assert_uint_eq(probe.facts.bytes_sent, 0);
    ck_assert_ptr_nonnull(strstr(probe.facts.message, "cancelled before anything was sent"));
    ck_assert_uint_eq(peer_count_requests(probe.peer), 0);
    probe_close(&probe);
    (void) unlink(path);
}
END_TEST

SUITE(transport_rows)
{
    Suite *suite = suite_create("client/transport_rows");
    CASE_LOOP(suite, an_exchange_that_fails_tells_what_is_certain, sizeof rows / sizeof rows[0]);
    CASE_LOOP(suite, the_bytes_that_are_counted_are_those_that_the_peer_has, 5);
    CASE(suite, what_the_caller_refuses_in_the_hook_is_connected_but_never_sent);
    CASE(suite, a_cancel_that_comes_while_the_caller_is_asked_ends_a_sending_that_began);
    CASE(suite, a_question_without_a_caller_to_ask_is_counted_too);
    CASE(suite, a_cancel_that_comes_with_the_connection_sends_nothing);
    return suite;
}
