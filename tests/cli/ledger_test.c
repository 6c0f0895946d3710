/* ledger_test.c - 200 commands under random faults, between `nonbis` and nonbisd and behind it, then `nonbis resume`, then `nonbis void`
 * of what nobody knows. Whatever any of these programs said about a command is held against the ledger of the order handler. */
#include "client-sdk/include/nonbis.h"
#include "tests/cli/house.h"
#include "tests/cli/program.h"
#include "tests/support/relay.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 200, AT_ONCE = 8 };

/* ---- what happens to a command ------------------------------------------------------------------------------------ */

enum fault {
    FAULT_NONE,
    FAULT_KILLED_EARLY, /* the client, as soon as it told its key */
    FAULT_KILLED_LATE,  /* the client, while the handler works */
    FAULT_CLOSE_BEFORE, /* the handler, before acting */
    FAULT_CLOSE_AFTER,  /* the handler, behind the effect */
    FAULT_SLOW,         /* the handler, beyond the server's answer_timeout and the client's deadline */
    FAULT_DECLINED,     /* the handler answers 429 */
    FAULT_LOST,         /* the answer, on its way */
    FAULT_CUT,          /* the answer, on its way */
    FAULT_DROPPED,      /* the request, on its way */
    FAULT_COUNT
};

static const char *const fault_names[FAULT_COUNT] = { "none",           "client killed early", "client killed late",
                                                      "closed before",  "closed after",        "slow",
                                                      "declined",       "answer lost",         "answer cut",
                                                      "request dropped" };

/* What happens to all that run at the moment. */
enum storm { STORM_NONE, STORM_SERVER_KILLED, STORM_REFUSED, STORMS };

enum { OUTCOMES = NONBIS_UNKNOWN + 1 };

struct command {
    char key[16];
    enum fault fault;
    struct program run;
    bool ran;                    /* it was told that its program ended otherwise than by a kill */
    enum nonbis_outcome outcome; /* the last one told; 0: none */
    bool final;
    bool was_completed, was_never; /* told at any time: these two can never change again */
    bool written;                  /* the journal has it */
    enum nonbis_outcome kept;      /* as the journal tells it */
};

static struct {
    struct house house;
    struct relay *relay;
    char url[128];
    unsigned seed;
    struct suite_random random;
    struct command commands[ROUNDS];
    unsigned faults[FAULT_COUNT], storms[STORMS], told[OUTCOMES];
} scene;

static const char *const settings[] = { "--set", "answer_timeout=100ms", NULL };

/* ---- what is told ------------------------------------------------------------------------------------------------- */

static enum nonbis_outcome outcome_of(const char *name)
{
    for (int outcome = NONBIS_COMPLETED; outcome < OUTCOMES; outcome++) {
        if (strcmp(nonbis_outcome_name((enum nonbis_outcome) outcome), name) == 0) {
            return (enum nonbis_outcome) outcome;
        }
    }
    ck_abort_msg("no outcome: %s", name);
    return 0;
}

/* One object of --json. */
static void note(const cJSON *object)
{
    const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(object, "key"));
    const char *outcome = cJSON_GetStringValue(cJSON_GetObjectItem(object, "outcome"));
    ck_assert_msg(key != NULL && outcome != NULL, "seed %u: no end: %s", scene.seed, cJSON_PrintUnformatted(object));
    unsigned long n = strtoul(key + 2, NULL, 10);
    ck_assert_uint_lt(n, ROUNDS);
    struct command *command = &scene.commands[n];
    command->outcome = outcome_of(outcome);
    command->final = cJSON_IsTrue(cJSON_GetObjectItem(object, "final"));
    command->was_completed = command->was_completed || command->outcome == NONBIS_COMPLETED;
    command->was_never = command->was_never || (command->final && command->outcome == NONBIS_NOT_APPLIED);
    scene.told[command->outcome]++;
    if (command->outcome == NONBIS_NOT_SENT || command->outcome == NONBIS_NOT_APPLIED) {
        int executions = house_executions(&scene.house, key); /* as of now: only a later run of ours may change it */
        ck_assert_msg(executions == 0, "seed %u, %s (%s): told as %s, executed", scene.seed, key,
                      fault_names[command->fault], outcome);
    }
}

static void note_lines(const char *text)
{
    const char *end = NULL;
    for (; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
        cJSON *object = cJSON_ParseWithOpts(text, &end, 0);
        ck_assert_msg(object != NULL, "seed %u: no JSON: %s", scene.seed, text);
        note(object);
        cJSON_Delete(object);
    }
}

