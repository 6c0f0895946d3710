/* output_test.c - what nonbisd prints when it is asked something arrives whole, or the exit code says that it did not. */
#include "tests/support/rig.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUTES = 250, PATH_BYTES = 1500 };

extern char **environ;

/* Standard output goes to the file. The exit code; standard error goes nowhere. */
static int run_into(const char *file, char **arguments)
{
    char program[256];
    int status = 0;
    (void) snprintf(program, sizeof program, "%s/nonbisd", suite_out());
    arguments[0] = program;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        execve(program, arguments, environ);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static char upstream[] = "--upstream=http://127.0.0.1:1";
static char store[640]; /* --store=FILE */

static const struct {
    const char *flag;
    int exit_code; /* on a disk that takes it */
} questions[] = {
    { "--version", 0 }, { "--help", 0 }, { "--check", 0 }, { "--print-config", 0 }, { "--bench-store=10ms", 0 },
};

START_TEST(what_could_not_be_printed_is_no_success)
{
    char flag[64];
    char *arguments[] = { NULL, upstream, store, flag, NULL };
    (void) snprintf(flag, sizeof flag, "%s", questions[_i].flag);
    (void) snprintf(store, sizeof store, "--store=%s/n.db", daemon_folder());
    ck_assert_int_eq(run_into("/dev/null", arguments), questions[_i].exit_code);
    ck_assert_int_eq(run_into("/dev/full", arguments), 70);
}
END_TEST

/* Close to what a command line can hold: what is printed is longer than what was given. */
START_TEST(a_long_configuration_is_printed_to_its_last_route)
{
    static char routes[ROUTES][16 + PATH_BYTES], print[] = "--print-config";
    char *arguments[2 * ROUTES + 4] = { NULL, upstream, print };
    char path[640], line[PATH_BYTES + 400];
    static char route[] = "--route";
    for (int i = 0; i < ROUTES; i++) {
        int len = snprintf(routes[i], sizeof routes[i], "POST /%03d/", i);
        memset(routes[i] + len, 'a', PATH_BYTES);
        arguments[3 + 2 * i] = route;
        arguments[4 + 2 * i] = routes[i];
    }
    (void) snprintf(path, sizeof path, "%s/printed", daemon_folder());
    ck_assert_int_eq(run_into(path, arguments), 0);
    FILE *printed = fopen(path, "r");
    ck_assert_ptr_nonnull(printed);
    int found = 0;
    while (fgets(line, sizeof line, printed) != NULL) {
        found += strncmp(line, "route = \"POST /", 15) == 0 && strstr(line, "  # flag --route\n") != NULL;
    }
    (void) fclose(printed);
    ck_assert_int_eq(found, ROUTES);
}
END_TEST

SUITE(integration_output)
{
    Suite *suite = suite_create("integration/output");
    CASE_LOOP(suite, what_could_not_be_printed_is_no_success, sizeof questions / sizeof questions[0]);
    CASE(suite, a_long_configuration_is_printed_to_its_last_route);
    return suite;
}
