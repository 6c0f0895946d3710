/* daemon.c - see daemon.h. */
#include "tests/support/daemon.h"

#include "tests/support/held_sync.h"
#include "tests/support/moved_clock.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { DAEMON_ARGUMENTS_MAX = 64, DAEMON_LOG_MAX = 4 * 1024 * 1024, DAEMON_DEADLINE_MS = 20000 };

const char *daemon_folder(void)
{
    static char folder[512];
    static pid_t made_by;
    if (made_by != getpid()) {
        made_by = getpid();
        char out[PATH_MAX];
        ck_assert_ptr_nonnull(realpath(suite_out(), out));
        (void) snprintf(folder, sizeof folder, "%.400s/scratch", out);
        mkdir(folder, 0700);
        (void) snprintf(folder, sizeof folder, "%.400s/scratch/XXXXXX", out);
        ck_assert_ptr_nonnull(mkdtemp(folder));
    }
    return folder;
}

static pid_t start_program(const char *program, const char *const *arguments, const char *log_path)
{
    char path[256];
    const char *argv[DAEMON_ARGUMENTS_MAX];
    int count = 0;
    (void) snprintf(path, sizeof path, "%s/%s", suite_out(), program);
    argv[count++] = path;
    for (int i = 0; arguments != NULL && arguments[i] != NULL && count < DAEMON_ARGUMENTS_MAX - 1; i++) {
        argv[count++] = arguments[i];
    }
    argv[count] = NULL;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(null, 0);
        dup2(log, 1);
        dup2(log, 2);
        execve(path, (char *const *) (const void *) argv, environ);
        _exit(127);
    }
    return pid;
}

static char *read_log(const char *path)
{
    char *text = malloc(DAEMON_LOG_MAX + 1);
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len < DAEMON_LOG_MAX) {
        ssize_t got = read(fd, text + len, DAEMON_LOG_MAX - len);
        if (got <= 0) {
            break;
        }
        len += (size_t) got;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[len] = '\0';
    return text;
}

static int exit_code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void copy_word(const char *text, const char *name, char *out, size_t size)
{
    const char *found = strstr(text, name);
    if (found != NULL) {
        found += strlen(name);
        (void) snprintf(out, size, "%.*s", (int) strcspn(found, " \n\""), found);
    }
}

/* Waits for a change of the log file: an event, bounded so that the end of the process is seen too. */
static void wait_for_log(int watch)
{
    struct pollfd poll_one = { .fd = watch, .events = POLLIN };
    char events[4096];
    if (poll(&poll_one, 1, 20) > 0) {
        ssize_t ignored = read(watch, events, sizeof events);
        (void) ignored;
    }
}

static int watch_log(const char *path)
{
    int log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(log);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch, path, IN_MODIFY);
    return watch;
}

bool daemon_try(struct daemon *daemon, const char *program, const char *const *arguments, int *exit_code)
{
    static int count;
    *daemon = (struct daemon){ 0 };
    (void) snprintf(daemon->log_path, sizeof daemon->log_path, "%s/%s-%d.log", daemon_folder(), program, ++count);
    int watch = watch_log(daemon->log_path);
    daemon->pid = start_program(program, arguments, daemon->log_path);
    bool started = false;
    for (int waited_ms = 0; waited_ms < DAEMON_DEADLINE_MS * suite_slowness() && !started; waited_ms += 20) {
        int status;
        bool ended = waitpid(daemon->pid, &status, WNOHANG) == daemon->pid;
        char *text = read_log(daemon->log_path);
        copy_word(text, " listen=", daemon->listen, sizeof daemon->listen);
        copy_word(text, " admin=", daemon->admin, sizeof daemon->admin);
        copy_word(text, "\"listen\":\"", daemon->listen, sizeof daemon->listen); /* --log-format json */
        copy_word(text, "\"admin\":\"", daemon->admin, sizeof daemon->admin);
        copy_word(text, "listening on ", daemon->listen, sizeof daemon->listen);
        started = daemon->listen[0] != '\0' &&
                  (daemon->admin[0] != '\0' || strncmp(program, "nonbisd", strlen("nonbisd")) != 0);
        free(text);
        if (ended) {
            *exit_code = exit_code_of(status);
            daemon->pid = 0;
            close(watch);
            return false;
        }
        if (!started) {
            wait_for_log(watch);
        }
    }
    close(watch);
    return started;
}

static void must_start(struct daemon *daemon, const char *program, const char *const *arguments)
{
    int exit_code = -1;
    if (!daemon_try(daemon, program, arguments, &exit_code)) {
        char *text = read_log(daemon->log_path);
        ck_abort_msg("%s did not start (exit code %d):\n%s", program, exit_code, text);
    }
}

