/* view_test.c - common/view.c. */
#include "common/view.h"
#include "tests/support/suite.h"

START_TEST(an_absent_text_is_an_empty_view)
{
    struct view view = view_of(NULL);
    ck_assert_uint_eq(view.len, 0);
    ck_assert(view_equal(view, VIEW("")));
    ck_assert(view_equal_nocase(view, view_of("")));
}
END_TEST

START_TEST(comparing_looks_at_every_byte_and_at_the_length)
{
    ck_assert(view_equal(VIEW("Host"), VIEW("Host")));
    ck_assert(!view_equal(VIEW("Host"), VIEW("host")));
    ck_assert(!view_equal(VIEW("Host"), VIEW("Hos")));
    ck_assert(!view_equal(VIEW("a\0b"), VIEW("a\0c")));
}
END_TEST

START_TEST(case_is_folded_for_ascii_letters_alone)
{
    ck_assert(view_equal_nocase(VIEW("AZaz-09"), VIEW("azAZ-09")));
    ck_assert(!view_equal_nocase(VIEW("@"), VIEW("`")));
    ck_assert(!view_equal_nocase(VIEW("["), VIEW("{")));
    ck_assert(!view_equal_nocase(VIEW("\xC4"), VIEW("\xE4")));
    ck_assert(!view_equal_nocase(VIEW("abc"), VIEW("abcd")));
}
END_TEST

START_TEST(a_prefix_is_never_longer_than_the_text)
{
    ck_assert(view_starts_with(VIEW("Nonbis-Outcome"), VIEW("Nonbis-")));
    ck_assert(view_starts_with(VIEW("x"), VIEW("")));
    ck_assert(!view_starts_with(VIEW("nonbis-outcome"), VIEW("Nonbis-")));
    ck_assert(view_starts_with_nocase(VIEW("nonbis-outcome"), VIEW("Nonbis-")));
    ck_assert(!view_starts_with_nocase(VIEW("Nonbis"), VIEW("Nonbis-")));
}
END_TEST

START_TEST(trimming_takes_blanks_and_tabs_from_both_ends)
{
    ck_assert(view_equal(view_trim(VIEW(" \t a b\t ")), VIEW("a b")));
    ck_assert(view_equal(view_trim(VIEW("\na\r")), VIEW("\na\r")));
    ck_assert_uint_eq(view_trim(VIEW(" \t ")).len, 0);
    ck_assert_uint_eq(view_trim(view_make(NULL, 0)).len, 0);
}
END_TEST

START_TEST(a_list_gives_its_trimmed_elements_and_skips_empty_ones)
{
    struct view rest = VIEW(", a ,,\tb c, ,d,"), item;
    ck_assert(view_next_item(&rest, ',', &item));
    ck_assert(view_equal(item, VIEW("a")));
    ck_assert(view_next_item(&rest, ',', &item));
    ck_assert(view_equal(item, VIEW("b c")));
    ck_assert(view_next_item(&rest, ',', &item));
    ck_assert(view_equal(item, VIEW("d")));
    ck_assert(!view_next_item(&rest, ',', &item));
    ck_assert(view_equal(item, VIEW("d")));
}
END_TEST

static const struct {
    const char *text;
    bool good;
    uint64_t number;
} numbers[] = {
    { "0", true, 0 },
    { "007", true, 7 },
    { "18446744073709551615", true, UINT64_MAX },
    { "18446744073709551616", false, 0 },
    { "18446744073709551625", false, 0 },
    { "99999999999999999999999", false, 0 },
    { "", false, 0 },
    { "+1", false, 0 },
    { "-1", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "0x3", false, 0 },
    { "1.5", false, 0 },
    { "3, 3", false, 0 },
};

START_TEST(a_number_is_digits_alone_and_fits_64_bits)
{
    uint64_t number = 77;
    bool good = view_to_uint64(view_of(numbers[_i].text), &number);
    ck_assert_msg(good == numbers[_i].good, "\"%s\"", numbers[_i].text);
    ck_assert_uint_eq(number, numbers[_i].good ? numbers[_i].number : 77);
}
END_TEST

START_TEST(a_copy_is_terminated_and_its_own)
{
    char text[] = "abcd";
    char *copy = view_dup(view_make(text, 3));
    text[0] = 'x';
    ck_assert_str_eq(copy, "abc");
    free(copy);
    copy = view_dup(view_make(NULL, 0));
    ck_assert_str_eq(copy, "");
    free(copy);
}
END_TEST

SUITE(view)
{
    Suite *suite = suite_create("common/view");
    CASE(suite, an_absent_text_is_an_empty_view);
    CASE(suite, comparing_looks_at_every_byte_and_at_the_length);
    CASE(suite, case_is_folded_for_ascii_letters_alone);
    CASE(suite, a_prefix_is_never_longer_than_the_text);
    CASE(suite, trimming_takes_blanks_and_tabs_from_both_ends);
    CASE(suite, a_list_gives_its_trimmed_elements_and_skips_empty_ones);
    CASE_LOOP(suite, a_number_is_digits_alone_and_fits_64_bits, sizeof(numbers) / sizeof(numbers[0]));
    CASE(suite, a_copy_is_terminated_and_its_own);
    return suite;
}
