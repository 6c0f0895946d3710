/* s02_key_test.c - docs/contract.md section 2: the key. */
#include "tests/contract/scene.h"

/* A POST whose key field is written so, to the route on which a key is required or to the one on which it is optional. */
static const struct http_answer *post_line(const char *target, const char *lines)
{
    return ask("POST", target, lines, "x");
}

START_TEST(rule_2_1_the_key_is_the_value_of_the_field_without_blanks_and_tabs_around_it)
{
    EXPECT(post_line("/pay", "Idempotency-Key: 2.1-a\r\n"), 200, "executed");
    EXPECT(post_line("/pay", "Idempotency-Key:2.1-a\r\n"), 200, "replayed");
    EXPECT(post_line("/pay", "Idempotency-Key: \t 2.1-a \t\r\n"), 200, "replayed");
    EXPECT(post_line("/pay", "idempotency-key: 2.1-a\r\n"), 200, "replayed");
    EXPECT_HOLDS(get_status("2.1-a", ""), "\"key\":\"2.1-a\"");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
}
END_TEST

struct spelling {
    const char *first, *again; /* two spellings of one key */
    const char *key;           /* as a status tells it, in JSON */
};
static const struct spelling spellings[] = {
    { "\"2.2-a\"", "2.2-a", "\"key\":\"2.2-a\"" },
    { "2.2-b", "\"2.2-b\"", "\"key\":\"2.2-b\"" },
    { "2.2-c\\d", "\"2.2-c\\\\d\"", "\"key\":\"2.2-c\\\\d\"" },
    { "\"2.2-d\\\"e\"", "\"2.2-d\\\"e\"", "\"key\":\"2.2-d\\\"e\"" },
    { "\"2.2-f\";a", "2.2-f", "\"key\":\"2.2-f\"" },
    { "\"2.2-g\";a=1; b=\"x;y\"", "\"2.2-g\";other=?0", "\"key\":\"2.2-g\"" },
    { "2.2-h;a=1", "\"2.2-h;a=1\"", "\"key\":\"2.2-h;a=1\"" },
    { "2.2-i\\\\j", "\"2.2-i\\\\\\\\j\"", "\"key\":\"2.2-i\\\\\\\\j\"" },
};

START_TEST(rule_2_2_a_quoted_key_and_a_bare_one_are_the_same_and_parameters_do_not_count)
{
    const struct spelling *row = &spellings[_i];
    EXPECT(post(row->first, "x"), 200, "executed");
    EXPECT(post(row->again, "x"), 200, "replayed");
    EXPECT_HOLDS(get_status(row->again, ""), row->key);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
}
END_TEST

static const char *const no_strings[] = {
    "\"2.2-z",          /* no end */
    "2.2-z\"",          /* a bare value with a quote */
    "2.2\"z",           /* in its middle */
    "\"2.2\\z\"",       /* an escape that is none */
    "\"2.2-z\\\"",      /* the end is escaped */
    "\"2.2-z\" x",      /* something behind it */
    "\"2.2-z\"x",       /* */
    "\"2.2-z\", \"y\"", /* a list */
    "\"2.2-z\";",       /* no parameter */
    "\"2.2-z\";A=1",    /* its name is none */
    "\"2.2-z\";a=",     /* it has no value */
    "\"2.2-z\";a=1 x",  /* something behind it */
};

