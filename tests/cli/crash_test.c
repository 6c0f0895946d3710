/* crash_test.c - a client that is killed (SIGKILL) at every call that it makes for its journal, and at every event of its run; then
 * `nonbis resume`. Through nonbisd to the order handler, whose ledger is the judge: what was written down is executed once, with
 * the key that it had; what was not is not. The client is this program, forked, with libnonbis as it is linked into `nonbis`. */
#include "client-sdk/src/client.h"
#include "client-sdk/src/journal_files.h"
#include "tests/cli/house.h"
#include "tests/cli/program.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct house house;

/* ---- a client that dies ------------------------------------------------------------------------------------------- */

/* Shared with the child. */
static struct death {
    char key[64];             /* of its operation */
    unsigned calls, kill_at;  /* before which call for the journal it dies; 0: at none */
    int kill_event;           /* at which kind of event; 0: at none */
    char last[24];            /* what it would have done next */
    enum nonbis_outcome told; /* when it did not die */
} * death;

static void step(const char *what)
{
    (void) snprintf(death->last, sizeof death->last, "%s", what);
    if (++death->calls == death->kill_at) {
        kill(getpid(), SIGKILL);
    }
}

#define DIES(result, name, parameters, arguments)                                                                      \
    static result dying_##name parameters                                                                              \
    {                                                                                                                  \
        step(#name);                                                                                                   \
        return journal_calls_system.name arguments;                                                                    \
    }
DIES(int, openat, (int dir, const char *name, int flags, mode_t mode), (dir, name, flags, mode))
DIES(int, fchmodat, (int dir, const char *name, mode_t mode, int flags), (dir, name, mode, flags))
DIES(ssize_t, read, (int fd, void *bytes, size_t len), (fd, bytes, len))
DIES(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))
DIES(int, fstat, (int fd, struct stat *status), (fd, status))
DIES(int, fstatat, (int dir, const char *name, struct stat *status, int flags), (dir, name, status, flags))
DIES(int, fsync, (int fd), (fd))
DIES(int, renameat, (int from, const char *old_name, int to, const char *new_name), (from, old_name, to, new_name))
DIES(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
DIES(int, lock, (int fd, int command, struct flock *range), (fd, command, range))

static int on_event(const struct nonbis_event *event, void *arg)
{
    (void) arg;
    if ((int) event->kind == death->kill_event) {
        (void) snprintf(death->last, sizeof death->last, "event %d", death->kill_event);
        kill(getpid(), SIGKILL);
    }
    return 0;
}

/* The whole life of the child. */
static void live(const char *journal)
{
    struct journal_calls calls = journal_calls_system;
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    char message[256];
    int error = 0;
    unsigned kill_at = death->kill_at;
    calls.openat = dying_openat;
    calls.fchmodat = dying_fchmodat;
    calls.read = dying_read;
    calls.write = dying_write;
    calls.fstat = dying_fstat;
    calls.fstatat = dying_fstatat;
    calls.fsync = dying_fsync;
    calls.renameat = dying_renameat;
    calls.unlinkat = dying_unlinkat;
    calls.lock = dying_lock;
    death->kill_at = 0; /* not while it is set up */
    const struct client_parts parts = { .transport = transport_curl_new(&error),
                                        .clock = clock_system(),
                                        .random = random_system(),
                                        .journal =
                                            journal_directory_open_with(&calls, journal, message, sizeof message) };
    if (parts.transport == NULL || parts.journal == NULL || client_make(&client, NULL, &parts) != NONBIS_OK ||
        nonbis_op_new(&op, client, house.url, "{\"item\":\"x\",\"amount\":3}", 23) != NONBIS_OK ||
        nonbis_op_set_header(op, "Content-Type", "application/json", 0) != NONBIS_OK) {
        _exit(70);
    }
    (void) snprintf(death->key, sizeof death->key, "%s", nonbis_op_key(op));
    nonbis_client_on_event(client, on_event, NULL);
    death->calls = 0;
    death->kill_at = kill_at;
    if (nonbis_op_run(op) != NONBIS_OK) {
        _exit(71);
    }
    death->told = nonbis_op_outcome(op);
    nonbis_op_free(op);
    nonbis_client_free(client);
    _exit(0);
}

/* True when it died of it. */
static bool die(unsigned kill_at, int kill_event)
{
    int status = 0;
    const char *journal = program_journal(); /* the folder is that of this process */
    *death = (struct death){ .kill_at = kill_at, .kill_event = kill_event };
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        live(journal);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "exit code %d", WEXITSTATUS(status));
    ck_assert(!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL);
    return WIFSIGNALED(status);
}

