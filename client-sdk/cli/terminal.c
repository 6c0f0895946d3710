/* terminal.c - see terminal.h. */
#include "client-sdk/cli/terminal.h"

#include "client-sdk/cli/explain.h"
#include "client-sdk/cli/file.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { DRAW_EVERY_MS = 100, WORK_SHOWN_AFTER_MS = 400, TEXT_MAX = 160 };

enum shown { SHOWN_NOTHING, SHOWN_WAIT, SHOWN_WORK };

struct terminal {
    struct nonbis_op *op;
    pthread_t thread;
    int stop_fd;          /* an eventfd: rung once, at the end */
    int key_fd;           /* the terminal's input; -1: none */
    pthread_mutex_t lock; /* what follows, and every write of the line */
    enum shown shown;
    char what[TEXT_MAX];
    int64_t began_ms, until_ms, server_ms;
    bool drawn;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the line ----------------------------------------------------------------------------------------------------- */

static void erase(struct terminal *terminal)
{
    if (terminal->drawn) {
        (void) file_write(STDERR_FILENO, "\r\033[K", 4);
        terminal->drawn = false;
    }
}

static int compose(const struct terminal *terminal, char *out, size_t size)
{
    char time[EXPLAIN_TIME], server[EXPLAIN_TIME];
    int64_t now = now_ms();
    if (terminal->shown == SHOWN_WORK) {
        if (now - terminal->began_ms < WORK_SHOWN_AFTER_MS) {
            return 0;
        }
        explain_tenths(now - terminal->began_ms, time);
        return snprintf(out, size, "\r\033[K%s: %s", terminal->what, time);
    }
    explain_tenths(terminal->until_ms - now, time);
    explain_ms(terminal->server_ms, server);
    bool asked = terminal->server_ms >= 0;
    return snprintf(out, size, "\r\033[K%s in %s%s%s%s%s", terminal->what, time, asked ? " (server asked " : "",
                    asked ? server : "", asked ? ")" : "", terminal->key_fd >= 0 ? ", Enter = now" : "");
}

static void draw(struct terminal *terminal)
{
    char line[TEXT_MAX + 3 * EXPLAIN_TIME];
    if (terminal->shown == SHOWN_NOTHING) {
        return;
    }
    int len = compose(terminal, line, sizeof line);
    if (len > 0) {
        (void) file_write(STDERR_FILENO, line, (size_t) len);
        terminal->drawn = true;
    }
}

static void show(struct terminal *terminal, enum shown shown, const char *what, int64_t delay_ms, int64_t server_ms)
{
    pthread_mutex_lock(&terminal->lock);
    erase(terminal);
    terminal->shown = shown;
    (void) snprintf(terminal->what, sizeof terminal->what, "%s", what);
    terminal->began_ms = now_ms();
    terminal->until_ms = terminal->began_ms + delay_ms;
    terminal->server_ms = server_ms;
    draw(terminal);
    pthread_mutex_unlock(&terminal->lock);
}

void terminal_wait(struct terminal *terminal, const char *what, int64_t delay_ms, int64_t server_ms)
{
    show(terminal, SHOWN_WAIT, what, delay_ms, server_ms);
}

void terminal_work(struct terminal *terminal, const char *what)
{
    show(terminal, SHOWN_WORK, what, 0, -1);
}

void terminal_clear(struct terminal *terminal)
{
    show(terminal, SHOWN_NOTHING, "", 0, -1);
}

/* ---- the thread --------------------------------------------------------------------------------------------------- */

/* A process in the background must not read its terminal: it would be stopped. */
static bool may_read_keys(const struct terminal *terminal)
{
    return terminal->key_fd >= 0 && tcgetpgrp(terminal->key_fd) == getpgrp();
}

static void take_keys(struct terminal *terminal)
{
    char keys[256];
    ssize_t got = read(terminal->key_fd, keys, sizeof keys);
    pthread_mutex_lock(&terminal->lock);
    if (got > 0 && memchr(keys, '\n', (size_t) got) != NULL && terminal->shown == SHOWN_WAIT) {
        nonbis_op_retry_now(terminal->op);
    } else if (got <= 0) {
        close(terminal->key_fd);
        terminal->key_fd = -1;
    }
    pthread_mutex_unlock(&terminal->lock);
}

static void *terminal_main(void *arg)
{
    struct terminal *terminal = arg;
    for (;;) {
        struct pollfd fds[2] = { { .fd = terminal->stop_fd, .events = POLLIN },
                                 { .fd = may_read_keys(terminal) ? terminal->key_fd : -1, .events = POLLIN } };
        (void) poll(fds, 2, DRAW_EVERY_MS);
        if (fds[0].revents != 0) {
            return NULL;
        }
        if (fds[1].revents != 0) {
            take_keys(terminal);
        }
        pthread_mutex_lock(&terminal->lock);
        draw(terminal);
        pthread_mutex_unlock(&terminal->lock);
    }
}

/* ---- beginning and end -------------------------------------------------------------------------------------------- */

static bool stderr_can_do_it(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0 && kind[0] != '\0';
}

static bool start_thread(struct terminal *terminal)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&terminal->thread, NULL, terminal_main, terminal) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct terminal *terminal_open(struct nonbis_op *op)
{
    struct terminal *terminal = stderr_can_do_it() ? calloc(1, sizeof *terminal) : NULL;
    if (terminal == NULL) {
        return NULL;
    }
    terminal->op = op;
    terminal->server_ms = -1;
    terminal->stop_fd = eventfd(0, EFD_CLOEXEC);
    terminal->key_fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    bool locked = pthread_mutex_init(&terminal->lock, NULL) == 0;
    if (terminal->stop_fd >= 0 && locked && start_thread(terminal)) {
        return terminal;
    }
    if (terminal->stop_fd >= 0) {
        close(terminal->stop_fd);
    }
    if (terminal->key_fd >= 0) {
        close(terminal->key_fd);
    }
    if (locked) {
        pthread_mutex_destroy(&terminal->lock);
    }
    free(terminal);
    return NULL;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal == NULL) {
        return;
    }
    const uint64_t one = 1;
    terminal_clear(terminal);
    (void) file_write(terminal->stop_fd, &one, sizeof one);
    pthread_join(terminal->thread, NULL);
    close(terminal->stop_fd);
    if (terminal->key_fd >= 0) {
        close(terminal->key_fd);
    }
    pthread_mutex_destroy(&terminal->lock);
    free(terminal);
}
