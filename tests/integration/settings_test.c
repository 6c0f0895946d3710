/* settings_test.c - every row of the settings table shows its effect in the running server. The names of these tests stand in the table
 * (server/config/table.c) and tools/check-settings compares. */
#include "tests/support/crowd.h"
#include "tests/support/rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct rig rig;

#define WITH(...) rig_start(&rig, (const char *const[]){ __VA_ARGS__, NULL })
#define SET(text) "--set", text

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step never[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };

struct caller {
    pthread_t thread;
    char key[16];
    struct http_answer answer;
};
static void *caller_run(void *context)
{
    struct caller *caller = context;
    caller->answer = http_post(rig.address, "/orders", caller->key, "x");
    return NULL;
}
static void caller_start(struct caller *caller, const char *key)
{
    (void) snprintf(caller->key, sizeof caller->key, "%s", key);
    pthread_create(&caller->thread, NULL, caller_run, caller);
}
static void caller_expect(struct caller *caller, int status, const char *word)
{
    pthread_join(caller->thread, NULL);
    RIG_EXPECT(caller->answer, status, word);
    http_answer_free(&caller->answer);
}

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

/* Repeats until the answer is no longer a replay: bounded by the client's deadline of the whole test, not by a pause. */
static struct http_answer post_until_not(const char *key, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    int64_t end_ms = now_ms() + 20000;
    while (http_field_is(&answer, "Idempotency-Status", word) && now_ms() < end_ms) {
        http_answer_free(&answer);
        answer = http_post(rig.address, "/orders", key, "x");
    }
    return answer;
}

START_TEST(setting_ttl)
{
    WITH(SET("ttl=1s"));
    post("k", 200, "executed");
    post("k", 200, "replayed");
    struct http_answer answer = post_until_not("k", "replayed");
    RIG_EXPECT(answer, 422, "refused");
    ck_assert_ptr_nonnull(strstr(answer.body, "key-expired"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"executed\":\"yes\""));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_tombstone_ttl)
{
    WITH(SET("ttl=1s"), SET("tombstone_ttl=2s"));
    post("k", 200, "executed");
    struct http_answer expired = post_until_not("k", "replayed");
    RIG_EXPECT(expired, 422, "refused");
    struct http_answer again = post_until_not("k", "refused");
    RIG_EXPECT(again, 200, "executed"); /* forgotten: a new command */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    http_answer_free(&expired);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_connect_timeout)
{
    /* A listener whose backlog is full takes no connection and refuses none. */
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    ck_assert_int_eq(bind(full, (struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(full, 0), 0);
    ck_assert_int_eq(getsockname(full, (struct sockaddr *) &address, &len), 0);
    int fill[8];
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void) connect(fill[i], (struct sockaddr *) &address, sizeof address);
    }
    char upstream[64];
    (void) snprintf(upstream, sizeof upstream, "127.0.0.1:%u", ntohs(address.sin_port));
    (void) snprintf(rig.store, sizeof rig.store, "memory");
    const char *const more[] = { SET("connect_timeout=50ms"), NULL };
    daemon_start(&rig.nonbis, upstream, rig.store, more);
    rig.address = rig.nonbis.listen;
    int64_t start_ms = now_ms();
    post("k", 502, "not-executed");
    ck_assert_int_lt(now_ms() - start_ms, 2000); /* the default */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    for (int i = 0; i < 8; i++) {
        close(fill[i]);
    }
    close(full);
}
END_TEST

START_TEST(setting_answer_timeout)
{
    struct caller caller;
    WITH(SET("answer_timeout=50ms"));
    peer_script_default(rig.peer, held);
    caller_start(&caller, "k");
    caller_expect(&caller, 504, "in-progress");
    peer_release(rig.peer, 1);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_hard_timeout)
{
    struct caller caller;
    WITH(SET("answer_timeout=50ms"), SET("hard_timeout=100ms"));
    peer_script_default(rig.peer, never);
    caller_start(&caller, "k");
    caller_expect(&caller, 504, "in-progress");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=unknown"));
    post("k", 504, "unknown");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_passthrough_timeout)
{
    WITH(SET("passthrough_timeout=50ms"));
    peer_script_default(rig.peer, never);
    struct http_answer answer = http_request(rig.address, "GET", "/", NULL, NULL);
    ck_assert_int_eq(answer.status, 504);
    ck_assert_ptr_nonnull(strstr(answer.body, "upstream-timeout"));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

/* A byte now and then would outlive every inactivity timeout; these bound the whole. */
static void expect_cut(const char *bytes)
{
    int64_t start_ms = now_ms();
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, bytes, strlen(bytes)));
    struct http_answer answer = http_receive(fd, false, NULL);
    ck_assert(answer.status == 0 || answer.status == 408);
    ck_assert_int_lt(now_ms() - start_ms, 8000);
    http_answer_free(&answer);
    close(fd);
}

