/* response_reader_test.c - server/http/response_reader.c: the table of contract section 6.
 *
 * Every sample is fed whole, byte by byte, and cut in two at every byte, and must give the same each time. */
#include "tests/support/suite.h"
#include "tests/unit/http/response_feed.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        (literal), sizeof(literal) - 1                                                                                 \
    }

#define OK11 "HTTP/1.1 200 OK\r\n"

/* Responses that end by their own framing; `surplus` bytes of the sample stay untaken. */
static const struct {
    struct view bytes;
    int flags;
    int status;
    enum response_framing framing;
    bool has_length, keep_alive;
    uint64_t length;
    int64_t timeout_ms;
    size_t surplus;
    const char *fields;
    struct view body;
} complete[] = {
    { TEXT(OK11 "Content-Length: 5\r\nX-A:  b \r\n\r\nhello"), 0, 200, RESPONSE_FRAMING_LENGTH, true, true, 5, -1, 0,
      "Content-Length: 5\r\nX-A: b\r\n", TEXT("hello") },
    { TEXT(OK11 "content-length: 0\r\n\r\n"), 0, 200, RESPONSE_FRAMING_LENGTH, true, true, 0, -1, 0,
      "content-length: 0\r\n", TEXT("") },
    { TEXT("HTTP/1.1 200 \r\nContent-Length: 2\r\nE:\r\n\r\nhiHTTP/1.1"), 0, 200, RESPONSE_FRAMING_LENGTH, true, true,
      2, -1, 8, "Content-Length: 2\r\nE: \r\n", TEXT("hi") },
    { TEXT(OK11 "Content-Length: 4\r\n\r\n\r\n\r\n"), 0, 200, RESPONSE_FRAMING_LENGTH, true, true, 4, -1, 0,
      "Content-Length: 4\r\n", TEXT("\r\n\r\n") },
    /* Chunks. */
    { TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=\"y\"\r\n\r\nwrld\r\n0\r\n\r\n"), 0, 200,
      RESPONSE_FRAMING_CHUNKED, false, true, 0, -1, 0, "Transfer-Encoding: chunked\r\n", TEXT("hello\r\nwrld") },
    { TEXT(OK11 "transfer-encoding: CHUNKED\r\n\r\n0a\r\n0123456789\r\n000\r\n\r\nx"), 0, 200, RESPONSE_FRAMING_CHUNKED,
      false, true, 0, -1, 1, "transfer-encoding: CHUNKED\r\n", TEXT("0123456789") },
    { TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0;e\r\nX-Trailer: t\r\nContent-Length: 9\r\n\r\n\r\n"), 0,
      200, RESPONSE_FRAMING_CHUNKED, false, true, 0, -1, 2, "Transfer-Encoding: chunked\r\n", TEXT("a") },
    { TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 0, 200, RESPONSE_FRAMING_CHUNKED, false, true, 0, -1, 0,
      "Transfer-Encoding: chunked\r\n", TEXT("") },
    /* No body by request or status. */
    { TEXT(OK11 "Content-Length: 500\r\n\r\n"), FEED_HEAD_REQUEST, 200, RESPONSE_FRAMING_NONE, true, true, 500, -1, 0,
      "Content-Length: 500\r\n", TEXT("") },
    { TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n"), FEED_HEAD_REQUEST, 200, RESPONSE_FRAMING_NONE, false, true, 0,
      -1, 0, "Transfer-Encoding: chunked\r\n", TEXT("") },
    { TEXT(OK11 "\r\n"), FEED_HEAD_REQUEST, 200, RESPONSE_FRAMING_NONE, false, true, 0, -1, 0, "", TEXT("") },
    { TEXT("HTTP/1.1 204 No Content\r\n\r\n"), 0, 204, RESPONSE_FRAMING_NONE, false, true, 0, -1, 0, "", TEXT("") },
    { TEXT("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), 0, 204, RESPONSE_FRAMING_NONE, true, true, 0, -1, 0,
      "Content-Length: 0\r\n", TEXT("") },
    { TEXT("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc"), 0, 204, RESPONSE_FRAMING_NONE, true, false, 3,
      -1, 3, "Content-Length: 3\r\n", TEXT("") },
    { TEXT("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n"), 0, 204, RESPONSE_FRAMING_NONE, false, false, 0, -1,
      0, "Transfer-Encoding: chunked\r\n", TEXT("") },
    { TEXT("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"), 0, 304, RESPONSE_FRAMING_NONE, true, true, 7, -1,
      0, "Content-Length: 7\r\n", TEXT("") },
    /* 1xx are dropped, with their fields. */
    { TEXT("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK11
           "Content-Length: 1\r\n\r\nx"),
      0, 200, RESPONSE_FRAMING_LENGTH, true, true, 1, -1, 0, "Content-Length: 1\r\n", TEXT("x") },
    { TEXT("HTTP/1.0 100 x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n" OK11 "Content-Length: 1\r\n\r\nx"), 0,
      200, RESPONSE_FRAMING_LENGTH, true, true, 1, -1, 0, "Content-Length: 1\r\n", TEXT("x") },
    /* What becomes of the connection. */
    { TEXT("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx"), 0, 200, RESPONSE_FRAMING_LENGTH,
      true, false, 1, -1, 0, "Content-Length: 1\r\nConnection: keep-alive\r\n", TEXT("x") },
    { TEXT("HTTP/1.7 200 OK\r\nContent-Length: 1\r\nKeep-Alive: Timeout=5, max=9\r\n\r\nx"), 0, 200,
      RESPONSE_FRAMING_LENGTH, true, true, 1, 5000, 0, "Content-Length: 1\r\nKeep-Alive: Timeout=5, max=9\r\n",
      TEXT("x") },
    { TEXT(OK11 "Content-Length: 1\r\nConnection: X, CLOSE\r\nKeep-Alive: timeout=99999999999\r\n\r\nx"), 0, 200,
      RESPONSE_FRAMING_LENGTH, true, false, 1, 86400000, 0,
      "Content-Length: 1\r\nConnection: X, CLOSE\r\nKeep-Alive: timeout=99999999999\r\n", TEXT("x") },
    { TEXT(OK11 "Content-Length: 1\r\nKeep-Alive: timeout=5s, timeout\r\n\r\nx"), 0, 200, RESPONSE_FRAMING_LENGTH, true,
      true, 1, -1, 0, "Content-Length: 1\r\nKeep-Alive: timeout=5s, timeout\r\n", TEXT("x") },
    { TEXT("HTTP/1.1 999 odd\r\nContent-Length: 1\r\n\r\nx"), FEED_ALLOW_CLOSE, 999, RESPONSE_FRAMING_LENGTH, true,
      true, 1, -1, 0, "Content-Length: 1\r\n", TEXT("x") },
    { TEXT("HTTP/1.1 503 x\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n\0\xFF"), 0, 503, RESPONSE_FRAMING_LENGTH,
      true, true, 2, -1, 0, "Retry-After: 1\r\nContent-Length: 2\r\n", TEXT("\0\xFF") },
};

