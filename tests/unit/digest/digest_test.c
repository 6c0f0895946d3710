/* digest_test.c - keyed digests against values computed by another implementation (Python's hashlib.blake2b), comparison and
 * randomness. */
#include "server/digest/digest.h"

#include "common/buf.h"
#include "tests/support/suite.h"

#include <signal.h>

static void key_fill(uint8_t key[DIGEST_KEY_BYTES])
{
    for (int i = 0; i < DIGEST_KEY_BYTES; i++) {
        key[i] = (uint8_t) i;
    }
}

static const struct {
    const char *parts[2];
    size_t count, out_len;
    const char *hex;
} rows[] = {
    { { "acme", "order-1" }, 2, 16, "69cf54bbc39aababf1694f07b5af1da4" },
    { { "acmeo", "rder-1" }, 2, 16, "9d57c9f0240f030a0c861c301cd600fb" }, /* the border between the parts counts */
    { { NULL, NULL }, 0, 16, "3daf97bce7888fd59773c66bf647459c" },
    { { "acme", "order-1" },
      2,
      64,
      "f1bfba6a13a9e0080885dfc327334021f13dee94e136d7fc1fd560baf35dbff1a092f45ffebea68623b7cfc0a3b126419149c685433966a4"
      "75c03f86230794d1" },
};

START_TEST(keyed_digests_have_the_values_of_another_implementation)
{
    uint8_t key[DIGEST_KEY_BYTES], out[64];
    key_fill(key);
    struct view parts[2] = { view_of(rows[_i].parts[0]), view_of(rows[_i].parts[1]) };
    digest_keyed(key, parts, rows[_i].count, out, rows[_i].out_len);
    struct buf hex;
    buf_init(&hex, 200);
    buf_append_hex(&hex, out, rows[_i].out_len);
    ck_assert_uint_eq(hex.len, strlen(rows[_i].hex));
    ck_assert_mem_eq(hex.ptr, rows[_i].hex, hex.len);
    buf_fini(&hex);
}
END_TEST

START_TEST(the_name_of_a_key_in_the_log_has_the_value_of_another_implementation)
{
    uint8_t key[DIGEST_KEY_BYTES];
    char name[DIGEST_LOG_NAME_BYTES];
    key_fill(key);
    digest_log_name(key, VIEW("acme"), VIEW("order-1"), name);
    ck_assert_str_eq(name, "b97ec442a3f1");
}
END_TEST

static const struct {
    const char *parts[2];
    size_t count;
    const char *hex;
} short_rows[] = {
    { { "acme", "order-1" }, 2, "dd17cb8854ec42c5d958a91b38e3ff40" },
    { { "acmeo", "rder-1" }, 2, "fbf6da1a2173a125d0d39ea48856ff40" },
    { { NULL, NULL }, 0, "a3817f04ba25a8e66df67214c7550293" }, /* the published vector of SipHash-2-4-128 */
};

START_TEST(short_keyed_digests_have_the_values_of_another_implementation)
{
    uint8_t key[DIGEST_KEY_BYTES], out[DIGEST_SHORT_BYTES];
    key_fill(key);
    struct view parts[2] = { view_of(short_rows[_i].parts[0]), view_of(short_rows[_i].parts[1]) };
    digest_keyed_short(key, parts, short_rows[_i].count, out);
    struct buf hex;
    buf_init(&hex, 200);
    buf_append_hex(&hex, out, sizeof(out));
    ck_assert_mem_eq(hex.ptr, short_rows[_i].hex, 2 * DIGEST_SHORT_BYTES);
    buf_fini(&hex);
}
END_TEST

START_TEST(every_byte_of_the_key_counts)
{
    uint8_t key[DIGEST_KEY_BYTES], one[16], two[16];
    key_fill(key);
    struct view part = VIEW("order-1");
    digest_keyed(key, &part, 1, one, sizeof(one));
    key[_i] ^= 0x40;
    digest_keyed(key, &part, 1, two, sizeof(two));
    ck_assert_mem_ne(one, two, sizeof(one));
}
END_TEST

static const size_t refused_sizes[] = { 0, 15, 65 };

START_TEST(a_size_that_is_not_one_ends_the_process)
{
    uint8_t key[DIGEST_KEY_BYTES] = { 0 }, out[80];
    digest_keyed(key, NULL, 0, out, refused_sizes[_i]);
}
END_TEST

START_TEST(equal_bytes_are_equal_and_every_byte_counts)
{
    uint8_t a[32] = { 1, 2, 3 }, b[32] = { 1, 2, 3 };
    ck_assert(digest_equal(a, b, sizeof(a)));
    b[_i] ^= 1;
    ck_assert(!digest_equal(a, b, sizeof(a)));
    ck_assert(digest_equal(NULL, NULL, 0));
}
END_TEST

START_TEST(random_bytes_fill_the_whole_buffer_and_do_not_repeat)
{
    ck_assert(digest_init());
    ck_assert(digest_init()); /* twice is allowed */
    uint8_t seen[32] = { 0 }, last[32] = { 0 };
    for (int round = 0; round < 20; round++) {
        uint8_t now[32];
        digest_random(now, sizeof(now));
        ck_assert_mem_ne(now, last, sizeof(now));
        for (size_t i = 0; i < sizeof(now); i++) {
            seen[i] |= now[i];
        }
        memcpy(last, now, sizeof(now));
    }
    for (size_t i = 0; i < sizeof(seen); i++) {
        ck_assert_uint_ne(seen[i], 0); /* by chance: 256^-20 */
    }
    uint32_t any = 0;
    for (int round = 0; round < 20; round++) {
        any |= digest_random32();
    }
    ck_assert_uint_ne(any >> 16, 0);
    ck_assert_uint_ne(any & 0xFFFF, 0);
}
END_TEST

SUITE(digest)
{
    Suite *suite = suite_create("digest/digest");
    CASE_LOOP(suite, keyed_digests_have_the_values_of_another_implementation, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, the_name_of_a_key_in_the_log_has_the_value_of_another_implementation);
    CASE_LOOP(suite, short_keyed_digests_have_the_values_of_another_implementation, 3);
    CASE_LOOP(suite, every_byte_of_the_key_counts, DIGEST_KEY_BYTES);
    TCase *sizes = tcase_create("a_size_that_is_not_one_ends_the_process");
    tcase_add_loop_test_raise_signal(sizes, a_size_that_is_not_one_ends_the_process, SIGABRT, 0, 3);
    suite_add_tcase(suite, sizes);
    CASE_LOOP(suite, equal_bytes_are_equal_and_every_byte_counts, 32);
    CASE(suite, random_bytes_fill_the_whole_buffer_and_do_not_repeat);
    return suite;
}
