/* power.h - the disk under a program that was started with shim_power: what the program finds there after the power was cut.
 *
 *   WORST    what was synced, and nothing else
 *   MIXED    and of everything that was written since, any sectors: the new file, the old one, or a mixture; any length between the two; new names or not.
 *            Disks write in what order they like */
#ifndef NONBIS_TESTS_PROOF_FAULTS_POWER_H
#define NONBIS_TESTS_PROOF_FAULTS_POWER_H

#include "tests/support/suite.h"

#include <stdbool.h>

enum power_loss { POWER_WORST, POWER_MIXED };

struct power {
    char folder[700], disk[700];
    unsigned long long dropped; /* bytes that were written and are gone, over all cuts */
    unsigned names_dropped;
};

/* The environment for shim_power: files in `folder`, which exists. */
void power_begin(struct power *power, const char *folder, bool normal);
/* Once the program was killed: leaves in the folder what the disk has kept. */
void power_cut(struct power *power, enum power_loss loss, struct suite_random *random);
void power_end(void); /* the environment */

#endif