static void assert_complete(int row, const struct response_seen *seen, const char *how, size_t at)
{
    ck_assert_msg(seen->last == RESPONSE_END, "row %d, %s at %zu: event %d, fault %d", row, how, at, (int) seen->last,
                  (int) seen->fault);
    ck_assert(seen->head);
    ck_assert_int_eq(seen->fault, RESPONSE_FAULT_NONE);
    ck_assert_int_eq(seen->status, complete[row].status);
    ck_assert_int_eq(seen->framing, complete[row].framing);
    ck_assert(seen->has_length == complete[row].has_length);
    ck_assert(seen->keep_alive == complete[row].keep_alive);
    ck_assert_uint_eq(seen->length, complete[row].length);
    ck_assert_int_eq(seen->keep_alive_timeout_ms, complete[row].timeout_ms);
    ck_assert(view_equal(view_make(seen->fields, seen->fields_len), view_of(complete[row].fields)));
    ck_assert(view_equal(view_make(seen->body, seen->body_len), complete[row].body));
    ck_assert_uint_eq(seen->taken, complete[row].bytes.len - complete[row].surplus);
}

START_TEST(a_complete_response_is_read_alike_however_it_is_cut)
{
    struct view bytes = complete[_i].bytes;
    struct response_seen seen = response_feed(bytes, complete[_i].flags, feed_whole, NULL);
    assert_complete(_i, &seen, "whole", 0);
    seen = response_feed(bytes, complete[_i].flags, feed_byte, NULL);
    assert_complete(_i, &seen, "byte by byte", 0);
    for (size_t at = 1; at < bytes.len; at++) {
        size_t first = at;
        seen = response_feed(bytes, complete[_i].flags, feed_first, &first);
        assert_complete(_i, &seen, "cut", at);
    }
}
END_TEST

