/* fingerprint_test.c - comparison of fingerprints and credentials (docs/contract.md section 3). */
#include "server/core/fingerprint.h"

#include "tests/support/suite.h"

static struct fingerprint fingerprint_sample(void)
{
    struct fingerprint sample = { .version = 1, .digest = { 7 } };
    memset(sample.parts, 0x11, sizeof(sample.parts));
    return sample;
}

START_TEST(equal_fingerprints_do_not_differ)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    ck_assert_uint_eq(fingerprint_differs(&a, &b), 0);
}
END_TEST

static const struct {
    int part;
    unsigned bits;
    const char *name;
} part_rows[] = {
    { 0, 1, "method" },       { 1, 2, "authority" },         { 2, 4, "target" },
    { 3, 8, "content-type" }, { 4, 16, "content-encoding" }, { 5, 32, "body" },
};

START_TEST(a_part_that_differs_is_named)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    b.digest[31] ^= 0x80;
    b.parts[part_rows[_i].part][3] ^= 1;
    ck_assert_uint_eq(fingerprint_differs(&a, &b), part_rows[_i].bits);
    ck_assert_str_eq(fingerprint_part_name((unsigned) part_rows[_i].part), part_rows[_i].name);
}
END_TEST

START_TEST(two_parts_that_differ_are_both_named)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    b.digest[0] = 8;
    b.parts[FINGERPRINT_METHOD][0] = 0;
    b.parts[FINGERPRINT_BODY][0] = 0;
    ck_assert_uint_eq(fingerprint_differs(&a, &b), 33);
}
END_TEST

START_TEST(digests_that_differ_with_equal_parts_differ_in_every_part)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    b.digest[0] = 8;
    ck_assert_uint_eq(fingerprint_differs(&a, &b), 63);
}
END_TEST

START_TEST(every_byte_of_the_digest_counts)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    b.digest[_i] ^= 1;
    ck_assert_uint_eq(fingerprint_differs(&a, &b), 63);
}
END_TEST

START_TEST(a_record_without_a_fingerprint_equals_everything)
{
    struct fingerprint none = { .version = 0 }, b = fingerprint_sample();
    ck_assert_uint_eq(fingerprint_differs(&none, &b), 0);
}
END_TEST

START_TEST(a_request_without_a_fingerprint_equals_nothing)
{
    struct fingerprint a = fingerprint_sample(), none = { .version = 0 };
    ck_assert_uint_eq(fingerprint_differs(&a, &none), 63);
}
END_TEST

START_TEST(fingerprints_of_two_versions_are_never_equal)
{
    struct fingerprint a = fingerprint_sample(), b = fingerprint_sample();
    b.version = 2;
    ck_assert_uint_eq(fingerprint_differs(&a, &b), 63);
}
END_TEST

START_TEST(the_bit_of_credentials_has_its_name_and_others_have_none)
{
    ck_assert_int_eq(DIFFERS_CREDENTIALS, 64);
    ck_assert_str_eq(fingerprint_part_name(6), "credentials");
    ck_assert_str_eq(fingerprint_part_name(7), "");
}
END_TEST

START_TEST(every_byte_of_a_credential_counts)
{
    struct credential a = { .present = true }, b = { .present = true };
    ck_assert(!credential_differs(&a, &b));
    b.digest[_i] = 1;
    ck_assert(credential_differs(&a, &b));
}
END_TEST

START_TEST(a_credential_that_is_not_there_never_differs)
{
    struct credential a = { .present = true, .digest = { 1 } }, none = { .present = false, .digest = { 2 } };
    ck_assert(!credential_differs(&a, &none));
    ck_assert(!credential_differs(&none, &a));
    ck_assert(!credential_differs(&a, NULL));
}
END_TEST

SUITE(core_fingerprint)
{
    Suite *suite = suite_create("core/fingerprint");
    CASE(suite, equal_fingerprints_do_not_differ);
    CASE_LOOP(suite, a_part_that_differs_is_named, sizeof(part_rows) / sizeof(part_rows[0]));
    CASE(suite, two_parts_that_differ_are_both_named);
    CASE(suite, digests_that_differ_with_equal_parts_differ_in_every_part);
    CASE_LOOP(suite, every_byte_of_the_digest_counts, FINGERPRINT_BYTES);
    CASE(suite, a_record_without_a_fingerprint_equals_everything);
    CASE(suite, a_request_without_a_fingerprint_equals_nothing);
    CASE(suite, fingerprints_of_two_versions_are_never_equal);
    CASE(suite, the_bit_of_credentials_has_its_name_and_others_have_none);
    CASE_LOOP(suite, every_byte_of_a_credential_counts, CREDENTIAL_BYTES);
    CASE(suite, a_credential_that_is_not_there_never_differs);
    return suite;
}
