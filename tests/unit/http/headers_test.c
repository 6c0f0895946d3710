/* headers_test.c - server/http/headers.c. */
#include "server/http/headers.h"
#include "tests/support/suite.h"

#define FIELD(name, value)                                                                                             \
    {                                                                                                                  \
        { (name), sizeof(name) - 1 },                                                                                  \
        {                                                                                                              \
            (value), sizeof(value) - 1                                                                                 \
        }                                                                                                              \
    }

START_TEST(fields_of_a_span_are_counted_in_any_case)
{
    const struct header items[] = { FIELD("Host", "a"), FIELD("X-One", "1"), FIELD("x-one", "2"), FIELD("X-On", "3") };
    struct header_span span = { items, 4 };
    struct view first = VIEW("untouched");
    ck_assert_uint_eq(headers_count(span, VIEW("X-ONE"), &first), 2);
    ck_assert(view_equal(first, VIEW("1")));
    ck_assert_uint_eq(headers_count(span, VIEW("X-Other"), &first), 0);
    ck_assert(view_equal(first, VIEW("1")));
    ck_assert_uint_eq(headers_count((struct header_span){ NULL, 0 }, VIEW("Host"), &first), 0);
}
END_TEST

START_TEST(a_block_gives_back_the_fields_it_was_made_of)
{
    struct buf block;
    buf_init(&block, 1000);
    field_block_add(&block, VIEW("Content-Type"), VIEW("text/plain; a=\"b: c\""));
    field_block_add(&block, VIEW("X-Empty"), VIEW(""));
    field_block_add(&block, VIEW("x-Empty"), VIEW("now\tnot"));
    ck_assert(view_equal(buf_view(&block), VIEW("Content-Type: text/plain; a=\"b: c\"\r\nX-Empty: \r\n"
                                                "x-Empty: now\tnot\r\n")));
    struct view rest = buf_view(&block);
    struct header field;
    ck_assert(field_block_next(&rest, &field));
    ck_assert(view_equal(field.name, VIEW("Content-Type")));
    ck_assert(view_equal(field.value, VIEW("text/plain; a=\"b: c\"")));
    ck_assert(field_block_next(&rest, &field));
    ck_assert(view_equal(field.name, VIEW("X-Empty")));
    ck_assert_uint_eq(field.value.len, 0);
    ck_assert(field_block_next(&rest, &field));
    ck_assert(view_equal(field.value, VIEW("now\tnot")));
    ck_assert(!field_block_next(&rest, &field));
    buf_fini(&block);
}
END_TEST

START_TEST(a_block_is_searched_in_any_case)
{
    struct view block = VIEW("A: 1\r\nb: 2\r\na: 3\r\n"), value;
    ck_assert(field_block_find(block, VIEW("a"), &value));
    ck_assert(view_equal(value, VIEW("1")));
    ck_assert(field_block_find(block, VIEW("B"), &value));
    ck_assert(view_equal(value, VIEW("2")));
    ck_assert(!field_block_find(block, VIEW("c"), &value));
    ck_assert_uint_eq(field_block_count(block, VIEW("A")), 2);
    ck_assert_uint_eq(field_block_count(block, VIEW("c")), 0);
    ck_assert_uint_eq(field_block_count(view_make(NULL, 0), VIEW("c")), 0);
}
END_TEST

static const struct view damaged[] = {
    { "A: 1", 4 }, { "A: 1\r", 5 }, { "A\r\n", 3 }, { "\r\n", 2 }, { ":", 1 }, { "\r", 1 }, { "A", 1 },
};

START_TEST(a_damaged_block_ends_and_is_not_read_past_its_end)
{
    /* A copy of its own size, so that a sanitizer sees a read behind it. */
    char *bytes = malloc(damaged[_i].len);
    memcpy(bytes, damaged[_i].ptr, damaged[_i].len);
    struct view block = view_make(bytes, damaged[_i].len);
    struct header field;
    int fields = 0;
    while (field_block_next(&block, &field)) {
        fields++;
    }
    ck_assert_int_le(fields, 1);
    ck_assert_uint_eq(block.len, 0);
    free(bytes);
}
END_TEST

START_TEST(a_block_over_its_ceiling_holds_whole_fields_only)
{
    struct buf block;
    buf_init(&block, 10);
    field_block_add(&block, VIEW("A"), VIEW("1"));
    field_block_add(&block, VIEW("B"), VIEW("2"));
    ck_assert(block.failed);
    ck_assert(view_equal(buf_view(&block), VIEW("A: 1\r\n")));
    buf_fini(&block);
}
END_TEST

START_TEST(a_token_holds_exactly_the_bytes_of_the_rfc)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int byte = 0; byte < 256; byte++) {
        char text[2] = { 'a', (char) byte };
        bool expected = byte != 0 && strchr(allowed, byte) != NULL;
        ck_assert_msg(header_is_token(view_make(text, 2)) == expected, "byte %d", byte);
    }
    ck_assert(!header_is_token(VIEW("")));
}
END_TEST

START_TEST(a_clean_value_holds_no_control_byte_but_a_tab)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[3] = { 'a', (char) byte, 'b' };
        bool expected = byte == 9 || (byte >= 32 && byte != 127);
        ck_assert_msg(header_value_is_clean(view_make(text, 3)) == expected, "byte %d", byte);
    }
    ck_assert(header_value_is_clean(VIEW("")));
}
END_TEST

SUITE(headers)
{
    Suite *suite = suite_create("http/headers");
    CASE(suite, fields_of_a_span_are_counted_in_any_case);
    CASE(suite, a_block_gives_back_the_fields_it_was_made_of);
    CASE(suite, a_block_is_searched_in_any_case);
    CASE_LOOP(suite, a_damaged_block_ends_and_is_not_read_past_its_end, sizeof(damaged) / sizeof(damaged[0]));
    CASE(suite, a_block_over_its_ceiling_holds_whole_fields_only);
    CASE(suite, a_token_holds_exactly_the_bytes_of_the_rfc);
    CASE(suite, a_clean_value_holds_no_control_byte_but_a_tab);
    return suite;
}
