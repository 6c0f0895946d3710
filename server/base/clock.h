/* clock.h - the only reader of time, but for the loop's timers, which are libuv's (loop_now_ms), and the Date that
 * libmicrohttpd writes. Any thread. */
#ifndef NONBIS_SERVER_BASE_CLOCK_H
#define NONBIS_SERVER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t clock_wall_ms(void);      /* since 1970, UTC; may jump: for logs, Date, and what went by while we were off */
int64_t clock_monotonic_ms(void); /* never goes back; for intervals */
int64_t clock_monotonic_us(void);
/* `after_ms` from now, for a pthread_cond_timedwait whose condition goes by CLOCK_MONOTONIC. */
struct timespec clock_wait_until(int64_t after_ms);

#endif
