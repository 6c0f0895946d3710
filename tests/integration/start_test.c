/* start_test.c - how the program starts, answers questions about itself, and refuses what it cannot do: exit codes and messages. */
#include "tests/support/rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 64 * 1024 };
static char output[OUTPUT_MAX];

/* %s stands for this test's folder. */
static int run(const char *const *arguments)
{
    static char texts[16][1024];
    const char *expanded[17];
    int count = 0;
    for (; arguments[count] != NULL && count < 16; count++) {
        const char *mark = strstr(arguments[count], "%s");
        if (mark == NULL) {
            (void) snprintf(texts[count], sizeof texts[count], "%s", arguments[count]);
        } else {
            (void) snprintf(texts[count], sizeof texts[count], "%.*s%s%s", (int) (mark - arguments[count]),
                            arguments[count], daemon_folder(), mark + 2);
        }
        expanded[count] = texts[count];
    }
    expanded[count] = NULL;
    return daemon_run("nonbisd", expanded, output, sizeof output);
}

struct refusal {
    const char *arguments[10];
    int exit_code;
    const char *words[4]; /* that the message must hold */
};
#define QUIET "--listen", "127.0.0.1:0", "--admin", "off"

static const struct refusal refusals[] = {
    { { "--upstrem", "http://127.0.0.1:1" }, 64, { "--upstrem", "--upstream" } },
    { { "stray" }, 64, { "stray" } },
    { { "--upstream" }, 64, { "--upstream" } },
    { { "--listen", "127.0.0.1:0" }, 78, { "upstream" } },
    { { "--upstream", "http://127.0.0.1:1", "--set", "body_mx=1MiB" }, 78, { "body_mx", "body_max" } },
    { { "--upstream", "http://127.0.0.1:1", "--set", "body_max=1XiB" }, 78, { "body_max", "1XiB" } },
    { { "--upstream", "http://127.0.0.1:1", "--set", "ttl=24" }, 78, { "ttl", "unit" } },
    { { "--upstream", "http://127.0.0.1:1", "--set", "ttl=2h", "--set", "tombstone_ttl=1h" },
      78,
      { "ttl", "tombstone_ttl" } },
    { { "--upstream", "http://127.0.0.1:1", "--set", "answer_timeout=2m", "--set", "hard_timeout=1m" },
      78,
      { "answer_timeout", "hard_timeout" } },
    { { "--upstream", "http://127.0.0.1:1", "--route", "POST" }, 78, { "--route", "POST" } },
    { { "--upstream", "http://127.0.0.1:1", "--route", "POST /x kee=optional" }, 78, { "kee", "key" } },
    { { "--bench-store", "2", "--store", "%s/n.db" }, 78, { "--bench-store", "unit" } },
    { { "--bench-store" }, 64, { "--bench-store", "value" } },
    { { "--bench-store", "1s", "--store", "memory" }, 78, { "--bench-store", "memory" } },
    { { "--bench-store", "1s", "--store", "%s/nowhere/n.db" }, 73, { "nowhere", "directory" } },
    { { "--check-store" }, 64, { "--check-store", "value" } },
    { { "--check-store", "" }, 78, { "--check-store" } },
    { { "--check-store", "memory" }, 78, { "--check-store", "memory" } },
    { { "--check-store", "%s/nowhere.db" }, 74, { "nowhere.db", "No such file" } },
    { { "--check-store", "%s" }, 73, { "regular file" } },
    { { "--check-store", "%s/file" }, 74, { "file", "not a database" } },
    { { "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1" }, 78, { "127.0.0.1" } },
    { { "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:70000" }, 78, { "70000" } },
    { { "--upstream", "ftp://127.0.0.1" }, 78, { "ftp://127.0.0.1" } },
    { { "--upstream", "127.0.0.1:3000" }, 78, { "127.0.0.1:3000", "http://" } },
    { { "--upstream", "http://127.0.0.1:1/path" }, 78, { "http://127.0.0.1:1/path" } },
    { { "--upstream", "http://user@127.0.0.1:1" }, 78, { "user" } },
    { { "--upstream", "http://127.0.0.1:1", QUIET, "--store", "%s/nowhere/n.db" }, 73, { "nowhere", "directory" } },
    { { "--upstream", "http://127.0.0.1:1", QUIET, "--store", "%s" }, 73, { "directory" } },
    { { "--upstream", "http://127.0.0.1:1", QUIET, "--store", "%s/file/n.db" }, 73, { "file" } },
    { { "--upstream", "http://127.0.0.1:1", QUIET, "--store", "%s/file" }, 74, { "file" } },
};

