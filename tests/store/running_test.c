/* running_test.c - the table of running commands alone: growth, undo, the lowest row, against a plain table. */
#include "server/store/running.h"

#include "tests/support/suite.h"

enum { ROWS = 700, STEPS = 40000 };

static struct running_command command_of(int64_t row, uint32_t execution)
{
    struct running_command command = { .row = row, .due_ms = 7 * row, .record = { .execution = execution } };
    memset(command.hash, (int) (row % 251), sizeof command.hash);
    return command;
}

/* By rows: the execution that runs, 0 for none; as it is, and as it was settled. */
static void expect_same(const struct running *running, const uint32_t truth[ROWS + 1], int step)
{
    int64_t lowest = 1000000;
    size_t count = 0;
    for (int64_t row = ROWS; row >= 1; row--) {
        const struct running_command *found = running_find(running, row);
        bool same = truth[row] == 0 ? found == NULL
                                    : found != NULL && found->row == row && found->due_ms == 7 * row &&
                                          found->record.execution == truth[row] && found->hash[15] == row % 251;
        if (!same) { /* asserting costs, and this is met often */
            ck_abort_msg("step %d: row %lld", step, (long long) row);
        }
        if (found != NULL) {
            lowest = row;
            count++;
        }
    }
    ck_assert_uint_eq(running_count(running), count);
    ck_assert_int_eq(running_lowest(running, 1000000), lowest);
}

START_TEST(it_holds_what_a_plain_table_holds_whatever_is_undone)
{
    static uint32_t now[ROWS + 1], settled[ROWS + 1];
    struct suite_random random;
    unsigned seed = suite_seed(), counts[4] = { 0 };
    uint32_t executions = 0;
    struct running *running = running_new();
    FIGURE("running seed=%u steps=%d", seed, STEPS);
    suite_random_start(&random, seed);
    for (int step = 0; step < STEPS; step++) {
        unsigned what = suite_random_below(&random, 100), row = 1 + suite_random_below(&random, ROWS);
        if (what < 52 && now[row] == 0) {
            now[row] = ++executions;
            struct running_command command = command_of(row, now[row]);
            running_add(running, &command);
            counts[0]++;
        } else if (what < 97) {
            running_remove(running, row); /* also one that is not there */
            counts[1] += now[row] != 0;
            now[row] = 0;
        } else if (what < 99) {
            running_settle(running);
            memcpy(settled, now, sizeof now);
            counts[2]++;
        } else {
            running_undo(running);
            memcpy(now, settled, sizeof now);
            counts[3]++;
        }
        if (step % 20 == 0 || what >= 97) {
            expect_same(running, now, step);
        }
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(counts[i], 100);
    }
    running_free(running); /* with changes that are open */
}
END_TEST

START_TEST(the_lowest_row_of_none_is_what_was_given)
{
    struct running *running = running_new();
    ck_assert_int_eq(running_lowest(running, 42), 42);
    ck_assert_ptr_null(running_find(running, 1));
    struct running_command command = command_of(41, 1);
    running_add(running, &command);
    ck_assert_int_eq(running_lowest(running, 42), 41);
    running_remove(running, 41);
    ck_assert_int_eq(running_lowest(running, 42), 42);
    running_free(running);
}
END_TEST

SUITE(running)
{
    Suite *suite = suite_create("store/running");
    CASE(suite, it_holds_what_a_plain_table_holds_whatever_is_undone);
    CASE(suite, the_lowest_row_of_none_is_what_was_given);
    return suite;
}
