/* Names of keys: what stands for itself, what does not, and that no two keys share one. */
#include "client-sdk/src/journal_digest.h"
#include "client-sdk/src/journal_name.h"
#include "tests/support/suite.h"

#include <ctype.h>

static const struct name_row {
    const char *key, *name;
} name_rows[] = {
    { "019245f0-0000-7000-8000-000000000001", "019245f0-0000-7000-8000-000000000001" },
    { "cmd_01J", "cmd_01%4a" },
    { "a", "a" },
    { "A", "%41" },
    { ".", "%2e" },
    { "..", "%2e%2e" },
    { "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd" },
    { "/", "%2f" },
    { "%41", "%2541" },
    { "~", "%7e" },
    { "\"quoted\\\"", "%22quoted%5c%22" },
    { "CON", "%43%4f%4e" },
    { "order:1;a=b&c", "order%3a1%3ba%3db%26c" },
};

START_TEST(a_key_has_the_name_of_its_row)
{
    const struct name_row *row = &name_rows[_i];
    char name[JOURNAL_NAME_SIZE], key[JOURNAL_NAME_KEY];
    ck_assert(journal_name_make(row->key, name));
    ck_assert_str_eq(name, row->name);
    ck_assert(journal_name_key(name, key));
    ck_assert_str_eq(key, row->key);
}
END_TEST

START_TEST(what_is_no_key_has_no_name)
{
    char name[JOURNAL_NAME_SIZE], long_key[257];
    memset(long_key, 'k', 256);
    long_key[256] = '\0';
    ck_assert(!journal_name_make("", name));
    ck_assert(!journal_name_make("a b", name));
    ck_assert(!journal_name_make("a\n", name));
    ck_assert(!journal_name_make("\x7f", name));
    ck_assert(!journal_name_make("k\xc3\xa4", name));
    ck_assert(!journal_name_make(long_key, name));
    long_key[255] = '\0';
    ck_assert(journal_name_make(long_key, name));
}
END_TEST

START_TEST(what_is_no_name_of_ours_has_no_key)
{
    static const char *const names[] = { "",    "K",  "a.bak", "%",          "%4",  "%4A", "%61",  "%4g",
                                         "%zz", "a~", "%2E",   "lost+found", "%20", "%00", "a%00b" };
    char key[JOURNAL_NAME_KEY];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_msg(!journal_name_key(names[i], key), "%s", names[i]);
    }
}
END_TEST

/* sha256 of 255 times "A": printf 'A%.0s' {1..255} | sha256sum */
START_TEST(a_long_key_has_a_short_name_that_depends_on_all_of_it)
{
    char key[256], other[256], name[JOURNAL_NAME_SIZE], other_name[JOURNAL_NAME_SIZE], back[JOURNAL_NAME_KEY];
    memset(key, 'A', 255);
    key[255] = '\0';
    memcpy(other, key, sizeof(key));
    other[254] = 'B';
    ck_assert(journal_name_make(key, name) && journal_name_make(other, other_name));
    ck_assert_uint_eq(strlen(name), 87 + 1 + 32); /* 29 times %41 */
    ck_assert_str_eq(name + 84, "%41~ae53ef4fa49739df77cfc1f4074418f7");
    ck_assert_mem_eq(name, other_name, 88);
    ck_assert_str_ne(name, other_name);
    ck_assert(!journal_name_key(name, back));
    memset(key, 'a', 128);
    key[128] = '\0';
    ck_assert(journal_name_make(key, name));
    ck_assert_str_eq(name, key); /* the longest that stands for itself */
    ck_assert(journal_name_key(name, back));
    ck_assert_str_eq(back, key);
}
END_TEST

static void random_key(struct suite_random *random, char key[256])
{
    size_t len = 1 + suite_random_below(random, suite_random_below(random, 4) == 0 ? 255 : 40);
    for (size_t i = 0; i < len; i++) {
        key[i] = (char) (0x21 + suite_random_below(random, 0x7e - 0x21 + 1));
    }
    key[len] = '\0';
}

