/* buf_test.c - common/buf.c. */
#include "common/buf.h"
#include "tests/support/suite.h"

START_TEST(what_is_appended_stands_in_order)
{
    struct buf buf;
    buf_init(&buf, 1000);
    buf_append(&buf, VIEW("a"));
    buf_append_text(&buf, "bc");
    buf_append_bytes(&buf, "d\0e", 3);
    buf_append_uint(&buf, 0);
    buf_append_uint(&buf, UINT64_MAX);
    buf_append_hex(&buf, (const uint8_t[]){ 0x00, 0x9A, 0xff }, 3);
    buf_printf(&buf, "[%s %d]", "x", -5);
    ck_assert(!buf.failed);
    ck_assert(view_equal(buf_view(&buf), VIEW("abcd\0e0"
                                              "18446744073709551615"
                                              "009aff[x -5]")));
    buf_fini(&buf);
}
END_TEST

START_TEST(nothing_appended_is_an_empty_view)
{
    struct buf buf;
    buf_init(&buf, 10);
    buf_append(&buf, view_make(NULL, 0));
    buf_append_text(&buf, "");
    buf_printf(&buf, "%s", "");
    ck_assert(!buf.failed);
    ck_assert_uint_eq(buf_view(&buf).len, 0);
    buf_fini(&buf);
}
END_TEST

START_TEST(the_ceiling_can_be_filled_to_the_last_byte)
{
    struct buf buf;
    buf_init(&buf, 5);
    buf_append(&buf, VIEW("ab"));
    buf_printf(&buf, "%s", "cde");
    ck_assert(!buf.failed);
    ck_assert(view_equal(buf_view(&buf), VIEW("abcde")));
    ck_assert_uint_le(buf.cap, 5);
    buf_fini(&buf);
}
END_TEST

START_TEST(past_the_ceiling_nothing_is_written_and_failure_sticks)
{
    struct buf buf;
    buf_init(&buf, 5);
    buf_append(&buf, VIEW("abc"));
    buf_append(&buf, VIEW("def"));
    ck_assert(buf.failed);
    buf_append(&buf, VIEW("g"));
    buf_printf(&buf, "h");
    buf_append_uint(&buf, 1);
    ck_assert_ptr_null(buf_reserve(&buf, 1));
    ck_assert(view_equal(buf_view(&buf), VIEW("abc")));
    buf_clear(&buf);
    ck_assert(!buf.failed);
    buf_append(&buf, VIEW("vwxyz"));
    ck_assert(view_equal(buf_view(&buf), VIEW("vwxyz")));
    buf_fini(&buf);
}
END_TEST

START_TEST(a_printed_text_too_long_fails_too)
{
    struct buf buf;
    buf_init(&buf, 5);
    buf_append(&buf, VIEW("abc"));
    buf_printf(&buf, "%s", "def");
    ck_assert(buf.failed);
    ck_assert(view_equal(buf_view(&buf), VIEW("abc")));
    buf_fini(&buf);
}
END_TEST

START_TEST(a_huge_length_cannot_wrap_around)
{
    struct buf buf;
    buf_init(&buf, 100);
    buf_append(&buf, VIEW("abc"));
    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX));
    ck_assert(buf.failed);
    buf_clear(&buf);
    buf_append_hex(&buf, (const uint8_t *) "", SIZE_MAX / 2 + 1);
    ck_assert(buf.failed);
    buf_fini(&buf);
}
END_TEST

/* No machine has half of all addresses. The sanitizers end the process instead of refusing. */
START_TEST(memory_that_is_not_there_is_a_failure_that_sticks)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    struct buf buf;
    buf_init(&buf, SIZE_MAX);
    buf_append(&buf, VIEW("abc"));
    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX / 2 + 1));
    ck_assert(buf.failed);
    buf_append(&buf, VIEW("d"));
    ck_assert(view_equal(buf_view(&buf), VIEW("abc")));
    buf_fini(&buf);
    ck_assert_ptr_null(view_dup(view_make("x", SIZE_MAX / 2 + 1)));
#endif
}
END_TEST

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static size_t missed; /* bytes that were not there */

static void note_missed(size_t bytes)
{
    missed = bytes;
}
#endif

/* nonbisd ends there (server/main.c), before anybody meets the half of a text. The ceiling is no want of memory. */
START_TEST(memory_that_is_not_there_is_told_first_to_whoever_asked_for_that)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    struct buf buf;
    buf_without_memory = note_missed;
    buf_init(&buf, 3);
    buf_append(&buf, VIEW("abcd"));
    ck_assert(buf.failed);
    ck_assert_uint_eq(missed, 0);
    buf_fini(&buf);
    buf_init(&buf, SIZE_MAX);
    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX / 2 + 1));
    buf_fini(&buf);
    buf_without_memory = NULL;
    ck_assert_uint_ge(missed, SIZE_MAX / 2 + 1);
#endif
}
END_TEST

START_TEST(it_grows_and_keeps_what_it_holds)
{
    struct buf buf;
    buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < 5000; i++) {
        buf_printf(&buf, "%04d", i);
    }
    ck_assert(!buf.failed);
    ck_assert_uint_eq(buf.len, 20000);
    ck_assert(view_equal(view_make(buf.ptr, 8), VIEW("00000001")));
    ck_assert(view_equal(view_make(buf.ptr + 4 * 4321, 4), VIEW("4321")));
    ck_assert(view_equal(view_make(buf.ptr + 19996, 4), VIEW("4999")));
    buf_fini(&buf);
}
END_TEST

START_TEST(reserved_room_is_written_by_the_caller)
{
    struct buf buf;
    buf_init(&buf, 10000);
    buf_append(&buf, VIEW("a"));
    char *place = buf_reserve(&buf, 9999);
    ck_assert_ptr_nonnull(place);
    memset(place, 'z', 9999);
    buf.len += 9999;
    ck_assert(view_equal(view_make(buf.ptr + 9998, 2), VIEW("zz")));
    ck_assert_ptr_null(buf_reserve(&buf, 1));
    buf_fini(&buf);
}
END_TEST

START_TEST(taken_bytes_belong_to_the_caller)
{
    struct buf buf;
    buf_init(&buf, 100);
    buf_append(&buf, VIEW("abc"));
    size_t len = 0;
    char *bytes = buf_take(&buf, &len);
    ck_assert_uint_eq(len, 3);
    buf_append(&buf, VIEW("xyz"));
    ck_assert_mem_eq(bytes, "abc", 3);
    ck_assert(view_equal(buf_view(&buf), VIEW("xyz")));
    free(bytes);
    buf_fini(&buf);
}
END_TEST

SUITE(buf)
{
    Suite *suite = suite_create("common/buf");
    CASE(suite, what_is_appended_stands_in_order);
    CASE(suite, nothing_appended_is_an_empty_view);
    CASE(suite, the_ceiling_can_be_filled_to_the_last_byte);
    CASE(suite, past_the_ceiling_nothing_is_written_and_failure_sticks);
    CASE(suite, a_printed_text_too_long_fails_too);
    CASE(suite, a_huge_length_cannot_wrap_around);
    CASE(suite, memory_that_is_not_there_is_a_failure_that_sticks);
    CASE(suite, memory_that_is_not_there_is_told_first_to_whoever_asked_for_that);
    CASE(suite, it_grows_and_keeps_what_it_holds);
    CASE(suite, reserved_room_is_written_by_the_caller);
    CASE(suite, taken_bytes_belong_to_the_caller);
    return suite;
}
