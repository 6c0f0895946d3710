/* process.c - see process.h. */
#include "server/base/process.h"

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
