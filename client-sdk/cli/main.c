/* main.c - `nonbis`, the command: reads the line, does what it says, and tells the shell what a script may do now. */
#include "client-sdk/cli/options.h"
#include "client-sdk/cli/signals.h"

int main(int argc, char **argv)
{
    static struct options options; /* too large for the stack's taste */
    signals_ignore_pipe();
    if (!options_read(&options, argc, argv)) {
        return EXIT_CODE_USAGE;
    }
    return (int) command_at(options.command)->run(&options);
}
