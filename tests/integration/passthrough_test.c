/* passthrough_test.c - what is not protected passes through (docs/contract.md sections 1, 5 and 10): status, fields and body bytes as they
 * came, the connection in step afterwards, and what nonbis adds and takes away. passthrough_flow_test.c has size and slowness,
 * passthrough_faults_test.c what breaks. */
#include "tests/support/rig.h"

#include <unistd.h>

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define HOST "Host: test.example\r\n"
#define RAW(text) (text), sizeof(text) - 1

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };

static struct http_answer request_raw(const char *address, const char *bytes)
{
    int fd = http_connect(address);
    ck_assert(http_send(fd, bytes, strlen(bytes)));
    struct http_answer answer = http_receive(fd, strncmp(bytes, "HEAD", 4) == 0, NULL);
    close(fd);
    return answer;
}

/* The n-th request as the handler received it, NUL-terminated; the caller frees it. */
static char *handler_saw(struct peer *peer, unsigned n)
{
    struct buf request;
    buf_init(&request, 1 << 20);
    ck_assert(peer_request(peer, n, &request));
    buf_append_bytes(&request, "", 1);
    return request.ptr;
}

/* --- status, fields, bodies --- */

struct passing {
    const char *name;
    const char *request; /* without Host and the blank line */
    const char *body;
    size_t body_len;
    const char *answer; /* of the handler */
    size_t answer_len;
    bool handler_closes;
    int status;
    const char *answer_body;
    size_t answer_body_len;
    const char *answer_line; /* a line of its head; "" for none */
    bool closes;             /* nonbis ends the connection with the answer */
    const char *seen_line;   /* how the request begins at the handler */
    const char *seen_body;   /* as it is framed there; it may hold NUL */
    size_t seen_body_len;
};

#define NO_BODY "", 0
#define ANSWER(text) RAW(text), false
#define ANSWER_AND_CLOSE(text) RAW(text), true

