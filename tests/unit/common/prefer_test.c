/* prefer_test.c - common/prefer.c: a row per way to write the preference, and values of any bytes. */
#include "common/prefer.h"
#include "tests/support/suite.h"

enum { NONE = -1 };

static const struct {
    const char *value;
    int64_t wait_s; /* NONE: no preference is found */
} rows[] = {
    /* Plainly. */
    { "wait=10", 10 },
    { "wait=0", 0 },
    { "wait=007", 7 },
    { "Wait=3", 3 },
    { "WAIT=3", 3 },
    { "wait = 3", 3 },
    { "\twait\t=\t3 ", 3 },
    /* Quoted. */
    { "wait=\"10\"", 10 },
    { "wait=\"0\"", 0 },
    { "wait = \"10\" ", 10 },
    { "wait=\"1\\0\"", 10 },
    { "wait=\"\"", NONE },
    { "wait=\" 1\"", NONE },
    { "wait=\"1 \"", NONE },
    { "wait=\"1,2\"", NONE },
    { "wait=\"1", NONE },
    { "wait=\"1\\", NONE },
    { "wait=\"1\\\"", NONE },
    { "wait=\"1\\\";x\"", NONE },
    { "wait=\"1\\,\"", NONE },
    { "wait=\"1;;x\"", NONE },
    { "wait=\"1 ;x\"", NONE },
    { "wait=\"1\"2", NONE },
    { "wait=1\"2\"", NONE },
    /* No number. */
    { "wait", NONE },
    { "wait=", NONE },
    { "wait=x", NONE },
    { "wait=1x", NONE },
    { "wait=-1", NONE },
    { "wait=+1", NONE },
    { "wait=1.5", NONE },
    { "wait=0x10", NONE },
    { "wait=1 2", NONE },
    { "wait==1", NONE },
    { "wait=\\1", NONE },
    { "wait:1", NONE },
    { "wait 1", NONE },
    /* Parameters are passed over, and may hold what looks like an end. */
    { "wait=5;x", 5 },
    { "wait=5 ; x=1", 5 },
    { "wait=5;", 5 },
    { "wait=5;;", 5 },
    { "wait=5;wait=6", 5 },
    { "wait=\"5\";x=\"a,b\"", 5 },
    { "wait=5;x=\"a\\\",b\", wait=6", 5 },
    { "wait=5;x=\"a", NONE },
    { "wait;wait=6", NONE },
    /* Lists: other preferences, with and without values; the first that can be read counts. */
    { "respond-async, wait=10", 10 },
    { "respond-async,wait=10", 10 },
    { "return=minimal, wait=10, handling=lenient", 10 },
    { "return=\"minimal\";x=\"y\",wait=10", 10 },
    { "wait=10, wait=20", 10 },
    { "wait=0, wait=20", 0 },
    { ", ,\t,wait=10,,", 10 },
    { "wait=x, wait=20", 20 },
    { "wait, wait=20", 20 },
    { "wait=\"x\", wait=20", 20 },
    { "=, wait=20", 20 },
    { ";, wait=20", 20 },
    { "@ (), wait=20", 20 },
    { "waiting=5", NONE },
    { "wait5=5", NONE },
    { "await=5", NONE },
    { "x-wait=5", NONE },
    { "wai=5", NONE },
    { "foo; wait=5", NONE },
    { "foo=wait=5", NONE },
    /* What is quoted is no preference. */
    { "foo=\"a, wait=5\"", NONE },
    { "foo=\"a, wait=5\", wait=6", 6 },
    { "foo=\"a\\\", wait=5\", wait=6", 6 },
    { "foo=\"a\\\\\", wait=5", 5 },
    { "foo; x=\", wait=5, \", wait=6", 6 },
    { "foo=\"a, wait=5", NONE },
    { "wait=4, foo=\"a, wait=5", 4 },
    { "foo=\\\"a, wait=5", NONE }, /* a backslash outside of quotes is a byte like any other */
    { "\"wait\"=5", NONE },
    { "\"wait=5\"", NONE },
    /* Nothing. */
    { "", NONE },
    { " ", NONE },
    { ",", NONE },
    { "\"", NONE },
    { "\\", NONE },
    { "respond-async", NONE },
    /* Large. */
    { "wait=9223372036854775806", INT64_MAX - 1 },
    { "wait=9223372036854775807", INT64_MAX },
    { "wait=9223372036854775808", INT64_MAX },
    { "wait=9223372036854775810", INT64_MAX },
    { "wait=\"18446744073709551617\"", INT64_MAX },
    { "wait=99999999999999999999999999999999", INT64_MAX },
    { "wait=00000000000000000000000000000000000000012", 12 },
};

