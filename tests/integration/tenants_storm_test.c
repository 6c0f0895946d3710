/* tenants_storm_test.c - 50 tenants behind one front proxy that do everything with the same 20 keys at once, clients that leave included
 * (docs/contract.md section 3): nobody is told, refused or stopped because of what another tenant did. Executions are counted at
 * the handler, whose answers name tenant, key and command. What may be true of whom: tenants_ledger.c. */
#include "tests/integration/tenants_ledger.h"
#include "tests/support/rig.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"
#define COMMANDS "/_nonbis/v1/commands/"

static const char *const by_tenant[] = { "--set", "tenant=header:X-Tenant", "--log-level", "warn", NULL };

static const struct peer_step echo[] = { { PEER_BODY, NULL, 0 }, { PEER_ECHO, NULL, 0 }, PEER_END };
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };

static struct rig rig;

static void expect_no_fault(void)
{
    const char *fault = ledger_fault();
    ck_assert_msg(fault == NULL, "%s", fault != NULL ? fault : "");
}

enum { CLIENTS = 16, ROUNDS = 220, PIPELINE = 4, REQUEST_MAX = 1024 };

struct client {
    pthread_t thread;
    int number, fd; /* fd: a kept connection for requests of whatever tenant, as a front proxy has; -1: none */
    struct suite_random random;
    unsigned deeds[16], seen[SEEN_COUNT];
};

/* How many tenants have a request with one key under way at the same moment, as the clients see it. */
static struct {
    pthread_mutex_t lock;
    int flying[LEDGER_KEYS][LEDGER_TENANTS];
    int tenants[LEDGER_KEYS], most;
} overlap = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void overlap_change(const struct ledger_command *command, int change)
{
    pthread_mutex_lock(&overlap.lock);
    int *count = &overlap.flying[command->key][command->tenant];
    int *tenants = &overlap.tenants[command->key];
    *tenants += change > 0 ? *count == 0 : -(*count == 1);
    *count += change;
    overlap.most = *tenants > overlap.most ? *tenants : overlap.most;
    pthread_mutex_unlock(&overlap.lock);
}

static int below(struct client *client, int bound)
{
    return (int) suite_random_below(&client->random, (unsigned) bound);
}

/* Any command; of a lonely one only a command that is this client's. */
static struct ledger_command any_command(struct client *client)
{
    struct ledger_command command = { .tenant = below(client, LEDGER_TENANTS), .key = below(client, LEDGER_KEYS) };
    if (ledger_role(command.key) == ROLE_LONELY) {
        command.tenant = client->number + CLIENTS * below(client, LEDGER_TENANTS / CLIENTS);
    } else if (ledger_role(command.key) == ROLE_MIXED) {
        command.payload = below(client, 2);
    }
    return command;
}

/* One that may be attempted; `shared`: also by others at the same time. */
static struct ledger_command command_to_attempt(struct client *client, bool shared)
{
    struct ledger_command command;
    do {
        command = any_command(client);
    } while (ledger_role(command.key) == ROLE_CUT || (shared && ledger_role(command.key) == ROLE_LONELY));
    return command;
}

static int write_attempt(const struct ledger_command *command, char request[REQUEST_MAX])
{
    char tenant[8], key[8], body[64];
    enum ledger_role role = ledger_role(command->key);
    ledger_names(command, tenant, key, body);
    return snprintf(request, REQUEST_MAX,
                    "POST /orders HTTP/1.1\r\nHost: test.example\r\nX-Tenant: %s\r\nIdempotency-Key: %s\r\n%s"
                    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                    tenant, key,
                    role == ROLE_LOST   ? "X-Script: lost\r\n"
                    : role == ROLE_BUSY ? "X-Script: busy\r\n"
                                        : "",
                    strlen(body), body);
}

/* `key` NULL: none is sent. */
static int write_query(const char *method, const char *target, int tenant, const char *key, char request[REQUEST_MAX])
{
    return snprintf(request, REQUEST_MAX, "%s %s HTTP/1.1\r\nHost: test.example\r\nX-Tenant: t%02d\r\n%s%s%s\r\n",
                    method, target, tenant, key != NULL ? "Idempotency-Key: " : "", key != NULL ? key : "",
                    key != NULL ? "\r\n" : "");
}

