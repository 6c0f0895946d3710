/* transport_request_test.c - what the libcurl transport writes to the wire, over what it goes there, and what of the environment
 * it does not obey. */
#include "tests/client/transport_probe.h"
#include "tests/peer/words.h"

#include <limits.h>
#include <unistd.h>

/* ---- the request -------------------------------------------------------------------------------------------------- */

/* `wire` has <port> where the port stands. */
static const struct row {
    const char *name, *method, *path, *body; /* body NULL: none */
    struct transport_field fields[4];
    const char *wire;
} rows[] = {
    { .name = "POST",
      .method = "POST",
      .path = "/orders?a=b",
      .body = "{\"n\":1}",
      .fields = { { "Content-Type", "application/json" } },
      .wire = "POST /orders?a=b HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"n\":1}" },
    { .name = "POST of nothing, without any field unasked",
      .method = "POST",
      .path = "/",
      .body = "",
      .wire = "POST / HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "Content-Length: 0\r\n\r\n" },
    { .name = "GET",
      .method = "GET",
      .path = "/orders",
      .fields = { { "Accept", "text/plain" }, { "Prefer", "wait=5" } },
      .wire = "GET /orders HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "Accept: text/plain\r\nPrefer: wait=5\r\n\r\n" },
    { .name = "HEAD",
      .method = "HEAD",
      .path = "/orders",
      .wire = "HEAD /orders HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n\r\n" },
    { .name = "PUT",
      .method = "PUT",
      .path = "/orders/7",
      .body = "x",
      .wire = "PUT /orders/7 HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "Content-Length: 1\r\n\r\nx" },
    { .name = "DELETE without a body",
      .method = "DELETE",
      .path = "/orders/7",
      .wire =
          "DELETE /orders/7 HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n\r\n" },
    { .name = "a method that libcurl does not know",
      .method = "REPORT",
      .path = "/orders",
      .body = "x",
      .wire = "REPORT /orders HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "Content-Length: 1\r\n\r\nx" },
    { .name = "blanks only, which are no value",
      .method = "POST",
      .path = "/orders",
      .body = "x",
      .fields = { { "X-Blank", " \t" }, { "Content-Type", " " } },
      .wire = "POST /orders HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nUser-Agent: probe\r\nIdempotency-Key: k-1\r\n"
              "X-Blank:\r\nContent-Type:\r\nContent-Length: 1\r\n\r\nx" },
    { .name = "the path as it is, a field twice, one empty, the caller's own User-Agent",
      .method = "POST",
      .path = "/a/../b/./c%2Fd",
      .body = "x",
      .fields = { { "X-Note", "one" }, { "X-Note", "two" }, { "X-Empty", "" }, { "User-Agent", "mine" } },
      .wire = "POST /a/../b/./c%2Fd HTTP/1.1\r\nHost: 127.0.0.1:<port>\r\nIdempotency-Key: k-1\r\nX-Note: one\r\n"
              "X-Note: two\r\nX-Empty:\r\nUser-Agent: mine\r\nContent-Length: 1\r\n\r\nx" },
};

/* With the port's five digits in the place of <port>. */
static void wire_write(const char *wire, unsigned port, struct buf *out)
{
    const char *place = strstr(wire, "<port>");
    buf_append_bytes(out, wire, (size_t) (place - wire));
    buf_append_uint(out, port);
    buf_append_text(out, place + strlen("<port>"));
    buf_append_bytes(out, "", 1);
}

START_TEST(a_request_is_written_as_it_was_given_and_no_more)
{
    const struct row *row = &rows[_i];
    struct probe probe;
    struct buf wire;
    probe_open(&probe);
    probe_stop_clock();
    (void) snprintf(probe.url, sizeof probe.url, "http://127.0.0.1:%u%s", peer_port(probe.peer), row->path);
    for (int i = 0; i < 4 && row->fields[i].name != NULL; i++) {
        probe_field(&probe, row->fields[i].name, row->fields[i].value);
    }
    probe.request.method = row->method;
    probe.request.has_body = row->body != NULL;
    probe.request.body = row->body;
    probe.request.body_len = row->body != NULL ? strlen(row->body) : 0;
    static const struct peer_step bodyless[] = { DO(PEER_BODY), SAY("HTTP/1.1 204 No Content\r\n\r\n"), PEER_END };
    peer_script_default(probe.peer, bodyless);
    buf_init(&wire, 1 << 16);
    wire_write(row->wire, peer_port(probe.peer), &wire);
    /* Twice, and another one between: nothing of a request is left in the next one on the same handle. */
    for (unsigned n = 1; n <= 3; n++) {
        struct transport_request kept = probe.request;
        if (n == 2) {
            probe.request.method = "PATCH";
            probe.request.has_body = true;
            probe.request.body = "between";
            probe.request.body_len = 7;
            probe.request.field_count = 0;
        }
        probe_send(&probe);
        ck_assert_msg(probe.facts.answer.whole, "%s: %s", row->name, probe.facts.message);
        probe.request = kept;
        char *received = probe_received(&probe, n);
        ck_assert_msg(n == 2 || strcmp(received, wire.ptr) == 0, "%s: it was\n%s", row->name, received);
        free(received);
    }
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    buf_fini(&wire);
    probe_close(&probe);
}
END_TEST

START_TEST(a_large_body_goes_out_without_waiting_for_leave)
{
    enum { LEN = 3 * 1024 * 1024 };
    static const struct peer_step takes_pattern[] = { DO(PEER_BODY_PATTERN),
                                                      SAY("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
                                                      PEER_END };
    struct probe probe;
    char *body = malloc(LEN);
    probe_open(&probe);
    peer_pattern_write(body, LEN, 0);
    peer_script_default(probe.peer, takes_pattern);
    probe.request.body = body;
    probe.request.body_len = LEN;
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.answer.status, 201);
    ck_assert_uint_eq(probe.facts.bytes_sent, 114 + LEN); /* no Expect among them */
    free(body);
    probe_close(&probe);
}
END_TEST

START_TEST(an_answer_that_comes_before_the_whole_body_is_taken)
{
    enum { LEN = 32 * 1024 * 1024 };
    static const struct peer_step refuses[] = { SAY("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n"
                                                    "Connection: close\r\n\r\n"),
                                                DO(PEER_SHUTDOWN), DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    char *body = calloc(1, LEN);
    probe_open(&probe);
    peer_script_default(probe.peer, refuses);
    probe.request.body = body;
    probe.request.body_len = LEN;
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.answer.status, 413);
    ck_assert(probe.facts.answer.whole);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 1);
    free(body);
    probe_close(&probe);
}
END_TEST

/* ---- over what ---------------------------------------------------------------------------------------------------- */

START_TEST(a_unix_socket_stands_in_for_the_host)
{
    struct probe probe;
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s/nonbis-transport-%d.sock", P_tmpdir, (int) getpid());
    probe_open_unix(&probe, path);
    probe_stop_clock();
    for (unsigned n = 1; n <= 2; n++) {
        probe_send(&probe);
        ck_assert_msg(probe.facts.answer.whole, "%s", probe.facts.message);
        char *received = probe_received(&probe, n);
        ck_assert_str_eq(received, "POST /orders HTTP/1.1\r\nHost: orders.test\r\nUser-Agent: probe\r\n"
                                   "Idempotency-Key: k-1\r\nContent-Length: 2\r\n\r\n{}");
        free(received);
    }
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    peer_refuse(probe.peer);
    probe.request.fresh = true;
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.code, 7);
    ck_assert_uint_eq(probe.facts.hook_calls, 0);
    ck_assert_ptr_nonnull(strstr(probe.facts.message, "connecting to orders.test through its Unix socket: "));
    probe_close(&probe);
    (void) unlink(path);
}
END_TEST

START_TEST(a_dead_connection_over_a_unix_socket_is_one_sending_too)
{
    static const struct peer_step reads_and_closes[] = { DO(PEER_BODY), DO(PEER_CLOSE), PEER_END };
    struct probe probe;
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s/nonbis-transport-%d.sock", P_tmpdir, (int) getpid());
    probe_open_unix(&probe, path);
    probe_stop_clock();
    probe_send(&probe);
    peer_script_default(probe.peer, reads_and_closes);
    probe_send(&probe);
    ck_assert_uint_eq(probe.facts.hook_calls, 2);
    ck_assert_int_eq(probe.facts.code, 42);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2);
    probe_close(&probe);
    (void) unlink(path);
}
END_TEST

START_TEST(a_proxy_is_used_when_it_is_named_and_counts_as_one_sending)
{
    static const struct peer_step reads_and_closes[] = { DO(PEER_BODY), DO(PEER_CLOSE), PEER_END };
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    ck_assert_int_eq(setenv("no_proxy", "*", 1), 0);
    ck_assert_int_eq(probe.transport->set_text(probe.transport, NONBIS_CLIENT_PROXY, peer_url(probe.peer)), NONBIS_OK);
    probe_aim(&probe, "http://orders.test/orders");
    probe_send(&probe);
    ck_assert(probe.facts.answer.whole);
    char *received = probe_received(&probe, 1);
    ck_assert_str_eq(received, "POST http://orders.test/orders HTTP/1.1\r\nHost: orders.test\r\nUser-Agent: probe\r\n"
                               "Proxy-Connection: Keep-Alive\r\nIdempotency-Key: k-1\r\nContent-Length: 2\r\n\r\n{}");
    free(received);
    peer_script_default(probe.peer, reads_and_closes);
    probe_send(&probe);
    ck_assert_uint_eq(probe.facts.hook_calls, 2);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_proxy_that_refuses_a_tunnel_was_told_nothing_of_the_request)
{
    static const struct peer_step refuses[] = { SAY("HTTP/1.1 403 No\r\nContent-Length: 0\r\nX-Proxy: 1\r\n\r\n"),
                                                PEER_END };
    struct probe probe;
    probe_open(&probe);
    peer_script_default(probe.peer, refuses);
    ck_assert_int_eq(probe.transport->set_text(probe.transport, NONBIS_CLIENT_PROXY, peer_url(probe.peer)), NONBIS_OK);
    probe_aim(&probe, "https://orders.test/orders");
    probe_send(&probe);
    ck_assert_int_ne(probe.facts.code, 0);
    ck_assert_uint_eq(probe.facts.hook_calls, 0);
    ck_assert_uint_eq(probe.facts.bytes_sent, 0);
    ck_assert_int_eq(probe.facts.answer.status, 0);
    ck_assert_uint_eq(probe.facts.answer.head.len, 0);
    ck_assert_msg(strstr(probe.facts.message, "connecting to orders.test through the proxy: ") != NULL,
                  "it says \"%s\"", probe.facts.message);
    char *received = probe_received(&probe, 1);
    ck_assert_ptr_nonnull(strstr(received, "CONNECT orders.test:443 HTTP/1.1\r\n"));
    ck_assert_ptr_null(strstr(received, "Idempotency-Key"));
    free(received);
    probe_close(&probe);
}
END_TEST

START_TEST(proxies_and_passwords_of_the_environment_are_not_obeyed)
{
    struct probe probe;
    char home[] = P_tmpdir "/nonbis-home-XXXXXX", netrc[sizeof home + 8];
    ck_assert_ptr_nonnull(mkdtemp(home));
    (void) snprintf(netrc, sizeof netrc, "%s/.netrc", home);
    FILE *file = fopen(netrc, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("machine 127.0.0.1 login somebody password secret\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    ck_assert_int_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    ck_assert_int_eq(setenv("all_proxy", "http://127.0.0.1:1", 1), 0);
    (void) unsetenv("no_proxy");
    (void) unsetenv("NO_PROXY");
    probe_open(&probe);
    probe_send(&probe);
    ck_assert_msg(probe.facts.answer.whole, "%s", probe.facts.message);
    char *received = probe_received(&probe, 1);
    ck_assert_ptr_null(strstr(received, "Authorization"));
    free(received);
    (void) unlink(netrc);
    (void) rmdir(home);
    probe_close(&probe);
}
END_TEST

START_TEST(certificates_that_cannot_be_read_are_named_and_nothing_is_sent)
{
    static const struct {
        enum nonbis_client_text which;
        int code;
    } cases[] = { { NONBIS_CLIENT_CA_FILE, 77 }, { NONBIS_CLIENT_CERT_FILE, 58 } };
    static const struct peer_step silent[] = { DO(PEER_WAIT_END), PEER_END };
    struct probe probe;
    probe_open(&probe);
    peer_script_for_connection(probe.peer, 1, silent);
    (void) snprintf(probe.url, sizeof probe.url, "https://127.0.0.1:%u/orders", peer_port(probe.peer));
    ck_assert_int_eq(probe.transport->set_text(probe.transport, cases[_i].which, "/nonexistent/cert.pem"), NONBIS_OK);
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.code, cases[_i].code);
    ck_assert_uint_eq(probe.facts.hook_calls, 0);
    ck_assert_msg(strstr(probe.facts.message, "/nonexistent/cert.pem") != NULL, "it says \"%s\"", probe.facts.message);
    probe_close(&probe);
}
END_TEST

START_TEST(a_url_of_another_protocol_is_not_fetched)
{
    static const char *const urls[] = { "file:///etc/hostname", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x",
                                        "ws://127.0.0.1/x" };
    struct probe probe;
    probe_open(&probe);
    probe_aim(&probe, urls[_i]);
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.code, 1);
    ck_assert_uint_eq(probe.facts.hook_calls, 0);
    ck_assert_uint_eq(probe.facts.answer.body.len, 0);
    ck_assert_ptr_nonnull(strstr(probe.facts.message, "not a URL for this client"));
    probe_close(&probe);
}
END_TEST

START_TEST(a_password_in_a_url_is_in_no_message)
{
    struct probe probe;
    probe_open(&probe);
    peer_refuse(probe.peer);
    (void) snprintf(probe.url, sizeof probe.url, "http://somebody:secret@127.0.0.1:%u/orders?token=secret",
                    peer_port(probe.peer));
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.code, 7);
    ck_assert_ptr_null(strstr(probe.facts.message, "secret"));
    ck_assert_ptr_nonnull(strstr(probe.facts.message, "connecting to 127.0.0.1:"));
    probe_close(&probe);
}
END_TEST

