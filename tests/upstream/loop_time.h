/* loop_time.h - the time of the loops of this program: a uv_now of our own that stands before the library's, so that no test waits for a minute or a
 * day. Timers that are due by then run in the next turn. One thread. */
#ifndef NONBIS_TESTS_UPSTREAM_LOOP_TIME_H
#define NONBIS_TESTS_UPSTREAM_LOOP_TIME_H

#include <stdint.h>

void loop_time_pass(int64_t ms);

#endif