static struct http_answer ask_kept(struct client *client, const char *request, int len)
{
    struct http_answer answer = { 0 };
    if (client->fd < 0) {
        client->fd = http_connect(rig.address);
    }
    if (client->fd >= 0 && http_send(client->fd, request, (size_t) len)) {
        answer = http_receive(client->fd, false, NULL);
    }
    if (answer.status == 0 || answer.closed || http_field_is(&answer, "Connection", "close")) {
        close(client->fd);
        client->fd = -1;
    }
    return answer;
}

static void note_attempt(struct client *client, const struct ledger_command *command, struct http_answer *answer)
{
    client->seen[ledger_judge_attempt(command, answer)]++;
    http_answer_free(answer);
}

static void deed_attempt(struct client *client)
{
    char request[REQUEST_MAX];
    struct ledger_command command = command_to_attempt(client, false);
    int len = write_attempt(&command, request);
    ledger_begin_attempt(&command);
    overlap_change(&command, 1);
    struct http_answer answer = ask_kept(client, request, len);
    overlap_change(&command, -1);
    note_attempt(client, &command, &answer);
}

/* Requests of several tenants with the same key, in one packet on one connection. */
static void deed_pipeline(struct client *client)
{
    char requests[PIPELINE * REQUEST_MAX];
    struct ledger_command commands[PIPELINE];
    int len = 0;
    for (int i = 0; i < PIPELINE; i++) {
        commands[i] = i == 0 ? command_to_attempt(client, true) : commands[0];
        commands[i].tenant = (commands[0].tenant + i * 7) % LEDGER_TENANTS;
        ledger_begin_attempt(&commands[i]);
        overlap_change(&commands[i], 1);
        len += write_attempt(&commands[i], requests + len);
    }
    int fd = http_connect(rig.address);
    (void) http_send(fd, requests, (size_t) len);
    for (int i = 0; i < PIPELINE; i++) {
        struct http_answer answer = http_receive(fd, false, NULL);
        overlap_change(&commands[i], -1);
        note_attempt(client, &commands[i], &answer);
    }
    close(fd);
}

/* The same command twice at once; with two payloads where it may have them. */
static void deed_twins(struct client *client)
{
    char request[REQUEST_MAX];
    int fds[2];
    struct ledger_command twins[2];
    twins[0] = twins[1] = command_to_attempt(client, true);
    if (ledger_role(twins[0].key) == ROLE_MIXED) {
        twins[1].payload = 1 - twins[0].payload;
    }
    for (int i = 0; i < 2; i++) {
        fds[i] = http_connect(rig.address);
        ledger_begin_attempt(&twins[i]);
    }
    for (int i = 0; i < 2; i++) {
        int len = write_attempt(&twins[i], request);
        overlap_change(&twins[i], 1);
        (void) http_send(fds[i], request, (size_t) len);
    }
    for (int i = 0; i < 2; i++) {
        struct http_answer answer = http_receive(fds[i], false, NULL);
        overlap_change(&twins[i], -1);
        note_attempt(client, &twins[i], &answer);
        close(fds[i]);
    }
}

