/* moved_clock.h - what a test and the server that runs by its clock share: a small file, mapped by both. The environment variable names it. */
#ifndef NONBIS_TESTS_MOVED_CLOCK_H
#define NONBIS_TESTS_MOVED_CLOCK_H

#include <stdint.h>

#define MOVED_CLOCK_FILE "TEST_CLOCK"

/* Both stand still until the test moves them: what is told of a time can then be compared to the millisecond. */
struct moved_clock {
    int64_t wall_ms, monotonic_ms;
};

#endif
