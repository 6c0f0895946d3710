/* program.c - see program.h. */
#include "tests/cli/program.h"

#include "tests/support/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 60, DEADLINE_MS = 20000 };

const char *program_journal(void)
{
    static char path[600];
    (void) snprintf(path, sizeof path, "%s/journal", daemon_folder());
    return path;
}

static char *read_file(const char *path, size_t *len)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && fstat(fd, &about) == 0, "%s cannot be read", path);
    char *text = malloc((size_t) about.st_size + 1);
    ssize_t got = read(fd, text, (size_t) about.st_size);
    close(fd);
    *len = got > 0 ? (size_t) got : 0;
    text[*len] = '\0';
    return text;
}

static int open_new(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0, "%s cannot be made", path);
    return fd;
}

static int open_input(const char *text)
{
    char path[600];
    static int count;
    (void) snprintf(path, sizeof path, "%s/input-%d", daemon_folder(), ++count);
    int fd = open_new(path);
    size_t len = text != NULL ? strlen(text) : 0;
    ck_assert_int_eq(write(fd, text != NULL ? text : "", len), (ssize_t) len);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* The child's side: its descriptors, its variables, then the program. */
static void become(const struct program_start *start, const char *journal, const char *const *argv, int in, int out,
                   int err)
{
    if (start->terminal_fd > 0) {
        setsid();
        ioctl(start->terminal_fd, TIOCSCTTY, 0);
        in = err = start->terminal_fd;
    }
    dup2(in, 0);
    dup2(start->out_fd > 0 ? start->out_fd : out, 1);
    dup2(err, 2);
    if (start->closed_fd > 0) {
        close(start->closed_fd);
    }
    setenv("NONBIS_JOURNAL", journal, 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NONBIS_URL");
    unsetenv("LC_ALL");
    for (size_t i = 0; i < 8 && start->variables[i] != NULL; i++) {
        putenv((char *) (const void *) start->variables[i]);
    }
    execv(argv[0], (char *const *) (const void *) argv);
    _exit(127);
}

void program_begin(struct program *program, const struct program_start *start, const char *const *arguments)
{
    static const struct program_start usual;
    static int count;
    char path[256];
    const char *argv[ARGUMENTS_MAX];
    int argc = 0;
    start = start != NULL ? start : &usual;
    *program = (struct program){ .exit_code = -1 };
    (void) snprintf(program->out_path, sizeof program->out_path, "%s/out-%d", daemon_folder(), ++count);
    (void) snprintf(program->err_path, sizeof program->err_path, "%s/err-%d", daemon_folder(), count);
    (void) snprintf(path, sizeof path, "%s/nonbis", suite_out());
    argv[argc++] = path;
    for (; *arguments != NULL; arguments++) {
        ck_assert_int_lt(argc, ARGUMENTS_MAX - 1);
        argv[argc++] = *arguments;
    }
    argv[argc] = NULL;
    int in = open_input(start->input), out = open_new(program->out_path), err = open_new(program->err_path);
    const char *journal = program_journal(); /* the folder is that of this process */
    program->pid = fork();
    ck_assert_int_ge(program->pid, 0);
    if (program->pid == 0) {
        become(start, journal, argv, in, out, err);
    }
    close(in);
    close(out);
    close(err);
}

static void note_end(struct program *program, int status)
{
    size_t ignored = 0;
    program->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    program->pid = 0;
    program->out = read_file(program->out_path, &program->out_len);
    program->err = read_file(program->err_path, &ignored);
}

void program_end(struct program *program)
{
    int status = 0;
    if (program->pid != 0) {
        ck_assert_int_eq(waitpid(program->pid, &status, 0), program->pid);
        note_end(program, status);
    }
}

bool program_wait_err(struct program *program, const char *text)
{
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch, program->err_path, IN_MODIFY);
    bool found = false, ended = false;
    for (int waited_ms = 0; waited_ms < DEADLINE_MS && !found && !ended; waited_ms += 20) {
        int status = 0;
        size_t len = 0;
        ended = program->pid == 0 || waitpid(program->pid, &status, WNOHANG) == program->pid;
        char *err = read_file(program->err_path, &len);
        found = strstr(err, text) != NULL;
        free(err);
        if (ended && program->pid != 0) {
            note_end(program, status);
        }
        struct pollfd change = { .fd = watch, .events = POLLIN };
        char events[4096];
        if (!found && !ended && poll(&change, 1, 20) > 0) {
            ssize_t ignored = read(watch, events, sizeof events);
            (void) ignored;
        }
    }
    close(watch);
    return found;
}

struct program program_run_as(const struct program_start *start, const char *const *arguments)
{
    struct program program;
    program_begin(&program, start, arguments);
    program_end(&program);
    return program;
}

struct program program_run(const char *const *arguments)
{
    return program_run_as(NULL, arguments);
}

void program_free(struct program *program)
{
    free(program->out);
    free(program->err);
    program->out = program->err = NULL;
}

void program_expect_words(const char *name, const char *text, const char *words)
{
    struct view rest = view_of(words), word;
    while (view_next_item(&rest, '|', &word)) {
        char one[512];
        (void) snprintf(one, sizeof one, "%.*s", VIEW_ARGS(word));
        ck_assert_msg(strstr(text, one) != NULL, "%s: \"%s\" is not in: %s", name, one, text);
    }
}