START_TEST(rule_2_2_what_begins_with_a_quote_must_be_one_structured_field_string)
{
    EXPECT_PROBLEM(post(no_strings[_i], "x"), 400, "refused", "key-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

/* `count` times 'k', behind the name of the rule, so that the key is this case's own. */
static const char *long_key(size_t count)
{
    static char key[300];
    memset(key, 'k', sizeof key);
    memcpy(key, "2.3-", 4);
    key[count] = '\0';
    return key;
}

START_TEST(rule_2_3_a_key_has_1_to_255_bytes_after_unquoting)
{
    EXPECT(post("2", "x"), 200, "executed");
    EXPECT(post(long_key(255), "x"), 200, "executed");
    EXPECT(post(text("\"%s\"", long_key(255)), "x"), 200, "replayed");
    /* Escapes are two bytes on the wire and one of the key: 4 + 251. */
    char escaped[2 * 251 + 1];
    for (int i = 0; i < 251; i++) {
        memcpy(escaped + 2 * i, "\\\\", 2);
    }
    escaped[sizeof escaped - 1] = '\0';
    EXPECT(post_with(text("\"esc-%s\"", escaped), "", "x"), 200, "executed");
    EXPECT_PROBLEM(post(long_key(256), "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post(text("\"%s\"", long_key(256)), "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("\"\"", "x"), 400, "refused", "key-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 3);
}
END_TEST

START_TEST(rule_2_3_a_key_is_visible_ascii)
{
    EXPECT(post("!#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~", "x"),
           200, "executed");
    EXPECT(post("\"2.3-\\\"\"", "x"), 200, "executed");
    EXPECT_PROBLEM(post("2.3 blank", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("\"2.3 blank\"", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("2.3\ttab", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("2.3-\x80", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("2.3-caf\xc3\xa9", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("\"2.3-caf\xc3\xa9\"", "x"), 400, "refused", "key-malformed");
    EXPECT_PROBLEM(post("2.3-\xff", "x"), 400, "refused", "key-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 2);
}
END_TEST

START_TEST(rule_2_3_case_matters_and_nothing_is_normalised)
{
    static const char *const different[] = { "2.3-n",   "2.3-N",   "02.3-n",  "2.3-%6e", "2.3-n/",
                                             "2.3-n/.", "2.3-n//", "'2.3-n'", "2.3-n,",  "2.3-n;a=1" };
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        EXPECT(post(different[i], "x"), 200, "executed");
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 10);
}
END_TEST

START_TEST(rule_2_4_more_than_one_field_line_is_malformed)
{
    EXPECT_PROBLEM(post_line("/pay", "Idempotency-Key: 2.4\r\nIdempotency-Key: 2.4\r\n"), 400, "refused",
                   "key-malformed");
    EXPECT_PROBLEM(post_line("/pay", "Idempotency-Key: 2.4\r\nX-Other: y\r\nidempotency-key: \"2.4-b\"\r\n"), 400,
                   "refused", "key-malformed");
    EXPECT_PROBLEM(post_line("/pay", "Idempotency-Key: 2.4\r\nIdempotency-Key:\r\n"), 400, "refused", "key-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

static const char *const unreadable[] = {
    "Idempotency-Key:\r\n",
    "Idempotency-Key: \t\r\n",
    "Idempotency-Key: \"\"\r\n",
    "Idempotency-Key: a b\r\n",
    "Idempotency-Key: \"a\r\n",
    "Idempotency-Key: \xc3\xa9\r\n",
    "Idempotency-Key: a\r\nIdempotency-Key: a\r\n",
};

START_TEST(rule_2_4_a_key_that_cannot_be_read_never_counts_as_absent)
{
    EXPECT_PROBLEM(post_line("/maybe", unreadable[_i]), 400, "refused", "key-malformed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_2_5_no_key_where_one_is_required_is_refused)
{
    EXPECT_PROBLEM(post_line("/pay", NULL), 400, "", "key-missing");
    EXPECT_PROBLEM(post_line("/pay", "X-Idempotency-Key: 2.5\r\n"), 400, "", "key-missing");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
}
END_TEST

START_TEST(rule_2_5_no_key_where_it_is_optional_passes_through)
{
    for (int i = 0; i < 2; i++) {
        const struct http_answer *passed = post_line("/maybe", NULL);
        EXPECT(passed, 200, "");
        EXPECT_NO_FIELD(passed, "Link");
        ck_assert_str_eq(passed->body, "ok");
    }
    ck_assert_uint_eq(peer_count_requests(scene.peer), 2);
    EXPECT(post_line("/maybe", "Idempotency-Key: 2.5-o\r\n"), 200, "executed");
    EXPECT(post_line("/maybe", "Idempotency-Key: 2.5-o\r\n"), 200, "replayed");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 3);
}
END_TEST

SUITE(contract_key)
{
    Suite *suite = suite_create("contract/02-key");
    RULE(suite, house_routes, rule_2_1_the_key_is_the_value_of_the_field_without_blanks_and_tabs_around_it);
    RULE(suite, house_routes, rule_2_4_more_than_one_field_line_is_malformed);
    RULE_ROWS(suite, house_routes, rule_2_4_a_key_that_cannot_be_read_never_counts_as_absent, unreadable);
    RULE(suite, house_routes, rule_2_5_no_key_where_one_is_required_is_refused);
    RULE(suite, house_routes, rule_2_5_no_key_where_it_is_optional_passes_through);
    RULE_ROWS(suite, house_plain, rule_2_2_a_quoted_key_and_a_bare_one_are_the_same_and_parameters_do_not_count,
              spellings);
    RULE_ROWS(suite, house_plain, rule_2_2_what_begins_with_a_quote_must_be_one_structured_field_string, no_strings);
    RULE(suite, house_plain, rule_2_3_a_key_has_1_to_255_bytes_after_unquoting);
    RULE(suite, house_plain, rule_2_3_a_key_is_visible_ascii);
    RULE(suite, house_plain, rule_2_3_case_matters_and_nothing_is_normalised);
    return suite;
}
