/* trial.c - see trial.h: its processes, what its clients ask, faults and waits. Its end: trial_end.c. */
#include "tests/proof/runs/trial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32 };

int64_t trial_now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- processes --- */

/* A port of the oracle's own, from its first start to the end: held by a socket that never listens, so that nobody else gets it, and answers in its
 * place, while the oracle is down. */
static void keep_port(struct trial *trial, char address[64])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int on = 1;
    trial->keeper = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(trial->keeper, 0);
    ck_assert_int_eq(setsockopt(trial->keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    ck_assert_int_eq(setsockopt(trial->keeper, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    ck_assert_int_eq(bind(trial->keeper, (struct sockaddr *) &at, len), 0);
    ck_assert_int_eq(getsockname(trial->keeper, (struct sockaddr *) &at, &len), 0);
    (void) snprintf(address, 64, "127.0.0.1:%u", ntohs(at.sin_port));
}

static void start_oracle(struct trial *trial, const char *address)
{
    const char *const arguments[] = { "--listen", address, "--ledger", trial->ledger, NULL };
    int exit_code = 0;
    ck_assert_msg(daemon_try(&trial->oracle, "proof-oracle", arguments, &exit_code),
                  "the oracle did not start (%d), see %s", exit_code, trial->oracle.log_path);
}

void trial_open(struct trial *trial, const char *name, unsigned seed, const char *const *settings)
{
    char address[64];
    *trial = (struct trial){ .name = name, .seed = seed, .settings = settings };
    pthread_mutex_init(&trial->lock, NULL);
    pthread_cond_init(&trial->changed, NULL);
    history_init(&trial->history);
    (void) snprintf(trial->store, sizeof trial->store, "%s/%s.db", daemon_folder(), name);
    (void) snprintf(trial->ledger, sizeof trial->ledger, "%s/%s.ledger", daemon_folder(), name);
    keep_port(trial, address);
    start_oracle(trial, address);
}

void trial_start(struct trial *trial, const char *crash_at)
{
    char url[80];
    (void) snprintf(url, sizeof url, "http://%s", trial->oracle.listen);
    const char *arguments[ARGUMENTS_MAX] = {
        "--listen", "127.0.0.1:0", "--admin",    "127.0.0.1:0", "--upstream",
        url,        "--store",     trial->store, "--set",       "tenant=header:X-Tenant"
    };
    int count = 10, exit_code = 0;
    for (int i = 0; trial->settings != NULL && trial->settings[i] != NULL; i++) {
        ck_assert_int_lt(count, ARGUMENTS_MAX - 1);
        arguments[count++] = trial->settings[i];
    }
    if (crash_at != NULL) {
        setenv("TEST_CRASH_AT", crash_at, 1);
    }
    bool started = daemon_try(&trial->nonbis, crash_at != NULL ? "nonbisd-crashing" : "nonbisd", arguments, &exit_code);
    unsetenv("TEST_CRASH_AT");
    ck_assert_msg(started, "nonbisd did not start (%d), see %s", exit_code, trial->nonbis.log_path);
    pthread_mutex_lock(&trial->lock);
    (void) snprintf(trial->address, sizeof trial->address, "%s", trial->nonbis.listen);
    trial->generation++;
    pthread_cond_broadcast(&trial->changed);
    pthread_mutex_unlock(&trial->lock);
}

/* What a sanitizer found is in the log, whatever ended the process. */
static void end_by_kill(struct daemon *daemon)
{
    daemon_kill(daemon);
    ck_assert_msg(!daemon_logged(daemon, "Sanitizer"), "a sanitizer found something, see %s", daemon->log_path);
}

void trial_kill(struct trial *trial)
{
    end_by_kill(&trial->nonbis);
}

void trial_restart_oracle(struct trial *trial)
{
    char address[64];
    (void) snprintf(address, sizeof address, "%s", trial->oracle.listen);
    daemon_kill(&trial->oracle);
    start_oracle(trial, address);
}

bool trial_tell_oracle(const struct trial *trial, const char *method, const char *target)
{
    struct http_answer answer = http_request(trial->oracle.listen, method, target, NULL, NULL);
    bool good = answer.status == 200;
    http_answer_free(&answer);
    return good;
}

void trial_end(struct trial *trial)
{
    if (trial->nonbis.pid > 0) {
        ck_assert_msg(daemon_stop(&trial->nonbis) == 0, "nonbisd did not end well, see %s", trial->nonbis.log_path);
    }
    end_by_kill(&trial->oracle);
    (void) close(trial->keeper);
    history_fini(&trial->history);
}

/* --- asking --- */

static void copy_member(const char *body, const char *name, char *value, size_t size)
{
    const char *found = body != NULL ? strstr(body, name) : NULL;
    if (found != NULL) {
        found += strlen(name);
        (void) snprintf(value, size, "%.*s", (int) strcspn(found, "\"},"), found);
    }
}

static void note_answer(struct history_event *event, const struct http_answer *answer)
{
    event->answer = (unsigned) answer->status;
    (void) http_field(answer, "Idempotency-Status", event->word, sizeof event->word);
    (void) http_field(answer, "X-Execution", event->execution, sizeof event->execution);
    char type[64] = "", executions[16] = "";
    (void) http_field(answer, "Content-Type", type, sizeof type);
    history_hash(view_make(answer->body, answer->body_len), event->body);
    history_hash_head(view_of(answer->head), event->fields);
    bool problem = strcmp(type, "application/problem+json") == 0;
    if (problem) {
        copy_member(answer->body, "\"type\":\"urn:nonbis:problem:", event->problem, sizeof event->problem);
    }
    if (problem || event->kind != HISTORY_ATTEMPT) {
        copy_member(answer->body, "\"executed\":\"", event->executed, sizeof event->executed);
        copy_member(answer->body, "\"state\":\"", event->state, sizeof event->state);
        copy_member(answer->body, "\"executions\":", executions, sizeof executions);
        event->executions = (unsigned) strtoul(executions, NULL, 10);
    }
}

/* Only what is whole was heard. */
static void hear(struct history_event *event, struct http_answer *answer)
{
    if (answer->status != 0 && answer->whole) {
        note_answer(event, answer);
        event->to = trial_now_ns();
    }
    http_answer_free(answer);
}

/* Writes an event down, whole. */
static bool write_down(struct trial *trial, const struct history_event *event, struct history_event *told)
{
    pthread_mutex_lock(&trial->lock);
    *history_add(&trial->history, event->kind) = *event;
    bool whole = event->to != HISTORY_NEVER;
    trial->answered += whole;
    pthread_cond_broadcast(&trial->changed);
    pthread_mutex_unlock(&trial->lock);
    if (told != NULL) {
        *told = *event;
    }
    return whole;
}

static void begin(struct trial *trial, struct history_event *event, char address[64])
{
    pthread_mutex_lock(&trial->lock);
    (void) snprintf(address, 64, "%s", trial->address);
    if (event->kind == HISTORY_ATTEMPT) {
        event->no = ++trial->attempts;
    }
    pthread_mutex_unlock(&trial->lock);
    event->to = HISTORY_NEVER;
    event->from = trial_now_ns();
}

static void write_request(const struct intent *intent, struct history_event *event, struct buf *out)
{
    (void) snprintf(event->tenant, sizeof event->tenant, "%s", intent->tenant);
    (void) snprintf(event->key, sizeof event->key, "%s", intent->key);
    char body[128];
    (void) snprintf(body, sizeof body, "{\"item\":\"%s/%s\",\"amount\":%u}", intent->tenant, intent->key,
                    intent->amount);
    history_hash(view_of(body), event->payload);
    buf_init(out, 4096);
    buf_printf(out,
               "POST /orders HTTP/1.1\r\nHost: test.example\r\nContent-Type: application/json\r\n"
               "X-Tenant: %s\r\nIdempotency-Key: %s\r\nX-Attempt: %u\r\n",
               intent->tenant, intent->key, event->no);
    if (intent->act != NULL) {
        buf_printf(out, "X-Act: %s\r\n", intent->act);
    }
    buf_printf(out, "%sContent-Length: %zu\r\n\r\n%s", intent->fields != NULL ? intent->fields : "", strlen(body),
               body);
}

bool trial_attempt(struct trial *trial, const struct intent *intent, struct history_event *told)
{
    char address[64];
    struct buf request;
    struct history_event event = { .kind = HISTORY_ATTEMPT };
    begin(trial, &event, address);
    write_request(intent, &event, &request);
    int fd = http_connect(address);
    if (fd >= 0 && http_send(fd, request.ptr, request.len)) {
        struct http_answer answer = http_receive(fd, false, NULL);
        hear(&event, &answer);
    }
    if (fd >= 0) {
        close(fd);
    }
    buf_fini(&request);
    return write_down(trial, &event, told);
}

/* The slowness itself, no wait for anything. Ends early when the other side has ended. */
static void linger(int fd, int ms)
{
    struct pollfd one = { .fd = fd, .events = POLLRDHUP };
    (void) poll(&one, 1, ms);
}

static bool send_slowly(int fd, struct view bytes, int byte_ms)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (!http_send(fd, bytes.ptr + i, 1)) {
            return false;
        }
        linger(fd, byte_ms);
    }
    return true;
}

/* Reads to the end of the connection, and then has it understood as if it had come at once. */
static struct http_answer receive_slowly(int fd, int byte_ms)
{
    int pair[2];
    char byte;
    struct buf bytes;
    buf_init(&bytes, 16 * 1024);
    for (ssize_t got; (got = recv(fd, &byte, 1, 0)) == 1 || (got < 0 && errno == EINTR);) {
        buf_append_bytes(&bytes, &byte, got == 1 ? 1 : 0);
        struct pollfd one = { .fd = fd }; /* neither more bytes nor their end make it faster */
        (void) poll(&one, 1, byte_ms);
    }
    ck_assert(!bytes.failed);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert(bytes.len == 0 || http_send(pair[0], bytes.ptr, bytes.len));
    close(pair[0]);
    struct http_answer answer = http_receive(pair[1], false, NULL);
    close(pair[1]);
    buf_fini(&bytes);
    return answer;
}

bool trial_attempt_slowly(struct trial *trial, const struct intent *intent, int byte_ms, struct history_event *told)
{
    char address[64];
    struct buf request;
    struct intent closing = *intent; /* the end of the connection is the end of the answer */
    struct history_event event = { .kind = HISTORY_ATTEMPT };
    closing.fields = "Connection: close\r\n";
    begin(trial, &event, address);
    write_request(&closing, &event, &request);
    int fd = http_connect(address);
    if (fd >= 0 && send_slowly(fd, buf_view(&request), byte_ms)) {
        struct http_answer answer = receive_slowly(fd, byte_ms);
        hear(&event, &answer);
    }
    if (fd >= 0) {
        close(fd);
    }
    buf_fini(&request);
    return write_down(trial, &event, told);
}

void trial_attempt_and_leave(struct trial *trial, const struct intent *intent, enum trial_leave leave,
                             unsigned arrivals)
{
    char address[64], acted[32];
    struct buf request;
    struct history_event event = { .kind = HISTORY_ATTEMPT };
    begin(trial, &event, address);
    write_request(intent, &event, &request);
    const size_t bytes[LEAVES] = { 30, request.len - 1, request.len, request.len, request.len };
    int fd = http_connect(address);
    if (fd >= 0) { /* else the server has left first */
        (void) http_send(fd, request.ptr, bytes[leave]);
    }
    if (leave == LEAVE_WHILE_IT_RUNS) {
        (void) snprintf(acted, sizeof acted, "/acted/%u", arrivals);
        ck_assert(trial_tell_oracle(trial, "GET", acted));
    }
    if (leave == LEAVE_IN_ANSWER) {
        ck_assert_int_eq(recv(fd, acted, 1, 0), 1);
    }
    if (fd >= 0) {
        close(fd);
    }
    buf_fini(&request);
    (void) write_down(trial, &event, NULL);
}

static bool ask(struct trial *trial, struct history_event *event, const char *method, const char *target,
                struct history_event *told)
{
    char address[64], fields[160];
    begin(trial, event, address);
    (void) snprintf(fields, sizeof fields, "X-Tenant: %s\r\nIdempotency-Key: %s\r\n", event->tenant, event->key);
    bool voids = event->kind == HISTORY_VOID;
    struct http_answer answer = http_request(address, method, target, fields, voids ? "" : NULL);
    hear(event, &answer);
    return write_down(trial, event, told);
}

static struct history_event question(enum history_kind kind, const char *tenant, const char *key)
{
    struct history_event event = { .kind = kind };
    (void) snprintf(event.tenant, sizeof event.tenant, "%s", tenant);
    (void) snprintf(event.key, sizeof event.key, "%s", key);
    return event;
}

bool trial_ask(struct trial *trial, const char *tenant, const char *key, struct history_event *told)
{
    struct history_event event = question(HISTORY_STATUS, tenant, key);
    return ask(trial, &event, "GET", "/_nonbis/v1/command", told);
}

bool trial_void(struct trial *trial, const char *tenant, const char *key, struct history_event *told)
{
    struct history_event event = question(HISTORY_VOID, tenant, key);
    return ask(trial, &event, "POST", "/_nonbis/v1/command/void", told);
}

/* --- faults and waits --- */

static void add_fault(struct trial *trial, enum history_kind kind, const char *fault)
{
    struct history_event event = { .kind = kind };
    (void) snprintf(event.fault, sizeof event.fault, "%s", fault);
    pthread_mutex_lock(&trial->lock);
    *history_add(&trial->history, kind) = event;
    pthread_mutex_unlock(&trial->lock);
}

void trial_plan(struct trial *trial, const char *fault)
{
    add_fault(trial, HISTORY_PLAN, fault);
}

void trial_met(struct trial *trial, const char *fault)
{
    add_fault(trial, HISTORY_FAULT, fault);
}

void trial_stop_process(const struct daemon *daemon)
{
    int status = 0;
    daemon_signal(daemon, SIGSTOP);
    ck_assert_int_eq(waitpid(daemon->pid, &status, WUNTRACED), daemon->pid);
    ck_assert(WIFSTOPPED(status));
}

void trial_stand_still(const struct trial *trial, int ms)
{
    int fd = http_connect(trial->address); /* the kernel takes it, whoever stands still */
    struct pollfd one = { .fd = fd, .events = POLLIN };
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(poll(&one, 1, ms), 0);
    close(fd);
}

bool trial_wait_start(struct trial *trial, unsigned *generation)
{
    pthread_mutex_lock(&trial->lock);
    while (!trial->over && trial->generation <= *generation) {
        pthread_cond_wait(&trial->changed, &trial->lock);
    }
    *generation = trial->generation;
    bool more = !trial->over;
    pthread_mutex_unlock(&trial->lock);
    return more;
}

void trial_wait_answered(struct trial *trial, unsigned answered)
{
    pthread_mutex_lock(&trial->lock);
    while (trial->answered < answered) {
        pthread_cond_wait(&trial->changed, &trial->lock);
    }
    pthread_mutex_unlock(&trial->lock);
}