START_TEST(a_response_cut_at_any_byte_is_never_complete)
{
    size_t full = complete[_i].bytes.len - complete[_i].surplus;
    for (size_t len = 0; len < full; len++) {
        struct response_seen seen =
            response_feed(view_make(complete[_i].bytes.ptr, len), complete[_i].flags, feed_whole, NULL);
        ck_assert_msg(seen.last == RESPONSE_MORE && seen.close == RESPONSE_BAD, "row %d cut at %zu", _i, len);
        ck_assert(seen.fault == RESPONSE_FAULT_CUT || (!seen.head && seen.fault == RESPONSE_FAULT_EMPTY));
    }
}
END_TEST

#define LENGTH_1 "Content-Length: 1\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define BYTES_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define BYTES_400 BYTES_50 BYTES_50 BYTES_50 BYTES_50 BYTES_50 BYTES_50 BYTES_50 BYTES_50
#define INTERIM "HTTP/1.1 100 \r\n\r\n"
#define INTERIM_16                                                                                                     \
    INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM    \
        INTERIM INTERIM

/* Responses that are faulty by themselves (BAD while they are read) or by the close behind them. */
static const struct {
    struct view bytes;
    int flags;
    bool by_close;
    enum response_fault fault; /* NONE: ended well, by the close */
    const char *body;
} faulty[] = {
    /* Closed too early. */
    { TEXT(""), 0, true, RESPONSE_FAULT_EMPTY, "" },
    { TEXT(INTERIM), 0, true, RESPONSE_FAULT_EMPTY, "" },
    { TEXT("H"), 0, true, RESPONSE_FAULT_CUT, "" },
    { TEXT(OK11), 0, true, RESPONSE_FAULT_CUT, "" },
    { TEXT(OK11 "Content-Len"), 0, true, RESPONSE_FAULT_CUT, "" },
    { TEXT(OK11 "Content-Length: 5\r\n\r\nhell"), 0, true, RESPONSE_FAULT_CUT, "hell" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhello\r\n"), 0, true, RESPONSE_FAULT_CUT, "hello" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhello\r\n0\r\n"), 0, true, RESPONSE_FAULT_CUT, "hello" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhello\r\n0\r\n\r"), FEED_ALLOW_CLOSE, true, RESPONSE_FAULT_CUT, "hello" },
    /* A body delimited by the close. */
    { TEXT(OK11 "\r\nhello"), 0, true, RESPONSE_FAULT_CLOSE_DELIMITED, "hello" },
    { TEXT(OK11 "\r\nhello"), FEED_ALLOW_CLOSE, true, RESPONSE_FAULT_NONE, "hello" },
    { TEXT("HTTP/1.0 200 OK\r\n\r\n"), FEED_ALLOW_CLOSE, true, RESPONSE_FAULT_NONE, "" },
    /* 101. */
    { TEXT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), 0, false, RESPONSE_FAULT_UPGRADE, "" },
    { TEXT(INTERIM "HTTP/1.1 101 \r\n\r\n"), 0, false, RESPONSE_FAULT_UPGRADE, "" },
    /* Two framings, two lengths, other codings. */
    { TEXT(OK11 LENGTH_1 CHUNKED "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED LENGTH_1 "\r\nx"), FEED_HEAD_REQUEST, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 LENGTH_1 LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 LENGTH_1 "content-length: 2\r\n\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length: 3, 3\r\n\r\nabc"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length: +3\r\n\r\nabc"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length: \r\n\r\nabc"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length: 18446744073709551616\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT("HTTP/1.1 304 x\r\nContent-Length: x\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED CHUNKED "\r\n0\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Transfer-Encoding: gzip, chunked\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Transfer-Encoding: identity\r\n\r\n"), FEED_ALLOW_CLOSE, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Transfer-Encoding:\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT("HTTP/1.0 200 OK\r\n" CHUNKED "\r\n0\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    /* Lines. */
    { TEXT("SSH-2.0-OpenSSH_9.2\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT("\r\n" OK11 LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT("HTTP/1.1 200 OK\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length: 1\n\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 LENGTH_1 "\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "X: a\rb\r\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "X: a\r\n b\r\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "Content-Length : 1\r\n\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 "X: a\0b\r\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 ": a\r\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(INTERIM "bad\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(INTERIM_16 INTERIM OK11), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(INTERIM_16 OK11 "\r\n"), FEED_ALLOW_CLOSE, true, RESPONSE_FAULT_NONE, "" },
    /* Chunks. */
    { TEXT(OK11 CHUNKED "\r\nx\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED "\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED "\r\n5\nhello\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhelloX\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "hello" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhello\n0\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "hello" },
    { TEXT(OK11 CHUNKED "\r\n5\r\nhello\rX"), 0, false, RESPONSE_FAULT_GARBAGE, "hello" },
    { TEXT(OK11 CHUNKED "\r\n10000000000000005\r\nhello\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED "\r\n0\r\nbad trailer\r\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    { TEXT(OK11 CHUNKED "\r\n0\r\nX: a\n\r\n"), 0, false, RESPONSE_FAULT_GARBAGE, "" },
    /* Over the bound: in a line without end, over several lines, in an extension, in trailers. */
    { TEXT("H" BYTES_400), 0, false, RESPONSE_FAULT_HEAD_TOO_LONG, "" },
    { TEXT(OK11 "X: " BYTES_400 "\r\n" LENGTH_1 "\r\nx"), 0, false, RESPONSE_FAULT_HEAD_TOO_LONG, "" },
    { TEXT(OK11 "X: " BYTES_50 BYTES_50 BYTES_50 "\r\nX: " BYTES_50 BYTES_50 BYTES_50 "\r\nX: " BYTES_50 BYTES_50
                "\r\n"),
      0, false, RESPONSE_FAULT_HEAD_TOO_LONG, "" },
    { TEXT(OK11 CHUNKED "\r\n1;" BYTES_400 "\r\nx\r\n0\r\n\r\n"), 0, false, RESPONSE_FAULT_HEAD_TOO_LONG, "" },
    { TEXT(OK11 CHUNKED "\r\n0\r\nX: " BYTES_50 BYTES_50 BYTES_50 "\r\nX: " BYTES_50 BYTES_50 BYTES_50
                        "\r\nX: " BYTES_50 BYTES_50 "\r\n\r\n"),
      0, false, RESPONSE_FAULT_HEAD_TOO_LONG, "" },
};

static void assert_faulty(int row, const struct response_seen *seen, const char *how, size_t at)
{
    enum response_event last = faulty[row].by_close ? RESPONSE_MORE : RESPONSE_BAD;
    enum response_event close = !faulty[row].by_close                      ? RESPONSE_MORE
                                : faulty[row].fault == RESPONSE_FAULT_NONE ? RESPONSE_END
                                                                           : RESPONSE_BAD;
    ck_assert_msg(seen->last == last && seen->close == close && seen->fault == faulty[row].fault,
                  "row %d, %s at %zu: event %d, close %d, fault %d", row, how, at, (int) seen->last, (int) seen->close,
                  (int) seen->fault);
    ck_assert(view_equal(view_make(seen->body, seen->body_len), view_of(faulty[row].body)));
}

START_TEST(a_faulty_response_is_told_alike_however_it_is_cut)
{
    struct view bytes = faulty[_i].bytes;
    struct response_seen seen = response_feed(bytes, faulty[_i].flags, feed_whole, NULL);
    assert_faulty(_i, &seen, "whole", 0);
    seen = response_feed(bytes, faulty[_i].flags, feed_byte, NULL);
    assert_faulty(_i, &seen, "byte by byte", 0);
    for (size_t at = 1; at < bytes.len; at++) {
        size_t first = at;
        seen = response_feed(bytes, faulty[_i].flags, feed_first, &first);
        assert_faulty(_i, &seen, "cut", at);
    }
}
END_TEST

START_TEST(a_head_of_exactly_the_bound_passes)
{
    /* 15 + 2, "X: " and "\r\n" around 357, Content-Length: 0 (19), blank line 2: 400. */
    char bytes[FEED_HEAD_MAX + 1];
    int len = snprintf(bytes, sizeof(bytes), OK11 "X: %.*s\r\nContent-Length: 0\r\n\r\n", 357, BYTES_400);
    ck_assert_int_eq(len, 400);
    struct response_seen seen = response_feed(view_make(bytes, (size_t) len), 0, feed_whole, NULL);
    ck_assert_int_eq(seen.last, RESPONSE_END);
    len = snprintf(bytes, sizeof(bytes), OK11 "X: %.*s\r\nContent-Length: 0\r\n\r", 358, BYTES_400);
    bytes[len++] = '\n';
    seen = response_feed(view_make(bytes, (size_t) len), 0, feed_byte, NULL);
    ck_assert_int_eq(seen.fault, RESPONSE_FAULT_HEAD_TOO_LONG);
}
END_TEST

START_TEST(after_the_end_and_after_a_fault_nothing_is_taken)
{
    struct response_reader reader;
    struct view input = VIEW(OK11 "Content-Length: 0\r\n\r\nrest"), body;
    response_reader_init(&reader, false, false, FEED_HEAD_MAX);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_HEAD);
    /* The close may come before anybody asked for the end. */
    ck_assert_int_eq(response_reader_close(&reader), RESPONSE_END);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_END);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_END);
    ck_assert(view_equal(input, VIEW("rest")));
    ck_assert_int_eq(response_reader_close(&reader), RESPONSE_END);
    response_reader_fini(&reader);
    response_reader_init(&reader, false, false, FEED_HEAD_MAX);
    input = VIEW("bad\r\n" OK11);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_BAD);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_BAD);
    ck_assert_int_eq(response_reader_close(&reader), RESPONSE_BAD);
    ck_assert_int_eq(reader.fault, RESPONSE_FAULT_GARBAGE);
    ck_assert(view_equal(input, VIEW(OK11)));
    response_reader_fini(&reader);
}
END_TEST

START_TEST(a_body_longer_than_memory_is_only_counted)
{
    struct response_reader reader;
    struct view input = VIEW(OK11 "Content-Length: 18446744073709551615\r\n\r\nabc"), body;
    response_reader_init(&reader, false, false, FEED_HEAD_MAX);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_HEAD);
    ck_assert_uint_eq(reader.length, UINT64_MAX);
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_BODY);
    ck_assert(view_equal(body, VIEW("abc")));
    ck_assert_int_eq(response_reader_feed(&reader, &input, &body), RESPONSE_MORE);
    ck_assert_int_eq(response_reader_close(&reader), RESPONSE_BAD);
    ck_assert_int_eq(reader.fault, RESPONSE_FAULT_CUT);
    response_reader_fini(&reader);
}
END_TEST

START_TEST(every_fault_has_a_sentence)
{
    for (int i = 0; i < RESPONSE_FAULT_COUNT; i++) {
        ck_assert_ptr_nonnull(response_fault_text((enum response_fault) i));
    }
    ck_assert_str_eq(response_fault_text(RESPONSE_FAULT_EMPTY), "the upstream closed the connection without an answer");
}
END_TEST

SUITE(response_reader)
{
    Suite *suite = suite_create("http/response_reader");
    CASE_LOOP(suite, a_complete_response_is_read_alike_however_it_is_cut, ROWS(complete));
    CASE_LOOP(suite, a_response_cut_at_any_byte_is_never_complete, ROWS(complete));
    CASE_LOOP(suite, a_faulty_response_is_told_alike_however_it_is_cut, ROWS(faulty));
    CASE(suite, a_head_of_exactly_the_bound_passes);
    CASE(suite, after_the_end_and_after_a_fault_nothing_is_taken);
    CASE(suite, a_body_longer_than_memory_is_only_counted);
    CASE(suite, every_fault_has_a_sentence);
    return suite;
}
