/* overload.c - T15: more commands than the server may run, from clients that do not wait for one another (an open loop): it goes on doing what it can,
 * refuses the rest at once, and nothing that it took is lost.
 *
 * The machine is not ours alone: what it can do is measured before and after each short spell of overload, and what counts is the median of several. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"
#include "tests/support/exposition.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum {
    RUNNING_MAX = 32,
    SENDERS = 128,
    ROUNDS_MAX = 8,
    KINDS = 2, /* of overload */
    SPELLS = ROUNDS_MAX * KINDS * 2 + 1,
    COMMANDS_MAX = 4000, /* of a spell */
    TICK_MS = 2,         /* a place that is free waits for the next command, so these come soon one after another */
    RAMP_MS = 400,
    SPELL_MS = 1600,
    LOOK_MS = 100,        /* between two looks at the metrics */
    P99_MAX_MS = 1500,    /* the handler takes 200; what is taken is not made to wait behind what is refused */
    GOODPUT_PERCENT = 90, /* of the maximum */
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
    double goodput;             /* a second, behind the ramp */
    int running_max, queue_max; /* as /metrics told them */
};

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
        char act[24];
        struct intent intent = { .tenant = "t", .amount = 1, .act = act };
        struct history_event told;
        (void) snprintf(act, sizeof act, "late=%u", 120 + i * 53 % 161); /* 200 in the mean, or all would go in waves */
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

static int more_of(int most, double seen)
{
    return (int) seen > most ? (int) seen : most;
}

static void look(struct load *load)
{
    struct http_answer page = http_request(load->trial->nonbis.admin, "GET", "/metrics", NULL, NULL);
    ck_assert_int_eq(page.status, 200);
    load->running_max = more_of(load->running_max, exposition_value(page.body, "nonbis_running"));
    load->queue_max =
        more_of(load->queue_max, exposition_value(page.body, "nonbis_store_queue{kind=\"claims\"}") +
                                     exposition_value(page.body, "nonbis_store_queue{kind=\"reads\"}") +
                                     exposition_value(page.body, "nonbis_store_queue{kind=\"outcomes\"}"));
    http_answer_free(&page);
}

/* With every tick of a timer so many more are due. */
static void make_due(struct load *load, double per_tick, unsigned ticks)
{
    const struct itimerspec every = { .it_interval = { .tv_nsec = TICK_MS * 1000000L },
                                      .it_value = { .tv_nsec = TICK_MS * 1000000L } };
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    ck_assert_int_eq(timerfd_settime(timer, 0, &every, NULL), 0);
    uint64_t passed = 0, looked = 0, more;
    while (passed < ticks && read(timer, &more, sizeof more) == (ssize_t) sizeof more) {
        passed += more;
        pthread_mutex_lock(&load->lock);
        unsigned due = load->closed ? COMMANDS_MAX : (unsigned) (per_tick * (double) passed);
        int64_t now = trial_now_ns();
        for (; load->due < due && load->due < COMMANDS_MAX; load->due++) {
            load->due_at[load->due] = now;
            /* One sender: to wake them all takes the processor from those who are measured. */
            pthread_cond_signal(&load->changed);
        }
        pthread_mutex_unlock(&load->lock);
        if (passed - looked >= LOOK_MS / TICK_MS) {
            looked = passed;
            look(load);
        }
    }
    close(timer);
}