static void cut(struct client *client, int fd)
{
    if (below(client, 2) == 0) {
        const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(fd);
}

/* The last byte of the body never comes: no trace, whoever's key it is. */
static void deed_cut_request(struct client *client)
{
    char request[REQUEST_MAX];
    struct ledger_command command = any_command(client);
    int len = write_attempt(&command, request);
    int fd = http_connect(rig.address);
    (void) http_send(fd, request, 1 + (size_t) below(client, len - 1));
    cut(client, fd);
}

/* The request is whole, the client leaves before, or in the middle of, the answer. */
static void deed_cut_answer(struct client *client)
{
    char request[REQUEST_MAX], some[64];
    struct ledger_command command = command_to_attempt(client, true);
    int len = write_attempt(&command, request);
    int fd = http_connect(rig.address);
    ledger_begin_attempt(&command);
    (void) http_send(fd, request, (size_t) len);
    if (below(client, 2) == 0) {
        (void) recv(fd, some, 1 + (size_t) below(client, sizeof some), 0);
    }
    cut(client, fd);
}

static void deed_status(struct client *client)
{
    char request[REQUEST_MAX], tenant[8], key[8], body[64];
    struct ledger_command command = any_command(client);
    ledger_names(&command, tenant, key, body);
    bool known = ledger_is_known(&command);
    struct http_answer answer = ask_kept(client, request, write_query("GET", STATUS, command.tenant, key, request));
    client->seen[ledger_judge_status(&command, known, &answer)]++;
    http_answer_free(&answer);
}

/* By id: as its own tenant, or as another one. */
static void ask_by_id(struct client *client, bool as_stranger)
{
    char request[REQUEST_MAX], target[128], id[33];
    struct ledger_command command = any_command(client);
    for (int i = 0; i < 1000 && !ledger_id(&command, id); i++) {
        command = any_command(client);
    }
    if (!ledger_id(&command, id)) {
        return;
    }
    (void) snprintf(target, sizeof target, COMMANDS "%s", id);
    int tenant =
        as_stranger ? (command.tenant + 1 + below(client, LEDGER_TENANTS - 1)) % LEDGER_TENANTS : command.tenant;
    bool known = ledger_is_known(&command);
    struct http_answer answer = ask_kept(client, request, write_query("GET", target, tenant, NULL, request));
    client->seen[as_stranger ? ledger_judge_stranger(&answer) : ledger_judge_status(&command, known, &answer)]++;
    http_answer_free(&answer);
}

static void deed_status_by_id(struct client *client)
{
    ask_by_id(client, false);
}

static void deed_status_by_foreign_id(struct client *client)
{
    ask_by_id(client, true);
}

static void deed_response(struct client *client)
{
    char request[REQUEST_MAX], tenant[8], key[8], body[64];
    struct ledger_command command = any_command(client);
    ledger_names(&command, tenant, key, body);
    bool known = ledger_is_known(&command);
    struct http_answer answer = ask_kept(client, request, write_query("GET", RESPONSE, command.tenant, key, request));
    client->seen[ledger_judge_response(&command, known, &answer)]++;
    http_answer_free(&answer);
}

static void deed_void(struct client *client)
{
    char request[REQUEST_MAX], tenant[8], key[8], body[64];
    struct ledger_command command = { .tenant = below(client, LEDGER_TENANTS), .key = 18 + below(client, 2) };
    ledger_names(&command, tenant, key, body);
    ledger_begin_void(&command);
    struct http_answer answer = ask_kept(client, request, write_query("POST", VOID, command.tenant, key, request));
    client->seen[ledger_judge_void(&command, &answer)]++;
    http_answer_free(&answer);
}

/* Somebody's command id, taken for a key: a key of one's own with that name is voided, and nothing else. */
static void deed_void_foreign_id(struct client *client)
{
    char request[REQUEST_MAX], id[33], link[256] = "";
    struct ledger_command command = any_command(client);
    if (!ledger_id(&command, id)) {
        return;
    }
    int tenant = (command.tenant + 1) % LEDGER_TENANTS;
    struct http_answer answer = ask_kept(client, request, write_query("POST", VOID, tenant, id, request));
    (void) http_field(&answer, "Link", link, sizeof link);
    bool own = answer.status == 200 && strstr(answer.body, "\"executions\":0") != NULL && strstr(link, id) == NULL;
    client->seen[own ? SEEN_VOIDED : SEEN_WRONG]++;
    http_answer_free(&answer);
}

static const struct {
    const char *name;
    int weight;
    void (*run)(struct client *client);
} deeds[] = {
    { "attempts", 28, deed_attempt },
    { "pipelines", 8, deed_pipeline },
    { "twins", 14, deed_twins },
    { "cut_requests", 8, deed_cut_request },
    { "cut_answers", 8, deed_cut_answer },
    { "statuses", 10, deed_status },
    { "statuses_by_id", 5, deed_status_by_id },
    { "statuses_by_foreign_id", 5, deed_status_by_foreign_id },
    { "responses", 8, deed_response },
    { "voids", 4, deed_void },
    { "voids_of_foreign_ids", 2, deed_void_foreign_id },
};
enum { DEEDS = sizeof deeds / sizeof deeds[0], WEIGHTS = 100 };

static void *client_run(void *context)
{
    struct client *client = context;
    for (int round = 0; round < ROUNDS && ledger_fault() == NULL; round++) {
        int at = 0;
        for (int draw = below(client, WEIGHTS); draw >= deeds[at].weight; at++) {
            draw -= deeds[at].weight;
        }
        deeds[at].run(client);
        client->deeds[at]++;
    }
    if (client->fd >= 0) {
        close(client->fd);
    }
    return NULL;
}

static void storm(struct client *clients, unsigned seed)
{
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .number = i, .fd = -1 };
        suite_random_start(&clients[i].random, seed + (unsigned) i);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_create(&clients[i].thread, NULL, client_run, &clients[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
}

/* Adds up what all clients did, and prints it. Nothing of it may be 0, and nothing wrong. */
static void tell_counts(const struct client *clients)
{
    char text[1024];
    int len = 0;
    for (int at = 0; at < DEEDS; at++) {
        unsigned sum = 0;
        for (int i = 0; i < CLIENTS; i++) {
            sum += clients[i].deeds[at];
        }
        ck_assert_msg(sum > 0, "no %s", deeds[at].name);
        len += snprintf(text + len, sizeof text - (size_t) len, " %s=%u", deeds[at].name, sum);
    }
    FIGURE("tenants, what was done:%s", text);
    len = 0;
    for (int at = 0; at < SEEN_COUNT; at++) {
        unsigned sum = 0;
        for (int i = 0; i < CLIENTS; i++) {
            sum += clients[i].seen[at];
        }
        ck_assert_msg((sum == 0) == (at == SEEN_WRONG), "%u times %s", sum, ledger_seen_name((enum ledger_seen) at));
        len += snprintf(text + len, sizeof text - (size_t) len, " %s=%u", ledger_seen_name((enum ledger_seen) at), sum);
    }
    FIGURE("tenants, what was told:%s", text);
}

START_TEST(in_a_storm_of_tenants_with_the_same_keys_everybody_is_told_of_his_own)
{
    static struct client clients[CLIENTS];
    struct client last = { .fd = -1 };
    char request[REQUEST_MAX], tenant[8], key[8], body[64];
    unsigned seed = suite_seed();
    FIGURE("tenants, storm seed=%u", seed);
    rig_start(&rig, by_tenant);
    peer_script_default(rig.peer, echo);
    peer_script_named(rig.peer, "lost", lost);
    peer_script_named(rig.peer, "busy", busy);
    storm(clients, seed);
    expect_no_fault();
    /* After the drain nothing is under way any more, of clients that left neither. */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, by_tenant);
    ledger_note_restart();
    unsigned executions = ledger_judge_handler(rig.peer);
    for (int i = 0; i < LEDGER_TENANTS * LEDGER_KEYS; i++) {
        const struct ledger_command command = { .tenant = i / LEDGER_KEYS, .key = i % LEDGER_KEYS };
        ledger_names(&command, tenant, key, body);
        bool known = ledger_is_known(&command);
        struct http_answer status = ask_kept(&last, request, write_query("GET", STATUS, command.tenant, key, request));
        (void) ledger_judge_status(&command, known, &status);
        ledger_judge_end(&command, &status);
        http_answer_free(&status);
        struct http_answer response =
            ask_kept(&last, request, write_query("GET", RESPONSE, command.tenant, key, request));
        (void) ledger_judge_response(&command, known, &response);
        http_answer_free(&response);
    }
    ledger_judge_ids();
    expect_no_fault();
    tell_counts(clients);
    FIGURE("T16 isolation cross=0 tenants=%d keys=%d at_once_with_one_key=%d executions_at_handler=%u", LEDGER_TENANTS,
           LEDGER_KEYS, overlap.most, executions);
    ck_assert_int_ge(overlap.most, 3);
    close(last.fd);
    ledger_fini();
    rig_end(&rig);
}
END_TEST

SUITE(tenants_storm)
{
    Suite *suite = suite_create("integration/tenants_storm");
    CASE(suite, in_a_storm_of_tenants_with_the_same_keys_everybody_is_told_of_his_own);
    return suite;
}
