/* leaving.c - T9: clients that leave, at each phase of their request, and come back; T12: a drain with executions and waiters under way. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <signal.h>

enum { RUNNING_MAX = 128, WAITERS_MAX = 32 };

void run_client_gone(unsigned times)
{
    static const char *const faults[LEAVES] = { "left-in-head", "left-in-body", "left-at-once", "left-while-it-runs",
                                                "left-in-answer" };
    struct trial trial;
    struct checker_report report;
    unsigned arrivals = 0;
    trial_open(&trial, "client-gone", 0, NULL);
    trial_start(&trial, NULL);
    for (int leave = 0; leave < LEAVES; leave++) {
        trial_plan(&trial, faults[leave]);
    }
    for (unsigned time = 0; time < times; time++) {
        for (int leave = 0; leave < LEAVES; leave++) {
            struct intent intent = { .tenant = "t", .amount = 1, .act = "late=20" };
            (void) snprintf(intent.key, sizeof intent.key, "%s-%u", faults[leave], time);
            arrivals += leave >= LEAVE_AT_ONCE;
            trial_attempt_and_leave(&trial, &intent, (enum trial_leave) leave, arrivals);
            trial_met(&trial, faults[leave]);
        }
    }
    unsigned repeats = trial.attempts;
    trial_settle(&trial);
    unsigned replays = 0;
    for (size_t i = 0; i < trial.history.count; i++) {
        replays += strcmp(trial.history.events[i].word, "replayed") == 0;
    }
    trial_check(&trial, &report);
    FIGURE("T9 client_gone keys=%u phases=%d execs=%u replays=%u repeats=%u double=%u lost=%u", report.keys, LEAVES,
           report.executions, replays, trial.attempts - repeats, report.faults[1], report.faults[4]);
    ck_assert_uint_eq(report.executions, times * LEAVES);
    ck_assert_uint_eq(replays, arrivals); /* those that had left in the head or the body have left no trace */
    trial_end(&trial);
}

/* Waiters repeat the first of the commands that run. */
void run_drain(unsigned running, unsigned waiters)
{
    static const char *const settings[] = { "--log-level", "debug", NULL };
    struct trial trial;
    struct checker_report report;
    struct intent intents[RUNNING_MAX + WAITERS_MAX];
    struct history_event told[RUNNING_MAX + WAITERS_MAX];
    struct trial_crowd crowd, waiting;
    char target[32];
    unsigned finished = 0, unknown = 0, replayed = 0;
    trial_open(&trial, "drain", 0, settings);
    trial_plan(&trial, "drain");
    trial_start(&trial, NULL);
    for (unsigned i = 0; i < running + waiters; i++) {
        bool waits = i >= running;
        intents[i] = (struct intent){ .tenant = "t", .amount = 1, .act = waits ? NULL : "hold" };
        intents[i].fields = waits ? "Prefer: wait=30\r\n" : NULL;
        (void) snprintf(intents[i].key, sizeof intents[i].key, "k-%u", waits ? i - running : i);
    }
    trial_crowd_begin(&crowd, &trial, intents, told, running);
    (void) snprintf(target, sizeof target, "/holds/%u", running);
    ck_assert(trial_tell_oracle(&trial, "GET", target));
    trial_crowd_begin(&waiting, &trial, intents + running, told + running, waiters);
    ck_assert(daemon_wait_logged_times(&trial.nonbis, "waits for the end", (int) waiters));
    int64_t start = suite_now_ms();
    daemon_signal(&trial.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&trial.nonbis, "drain"));
    trial_met(&trial, "drain");
    ck_assert(trial_tell_oracle(&trial, "POST", "/let-go"));
    trial_crowd_end(&crowd);
    trial_crowd_end(&waiting);
    int exit_code = daemon_wait(&trial.nonbis);
    int64_t took = suite_now_ms() - start;
    for (unsigned i = 0; i < running + waiters; i++) {
        finished += i < running && strcmp(told[i].word, "executed") == 0;
        unknown += strcmp(told[i].word, "unknown") == 0;
        replayed += i >= running && strcmp(told[i].word, "replayed") == 0;
    }
    trial_start(&trial, NULL);
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T12 drain inflight=%u finished=%u unknown=%u waiters=%u waiters_replayed=%u exit=%d t_ms=%lld "
           "drain_timeout_ms=30000 lost=%u double=%u",
           running, finished, unknown, waiters, replayed, exit_code, (long long) took, report.faults[4],
           report.faults[1]);
    ck_assert_uint_eq(finished, running);
    ck_assert_uint_eq(replayed, waiters);
    ck_assert_int_eq(exit_code, 0);
    ck_assert_int_lt((int) took, 30000);
    trial_end(&trial);
}
