/* clock_hand.h - a test's hold on the clock of a running build/nonbisd-moved (moved_clock.h). Wall clock and monotonic clock stand still until
 * they are moved here, each by itself or both together. */
#ifndef NONBIS_TESTS_CLOCK_HAND_H
#define NONBIS_TESTS_CLOCK_HAND_H

#include "tests/support/moved_clock.h"

enum { MOVED_SECOND = 1000, MOVED_MINUTE = 60 * MOVED_SECOND, MOVED_HOUR = 60 * MOVED_MINUTE };
#define MOVED_DAY (INT64_C(24) * MOVED_HOUR)
#define MOVED_YEAR (INT64_C(365) * MOVED_DAY)

struct clock_hand {
    char path[600];
    struct moved_clock *clock; /* NULL: none, the server goes by the machine's clock */
};

/* A new clock; `wall` as "2030-01-01T00:00:00Z". Its monotonic clock says one hour. Ends with the test's process. */
void clock_hand_make(struct clock_hand *hand, const char *wall);
void clock_hand_set_wall(struct clock_hand *hand, const char *wall);
void clock_hand_set_monotonic(struct clock_hand *hand, int64_t monotonic_ms); /* a reboot */
void clock_hand_step_wall(struct clock_hand *hand, int64_t ms);               /* somebody sets the clock */
void clock_hand_pass(struct clock_hand *hand, int64_t ms);                    /* time goes by: both */

#endif
