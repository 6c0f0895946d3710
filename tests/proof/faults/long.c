/* long.c - the sizes of the program proof-faults, which takes some minutes. */
#include "tests/proof/faults/size.h"
#include "tests/support/suite.h"

const struct faults_size faults_size = {
    .cuts = 100,
    .control_cuts = 10,
    .sync_stride = 1,
    .io_modes = 11,
    .io_stride = 1,
    .starvings = 4,
    .memory_percent = 6,
    .memory_step = 1,
    .disk_rounds = 8,
    .clock_steps = 400,
    .crowd = 500,
    .bodies = 100,
};

/* So dealt, the longest wait of all (power-full) has little before it, and the next longest are apart from it. */
__attribute__((constructor)) static void run_in_three(void)
{
    suite_run_in(3);
}
