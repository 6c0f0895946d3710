/* kill9.c - T1: nonbisd is killed again and again while clients write, repeat, ask and void. When, counts in answers and comes from the seed: so the
 * kills meet the clients anywhere in their exchanges, and the same seed kills after the same numbers of answers. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <signal.h>

enum { CLIENTS = 8, ANSWERS_MAX = 30 };

/* What a run must meet, the sure ones first: a short one plans only those. The last three say what had become of a command whose client was left
 * without an answer. */
static const char *const faults[] = { "kill",        "recovered",    "lost-answer",   "mismatch",
                                      "declined",    "voided",       "unknown",       "in-progress",
                                      "lost-absent", "lost-unknown", "lost-completed" };
enum { FAULTS = sizeof faults / sizeof faults[0], SURE = 3, KILLS_FOR_ALL = 100 };

void run_kill9(unsigned kills)
{
    struct trial trial;
    struct trial_client clients[CLIENTS];
    struct suite_random random;
    struct checker_report report;
    unsigned seed = suite_seed(), recovered = 0;
    suite_random_start(&random, seed);
    trial_open(&trial, "kill9", seed, NULL);
    for (size_t i = 0; i < (kills < KILLS_FOR_ALL ? SURE : FAULTS); i++) {
        trial_plan(&trial, faults[i]);
    }
    trial_clients_begin(&trial, clients, CLIENTS, seed, false);
    unsigned answered = 0;
    for (unsigned kill = 0; kill < kills; kill++) {
        unsigned more = suite_random_below(&random, 8) == 0 ? 0 : suite_random_below(&random, ANSWERS_MAX);
        trial_start(&trial, NULL);
        bool found = !daemon_logged(&trial.nonbis, "recovered=0");
        recovered += found;
        trial_wait_answered(&trial, answered + more);
        trial_kill(&trial);
        trial_met(&trial, "kill");
        pthread_mutex_lock(&trial.lock);
        answered = trial.answered;
        pthread_mutex_unlock(&trial.lock);
        if (found) {
            trial_met(&trial, "recovered");
        }
    }
    trial_clients_end(&trial, clients, CLIENTS);
    trial_start(&trial, NULL);
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T1 kill9 kills=%u keys=%u attempts=%u executions=%u acked=%u lost=%u double=%u replay_diff=%u unknown=%u "
           "voided=%u unanswered=%u recovered_starts=%u never_absent_ok=%d seed=%u",
           kills, report.keys, report.attempts, report.executions, report.acknowledged, report.faults[4],
           report.faults[1], report.faults[3], report.unknown, report.voided, report.unanswered, recovered,
           report.faults[7] == 0, seed);
    trial_end(&trial);
}
