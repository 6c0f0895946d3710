/* response_head_test.c - server/http/response_head.c: the grammar of single lines. What a whole head says of its body is
 * proved through response_reader_test.c. */
#include "server/http/response_head.h"
#include "tests/support/suite.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const char *line;
    int status; /* 0: refused */
    int minor_version;
} status_lines[] = {
    { "HTTP/1.1 200 OK", 200, 1 },
    { "HTTP/1.1 200 ", 200, 1 },
    { "HTTP/1.0 404 Not Found", 404, 0 },
    { "HTTP/1.9 999 \xFC\tx", 999, 9 },
    { "HTTP/1.1 100 Continue", 100, 1 },
    { "HTTP/1.1 200", 200, 1 },
    { "HTTP/1.1 20", 0, 0 },
    { "HTTP/1.1  200 OK", 0, 0 },
    { "HTTP/1.1 20 OK", 0, 0 },
    { "HTTP/1.1 2000 OK", 0, 0 },
    { "HTTP/1.1 200OK", 0, 0 },
    { "HTTP/1.1 099 x", 0, 0 },
    { "HTTP/1.1 +20 x", 0, 0 },
    { "HTTP/1.1 2x0 x", 0, 0 },
    { "HTTP/1.1\t200 OK", 0, 0 },
    { "HTTP/1.1 200\tOK", 0, 0 },
    { "HTTP/1.x 200 OK", 0, 0 },
    { "HTTP/1. 200 OK ", 0, 0 },
    { "HTTP/2.0 200 OK", 0, 0 },
    { "HTTP/1.10 200 OK", 0, 0 },
    { "http/1.1 200 OK", 0, 0 },
    { " HTTP/1.1 200 OK", 0, 0 },
    { "ICY 200 OK", 0, 0 },
    { "HTTP/1.1 200 a\rb", 0, 0 },
    { "HTTP/1.1 200 a\x01", 0, 0 },
    { "", 0, 0 },
};

START_TEST(a_status_line_has_one_shape)
{
    int status = 0, minor_version = 0;
    bool good = response_head_read_status(view_of(status_lines[_i].line), &status, &minor_version);
    ck_assert_msg(good == (status_lines[_i].status != 0), "<%s>", status_lines[_i].line);
    if (good) {
        ck_assert_int_eq(status, status_lines[_i].status);
        ck_assert_int_eq(minor_version, status_lines[_i].minor_version);
    }
}
END_TEST

static const struct {
    const char *line;
    const char *name; /* NULL: refused */
    const char *value;
} field_lines[] = {
    { "A: b", "A", "b" },     { "A:b", "A", "b" },        { "A: \t b c \t", "A", "b c" }, { "A:", "A", "" },
    { "A: b:c", "A", "b:c" }, { "A: \xFF", "A", "\xFF" }, { "A : b", NULL, NULL },        { "A\t: b", NULL, NULL },
    { " A: b", NULL, NULL },  { "\tfolded", NULL, NULL }, { ": b", NULL, NULL },          { "A", NULL, NULL },
    { "A b: c", NULL, NULL }, { "A: b\rc", NULL, NULL },  { "A: \x7F", NULL, NULL },      { "A: b\r", NULL, NULL },
};

START_TEST(a_field_line_has_one_shape)
{
    struct header field;
    bool good = response_head_read_field(view_of(field_lines[_i].line), &field);
    ck_assert_msg(good == (field_lines[_i].name != NULL), "<%s>", field_lines[_i].line);
    if (good) {
        ck_assert(view_equal(field.name, view_of(field_lines[_i].name)));
        ck_assert(view_equal(field.value, view_of(field_lines[_i].value)));
    }
}
END_TEST

static const struct {
    const char *line;
    bool good;
    uint64_t size;
} chunk_lines[] = {
    { "0", true, 0 },
    { "5", true, 5 },
    { "aF", true, 175 },
    { "0000000000000005", true, 5 },
    { "ffffffffffffffff", true, UINT64_MAX },
    { "5;name=value", true, 5 },
    { "5 \t;name=\"a b\"", true, 5 },
    { "5;", true, 5 },
    { "00000000000000005", false, 0 },
    { "10000000000000000", false, 0 },
    { "", false, 0 },
    { "g", false, 0 },
    { "5g", false, 0 },
    { "5 ", false, 0 },
    { " 5", false, 0 },
    { "0x5", false, 0 },
    { "-5", false, 0 },
    { "+5", false, 0 },
    { "5,5", false, 0 },
    { ";a", false, 0 },
    { "5;a\rb", false, 0 },
    { "5\r", false, 0 },
};

START_TEST(a_chunk_size_has_one_shape)
{
    uint64_t size = 77;
    bool good = response_head_read_chunk_size(view_of(chunk_lines[_i].line), &size);
    ck_assert_msg(good == chunk_lines[_i].good, "<%s>", chunk_lines[_i].line);
    if (good) {
        ck_assert_uint_eq(size, chunk_lines[_i].size);
    }
}
END_TEST

SUITE(response_head)
{
    Suite *suite = suite_create("http/response_head");
    CASE_LOOP(suite, a_status_line_has_one_shape, ROWS(status_lines));
    CASE_LOOP(suite, a_field_line_has_one_shape, ROWS(field_lines));
    CASE_LOOP(suite, a_chunk_size_has_one_shape, ROWS(chunk_lines));
    return suite;
}