/* ---- one command -------------------------------------------------------------------------------------------------- */

#define QUICK                                                                                                          \
    "--json", "--server", "nonbis", "--base-delay", "2ms", "--max-delay", "10ms", "--poll", "2ms", "--max-poll",       \
        "10ms", "--min-attempt", "0", "--hold", "0", "--attempt-timeout", "1s", "--status-timeout", "1s", "--budget",  \
        "0"

static void command_begin(struct command *command, bool first_only)
{
    static const struct {
        const char *field, *deadline;
        enum relay_deed deed;
    } ways[FAULT_COUNT] = { [FAULT_KILLED_LATE] = { "X-Latency: 60", NULL, RELAY_PASS },
                            [FAULT_CLOSE_BEFORE] = { "X-Fail: close-before", NULL, RELAY_PASS },
                            [FAULT_CLOSE_AFTER] = { "X-Fail: close-after", NULL, RELAY_PASS },
                            [FAULT_SLOW] = { "X-Latency: 250", "300ms", RELAY_PASS },
                            [FAULT_DECLINED] = { "X-Fail: 429", NULL, RELAY_PASS },
                            [FAULT_LOST] = { NULL, NULL, RELAY_LOSE_ANSWER },
                            [FAULT_CUT] = { NULL, NULL, RELAY_CUT_ANSWER },
                            [FAULT_DROPPED] = { NULL, NULL, RELAY_DROP_REQUEST } };
    const char *field = ways[command->fault].field, *deadline = ways[command->fault].deadline;
    const char *arguments[] = { "post",
                                scene.url,
                                "-k",
                                command->key,
                                "-d",
                                "{\"item\":\"x\",\"amount\":3}",
                                QUICK,
                                "--attempts",
                                first_only ? "1" : "4",
                                "--deadline",
                                deadline != NULL ? deadline : "2s",
                                field != NULL ? "-H" : NULL,
                                field,
                                NULL };
    if (ways[command->fault].deed != RELAY_PASS) {
        relay_plan(scene.relay, command->key, ways[command->fault].deed,
                   1 + suite_random_below(&scene.random, 2)); /* the repeat as well, now and then */
    }
    scene.faults[command->fault]++;
    program_begin(&command->run, NULL, arguments);
}