START_TEST(what_cannot_be_done_is_refused_with_its_own_message_and_exit_code)
{
    const struct refusal *row = &refusals[_i];
    char file[700];
    (void) snprintf(file, sizeof file, "%s/file", daemon_folder());
    FILE *text = fopen(file, "w");
    fputs("this is not a database, it is a letter to a friend, and long enough to be read as one: ", text);
    for (int i = 0; i < 100; i++) {
        fputs("dear friend, ", text);
    }
    fclose(text);
    int exit_code = run(row->arguments);
    ck_assert_msg(exit_code == row->exit_code, "exit code %d: %s", exit_code, output);
    for (int i = 0; i < 4 && row->words[i] != NULL; i++) {
        ck_assert_msg(strstr(output, row->words[i]) != NULL, "'%s' is not told: %s", row->words[i], output);
    }
    ck_assert_msg(strstr(output, " sqlite ") == NULL, "the library's own words stand in front: %s", output);
}
END_TEST

START_TEST(a_port_in_use_is_refused)
{
    struct rig rig;
    rig_start(&rig, NULL);
    const char *const arguments[] = {
        "--upstream", "http://127.0.0.1:1", "--listen", rig.address, "--admin", "off", "--store", "memory", NULL
    };
    ck_assert_int_eq(run(arguments), 69);
    ck_assert_ptr_nonnull(strstr(output, rig.address));
    ck_assert_ptr_nonnull(strstr(output, "in use"));
    const char *const with_store[] = { "--upstream", "http://127.0.0.1:1", "--listen", rig.address, "--admin", "off",
                                       "--store",    "%s/new.db",          NULL };
    char path[700];
    ck_assert_int_eq(run(with_store), 69);
    (void) snprintf(path, sizeof path, "%s/new.db.lock", daemon_folder());
    ck_assert_msg(access(path, F_OK) != 0, "a start that was refused left %s behind", path);
    path[strlen(path) - strlen(".lock")] = '\0';
    ck_assert_msg(access(path, F_OK) != 0, "a start that was refused left %s behind", path);
    rig_end(&rig);
}
END_TEST

static struct rig losing;

static void *losing_caller(void *context)
{
    struct http_answer *answer = context;
    *answer = http_post(losing.address, "/orders", "k-1", "x");
    return NULL;
}

