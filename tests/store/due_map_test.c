/* due_map_test.c - the map of what is due alone: order, transactions, blocks that go and come, against a plain table. */
#include "server/store/due_map.h"

#include "tests/support/suite.h"

static void expect_order(const struct due_map *map, int line, const struct due_block *wanted, size_t count)
{
    struct due_block block = DUE_BLOCK_BEFORE_ALL;
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(due_map_next(map, &block), "line %d: only %zu blocks", line, i);
        ck_assert_msg(block.number == wanted[i].number && block.due_ms == wanted[i].due_ms,
                      "line %d: block %lld at %lld, expected %lld at %lld", line, (long long) block.number,
                      (long long) block.due_ms, (long long) wanted[i].number, (long long) wanted[i].due_ms);
    }
    ck_assert_msg(!due_map_next(map, &block), "line %d: another block, %lld", line, (long long) block.number);
    ck_assert_uint_eq(due_map_count(map), count);
}
#define EXPECT(...)                                                                                                    \
    expect_order(map, __LINE__, (const struct due_block[]){ __VA_ARGS__ },                                             \
                 sizeof((const struct due_block[]){ __VA_ARGS__ }) / sizeof(struct due_block))
#define EXPECT_NONE expect_order(map, __LINE__, NULL, 0)

START_TEST(a_row_belongs_to_the_block_of_its_number)
{
    static const struct {
        int64_t row, number;
    } rows[] = { { 1, 0 }, { 255, 0 }, { 256, 1 }, { 511, 1 }, { 512, 2 }, { 2560000000000, 10000000000 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(due_map_block_of(rows[i].row), rows[i].number);
    }
}
END_TEST

START_TEST(blocks_come_in_the_order_of_their_times_and_then_of_their_numbers)
{
    struct due_map *map = due_map_new();
    EXPECT_NONE;
    due_map_lower(map, 1, 700);
    due_map_lower(map, 256, 500);
    due_map_lower(map, 1024, 700);
    due_map_lower(map, 512, 700); /* a block between others */
    due_map_lower(map, 513, 900); /* later than what is known */
    due_map_lower(map, 767, 600); /* earlier */
    EXPECT({ 1, 500 }, { 2, 600 }, { 0, 700 }, { 4, 700 });
    due_map_free(map);
}
END_TEST

START_TEST(what_is_raised_counts_once_it_is_settled_and_not_when_it_is_undone)
{
    struct due_map *map = due_map_new();
    due_map_lower(map, 1, 100);
    due_map_lower(map, 256, 200);
    due_map_settle(map);
    due_map_raise(map, 0, 900);
    EXPECT({ 0, 100 }, { 1, 200 });
    due_map_undo(map);
    due_map_settle(map);
    EXPECT({ 0, 100 }, { 1, 200 });
    due_map_raise(map, 0, 900);
    due_map_raise(map, 1, DUE_NEVER);
    EXPECT({ 0, 100 }, { 1, 200 });
    due_map_settle(map);
    EXPECT({ 0, 900 });
    due_map_raise(map, 0, 950);
    due_map_raise(map, 0, 1000); /* read again: the later word */
    due_map_settle(map);
    EXPECT({ 0, 1000 });
    due_map_free(map);
}
END_TEST

START_TEST(what_is_lowered_counts_at_once_and_is_never_taken_back)
{
    struct due_map *map = due_map_new();
    due_map_lower(map, 1, 100);
    due_map_settle(map);
    due_map_lower(map, 2, 50);
    EXPECT({ 0, 50 });
    due_map_undo(map);
    EXPECT({ 0, 50 });
    due_map_raise(map, 0, 900);
    due_map_lower(map, 3, 300); /* by the same transaction, behind the look */
    due_map_settle(map);
    EXPECT({ 0, 300 });
    due_map_raise(map, 0, DUE_NEVER);
    due_map_lower(map, 3, 400);
    due_map_settle(map);
    EXPECT({ 0, 400 });
    due_map_raise(map, 0, DUE_NEVER);
    due_map_settle(map);
    EXPECT_NONE;
    due_map_lower(map, 4, 500); /* rows of a block that was empty */
    EXPECT({ 0, 500 });
    due_map_free(map);
}
END_TEST

/* --- against a plain table --- */

enum { BLOCKS = 40, STEPS = 20000 };

/* By blocks: the truth, which a sweep that reads the block would find, and what must not be undercut. 0: nothing is due there. */
START_TEST(no_time_is_ever_later_than_the_truth_whatever_is_undone)
{
    int64_t truth[BLOCKS] = { 0 }, truth_settled[BLOCKS] = { 0 };
    struct suite_random random;
    unsigned seed = suite_seed(), raises = 0, undone = 0;
    struct due_map *map = due_map_new();
    FIGURE("due map seed=%u steps=%d", seed, STEPS);
    suite_random_start(&random, seed);
    for (int step = 0; step < STEPS; step++) {
        unsigned number = suite_random_below(&random, BLOCKS), what = suite_random_below(&random, 100);
        int64_t due_ms = 1 + suite_random_below(&random, 1000);
        if (what < 50) { /* a record is written */
            due_map_lower(map, (int64_t) number * 256 + suite_random_below(&random, 256), due_ms);
            truth[number] = truth[number] == 0 || due_ms < truth[number] ? due_ms : truth[number];
        } else if (what < 80) { /* a block is read, and what was due in it is gone or changed */
            truth[number] = what < 60 ? 0 : due_ms;
            due_map_raise(map, number, truth[number] == 0 ? DUE_NEVER : truth[number]);
            raises++;
        } else if (what < 95) {
            due_map_settle(map);
            memcpy(truth_settled, truth, sizeof truth);
        } else {
            due_map_undo(map);
            memcpy(truth, truth_settled, sizeof truth);
            undone++;
        }
        int64_t told[BLOCKS] = { 0 };
        struct due_block block = DUE_BLOCK_BEFORE_ALL;
        for (int64_t before_ms = 0; due_map_next(map, &block); before_ms = block.due_ms) {
            if (block.due_ms < before_ms || told[block.number] != 0) { /* asserting costs, and this is met often */
                ck_abort_msg("step %d: block %lld is out of order", step, (long long) block.number);
            }
            told[block.number] = block.due_ms;
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            int64_t settled_ms = truth_settled[i];
            if (settled_ms != 0 && (told[i] == 0 || told[i] > settled_ms)) {
                ck_abort_msg("step %d: block %u is told as due at %lld, and is at %lld", step, i, (long long) told[i],
                             (long long) settled_ms);
            }
        }
    }
    ck_assert_uint_gt(raises, 100);
    ck_assert_uint_gt(undone, 100);
    due_map_free(map);
}
END_TEST

/* --- the order, where there are many --- */

enum { MANY = 3000, MANY_STEPS = 60000, LOOK_EVERY = 40, LOOK_BLOCKS = 40 };

static int64_t plain[MANY], plain_raised[MANY]; /* 0: none; the latter: nothing was raised */

static void plain_settle(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        if (plain_raised[i] != 0) {
            plain[i] = plain_raised[i] == DUE_NEVER ? 0 : plain_raised[i];
            plain_raised[i] = 0;
        }
    }
}

