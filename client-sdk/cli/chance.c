/* chance.c - see chance.h. */
#include "client-sdk/cli/chance.h"

#include "client-sdk/src/backoff.h"

_Static_assert((int) BACKOFF_NONE == 0 && (int) BACKOFF_FULL == NONBIS_JITTER_FULL &&
                   (int) BACKOFF_EQUAL == NONBIS_JITTER_EQUAL &&
                   (int) BACKOFF_DECORRELATED == NONBIS_JITTER_DECORRELATED,
               "the jitter of the policy is that of backoff.h");

void chance_begin(struct chance *chance, uint64_t seed)
{
    chance->state = seed;
}

uint64_t chance_word(struct chance *chance)
{
    uint64_t word = chance->state += UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

int64_t chance_delay_ms(struct chance *chance, enum nonbis_jitter jitter, int64_t base_ms, int64_t cap_ms, unsigned n,
                        int64_t previous_ms)
{
    const struct backoff backoff = { .jitter = (enum backoff_jitter) jitter, .base_ms = base_ms, .cap_ms = cap_ms };
    return backoff_delay_ms(&backoff, n, previous_ms, chance_word(chance));
}
