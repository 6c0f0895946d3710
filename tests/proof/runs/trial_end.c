/* trial_end.c - the end of a trial (trial.h): every command once more, then the ledger and the history are read, kept and judged. */
#include "tests/proof/runs/trial.h"

#include <fcntl.h>
#include <unistd.h>

enum { SETTLERS = 8, LEDGER_MAX = 64 * 1024 * 1024 };

struct settling {
    struct trial *trial;
    struct intent *intents;
    size_t count, next;
};

static void *settle_run(void *context)
{
    struct settling *settling = context;
    for (;;) {
        pthread_mutex_lock(&settling->trial->lock);
        size_t i = settling->next++;
        pthread_mutex_unlock(&settling->trial->lock);
        if (i >= settling->count) {
            return NULL;
        }
        const struct intent *intent = &settling->intents[i];
        (void) trial_attempt(settling->trial, intent, NULL);
        (void) trial_ask(settling->trial, intent->tenant, intent->key, NULL);
    }
}

static int compare_intents(const void *a, const void *b)
{
    const struct intent *left = a, *right = b;
    int order = strcmp(left->tenant, right->tenant);
    return order != 0 ? order : strcmp(left->key, right->key);
}

/* Every command of the history once. */
static void list_commands(const struct history *history, struct settling *settling)
{
    settling->intents = calloc(history->count + 1, sizeof *settling->intents);
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *event = &history->events[i];
        if (event->kind == HISTORY_ATTEMPT || event->kind == HISTORY_VOID) {
            struct intent *intent = &settling->intents[count++];
            (void) snprintf(intent->tenant, sizeof intent->tenant, "%s", event->tenant);
            (void) snprintf(intent->key, sizeof intent->key, "%s", event->key);
            intent->amount = 1;
            intent->fields = "Prefer: wait=10\r\n"; /* what still runs has ended when the status is asked */
        }
    }
    qsort(settling->intents, count, sizeof *settling->intents, compare_intents);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_intents(&settling->intents[i], &settling->intents[i - 1]) != 0) {
            settling->intents[settling->count++] = settling->intents[i];
        }
    }
}

void trial_settle(struct trial *trial)
{
    struct settling settling = { .trial = trial };
    pthread_t threads[SETTLERS];
    struct history_event quiet = { .kind = HISTORY_QUIET };
    quiet.from = quiet.to = trial_now_ns();
    list_commands(&trial->history, &settling);
    *history_add(&trial->history, HISTORY_QUIET) = quiet;
    for (int i = 0; i < SETTLERS; i++) {
        pthread_create(&threads[i], NULL, settle_run, &settling);
    }
    for (int i = 0; i < SETTLERS; i++) {
        pthread_join(threads[i], NULL);
    }
    free(settling.intents);
}

static void read_ledger(struct trial *trial)
{
    char *text = malloc(LEDGER_MAX);
    int fd = open(trial->ledger, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t got; fd >= 0 && (got = read(fd, text + len, LEDGER_MAX - len)) > 0;) {
        len += (size_t) got;
    }
    ck_assert(fd >= 0 && len < LEDGER_MAX);
    close(fd);
    size_t wrong = history_read(&trial->history, view_make(text, len));
    ck_assert_msg(wrong == 0, "line %zu of %s is not understood", wrong, trial->ledger);
    free(text);
}

static void keep_history(const struct trial *trial, char path[700])
{
    struct buf text;
    buf_init(&text, LEDGER_MAX);
    for (size_t i = 0; i < trial->history.count; i++) {
        history_write_event(&trial->history.events[i], &text);
    }
    (void) snprintf(path, 700, "%s/%s.history", daemon_folder(), trial->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert(fd >= 0 && !text.failed && write(fd, text.ptr, text.len) == (ssize_t) text.len);
    close(fd);
    buf_fini(&text);
}

void trial_check(struct trial *trial, struct checker_report *report)
{
    struct buf told;
    char path[700];
    buf_init(&told, 64 * 1024);
    read_ledger(trial);
    keep_history(trial, path);
    checker_run(&trial->history, 0, report);
    checker_write(report, &told);
    ck_assert_msg(report->faults_all == 0, "%s seed=%u: %.*sThe history is %s", trial->name, trial->seed,
                  (int) told.len, told.ptr, path);
    buf_fini(&told);
}

void trial_forget(struct trial *trial)
{
    history_fini(&trial->history);
    history_init(&trial->history);
    trial->first_key = ++trial->newest_key;
    ck_assert_int_eq(truncate(trial->ledger, 0), 0); /* the oracle appends */
}
