/* process.c - see process.h. */
#include "server/base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void process_open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The lowest free number is given out, so this one is. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd) {
            abort();
        }
    }
}

int64_t process_raise_descriptor_limit(int64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    if ((int64_t) limit.rlim_cur < wanted) {
        struct rlimit raised = limit;
        raised.rlim_cur = (int64_t) limit.rlim_max < wanted ? limit.rlim_max : (rlim_t) wanted;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return (int64_t) limit.rlim_cur;
}

/* The second number of /proc/self/statm, in pages. */
static uint64_t resident_bytes(void)
{
    char text[256];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    char *second = NULL;
    (void) strtoull(text, &second, 10);
    return strtoull(second, NULL, 10) * (uint64_t) sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (folder == NULL) {
        return 0;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    (void) closedir(folder);
    return count - 3; /* ".", ".." and the folder's own */
}

static uint64_t time_us(const struct timeval *time)
{
    return (uint64_t) time->tv_sec * 1000000 + (uint64_t) time->tv_usec;
}

void process_figures(struct process_figures *figures)
{
    struct rusage usage;
    struct rlimit limit;
    *figures = (struct process_figures){ .resident_bytes = resident_bytes(), .open_fds = open_fds() };
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        figures->cpu_us = time_us(&usage.ru_utime) + time_us(&usage.ru_stime);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        figures->max_fds = limit.rlim_cur;
    }
}
