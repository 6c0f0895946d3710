/* store_refusals_test.c - starts that would forget keys are refused (docs/contract.md 3.11, 9.9), by the whole program: exit code and words; and a
 * refused start has done no harm: once the cause is gone, the next one replays what was stored. Executions are counted at the handler. */
#include "tests/support/caller.h"
#include "tests/support/rig.h"
#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <sqlite3.h>

static struct rig rig;
static char aside[700];

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

/* `setting`: "name=value", or NULL. */
static void expect_refused(const char *setting, const char *const *words)
{
    static char output[16 * 1024];
    const char *arguments[] = { "--upstream", peer_url(rig.peer), "--listen", "127.0.0.1:0", "--admin", "off",
                                "--store",    rig.store,          "--set",    setting,       NULL };
    arguments[8] = setting != NULL ? "--set" : NULL;
    int exit_code = daemon_run("nonbisd", arguments, output, sizeof output);
    ck_assert_msg(exit_code == 74, "exit code %d: %s", exit_code, output);
    ck_assert_msg(strstr(output, rig.store) != NULL, "the store is not named: %s", output);
    for (; *words != NULL; words++) {
        ck_assert_msg(strstr(output, *words) != NULL, "'%s' is not told: %s", *words, output);
    }
}

static void set_fingerprint_version(int version)
{
    sqlite3 *db = NULL;
    char sql[128];
    (void) snprintf(sql, sizeof sql, "UPDATE meta SET value = %d WHERE name = 'fingerprint_version'", version);
    ck_assert_int_eq(sqlite3_open(rig.store, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void move_file(const char *from, const char *to)
{
    ck_assert_msg(rename(from, to) == 0, "%s is not there", from);
}

/* A store of its own life, which ends up in the place of the real one. */
static void put_another_store(void)
{
    char other[700], lock[800];
    struct daemon daemon;
    (void) snprintf(other, sizeof other, "%s/other.db", daemon_folder());
    (void) snprintf(lock, sizeof lock, "%s.lock", other);
    daemon_start(&daemon, peer_url(rig.peer), other, NULL);
    ck_assert_int_eq(daemon_stop(&daemon), 0);
    move_file(other, rig.store);
    ck_assert_int_eq(unlink(lock), 0);
}

enum harm { HARM_NONE, HARM_VERSION, HARM_MISSING, HARM_EMPTY, HARM_OTHER, HARM_LOG };

static void harm_do(enum harm harm)
{
    char file[700];
    (void) snprintf(file, sizeof file, "%s%s", rig.store, harm == HARM_LOG ? "-wal" : "");
    (void) snprintf(aside, sizeof aside, "%s/aside", daemon_folder());
    if (harm == HARM_VERSION) {
        set_fingerprint_version(9);
    } else if (harm != HARM_NONE) {
        move_file(file, aside);
    }
    if (harm == HARM_EMPTY) {
        int fd = open(rig.store, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        (void) close(fd);
    } else if (harm == HARM_OTHER) {
        put_another_store();
    }
}

static void harm_undo(enum harm harm)
{
    char file[700];
    (void) snprintf(file, sizeof file, "%s%s", rig.store, harm == HARM_LOG ? "-wal" : "");
    if (harm == HARM_VERSION) {
        set_fingerprint_version(1);
    } else if (harm != HARM_NONE) {
        move_file(aside, file);
    }
}

static const struct refusal {
    enum harm harm;
    const char *setting;
    const char *words[6]; /* NULL-terminated */
} refusals[] = {
    { HARM_NONE,
      "tenant=header:X-Tenant",
      { "tenant \"none\"", "says \"header:X-Tenant\"", "every key would be new", "Start with the old setting" } },
    { HARM_NONE, "guard=", { "guard \"Authorization,X-API-Key\"", "says \"\"", "every key would be new" } },
    { HARM_NONE, "guard=Authorization", { "guard \"Authorization,X-API-Key\"", "says \"Authorization\"" } },
    { HARM_NONE,
      "guard=X-API-Key,Authorization",
      { "guard \"Authorization,X-API-Key\"", "says \"X-API-Key,Authorization\"" } },
    { HARM_NONE,
      "guard=authorization,x-api-key",
      { "guard \"Authorization,X-API-Key\"", "says \"authorization,x-api-key\"" } },
    { HARM_VERSION,
      NULL,
      { "fingerprint version 9", "uses 1", "every repeat would look like another request",
        "Start a version that uses 9" } },
    { HARM_MISSING,
      NULL,
      { "it is missing", ".lock remembers it", "Bring it back", "remove the lock file too", "executed again" } },
    { HARM_EMPTY, NULL, { "it is missing", ".lock remembers it", "Bring it back" } },
    { HARM_OTHER, NULL, { "another store than the one that ", ".lock remembers", "Bring the right file back" } },
    { HARM_LOG,
      NULL,
      { "did not end cleanly", "-wal is missing", "Bring that -wal file back", "remove the lock file to go on",
        "executed again" } },
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

START_TEST(a_start_that_would_forget_keys_is_refused_with_74_and_harms_nothing)
{
    const struct refusal *row = &refusals[_i];
    rig_start(&rig, NULL);
    post("k", 200, "executed");
    if (row->harm == HARM_LOG) {
        daemon_kill(&rig.nonbis);
    } else {
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    harm_do(row->harm);
    expect_refused(row->setting, row->words);
    expect_refused(row->setting, row->words); /* trying is no cure */
    harm_undo(row->harm);
    rig_restart(&rig, NULL);
    post("k", 200, "replayed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

/* The way on that the words name, and what it costs. Index: the store is lost, its log after a kill, or it was another store on purpose. */
START_TEST(without_its_lock_file_it_starts_and_what_was_lost_is_executed_again)
{
    static const enum harm harms[] = { HARM_MISSING, HARM_LOG, HARM_OTHER };
    char lock[700];
    rig_start(&rig, NULL);
    (void) snprintf(lock, sizeof lock, "%s.lock", rig.store);
    post("k", 200, "executed");
    daemon_kill(&rig.nonbis);
    if (harms[_i] != HARM_LOG) { /* a clean end: the log is in the database */
        rig_restart(&rig, NULL);
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    harm_do(harms[_i]);
    expect_refused(NULL, (const char *const[]){ "remove the lock file", NULL });
    ck_assert_int_eq(unlink(lock), 0);
    rig_restart(&rig, NULL);
    post("k", 200, "executed");
    post("k", 200, "replayed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 2);
    rig_end(&rig);
}
END_TEST

/* --- a start on a full disk: a small file system of this test's own --- */

static const struct peer_step held[] = {
    { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END
};

/* Index 0: nothing was running, so nothing has to be written. 1: a command was. */
START_TEST(a_start_on_a_full_disk_replays_unless_it_has_something_to_record)
{
    struct caller caller;
    char disk[700];
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    if (!small_disk_open(disk, "4m")) {
        return;
    }
    ck_assert_int_eq(setenv("NONBIS_STORE_RESERVE", "0", 1), 0); /* else it would be recorded there */
    rig.peer = peer_new();
    if (_i == 1) {
        peer_script_for_request(rig.peer, 2, held);
    }
    (void) snprintf(rig.store, sizeof rig.store, "%.500s/n.db", disk);
    rig_restart(&rig, NULL);
    post("k", 200, "executed");
    if (_i == 1) {
        caller_start(&caller, rig.address, "running");
        ck_assert(peer_wait_stalled(rig.peer, 1));
        daemon_kill(&rig.nonbis);
        caller_join(&caller);
        http_answer_free(&caller.answer);
        small_disk_fill(disk);
        expect_refused(NULL, (const char *const[]){ "the disk is full", "(commands: 1)", "Nothing is lost",
                                                    "Free some space on the disk of", NULL });
    } else {
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
        small_disk_fill(disk);
        rig_restart(&rig, NULL);
        ck_assert(daemon_logged(&rig.nonbis, "new commands are refused until there is room"));
        post("k", 200, "replayed");
        struct http_answer refused = http_post(rig.address, "/orders", "new", "x");
        RIG_EXPECT(refused, 503, "refused");
        ck_assert_ptr_nonnull(strstr(refused.body, "\"reason\":\"store\""));
        http_answer_free(&refused);
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    small_disk_make_room(disk);
    rig_restart(&rig, NULL);
    post("k", 200, "replayed");
    if (_i == 1) {
        post("running", 504, "unknown");
    }
    post("new", 200, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), _i == 1 ? 3 : 2);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    peer_free(rig.peer);
    small_disk_end(disk);
}
END_TEST

SUITE(store_refusals)
{
    Suite *suite = suite_create("integration/store_refusals");
    CASE_LOOP(suite, a_start_that_would_forget_keys_is_refused_with_74_and_harms_nothing, REFUSALS);
    CASE_LOOP(suite, without_its_lock_file_it_starts_and_what_was_lost_is_executed_again, 3);
    CASE_LOOP(suite, a_start_on_a_full_disk_replays_unless_it_has_something_to_record, 2);
    return suite;
}
