/* points.c - T2: nonbisd kills itself at a named point (build/nonbisd-crashing), at its 1st to 5th passing; then it is started again,
 * and the command that was met is asked for and repeated. What must come is in the table below. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <signal.h>

static const struct {
    const char *point;
    const char *states, *words; /* what may be told: of the status, and of the repeat; "absent" is 404 */
    bool ran, may_have_run;     /* the handler had it before the repeat */
} points[] = {
    { "P0", "absent", "executed", false, false },
    { "P0s", "absent unknown", "executed unknown", false, false }, /* a ghost: written, and nobody was told */
    { "P1", "unknown", "unknown", false, false },
    { "P2", "unknown", "unknown", false, true },
    { "P3", "unknown", "unknown", true, true },
    { "P3s", "unknown completed", "unknown replayed", true, true },
    { "P4", "completed", "replayed", true, true },
    { "P5", "completed", "replayed", true, true },
};
enum { POINTS = sizeof points / sizeof points[0], PASSINGS = 5 };

static bool is_one_of(const char *word, const char *words)
{
    const char *found = strstr(words, word);
    size_t len = strlen(word);
    return len > 0 && found != NULL && (found == words || found[-1] == ' ') &&
           (found[len] == ' ' || found[len] == '\0');
}

/* Whether the ledger has that key. */
static bool has_arrived(const struct trial *trial, const char *key)
{
    char text[512], wanted[HISTORY_KEY_MAX + 8];
    bool found = false;
    FILE *ledger = fopen(trial->ledger, "r");
    ck_assert_ptr_nonnull(ledger);
    (void) snprintf(wanted, sizeof wanted, " key=%s ", key);
    while (!found && fgets(text, sizeof text, ledger) != NULL) {
        found = strstr(text, wanted) != NULL;
    }
    (void) fclose(ledger);
    return found;
}

/* Writes commands until the server has killed itself over one; that is the n-th. */
static void meet(struct trial *trial, int point, unsigned time, struct intent *met)
{
    char crash_at[16];
    unsigned n = 1 + (time - 1) % PASSINGS;
    (void) snprintf(crash_at, sizeof crash_at, "%s:%u", points[point].point, n);
    trial_start(trial, crash_at);
    bool answered = true;
    for (unsigned i = 1; answered; i++) {
        ck_assert_msg(i <= n, "%s was not met", crash_at);
        *met = (struct intent){ .tenant = "t", .amount = 1 };
        (void) snprintf(met->key, sizeof met->key, "%s-%u-%u", points[point].point, time, i);
        answered = trial_attempt(trial, met, NULL);
        ck_assert_msg(answered || i == n, "%s: command %u had no answer", crash_at, i);
    }
    ck_assert_int_eq(daemon_wait(&trial->nonbis), -SIGKILL);
    trial_met(trial, points[point].point);
}

/* False: something else was told than must be. */
static bool look(struct trial *trial, int point, const struct intent *met)
{
    struct history_event status, repeat;
    bool arrived = has_arrived(trial, met->key);
    trial_start(trial, NULL);
    (void) trial_ask(trial, met->tenant, met->key, &status);
    (void) trial_attempt(trial, met, &repeat);
    ck_assert_int_eq(daemon_stop(&trial->nonbis), 0);
    const char *state = status.answer == 404 ? "absent" : status.state;
    bool good = is_one_of(state, points[point].states) && is_one_of(repeat.word, points[point].words) &&
                (arrived ? points[point].may_have_run : !points[point].ran);
    if (!good) {
        FIGURE("%s %s: %s told as %s, its repeat as %u %s, the handler %s", points[point].point, trial->name, met->key,
               state, repeat.answer, repeat.word, arrived ? "had it" : "did not have it");
    }
    return good;
}

void run_crash_points(unsigned times)
{
    struct trial trial;
    struct checker_report report;
    char counts[128] = "";
    unsigned wrong = 0;
    trial_open(&trial, "points", 0, NULL);
    for (int point = 0; point < POINTS; point++) {
        unsigned good = 0;
        size_t len = strlen(counts);
        trial_plan(&trial, points[point].point);
        for (unsigned time = 1; time <= times; time++) {
            struct intent met;
            meet(&trial, point, time, &met);
            good += look(&trial, point, &met);
        }
        wrong += times - good;
        (void) snprintf(counts + len, sizeof counts - len, " %s=%u/%u", points[point].point, good, times);
    }
    trial_start(&trial, NULL);
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T2 crashpoint%s keys=%u double=%u lost=%u wrong_status=%u", counts, report.keys, report.faults[1],
           report.faults[4], wrong + report.faults[7]);
    ck_assert_uint_eq(wrong, 0);
    trial_end(&trial);
}
