/* thread_stall.c - see thread_stall.h. */
#include "tests/support/thread_stall.h"

#include "tests/support/suite.h"

#include <dirent.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { TRIES = 10000 };

/* The number behind `name` in a file of a thread; -1 when it cannot be read. */
static long thread_number(pid_t program, pid_t thread, const char *file, const char *name)
{
    char path[96], line[256];
    long number = -1;
    (void) snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int) program, (int) thread, file);
    FILE *in = fopen(path, "r");
    while (in != NULL && number < 0 && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            number = strtol(line + strlen(name), NULL, 10);
        }
    }
    if (in != NULL) {
        (void) fclose(in);
    }
    return number;
}

static pid_t find_writer(pid_t program)
{
    char path[64];
    pid_t writer = 0;
    long most = 0;
    (void) snprintf(path, sizeof path, "/proc/%d/task", (int) program);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
        pid_t thread = (pid_t) strtol(entry->d_name, NULL, 10);
        long writes = thread > 0 && thread != program ? thread_number(program, thread, "io", "syscw: ") : 0;
        if (writes > most) {
            most = writes;
            writer = thread;
        }
    }
    if (threads != NULL) {
        (void) closedir(threads);
    }
    return writer;
}

static bool hold(pid_t thread)
{
    int status;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) {
        return false;
    }
    return ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 && waitpid(thread, &status, __WALL) == thread;
}

bool thread_stall_store(struct thread_stall *stall, pid_t program)
{
    stall->thread = find_writer(program);
    for (int i = 0; i < TRIES && stall->thread != 0 && hold(stall->thread); i++) {
        if (thread_number(program, stall->thread, "syscall", "") == SYS_futex) {
            return true;
        }
        thread_stall_end(stall);
        (void) sched_yield();
    }
    return false;
}

void thread_stall_end(struct thread_stall *stall)
{
    (void) ptrace(PTRACE_DETACH, stall->thread, NULL, NULL);
}
