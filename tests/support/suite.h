/* suite.h - what every test file includes: Check, and a suite that registers itself, so that no list of suites exists.
 *
 *   SUITE(key)
 *   {
 *       Suite *suite = suite_create("common/key");
 *       CASE(suite, quoted_and_bare_keys_are_the_same);
 *       return suite;
 *   }
 *
 * Figures for the person who reads the run (seeds, counts) are printed with FIGURE("walk seed=%u ...", ...). */
#ifndef NONBIS_TESTS_SUITE_H
#define NONBIS_TESTS_SUITE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_register(Suite *(*make)(void) );
/* The suites of this program are dealt out to so many processes at a time: for a group whose tests wait more than they work. Called by a
 * constructor. With a variable of Check's own (CK_...) in the environment one process runs them all. */
void suite_run_in(int processes);

#define SUITE(name)                                                                                                    \
    static Suite *suite_make_##name(void);                                                                             \
    __attribute__((constructor)) static void suite_constructor_##name(void)                                            \
    {                                                                                                                  \
        suite_register(suite_make_##name);                                                                             \
    }                                                                                                                  \
    static Suite *suite_make_##name(void)

/* One test per case, named after it. A timeout of 60 s is a guard against hanging, not a measure (docs/facts.md 41). */
#define CASE(suite, test) suite_add_case(suite, test, #test, 0, 1, 60)
#define CASE_LOOP(suite, test, count) suite_add_case(suite, test, #test, 0, (int) (count), 60)
#define CASE_TIMEOUT(suite, test, seconds) suite_add_case(suite, test, #test, 0, 1, seconds)
void suite_add_case(Suite *suite, const TTest *test, const char *name, int start, int end, int timeout_s);

#define FIGURE(...)                                                                                                    \
    do {                                                                                                               \
        printf("# ");                                                                                                  \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        fflush(stdout);                                                                                                \
    } while (0)

/* The seed of this run: TEST_SEED, or a new one. The test prints it. */
unsigned suite_seed(void);

/* A small generator with a seed of its own (xorshift), the same on every machine. */
struct suite_random {
    unsigned long long state;
};
void suite_random_start(struct suite_random *random, unsigned seed);
unsigned suite_random_next(struct suite_random *random);                  /* 32 bits */
unsigned suite_random_below(struct suite_random *random, unsigned bound); /* 0 .. bound-1 */

/* How many times slower than usual everything is (TEST_SLOWNESS; 1): under valgrind, which tools/run-valgrind says. Deadlines of tests, and durations
 * that a test gives the server to be quick in, are multiplied by it. */
int suite_slowness(void);

int64_t suite_now_ms(void); /* CLOCK_MONOTONIC */

/* Where the programs under test were built ("build"). */
const char *suite_out(void);

#endif