/* The first block behind it, by looking at all of them; the number is -1 when there is none. */
static struct due_block plain_next(const struct due_block *behind)
{
    struct due_block next = { -1, DUE_NEVER };
    for (unsigned i = 0; i < MANY; i++) {
        bool after = plain[i] > behind->due_ms || (plain[i] == behind->due_ms && (int64_t) i > behind->number);
        if (plain[i] != 0 && after && plain[i] < next.due_ms) {
            next = (struct due_block){ i, plain[i] };
        }
    }
    return next;
}

static void expect_plain(const struct due_map *map, int step)
{
    struct due_block block = DUE_BLOCK_BEFORE_ALL, wanted = block;
    for (unsigned i = 0; i < LOOK_BLOCKS && wanted.due_ms != DUE_NEVER; i++) {
        wanted = plain_next(&wanted);
        bool there = due_map_next(map, &block);
        if (there != (wanted.number >= 0) ||
            (there && (block.number != wanted.number || block.due_ms != wanted.due_ms))) {
            ck_abort_msg("step %d: block %lld at %lld is not the next one, but %lld at %lld", step,
                         (long long) block.number, (long long) block.due_ms, (long long) wanted.number,
                         (long long) wanted.due_ms);
        }
    }
}

static size_t plain_count(void)
{
    size_t count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        count += plain[i] != 0 ? 1 : 0;
    }
    return count;
}

START_TEST(the_order_is_that_of_a_walk_over_all_blocks)
{
    struct suite_random random;
    unsigned seed = suite_seed();
    size_t most = 0, least = SIZE_MAX;
    struct due_map *map = due_map_new();
    FIGURE("due map order seed=%u steps=%d", seed, MANY_STEPS);
    suite_random_start(&random, seed);
    for (int step = 0; step < MANY_STEPS; step++) {
        unsigned what = suite_random_below(&random, 100), grows = step / 10000 % 2 == 0 ? 60 : 5;
        unsigned number = suite_random_below(&random, MANY);
        int64_t due_ms = 1 + suite_random_below(&random, 400); /* many of one time */
        if (what < grows) {
            due_map_lower(map, (int64_t) number * 256, due_ms);
            plain[number] = plain[number] == 0 || due_ms < plain[number] ? due_ms : plain[number];
            plain_raised[number] = plain_raised[number] > due_ms ? due_ms : plain_raised[number];
        } else if (what < 95) {
            plain_raised[number] = what % 4 == 0 ? due_ms : DUE_NEVER;
            due_map_raise(map, number, plain_raised[number]);
        } else if (what < 99) {
            due_map_settle(map);
            plain_settle();
        } else {
            due_map_undo(map);
            memset(plain_raised, 0, sizeof plain_raised);
        }
        if (step % LOOK_EVERY == 0) {
            expect_plain(map, step);
            ck_assert_uint_eq(due_map_count(map), plain_count());
            most = due_map_count(map) > most ? due_map_count(map) : most;
            least = step > 10000 && due_map_count(map) < least ? due_map_count(map) : least;
        }
    }
    FIGURE("due map order: %zu blocks at most, then %zu at least", most, least);
    ck_assert_uint_gt(most, 1500);
    ck_assert_uint_lt(least, most / 2);
    due_map_free(map);
}
END_TEST

SUITE(due_map)
{
    Suite *suite = suite_create("store/due_map");
    CASE(suite, a_row_belongs_to_the_block_of_its_number);
    CASE(suite, blocks_come_in_the_order_of_their_times_and_then_of_their_numbers);
    CASE(suite, what_is_raised_counts_once_it_is_settled_and_not_when_it_is_undone);
    CASE(suite, what_is_lowered_counts_at_once_and_is_never_taken_back);
    CASE(suite, no_time_is_ever_later_than_the_truth_whatever_is_undone);
    CASE(suite, the_order_is_that_of_a_walk_over_all_blocks);
    return suite;
}
