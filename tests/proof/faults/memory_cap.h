/* memory_cap.h - how much memory a running program may have: by a control group of its own, where this machine allows one, and by its address space. */
#ifndef NONBIS_TESTS_PROOF_FAULTS_MEMORY_CAP_H
#define NONBIS_TESTS_PROOF_FAULTS_MEMORY_CAP_H

#include <stdbool.h>
#include <sys/types.h>

struct memory_cap {
    const char *kind; /* "cgroup1", "cgroup2" */
    char folder[128];
};

/* False, and a figure: not allowed here. */
bool memory_cap_make(struct memory_cap *cap, pid_t pid, unsigned megabytes);
unsigned
memory_cap_kills(const struct memory_cap *cap); /* so many processes of it has the kernel ended for want of memory */
void memory_cap_end(struct memory_cap *cap);    /* the program has ended */

/* Whether such caps mean anything here; a sanitizer takes more memory than any of them. */
bool memory_cap_allowed(void);
/* So much more address space than it has now; behind it allocations fail. */
void memory_cap_address_space(pid_t pid, unsigned more_megabytes);

#endif
