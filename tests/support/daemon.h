/* daemon.h - starts the programs under test, reads their start-up line, ends them by pid, and says how they ended. */
#ifndef NONBIS_TESTS_DAEMON_H
#define NONBIS_TESTS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon {
    pid_t pid;
    char listen[64], admin[64]; /* from the start-up line */
    char log_path[600];         /* its stderr (and stdout) */
};

/* An absolute folder of this test's own, below the build folder; "" is never returned. */
const char *daemon_folder(void);

/* Runs `program` of the build folder with `arguments` (NULL-terminated, without argv[0]) and waits until it printed its addresses or
 * ended. False: it ended first; `*exit_code` tells how. */
bool daemon_try(struct daemon *daemon, const char *program, const char *const *arguments, int *exit_code);

/* nonbisd with --listen and --admin on ports of the kernel's choice, --upstream http://UPSTREAM, --store STORE, and up to 16 more arguments (NULL-terminated
 * list; may be NULL). Fails the test when it does not start. */
void daemon_start(struct daemon *daemon, const char *upstream, const char *store, const char *const *more);
/* The same by the clock in that file (clock_hand.h): build/nonbisd-moved. `clock_path` NULL: nonbisd itself. */
void daemon_start_by_clock(struct daemon *daemon, const char *clock_path, const char *upstream, const char *store,
                           const char *const *more);
/* The same with syncs that a test holds, by that file (sync_hand.h): build/nonbisd-held. */
void daemon_start_held(struct daemon *daemon, const char *syncs_path, const char *upstream, const char *store,
                       const char *const *more);
/* The order handler with its own ledger. */
void daemon_start_handler(struct daemon *daemon, const char *db, const char *const *more);

/* A program that prints no addresses; it is not waited for. */
void daemon_begin(struct daemon *daemon, const char *program, const char *const *arguments);

void daemon_signal(const struct daemon *daemon, int signal_number);
/* Waits for the end: exit code, or -signal. */
int daemon_wait(struct daemon *daemon);
/* TERM and wait. */
int daemon_stop(struct daemon *daemon);
/* KILL and wait. */
void daemon_kill(struct daemon *daemon);

/* Runs a program to its end: exit code or -signal; its stdout and stderr together, NUL-terminated, cut at size. */
int daemon_run(const char *program, const char *const *arguments, char *output, size_t size);

/* Whether a text stands in the log so far; and waiting until it does (false after 20 s). */
bool daemon_logged(const struct daemon *daemon, const char *text);
bool daemon_wait_logged(const struct daemon *daemon, const char *text);
int daemon_count_logged(const struct daemon *daemon, const char *text); /* lines that hold it */
bool daemon_wait_logged_times(const struct daemon *daemon, const char *text, int times);

#endif
