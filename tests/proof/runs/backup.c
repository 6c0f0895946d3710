/* backup.c - T28: copies of the store while clients work, as a snapshot of the disk takes them: database and log as they are at one moment (the process
 * stands still meanwhile). Another program cannot get in to make one. Each copy is whole; put over the store that has gone on it is refused, so that nothing
 * that came behind it is executed again; alone, on another machine, it starts, and replays what was acknowledged before it was made. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum { CLIENTS = 6, COPIES_MAX = 8, ANSWERS_MAX = 80, PATH_ROOM = 700, EXIT_STORE = 74 };

static const char *const parts[] = { "", "-wal" }; /* of a store; the lock file stays where it is */

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(out, 0);
    for (ssize_t got;
         in >= 0 && (got = read(in, block, sizeof block)) > 0;) { /* a log that is not there is an empty one */
        ck_assert_int_eq(write(out, block, (size_t) got), got);
    }
    (void) close(in);
    ck_assert_int_eq(close(out), 0);
}

static void copy_store(const char *from, const char *to)
{
    char one[PATH_ROOM], other[PATH_ROOM];
    for (int i = 0; i < 2; i++) {
        (void) snprintf(one, sizeof one, "%s%s", from, parts[i]);
        (void) snprintf(other, sizeof other, "%s%s", to, parts[i]);
        copy_file(one, other);
    }
}

/* What a program makes of the file that is given it; SQLITE_OK, or why not. `statement` may have a row, which must say "ok". */
static int run_sql(const char *path, const char *statement)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *made = NULL;
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    code = code == SQLITE_OK ? sqlite3_prepare_v2(db, statement, -1, &made, NULL) : code;
    if (code == SQLITE_OK) {
        code = sqlite3_step(made);
        bool bad = code == SQLITE_ROW && strcmp((const char *) sqlite3_column_text(made, 0), "ok") != 0;
        code = code == SQLITE_ROW || code == SQLITE_DONE ? (bad ? SQLITE_CORRUPT : SQLITE_OK) : code;
    }
    (void) sqlite3_finalize(made);
    (void) sqlite3_close(db);
    return code;
}

struct copies {
    struct trial trial;
    unsigned count, locked_out, whole, sound, refused, replayed, asked, ran_alone;
    int64_t made_at[COPIES_MAX];
    char paths[COPIES_MAX][PATH_ROOM];
};

/* --- making them --- */

static void make_copy(struct copies *copies)
{
    struct trial *trial = &copies->trial;
    unsigned i = copies->count++;
    char into[PATH_ROOM + 32];
    (void) snprintf(copies->paths[i], PATH_ROOM, "%s.copy-%u", trial->store, i);
    (void) snprintf(into, sizeof into, "VACUUM INTO '%s.stolen-%u'", trial->store, i);
    copies->locked_out += run_sql(trial->store, into) == SQLITE_BUSY;
    trial_stop_process(&trial->nonbis);
    copies->made_at[i] = trial_now_ns();
    copy_store(trial->store, copies->paths[i]);
    daemon_signal(&trial->nonbis, SIGCONT);
    trial_met(trial, "copied");
}

/* SQLite and nonbisd look at copies of the copy: SQLite brings the log home. */
static void look_into(struct copies *copies, unsigned i)
{
    char look[PATH_ROOM + 8], output[8192];
    (void) snprintf(look, sizeof look, "%s.look", copies->paths[i]);
    copy_store(copies->paths[i], look);
    const char *const check[] = { "--check-store", look, NULL };
    copies->sound += daemon_run("nonbisd", check, output, sizeof output) == 0;
    copies->whole += run_sql(look, "PRAGMA integrity_check") == SQLITE_OK;
}

/* --- over the store that has gone on --- */

static bool is_refused(struct trial *trial)
{
    char url[80];
    int exit_code = 0;
    (void) snprintf(url, sizeof url, "http://%s", trial->oracle.listen);
    const char *const arguments[] = { "--listen", "127.0.0.1:0", "--admin",    "127.0.0.1:0", "--upstream",
                                      url,        "--store",     trial->store, "--set",       "tenant=header:X-Tenant",
                                      NULL };
    bool started = daemon_try(&trial->nonbis, "nonbisd", arguments, &exit_code);
    bool told = daemon_logged(&trial->nonbis, "older copy");
    if (started) {
        daemon_kill(&trial->nonbis);
    }
    trial->nonbis.pid = 0;
    return !started && exit_code == EXIT_STORE && told;
}

