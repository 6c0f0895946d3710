/* request_writer_test.c - server/http/request_writer.c. */
#include "server/http/request_writer.h"
#include "tests/support/suite.h"

static const struct {
    enum request_framing framing;
    uint64_t length;
    const char *expected;
} heads[] = {
    { REQUEST_NO_BODY, 0, "GET /a?b=%20 HTTP/1.1\r\nHost: h\r\n\r\n" },
    { REQUEST_LENGTH, 0, "GET /a?b=%20 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n" },
    { REQUEST_LENGTH, 18446744073709551615U,
      "GET /a?b=%20 HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n" },
    { REQUEST_CHUNKED, 7, "GET /a?b=%20 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" },
};

START_TEST(a_head_is_line_fields_framing_and_blank_line)
{
    struct buf out;
    buf_init(&out, 1000);
    ck_assert(request_write_head(&out, VIEW("GET"), VIEW("/a?b=%20"), VIEW("Host: h\r\n"), heads[_i].framing,
                                 heads[_i].length));
    ck_assert(view_equal(buf_view(&out), view_of(heads[_i].expected)));
    buf_fini(&out);
}
END_TEST

static const struct {
    struct view method, target;
} refused[] = {
    { { "", 0 }, { "/", 1 } },         { { "GET", 3 }, { "", 0 } },      { { "GET /x HTTP/1.1\r\n", 17 }, { "/", 1 } },
    { { "G T", 3 }, { "/", 1 } },      { { "GET", 3 }, { "/a b", 4 } },  { { "GET", 3 }, { "/a\tb", 4 } },
    { { "GET", 3 }, { "/a\rb", 4 } },  { { "GET", 3 }, { "/a\nb", 4 } }, { { "GET", 3 }, { "/a\0b", 4 } },
    { { "GET", 3 }, { "/a\x7F", 3 } },
};

START_TEST(a_blank_or_control_byte_in_method_or_target_writes_nothing)
{
    struct buf out;
    buf_init(&out, 1000);
    buf_append(&out, VIEW("before"));
    ck_assert(!request_write_head(&out, refused[_i].method, refused[_i].target, VIEW(""), REQUEST_NO_BODY, 0));
    ck_assert(view_equal(buf_view(&out), VIEW("before")));
    buf_fini(&out);
}
END_TEST

START_TEST(chunks_carry_their_size_in_hex_and_an_empty_one_is_not_written)
{
    struct buf out;
    char bytes[256];
    memset(bytes, 'x', sizeof(bytes));
    buf_init(&out, 1000);
    request_write_chunk(&out, VIEW("hello"));
    request_write_chunk(&out, VIEW(""));
    request_write_chunk(&out, VIEW("0123456789"));
    request_write_last_chunk(&out);
    ck_assert(view_equal(buf_view(&out), VIEW("5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n")));
    buf_clear(&out);
    request_write_chunk(&out, view_make(bytes, 256));
    ck_assert_uint_eq(out.len, 263);
    ck_assert_mem_eq(out.ptr, "100\r\nx", 6);
    buf_fini(&out);
}
END_TEST

SUITE(request_writer)
{
    Suite *suite = suite_create("http/request_writer");
    CASE_LOOP(suite, a_head_is_line_fields_framing_and_blank_line, sizeof(heads) / sizeof(heads[0]));
    CASE_LOOP(suite, a_blank_or_control_byte_in_method_or_target_writes_nothing, sizeof(refused) / sizeof(refused[0]));
    CASE(suite, chunks_carry_their_size_in_hex_and_an_empty_one_is_not_written);
    return suite;
}
