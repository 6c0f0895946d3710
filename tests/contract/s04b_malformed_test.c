/* s04b_malformed_test.c - docs/contract.md section 4, 4.1 to 4.3: what is no request, or one that two programs could read in two ways. */
#include "tests/contract/scene.h"

#include <sys/socket.h>
#include <unistd.h>

#define RAW(bytes) (bytes), sizeof(bytes) - 1
#define POST "POST /orders HTTP/1.1\r\n"
#define HOST "Host: test.example\r\n"
#define KEY "Idempotency-Key: 4.1\r\n"
#define ONE "Content-Length: 1\r\n"
#define END "\r\nx"

struct malformed_row {
    const char *name;
    const char *bytes;
    size_t len;
    int status;
};

/* What nonbisd finds itself, and answers with a problem. */
static const struct malformed_row found[] = {
    { "no Host", RAW(POST KEY ONE END), 400 },
    { "two Hosts", RAW(POST HOST HOST KEY ONE END), 400 },
    { "an empty Host", RAW(POST "Host:\r\n" KEY ONE END), 400 },
    { "a Host with a path", RAW(POST "Host: a/b\r\n" KEY ONE END), 400 },
    { "a Host with a user", RAW(POST "Host: u@a\r\n" KEY ONE END), 400 },
    { "two Content-Lengths", RAW(POST HOST KEY ONE ONE END), 400 },
    { "two Transfer-Encodings",
      RAW(POST HOST KEY "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"), 400 },
    { "two Content-Types", RAW(POST HOST KEY ONE "Content-Type: a/b\r\nContent-Type: a/b\r\n" END), 400 },
    { "two Content-Encodings", RAW(POST HOST KEY ONE "Content-Encoding: a\r\nContent-Encoding: b\r\n" END), 400 },
    { "two Authorizations", RAW(POST HOST KEY ONE "Authorization: a\r\nauthorization: a\r\n" END), 400 },
    { "a control byte in a name", RAW(POST HOST KEY ONE "X\x01Y: a\r\n" END), 400 },
    { "a control byte in a value", RAW(POST HOST KEY ONE "X: a\x1f\r\n" END), 400 },
    { "DEL in a key", RAW(POST HOST "Idempotency-Key: a\x7f\r\n" ONE END), 400 },
    { "a control byte in the target", RAW("POST /orders\x01 HTTP/1.1\r\n" HOST KEY ONE END), 400 },
    { "a name that is no token", RAW(POST HOST KEY ONE "X[]: a\r\n" END), 400 },
    { "a blank before the colon", RAW(POST HOST KEY "Content-Length : 1\r\n" END), 400 },
    { "Connection names the key", RAW(POST HOST KEY ONE "Connection: Idempotency-Key\r\n" END), 400 },
    { "Connection names a guarded field", RAW(POST HOST KEY ONE "Connection: close, X-API-Key\r\n" END), 400 },
    { "Connection names Content-Type", RAW(POST HOST KEY ONE "Connection: content-type\r\n" END), 400 },
    { "Connection names Host", RAW(POST HOST KEY ONE "Connection: Host\r\n" END), 400 },
    { "no framing, POST", RAW(POST HOST KEY "\r\n"), 411 },
    { "no framing, PATCH", RAW("PATCH /orders HTTP/1.1\r\n" HOST KEY "\r\n"), 411 },
    { "a method in small letters", RAW("post /orders HTTP/1.1\r\n" HOST KEY ONE END), 501 },
    { "a method with one small letter", RAW("POSt /orders HTTP/1.1\r\n" HOST KEY ONE END), 501 },
    { "CONNECT", RAW("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), 501 },
    { "TRACE", RAW("TRACE / HTTP/1.1\r\n" HOST "\r\n"), 501 },
    { "gzip as a transfer coding", RAW(POST HOST KEY "Transfer-Encoding: gzip\r\n\r\n"), 501 },
    { "chunked not alone", RAW(POST HOST KEY "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501 },
    { "two framings", RAW(POST HOST KEY ONE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
    /* 4.2 */
    { "a longer name than the key's", RAW(POST HOST KEY ONE "Idempotency-Key-2: a\r\n" END), 400 },
    { "a folded key", RAW(POST HOST "Idempotency-Key: a\r\n b\r\n" ONE END), 400 },
    { "a bad percent sign", RAW("POST /orders/%g1 HTTP/1.1\r\n" HOST KEY ONE END), 400 },
    { "a percent sign at the end", RAW("POST /orders% HTTP/1.1\r\n" HOST KEY ONE END), 400 },
    { "a bad percent sign, unprotected", RAW("GET /orders/%1 HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { "another expectation", RAW(POST HOST KEY ONE "Expect: 100-continue, x\r\n" END), 400 },
    { "another expectation, unprotected", RAW("GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n"), 400 },
    { "bare LF in the head", RAW(POST HOST KEY "X: a\n" ONE END), 400 },
    { "NUL in the head", RAW(POST HOST KEY "X: a\0b\r\n" ONE END), 400 },
    { "a folded line", RAW(POST HOST KEY "X: a\r\n b\r\n" ONE END), 400 },
    { "an empty field name", RAW(POST HOST KEY ONE ": a\r\n" END), 400 },
};

/* A page of the library's may be followed by bytes of its own: where Content-Length is no number it writes the head of its page twice. */
static void expect_closes(int fd, const struct malformed_row *row, bool at_once)
{
    char rest[256];
    ssize_t len = recv(fd, rest, sizeof rest, MSG_WAITALL);
    ck_assert_msg(at_once ? len <= 0 : len < (ssize_t) sizeof rest, "%s: the connection goes on", row->name);
    ck_assert_msg(len <= 0 || memmem(rest, (size_t) len, "HTTP/1.1 2", 10) == NULL, "%s: more was answered", row->name);
}

/* Neither it nor what is behind it reaches the handler. */
static void expect_refused(const struct malformed_row *row, bool by_problem)
{
    static const char behind[] = "GET /behind HTTP/1.1\r\nHost: test.example\r\n\r\n";
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, row->bytes, row->len));
    (void) http_send(fd, behind, sizeof behind - 1);
    const struct http_answer *answer = keep_answer(http_receive(fd, false, NULL));
    ck_assert_msg(answer->status == row->status, "%s: expected %d, got %d: %s", row->name, row->status, answer->status,
                  answer->body);
    if (by_problem) {
        EXPECT_PROBLEM(answer, row->status, "", "request-malformed");
        ck_assert_str_eq(member_of(answer, "executed"), "\"unknown\"");
        ck_assert_str_eq(member_of(answer, "retryable"), "false");
    }
    expect_closes(fd, row, by_problem);
    close(fd);
    ck_assert_msg(peer_count_requests(scene.peer) == 0, "%s: it was forwarded: %s", row->name, handler_saw(1));
}

START_TEST(rule_4_1_what_is_malformed_is_refused_and_the_connection_closed)
{
    expect_refused(&found[_i], true);
}
END_TEST

START_TEST(rule_4_1_a_body_without_framing_is_refused_on_a_protected_route_only)
{
    EXPECT(ASK_RAW("PUT /open HTTP/1.1\r\n" HOST "\r\n"), 200, "");
    EXPECT(ASK_RAW("POST /open HTTP/1.1\r\n" HOST "\r\n"), 200, "");
    EXPECT_PROBLEM(ASK_RAW("POST /pay HTTP/1.1\r\n" HOST "\r\n"), 411, "", "request-malformed");
    EXPECT(ASK_RAW("DELETE /any/1 HTTP/1.1\r\n" HOST "Idempotency-Key: 4.1-delete\r\n\r\n"), 200, "executed");
}
END_TEST

START_TEST(rule_4_1_what_is_too_long_is_told_as_such)
{
    char padding[9001];
    memset(padding, 'x', sizeof padding - 1);
    padding[sizeof padding - 1] = '\0';
    const char *target = text("POST /%.2500s?%.1600s HTTP/1.1\r\n" HOST KEY ONE END, padding, padding);
    EXPECT_PROBLEM(ask_raw(target, strlen(target)), 414, "", "request-malformed");
    char *head = malloc(10000);
    int len = snprintf(head, 10000, "%sX: %s\r\n%s", POST HOST KEY ONE, padding, END);
    EXPECT_PROBLEM(ask_raw(head, (size_t) len), 431, "", "request-malformed");
    free(head);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_4_2_a_target_has_4096_bytes_at_most)
{
    char padding[4097];
    memset(padding, 'x', sizeof padding - 1);
    padding[sizeof padding - 1] = '\0';
    for (int i = 0; i < 2; i++) { /* protected or not */
        const char *start = i == 0 ? "POST" : "PUT";
        char *bytes = malloc(5000);
        int len =
            snprintf(bytes, 5000, "%s /%.4095s HTTP/1.1\r\n" HOST "Idempotency-Key: 4.2-t\r\n" ONE END, start, padding);
        EXPECT(ask_raw(bytes, (size_t) len), 200, i == 0 ? "executed" : "ignored");
        len =
            snprintf(bytes, 5000, "%s /%.4096s HTTP/1.1\r\n" HOST "Idempotency-Key: 4.2-t\r\n" ONE END, start, padding);
        EXPECT_PROBLEM(ask_raw(bytes, (size_t) len), 414, "", "request-malformed");
        free(bytes);
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 2);
}
END_TEST

/* A request with so many fields in all. */
static const struct http_answer *ask_with_fields(int count)
{
    char fields[100 * 8 + 1] = "";
    for (int i = 0; i < count - 3; i++) {
        memcpy(fields + (size_t) i * 6, "X: y\r\n", 7);
    }
    return post_with("4.2-fields", fields, "x");
}

START_TEST(rule_4_2_a_request_has_100_fields_at_most)
{
    EXPECT(ask_with_fields(100), 200, "executed");
    EXPECT_PROBLEM(ask_with_fields(101), 431, "", "request-malformed");
}
END_TEST

/* What nonbisd's library answers or ends by itself; a status of 0: it only closes. */
static const struct malformed_row bare[] = {
    { "HTTP/2.0", RAW("POST /orders HTTP/2.0\r\n" HOST KEY ONE END), 505 },
    { "a length with a sign", RAW(POST HOST KEY "Content-Length: +1\r\n" END), 400 },
    { "a length in hexadecimal", RAW(POST HOST KEY "Content-Length: 0x1\r\n" END), 400 },
    { "a list of lengths", RAW(POST HOST KEY "Content-Length: 1, 1\r\n" END), 400 },
    { "a length over 64 bits", RAW(POST HOST KEY "Content-Length: 18446744073709551619\r\n" END), 413 },
    { "no length", RAW(POST HOST KEY "Content-Length:\r\n" END), 400 },
    { "no version", RAW("POST /orders\r\n" HOST KEY ONE END), 400 },
    { "one word", RAW("POST\r\n" HOST KEY ONE END), 0 },
    { "bytes that are no HTTP", RAW("\x16\x03\x01\x02\r\n\r\n"), 0 },
    { "a chunk size that is none", RAW(POST HOST KEY "Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n"), 400 },
    { "a chunk that is longer than it says",
      RAW(POST HOST KEY "Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n"), 400 },
};

START_TEST(rule_4_3_what_the_library_refuses_by_itself_is_not_forwarded_either)
{
    expect_refused(&bare[_i], false);
}
END_TEST

START_TEST(rule_4_3_a_passing_request_with_a_fault_in_its_chunks_is_seen_cut_by_its_handler)
{
    static const struct peer_step reads[] = { { PEER_BODY, NULL, 0 }, PEER_END };
    static const char begin[] = "PUT /open HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    peer_script_default(scene.peer, reads);
    int fd = http_connect(scene.address);
    ck_assert(http_send(fd, begin, sizeof begin - 1));
    ck_assert(peer_wait_requests(scene.peer, 1));
    ck_assert(http_send(fd, "zz\r\n", 4));
    ck_assert(peer_wait_ended(scene.peer, 1));
    ck_assert_uint_eq(peer_count_whole(scene.peer), 0);
    ck_assert_int_ne(keep_answer(http_receive(fd, false, NULL))->status, 200);
    close(fd);
}
END_TEST

SUITE(contract_malformed)
{
    Suite *suite = suite_create("contract/04b-malformed");
    RULE_ROWS(suite, house_plain, rule_4_1_what_is_malformed_is_refused_and_the_connection_closed, found);
    RULE(suite, house_plain, rule_4_1_what_is_too_long_is_told_as_such);
    RULE(suite, house_plain, rule_4_2_a_target_has_4096_bytes_at_most);
    RULE(suite, house_plain, rule_4_2_a_request_has_100_fields_at_most);
    RULE_ROWS(suite, house_plain, rule_4_3_what_the_library_refuses_by_itself_is_not_forwarded_either, bare);
    RULE(suite, house_plain, rule_4_3_a_passing_request_with_a_fault_in_its_chunks_is_seen_cut_by_its_handler);
    RULE(suite, house_routes, rule_4_1_a_body_without_framing_is_refused_on_a_protected_route_only);
    return suite;
}
