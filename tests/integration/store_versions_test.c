/* store_versions_test.c - T27: a store that another version of nonbisd has used (docs/contract.md 3.11, 9.9). What this version knows how to read starts and
 * replays; what is newer, or no store of ours, is refused with 74, and is as it was for the program that can read it. */
#include "tests/support/rig.h"

#include <sqlite3.h>

static struct rig rig;

static void run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(rig.store, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static const struct version {
    const char *what, *make, *undo;
    const char *words; /* of the refusal; NULL: it starts */
} versions[] = {
    { "a newer schema", "PRAGMA user_version = 2", "PRAGMA user_version = 1", "newer version" },
    { "a much newer schema", "PRAGMA user_version = 2147483647", "PRAGMA user_version = 1", "newer version" },
    { "no schema of ours", "PRAGMA user_version = -1", "PRAGMA user_version = 1", "" },
    { "another application", "PRAGMA application_id = 77", NULL, "another application" },
    { "newer fingerprints", "UPDATE meta SET value = 2 WHERE name = 'fingerprint_version'",
      "UPDATE meta SET value = 1 WHERE name = 'fingerprint_version'", "fingerprint version 2" },
    { "before it kept what the clock had taken", "DELETE FROM meta WHERE name = 'wall_ahead_ms'", NULL, NULL },
    { "before it kept what is added to told times", "DELETE FROM meta WHERE name = 'told_offset_ms'", NULL, NULL },
    { "a newer one that has written down more", "INSERT INTO meta (name, value) VALUES ('of_a_newer_one', 5)", NULL,
      NULL },
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

/* True: refused. */
static bool is_refused(const struct version *version)
{
    static char output[16 * 1024];
    const char *const arguments[] = { "--upstream", peer_url(rig.peer), "--listen", "127.0.0.1:0", "--admin",
                                      "off",        "--store",          rig.store,  NULL };
    int exit_code = daemon_run("nonbisd", arguments, output, sizeof output);
    ck_assert_msg(exit_code == 74 && strstr(output, version->words) != NULL, "%s: exit code %d: %s", version->what,
                  exit_code, output);
    return true;
}

static unsigned replays(void)
{
    struct http_answer answer = http_post(rig.address, "/orders", "k", "x");
    unsigned replayed = answer.status == 200 && http_field_is(&answer, "Idempotency-Status", "replayed");
    http_answer_free(&answer);
    return replayed;
}

START_TEST(a_store_of_another_version_starts_and_replays_or_is_refused_and_left_as_it_was)
{
    unsigned started = 0, refused = 0, replayed = 0;
    char undo_application[64];
    rig_start(&rig, NULL);
    struct http_answer first = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(first, 200, "executed");
    http_answer_free(&first);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    sqlite3 *db = NULL;
    sqlite3_stmt *id = NULL;
    ck_assert_int_eq(sqlite3_open(rig.store, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "PRAGMA application_id", -1, &id, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(id), SQLITE_ROW);
    (void) snprintf(undo_application, sizeof undo_application, "PRAGMA application_id = %d", sqlite3_column_int(id, 0));
    (void) sqlite3_finalize(id);
    (void) sqlite3_close(db);
    for (size_t i = 0; i < VERSIONS; i++) {
        const struct version *version = &versions[i];
        run_sql(version->make);
        if (version->words != NULL) {
            refused += is_refused(version);
            run_sql(version->undo != NULL ? version->undo : undo_application);
        }
        rig_restart(&rig, NULL); /* the program that can read it, or this one */
        replayed += replays();
        started++;
        ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    }
    FIGURE("T27 migrate ok=%u refused=%u replayed=%u executions=%u", started - refused, refused, replayed,
           peer_count_requests(rig.peer));
    ck_assert_uint_eq(refused, 5);
    ck_assert_uint_eq(replayed, VERSIONS);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_restart(&rig, NULL);
    rig_end(&rig);
}
END_TEST

SUITE(store_versions)
{
    Suite *suite = suite_create("integration/store_versions");
    CASE(suite, a_store_of_another_version_starts_and_replays_or_is_refused_and_left_as_it_was);
    return suite;
}
