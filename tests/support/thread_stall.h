/* thread_stall.h - holds the store thread of a running nonbisd while its other threads go on, as a disk that does not answer would. By ptrace: it needs
 * leave to trace a child, and whoever ends without letting go lets go. */
#ifndef NONBIS_TESTS_THREAD_STALL_H
#define NONBIS_TESTS_THREAD_STALL_H

#include <stdbool.h>
#include <sys/types.h>

struct thread_stall {
    pid_t thread;
};

/* Takes hold of the thread, other than the first, that has written most, at a moment when it waits for work and holds no lock. Something must
 * have been stored before. False: this machine does not allow it. From one thread of the test, which also lets go. */
bool thread_stall_store(struct thread_stall *stall, pid_t program);
void thread_stall_end(struct thread_stall *stall);

#endif