/* ---- what is left, and what becomes of it ------------------------------------------------------------------------- */

enum place { PLACE_NOWHERE, PLACE_NEW, PLACE_SENT, PLACE_DONE, PLACES };

static enum place place_of(const char *key)
{
    static const char *const names[] = { "", "new", "sent", "done" };
    char path[700];
    for (int place = PLACE_NEW; place < PLACES; place++) {
        (void) snprintf(path, sizeof path, "%s/%s/%s", program_journal(), names[place], key);
        if (access(path, F_OK) == 0) {
            return (enum place) place;
        }
    }
    return PLACE_NOWHERE;
}

struct figures {
    unsigned deaths, places[PLACES], sent_unexecuted, sent_executed;
};

/* One death, one resume, and the ledger. False: it lived to the end. */
static bool die_and_resume(unsigned kill_at, int kill_event, struct figures *figures)
{
    bool died = die(kill_at, kill_event);
    enum place place = place_of(death->key);
    int before = house_executions(&house, death->key);
    ck_assert_msg(before <= 1, "%s: %d executions before the resume", death->last, before);
    ck_assert_msg(before == 0 || place >= PLACE_SENT, "%s: executed, and the journal knows it as not sent",
                  death->last);
    ck_assert(died || (before == 1 && place == PLACE_DONE && death->told == NONBIS_COMPLETED));
    figures->deaths += died ? 1 : 0;
    figures->places[place]++;
    figures->sent_unexecuted += place == PLACE_SENT && before == 0 ? 1 : 0;
    figures->sent_executed += place == PLACE_SENT && before == 1 ? 1 : 0;
    struct program run = program_run((const char *[]){ "resume", "--server", "nonbis", "--base-delay", "1ms", NULL });
    PROGRAM_EXPECT(run, death->last, 0);
    bool open = place == PLACE_NEW || place == PLACE_SENT;
    ck_assert_msg((strstr(run.out, death->key) != NULL) == open, "%s: %s", death->last, run.out);
    ck_assert_msg(!open || strstr(run.out, " completed done 201 POST ") != NULL, "%s: %s", death->last, run.out);
    program_free(&run);
    int after = house_executions(&house, death->key);
    ck_assert_msg(after == (place == PLACE_NOWHERE ? 0 : 1), "%s: %d executions", death->last, after);
    ck_assert_int_eq(place_of(death->key), place == PLACE_NOWHERE ? PLACE_NOWHERE : PLACE_DONE);
    return died;
}

START_TEST(a_client_killed_at_any_moment_is_resumed_with_its_key_and_one_effect)
{
    struct figures figures = { 0 };
    unsigned calls = 0;
    int arrivals = 0, executions = 0;
    death = mmap(NULL, sizeof *death, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(death != MAP_FAILED);
    house_begin(&house, NULL);
    house_wait_memory(&house);
    while (die_and_resume(calls + 1, 0, &figures)) {
        calls++;
    }
    for (int kind = NONBIS_EVENT_ATTEMPT; kind <= NONBIS_EVENT_OUTCOME; kind++) {
        bool told = kind == NONBIS_EVENT_ATTEMPT || kind == NONBIS_EVENT_SENT || kind == NONBIS_EVENT_ANSWER ||
                    kind == NONBIS_EVENT_OUTCOME;
        ck_assert_int_eq(die_and_resume(0, kind, &figures), told);
    }
    FIGURE("killed at each of %u calls for the journal and at 4 events: nothing written %u times, new %u, sent %u "
           "(executed "
           "%u, not %u), done %u",
           calls, figures.places[PLACE_NOWHERE], figures.places[PLACE_NEW], figures.places[PLACE_SENT],
           figures.sent_executed, figures.sent_unexecuted, figures.places[PLACE_DONE]);
    for (int place = PLACE_NOWHERE; place < PLACES; place++) {
        ck_assert_uint_gt(figures.places[place], 0);
    }
    ck_assert_uint_gt(figures.sent_executed, 0);
    ck_assert_uint_gt(figures.sent_unexecuted, 0);
    /* And nothing under any other key: one effect for each that was ever written down. */
    house_count(&house, NULL, &arrivals, &executions);
    unsigned written = figures.places[PLACE_NEW] + figures.places[PLACE_SENT] + figures.places[PLACE_DONE];
    ck_assert_int_eq(executions, (int) written);
    ck_assert_int_eq(arrivals, (int) written);
    house_end(&house);
}
END_TEST

SUITE(crash)
{
    Suite *suite = suite_create("cli/crash");
    CASE(suite, a_client_killed_at_any_moment_is_resumed_with_its_key_and_one_effect);
    return suite;
}