START_TEST(a_text_that_cannot_be_meant_is_refused)
{
    static char long_path[200];
    static const struct {
        enum nonbis_client_text which;
        const char *text;
        int result;
    } cases[] = {
        { NONBIS_CLIENT_USER_AGENT, "till/7 (shop 12)", NONBIS_OK },
        { NONBIS_CLIENT_USER_AGENT, "a\r\nX-Evil: 1", NONBIS_ERROR_FIELD },
        { NONBIS_CLIENT_USER_AGENT, NULL, NONBIS_ERROR_MISUSE },
        { (enum nonbis_client_text) 0, "x", NONBIS_ERROR_MISUSE },
        { (enum nonbis_client_text) 7, "x", NONBIS_ERROR_MISUSE },
        { NONBIS_CLIENT_UNIX_SOCKET, long_path, NONBIS_ERROR_RANGE },
        { NONBIS_CLIENT_UNIX_SOCKET, "", NONBIS_OK },
        { NONBIS_CLIENT_PROXY, "http://proxy.test:3128", NONBIS_OK },
        { NONBIS_CLIENT_PROXY, "socks5h://proxy.test", NONBIS_OK },
        { NONBIS_CLIENT_PROXY, "proxy.test:3128", NONBIS_OK },
        { NONBIS_CLIENT_PROXY, "http://proxy.test:port", NONBIS_ERROR_URL },
        { NONBIS_CLIENT_PROXY, "", NONBIS_OK },
        { NONBIS_CLIENT_CA_FILE, "/etc/ssl/own.pem", NONBIS_OK },
        { NONBIS_CLIENT_CA_FILE, "/etc/ssl/\nown.pem", NONBIS_ERROR_RANGE },
    };
    int error = 0;
    memset(long_path, 'x', sizeof long_path - 1);
    struct transport *transport = transport_curl_new(&error);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(transport->set_text(transport, cases[i].which, cases[i].text) == cases[i].result, "case %zu", i);
    }
    transport->free(transport);
}
END_TEST