static const struct passing passings[] = {
    { "GET", "GET /a%7Eb//c/?q=%20 HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
      200, RAW("hello"), "Content-Length: 5", false, "GET /a%7Eb//c/?q=%20 HTTP/1.1\r\n", NO_BODY },
    { "NUL and other bytes down", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na\0\xff\r\n\0"), 200, RAW("a\0\xff\r\n\0"),
      "Content-Length: 6", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "chunks down", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\0b\r\n2\r\ncd\r\n0\r\nTrailer: t\r\n\r\n"),
      200, RAW("a\0bcd"), "Transfer-Encoding: chunked", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "chunks down, none of them", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 200, NO_BODY,
      "Transfer-Encoding: chunked", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "a body that ends with the connection", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER_AND_CLOSE("HTTP/1.1 200 OK\r\n\r\nto the end"), 200, RAW("to the end"), "Transfer-Encoding: chunked",
      false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "an empty body", "GET / HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200,
      NO_BODY, "Content-Length: 0", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "206", "GET / HTTP/1.1\r\nRange: bytes=0-1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nhe"), 206, RAW("he"),
      "Content-Range: bytes 0-1/9", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "302", "GET / HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"),
      302, NO_BODY, "Location: /x", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "404", "GET / HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"), 404, RAW("no"),
      "", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "401 with its fields", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"), 401, NO_BODY,
      "WWW-Authenticate: Basic realm=\"a\"", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "502 of the handler", "GET / HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 502 Bad\r\nContent-Length: 1\r\n\r\nx"),
      502, RAW("x"), "", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "a status of our own century", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 599 Odd\r\nContent-Length: 1\r\n\r\nx"), 599, RAW("x"), "", false, "GET / HTTP/1.1\r\n",
      NO_BODY },
    { "1xx are dropped", "GET / HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hint\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
             "1\r\n\r\nx"),
      200, RAW("x"), "", false, "GET / HTTP/1.1\r\n", NO_BODY },
    { "HEAD", "HEAD /h HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: \"e\"\r\n\r\n"),
      200, NO_BODY, "Content-Length: 1234", false, "HEAD /h HTTP/1.1\r\n", NO_BODY },
    { "HEAD without a length", "HEAD /h HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 200 OK\r\nETag: \"e\"\r\n\r\n"), 200,
      NO_BODY, "ETag: \"e\"", true, "HEAD /h HTTP/1.1\r\n", NO_BODY },
    { "204", "DELETE /x HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 204 Gone\r\nX-A: b\r\n\r\n"), 204, NO_BODY, "X-A: b",
      false, "DELETE /x HTTP/1.1\r\n", NO_BODY },
    { "304", "GET / HTTP/1.1\r\nIf-None-Match: \"e\"\r\n", NO_BODY,
      ANSWER("HTTP/1.1 304 Same\r\nETag: \"e\"\r\nContent-Length: 9\r\n\r\n"), 304, NO_BODY, "ETag: \"e\"", false,
      "GET / HTTP/1.1\r\n", NO_BODY },
    { "304 without a length", "GET / HTTP/1.1\r\n", NO_BODY, ANSWER("HTTP/1.1 304 Same\r\nETag: \"e\"\r\n\r\n"), 304,
      NO_BODY, "ETag: \"e\"", true, "GET / HTTP/1.1\r\n", NO_BODY },
    { "OPTIONS *", "OPTIONS * HTTP/1.1\r\n", NO_BODY,
      ANSWER("HTTP/1.1 200 OK\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n"), 200, NO_BODY, "Allow: GET", false,
      "OPTIONS * HTTP/1.1\r\n", NO_BODY },
    { "absolute form", "GET http://test.example/a?b HTTP/1.1\r\n", NO_BODY, ANSWER(OK_ANSWER), 200, RAW("ok"), "",
      false, "GET /a?b HTTP/1.1\r\n", NO_BODY },
    { "another method", "PROPFIND /dav HTTP/1.1\r\nDepth: 1\r\n", NO_BODY, ANSWER(OK_ANSWER), 200, RAW("ok"), "", false,
      "PROPFIND /dav HTTP/1.1\r\n", NO_BODY },
    { "PUT", "PUT /x HTTP/1.1\r\nContent-Length: 7\r\n", RAW("a\0b\xff\r\n\0"), ANSWER(OK_ANSWER), 200, RAW("ok"), "",
      false, "PUT /x HTTP/1.1\r\n", RAW("a\0b\xff\r\n\0") },
    { "an empty PUT", "PUT /x HTTP/1.1\r\nContent-Length: 0\r\n", NO_BODY, ANSWER(OK_ANSWER), 200, RAW("ok"), "", false,
      "PUT /x HTTP/1.1\r\n", NO_BODY },
    { "DELETE with a body", "DELETE /x HTTP/1.1\r\nContent-Length: 3\r\n", RAW("abc"), ANSWER(OK_ANSWER), 200,
      RAW("ok"), "", false, "DELETE /x HTTP/1.1\r\n", RAW("abc") },
    { "GET with a body", "GET /x HTTP/1.1\r\nContent-Length: 3\r\n", RAW("abc"), ANSWER(OK_ANSWER), 200, RAW("ok"), "",
      false, "GET /x HTTP/1.1\r\n", RAW("abc") },
    { "POST without a body", "POST /x HTTP/1.1\r\n", NO_BODY, ANSWER(OK_ANSWER), 200, RAW("ok"), "", false,
      "POST /x HTTP/1.1\r\n", NO_BODY },
    { "chunks up", "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
      RAW("3\r\na\0b\r\n4;e=f\r\ndefg\r\n0\r\nX-T: t\r\n\r\n"), ANSWER(OK_ANSWER), 200, RAW("ok"), "", true,
      "POST /x HTTP/1.1\r\n", RAW("3\r\na\0b\r\n4\r\ndefg\r\n0\r\n\r\n") },
    { "chunks up, none of them", "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", RAW("0\r\n\r\n"),
      ANSWER(OK_ANSWER), 200, RAW("ok"), "", true, "PUT /x HTTP/1.1\r\n", RAW("0\r\n\r\n") },
    { "chunks both ways", "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", RAW("1\r\na\r\n0\r\n\r\n"),
      ANSWER("HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"), 201, RAW("xy"),
      "Transfer-Encoding: chunked", true, "PUT /x HTTP/1.1\r\n", RAW("1\r\na\r\n0\r\n\r\n") },
    { "a client of HTTP/1.0 gets chunks as a body to the end", "GET / HTTP/1.0\r\n", NO_BODY,
      ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"), 200, RAW("xy"), "", true,
      "GET / HTTP/1.1\r\n", NO_BODY },
    { "the client closes", "GET / HTTP/1.1\r\nConnection: close\r\n", NO_BODY, ANSWER(OK_ANSWER), 200, RAW("ok"),
      "Connection: close", true, "GET / HTTP/1.1\r\n", NO_BODY },
};

