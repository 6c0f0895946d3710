/* fingerprint_make_test.c - fingerprints and credential digests against values computed by another implementation (Python's
 * hashlib.blake2b; the empty payload also with b2sum). Docs/contract.md section 3. */
#include "server/digest/fingerprint_make.h"

#include "common/buf.h"
#include "tests/support/suite.h"

static void hex_check(const uint8_t *bytes, size_t len, const char *want)
{
    struct buf hex;
    buf_init(&hex, 200);
    buf_append_hex(&hex, bytes, len);
    ck_assert_uint_eq(hex.len, strlen(want));
    ck_assert_msg(memcmp(hex.ptr, want, hex.len) == 0, "got %.*s, want %s", VIEW_ARGS(buf_view(&hex)), want);
    buf_fini(&hex);
}

static const struct {
    const char *parts[FINGERPRINT_PART_COUNT];
    const char *digest, *part_digests[FINGERPRINT_PART_COUNT];
} rows[] = {
    { { "POST", "shop.example:8620", "/orders?x=1", "application/json", "", "{\"item\":7}" },
      "a83577fdb692b6550189c5f815cc7f7f45bfa65913b5f7a48b6c16af916a84ea",
      { "db0921ec", "009d05d3", "78a881cc", "ef684949", "d7007773", "b519cccf" } },
    { { "", "", "", "", "", "" },
      "e3b6ce68287c95ade182e9fcbf6bac3c34a1c885ba7d2a200540bef7b56a4230",
      { "d7007773", "d7007773", "d7007773", "d7007773", "d7007773", "d7007773" } },
    { { NULL, NULL, NULL, NULL, NULL, NULL }, /* absent is empty */
      "e3b6ce68287c95ade182e9fcbf6bac3c34a1c885ba7d2a200540bef7b56a4230",
      { "d7007773", "d7007773", "d7007773", "d7007773", "d7007773", "d7007773" } },
};

START_TEST(fingerprints_have_the_values_of_another_implementation)
{
    struct view parts[FINGERPRINT_PART_COUNT];
    for (int i = 0; i < FINGERPRINT_PART_COUNT; i++) {
        parts[i] = view_of(rows[_i].parts[i]);
    }
    struct fingerprint made;
    memset(&made, 0xEE, sizeof(made));
    fingerprint_make(parts, &made);
    ck_assert_uint_eq(made.version, 1);
    hex_check(made.digest, FINGERPRINT_BYTES, rows[_i].digest);
    for (int i = 0; i < FINGERPRINT_PART_COUNT; i++) {
        hex_check(made.parts[i], FINGERPRINT_PART_BYTES, rows[_i].part_digests[i]);
    }
}
END_TEST

START_TEST(a_large_binary_body_has_the_value_of_another_implementation)
{
    static char body[256 * 512];
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (char) (i % 256);
    }
    struct view parts[FINGERPRINT_PART_COUNT] = {
        VIEW("POST"), VIEW("shop.example"),   VIEW("/orders"), VIEW("application/octet-stream"),
        VIEW("gzip"), { body, sizeof(body) },
    };
    struct fingerprint made;
    fingerprint_make(parts, &made);
    hex_check(made.digest, FINGERPRINT_BYTES, "2f599b1497f3c9dd55164602607d094fe623506e73b90d7e0cc1a6621f7c5daa");
    hex_check(made.parts[FINGERPRINT_BODY], FINGERPRINT_PART_BYTES, "54c03c51");
}
END_TEST

START_TEST(the_border_between_two_parts_counts)
{
    struct view parts[FINGERPRINT_PART_COUNT] = {
        VIEW("PO"), VIEW("STshop.example:8620"), VIEW("/orders?x=1"), VIEW("application/json"),
        VIEW(""),   VIEW("{\"item\":7}"),
    };
    struct fingerprint made;
    fingerprint_make(parts, &made);
    hex_check(made.digest, FINGERPRINT_BYTES, "99747b4aec62aeb6b9b8b8389c78cf93de4854e01af900d49622c50db38ba5d0");
}
END_TEST

