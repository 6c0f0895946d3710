/* brief.c - the sizes of the group faults, which is a part of every `make test`. Most of it is waiting for processes and for the disk, so several share the
 * suites. */
#include "tests/proof/faults/size.h"
#include "tests/support/suite.h"

const struct faults_size faults_size = {
    .cuts = 3,
    .control_cuts = 2,
    .sync_stride = 13,
    .io_modes = 3,
    .io_stride = 17,
    .starvings = 2,
    .memory_percent = 300,
    .memory_step = 15,
    .disk_rounds = 4,
    .clock_steps = 30,
    .crowd = 80,
    .bodies = 20,
};

__attribute__((constructor)) static void run_in_four(void)
{
    suite_run_in(4);
}