static bool has_ended(const struct command *command)
{
    siginfo_t info = { .si_pid = 0 };
    return command->run.pid == 0 || waitid(P_PID, (id_t) command->run.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

/* At its moment, or when it is over. */
static void command_kill(struct command *command)
{
    int arrivals = 0, executions = 0;
    if (command->fault == FAULT_KILLED_EARLY) {
        (void) program_wait_err(&command->run, "key ");
    }
    while (command->fault == FAULT_KILLED_LATE && arrivals == 0 && !has_ended(command)) {
        house_count(&scene.house, command->key, &arrivals, &executions);
    }
    if (command->run.pid != 0) {
        kill(command->run.pid, SIGKILL);
    }
}

static void command_end(struct command *command)
{
    program_end(&command->run);
    command->ran = command->run.exit_code >= 0;
    ck_assert_msg(command->ran || command->run.exit_code == -SIGKILL, "seed %u, %s: %d: %s", scene.seed, command->key,
                  command->run.exit_code, command->run.err);
    ck_assert_msg(!command->ran || command->run.out_len > 0, "seed %u, %s: exit code %d, and nothing is told: %s",
                  scene.seed, command->key, command->run.exit_code, command->run.err);
    if (command->ran) {
        note_lines(command->run.out);
    }
    program_free(&command->run);
}

/* ---- several at once ---------------------------------------------------------------------------------------------- */

static void storm_pass(enum storm storm, unsigned before)
{
    if (storm == STORM_SERVER_KILLED) {
        (void) relay_wait_requests(scene.relay, before + 1 + suite_random_below(&scene.random, AT_ONCE / 2));
        daemon_kill(&scene.house.nonbis);
        house_start_nonbis(&scene.house, settings);
    }
}

/* Of every five, one of each kind surely. */
static enum storm storm_choose(unsigned turn)
{
    unsigned die = suite_random_below(&scene.random, 10);
    if (turn % 5 < STORMS) {
        return (enum storm)(turn % 5);
    }
    return die < 3 ? STORM_SERVER_KILLED : die < 4 ? STORM_REFUSED : STORM_NONE;
}

static void play_together(struct command *commands, unsigned count, unsigned turn)
{
    enum storm storm = storm_choose(turn);
    unsigned before = relay_requests(scene.relay);
    scene.storms[storm]++;
    if (storm == STORM_REFUSED) {
        relay_refuse(scene.relay);
    }
    for (unsigned i = 0; i < count; i++) {
        commands[i].fault = (enum fault) suite_random_below(&scene.random, FAULT_COUNT);
        command_begin(&commands[i], suite_random_below(&scene.random, 4) == 0);
    }
    if (storm == STORM_REFUSED) {
        (void) program_wait_err(&commands[0].run, "not sent"); /* the others are refused, or come later */
        relay_accept_again(scene.relay);
    }
    storm_pass(storm, before);
    for (unsigned i = 0; i < count; i++) {
        if (commands[i].fault == FAULT_KILLED_EARLY || commands[i].fault == FAULT_KILLED_LATE) {
            command_kill(&commands[i]);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        command_end(&commands[i]);
    }
}

/* ---- afterwards --------------------------------------------------------------------------------------------------- */

static void resume_all(void)
{
    struct program run = program_run((const char *[]){ "resume", QUICK, "--deadline", "3s", NULL });
    ck_assert_msg(run.exit_code >= 0 && run.exit_code != 2 && run.exit_code < 70, "seed %u: resume: %d: %s", scene.seed,
                  run.exit_code, run.err);
    note_lines(run.out);
    program_free(&run);
}

/* What nobody knows yet is to be never, or is known as too late. How many there were. */
static unsigned void_what_is_open(void)
{
    unsigned voids = 0;
    struct program list = program_run((const char *[]){ "journal", "ls", "--undecided", "--json", NULL });
    PROGRAM_EXPECT(list, "ls", 0);
    const char *end = NULL;
    for (const char *text = list.out; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
        cJSON *object = cJSON_ParseWithOpts(text, &end, 0);
        const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(object, "key"));
        struct program run = program_run((const char *[]){ "void", key, QUICK, "--deadline", "3s", NULL });
        note_lines(run.out);
        program_free(&run);
        voids++;
        cJSON_Delete(object);
    }
    program_free(&list);
    return voids;
}

/* How each ended, as the journal has it: a client that was killed may have written it down and told nobody. */
static void read_journal(void)
{
    struct program list = program_run((const char *[]){ "journal", "ls", "--json", NULL });
    PROGRAM_EXPECT(list, "ls", 0);
    const char *end = NULL;
    for (const char *text = list.out; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
        cJSON *object = cJSON_ParseWithOpts(text, &end, 0);
        const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(object, "key"));
        const char *outcome = cJSON_GetStringValue(cJSON_GetObjectItem(object, "outcome"));
        struct command *command = &scene.commands[strtoul(key + 2, NULL, 10)];
        command->written = true;
        command->kept = outcome != NULL ? outcome_of(outcome) : 0;
        cJSON_Delete(object);
    }
    program_free(&list);
}

struct sums {
    unsigned ends[OUTCOMES], effects, unknown_executed, silent;
};

/* What was said, and what the handler did. */
static void hold_against_ledger(const struct command *command, struct sums *sums)
{
    int executions = house_executions(&scene.house, command->key);
    const char *about = fault_names[command->fault];
    enum nonbis_outcome outcome = command->outcome;
    ck_assert_msg(outcome == 0 || outcome == command->kept, "seed %u, %s (%s): told as %s, kept as %s", scene.seed,
                  command->key, about, nonbis_outcome_name(outcome), nonbis_outcome_name(command->kept));
    ck_assert_msg(command->written || outcome == 0, "seed %u, %s (%s): told, and not written", scene.seed, command->key,
                  about);
    outcome = command->kept;
    ck_assert_msg(executions <= 1, "seed %u, %s (%s): %d executions", scene.seed, command->key, about, executions);
    ck_assert_msg(!command->was_completed || executions == 1, "seed %u, %s (%s): told as completed, not executed",
                  scene.seed, command->key, about);
    ck_assert_msg(!command->was_never || executions == 0, "seed %u, %s (%s): told as never, executed", scene.seed,
                  command->key, about);
    ck_assert_msg(!(command->was_completed && command->was_never), "seed %u, %s: completed and never", scene.seed,
                  command->key);
    switch (outcome) {
    case NONBIS_COMPLETED:
        ck_assert_msg(executions == 1, "seed %u, %s (%s): kept as completed, not executed", scene.seed, command->key,
                      about);
        break;
    case NONBIS_NOT_SENT:
    case NONBIS_NOT_APPLIED:
        ck_assert_msg(executions == 0, "seed %u, %s (%s): told as %s, executed", scene.seed, command->key, about,
                      nonbis_outcome_name(outcome));
        break;
    case NONBIS_UNKNOWN:
        sums->unknown_executed += executions == 1 ? 1 : 0;
        break;
    case NONBIS_REJECTED:
    case NONBIS_IN_PROGRESS:
        ck_abort_msg("seed %u, %s (%s): ended %s", scene.seed, command->key, about, nonbis_outcome_name(outcome));
        break;
    default: /* killed before anything was written down */
        ck_assert_msg(executions == 0 && !command->written, "seed %u, %s (%s): no end is kept", scene.seed,
                      command->key, about);
        sums->silent++;
        break;
    }
    sums->ends[outcome]++;
    sums->effects += (unsigned) executions;
}

static void tell_figures(const struct sums *sums, unsigned voids)
{
    FIGURE("ledger: seed %u, %d commands, %u requests at the relay, %u voids", scene.seed, ROUNDS,
           relay_requests(scene.relay), voids);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        FIGURE("  %-20s %u", fault_names[fault], scene.faults[fault]);
    }
    FIGURE("  of %d times: server killed %u, connections refused %u", ROUNDS / AT_ONCE,
           scene.storms[STORM_SERVER_KILLED], scene.storms[STORM_REFUSED]);
    FIGURE("  told on the way: completed %u, not sent %u, not applied %u, in progress %u, unknown %u",
           scene.told[NONBIS_COMPLETED], scene.told[NONBIS_NOT_SENT], scene.told[NONBIS_NOT_APPLIED],
           scene.told[NONBIS_IN_PROGRESS], scene.told[NONBIS_UNKNOWN]);
    FIGURE(
        "  in the end: completed %u, not sent %u, not applied %u, unknown %u (executed %u), never begun %u; effects %u",
        sums->ends[NONBIS_COMPLETED], sums->ends[NONBIS_NOT_SENT], sums->ends[NONBIS_NOT_APPLIED],
        sums->ends[NONBIS_UNKNOWN], sums->unknown_executed, sums->silent, sums->effects);
}

