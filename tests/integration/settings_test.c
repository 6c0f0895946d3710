/* settings_test.c - every row of the settings table shows its effect in the running server: here those that say where it listens, for whom, and what it
 * does. Times, limits and the store have files of their own (settings_times_test.c, ...). The names of these tests stand in the table
 * (server/config/table.c) and tools/check-settings compares. */
#include "tests/integration/settings_scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

START_TEST(setting_listen)
{
    struct daemon nonbis;
    int exit_code = 0;
    const char *const arguments[] = {
        "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.9:0", "--admin", "off", "--store", "memory", NULL
    };
    ck_assert(daemon_try(&nonbis, "nonbisd", arguments, &exit_code));
    ck_assert_int_eq(strncmp(nonbis.listen, "127.0.0.9:", 10), 0);
    int fd = http_connect(nonbis.listen);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(daemon_stop(&nonbis), 0);
}
END_TEST

START_TEST(setting_admin)
{
    WITH(SET("admin=off"));
    ck_assert_str_eq(rig.nonbis.admin, "off");
    post("k", 200, "executed");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_upstream)
{
    char path[700];
    (void) snprintf(path, sizeof path, "%s/peer.sock", daemon_folder());
    rig.peer = peer_new_unix(path);
    (void) snprintf(rig.store, sizeof rig.store, "%s/nonbis.db", daemon_folder());
    rig_restart(&rig, NULL);
    post("k", 200, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_log_level)
{
    WITH("--log-level", "info");
    post("k", 200, "executed");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=executed"));
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    /* The start line is written at every level, since it tells the port; nothing else of its level is. */
    const char *const quiet[] = { "--log-level", "error", NULL };
    rig_restart(&rig, quiet);
    post("k", 200, "replayed");
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " info  start listen=127.0.0.1:"), 1);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " info "), 1);
    peer_free(rig.peer);
}
END_TEST

START_TEST(setting_log_format)
{
    struct daemon nonbis;
    int exit_code = 0;
    const char *const arguments[] = {
        "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:99999", "--log-format", "json", NULL
    };
    ck_assert(!daemon_try(&nonbis, "nonbisd", arguments, &exit_code));
    char store[700];
    (void) snprintf(store, sizeof store, "%s/n.db", daemon_folder());
    const char *const json[] = {
        "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "off", "--store",
        store,        "--log-format",       "json",     NULL
    };
    /* The JSON start-up line does not have the form that daemon_try looks for: it is started by a shell-free detour. */
    char path[700];
    (void) snprintf(path, sizeof path, "%s/json.log", daemon_folder());
    pid_t pid = fork();
    if (pid == 0) {
        char program[300];
        const char *argv[16] = { program };
        (void) snprintf(program, sizeof program, "%s/nonbisd", suite_out());
        for (int i = 0; json[i] != NULL; i++) {
            argv[i + 1] = json[i];
        }
        int log = open(path, O_CREAT | O_WRONLY, 0600);
        dup2(log, 2);
        execv(program, (char *const *) (const void *) argv);
        _exit(127);
    }
    struct daemon view = { .pid = pid };
    (void) snprintf(view.log_path, sizeof view.log_path, "%.590s", path);
    ck_assert(daemon_wait_logged(&view, "\"event\":\"start\""));
    ck_assert(daemon_logged(&view, "\"level\":\"info\""));
    ck_assert_int_eq(daemon_stop(&view), 0);
}
END_TEST

