/* key_index_test.c - the table of keys alone: collisions, growth, undo, against a plain list; what it takes in memory, and how far a look-up
 * reads after millions of changes. */
#include "server/store/key_index.h"

#include "tests/support/suite.h"

enum { KEYS = 300, STEPS = 200000 };

static void hash_of(unsigned key, uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    memset(hash, 0, KEY_INDEX_HASH_BYTES);
    /* Few different tags in few parts, some of them equal, half of them at the very end of their part: everything collides. */
    hash[0] = (uint8_t) (key % 2);
    hash[1] = (uint8_t) (key % 3 * 16);
    memset(hash + 4, key % 4 < 2 ? 0xFF : 0, 3);
    hash[7] = (uint8_t) (key % 4 < 2 ? 0xFF : key % 11);
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

/* What SipHash gives: any bytes. */
static void hash_next(struct suite_random *random, uint8_t hash[KEY_INDEX_HASH_BYTES])
{
    for (int i = 0; i < KEY_INDEX_HASH_BYTES; i += 4) {
        uint32_t word = suite_random_next(random);
        memcpy(hash + i, &word, sizeof word);
    }
}

START_TEST(the_largest_row_is_told_from_its_neighbours_and_from_the_tag)
{
    static const int64_t rows[] = { 1, 4294967295, 4294967296, 17592186044414, 17592186044415 };
    static const uint8_t hashes[][KEY_INDEX_HASH_BYTES] = {
        { 0 },
        { 0, 0x10 },                                        /* the lowest bit of the tag */
        { 0, 0, 0, 0x10 },                                  /* the lowest bit of what gives the home */
        { 0, 0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF },    /* the largest tag */
        { 0xFF, 0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF }, /* in another part */
    };
    enum { ROWS = sizeof rows / sizeof rows[0], HASHES = sizeof hashes / sizeof hashes[0] };
    struct key_index *index = key_index_new();
    ck_assert_int_eq(KEY_INDEX_ROW_MAX, 17592186044415);
    for (int hash = 0; hash < HASHES; hash++) {
        size_t cursor = 0;
        ck_assert_int_eq(key_index_next(index, hashes[hash], &cursor), 0);
        ck_assert(!key_index_remove(index, hashes[hash], 1));
        key_index_add(index, hashes[hash], rows[hash]);
    }
    for (int hash = 0; hash < HASHES; hash++) {
        size_t cursor = 0;
        ck_assert_int_eq(key_index_next(index, hashes[hash], &cursor), rows[hash]);
        ck_assert_int_eq(key_index_next(index, hashes[hash], &cursor), 0);
        for (int row = 0; row < ROWS; row++) {
            ck_assert(row == hash || !key_index_remove(index, hashes[hash], rows[row]));
        }
    }
    for (int hash = 0; hash < HASHES; hash++) {
        ck_assert(key_index_remove(index, hashes[hash], rows[hash]));
    }
    ck_assert_uint_eq(key_index_count(index), 0);
    key_index_free(index);
}
END_TEST

static bool never_same(void *context, int64_t a, int64_t b)
{
    ck_assert_int_ne(a, b);
    (*(unsigned *) context)++;
    return false;
}

static bool rows_3_and_9(void *context, int64_t a, int64_t b)
{
    (void) context;
    return (a == 3 && b == 9) || (a == 9 && b == 3);
}

START_TEST(twins_are_asked_for_each_pair_with_one_hash_and_for_no_other)
{
    struct key_index *index = key_index_new();
    uint8_t hash[KEY_INDEX_HASH_BYTES] = { 0 };
    unsigned asked = 0;
    for (int64_t row = 1; row <= 1000; row++) {
        hash[7] = (uint8_t) row;
        hash[6] = (uint8_t) (row >> 8);
        key_index_add(index, hash, row);
    }
    ck_assert(!key_index_any_twins(index, never_same, &asked));
    ck_assert_uint_eq(asked, 0);
    memset(hash, 0xFF, sizeof hash);
    for (int64_t row = 3; row <= 9; row += 2) { /* 3, 5, 7, 9 in a part of their own, and there at its end */
        ck_assert(key_index_remove(index, (const uint8_t[KEY_INDEX_HASH_BYTES]){ [7] = (uint8_t) row }, row));
        key_index_add(index, hash, row);
    }
    ck_assert(!key_index_any_twins(index, never_same, &asked));
    ck_assert_uint_eq(asked, 6);
    ck_assert(key_index_any_twins(index, rows_3_and_9, NULL));
    key_index_free(index);
}
END_TEST

/* The bound is over what growing by a quarter at four fifths gives (18.75, and 1.3 for the tails of parts as small as these), and far under what
 * doubling would (30). */
START_TEST(a_key_takes_21_bytes_at_most_whatever_their_number)
{
    struct suite_random random;
    unsigned seed = suite_seed();
    struct key_index *index = key_index_new();
    double worst = 0;
    suite_random_start(&random, seed);
    for (int64_t row = 1; row <= 650000; row++) {
        uint8_t hash[KEY_INDEX_HASH_BYTES];
        hash_next(&random, hash);
        key_index_add(index, hash, row);
        key_index_settle(index);
        if (row >= 300000 && row % 1000 == 0) {
            double bytes = (double) key_index_bytes(index) / (double) row;
            worst = bytes > worst ? bytes : worst;
        }
    }
    FIGURE("key index seed=%u bytes a key: %.2f at most between 300,000 and 650,000 keys", seed, worst);
    ck_assert_msg(worst < 21, "%.2f bytes a key (seed %u)", worst, seed);
    key_index_free(index);
}
END_TEST

/* Mean and longest walk for keys that are not there. */
static void measure_probes(const struct key_index *index, struct suite_random *random, double *mean, size_t *longest)
{
    enum { LOOKS = 50000 };
    size_t sum = 0;
    *longest = 0;
    for (int i = 0; i < LOOKS; i++) {
        uint8_t hash[KEY_INDEX_HASH_BYTES];
        hash_next(random, hash);
        size_t probes = key_index_probes(index, hash);
        sum += probes;
        *longest = probes > *longest ? probes : *longest;
    }
    *mean = (double) sum / LOOKS;
}

/* As a server lives: as many keys are forgotten as are claimed, the oldest first. */
START_TEST(look_ups_stay_short_over_millions_of_adds_and_removes)
{
    enum { LIVE = 50000, CHANGES = 2000000 };
    struct suite_random random;
    unsigned seed = suite_seed(), missed = 0;
    uint8_t(*hashes)[KEY_INDEX_HASH_BYTES] = malloc(LIVE * sizeof *hashes);
    struct key_index *index = key_index_new();
    double mean_before, mean_after;
    size_t longest_before, longest_after;
    ck_assert_ptr_nonnull(hashes);
    suite_random_start(&random, seed);
    for (int64_t row = 1; row <= LIVE; row++) {
        hash_next(&random, hashes[row % LIVE]);
        key_index_add(index, hashes[row % LIVE], row);
    }
    measure_probes(index, &random, &mean_before, &longest_before);
    size_t bytes_before = key_index_bytes(index);
    for (int64_t row = LIVE + 1; row <= LIVE + CHANGES / 2; row++) {
        uint8_t *hash = hashes[row % LIVE];
        missed +=
            !key_index_remove(index, hash, row - LIVE); /* Check notes each assertion: millions of them take seconds */
        hash_next(&random, hash);
        key_index_add(index, hash, row);
        key_index_settle(index);
    }
    measure_probes(index, &random, &mean_after, &longest_after);
    FIGURE("key index seed=%u slots read by a look-up that finds nothing: mean %.2f, at most %zu; after %d changes "
           "%.2f, %zu",
           seed, mean_before, longest_before, CHANGES, mean_after, longest_after);
    ck_assert_uint_eq(missed, 0);
    ck_assert_uint_eq(key_index_count(index), LIVE);
    ck_assert_msg(mean_after < 4 && longest_after < 200, "mean %.2f longest %zu (seed %u)", mean_after, longest_after,
                  seed);
    ck_assert_uint_le(key_index_bytes(index), bytes_before / 2 * 3); /* parts vary, and keep the most they had */
    for (int64_t row = CHANGES / 2 + 1; row <= LIVE + CHANGES / 2; row++) {
        missed += !key_index_remove(index, hashes[row % LIVE], row);
        key_index_settle(index);
    }
    ck_assert_uint_eq(missed, 0);
    ck_assert_uint_eq(key_index_count(index), 0);
    FIGURE("key index: %zu bytes when all %d keys are forgotten", key_index_bytes(index), LIVE);
    ck_assert_uint_lt(key_index_bytes(index), 200000);
    key_index_free(index);
    free(hashes);
}
END_TEST

/* Some parts get more than one piece of a load, all end with a piece that is not full. */
START_TEST(what_was_loaded_is_there_like_what_was_added)
{
    enum { ADDED = 1000, LOADED = 200000 };
    uint8_t(*hashes)[KEY_INDEX_HASH_BYTES] = calloc(ADDED + LOADED, sizeof *hashes);
    struct suite_random random;
    unsigned seed = suite_seed(), missed = 0;
    struct key_index *index = key_index_new();
    suite_random_start(&random, seed);
    for (unsigned i = 0; i < ADDED + LOADED; i++) {
        hash_next(&random, hashes[i]);
    }
    for (unsigned i = 0; i < ADDED; i++) {
        key_index_add(index, hashes[i], i + 1);
    }
    key_index_settle(index);
    struct key_index_load *load = key_index_load_begin(index);
    for (unsigned i = ADDED; i < ADDED + LOADED; i++) {
        key_index_load_add(load, hashes[i], i + 1);
    }
    key_index_load_end(load);
    key_index_undo(index); /* undoes nothing of it */
    ck_assert_uint_eq(key_index_count(index), 201000);
    for (unsigned i = 0; i < ADDED + LOADED; i++) {
        size_t cursor = 0;
        int64_t row;
        do {
            row = key_index_next(index, hashes[i], &cursor);
        } while (row != 0 && row != i + 1);
        missed += row == 0 ? 1 : 0;
    }
    FIGURE("key index: seed=%u loaded=%d missed=%u", seed, LOADED, missed);
    ck_assert_uint_eq(missed, 0);
    key_index_free(index);
    free(hashes);
}
END_TEST

SUITE(key_index)
{
    Suite *suite = suite_create("store/key_index");
    CASE(suite, it_holds_what_a_plain_list_holds_whatever_is_undone);
    CASE(suite, it_grows_and_finds_every_row);
    CASE(suite, what_was_loaded_is_there_like_what_was_added);
    CASE(suite, the_largest_row_is_told_from_its_neighbours_and_from_the_tag);
    CASE(suite, twins_are_asked_for_each_pair_with_one_hash_and_for_no_other);
    CASE(suite, a_key_takes_21_bytes_at_most_whatever_their_number);
    CASE(suite, look_ups_stay_short_over_millions_of_adds_and_removes);
    return suite;
}
