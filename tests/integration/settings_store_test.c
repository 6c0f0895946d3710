/* settings_store_test.c - the settings of the store show their effect in the running server: its files, its clean-up, its time. */
#include "tests/integration/settings_scene.h"
#include "tests/support/small_disk.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(setting_store)
{
    rig.peer = peer_new();
    (void) snprintf(rig.store, sizeof rig.store, "memory");
    rig_restart(&rig, NULL);
    post("k", 200, "executed");
    post("k", 200, "replayed");
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, NULL);
    post("k", 200, "executed"); /* a memory store forgets, and says so at start */
    ck_assert(daemon_logged(&rig.nonbis, "forgotten"));
    rig_end(&rig);
}
END_TEST

/* Bytes of the disk that the reserve takes up; -1: there is none. */
static int64_t reserve_takes(void)
{
    char path[800];
    struct stat status;
    (void) snprintf(path, sizeof path, "%.700s.reserve", rig.store);
    return stat(path, &status) == 0 ? (int64_t) status.st_blocks * 512 : -1;
}

START_TEST(setting_store_reserve)
{
    static const struct {
        const char *setting;
        int64_t takes;
    } rows[] = { { NULL, 65536 /* what tests/support/suite.c sets */ },
                 { "store_reserve=1MiB", 1048576 },
                 { "store_reserve=0", -1 } };
    rig_start(&rig, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].setting != NULL) {
            ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
            rig_restart(&rig, (const char *const[]){ "--set", rows[i].setting, NULL });
        }
        ck_assert_int_eq(reserve_takes(), rows[i].takes);
        struct http_answer page = http_request(rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
        ck_assert_ptr_nonnull(strstr(page.body, "\nnonbis_store_no_reserve 0\n"));
        http_answer_free(&page);
    }
    rig_end(&rig);
}
END_TEST

START_TEST(a_reserve_that_finds_no_room_lets_no_command_in)
{
    char disk[700];
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    if (!small_disk_open(disk, "4m")) {
        return;
    }
    rig.peer = peer_new();
    (void) snprintf(rig.store, sizeof rig.store, "%.500s/n.db", disk);
    rig_restart(&rig, (const char *const[]){ "--set", "store_reserve=16MiB", NULL });
    struct http_answer refused = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(refused, 503, "refused");
    ck_assert_ptr_nonnull(strstr(refused.body, "\"reason\":\"store\""));
    http_answer_free(&refused);
    struct http_answer ready = http_request(rig.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_int_eq(ready.status, 503);
    ck_assert_ptr_nonnull(strstr(ready.body, "no-reserve\n"));
    http_answer_free(&ready);
    ck_assert(daemon_logged(&rig.nonbis, "no room can be kept in"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    ck_assert_int_eq(reserve_takes(), 0);
    rig_end(&rig);
    small_disk_end(disk);
}
END_TEST

START_TEST(setting_sweep_batch)
{
    WITH(SET("sweep_batch=1"), SET("ttl=1s"), "--log-level", "debug");
    post("k1", 200, "executed");
    post("k2", 200, "executed");
    post("k3", 200, "executed");
    /* Three answers expire within the same second; each is dropped in a commit of its own. */
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "expired=1 ", 3));
    ck_assert(!daemon_logged(&rig.nonbis, "expired=2"));
    ck_assert(!daemon_logged(&rig.nonbis, "expired=3"));
    rig_end(&rig);
}
END_TEST

/* While the server is off, its clock goes on by at most max_downtime. Being off is played by setting all times in the file back. */
static void play_downtime(int64_t hours)
{
    sqlite3 *db = NULL;
    char sql[1024];
    ck_assert_int_eq(sqlite3_open(rig.store, &db), SQLITE_OK);
    (void) snprintf(
        sql, sizeof sql,
        "UPDATE commands SET created_ms=created_ms-%lld, deadline_ms=deadline_ms-%lld, completed_ms=completed_ms-%lld,"
        " expires_ms=expires_ms-%lld, forget_ms=forget_ms-%lld, due_ms=due_ms-%lld;"
        "UPDATE responses SET completed_ms=completed_ms-%lld, expires_ms=expires_ms-%lld, forget_ms=forget_ms-%lld;"
        "UPDATE meta SET value=value-%lld WHERE name IN ('last_time_ms','last_wall_ms','window_start_ms');",
        (long long) hours * 3600000, (long long) hours * 3600000, (long long) hours * 3600000,
        (long long) hours * 3600000, (long long) hours * 3600000, (long long) hours * 3600000,
        (long long) hours * 3600000, (long long) hours * 3600000, (long long) hours * 3600000,
        (long long) hours * 3600000);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    (void) snprintf(sql, sizeof sql, "%s.lock", rig.store); /* it would tell the time that the store had come to */
    ck_assert_int_eq(unlink(sql), 0);
}

START_TEST(setting_max_downtime)
{
    WITH(SET("ttl=48h"));
    post("k", 200, "executed");
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    play_downtime(100);
    rig_restart(&rig, (const char *const[]){ SET("max_downtime=24h"), NULL });
    post("k", 200, "replayed"); /* of a hundred hours 24 count */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    play_downtime(100);
    rig_restart(&rig, (const char *const[]){ SET("max_downtime=100h"), NULL });
    post("k", 422, "refused"); /* all of them do */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

/* A limit of the size of files (ulimit -f) is told as an error of the disk is; the kernel ends no process for it. */
START_TEST(a_limit_of_the_size_of_files_is_told_and_kills_nothing)
{
    const struct rlimit limit = { 8 * 1048576, RLIM_INFINITY }, less = { 1024, 1024 };
    (void) signal(SIGXFSZ, SIG_DFL); /* as a program inherits it */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    rig_start(&rig, (const char *const[]){ SET("store_reserve=16MiB"), NULL });
    struct http_answer refused = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(refused, 503, "refused");
    http_answer_free(&refused);
    ck_assert(daemon_logged(&rig.nonbis, "(bytes: 16777216): File too large"));
    ck_assert_int_eq(reserve_takes(), 0);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, (const char *const[]){ "--set", "store_reserve=1MiB", NULL });
    struct http_answer executed = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(executed, 200, "executed");
    http_answer_free(&executed);
    ck_assert_int_eq(prlimit(rig.nonbis.pid, RLIMIT_FSIZE, &less, NULL), 0);
    struct http_answer failed = http_post(rig.address, "/orders", "k2", "x");
    RIG_EXPECT(failed, 503, "refused");
    http_answer_free(&failed);
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 74);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    peer_free(rig.peer);
}
END_TEST

SUITE(settings_store)
{
    Suite *suite = suite_create("integration/settings-store");
    CASE(suite, setting_store);
    CASE(suite, setting_sweep_batch);
    CASE(suite, setting_max_downtime);
    CASE(suite, setting_store_reserve);
    CASE(suite, a_limit_of_the_size_of_files_is_told_and_kills_nothing);
    CASE(suite, a_reserve_that_finds_no_room_lets_no_command_in);
    return suite;
}