START_TEST(setting_tenant)
{
    WITH(SET("tenant=header:X-Tenant"));
    static const char *const tenants[] = { "X-Tenant: a\r\nIdempotency-Key: k\r\n",
                                           "X-Tenant: b\r\nIdempotency-Key: k\r\n" };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            struct http_answer answer = http_request(rig.address, "POST", "/orders", tenants[i], i == 0 ? "x" : "y");
            RIG_EXPECT(answer, 200, round == 0 ? "executed" : "replayed");
            http_answer_free(&answer);
        }
    }
    static const char *const bad[] = { "", "X-Tenant:\r\n", "X-Tenant: a\r\nX-Tenant: a\r\n" };
    for (int i = 0; i < 3; i++) {
        char fields[128];
        (void) snprintf(fields, sizeof fields, "Idempotency-Key: k\r\n%s", bad[i]);
        struct http_answer answer = http_request(rig.address, "POST", "/orders", fields, "x");
        RIG_EXPECT(answer, 401, "");
        http_answer_free(&answer);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_guard)
{
    static const char *const callers[] = { "Idempotency-Key: k\r\nX-Who: a\r\nAuthorization: 1\r\n",
                                           "Idempotency-Key: k\r\nX-Who: b\r\nAuthorization: 1\r\n",
                                           "Idempotency-Key: k\r\nX-Who: a\r\nAuthorization: 2\r\n" };
    static const int status[] = { 200, 422, 200 };
    static const char *const word[] = { "executed", "refused", "replayed" };
    WITH(SET("guard=X-Who"));
    for (int i = 0; i < 3; i++) {
        struct http_answer answer = http_request(rig.address, "POST", "/orders", callers[i], "x");
        RIG_EXPECT(answer, status[i], word[i]);
        http_answer_free(&answer);
    }
    rig_end(&rig);
}
END_TEST

static int threads_of(pid_t pid)
{
    char folder[64];
    int count = 0;
    (void) snprintf(folder, sizeof folder, "/proc/%d/task", (int) pid);
    DIR *tasks = opendir(folder);
    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        count += task->d_name[0] != '.';
    }
    (void) closedir(tasks);
    return count;
}

/* Each loop has a thread and keeps connections to the handler of its own; the clients' are dealt round robin. */
START_TEST(setting_server_loops)
{
    static const struct {
        const char *set;
        int more_threads; /* than with one loop */
        unsigned connections;
    } rows[] = { { "server.loops=1", 0, 1 }, { "server.loops=2", 1, 2 }, { "server.loops=4", 3, 4 } };
    int threads_of_one = 0;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        WITH(SET(rows[row].set), SET("upstream_idle=1m"));
        for (int i = 0; i < 8; i++) {
            char key[8];
            (void) snprintf(key, sizeof key, "%zu-%d", row, i);
            post(key, 200, "executed");
            post(key, 200, "replayed"); /* by the next loop */
            post(key, 200, "replayed");
        }
        /* Now every loop has served somebody, so each has its thread. */
        threads_of_one = row == 0 ? threads_of(rig.nonbis.pid) : threads_of_one;
        ck_assert_int_eq(threads_of(rig.nonbis.pid), threads_of_one + rows[row].more_threads);
        ck_assert_uint_eq(peer_count_requests(rig.peer), 8);
        ck_assert_uint_eq(peer_count_connections(rig.peer), rows[row].connections);
        rig_end(&rig);
    }
}
END_TEST

