/* overload.c - T15: more commands than the server may run, from clients that do not wait for one another (an open loop): it goes on doing what it can,
 * refuses the rest at once, and nothing that it took is lost. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    RUNNING_MAX = 32,
    SENDERS = 128,
    LOADS = 4,
    COMMANDS_MAX = 20000,
    TICK_MS = 10,
    RAMP_MS = 500,
    TICKS_PER_S = 1000 / TICK_MS
};

/* Commands that are due, and the threads that send them. */
struct load {
    struct trial *trial;
    const char *name;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned due, begun;
    bool over, closed;            /* closed: a sender for each place, which sends the next when the last was answered */
    int64_t due_at[COMMANDS_MAX]; /* ns */
    int64_t measured_from, measured_until; /* behind the ramp of the begin, before the end: ns */
    unsigned measured;                     /* executed in between */
    int times[COMMANDS_MAX];               /* us from due to the whole answer, of those executed */
    unsigned executed, shed, other;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *sender_run(void *context)
{
    struct load *load = context;
    pthread_mutex_lock(&load->lock);
    for (;;) {
        while (load->begun == load->due && !load->over) {
            pthread_cond_wait(&load->changed, &load->lock);
        }
        if (load->begun == load->due || (load->over && load->closed)) {
            break;
        }
        unsigned i = load->begun++;
        pthread_mutex_unlock(&load->lock);
        struct intent intent = { .tenant = "t", .amount = 1, .act = "late=200" };
        struct history_event told;
        (void) snprintf(intent.key, sizeof intent.key, "%s-%u", load->name, i);
        (void) trial_attempt(load->trial, &intent, &told);
        pthread_mutex_lock(&load->lock);
        if (strcmp(told.word, "executed") == 0) {
            load->measured += told.to > load->measured_from && told.to <= load->measured_until;
            load->times[load->executed++] = (int) ((told.to - load->due_at[i]) / 1000);
        } else if (told.answer == 503 && strcmp(told.problem, "unavailable") == 0) {
            load->shed++;
        } else {
            load->other++;
        }
    }
    pthread_mutex_unlock(&load->lock);
    return NULL;
}

/* With every tick of a timer so many more are due. */
static void make_due(struct load *load, double per_tick, unsigned ticks)
{
    const struct itimerspec every = { .it_interval = { .tv_nsec = TICK_MS * 1000000L },
                                      .it_value = { .tv_nsec = TICK_MS * 1000000L } };
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    ck_assert_int_eq(timerfd_settime(timer, 0, &every, NULL), 0);
    uint64_t passed = 0, more;
    while (passed < ticks && read(timer, &more, sizeof more) == (ssize_t) sizeof more) {
        passed += more;
        pthread_mutex_lock(&load->lock);
        unsigned due = load->closed ? COMMANDS_MAX : (unsigned) (per_tick * (double) passed);
        int64_t now = now_ns();
        for (; load->due < due && load->due < COMMANDS_MAX; load->due++) {
            load->due_at[load->due] = now;
        }
        pthread_cond_broadcast(&load->changed);
        pthread_mutex_unlock(&load->lock);
    }
    close(timer);
}

static int compare_times(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

/* Commands a second that were executed. */
static double run_load(struct load *load, double per_tick, unsigned seconds)
{
    pthread_t threads[SENDERS];
    int senders = load->closed ? RUNNING_MAX : SENDERS;
    pthread_mutex_init(&load->lock, NULL);
    pthread_cond_init(&load->changed, NULL);
    load->measured_from = now_ns() + RAMP_MS * 1000000LL;
    load->measured_until = now_ns() + (int64_t) seconds * 1000000000;
    for (int i = 0; i < senders; i++) {
        pthread_create(&threads[i], NULL, sender_run, load);
    }
    make_due(load, per_tick, seconds * TICKS_PER_S);
    pthread_mutex_lock(&load->lock);
    load->over = true;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
    for (int i = 0; i < senders; i++) {
        pthread_join(threads[i], NULL);
    }
    qsort(load->times, load->executed, sizeof load->times[0], compare_times);
    return (double) load->measured * 1e9 / (double) (load->measured_until - load->measured_from);
}

void run_overload(unsigned seconds)
{
    static const char *const settings[] = { "--set", "running_max=32", NULL };
    static const char *const names[LOADS] = { "full", "two", "five", "full-again" };
    static const double factors[LOADS] = { 0, 2, 5, 0 }; /* 0: a closed loop that keeps every place busy */
    struct trial trial;
    struct checker_report report;
    double goodput[LOADS] = { 0 };
    struct load *loads = calloc(LOADS, sizeof *loads);
    trial_open(&trial, "overload", 0, settings);
    trial_plan(&trial, "shed");
    trial_start(&trial, NULL);
    for (int i = 0; i < LOADS; i++) {
        loads[i].trial = &trial;
        loads[i].name = names[i];
        loads[i].closed = i == 0 || i == LOADS - 1;
        goodput[i] = run_load(&loads[i], factors[i] * goodput[0] / TICKS_PER_S, seconds);
        if (loads[i].shed > 0) {
            trial_met(&trial, "shed");
        }
    }
    double capacity =
        goodput[0] < goodput[LOADS - 1] ? goodput[0] : goodput[LOADS - 1]; /* the disk is not ours alone */
    trial_settle(&trial);
    trial_check(&trial, &report);
    for (int i = 1; i < LOADS - 1; i++) {
        const struct load *load = &loads[i];
        ck_assert_uint_gt(load->executed, 0);
        FIGURE("T15 overload factor=%.0f offered_per_s=%.0f goodput_per_s=%.0f max_per_s=%.0f,%.0f goodput=%.2f*max "
               "shed=%u other=%u p50_ms=%d p99_ms=%d running_max=%d lost=%u double=%u",
               factors[i], (double) load->due / seconds, goodput[i], goodput[0], goodput[LOADS - 1],
               goodput[i] / capacity, load->shed, load->other, load->times[load->executed / 2] / 1000,
               load->times[(load->executed * 99 - 1) / 100] / 1000, RUNNING_MAX, report.faults[4], report.faults[1]);
        ck_assert_uint_eq(load->other, 0);
        ck_assert_uint_gt(load->shed, 0);
        /* On a quiet machine it is about 1; senders and server share the processors, and here only a collapse fails. */
        ck_assert(goodput[i] >= 0.5 * capacity);
    }
    free(loads);
    trial_end(&trial);
}