static int compare_times(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static void run_load(struct load *load, double per_tick)
{
    pthread_t threads[SENDERS];
    int senders = load->closed ? RUNNING_MAX : SENDERS;
    pthread_mutex_init(&load->lock, NULL);
    pthread_cond_init(&load->changed, NULL);
    load->measured_from = trial_now_ns() + RAMP_MS * 1000000LL;
    load->measured_until = trial_now_ns() + SPELL_MS * 1000000LL;
    for (int i = 0; i < senders; i++) {
        pthread_create(&threads[i], NULL, sender_run, load);
    }
    make_due(load, per_tick, SPELL_MS / TICK_MS);
    pthread_mutex_lock(&load->lock);
    load->over = true;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
    for (int i = 0; i < senders; i++) {
        pthread_join(threads[i], NULL);
    }
    load->goodput = (double) load->measured * 1e9 / (double) (load->measured_until - load->measured_from);
}

/* --- what it comes to --- */

/* All spells of one kind of overload together. */
struct sum {
    unsigned due, executed, shed, other;
    double offered, goodput, parts[ROUNDS_MAX]; /* a second; of the maximum, sorted */
    int p50_ms, p99_ms, running_max, queue_max;
};

static int compare_parts(const void *a, const void *b)
{
    double left = *(const double *) a, right = *(const double *) b;
    return left < right ? -1 : left > right;
}

static void sum_up(struct sum *sum, const struct load *loads, unsigned rounds, unsigned kind)
{
    int *times = calloc((size_t) rounds * COMMANDS_MAX, sizeof *times);
    *sum = (struct sum){ 0 };
    for (unsigned round = 0; round < rounds; round++) {
        const struct load *load = &loads[(round * KINDS + kind) * 2 + 1], *before = load - 1, *after = load + 1;
        memcpy(times + sum->executed, load->times, load->executed * sizeof *times);
        sum->due += load->due;
        sum->executed += load->executed;
        sum->shed += load->shed;
        sum->other += load->other;
        sum->goodput += load->goodput / rounds;
        sum->parts[round] = load->goodput / (before->goodput < after->goodput ? before->goodput : after->goodput);
        sum->running_max = more_of(sum->running_max, load->running_max);
        sum->queue_max = more_of(sum->queue_max, load->queue_max);
    }
    ck_assert_uint_gt(sum->executed, 0);
    qsort(times, sum->executed, sizeof *times, compare_times);
    qsort(sum->parts, rounds, sizeof sum->parts[0], compare_parts);
    sum->offered = sum->due * 1000.0 / (rounds * SPELL_MS);
    sum->p50_ms = times[sum->executed / 2] / 1000;
    sum->p99_ms = times[(sum->executed * 99 - 1) / 100] / 1000;
    free(times);
}

static void tell_and_judge(const struct sum *sum, unsigned rounds, int factor, double most, const struct trial *trial,
                           const struct checker_report *report)
{
    double median = sum->parts[rounds / 2];
    FIGURE(
        "T15 overload factor=%d spells=%u offered_per_s=%.0f goodput_per_s=%.0f max_per_s=%.0f goodput=%.2f*max "
        "worst=%.2f*max shed=%u other=%u p50_ms=%d p99_ms=%d running=%d running_max=%d queue_max=%d lost=%u double=%u",
        factor, rounds, sum->offered, sum->goodput, most, median, sum->parts[0], sum->shed, sum->other, sum->p50_ms,
        sum->p99_ms, sum->running_max, RUNNING_MAX, sum->queue_max, report->faults[4], report->faults[1]);
    ck_assert_uint_eq(sum->other, 0);
    ck_assert_uint_gt(sum->shed, 0);
    ck_assert_msg(median * 100 >= GOODPUT_PERCENT, "goodput is %.2f of the maximum, see %s", median,
                  trial->nonbis.log_path);
    ck_assert_int_le(sum->p99_ms, P99_MAX_MS);
    ck_assert_int_le(sum->running_max, RUNNING_MAX);
    ck_assert_int_le(sum->queue_max, SENDERS);
}

void run_overload(unsigned rounds)
{
    static const char *const settings[] = { "--set", "running_max=32", NULL };
    static const int factors[KINDS] = { 2, 5 };
    struct trial trial;
    struct checker_report report;
    struct load *loads = calloc(SPELLS, sizeof *loads);
    char names[SPELLS][24];
    unsigned spells = rounds * KINDS * 2 + 1;
    double most = 0;
    ck_assert_uint_le(rounds, ROUNDS_MAX);
    trial_open(&trial, "overload", 0, settings);
    trial_plan(&trial, "shed");
    trial_start(&trial, NULL);
    for (unsigned i = 0; i < spells; i++) {
        int factor = factors[i / 2 % KINDS];
        loads[i].trial = &trial;
        loads[i].name = names[i];
        loads[i].closed = i % 2 == 0; /* that keeps every place busy, and asks for no more */
        (void) snprintf(names[i], sizeof names[i], "spell-%u", i);
        run_load(&loads[i], factor * loads[i > 0 ? i - 1 : 0].goodput / TICKS_PER_S);
        most = loads[i].closed && loads[i].goodput > most ? loads[i].goodput : most;
        if (loads[i].shed > 0) {
            trial_met(&trial, "shed");
        }
    }
    trial_settle(&trial);
    trial_check(&trial, &report);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct sum sum;
        sum_up(&sum, loads, rounds, kind);
        tell_and_judge(&sum, rounds, factors[kind], most, &trial, &report);
    }
    free(loads);
    trial_end(&trial);
}
