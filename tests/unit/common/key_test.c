/* key_test.c - common/key.c: contract section 2, a row per rule. */
#include "common/key.h"
#include "tests/support/suite.h"

static const struct {
    const char *value;
    enum key_result result;
    const char *key; /* for KEY_OK */
} rows[] = {
    /* Bare. */
    { "k", KEY_OK, "k" },
    { "8e03978e-40d5-43e8-bc93-6894a57f9324", KEY_OK, "8e03978e-40d5-43e8-bc93-6894a57f9324" },
    { " \tk\t ", KEY_OK, "k" },
    { "!#~", KEY_OK, "!#~" },
    { "K", KEY_OK, "K" },
    { "a,b", KEY_OK, "a,b" },
    { "a;b=1", KEY_OK, "a;b=1" },
    { "a\\b", KEY_OK, "a\\b" },
    { "'k'", KEY_OK, "'k'" },
    { ":AQID:", KEY_OK, ":AQID:" },
    { "", KEY_EMPTY, NULL },
    { " \t ", KEY_EMPTY, NULL },
    { "a b", KEY_BAD_BYTE, NULL },
    { "a\tb", KEY_BAD_BYTE, NULL },
    { "a\"b", KEY_BAD_BYTE, NULL },
    { "k\"", KEY_BAD_BYTE, NULL },
    { "a\x7F", KEY_BAD_BYTE, NULL },
    { "a\x01", KEY_BAD_BYTE, NULL },
    { "sch\xC3\xB6n", KEY_BAD_BYTE, NULL },
    { "k\r", KEY_BAD_BYTE, NULL },
    { "k1, \"k2\"", KEY_BAD_BYTE, NULL },
    /* Quoted. */
    { "\"k\"", KEY_OK, "k" },
    { "  \"k\"  ", KEY_OK, "k" },
    { "\"a\\\"b\"", KEY_OK, "a\"b" },
    { "\"a\\\\b\"", KEY_OK, "a\\b" },
    { "\"a,b;c\"", KEY_OK, "a,b;c" },
    { "\"\"", KEY_EMPTY, NULL },
    { "\"\";a", KEY_EMPTY, NULL },
    { "\"a b\"", KEY_BAD_BYTE, NULL },
    { "\" k\"", KEY_BAD_BYTE, NULL },
    { "\"a\tb\"", KEY_BAD_BYTE, NULL },
    { "\"\xC3\xB6\"", KEY_BAD_BYTE, NULL },
    { "\"", KEY_BAD_QUOTING, NULL },
    { "\"k", KEY_BAD_QUOTING, NULL },
    { "\"k\\\"", KEY_BAD_QUOTING, NULL },
    { "\"k\\", KEY_BAD_QUOTING, NULL },
    { "\"a\\nb\"", KEY_BAD_QUOTING, NULL },
    { "\"k\"x", KEY_BAD_QUOTING, NULL },
    { "\"k\"\"l\"", KEY_BAD_QUOTING, NULL },
    /* Two lines that somebody joined are two keys, never one. */
    { "\"k\", \"l\"", KEY_BAD_QUOTING, NULL },
    { "\"k\",\"k\"", KEY_BAD_QUOTING, NULL },
    { "\"k\";a=1, \"l\"", KEY_BAD_QUOTING, NULL },
    /* Parameters. */
    { "\"k\";a", KEY_OK, "k" },
    { "\"k\";a=1", KEY_OK, "k" },
    { "\"k\"; a=1;  b=?0;c=:AQ==:;*d=tok/en", KEY_OK, "k" },
    { "\"k\";a=\"x,\\\";y\"", KEY_OK, "k" },
    { "\"k\";a=%\"f%c3%bc\"", KEY_OK, "k" },
    { "\"k\";a0_-.*z9", KEY_OK, "k" },
    { "\"k\";*", KEY_OK, "k" },
    { "\"k\";a=%x", KEY_OK, "k" },
    { "\"k\";a=%", KEY_OK, "k" },
    { "\"k\";a=%\"", KEY_BAD_QUOTING, NULL },
    { "\"k\";a{", KEY_BAD_QUOTING, NULL },
    { "\"k\";a:", KEY_BAD_QUOTING, NULL },
    { "\"k\";a/", KEY_BAD_QUOTING, NULL },
    { "\"k\";{", KEY_BAD_QUOTING, NULL },
    { "\"k\";_a", KEY_BAD_QUOTING, NULL },
    { "\"k\";.a", KEY_BAD_QUOTING, NULL },
    { "\"k\" ;a", KEY_BAD_QUOTING, NULL },
    { "\"k\";", KEY_BAD_QUOTING, NULL },
    { "\"k\";a=", KEY_BAD_QUOTING, NULL },
    { "\"k\";A", KEY_BAD_QUOTING, NULL },
    { "\"k\";1a", KEY_BAD_QUOTING, NULL },
    { "\"k\";a=\"x", KEY_BAD_QUOTING, NULL },
    { "\"k\";a=\"x\\", KEY_BAD_QUOTING, NULL },
    { "\"k\";a=1 b", KEY_BAD_QUOTING, NULL },
};