START_TEST(setting_header_deadline)
{
    WITH(SET("header_deadline=200ms"));
    expect_cut("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-K");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_body_deadline)
{
    WITH(SET("body_deadline=200ms"));
    expect_cut("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nabc");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_client_idle)
{
    WITH(SET("client_idle=1s"));
    int64_t start_ms = now_ms();
    int fd = http_connect(rig.address);
    ck_assert(http_closes(fd));
    ck_assert_int_lt(now_ms() - start_ms, 10000); /* the default is 75 s */
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_upstream_idle)
{
    WITH(SET("server.loops=1"), SET("upstream_idle=0ms")); /* each loop keeps connections of its own */
    for (int i = 0; i < 3; i++) {
        char key[8];
        (void) snprintf(key, sizeof key, "k%d", i);
        post(key, 200, "executed");
    }
    ck_assert_uint_eq(peer_count_connections(rig.peer), 3);
    rig_end(&rig);
    WITH(SET("server.loops=1"), SET("upstream_idle=1m"));
    for (int i = 0; i < 3; i++) {
        char key[8];
        (void) snprintf(key, sizeof key, "m%d", i);
        post(key, 200, "executed");
    }
    ck_assert_uint_eq(peer_count_connections(rig.peer), 1);
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

START_TEST(setting_drain_timeout)
{
    struct caller caller;
    WITH(SET("drain_timeout=50ms"));
    peer_script_default(rig.peer, never);
    caller_start(&caller, "k");
    ck_assert(peer_wait_whole(rig.peer, 1));
    int64_t start_ms = now_ms();
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    ck_assert_int_lt(now_ms() - start_ms, 10000); /* the default is 30 s */
    caller_expect(&caller, 504, "unknown");
    peer_free(rig.peer);
}
END_TEST

START_TEST(setting_body_max)
{
    char body[1200];
    WITH(SET("body_max=1KiB"));
    memset(body, 'x', sizeof body);
    body[1024] = '\0';
    struct http_answer fits = http_post(rig.address, "/orders", "k1", body);
    RIG_EXPECT(fits, 200, "executed");
    body[1024] = 'x';
    body[1025] = '\0';
    struct http_answer over = http_post(rig.address, "/orders", "k2", body);
    RIG_EXPECT(over, 413, "refused");
    ck_assert_ptr_nonnull(strstr(over.body, "body-too-large"));
    char chunked[1400];
    (void) snprintf(chunked, sizeof chunked,
                    "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k3\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n401\r\n%s\r\n0\r\n\r\n",
                    body);
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, chunked, strlen(chunked)));
    struct http_answer third = http_receive(fd, false, NULL);
    RIG_EXPECT(third, 413, "refused");
    close(fd);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&fits);
    http_answer_free(&over);
    http_answer_free(&third);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_response_keep_max)
{
    static const struct peer_step three[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0 },
                                              PEER_END };
    WITH(SET("response_keep_max=2B"));
    peer_script_default(rig.peer, three);
    struct http_answer first = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(first, 200, "executed");
    ck_assert_str_eq(first.body, "abc");
    struct http_answer again = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(again, 200, "replayed");
    ck_assert_str_eq(again.body, "");
    ck_assert(http_field_is(&again, "Nonbis-Body", "not-kept"));
    http_answer_free(&first);
    http_answer_free(&again);
    rig_end(&rig);
}
END_TEST

static struct http_answer post_with_head_of(size_t bytes)
{
    char fields[12000] = "Idempotency-Key: k\r\nX-Long: ";
    size_t start = strlen(fields);
    memset(fields + start, 'x', bytes);
    (void) snprintf(fields + start + bytes, sizeof fields - start - bytes, "\r\n");
    return http_request(rig.address, "POST", "/orders", fields, "x");
}

