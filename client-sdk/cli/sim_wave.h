/* sim_wave.h - so many clients fail at the same moment and try again by one strategy: when do their retries arrive? Pure. */
#ifndef NONBIS_CLI_SIM_WAVE_H
#define NONBIS_CLI_SIM_WAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_BUCKET_MS = 100 };

struct sim_setting {
    uint64_t clients, retries;
    int64_t base_ms, cap_ms;
    uint64_t seed;
};

struct sim_wave {
    const char *name;
    uint32_t *arrivals; /* by bucket */
    size_t bucket_count;
    uint64_t peak;    /* most arrivals in one bucket */
    uint64_t buckets; /* in how many any arrived */
    int64_t last_ms;  /* beginning of the last of them */
};

/* The strategies in the order of the table: NULL past the end. */
const char *sim_strategy_name(size_t index);

/* Runs the index-th strategy; every one begins with the same seed. False: memory is out. fini either way. */
bool sim_wave_run(struct sim_wave *wave, size_t index, const struct sim_setting *setting);
void sim_wave_fini(struct sim_wave *wave);

#endif