START_TEST(who_asks_is_told_unless_the_caller_says_otherwise)
{
    struct probe probe;
    probe_open(&probe);
    ck_assert_int_eq(probe.transport->set_text(probe.transport, NONBIS_CLIENT_USER_AGENT, ""), NONBIS_OK);
    probe_send(&probe);
    char *received = probe_received(&probe, 1);
    ck_assert_ptr_nonnull(strstr(received, "\r\nUser-Agent: libnonbis/" NONBIS_VERSION "\r\n"));
    free(received);
    probe_close(&probe);
}
END_TEST

SUITE(transport_request)
{
    Suite *suite = suite_create("client/transport_request");
    CASE_LOOP(suite, a_request_is_written_as_it_was_given_and_no_more, sizeof rows / sizeof rows[0]);
    CASE(suite, a_large_body_goes_out_without_waiting_for_leave);
    CASE(suite, an_answer_that_comes_before_the_whole_body_is_taken);
    CASE(suite, a_unix_socket_stands_in_for_the_host);
    CASE(suite, a_dead_connection_over_a_unix_socket_is_one_sending_too);
    CASE(suite, a_proxy_is_used_when_it_is_named_and_counts_as_one_sending);
    CASE(suite, a_proxy_that_refuses_a_tunnel_was_told_nothing_of_the_request);
    CASE(suite, proxies_and_passwords_of_the_environment_are_not_obeyed);
    CASE_LOOP(suite, certificates_that_cannot_be_read_are_named_and_nothing_is_sent, 2);
    CASE_LOOP(suite, a_url_of_another_protocol_is_not_fetched, 4);
    CASE(suite, a_password_in_a_url_is_in_no_message);
    CASE(suite, a_text_that_cannot_be_meant_is_refused);
    CASE(suite, who_asks_is_told_unless_the_caller_says_otherwise);
    return suite;
}
