/* key_index_test.c - the table of keys alone: collisions, growth, undo, against a plain list. */
#include "server/store/key_index.h"

#include "tests/support/suite.h"

enum { KEYS = 300, STEPS = 200000 };

static void hash_of(unsigned key, uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    memset(hash, 0, KEY_INDEX_HASH_BYTES);
    /* Few different tags, some of them equal, all in the same corner of the table: everything collides. */
    hash[0] = (uint8_t) (key % 7);
    hash[1] = (uint8_t) (key % 3);
    hash[7] = (uint8_t) (key % 11);
}

static bool holds(const struct key_index *index, unsigned key, int64_t row)
{
    uint8_t hash[KEY_INDEX_HASH_BYTES];
    size_t cursor = 0;
    int64_t found;
    int times = 0;
    hash_of(key, hash);
    while ((found = key_index_next(index, hash, &cursor)) != 0) {
        times += found == row;
    }
    ck_assert_int_le(times, 1);
    return times == 1;
}

/* Random adds, removes, settles and undos against two plain lists: what is, and what was settled. */
START_TEST(it_holds_what_a_plain_list_holds_whatever_is_undone)
{
    static int64_t now[KEYS], settled[KEYS];
    struct suite_random random;
    unsigned seed = suite_seed(), counts[4] = { 0 };
    int64_t next_row = 1;
    struct key_index *index = key_index_new();
    suite_random_start(&random, seed);
    for (int step = 0; step < STEPS; step++) {
        unsigned key = suite_random_below(&random, KEYS), what = suite_random_below(&random, 100);
        uint8_t hash[KEY_INDEX_HASH_BYTES];
        hash_of(key, hash);
        if (what < 55 && now[key] == 0) {
            now[key] = next_row++;
            key_index_add(index, hash, now[key]);
            counts[0]++;
        } else if (what < 95 && now[key] != 0) {
            ck_assert(key_index_remove(index, hash, now[key]));
            ck_assert(!key_index_remove(index, hash, now[key]));
            now[key] = 0;
            counts[1]++;
        } else if (what < 98) {
            key_index_settle(index);
            memcpy(settled, now, sizeof now);
            counts[2]++;
        } else {
            key_index_undo(index);
            memcpy(now, settled, sizeof now);
            counts[3]++;
        }
        if (step % 997 == 0) {
            size_t count = 0;
            for (unsigned i = 0; i < KEYS; i++) {
                count += now[i] != 0;
                ck_assert(now[i] == 0 || holds(index, i, now[i]));
            }
            ck_assert_uint_eq(key_index_count(index), count);
        }
    }
    FIGURE("key index seed=%u add=%u remove=%u settle=%u undo=%u", seed, counts[0], counts[1], counts[2], counts[3]);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(counts[i], 0);
    }
    key_index_free(index);
}
END_TEST

START_TEST(it_grows_and_finds_every_row)
{
    struct key_index *index = key_index_new();
    for (unsigned i = 1; i <= 50000; i++) {
        uint8_t hash[KEY_INDEX_HASH_BYTES] = { (uint8_t) i, (uint8_t) (i >> 8), (uint8_t) (i * 31),
                                               (uint8_t) (i * 17) };
        key_index_add(index, hash, i);
    }
    ck_assert_uint_eq(key_index_count(index), 50000);
    for (unsigned i = 1; i <= 50000; i++) {
        uint8_t hash[KEY_INDEX_HASH_BYTES] = { (uint8_t) i, (uint8_t) (i >> 8), (uint8_t) (i * 31),
                                               (uint8_t) (i * 17) };
        size_t cursor = 0;
        int64_t row;
        do {
            row = key_index_next(index, hash, &cursor);
        } while (row != 0 && row != i);
        ck_assert_int_eq(row, i);
    }
    key_index_free(index);
}
END_TEST

SUITE(key_index)
{
    Suite *suite = suite_create("store/key_index");
    CASE(suite, it_holds_what_a_plain_list_holds_whatever_is_undone);
    CASE(suite, it_grows_and_finds_every_row);
    return suite;
}
