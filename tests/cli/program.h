/* program.h - runs `nonbis` as a shell would: its own stdin, stdout and stderr, an environment of the test's own, an exit code.
 *
 *     struct program run = program_run((const char *[]){ "post", url, "-d", "x", NULL });
 *     ck_assert_int_eq(run.exit_code, 0);
 *     program_free(&run);
 *
 * Unless a test says otherwise the journal is a fresh folder of that test, no variable names a server, and stdin is empty. */
#ifndef NONBIS_TESTS_CLI_PROGRAM_H
#define NONBIS_TESTS_CLI_PROGRAM_H

#include "tests/peer/peer.h"
#include "tests/support/suite.h"

#include <sys/types.h>

struct program {
    pid_t pid;
    int exit_code; /* -signal when one ended it */
    char out_path[600], err_path[600];
    char *out, *err; /* when it has ended: NUL-terminated */
    size_t out_len;
};

/* How a program is started; zero is the usual way. */
struct program_start {
    const char *input;        /* stdin */
    const char *variables[8]; /* "NAME=value", over the usual ones */
    int out_fd;               /* stdout goes there instead; 0: to a file */
    int closed_fd;            /* this one is not open; 0: none */
    int terminal_fd;          /* a terminal for stdin and stderr, and the controlling one; 0: none */
};

/* NULL-terminated arguments, without the program's name. */
struct program program_run(const char *const *arguments);
struct program program_run_as(const struct program_start *start, const char *const *arguments);
void program_free(struct program *program);

/* In two steps, for those that wait. */
void program_begin(struct program *program, const struct program_start *start, const char *const *arguments);
void program_end(struct program *program);
/* Until its stderr holds the text; false when it ended without, or after 20 s. */
bool program_wait_err(struct program *program, const char *text);

/* The journal of this test, as the program sees it. */
const char *program_journal(void);

/* A row of a table: what is told when it fails. */
#define PROGRAM_EXPECT(run, name, code)                                                                                \
    ck_assert_msg((run).exit_code == (code), "%s: exit code %d instead of %d\nstdout: %s\nstderr: %s", (name),         \
                  (run).exit_code, (code), (run).out, (run).err)
/* Every word of a |-separated list stands in the text. */
void program_expect_words(const char *name, const char *text, const char *words);

#endif
