/* sim_wave.c - see sim_wave.h. The waits are the library's own (chance.h). */
#include "client-sdk/cli/sim_wave.h"

#include "client-sdk/cli/chance.h"

#include <stdlib.h>

enum shape { SHAPE_IMMEDIATE, SHAPE_FIXED, SHAPE_WINDOW };

static const struct strategy {
    const char *name;
    enum shape shape;
    enum nonbis_jitter jitter;
} strategies[] = {
    { "immediate", SHAPE_IMMEDIATE, CHANCE_NO_JITTER }, { "fixed", SHAPE_FIXED, CHANCE_NO_JITTER },
    { "exponential", SHAPE_WINDOW, CHANCE_NO_JITTER },  { "equal", SHAPE_WINDOW, NONBIS_JITTER_EQUAL },
    { "full", SHAPE_WINDOW, NONBIS_JITTER_FULL },       { "decorrelated", SHAPE_WINDOW, NONBIS_JITTER_DECORRELATED },
};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

const char *sim_strategy_name(size_t index)
{
    return index < STRATEGIES ? strategies[index].name : NULL;
}

static void measure(struct sim_wave *wave)
{
    for (size_t i = 0; i < wave->bucket_count; i++) {
        wave->peak = wave->arrivals[i] > wave->peak ? wave->arrivals[i] : wave->peak;
        wave->buckets += wave->arrivals[i] > 0 ? 1 : 0;
        wave->last_ms = wave->arrivals[i] > 0 ? (int64_t) i * SIM_BUCKET_MS : wave->last_ms;
    }
}

bool sim_wave_run(struct sim_wave *wave, size_t index, const struct sim_setting *setting)
{
    const struct strategy *strategy = &strategies[index];
    int64_t base_ms = strategy->shape == SHAPE_IMMEDIATE ? 0 : setting->base_ms;
    int64_t cap_ms = strategy->shape == SHAPE_WINDOW ? setting->cap_ms : base_ms;
    *wave = (struct sim_wave){ .name = strategy->name,
                               .bucket_count = (size_t) (setting->retries * (uint64_t) cap_ms / SIM_BUCKET_MS) + 1 };
    wave->arrivals = calloc(wave->bucket_count, sizeof *wave->arrivals);
    if (wave->arrivals == NULL) {
        return false;
    }
    struct chance chance;
    chance_begin(&chance, setting->seed);
    for (uint64_t client = 0; client < setting->clients; client++) {
        int64_t at_ms = 0, delay_ms = 0;
        for (unsigned n = 0; n < setting->retries; n++) {
            delay_ms = chance_delay_ms(&chance, strategy->jitter, base_ms, cap_ms, n, delay_ms);
            at_ms += delay_ms;
            wave->arrivals[at_ms / SIM_BUCKET_MS]++;
        }
    }
    measure(wave);
    return true;
}

void sim_wave_fini(struct sim_wave *wave)
{
    free(wave->arrivals);
    wave->arrivals = NULL;
}
