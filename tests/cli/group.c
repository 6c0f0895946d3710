/* group.c - how this group runs: most of a test is waiting (for the command, which waits for the server), so two processes share the suites. */
#include "tests/support/suite.h"

__attribute__((constructor)) static void run_in_two(void)
{
    suite_run_in(2);
}