START_TEST(no_outcome_contradicts_the_ledger_whatever_fails)
{
    struct sums sums = { .effects = 0 };
    int arrivals = 0, executions = 0;
    scene.seed = suite_seed();
    suite_random_start(&scene.random, scene.seed);
    house_begin(&scene.house, settings);
    house_wait_memory(&scene.house);
    scene.relay = relay_new(scene.house.listen);
    (void) snprintf(scene.url, sizeof scene.url, "http://%s/orders", relay_address(scene.relay));
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void) snprintf(scene.commands[i].key, sizeof scene.commands[i].key, "k-%u", i);
    }
    for (unsigned i = 0; i < ROUNDS; i += AT_ONCE) {
        play_together(&scene.commands[i], AT_ONCE, i / AT_ONCE);
    }
    resume_all();
    unsigned voids = void_what_is_open();
    read_journal();
    for (unsigned i = 0; i < ROUNDS; i++) {
        hold_against_ledger(&scene.commands[i], &sums);
    }
    tell_figures(&sums, voids);
    house_count(&scene.house, NULL, &arrivals, &executions);
    ck_assert_int_eq(executions, (int) sums.effects); /* and none under a key that nobody knows */
    ck_assert_uint_eq(sums.effects, sums.ends[NONBIS_COMPLETED] + sums.unknown_executed);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        ck_assert_uint_gt(scene.faults[fault], 0);
    }
    ck_assert(scene.storms[STORM_SERVER_KILLED] > 0 && scene.storms[STORM_REFUSED] > 0);
    for (int outcome = NONBIS_COMPLETED; outcome < OUTCOMES; outcome++) {
        ck_assert_msg(scene.told[outcome] > 0 || outcome == NONBIS_REJECTED, "seed %u: nothing ended %s", scene.seed,
                      nonbis_outcome_name((enum nonbis_outcome) outcome));
    }
    relay_free(scene.relay);
    house_end(&scene.house);
}
END_TEST

SUITE(ledger)
{
    Suite *suite = suite_create("cli/ledger");
    CASE_TIMEOUT(suite, no_outcome_contradicts_the_ledger_whatever_fails, 240);
    return suite;
}