START_TEST(setting_request_header_max)
{
    WITH(SET("request_header_max=1KiB"));
    struct http_answer fits = post_with_head_of(800);
    RIG_EXPECT(fits, 200, "executed");
    struct http_answer over = post_with_head_of(1100);
    RIG_EXPECT(over, 431, "");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&fits);
    http_answer_free(&over);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_response_header_max)
{
    static char answer[4096];
    static struct peer_step steps[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, answer, 0 }, PEER_END };
    size_t len = (size_t) snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: ");
    memset(answer + len, 'x', 1100);
    (void) snprintf(answer + len + 1100, sizeof answer - len - 1100, "\r\n\r\n");
    WITH(SET("response_header_max=1KiB"));
    peer_script_for_request(rig.peer, 1, steps);
    post("k", 504, "unknown"); /* it cannot be kept whole, so nothing is claimed of it */
    rig_end(&rig);
    WITH(SET("response_header_max=2KiB"));
    peer_script_for_request(rig.peer, 1, steps);
    post("k2", 200, "executed");
    rig_end(&rig);
}
END_TEST

START_TEST(setting_connections_max)
{
    WITH(SET("connections_max=2"));
    int one = http_connect(rig.address);
    int two = http_connect(rig.address);
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (int i = 0; i < 2; i++) {
        ck_assert(http_send(i == 0 ? one : two, request, sizeof request - 1));
        struct http_answer answer = http_receive(i == 0 ? one : two, false, NULL);
        ck_assert_int_eq(answer.status, 200);
        http_answer_free(&answer);
    }
    int three = http_connect(rig.address);
    struct http_answer refused = http_receive(three, false, NULL);
    ck_assert_int_eq(refused.status, 503);
    ck_assert_int_eq(http_field_count(&refused, "Retry-After"), 1);
    http_answer_free(&refused);
    close(one);
    close(two);
    close(three);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_running_max)
{
    struct caller caller;
    WITH(SET("running_max=1"));
    post("done", 200, "executed");
    peer_script_default(rig.peer, held);
    caller_start(&caller, "k1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    struct http_answer over = http_post(rig.address, "/orders", "k2", "x");
    RIG_EXPECT(over, 503, "refused");
    ck_assert_ptr_nonnull(strstr(over.body, "\"reason\":\"overloaded\""));
    post("done", 200, "replayed"); /* replays are served while new work is refused */
    peer_release(rig.peer, 2);
    caller_expect(&caller, 201, "executed");
    post("k2", 201, "executed");
    http_answer_free(&over);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_store_queue_max)
{
    static struct crowd_member members[64];
    int overloaded = 0;
    int executed = 0;
    WITH(SET("store_queue_max=1"));
    /* Many at once: more than one claim waits while the store makes the one before durable. */
    for (int round = 0; round < 50 && overloaded == 0; round++) {
        for (int i = 0; i < 64; i++) {
            members[i].address = rig.address;
            (void) snprintf(members[i].key, sizeof members[i].key, "r%d-%d", round, i);
            (void) snprintf(members[i].body, sizeof members[i].body, "x");
        }
        crowd_run(members, 64);
        for (int i = 0; i < 64; i++) {
            if (members[i].answer.status == 503) {
                RIG_EXPECT(members[i].answer, 503, "refused");
                ck_assert_ptr_nonnull(strstr(members[i].answer.body, "\"reason\":\"overloaded\""));
                overloaded++;
            } else {
                RIG_EXPECT(members[i].answer, 200, "executed");
                executed++;
            }
        }
        crowd_free(members, 64);
    }
    ck_assert_int_gt(overloaded, 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) executed);
    rig_end(&rig);
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
    CASE(suite, setting_store);
    CASE(suite, setting_log_level);
    CASE(suite, setting_log_format);
    CASE(suite, setting_tenant);
    CASE(suite, setting_guard);
    CASE(suite, setting_ttl);
    CASE(suite, setting_tombstone_ttl);
    CASE(suite, setting_connect_timeout);
    CASE(suite, setting_answer_timeout);
    CASE(suite, setting_hard_timeout);
    CASE(suite, setting_passthrough_timeout);
    CASE(suite, setting_header_deadline);
    CASE(suite, setting_body_deadline);
    CASE(suite, setting_client_idle);
    CASE(suite, setting_upstream_idle);
    CASE(suite, setting_drain_timeout);
    CASE(suite, setting_body_max);
    CASE(suite, setting_response_keep_max);
    CASE(suite, setting_request_header_max);
    CASE(suite, setting_response_header_max);
    CASE(suite, setting_connections_max);
    CASE(suite, setting_running_max);
    CASE(suite, setting_store_queue_max);
    CASE(suite, setting_sweep_batch);
    CASE(suite, setting_server_loops);
    CASE(suite, setting_max_downtime);
    CASE(suite, setting_allow_close_delimited);
    CASE(suite, setting_problem_prefix);
    CASE(suite, routes_decide_what_is_protected_and_how);
    return suite;
}