START_TEST(a_wait_is_read_or_is_as_if_it_were_not_there)
{
    int64_t wait_s = -77;
    enum prefer_found found = prefer_read_wait(view_of(rows[_i].value), &wait_s);
    bool expected = rows[_i].wait_s != NONE;
    ck_assert_msg((found == PREFER_WAIT) == expected, "<%s> gave %d, %lld", rows[_i].value, (int) found,
                  (long long) wait_s);
    ck_assert_msg(wait_s == (expected ? rows[_i].wait_s : -77), "<%s> gave %lld", rows[_i].value, (long long) wait_s);
}
END_TEST

START_TEST(a_nul_byte_is_no_end_and_no_bytes_are_no_preference)
{
    int64_t wait_s = -77;
    ck_assert_int_eq(prefer_read_wait(VIEW("wait=5\0"), &wait_s), PREFER_NONE);
    ck_assert_int_eq(prefer_read_wait(VIEW("a\0b, wait\0=5"), &wait_s), PREFER_NONE);
    ck_assert_int_eq(prefer_read_wait(view_make(NULL, 0), &wait_s), PREFER_NONE);
    ck_assert_int_eq(wait_s, -77);
    ck_assert_int_eq(prefer_read_wait(VIEW("a\0b, wait=5"), &wait_s), PREFER_WAIT);
    ck_assert_int_eq(wait_s, 5);
}
END_TEST

/* A value of pieces that matter, in memory that ends where it ends (a sanitizer notices one byte more). Returns its length. */
static size_t random_value(struct suite_random *random, char *bytes, size_t max)
{
    static const char *const pieces[] = { "wait=", "wait", "Wait = ", "=",  ",", ", ", ";",       "\"",   "\\",
                                          " ",     "\t",   "1",       "20", "x", "a=", "\"b,c\"", "\x80", "wait=7" };
    size_t len = 0, count = suite_random_below(random, 12);
    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[suite_random_below(random, sizeof(pieces) / sizeof(pieces[0]))];
        size_t piece_len = strlen(piece);
        if (len + piece_len <= max) {
            memcpy(bytes + len, piece, piece_len);
            len += piece_len;
        }
    }
    return len;
}

START_TEST(only_the_bytes_of_the_value_are_read_and_what_stands_before_an_element_does_not_matter)
{
    enum { ROUNDS = 200 * 1000, MAX = 80 };
    static const char before[] = "x=\"wait=3, \\\"\";y=z, ";
    struct suite_random random;
    unsigned seed = suite_seed(), found_count = 0;
    suite_random_start(&random, seed);
    for (int i = 0; i < ROUNDS; i++) {
        char text[MAX + 4], longer[sizeof(before) - 1 + MAX];
        size_t len = random_value(&random, text, MAX);
        char *exact = malloc(len > 0 ? len : 1);
        memcpy(exact, text, len);
        int64_t wait_s = -1, other_s = -1;
        enum prefer_found found = prefer_read_wait(view_make(exact + (len > 0 ? 0 : 1), len), &wait_s);
        free(exact);
        bool agree = (found == PREFER_WAIT) == (wait_s >= 0);
        found_count += found == PREFER_WAIT;

        memcpy(text + len, "99\"", 4); /* behind its end */
        agree = agree && prefer_read_wait(view_make(text, len), &other_s) == found && other_s == wait_s;

        memcpy(longer, before, sizeof(before) - 1);
        memcpy(longer + sizeof(before) - 1, text, len);
        other_s = -1;
        agree = agree && prefer_read_wait(view_make(longer, sizeof(before) - 1 + len), &other_s) == found;
        if (!agree || other_s != wait_s) { /* Check writes each assertion to a file: a million of them take seconds */
            ck_abort_msg("<%.*s> gave %d, %lld, seed %u", (int) len, text, (int) found, (long long) wait_s, seed);
        }
    }
    FIGURE("prefer: %d random values, a wait in %u, seed=%u", ROUNDS, found_count, seed);
    ck_assert_uint_gt(found_count, 0);
    ck_assert_uint_lt(found_count, ROUNDS);
}
END_TEST

SUITE(prefer)
{
    Suite *suite = suite_create("common/prefer");
    CASE_LOOP(suite, a_wait_is_read_or_is_as_if_it_were_not_there, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, a_nul_byte_is_no_end_and_no_bytes_are_no_preference);
    CASE(suite, only_the_bytes_of_the_value_are_read_and_what_stands_before_an_element_does_not_matter);
    return suite;
}
