/* process_memory.h - how much memory a program under test uses, as the kernel counts it (kB), and how many descriptors. Fails the test when it cannot be read. */
#ifndef NONBIS_TESTS_PROCESS_MEMORY_H
#define NONBIS_TESTS_PROCESS_MEMORY_H

#include <sys/types.h>

long process_memory_now_kb(pid_t pid); /* proportional: smaps_rollup, Pss */
/* What it has allocated and written to. Unlike the proportional size it does not move with other processes that share its pages. */
long process_memory_own_kb(pid_t pid);
long process_memory_peak_kb(pid_t pid); /* of the resident set, since the start or the last reset: VmHWM */
void process_memory_reset_peak(pid_t pid);
unsigned process_descriptors(pid_t pid); /* that it has open */

#endif