START_TEST(a_value_is_one_key_or_refused_with_its_reason)
{
    struct key key = { .text = "untouched", .len = 9 };
    enum key_result result = key_parse(view_of(rows[_i].value), &key);
    ck_assert_msg(result == rows[_i].result, "<%s> gave %d", rows[_i].value, (int) result);
    const char *expected = result == KEY_OK ? rows[_i].key : "untouched";
    ck_assert_str_eq(key.text, expected);
    ck_assert_uint_eq(key.len, strlen(expected));
}
END_TEST

START_TEST(quoted_and_bare_keys_are_the_same)
{
    struct key quoted, bare;
    ck_assert_int_eq(key_parse(VIEW("\"order-17\""), &quoted), KEY_OK);
    ck_assert_int_eq(key_parse(VIEW("order-17"), &bare), KEY_OK);
    ck_assert_str_eq(quoted.text, bare.text);
    ck_assert_uint_eq(quoted.len, bare.len);
}
END_TEST

static char long_text[600];

START_TEST(a_key_has_255_bytes_at_most_after_unquoting)
{
    struct key key;
    memset(long_text, 'x', 256);
    ck_assert_int_eq(key_parse(view_make(long_text, 255), &key), KEY_OK);
    ck_assert_uint_eq(key.len, 255);
    ck_assert_uint_eq(strlen(key.text), 255);
    ck_assert_int_eq(key_parse(view_make(long_text, 256), &key), KEY_TOO_LONG);
    /* 255 escaped quotes: 512 bytes on the wire. */
    long_text[0] = '"';
    for (int i = 0; i < 256; i++) {
        long_text[1 + 2 * i] = '\\';
        long_text[2 + 2 * i] = '"';
    }
    long_text[511] = '"';
    ck_assert_int_eq(key_parse(view_make(long_text, 512), &key), KEY_OK);
    ck_assert_uint_eq(key.len, 255);
    long_text[511] = '\\';
    long_text[513] = '"';
    ck_assert_int_eq(key_parse(view_make(long_text, 514), &key), KEY_TOO_LONG);
}
END_TEST

START_TEST(a_nul_byte_is_not_the_end_of_a_key)
{
    struct key key;
    ck_assert_int_eq(key_parse(VIEW("k1\0zz"), &key), KEY_BAD_BYTE);
    ck_assert_int_eq(key_parse(VIEW("\"k1\0zz\""), &key), KEY_BAD_BYTE);
    ck_assert_int_eq(key_parse(view_make(NULL, 0), &key), KEY_EMPTY);
}
END_TEST

START_TEST(every_result_has_a_sentence)
{
    ck_assert_str_eq(key_result_text(KEY_EMPTY), "the key is empty");
    ck_assert_str_eq(key_result_text(KEY_TOO_LONG), "the key is longer than 255 bytes");
    ck_assert_str_eq(key_result_text(KEY_RESULT_COUNT), "the key is malformed");
    for (int i = 0; i < KEY_RESULT_COUNT; i++) {
        ck_assert_ptr_nonnull(key_result_text((enum key_result) i));
    }
}
END_TEST

SUITE(key)
{
    Suite *suite = suite_create("common/key");
    CASE_LOOP(suite, a_value_is_one_key_or_refused_with_its_reason, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, quoted_and_bare_keys_are_the_same);
    CASE(suite, a_key_has_255_bytes_at_most_after_unquoting);
    CASE(suite, a_nul_byte_is_not_the_end_of_a_key);
    CASE(suite, every_result_has_a_sentence);
    return suite;
}
