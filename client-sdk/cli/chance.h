/* chance.h - the library's own waits, drawn from a seed: for `sim` and `post --dry-run --seed`. The one place of the command that
 * knows an inside of the library (client-sdk/src/backoff.h): what is simulated is what runs. */
#ifndef NONBIS_CLI_CHANCE_H
#define NONBIS_CLI_CHANCE_H

#include "client-sdk/include/nonbis.h"

struct chance {
    uint64_t state; /* splitmix64 */
};

void chance_begin(struct chance *chance, uint64_t seed);
uint64_t chance_word(struct chance *chance);

/* Without jitter: the window itself; base == cap is a fixed delay, 0 none. */
#define CHANCE_NO_JITTER ((enum nonbis_jitter) 0)

/* The wait behind attempt n + 1; `previous_ms` is the wait before it, 0: there was none. */
int64_t chance_delay_ms(struct chance *chance, enum nonbis_jitter jitter, int64_t base_ms, int64_t cap_ms, unsigned n,
                        int64_t previous_ms);

#endif
