/* sim_test.c - `nonbis sim` gives the articles' table of 1000 clients: three rows exactly, the others within their bands. */
#include "tests/cli/program.h"

#include <cjson/cJSON.h>

enum { SEEDS = 20 };

struct wave {
    int peak, buckets, last_ms;
};

static struct wave wave_of(const cJSON *object, const char *strategy)
{
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(object, "strategies"))
    {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(one, "strategy")), strategy) == 0) {
            return (struct wave){ cJSON_GetObjectItem(one, "peak")->valueint,
                                  cJSON_GetObjectItem(one, "buckets")->valueint,
                                  cJSON_GetObjectItem(one, "last_ms")->valueint };
        }
    }
    ck_abort_msg("there is no strategy %s", strategy);
}

static cJSON *sim_json(const char *const *arguments)
{
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, "sim", 0);
    cJSON *object = cJSON_Parse(run.out);
    ck_assert_msg(object != NULL, "no JSON: %s", run.out);
    program_free(&run);
    return object;
}

static void expect_wave(const cJSON *object, const char *strategy, int peak, int buckets, int last_ms)
{
    struct wave wave = wave_of(object, strategy);
    ck_assert_msg(wave.peak == peak && wave.buckets == buckets && wave.last_ms == last_ms,
                  "%s: %d / %d / %d ms instead of %d / %d / %d ms", strategy, wave.peak, wave.buckets, wave.last_ms,
                  peak, buckets, last_ms);
}

START_TEST(three_rows_are_exact_and_jitter_lies_in_its_bands)
{
    int least[3] = { 100000, 100000, 100000 }, most[3] = { 0, 0, 0 };
    for (unsigned i = 0; i < SEEDS; i++) {
        static const char *const jitters[] = { "equal", "full", "decorrelated" };
        char seed[16];
        (void) snprintf(seed, sizeof seed, "%u", i + 1);
        cJSON *object = sim_json((const char *[]){ "sim", "--json", "--seed", seed, NULL });
        expect_wave(object, "immediate", 4000, 1, 0);
        expect_wave(object, "fixed", 1000, 4, 4000);
        expect_wave(object, "exponential", 1000, 4, 15000);
        int peaks[3];
        for (size_t j = 0; j < 3; j++) {
            peaks[j] = wave_of(object, jitters[j]).peak;
            least[j] = peaks[j] < least[j] ? peaks[j] : least[j];
            most[j] = peaks[j] > most[j] ? peaks[j] : most[j];
        }
        struct wave equal = wave_of(object, "equal"), full = wave_of(object, "full"),
                    decorrelated = wave_of(object, "decorrelated");
        ck_assert_msg(full.peak >= 130 && full.peak <= 200, "full: %d", full.peak);
        ck_assert_msg(equal.peak >= 195 && equal.peak <= 245, "equal: %d", equal.peak);
        ck_assert_int_lt(full.peak, equal.peak);
        ck_assert_msg(decorrelated.peak >= 55 && decorrelated.peak <= 100, "decorrelated: %d", decorrelated.peak);
        ck_assert_msg(full.last_ms <= 15000 && equal.last_ms <= 15000, "nothing comes behind the sum of the windows");
        ck_assert_msg(equal.last_ms >= 7500 + 6000, "equal: half of each window is sure");
        ck_assert_msg(decorrelated.last_ms > 50000 && decorrelated.last_ms <= 90000, "decorrelated: %d",
                      decorrelated.last_ms);
        cJSON_Delete(object);
    }
    FIGURE("sim, %d seeds: peaks equal %d to %d, full %d to %d, decorrelated %d to %d", SEEDS, least[0], most[0],
           least[1], most[1], least[2], most[2]);
}
END_TEST

START_TEST(a_seed_gives_the_same_again_and_another_gives_another)
{
    struct program first = program_run((const char *[]){ "sim", "--seed", "7", NULL });
    struct program same = program_run((const char *[]){ "sim", "--seed", "7", NULL });
    struct program other = program_run((const char *[]){ "sim", "--seed", "8", NULL });
    ck_assert_str_eq(first.out, same.out);
    ck_assert_str_ne(first.out, other.out);
    program_expect_words("table", first.out,
                         "1000 clients|4 retries each|base 1s, cap 30s|seed 7|strategy|peak|buckets|last");
    program_expect_words("rows", first.out,
                         "immediate       4000        1      0.0 s|fixed           1000        4      4.0 s|"
                         "exponential     1000        4     15.0 s");
    program_free(&first);
    program_free(&same);
    program_free(&other);
}
END_TEST

START_TEST(one_strategy_alone_gives_its_row_of_the_table)
{
    cJSON *all = sim_json((const char *[]){ "sim", "--json", "--seed", "3", NULL });
    cJSON *one = sim_json((const char *[]){ "sim", "--json", "--seed", "3", "--strategy", "full", NULL });
    struct wave wave = wave_of(all, "full");
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(one, "strategies")), 1);
    expect_wave(one, "full", wave.peak, wave.buckets, wave.last_ms);
    cJSON_Delete(all);
    cJSON_Delete(one);
}
END_TEST

START_TEST(clients_retries_and_windows_can_be_chosen)
{
    cJSON *object = sim_json((const char *[]){ "sim", "--json", "--clients", "10", "--retries", "6", "--base-delay",
                                               "200ms", "--max-delay", "1s", NULL });
    expect_wave(object, "immediate", 60, 1, 0);
    expect_wave(object, "fixed", 10, 6, 1200);
    expect_wave(object, "exponential", 10, 6, 4400); /* 0.2 0.4 0.8 1 1 1 */
    cJSON_Delete(object);
}
END_TEST

/* Counts the lines that look like a plot: "name |....|". */
static int plot_lines(const char *text)
{
    int count = 0;
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        size_t len = strcspn(line, "\n");
        count += len > 15 && line[13] == '|' && line[len - 1] == '|' ? 1 : 0;
    }
    return count;
}

START_TEST(the_plot_is_drawn_in_blocks_or_in_ascii_or_not_at_all)
{
    const struct program_start plain = { .variables = { "LC_ALL=C" } }, blocks = { .variables = { "LC_ALL=C.UTF-8" } };
    struct program ascii = program_run_as(&plain, (const char *[]){ "sim", "--seed", "7", NULL });
    struct program utf8 = program_run_as(&blocks, (const char *[]){ "sim", "--seed", "7", NULL });
    struct program none = program_run((const char *[]){ "sim", "--seed", "7", "--no-plot", NULL });
    ck_assert_int_eq(plot_lines(ascii.out), 6);
    ck_assert_int_eq(plot_lines(utf8.out), 6);
    ck_assert_int_eq(plot_lines(none.out), 0);
    program_expect_words("ascii", ascii.out, "immediate    |@  ");
    program_expect_words("blocks", utf8.out, "immediate    |\u2588  ");
    for (const char *at = ascii.out; *at != '\0'; at++) {
        ck_assert_msg((unsigned char) *at < 0x80, "a byte above ASCII");
    }
    program_free(&ascii);
    program_free(&utf8);
    program_free(&none);
}
END_TEST

SUITE(sim)
{
    Suite *suite = suite_create("cli/sim");
    CASE(suite, three_rows_are_exact_and_jitter_lies_in_its_bands);
    CASE(suite, a_seed_gives_the_same_again_and_another_gives_another);
    CASE(suite, one_strategy_alone_gives_its_row_of_the_table);
    CASE(suite, clients_retries_and_windows_can_be_chosen);
    CASE(suite, the_plot_is_drawn_in_blocks_or_in_ascii_or_not_at_all);
    return suite;
}