static bool is_safe_name(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++) {
        if (!islower((unsigned char) name[i]) && !isdigit((unsigned char) name[i]) && strchr("-_%~", name[i]) == NULL) {
            return false;
        }
    }
    return len > 0 && len <= 128;
}

START_TEST(random_keys_come_back_from_their_names)
{
    struct suite_random random;
    unsigned seed = suite_seed(), plain = 0, hashed = 0;
    suite_random_start(&random, seed);
    for (int i = 0; i < 20000; i++) {
        char key[256], other[256], name[JOURNAL_NAME_SIZE], other_name[JOURNAL_NAME_SIZE], back[JOURNAL_NAME_KEY];
        random_key(&random, key);
        ck_assert(journal_name_make(key, name));
        ck_assert_msg(is_safe_name(name), "%s -> %s", key, name);
        if (strchr(name, '~') == NULL) {
            ck_assert(journal_name_key(name, back));
            ck_assert_str_eq(back, key);
            plain++;
        } else {
            hashed++;
        }
        /* One byte turned into something else, or only its case: another name, also where case does not count. */
        memcpy(other, key, sizeof(key));
        size_t at = suite_random_below(&random, (unsigned) strlen(key));
        other[at] = isupper((unsigned char) key[at])   ? (char) tolower(key[at])
                    : islower((unsigned char) key[at]) ? (char) toupper(key[at])
                                                       : (char) (key[at] == '!' ? '#' : '!');
        ck_assert(journal_name_make(other, other_name));
        ck_assert_int_ne(strcasecmp(name, other_name), 0);
    }
    FIGURE("journal names seed=%u plain=%u hashed=%u", seed, plain, hashed);
    ck_assert_uint_gt(plain, 1000);
    ck_assert_uint_gt(hashed, 100);
}
END_TEST

/* FIPS 180-4 and NIST's examples; the others by sha256sum. */
static const struct digest_row {
    const char *text;
    const char *hex;
} digest_rows[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
      "u",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

START_TEST(the_digest_is_sha256)
{
    char hex[JOURNAL_DIGEST_HEX + 1];
    journal_digest_hex(digest_rows[_i].text, strlen(digest_rows[_i].text), hex);
    ck_assert_str_eq(hex, digest_rows[_i].hex);
}
END_TEST

START_TEST(the_digest_of_a_million_times_a)
{
    char *text = malloc(1000000), hex[JOURNAL_DIGEST_HEX + 1];
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', 1000000);
    journal_digest_hex(text, 1000000, hex);
    free(text);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* Where the padding changes its length. */
START_TEST(the_digest_of_texts_around_a_block)
{
    static const struct {
        size_t len;
        const char *hex;
    } rows[] = {
        { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
        { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
        { 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
        { 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
        { 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
    };
    char text[128], hex[JOURNAL_DIGEST_HEX + 1];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        journal_digest_hex(text, rows[i].len, hex);
        ck_assert_str_eq(hex, rows[i].hex);
    }
}
END_TEST

SUITE(journal_name)
{
    Suite *suite = suite_create("client/journal_name");
    CASE_LOOP(suite, a_key_has_the_name_of_its_row, sizeof(name_rows) / sizeof(name_rows[0]));
    CASE(suite, what_is_no_key_has_no_name);
    CASE(suite, what_is_no_name_of_ours_has_no_key);
    CASE(suite, a_long_key_has_a_short_name_that_depends_on_all_of_it);
    CASE(suite, random_keys_come_back_from_their_names);
    CASE_LOOP(suite, the_digest_is_sha256, sizeof(digest_rows) / sizeof(digest_rows[0]));
    CASE(suite, the_digest_of_a_million_times_a);
    CASE(suite, the_digest_of_texts_around_a_block);
    return suite;
}
