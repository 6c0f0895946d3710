/* process.h - what a process needs before it starts work: descriptors. Once at start, one thread. And what it takes of the machine: any thread. */
#ifndef NONBIS_SERVER_BASE_PROCESS_H
#define NONBIS_SERVER_BASE_PROCESS_H

#include <stdint.h>

/* Opens /dev/null over standard input, output and error where they are closed: else the next descriptor that is opened would take their
 * place, and log lines would go into it. */
void process_open_standard_descriptors(void);

/* Raises the soft limit of open descriptors towards `wanted`, as far as the hard limit allows. Returns what is in force. */
int64_t process_raise_descriptor_limit(int64_t wanted);

struct process_figures {
    uint64_t resident_bytes, open_fds; /* 0: the system does not tell (no /proc) */
    uint64_t max_fds;                  /* the soft limit */
    uint64_t cpu_us;                   /* of all threads, user and system */
};
void process_figures(struct process_figures *figures);

#endif
