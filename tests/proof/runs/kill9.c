/* kill9.c - T1: nonbisd is killed again and again while clients write, repeat, ask and void. When, counts in answers and comes from the seed: so the
 * kills meet the clients anywhere in their exchanges, and the same seed kills after the same numbers of answers. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <signal.h>

enum { CLIENTS = 8, TENANTS = 4, ANSWERS_MAX = 30, RECENT = 24, KEYS_MAX = 100000 };

struct client {
    struct trial *trial;
    pthread_t thread;
    struct suite_random random;
};

/* What a run must meet, the sure ones first: a short one plans only those. The last three say what had become of a command whose client was left
 * without an answer. */
static const char *const faults[] = { "kill",        "recovered",    "lost-answer",   "mismatch",
                                      "declined",    "voided",       "unknown",       "in-progress",
                                      "lost-absent", "lost-unknown", "lost-completed" };
enum { FAULTS = sizeof faults / sizeof faults[0], SURE = 3, KILLS_FOR_ALL = 100 };

static unsigned newest_key; /* the clients share names of keys; one lock is enough: that of the trial */

static void choose_key(struct client *client, struct intent *intent)
{
    bool fresh = suite_random_below(&client->random, 100) < 55;
    unsigned back = suite_random_below(&client->random, RECENT), tenant = suite_random_below(&client->random, TENANTS);
    pthread_mutex_lock(&client->trial->lock);
    newest_key += fresh;
    unsigned key = fresh || back > newest_key ? newest_key : newest_key - back;
    pthread_mutex_unlock(&client->trial->lock);
    (void) snprintf(intent->tenant, sizeof intent->tenant, "t%u", tenant);
    (void) snprintf(intent->key, sizeof intent->key, "k-%u", key);
}

static void choose_attempt(struct client *client, struct intent *intent)
{
    static const char *const acts[] = { "late=1", "late=5", "late=20", "decline", "decline", "close", "cut", "drip=1" };
    unsigned act = suite_random_below(&client->random, 24);
    choose_key(client, intent);
    intent->amount = suite_random_below(&client->random, 100) < 4 ? 2 : 1;
    intent->act = act < sizeof acts / sizeof acts[0] ? acts[act] : NULL;
    intent->fields = suite_random_below(&client->random, 100) < 30 ? "Prefer: wait=5\r\n" : NULL;
}

/* What the answer says that was met on the way. */
static void note_faults(struct trial *trial, const struct history_event *told)
{
    static const struct {
        const char *word, *fault;
    } words[] = { { "not-executed", "declined" }, { "in-progress", "in-progress" }, { "unknown", "unknown" } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(told->word, words[i].word) == 0) {
            trial_met(trial, words[i].fault);
        }
    }
    if (strcmp(told->problem, "key-reused") == 0) {
        trial_met(trial, "mismatch");
    }
}

/* One command, and what a careful client does when no answer comes: it repeats the same once the server is back, and asks. */
static bool client_write(struct client *client, unsigned *generation)
{
    struct intent intent = { .amount = 1 };
    struct history_event told;
    choose_attempt(client, &intent);
    if (trial_attempt(client->trial, &intent, &told)) {
        note_faults(client->trial, &told);
        return true;
    }
    trial_met(client->trial, "lost-answer");
    if (!trial_wait_start(client->trial, generation)) {
        return false;
    }
    if (suite_random_below(&client->random, 2) == 0) {
        (void) trial_ask(client->trial, intent.tenant, intent.key, NULL);
    }
    if (trial_attempt(client->trial, &intent, &told)) {
        note_faults(client->trial, &told);
        trial_met(client->trial, strcmp(told.word, "replayed") == 0   ? "lost-completed"
                                 : strcmp(told.word, "unknown") == 0  ? "lost-unknown"
                                 : strcmp(told.word, "executed") == 0 ? "lost-absent"
                                                                      : "lost-otherwise");
        return true;
    }
    return trial_wait_start(client->trial, generation);
}

static void *client_run(void *context)
{
    struct client *client = context;
    struct trial *trial = client->trial;
    unsigned generation = 0;
    bool more = trial_wait_start(trial, &generation);
    while (more) {
        struct intent intent = { .amount = 1 };
        struct history_event told;
        unsigned deed = suite_random_below(&client->random, 100);
        bool answered = true;
        if (deed < 78) {
            more = client_write(client, &generation);
        } else {
            choose_key(client, &intent);
            answered = deed < 94 ? trial_ask(trial, intent.tenant, intent.key, &told)
                                 : trial_void(trial, intent.tenant, intent.key, &told);
        }
        if (deed >= 94 && answered && told.answer == 200) {
            trial_met(trial, "voided");
        }
        more = more && (answered || trial_wait_start(trial, &generation));
        pthread_mutex_lock(&trial->lock);
        more = more && !trial->over;
        pthread_mutex_unlock(&trial->lock);
    }
    return NULL;
}

void run_kill9(unsigned kills)
{
    struct trial trial;
    struct client clients[CLIENTS];
    struct suite_random random;
    struct checker_report report;
    unsigned seed = suite_seed(), recovered = 0;
    newest_key = 0;
    suite_random_start(&random, seed);
    trial_open(&trial, "kill9", seed, NULL);
    for (size_t i = 0; i < (kills < KILLS_FOR_ALL ? SURE : FAULTS); i++) {
        trial_plan(&trial, faults[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i].trial = &trial;
        suite_random_start(&clients[i].random, seed + 1 + i);
        pthread_create(&clients[i].thread, NULL, client_run, &clients[i]);
    }
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
    pthread_mutex_lock(&trial.lock);
    trial.over = true;
    pthread_cond_broadcast(&trial.changed);
    pthread_mutex_unlock(&trial.lock);
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
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
