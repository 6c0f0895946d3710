/* stops.c - processes that stand still, and handlers that die or dawdle: T25 (nonbisd stopped, the deadline of its executions passes meanwhile), T7 (the
 * handler killed in the middle of its answer), T11 (handlers that stand still, are late, or trickle). */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <signal.h>

enum { CROWD_MAX = 64, SLOW_KINDS = 3, SLACK_MS = 2000 };

static void make_crowd(struct intent *intents, unsigned count, const char *name, const char *act)
{
    for (unsigned i = 0; i < count; i++) {
        intents[i] = (struct intent){ .tenant = "t", .amount = 1, .act = act };
        (void) snprintf(intents[i].key, sizeof intents[i].key, "%s-%u", name, i);
    }
}

static unsigned count_word(const struct history_event *told, unsigned count, const char *word)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        found += strcmp(told[i].word, word) == 0;
    }
    return found;
}

/* answer_timeout and hard_timeout end together: told is `still-running` or `outcome-unknown`, whichever comes first. */
static unsigned count_given_up(const struct history_event *told, unsigned count)
{
    return count_word(told, count, "unknown") + count_word(told, count, "in-progress");
}

static void wait_acted(struct trial *trial, unsigned count)
{
    char target[32];
    (void) snprintf(target, sizeof target, "/acted/%u", count);
    ck_assert(trial_tell_oracle(trial, "GET", target));
}

/* T25. hard_timeout passes while nonbisd is stopped, or the claim's own deadline too, 5 s later; the handler has answered meanwhile. */
void run_paused_server(unsigned count, int ms)
{
    static const char *const settings[] = { "--set", "hard_timeout=300ms", "--set", "answer_timeout=300ms", NULL };
    struct trial trial;
    struct checker_report report;
    struct intent intents[CROWD_MAX];
    struct history_event told[CROWD_MAX];
    struct trial_crowd crowd;
    trial_open(&trial, "paused-server", 0, settings);
    trial_plan(&trial, "stopped");
    trial_plan(&trial, "deadline-passed");
    trial_start(&trial, NULL);
    make_crowd(intents, count, "paused", "late=100");
    make_crowd(intents + count / 2, count - count / 2, "paused-late", "late=700");
    trial_crowd_begin(&crowd, &trial, intents, told, count);
    wait_acted(&trial, count);
    trial_stop_process(&trial.nonbis);
    trial_met(&trial, "stopped");
    trial_stand_still(&trial, ms);
    daemon_signal(&trial.nonbis, SIGCONT);
    trial_met(&trial, "deadline-passed");
    trial_crowd_end(&crowd);
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T25 zombie stopped_ms=%d hard_timeout_ms=300 keys=%u executions=%u told_executed=%u given_up=%u "
           "double=%u "
           "lost=%u",
           ms, report.keys, report.executions, count_word(told, count, "executed"), count_given_up(told, count),
           report.faults[1], report.faults[4]);
    ck_assert_uint_eq(report.executions, count);
    ck_assert_uint_eq(count_word(told, count, "executed") + count_given_up(told, count), count);
    trial_end(&trial);
}

/* T7. Killed with half of each answer on the wire, and some answers not begun. */
void run_killed_handler(unsigned count)
{
    struct trial trial;
    struct checker_report report;
    struct intent intents[CROWD_MAX];
    struct history_event told[CROWD_MAX];
    struct trial_crowd crowd;
    char target[32];
    trial_open(&trial, "killed-handler", 0, NULL);
    trial_plan(&trial, "handler-killed");
    trial_start(&trial, NULL);
    make_crowd(intents, count, "half", "wait-cut");
    make_crowd(intents + count / 2, count - count / 2, "nothing", "hold");
    trial_crowd_begin(&crowd, &trial, intents, told, count);
    (void) snprintf(target, sizeof target, "/holds/%u", count);
    ck_assert(trial_tell_oracle(&trial, "GET", target));
    trial_restart_oracle(&trial);
    trial_met(&trial, "handler-killed");
    trial_crowd_end(&crowd);
    unsigned unknown = count_word(told, count, "unknown");
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T7 handler_killed keys=%u executions=%u told_unknown=%u stored_as_complete=%u double=%u", report.keys,
           report.executions, unknown, report.acknowledged, report.faults[1]);
    ck_assert_uint_eq(unknown, count);
    ck_assert_uint_eq(report.executions, count);
    ck_assert_uint_eq(report.acknowledged, 0);
    trial_end(&trial);
}

static int compare_ms(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static int p99_ms(const struct history_event *told, unsigned count)
{
    int times[CROWD_MAX * SLOW_KINDS];
    for (unsigned i = 0; i < count; i++) {
        times[i] = (int) ((told[i].to - told[i].from) / 1000000);
    }
    qsort(times, count, sizeof times[0], compare_ms);
    return times[(count * 99 - 1) / 100];
}

/* T11. Later than hard_timeout; a byte at a time, within it and beyond it; and a handler that is stopped, and goes on after its callers have gone. */
void run_slow_handler(unsigned count)
{
    static const char *const settings[] = { "--set", "hard_timeout=500ms", "--set", "answer_timeout=500ms", NULL };
    static const char *const acts[SLOW_KINDS] = { "late=900", "drip=10", "drip=1" };
    static const char *const names[SLOW_KINDS] = { "late", "trickle-long", "trickle" };
    struct trial trial;
    struct checker_report report;
    struct intent intents[CROWD_MAX * SLOW_KINDS];
    struct history_event told[CROWD_MAX * SLOW_KINDS], stopped[CROWD_MAX];
    struct trial_crowd crowd;
    unsigned all = count * SLOW_KINDS;
    trial_open(&trial, "slow-handler", 0, settings);
    trial_plan(&trial, "handler-stopped");
    trial_start(&trial, NULL);
    for (unsigned kind = 0; kind < SLOW_KINDS; kind++) {
        make_crowd(intents + (size_t) kind * count, count, names[kind], acts[kind]);
    }
    trial_crowd_begin(&crowd, &trial, intents, told, all);
    trial_crowd_end(&crowd);
    unsigned unknown = count_given_up(told, all), executed = count_word(told, all, "executed");
    make_crowd(intents, count, "stopped", NULL);
    trial_stop_process(&trial.oracle);
    trial_met(&trial, "handler-stopped");
    trial_crowd_begin(&crowd, &trial, intents, stopped, count);
    trial_crowd_end(&crowd);
    daemon_signal(&trial.oracle, SIGCONT);
    unsigned stopped_unknown = count_given_up(stopped, count);
    wait_acted(&trial, all + count); /* it reads what was sent, though nobody waits any more */
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T11 slow keys=%u given_up=%u executed=%u execs=%u p99_ms=%d hard_timeout_ms=500 handler_stopped: "
           "given_up=%u double=%u",
           report.keys, unknown, executed, report.executions, p99_ms(told, all), stopped_unknown, report.faults[1]);
    ck_assert_uint_ge(unknown, 2 * count);
    ck_assert_uint_eq(unknown + executed, all);
    ck_assert_uint_eq(stopped_unknown, count);
    ck_assert_uint_eq(report.executions, all + count);
    ck_assert_int_le(p99_ms(told, all), 500 + SLACK_MS);
    trial_end(&trial);
}