/* --- alone --- */

/* What was told before the copy was made is told again, and nothing runs. */
static void ask_alone(struct copies *copies, unsigned i)
{
    struct trial alone, *trial = &copies->trial;
    char name[32];
    (void) snprintf(name, sizeof name, "backup-alone-%u", i);
    trial_open(&alone, name, 0, NULL);
    copy_store(copies->paths[i], alone.store);
    trial_start(&alone, NULL);
    for (size_t n = 0; n < trial->history.count; n++) {
        const struct history_event *event = &trial->history.events[n];
        bool told = event->kind == HISTORY_ATTEMPT && event->to < copies->made_at[i] &&
                    (strcmp(event->word, "executed") == 0 || strcmp(event->word, "replayed") == 0);
        struct history_event again = { .answer = 0 };
        struct intent intent = { .amount = 0 };
        (void) snprintf(intent.tenant, sizeof intent.tenant, "%s", event->tenant);
        (void) snprintf(intent.key, sizeof intent.key, "%s", event->key);
        for (intent.amount = 1; told && intent.amount <= 2; intent.amount++) { /* one of them was its payload */
            (void) trial_attempt(&alone, &intent, &again);
            if (strcmp(again.payload, event->payload) == 0) {
                break;
            }
        }
        copies->asked += told;
        copies->replayed += told && strcmp(again.word, "replayed") == 0 && strcmp(again.body, event->body) == 0 &&
                            strcmp(again.fields, event->fields) == 0;
    }
    char byte;
    int fd = open(alone.ledger, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    copies->ran_alone += read(fd, &byte, 1) != 0; /* its handler got something */
    close(fd);
    trial_end(&alone);
}

void run_backup(unsigned count)
{
    static struct copies copies;
    struct trial *trial = &copies.trial;
    struct trial_client clients[CLIENTS];
    struct suite_random random;
    struct checker_report report;
    char newest[PATH_ROOM];
    unsigned seed = suite_seed();
    ck_assert_uint_le(count, COPIES_MAX);
    suite_random_start(&random, seed);
    trial_open(trial, "backup", seed, NULL);
    trial_plan(trial, "copied");
    trial_start(trial, NULL);
    trial_clients_begin(trial, clients, CLIENTS, seed, false);
    for (unsigned i = 0, answered = 20; i < count; i++) {
        answered += 1 + suite_random_below(&random, ANSWERS_MAX);
        trial_wait_answered(trial, answered);
        make_copy(&copies);
    }
    trial_clients_end(trial, clients, CLIENTS);
    ck_assert_int_eq(daemon_stop(&trial->nonbis), 0);
    (void) snprintf(newest, sizeof newest, "%s.newest", trial->store);
    copy_store(trial->store, newest);
    for (unsigned i = 0; i < count; i++) {
        look_into(&copies, i);
        copy_store(copies.paths[i], trial->store);
        copies.refused += is_refused(trial);
    }
    ask_alone(&copies, count - 1);
    copy_store(newest, trial->store);
    trial_start(trial, NULL);
    trial_settle(trial);
    trial_check(trial, &report);
    FIGURE("T28 restore copies=%u integrity=%s checked=%u locked_out=%u over_newer_refused=%u/%u "
           "post_backup_keys_reexec=%u "
           "alone: asked=%u replayed=%u reexec=%u; keys=%u acked=%u lost=%u seed=%u",
           count, copies.whole == count ? "ok" : "damaged", copies.sound, copies.locked_out, copies.refused, count,
           report.faults[1], copies.asked, copies.replayed, copies.ran_alone, report.keys, report.acknowledged,
           report.faults[4], seed);
    ck_assert_uint_eq(copies.whole, count);
    ck_assert_uint_eq(copies.sound, count);
    ck_assert_uint_eq(copies.locked_out, count);
    ck_assert_uint_eq(copies.refused, count);
    ck_assert_uint_gt(copies.asked, 0);
    ck_assert_uint_eq(copies.replayed, copies.asked);
    ck_assert_uint_eq(copies.ran_alone, 0);
    trial_end(trial);
}
