/* main.c - `nonbis`, the command: reads the line, does what it says, and tells the shell what a script may do now. */
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/options.h"
#include "client-sdk/cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* A number of the first three that is free would be that of the next file or connection, and what is told would go in there. What
 * is put in its place can neither be read from nor written to. */
static void descriptors_hold(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

/* A reader that has gone needs no word. */
static void complain_of_stdout(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    if (ferror(stdout) && !(poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0)) {
        complain("stdout does not take what is to be told");
    }
}

int main(int argc, char **argv)
{
    static struct options options; /* too large for the stack's taste */
    descriptors_hold();
    signals_ignore_pipe();
    if (!options_read(&options, argc, argv)) {
        return EXIT_CODE_USAGE;
    }
    int code = (int) command_at(options.command)->run(&options);
    if (code == EXIT_CODE_INTERNAL) {
        complain_of_stdout();
    }
    return code;
}
