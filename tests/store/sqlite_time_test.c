/* sqlite_time_test.c - store time over restarts with wall clocks that go wrong and right again (docs/contract.md 9.8), and what is told of the
 * window of remembered keys by it. The usual restarts: sqlite_restart_test.c. */
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

/* One start after the other, each found by such a wall clock; then a second goes by for both clocks. max_downtime is 100000. */
START_TEST(store_time_counts_what_goes_by_and_not_what_a_wrong_clock_catches_up)
{
    static const struct {
        int64_t wall_moves_ms, store_time_ms, window_told_ms, told_offset_ms;
    } rows[] = {
        { 0, 1000000, 1000000, 0 },             /* a new store */
        { 5000, 1006000, 1000000, 0 },          /* five seconds off */
        { -400000, 1007000, 1000000, -400000 }, /* set back */
        { 2000, 1008000, 1000000, -400000 },    /* two seconds off: nobody can tell, with a clock that is behind */
        { 398000, 1009000, 1000000, 0 },        /* right again: that is no time that went by */
        { 7000, 1017000, 1000000, 0 },          /* from here on stops count again */
        { 900000000, 1118000, 900900000, 899900000 }, /* ten days ahead: counted is max_downtime */
        { -900000000, 1119000, 900900000, -100000 },  /* right again */
        { 900000000, 1120000, 900900000, 899900000 }, /* ahead again: not twice */
        { 3000, 1124000, 900900000, 899900000 },
    };
    struct store_options options = start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture_wall_ms += rows[i].wall_moves_ms;
        fixture_monotonic_ms = 17;
        struct store *store = fixture_open(&options);
        ck_assert_msg(store_now(store) == rows[i].store_time_ms, "row %zu: %lld", i, (long long) store_now(store));
        ck_assert_msg(store_window_told(store) == rows[i].window_told_ms, "row %zu: window %lld", i,
                      (long long) store_window_told(store));
        ck_assert_msg(store->told_offset_ms == rows[i].told_offset_ms, "row %zu: offset %lld", i,
                      (long long) store->told_offset_ms);
        fixture_advance(1000);
        store_close(store);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_does_not_know_how_far_ahead_the_clock_was_goes_by_its_last_times)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    fixture_wall_ms += 150000; /* 50000 of it do not count */
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1100000);
    ck_assert_int_eq(store_window_told(store), 1050000);
    ck_assert_int_eq(
        sqlite3_exec(sqlite_store_of(store)->db, "DELETE FROM meta WHERE name = 'wall_ahead_ms'", NULL, NULL, NULL),
        SQLITE_OK);
    store_close(store);
    fixture_wall_ms += 5000;
    store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1105000);
    ck_assert_int_eq(store_window_told(store), 1050000);
    store_close(store);
    fixture_wall_ms -= 400000;
    store = fixture_open(&options); /* and it is kept from then on */
    ck_assert_int_eq(store_now(store), 1105000);
    ck_assert_int_eq(store_window_told(store), 1050000);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* One start after the other. The clocks are read one after the other, so that a few milliseconds are lost or won at each. */
START_TEST(what_is_added_to_told_times_stays_the_same_until_the_clock_was_set)
{
    static const struct {
        int64_t wall_moves_ms, told_offset_ms;
    } rows[] = {
        { 0, 0 },        /* a new store */
        { -3, 0 },       /* lost between two starts */
        { -997, 0 },     /* in all it is a second now */
        { -1000, 0 },    /* two seconds */
        { -1, -2001 },   /* more: it was set */
        { 1000, -2001 }, /* half of the way back */
        { 1001, 0 },     /* right again */
        { 50000, 0 },    /* that went by */
    };
    struct store_options options = start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture_wall_ms += rows[i].wall_moves_ms;
        struct store *store = fixture_open(&options);
        ck_assert_msg(store->told_offset_ms == rows[i].told_offset_ms, "row %zu: offset %lld", i,
                      (long long) store->told_offset_ms);
        fixture_advance(1000);
        store_close(store);
    }
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_time)
{
    Suite *suite = suite_create("store/sqlite_time");
    CASE(suite, store_time_counts_what_goes_by_and_not_what_a_wrong_clock_catches_up);
    CASE(suite, what_is_added_to_told_times_stays_the_same_until_the_clock_was_set);
    CASE(suite, a_store_that_does_not_know_how_far_ahead_the_clock_was_goes_by_its_last_times);
    return suite;
}