void daemon_begin(struct daemon *daemon, const char *program, const char *const *arguments)
{
    static int count;
    *daemon = (struct daemon){ 0 };
    (void) snprintf(daemon->log_path, sizeof daemon->log_path, "%s/begun-%d.log", daemon_folder(), ++count);
    daemon->pid = start_program(program, arguments, daemon->log_path);
}

void daemon_start(struct daemon *daemon, const char *upstream, const char *store, const char *const *more)
{
    daemon_start_by_clock(daemon, NULL, upstream, store, more);
}

static void start_nonbisd(struct daemon *daemon, const char *program, const char *upstream, const char *store,
                          const char *const *more)
{
    char url[128];
    (void) snprintf(url, sizeof url, "%s%s", strstr(upstream, ":/") != NULL ? "" : "http://", upstream);
    const char *arguments[DAEMON_ARGUMENTS_MAX] = { "--listen",   "127.0.0.1:0", "--admin", "127.0.0.1:0",
                                                    "--upstream", url,           "--store", store };
    int count = 8;
    for (int i = 0; more != NULL && more[i] != NULL; i++) {
        arguments[count++] = more[i];
    }
    must_start(daemon, program, arguments);
}

void daemon_start_by_clock(struct daemon *daemon, const char *clock_path, const char *upstream, const char *store,
                           const char *const *more)
{
    if (clock_path == NULL) {
        start_nonbisd(daemon, "nonbisd", upstream, store, more);
        return;
    }
    setenv(MOVED_CLOCK_FILE, clock_path, 1);
    start_nonbisd(daemon, "nonbisd-moved", upstream, store, more);
    unsetenv(MOVED_CLOCK_FILE);
}

void daemon_start_held(struct daemon *daemon, const char *syncs_path, const char *upstream, const char *store,
                       const char *const *more)
{
    setenv(HELD_SYNC_FILE, syncs_path, 1);
    start_nonbisd(daemon, "nonbisd-held", upstream, store, more);
    unsetenv(HELD_SYNC_FILE);
}

void daemon_start_handler(struct daemon *daemon, const char *db, const char *const *more)
{
    const char *arguments[DAEMON_ARGUMENTS_MAX] = { "--listen", "127.0.0.1:0", "--db", db };
    int count = 4;
    for (int i = 0; more != NULL && more[i] != NULL; i++) {
        arguments[count++] = more[i];
    }
    must_start(daemon, "order-handler", arguments);
}

void daemon_signal(const struct daemon *daemon, int signal_number)
{
    if (daemon->pid > 0) {
        kill(daemon->pid, signal_number);
    }
}

int daemon_wait(struct daemon *daemon)
{
    int status = 0;
    pid_t pid = waitpid(daemon->pid, &status, 0);
    ck_assert_int_eq(pid, daemon->pid);
    daemon->pid = 0;
    return exit_code_of(status);
}

int daemon_stop(struct daemon *daemon)
{
    daemon_signal(daemon, SIGTERM);
    return daemon_wait(daemon);
}

void daemon_kill(struct daemon *daemon)
{
    if (daemon->pid > 0) {
        daemon_signal(daemon, SIGKILL);
        (void) daemon_wait(daemon);
    }
}

int daemon_run(const char *program, const char *const *arguments, char *output, size_t size)
{
    static int count;
    char path[600];
    int status = 0;
    (void) snprintf(path, sizeof path, "%s/run-%d.log", daemon_folder(), ++count);
    pid_t pid = start_program(program, arguments, path);
    waitpid(pid, &status, 0);
    char *text = read_log(path);
    (void) snprintf(output, size, "%s", text);
    free(text);
    return exit_code_of(status);
}

int daemon_count_logged(const struct daemon *daemon, const char *text)
{
    char *log = read_log(daemon->log_path);
    int count = 0;
    for (const char *found = strstr(log, text); found != NULL; found = strstr(found, text)) {
        count++;
        found += strcspn(found, "\n");
    }
    free(log);
    return count;
}

bool daemon_logged(const struct daemon *daemon, const char *text)
{
    return daemon_count_logged(daemon, text) > 0;
}

bool daemon_wait_logged_times(const struct daemon *daemon, const char *text, int times)
{
    int watch = watch_log(daemon->log_path);
    bool found = false;
    for (int waited_ms = 0; waited_ms < DAEMON_DEADLINE_MS * suite_slowness() && !found; waited_ms += 20) {
        found = daemon_count_logged(daemon, text) >= times;
        if (!found) {
            wait_for_log(watch);
        }
    }
    close(watch);
    return found;
}

bool daemon_wait_logged(const struct daemon *daemon, const char *text)
{
    return daemon_wait_logged_times(daemon, text, 1);
}