START_TEST(a_change_of_one_part_is_found_as_that_part)
{
    struct view parts[FINGERPRINT_PART_COUNT] = { VIEW("a"), VIEW("b"), VIEW("c"), VIEW("d"), VIEW("e"), VIEW("f") };
    struct fingerprint one, two;
    fingerprint_make(parts, &one);
    parts[_i] = VIEW("x");
    fingerprint_make(parts, &two);
    ck_assert_uint_eq(fingerprint_differs(&one, &two), 1U << _i);
}
END_TEST

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        { n, sizeof(n) - 1 },                                                                                          \
        {                                                                                                              \
            v, sizeof(v) - 1                                                                                           \
        }                                                                                                              \
    }

static const struct header with_bearer[] = { FIELD("host", "a"), FIELD("authorization", "Bearer abc"),
                                             FIELD("Date", "x") };
static const struct header with_empty[] = { FIELD("Authorization", "") };
static const struct header with_two[] = { FIELD("X-API-Key", "a"), FIELD("X-API-KEY", "b") };
static const struct header with_one[] = { FIELD("X-API-Key", "ab") };

static const struct {
    const struct header *items;
    size_t count;
    const char *hex;
} credential_rows[] = {
    { with_bearer, 3, "74e59d07b120ad232e62791be8dfd5ce" },
    { NULL, 0, "f4c602f0da7df6548f953c0bc0149576" }, /* absent is a value of its own */
    { with_empty, 1, "a64b54f15e02bb9b810cfae3455cd84b" },
    { with_two, 2, "4b37761d8f12675a78a68e9d7189217b" },
    { with_one, 1, "9a11c6232f8589385e8427c359fbec9b" },
};

START_TEST(credentials_have_the_values_of_another_implementation)
{
    uint8_t key[DIGEST_KEY_BYTES];
    for (int i = 0; i < DIGEST_KEY_BYTES; i++) {
        key[i] = (uint8_t) i;
    }
    const struct view lower[] = { VIEW("authorization"), VIEW("x-api-key") };
    const struct view mixed[] = { VIEW("Authorization"), VIEW("X-API-Key") };
    struct header_span headers = { credential_rows[_i].items, credential_rows[_i].count };
    struct credential made;
    credential_make(key, lower, 2, headers, &made);
    ck_assert(made.present);
    hex_check(made.digest, CREDENTIAL_BYTES, credential_rows[_i].hex);
    credential_make(key, mixed, 2, headers, &made); /* however the setting is written */
    hex_check(made.digest, CREDENTIAL_BYTES, credential_rows[_i].hex);
}
END_TEST

START_TEST(without_a_guard_there_is_no_credential)
{
    uint8_t key[DIGEST_KEY_BYTES] = { 0 };
    struct header_span headers = { with_bearer, 3 };
    struct credential made = { .present = true, .digest = { 1 } };
    credential_make(key, NULL, 0, headers, &made);
    ck_assert(!made.present);
    ck_assert_uint_eq(made.digest[0], 0);
}
END_TEST

SUITE(digest_fingerprint_make)
{
    Suite *suite = suite_create("digest/fingerprint_make");
    CASE_LOOP(suite, fingerprints_have_the_values_of_another_implementation, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, a_large_binary_body_has_the_value_of_another_implementation);
    CASE(suite, the_border_between_two_parts_counts);
    CASE_LOOP(suite, a_change_of_one_part_is_found_as_that_part, FINGERPRINT_PART_COUNT);
    CASE_LOOP(suite, credentials_have_the_values_of_another_implementation,
              sizeof(credential_rows) / sizeof(credential_rows[0]));
    CASE(suite, without_a_guard_there_is_no_credential);
    return suite;
}