/* Index 0: the database is removed, 1: its lock file. */
START_TEST(a_store_that_vanishes_while_it_runs_ends_the_process)
{
    static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                             { PEER_WAIT, NULL, 0 },
                                             { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                             PEER_END };
    pthread_t thread;
    char lost[700];
    struct http_answer running;
    rig_start(&losing, NULL);
    peer_script_default(losing.peer, held);
    pthread_create(&thread, NULL, losing_caller, &running);
    ck_assert(peer_wait_stalled(losing.peer, 1));
    (void) snprintf(lost, sizeof lost, "%s%s", losing.store, _i == 0 ? "" : ".lock");
    ck_assert_int_eq(unlink(lost), 0);
    ck_assert(daemon_wait_logged(&losing.nonbis, "is not the file that this process opened any more"));
    ck_assert(daemon_wait_logged(&losing.nonbis, "1 running one finishes"));
    ck_assert(daemon_logged(&losing.nonbis, lost));
    struct http_answer ready = http_request(losing.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_int_eq(ready.status, 503);
    ck_assert_ptr_nonnull(strstr(ready.body, "store-failed"));
    struct http_answer fresh = http_post(losing.address, "/orders", "k-2", "x");
    RIG_EXPECT(fresh, 503, "refused");
    ck_assert_ptr_nonnull(strstr(fresh.body, "\"reason\":\"store\""));
    peer_release(losing.peer, 1);
    pthread_join(thread, NULL);
    RIG_EXPECT(running, 201, "unrecorded"); /* its real answer, and the truth about it */
    ck_assert_int_eq(daemon_wait(&losing.nonbis), 74);
    ck_assert_uint_eq(peer_count_requests(losing.peer), 1);
    http_answer_free(&ready);
    http_answer_free(&fresh);
    http_answer_free(&running);
    peer_free(losing.peer);
}
END_TEST

/* The path is told as it is on the disk, so that nobody asks which folder it was relative to; and one is not many. */
START_TEST(the_start_tells_where_the_store_is_and_what_became_of_one_running_command)
{
    static const struct peer_step never[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };
    pthread_t thread;
    char folder[PATH_MAX];
    char told[PATH_MAX + 32];
    struct http_answer running;
    ck_assert_ptr_nonnull(realpath(daemon_folder(), folder));
    (void) snprintf(told, sizeof told, " store=%s/n.db ", folder);
    losing.peer = peer_new();
    peer_script_default(losing.peer, never);
    (void) snprintf(losing.store, sizeof losing.store, "%s/./n.db", daemon_folder());
    rig_restart(&losing, NULL);
    ck_assert_msg(daemon_logged(&losing.nonbis, told), "%s, see %s", told, losing.nonbis.log_path);
    pthread_create(&thread, NULL, losing_caller, &running);
    ck_assert(peer_wait_whole(losing.peer, 1));
    daemon_kill(&losing.nonbis);
    pthread_join(thread, NULL);
    http_answer_free(&running);
    rig_restart(&losing, NULL);
    ck_assert(
        daemon_logged(&losing.nonbis, "1 command was in progress when the last run ended; its outcome is unknown"));
    rig_end(&losing);
}
END_TEST

START_TEST(a_second_nonbisd_on_one_store_is_refused_and_the_first_one_is_unharmed)
{
    struct rig rig;
    char pid[32];
    rig_start(&rig, NULL);
    const char *const arguments[] = { "--upstream", "http://127.0.0.1:1", QUIET, "--store", rig.store, NULL };
    ck_assert_int_eq(run(arguments), 74);
    (void) snprintf(pid, sizeof pid, "%d", (int) rig.nonbis.pid);
    ck_assert_msg(strstr(output, pid) != NULL, "%s", output);
    ck_assert_ptr_nonnull(strstr(output, rig.store));
    struct http_answer answer = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(answer, 200, "executed");
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(an_upstream_that_is_ourselves_is_refused)
{
    struct rig rig;
    rig_start(&rig, NULL);
    char url[128];
    char listen[64];
    /* A port that was ours a moment ago and is free again. */
    (void) snprintf(listen, sizeof listen, "%s", rig.address);
    (void) snprintf(url, sizeof url, "http://localhost:%s", strchr(listen, ':') + 1);
    rig_end(&rig);
    const char *const arguments[] = {
        "--upstream", url, "--listen", listen, "--admin", "off", "--store", "memory", NULL
    };
    ck_assert_int_eq(run(arguments), 78);
    ck_assert_ptr_nonnull(strstr(output, "itself"));
}
END_TEST

/* --check knows what a start would find, as far as that can be told without touching store and addresses. */
static const struct refusal checks[] = {
    { { "--check", "--upstream", "http://127.0.0.1:3000/path", "--listen", "localhost:23330", "--admin", "[::1z]:1",
        "--set", "ttl=5" },
      78,
      { "--set ttl: expected a duration",
        "--listen \"localhost:23330\": ", "--admin \"[::1z]:1\": ", "--upstream \"http://127.0.0.1:3000/path\": " } },
    { { "--check", "--print-config" }, 78, { "upstream: expected a handler" } },
    { { "--check", "--print-config", "--upstream", "ftp://x" }, 78, { "--upstream: " } },
    { { "--check", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:8621" },
      78,
      { "admin \"127.0.0.1:8621\": listen (127.0.0.1:8621) has this address already" } },
    { { "--check", "--upstream", "http://127.0.0.1:1", "--listen", "0.0.0.0:8621" },
      78,
      { "has this address already" } },
    { { "--check", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0" },
      0,
      { "valid" } },
    { { "--check", "--upstream", "http://localhost:8620" },
      78,
      { "--upstream \"http://localhost:8620\": ", "itself" } },
    { { "--check", "--upstream", "http://127.0.0.1:8622", "--set", "hard_timeout=5s" }, 0, { "valid" } },
    { { "--check", "--upstream", "http://127.0.0.1:8622", "--route", "POST /r hard_timeout=5s" }, 0, { "valid" } },
};

START_TEST(check_tells_every_mistake_at_once)
{
    const struct refusal *row = &checks[_i];
    int exit_code = run(row->arguments);
    ck_assert_msg(exit_code == row->exit_code, "exit code %d: %s", exit_code, output);
    for (int i = 0; i < 4 && row->words[i] != NULL; i++) {
        ck_assert_msg(strstr(output, row->words[i]) != NULL, "'%s' is not told: %s", row->words[i], output);
    }
}
END_TEST

START_TEST(a_store_that_vanished_is_noticed_and_other_identity_settings_are_refused)
{
    struct rig rig;
    rig_start(&rig, NULL);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    const char *const guard[] = { "--upstream", "http://127.0.0.1:1", QUIET, "--store", rig.store, "--set", "guard=",
                                  NULL };
    ck_assert_int_eq(run(guard), 74);
    ck_assert_msg(strstr(output, "guard") != NULL && strstr(output, "Authorization") != NULL, "%s", output);
    const char *const tenant[] = { "--upstream", "http://127.0.0.1:1", QUIET, "--store", rig.store,
                                   "--set",      "tenant=header:X-T",  NULL };
    ck_assert_int_eq(run(tenant), 74);
    ck_assert_ptr_nonnull(strstr(output, "tenant"));
    ck_assert_int_eq(unlink(rig.store), 0);
    const char *const missing[] = { "--upstream", "http://127.0.0.1:1", QUIET, "--store", rig.store, NULL };
    ck_assert_int_eq(run(missing), 74);
    ck_assert_msg(strstr(output, "missing") != NULL && strstr(output, ".lock") != NULL, "%s", output);
    peer_free(rig.peer);
}
END_TEST

START_TEST(a_read_only_file_system_is_refused)
{
    char folder[700];
    char store[700];
    (void) snprintf(folder, sizeof folder, "%s/ro", daemon_folder());
    (void) snprintf(store, sizeof store, "%.600s/n.db", folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    if (mount("tmpfs", folder, "tmpfs", MS_RDONLY, "size=1m") != 0) {
        /* Not allowed here (no right to mount): a folder without the right to write is the next best, and root passes it. */
        ck_assert_int_eq(chmod(folder, 0500), 0);
        if (geteuid() == 0) {
            FIGURE("read-only file system: not tested, this machine lets nobody mount");
            return;
        }
    }
    const char *const arguments[] = { "--upstream", "http://127.0.0.1:1", QUIET, "--store", store, NULL };
    int exit_code = run(arguments);
    umount(folder);
    ck_assert_msg(exit_code == 73, "exit code %d: %s", exit_code, output);
    ck_assert_msg(strstr(output, "read-only") != NULL || strstr(output, "Read-only") != NULL ||
                      strstr(output, "Permission") != NULL,
                  "%s", output);
}
END_TEST

START_TEST(questions_about_itself_are_answered_and_nothing_is_started)
{
    const char *const version[] = { "-V", NULL };
    ck_assert_int_eq(run(version), 0);
    ck_assert_ptr_nonnull(strstr(output, "nonbisd 0."));
    const char *const help[] = { "--help", NULL };
    ck_assert_int_eq(run(help), 0);
    ck_assert_ptr_nonnull(strstr(output, "--upstream"));
    const char *const check[] = { "--check", "--upstream", "http://127.0.0.1:1", "--store", "%s/nowhere/n.db", NULL };
    ck_assert_int_eq(run(check), 0);
    ck_assert_ptr_nonnull(strstr(output, "valid"));
    const char *const bad[] = { "--check", "--upstream", "http://127.0.0.1:1", "--set", "ttl=x", NULL };
    ck_assert_int_eq(run(bad), 78);
    const char *const print[] = { "--print-config", "--upstream", "http://127.0.0.1:1",     "--set",
                                  "body_max=2MiB",  "--route",    "POST /pay key=optional", NULL };
    ck_assert_int_eq(run(print), 0);
    ck_assert_ptr_nonnull(strstr(output, "body_max = 2MiB"));
    ck_assert_ptr_nonnull(strstr(output, "POST /pay"));
}
END_TEST

static int entries_of(const char *folder)
{
    int count = 0;
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(listing);
    return count;
}

START_TEST(a_disk_is_measured_beside_the_store_and_nothing_is_left_there)
{
    char folder[700];
    (void) snprintf(folder, sizeof folder, "%s/measured", daemon_folder());
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    const char *const bench[] = { "--bench-store", "20ms", "--store", "%s/measured/n.db", NULL };
    int exit_code = run(bench);
    ck_assert_msg(exit_code == 0, "exit code %d: %s", exit_code, output);
    static const char *const lines[] = { "4 KiB appended, and synced", "4 KiB written over, and synced",
                                         "synchronous=FULL",           "commits of 1 command ",
                                         "commits of 16 commands ",    "commits of 64 commands " };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(strstr(output, lines[i]) != NULL, "'%s' is not told: %s", lines[i], output);
    }
    ck_assert_int_eq(entries_of(folder), 0);
}
END_TEST

/* Of one that runs, and of one that was killed. */
START_TEST(a_store_is_checked_when_no_server_has_it)
{
    struct rig rig;
    rig_start(&rig, NULL);
    struct http_answer answer = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(answer, 200, "executed");
    http_answer_free(&answer);
    const char *const check[] = { "--check-store", rig.store, NULL };
    ck_assert_int_eq(daemon_run("nonbisd", check, output, sizeof output), 74);
    ck_assert_msg(strstr(output, "is locked by process") != NULL, "%s", output);
    ck_assert_msg(strchr(output, '\n') == output + strlen(output) - 1, "one line, not '%s'", output);
    daemon_kill(&rig.nonbis);
    ck_assert_int_eq(daemon_run("nonbisd", check, output, sizeof output), 0);
    ck_assert_msg(strstr(output, "completed    1\n") != NULL, "%s", output);
    ck_assert_msg(strstr(output, ": sound, 1 command\n") != NULL, "%s", output);
    rig_restart(&rig, NULL); /* on a store in which nothing was changed */
    answer = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(answer, 200, "replayed");
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

/* It would measure for ten minutes each. */
START_TEST(a_measurement_of_a_disk_that_is_ended_by_a_signal_leaves_nothing)
{
    char folder[700];
    char store[710];
    struct daemon nonbis;
    (void) snprintf(folder, sizeof folder, "%s/ended", daemon_folder());
    (void) snprintf(store, sizeof store, "%s/n.db", folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    const char *const bench[] = { "--bench-store", "10m", "--store", store, NULL };
    daemon_begin(&nonbis, "nonbisd", bench);
    while (entries_of(folder) == 0) {
        sched_yield();
    }
    daemon_signal(&nonbis, SIGTERM);
    ck_assert_int_eq(daemon_wait(&nonbis), 1);
    ck_assert(daemon_logged(&nonbis, "ended by a signal"));
    ck_assert_int_eq(entries_of(folder), 0);
}
END_TEST

START_TEST(the_default_store_lies_in_the_state_folder_which_is_made)
{
    struct daemon nonbis;
    int exit_code = 0;
    char home[700];
    char path[700];
    struct stat status;
    (void) snprintf(home, sizeof home, "%s/state", daemon_folder());
    unsetenv("STATE_DIRECTORY");
    setenv("XDG_STATE_HOME", home, 1);
    const char *const arguments[] = { "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0",
                                      "--admin",    "127.0.0.1:0",        NULL };
    ck_assert(daemon_try(&nonbis, "nonbisd", arguments, &exit_code));
    (void) snprintf(path, sizeof path, "%.600s/nonbis/nonbis.db", home);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(daemon_stop(&nonbis), 0);
}
END_TEST

START_TEST(health_answers_on_the_operators_listener_only)
{
    struct rig rig;
    rig_start(&rig, NULL);
    struct http_answer live = http_request(rig.nonbis.admin, "GET", "/livez", NULL, NULL);
    ck_assert_int_eq(live.status, 200);
    struct http_answer ready = http_request(rig.nonbis.admin, "GET", "/readyz", NULL, NULL);
    ck_assert_int_eq(ready.status, 200);
    ck_assert_str_eq(ready.body, "ok\n");
    struct http_answer other = http_request(rig.nonbis.admin, "GET", "/x", NULL, NULL);
    ck_assert_int_eq(other.status, 404);
    struct http_answer post = http_request(rig.nonbis.admin, "POST", "/readyz", NULL, "x");
    ck_assert_int_eq(post.status, 405);
    /* On the data listener /readyz is the handler's. */
    struct http_answer data = http_request(rig.address, "GET", "/readyz", NULL, NULL);
    ck_assert_str_eq(data.body, "ok");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&live);
    http_answer_free(&ready);
    http_answer_free(&other);
    http_answer_free(&post);
    http_answer_free(&data);
    rig_end(&rig);
}
END_TEST

START_TEST(log_lines_hold_no_key_no_body_and_no_credential)
{
    struct rig rig;
    rig_start(&rig, NULL);
    struct http_answer answer = http_request(rig.address, "POST", "/orders",
                                             "Idempotency-Key: secret-key-1\r\nAuthorization: Bearer secret-token\r\n",
                                             "{\"secret\":\"body\"}");
    RIG_EXPECT(answer, 200, "executed");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    ck_assert(!daemon_logged(&rig.nonbis, "secret"));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

SUITE(start)
{
    Suite *suite = suite_create("integration/start");
    CASE_LOOP(suite, what_cannot_be_done_is_refused_with_its_own_message_and_exit_code,
              sizeof refusals / sizeof refusals[0]);
    CASE(suite, a_port_in_use_is_refused);
    CASE(suite, a_second_nonbisd_on_one_store_is_refused_and_the_first_one_is_unharmed);
    CASE(suite, an_upstream_that_is_ourselves_is_refused);
    CASE_LOOP(suite, check_tells_every_mistake_at_once, sizeof checks / sizeof checks[0]);
    CASE_LOOP(suite, a_store_that_vanishes_while_it_runs_ends_the_process, 2);
    CASE(suite, the_start_tells_where_the_store_is_and_what_became_of_one_running_command);
    CASE(suite, a_store_that_vanished_is_noticed_and_other_identity_settings_are_refused);
    CASE(suite, a_read_only_file_system_is_refused);
    CASE(suite, questions_about_itself_are_answered_and_nothing_is_started);
    CASE(suite, a_disk_is_measured_beside_the_store_and_nothing_is_left_there);
    CASE(suite, a_store_is_checked_when_no_server_has_it);
    CASE(suite, a_measurement_of_a_disk_that_is_ended_by_a_signal_leaves_nothing);
    CASE(suite, the_default_store_lies_in_the_state_folder_which_is_made);
    CASE(suite, health_answers_on_the_operators_listener_only);
    CASE(suite, log_lines_hold_no_key_no_body_and_no_credential);
    return suite;
}