/* The request and, where the connection stays, a second one right behind it: its answer must follow in step. */
static void send_passing(int fd, const struct passing *row)
{
    struct buf bytes;
    buf_init(&bytes, 1 << 16);
    buf_printf(&bytes, "%s" HOST "\r\n", row->request);
    buf_append_bytes(&bytes, row->body, row->body_len);
    if (!row->closes) {
        buf_printf(&bytes, "GET /second HTTP/1.1\r\n" HOST "\r\n");
    }
    ck_assert(http_send(fd, bytes.ptr, bytes.len));
    buf_fini(&bytes);
}

static void expect_seen(struct peer *peer, const struct passing *row)
{
    struct buf request;
    buf_init(&request, 1 << 16);
    ck_assert(peer_request(peer, 1, &request));
    size_t line_len = strlen(row->seen_line);
    ck_assert_msg(request.len > line_len && memcmp(request.ptr, row->seen_line, line_len) == 0,
                  "%s: the handler saw: %s", row->name, request.ptr);
    const char *end = memmem(request.ptr, request.len, "\r\n\r\n", 4);
    ck_assert_ptr_nonnull(end);
    size_t body_len = request.len - (size_t) (end + 4 - request.ptr);
    ck_assert_msg(body_len == row->seen_body_len && memcmp(end + 4, row->seen_body, body_len) == 0,
                  "%s: another body of %zu bytes", row->name, body_len);
    buf_fini(&request);
}

START_TEST(status_fields_and_body_pass_unchanged_and_the_connection_stays_in_step)
{
    const struct passing *row = &passings[_i];
    const struct peer_step script[] = { { PEER_BODY, NULL, 0 },
                                        { PEER_SEND_BYTES, row->answer, row->answer_len },
                                        { row->handler_closes ? PEER_CLOSE : PEER_STOP, NULL, 0 },
                                        PEER_END };
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 1, script);
    int fd = http_connect(rig.address);
    send_passing(fd, row);
    struct http_answer answer = http_receive(fd, strncmp(row->request, "HEAD", 4) == 0, NULL);
    ck_assert_msg(answer.status == row->status && answer.whole, "%s: %d", row->name, answer.status);
    ck_assert_msg(answer.body_len == row->answer_body_len &&
                      memcmp(answer.body, row->answer_body, answer.body_len) == 0,
                  "%s: another body of %zu bytes", row->name, answer.body_len);
    ck_assert_msg(strstr(answer.head, row->answer_line) != NULL, "%s: no %s in %s", row->name, row->answer_line,
                  answer.head);
    ck_assert_int_eq(http_field_count(&answer, "Idempotency-Status"), 0);
    ck_assert_int_eq(http_field_count(&answer, "Date"), 1);
    expect_seen(rig.peer, row);
    if (row->closes) {
        ck_assert(answer.closed || http_closes(fd));
    } else {
        struct http_answer second = http_receive(fd, false, NULL);
        ck_assert_msg(second.status == 200 && strcmp(second.body, "ok") == 0, "%s: out of step: %d", row->name,
                      second.status);
        http_answer_free(&second);
        ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    }
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

