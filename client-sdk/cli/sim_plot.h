/* sim_plot.h - waves as a small picture: a line each, time to the right, height for how many clients come together. */
#ifndef NONBIS_CLI_SIM_PLOT_H
#define NONBIS_CLI_SIM_PLOT_H

#include "client-sdk/cli/sim_wave.h"

/* All on one scale: full height is every client at once. */
void sim_plot_print(const struct sim_wave *waves, size_t count, uint64_t clients);

#endif