START_TEST(setting_allow_close_delimited)
{
    static const struct peer_step unframed[] = {
        { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nabc", 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
    };
    WITH(SET("allow_close_delimited=on"));
    peer_script_default(rig.peer, unframed);
    post("k", 200, "executed");
    struct http_answer again = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(again, 200, "replayed");
    ck_assert_str_eq(again.body, "abc");
    http_answer_free(&again);
    rig_end(&rig);
    WITH(SET("allow_close_delimited=off"));
    peer_script_default(rig.peer, unframed);
    post("k2", 504, "unknown");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_problem_prefix)
{
    WITH(SET("problem_prefix=https://errors.example/"));
    struct http_answer answer = http_request(rig.address, "POST", "/orders", NULL, "x");
    ck_assert_ptr_nonnull(strstr(answer.body, "\"type\":\"https://errors.example/key-missing\""));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(routes_decide_what_is_protected_and_how)
{
    WITH("--route", "POST /pay/* release=403 unknown=500 replay_drop=X-Drop", "--route", "POST /soft key=optional",
         "--route", "* /any answer_timeout=50ms");
    static const struct peer_step drop[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_SEND, "HTTP/1.1 200 OK\r\nX-Drop: 1\r\nX-Keep: 1\r\nContent-Length: 0\r\n\r\n", 0 },
        PEER_END
    };
    static const struct peer_step no[] = { { PEER_BODY, NULL, 0 },
                                           { PEER_SEND, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 0 },
                                           PEER_END };
    static const struct peer_step oh[] = { { PEER_BODY, NULL, 0 },
                                           { PEER_SEND, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 0 },
                                           PEER_END };
    struct row {
        const char *method, *target, *key;
        const struct peer_step *script;
        int status;
        const char *word;
    };
    const struct row rows[] = {
        { "POST", "/pay", "", NULL, 400, "" },
        { "POST", "/pay/card", "k1", drop, 200, "executed" },
        { "POST", "/pay/card", "k1", drop, 200, "replayed" },
        { "POST", "/pay/x", "k2", no, 403, "not-executed" },
        { "POST", "/pay/x", "k3", oh, 500, "unknown" },
        { "POST", "/payment", "k4", NULL, 200, "ignored" }, /* not under /pay/ */
        { "POST", "/soft", "", NULL, 200, "" },
        { "POST", "/soft", "k5", NULL, 200, "executed" },
        { "POST", "/soft/", "k5", NULL, 422, "refused" }, /* the same route; another target */
        { "PUT", "/any", "k6", NULL, 200, "executed" },
        { "GET", "/any", "", NULL, 400, "" },
        { "POST", "/%70ay/card", "k7", NULL, 200, "executed" }, /* the normal form of the path counts */
        { "POST", "//pay//x", "", NULL, 400, "" },
        { "POST", "/PAY/x", "", NULL, 200, "" },
        { "POST", "/a/../pay/x", "k8", NULL, 400, "" },
        { "POST", "/pay%2Fx", "k9", NULL, 400, "" },
        { "POST", "/pay/%00", "k10", NULL, 400, "" },
        { "POST", "/other/../x", "k11", NULL, 200, "ignored" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char fields[64] = "";
        if (rows[i].key[0] != '\0') {
            (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", rows[i].key);
        }
        static const struct peer_step fine[] = { { PEER_BODY, NULL, 0 },
                                                 { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                                 PEER_END };
        peer_script_default(rig.peer, rows[i].script != NULL ? rows[i].script : fine);
        struct http_answer answer = http_request(rig.address, rows[i].method, rows[i].target, fields, "x");
        char seen[64] = "";
        (void) http_field(&answer, "Idempotency-Status", seen, sizeof seen);
        ck_assert_msg(answer.status == rows[i].status && strcmp(seen, rows[i].word) == 0, "row %zu %s %s: %d '%s' %s",
                      i, rows[i].method, rows[i].target, answer.status, seen, answer.body);
        if (i == 2) {
            ck_assert_int_eq(http_field_count(&answer, "X-Drop"), 0);
            ck_assert_int_eq(http_field_count(&answer, "X-Keep"), 1);
        }
        http_answer_free(&answer);
    }
    rig_end(&rig);
}
END_TEST

SUITE(settings)
{
    Suite *suite = suite_create("integration/settings");
    CASE(suite, setting_listen);
    CASE(suite, setting_admin);
    CASE(suite, setting_upstream);
    CASE(suite, setting_log_level);
    CASE(suite, setting_log_format);
    CASE(suite, setting_tenant);
    CASE(suite, setting_guard);
    CASE(suite, setting_server_loops);
    CASE(suite, setting_allow_close_delimited);
    CASE(suite, setting_problem_prefix);
    CASE(suite, routes_decide_what_is_protected_and_how);
    return suite;
}