/* --- fields --- */

START_TEST(hop_by_hop_fields_and_ours_stay_behind_on_the_way_to_the_handler)
{
    struct rig rig;
    rig_start(&rig, only_orders);
    struct http_answer answer = request_raw(
        rig.address,
        "GET /x HTTP/1.1\r\n" HOST "Connection: X-Hop, upgrade\r\nX-Hop: 1\r\nUpgrade: websocket\r\nTE: trailers\r\n"
        "Keep-Alive: timeout=9\r\nTrailer: X\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n"
        "Nonbis-Command-Id: forged\r\nnonbis-anything: x\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: "
        "evil.example\r\n"
        "X-Forwarded-Proto: https\r\nVia: 1.0 before\r\nIdempotency-Key: k-1\r\nAuthorization: Bearer a\r\n"
        "traceparent: 00-1-2-01\r\nCookie: a=b; c=d\r\nX-Twice: 1\r\nX-Twice: 2\r\nAccept: */*\r\n\r\n");
    RIG_EXPECT(answer, 200, "");
    char *saw = handler_saw(rig.peer, 1);
    char *via = strstr(saw, "Via: 1.0 before, 1.1 nonbis-");
    ck_assert_msg(via != NULL, "%s", saw);
    memset(via + strlen("Via: 1.0 before, 1.1 nonbis-"), '#', 8); /* the store's id, 8 hex digits */
    ck_assert_str_eq(saw,
                     "GET /x HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k-1\r\nAuthorization: Bearer a\r\n"
                     "traceparent: 00-1-2-01\r\nCookie: a=b; c=d\r\nX-Twice: 1\r\nX-Twice: 2\r\nAccept: */*\r\n"
                     "Via: 1.0 before, 1.1 nonbis-########\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                     "X-Forwarded-Host: test.example\r\n\r\n");
    free(saw);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(hop_by_hop_fields_and_what_only_nonbis_may_say_stay_behind_on_the_way_to_the_client)
{
    static const struct peer_step script[] = {
        { PEER_SEND,
          "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nUpgrade: "
          "h2c\r\nProxy-Authenticate: Basic\r\n"
          "Trailer: X\r\nTE: x\r\nIdempotency-Status: executed\r\nIdempotent-Replayed: true\r\nIdempotency-Expires: "
          "never\r\n"
          "Nonbis-Outcome: completed\r\nNonbis-X: y\r\nX-Empty:\r\nX-Twice: 1\r\nX-Twice: 2\r\nSet-Cookie: "
          "a=b\r\nSet-Cookie: c=d\r\n"
          "Retry-After: 7\r\nLink: </a>; rel=x\r\nCache-Control: private\r\nServer: s\r\nAge: 3\r\nContent-Length: "
          "2\r\n\r\nok",
          0 },
        PEER_END
    };
    static const char *const gone[] = { "Connection",
                                        "X-Hop",
                                        "Keep-Alive",
                                        "Upgrade",
                                        "Proxy-Authenticate",
                                        "Trailer",
                                        "TE",
                                        "Idempotency-Status",
                                        "Idempotent-Replayed",
                                        "Idempotency-Expires",
                                        "Nonbis-Outcome",
                                        "Nonbis-X" };
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_default(rig.peer, script);
    struct http_answer answer = request_raw(rig.address, "GET /x HTTP/1.1\r\n" HOST "\r\n");
    RIG_EXPECT(answer, 200, "");
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        ck_assert_msg(http_field_count(&answer, gone[i]) == 0, "%s came through: %s", gone[i], answer.head);
    }
    ck_assert_ptr_nonnull(strstr(answer.head,
                                 "X-Twice: 1\r\nX-Twice: 2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nRetry-After: 7\r\n"
                                 "Link: </a>; rel=x\r\nCache-Control: private\r\nServer: s\r\nAge: 3"));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(an_upgrade_is_dropped_and_a_handler_that_switches_protocols_has_failed)
{
    static const struct peer_step switches[] = {
        { PEER_SEND, "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 0 }, PEER_END
    };
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_default(rig.peer, switches);
    struct http_answer answer =
        request_raw(rig.address, "GET /x HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: x\r\n\r\n");
    RIG_EXPECT(answer, 502, "");
    ck_assert_ptr_nonnull(strstr(answer.body, "\"type\":\"urn:nonbis:problem:upstream-failed\""));
    char *saw = handler_saw(rig.peer, 1);
    ck_assert_ptr_null(strcasestr(saw, "upgrade"));
    free(saw);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

/* --- the marker --- */

struct marker {
    const char *request, *word;
};
static const struct marker markers[] = {
    { "POST /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\nContent-Length: 1\r\n\r\nx", "ignored" },
    { "PATCH /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\nContent-Length: 1\r\n\r\nx", "ignored" },
    { "PUT /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\nContent-Length: 1\r\n\r\nx", "ignored" },
    { "DELETE /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n", "ignored" },
    { "POST /x HTTP/1.1\r\n" HOST "idempotency-key: \"not a key\r\nContent-Length: 1\r\n\r\nx", "ignored" },
    { "GET /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n", "" },
    { "HEAD /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n", "" },
    { "OPTIONS /x HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n", "" },
    { "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", "" },
};

START_TEST(a_keyed_unsafe_request_on_an_open_route_is_told_that_its_key_was_ignored)
{
    struct rig rig;
    rig_start(&rig, only_orders);
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        for (int repeat = 0; repeat < 2; repeat++) {
            struct http_answer answer = request_raw(rig.address, markers[i].request);
            RIG_EXPECT(answer, 200, markers[i].word);
            http_answer_free(&answer);
        }
        ck_assert_uint_eq(peer_count_requests(rig.peer), 2 * (unsigned) (i + 1)); /* a repeat is forwarded again */
    }
    rig_end(&rig);
}
END_TEST

/* --- routes --- */

struct routed {
    const char *line;
    bool is_protected; /* a request without a key is refused */
};
static const struct routed routeds[] = {
    { "POST /orders", true },   { "POST /orders/", true },    { "POST /orders/7", true }, { "POST /orders?x", true },
    { "POST //orders", true },  { "POST /%6frders/7", true }, { "POST /ordersX", false }, { "POST /Orders", false },
    { "PATCH /orders", false }, { "PUT /exact", true },       { "PUT /exact/7", false },  { "PUT /exact/", true },
    { "POST /exact", false },   { "DELETE /any/7", true },    { "GET /any", true },       { "GET /any/open/7", false },
    { "POST /any/open", true }, { "POST /pre-1", true },      { "POST /pre", false },     { "GET /", false },
    { "POST /", false },
};

START_TEST(routes_decide_by_method_and_normal_path_and_the_first_match_wins)
{
    static const char *const routes[] = { "--store", "memory",     "--route", "POST /orders/*",
                                          "--route", "PUT /exact", "--route", "GET /any/open/* key=optional",
                                          "--route", "* /any/*",   "--route", "POST /pre-*",
                                          NULL };
    struct rig rig;
    unsigned passed = 0;
    rig_start(&rig, routes);
    for (size_t i = 0; i < sizeof routeds / sizeof routeds[0]; i++) {
        char request[256];
        (void) snprintf(request, sizeof request, "%s HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", routeds[i].line);
        struct http_answer answer = request_raw(rig.address, request);
        ck_assert_msg(answer.status == (routeds[i].is_protected ? 400 : 200), "%s: %d", routeds[i].line, answer.status);
        passed += routeds[i].is_protected ? 0 : 1;
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), passed);
    rig_end(&rig);
}
END_TEST

START_TEST(where_a_key_is_optional_a_request_without_one_passes_through)
{
    static const char *const optional[] = { "--store", "memory", "--route", "POST /orders/* key=optional", NULL };
    struct rig rig;
    rig_start(&rig, optional);
    for (unsigned i = 1; i <= 2; i++) {
        struct http_answer open = http_request(rig.address, "POST", "/orders", NULL, "x");
        RIG_EXPECT(open, 200, "");
        ck_assert_int_eq(http_field_count(&open, "Link"), 0);
        ck_assert_uint_eq(peer_count_requests(rig.peer), i);
        http_answer_free(&open);
    }
    char *saw = handler_saw(rig.peer, 1);
    ck_assert_ptr_null(strcasestr(saw, "Nonbis-Command-Id"));
    free(saw);
    struct http_answer first = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(first, 200, "executed");
    struct http_answer again = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(again, 200, "replayed");
    struct http_answer malformed = http_post(rig.address, "/orders", "\"k", "x"); /* never taken for "absent" */
    RIG_EXPECT(malformed, 400, "refused");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    http_answer_free(&first);
    http_answer_free(&again);
    http_answer_free(&malformed);
    rig_end(&rig);
}
END_TEST

struct own {
    const char *line;
    int status;
};
static const struct own owns[] = {
    { "GET /_nonbis", 404 },
    { "GET /_nonbis/", 404 },
    { "GET /_nonbis/x", 404 },
    { "POST /_nonbis/x", 404 },
    { "DELETE /_nonbis/x?y", 404 },
    { "GET /%5Fnonbis/x", 404 },
    { "GET /%5fnonbis/x", 404 },
    { "GET /_%6Eonbis/x", 404 },
    { "GET //_nonbis/x", 404 },
    { "GET /_nonbis//x", 404 },
    { "GET /_nonbis/../x", 400 },
    { "GET /x/../_nonbis/y", 400 },
    { "GET /_nonbis%2Fx", 400 },
    { "GET /./_nonbis/x", 400 },
    { "HEAD /_nonbis/x", 404 },
    { "OPTIONS /_nonbis/x", 404 },
    { "GET http://test.example/_nonbis/x", 404 },
};

START_TEST(our_own_paths_are_never_forwarded)
{
    struct rig rig;
    rig_start(&rig, only_orders);
    for (size_t i = 0; i < sizeof owns / sizeof owns[0]; i++) {
        char request[256];
        (void) snprintf(request, sizeof request, "%s HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", owns[i].line);
        struct http_answer answer = request_raw(rig.address, request);
        ck_assert_msg(answer.status == owns[i].status, "%s: %d", owns[i].line, answer.status);
        ck_assert(http_field_is(&answer, "Content-Type", "application/problem+json"));
        if (owns[i].status == 404 && answer.body_len > 0) {
            ck_assert_ptr_nonnull(strstr(answer.body, "\"type\":\"urn:nonbis:problem:not-found\""));
        }
        http_answer_free(&answer);
    }
    struct http_answer other = http_request(rig.address, "GET", "/_nonbisx", NULL, NULL);
    RIG_EXPECT(other, 200, "");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&other);
    rig_end(&rig);
}
END_TEST

SUITE(passthrough)
{
    Suite *suite = suite_create("integration/passthrough");
    CASE_LOOP(suite, status_fields_and_body_pass_unchanged_and_the_connection_stays_in_step,
              sizeof passings / sizeof passings[0]);
    CASE(suite, hop_by_hop_fields_and_ours_stay_behind_on_the_way_to_the_handler);
    CASE(suite, hop_by_hop_fields_and_what_only_nonbis_may_say_stay_behind_on_the_way_to_the_client);
    CASE(suite, an_upgrade_is_dropped_and_a_handler_that_switches_protocols_has_failed);
    CASE(suite, a_keyed_unsafe_request_on_an_open_route_is_told_that_its_key_was_ignored);
    CASE(suite, routes_decide_by_method_and_normal_path_and_the_first_match_wins);
    CASE(suite, where_a_key_is_optional_a_request_without_one_passes_through);
    CASE(suite, our_own_paths_are_never_forwarded);
    return suite;
}
