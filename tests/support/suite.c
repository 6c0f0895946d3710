/* suite.c - the main() of every test program. */
#include "tests/support/suite.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SUITES_MAX = 256, PROCESSES_MAX = 8, LINE_MAX_BYTES = 64 * 1024 };

extern char **environ;

static Suite *(*makers[SUITES_MAX])(void);
static int maker_count;
static int processes = 1;

void suite_register(Suite *(*make)(void) )
{
    if (maker_count == SUITES_MAX) {
        abort();
    }
    makers[maker_count++] = make;
}

void suite_run_in(int count)
{
    processes = count < PROCESSES_MAX ? count : PROCESSES_MAX;
}

void suite_add_case(Suite *suite, const TTest *test, const char *name, int start, int end, int timeout_s)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, timeout_s);
    _tcase_add_test(tcase, test, 0, 0, start, end);
    suite_add_tcase(suite, tcase);
}

unsigned suite_seed(void)
{
    const char *given = getenv("TEST_SEED");
    if (given != NULL) {
        return (unsigned) strtoul(given, NULL, 10);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned) (now.tv_nsec ^ (now.tv_sec << 10) ^ getpid());
}

void suite_random_start(struct suite_random *random, unsigned seed)
{
    random->state = 0x9E3779B97F4A7C15ULL ^ ((unsigned long long) seed << 1 | 1);
    for (int i = 0; i < 8; i++) {
        (void) suite_random_next(random);
    }
}

unsigned suite_random_next(struct suite_random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (unsigned) (random->state >> 32);
}

unsigned suite_random_below(struct suite_random *random, unsigned bound)
{
    return suite_random_next(random) % bound;
}

int suite_slowness(void)
{
    const char *given = getenv("TEST_SLOWNESS");
    long factor = given != NULL ? strtol(given, NULL, 10) : 1;
    return factor >= 1 && factor <= 100 ? (int) factor : 1;
}

int64_t suite_now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *suite_out(void)
{
    const char *out = getenv("TEST_OUT");
    return out != NULL ? out : "build";
}

/* Runs every `step`-th suite from `first` on, and says how it went in a last line for tests/run.sh. */
static int run_suites(int first, int step)
{
    /* Each test has a store of its own, a thousand in a run: the room that a server keeps by default would fill this disk. */
    (void) setenv("NONBIS_STORE_RESERVE", "64KiB", 0);
    SRunner *runner = srunner_create(NULL);
    for (int i = first; i < maker_count; i += step) {
        srunner_add_suite(runner, makers[i]());
    }
    srunner_run_all(runner, CK_NORMAL);
    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    fflush(stdout);
    printf("@count %d %d\n", run - failed, failed);
    fflush(stdout);
    return failed == 0 && run > 0 ? 0 : 1;
}

/* --- several processes --- */

struct worker {
    pid_t pid;
    FILE *said; /* stdout and stderr together */
};

static void worker_start(struct worker *worker, int number)
{
    worker->said = tmpfile();
    worker->pid = worker->said == NULL ? -1 : fork();
    if (worker->pid < 0) {
        abort();
    }
    if (worker->pid == 0) {
        dup2(fileno(worker->said), STDOUT_FILENO);
        dup2(fileno(worker->said), STDERR_FILENO);
        exit(run_suites(number, processes));
    }
}

/* Passes on what it said, but for its count, which is added. False: it failed, or ended before it counted. */
static bool worker_end(struct worker *worker, int *passed, int *failed)
{
    static char line[LINE_MAX_BYTES];
    int status = -1, p = 0, f = 0;
    bool counted = false;
    (void) waitpid(worker->pid, &status, 0);
    rewind(worker->said);
    while (fgets(line, sizeof line, worker->said) != NULL) {
        if (sscanf(line, "@count %d %d", &p, &f) == 2) {
            counted = true;
        } else {
            fputs(line, stdout);
        }
    }
    fclose(worker->said);
    *passed += p;
    *failed += f;
    if (!counted) {
        printf("a process of this program ended before it counted its tests (wait status %d)\n", status);
    }
    return counted && status == 0;
}

static int run_in_processes(void)
{
    struct worker workers[PROCESSES_MAX];
    int passed = 0, failed = 0;
    bool good = true, counted = true;
    for (int i = 0; i < processes; i++) {
        worker_start(&workers[i], i);
    }
    for (int i = 0; i < processes; i++) {
        int before = passed + failed;
        good = worker_end(&workers[i], &passed, &failed) && good;
        counted = counted && passed + failed > before;
    }
    if (counted) {
        printf("@count %d %d\n", passed, failed);
    }
    fflush(stdout);
    return good ? 0 : 1;
}

static bool is_asked_for_less(void)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, "CK_", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* What the shell that started the tests ignores (nohup, a job in the background) must not reach the programs under test. */
static void signals_reset(void)
{
    static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void) signal(numbers[i], SIG_DFL);
    }
}

int main(void)
{
    signals_reset();
    return processes == 1 || is_asked_for_less() ? run_suites(0, 1) : run_in_processes();
}
