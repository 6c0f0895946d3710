/* clock.h - the only reader of time. Any thread. */
#ifndef NONBIS_SERVER_BASE_CLOCK_H
#define NONBIS_SERVER_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms(void);      /* since 1970, UTC; may jump: for logs and Date only */
int64_t clock_monotonic_ms(void); /* never goes back; for intervals */
int64_t clock_monotonic_us(void);

#endif
