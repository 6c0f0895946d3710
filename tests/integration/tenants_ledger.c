/* tenants_ledger.c - see tenants_ledger.h. One lock over all of it. */
#include "tests/integration/tenants_ledger.h"

#include "tests/support/suite.h"

#include <pthread.h>
#include <stdarg.h>

enum { ID_LEN = 32, EXECUTIONS_MAX = 60 };

struct pair {
    unsigned begun[2]; /* attempts with each payload */
    unsigned voids;
    bool known, voided; /* an answer said so */
    char id[ID_LEN + 1];
    char created[32], expires[64];
    char *body; /* of the first answer that was executed or replayed */
    unsigned executions;
    uint64_t numbers; /* a bit per execution number that the handler saw */
};

static struct pair pairs[LEDGER_TENANTS][LEDGER_KEYS];
static char first_fault[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct pair *pair_of(const struct ledger_command *command)
{
    return &pairs[command->tenant][command->key];
}

enum ledger_role ledger_role(int key)
{
    static const enum ledger_role roles[LEDGER_KEYS] = {
        ROLE_LONELY, ROLE_LONELY, ROLE_PLAIN, ROLE_PLAIN, ROLE_PLAIN,    ROLE_PLAIN,    ROLE_PLAIN,
        ROLE_PLAIN,  ROLE_PLAIN,  ROLE_MIXED, ROLE_MIXED, ROLE_MIXED,    ROLE_MIXED,    ROLE_LOST,
        ROLE_LOST,   ROLE_BUSY,   ROLE_BUSY,  ROLE_CUT,   ROLE_VOIDABLE, ROLE_VOIDABLE,
    };
    return roles[key];
}

const char *ledger_seen_name(enum ledger_seen seen)
{
    static const char *const names[SEEN_COUNT] = {
        [SEEN_EXECUTED] = "executed",
        [SEEN_REPLAYED] = "replayed",
        [SEEN_IN_PROGRESS] = "in_progress_409",
        [SEEN_OTHER_PAYLOAD] = "other_payload_422",
        [SEEN_VOIDED] = "voided",
        [SEEN_UNKNOWN] = "unknown_504",
        [SEEN_RELEASED] = "released_429",
        [SEEN_NOT_VOIDABLE] = "not_voidable_422",
        [SEEN_STATUS] = "status_200",
        [SEEN_NOT_SEEN] = "not_seen_404",
        [SEEN_WRONG] = "wrong",
    };
    return names[seen];
}

void ledger_names(const struct ledger_command *command, char tenant[8], char key[8], char body[64])
{
    (void) snprintf(tenant, 8, "t%02d", command->tenant % 100);
    (void) snprintf(key, 8, "k-%02d", command->key % 100);
    if (command->tenant % 2 == 0) {
        (void) snprintf(body, 64, "{\"amount\":%d}", 1 + command->payload);
    } else {
        (void) snprintf(body, 64, "{\"amount\":%d,\"of\":\"%s\"}", 1 + command->payload, tenant);
    }
}

/* --- faults --- */

/* With the lock. */
__attribute__((format(printf, 3, 4))) static enum ledger_seen
wrong(const struct ledger_command *command, const struct http_answer *answer, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (first_fault[0] == '\0') {
        (void) snprintf(first_fault, sizeof first_fault, "t%02d k-%02d payload %d: %s\n%.1200s\n\n%.1800s",
                        command->tenant, command->key, command->payload, text,
                        answer != NULL && answer->head != NULL ? answer->head : "(no answer)",
                        answer != NULL && answer->body != NULL ? answer->body : "");
    }
    return SEEN_WRONG;
}

const char *ledger_fault(void)
{
    pthread_mutex_lock(&lock);
    const char *fault = first_fault[0] != '\0' ? first_fault : NULL;
    pthread_mutex_unlock(&lock);
    return fault;
}

/* --- what was sent --- */

void ledger_begin_attempt(const struct ledger_command *command)
{
    pthread_mutex_lock(&lock);
    pair_of(command)->begun[command->payload]++;
    pthread_mutex_unlock(&lock);
}

void ledger_begin_void(const struct ledger_command *command)
{
    pthread_mutex_lock(&lock);
    pair_of(command)->voids++;
    pthread_mutex_unlock(&lock);
}

bool ledger_is_known(const struct ledger_command *command)
{
    pthread_mutex_lock(&lock);
    bool known = pair_of(command)->known;
    pthread_mutex_unlock(&lock);
    return known;
}

bool ledger_id(const struct ledger_command *command, char id[33])
{
    pthread_mutex_lock(&lock);
    (void) snprintf(id, ID_LEN + 1, "%s", pair_of(command)->id);
    pthread_mutex_unlock(&lock);
    return id[0] != '\0';
}

/* --- texts that must stay the same for ever --- */

/* What stands behind `before` in `text`, up to one of `end`. */
static bool word_after(const char *text, const char *before, const char *end, char *out, size_t size)
{
    const char *at = text != NULL ? strstr(text, before) : NULL;
    if (at == NULL) {
        return false;
    }
    at += strlen(before);
    (void) snprintf(out, size, "%.*s", (int) strcspn(at, end), at);
    return true;
}

static bool same_or_first(char *kept, size_t size, const char *seen)
{
    if (kept[0] == '\0') {
        (void) snprintf(kept, size, "%.*s", (int) size - 1, seen);
    }
    return strcmp(kept, seen) == 0;
}

/* The id in Link and in `command`, and the end of replay: this command's own, wherever they are told. */
static bool judge_names(struct pair *pair, const struct http_answer *answer, const char **why)
{
    char value[256];
    if (word_after(answer->head, "\r\nLink: </_nonbis/v1/commands/", ">", value, sizeof value)) {
        pair->known = true;
        if (strlen(value) != ID_LEN || !same_or_first(pair->id, sizeof pair->id, value)) {
            *why = "Link names another command";
            return false;
        }
    }
    if (word_after(answer->body, "\"command\":\"/_nonbis/v1/commands/", "\"", value, sizeof value) &&
        !same_or_first(pair->id, sizeof pair->id, value)) {
        *why = "the body names another command";
        return false;
    }
    if (http_field(answer, "Idempotency-Expires", value, sizeof value) &&
        !same_or_first(pair->expires, sizeof pair->expires, value)) {
        *why = "another Idempotency-Expires than before";
        return false;
    }
    return true;
}

/* The handler's answer is the request that it received: it names tenant, key and command. */
static bool judge_echo(const struct ledger_command *command, struct pair *pair, const struct http_answer *answer,
                       const char **why)
{
    char tenant[8], key[8], body[64], seen[64];
    ledger_names(command, tenant, key, body);
    *why = NULL;
    if (!word_after(answer->body, "\r\nX-Tenant: ", "\r", seen, sizeof seen) || strcmp(seen, tenant) != 0) {
        *why = "the body is another tenant's";
    } else if (!word_after(answer->body, "\r\nIdempotency-Key: ", "\r", seen, sizeof seen) || strcmp(seen, key) != 0) {
        *why = "the body is another key's";
    } else if (!word_after(answer->body, "\r\nNonbis-Command-Id: ", "\r", seen, sizeof seen) ||
               strcmp(seen, pair->id) != 0) {
        *why = "the body is another command's";
    } else if (strstr(answer->body, body) == NULL) {
        *why = "the body is of another payload";
    }
    if (*why == NULL && pair->body == NULL) {
        pair->body = strdup(answer->body);
    }
    if (*why == NULL && strcmp(pair->body, answer->body) != 0) {
        *why = "another body than before";
    }
    return *why == NULL;
}

/* --- answers --- */

static bool answer_is(const struct http_answer *answer, int status, const char *text)
{
    return answer->status == status && answer->body != NULL && strstr(answer->body, text) != NULL;
}

static enum ledger_seen judge_attempt(const struct ledger_command *command, struct pair *pair,
                                      const struct http_answer *answer)
{
    const char *why = NULL;
    enum ledger_role role = ledger_role(command->key);
    bool good = false;
    if (answer->status == 0 || !answer->whole) {
        return wrong(command, answer, "no whole answer");
    }
    if (!judge_names(pair, answer, &why)) {
        return wrong(command, answer, "%s", why);
    }
    if (answer->status == 200) {
        bool executed = http_field_is(answer, "Idempotency-Status", "executed");
        good = role != ROLE_LOST && role != ROLE_BUSY && role != ROLE_CUT && !pair->voided &&
               (executed || http_field_is(answer, "Idempotency-Status", "replayed"));
        if (good && !judge_echo(command, pair, answer, &why)) {
            return wrong(command, answer, "%s", why);
        }
        return good ? executed ? SEEN_EXECUTED : SEEN_REPLAYED : wrong(command, answer, "no such answer can be here");
    }
    if (answer_is(answer, 409, "in-progress")) {
        good = role != ROLE_LONELY && pair->begun[0] + pair->begun[1] >= 2;
        return good ? SEEN_IN_PROGRESS : wrong(command, answer, "409 without another attempt of this tenant");
    }
    if (answer_is(answer, 422, "\"differs\":[\"body\"]")) {
        good = role == ROLE_MIXED && pair->begun[1 - command->payload] > 0;
        return good ? SEEN_OTHER_PAYLOAD : wrong(command, answer, "422 without another payload of this tenant");
    }
    if (answer_is(answer, 422, "key-voided")) {
        return pair->voids > 0 ? SEEN_VOIDED : wrong(command, answer, "voided, and not by this tenant");
    }
    if (answer_is(answer, 504, "outcome-unknown")) {
        return role == ROLE_LOST ? SEEN_UNKNOWN : wrong(command, answer, "unknown, and the handler answered");
    }
    if (answer->status == 429 && http_field_is(answer, "Idempotency-Status", "not-executed")) {
        return role == ROLE_BUSY ? SEEN_RELEASED : wrong(command, answer, "429, and the handler said 200");
    }
    return wrong(command, answer, "no such answer can be here");
}

enum ledger_seen ledger_judge_attempt(const struct ledger_command *command, const struct http_answer *answer)
{
    pthread_mutex_lock(&lock);
    enum ledger_seen seen = judge_attempt(command, pair_of(command), answer);
    pthread_mutex_unlock(&lock);
    return seen;
}

static enum ledger_seen judge_status(const struct ledger_command *command, struct pair *pair, bool was_known,
                                     const struct http_answer *answer)
{
    char tenant[8], key[8], body[64], value[64];
    const char *why = NULL;
    ledger_names(command, tenant, key, body);
    if (answer_is(answer, 404, "key-not-seen")) {
        return was_known ? wrong(command, answer, "a known command is not found") : SEEN_NOT_SEEN;
    }
    if (answer->status != 200 || !judge_names(pair, answer, &why)) {
        return wrong(command, answer, "%s", why != NULL ? why : "no status");
    }
    if (!word_after(answer->body, "\"key\":\"", "\"", value, sizeof value) || strcmp(value, key) != 0) {
        return wrong(command, answer, "the status is another key's");
    }
    if (!word_after(answer->body, "\"id\":\"", "\"", value, sizeof value) || strcmp(value, pair->id) != 0) {
        return wrong(command, answer, "the status is another command's");
    }
    if (!word_after(answer->body, "\"created_at\":\"", "\"", value, sizeof value) ||
        !same_or_first(pair->created, sizeof pair->created, value)) {
        return wrong(command, answer, "another time of creation than before: %s", pair->created);
    }
    if (pair->begun[0] + pair->begun[1] + pair->voids == 0) {
        return wrong(command, answer, "this tenant never used that key");
    }
    return SEEN_STATUS;
}

enum ledger_seen ledger_judge_status(const struct ledger_command *command, bool was_known,
                                     const struct http_answer *answer)
{
    pthread_mutex_lock(&lock);
    enum ledger_seen seen = judge_status(command, pair_of(command), was_known, answer);
    pthread_mutex_unlock(&lock);
    return seen;
}

static enum ledger_seen judge_response(const struct ledger_command *command, struct pair *pair, bool was_known,
                                       const struct http_answer *answer)
{
    const char *why = NULL;
    enum ledger_role role = ledger_role(command->key);
    if (answer_is(answer, 404, "key-not-seen")) {
        bool good = !was_known || role == ROLE_BUSY;
        return good ? SEEN_NOT_SEEN : wrong(command, answer, "a known command has no response");
    }
    if (!judge_names(pair, answer, &why)) {
        return wrong(command, answer, "%s", why);
    }
    if (answer->status == 200 && http_field_is(answer, "Idempotent-Replayed", "true")) {
        struct ledger_command other = *command;
        if (role == ROLE_MIXED) { /* either may have run */
            other.payload = strstr(answer->body, "\"amount\":2") != NULL;
        }
        return judge_echo(&other, pair, answer, &why) ? SEEN_REPLAYED : wrong(command, answer, "%s", why);
    }
    if (answer_is(answer, 409, "in-progress")) {
        return SEEN_IN_PROGRESS;
    }
    if (answer_is(answer, 504, "outcome-unknown") && role == ROLE_LOST) {
        return SEEN_UNKNOWN;
    }
    if (answer_is(answer, 422, "key-voided") && pair->voids > 0) {
        return SEEN_VOIDED;
    }
    return wrong(command, answer, "no such answer can be here");
}

enum ledger_seen ledger_judge_response(const struct ledger_command *command, bool was_known,
                                       const struct http_answer *answer)
{
    pthread_mutex_lock(&lock);
    enum ledger_seen seen = judge_response(command, pair_of(command), was_known, answer);
    pthread_mutex_unlock(&lock);
    return seen;
}

enum ledger_seen ledger_judge_void(const struct ledger_command *command, const struct http_answer *answer)
{
    pthread_mutex_lock(&lock);
    const char *why = NULL;
    struct pair *pair = pair_of(command);
    enum ledger_seen seen = SEEN_WRONG;
    if (!judge_names(pair, answer, &why)) {
        seen = wrong(command, answer, "%s", why);
    } else if (answer_is(answer, 200, "\"state\":\"voided\",\"executed\":\"no\",\"executions\":0")) {
        pair->voided = true;
        seen = pair->body == NULL ? SEEN_VOIDED : wrong(command, answer, "voided after it was executed");
    } else if (answer_is(answer, 409, "in-progress")) {
        seen = SEEN_IN_PROGRESS;
    } else if (answer_is(answer, 422, "\"state\":\"completed\"")) {
        seen = SEEN_NOT_VOIDABLE;
    } else {
        seen = wrong(command, answer, "no such answer to a void can be here");
    }
    pthread_mutex_unlock(&lock);
    return seen;
}

enum ledger_seen ledger_judge_stranger(const struct http_answer *answer)
{
    static const struct ledger_command nobody = { 0 };
    pthread_mutex_lock(&lock);
    bool good = answer_is(answer, 404, "key-not-seen") && http_field_count(answer, "Link") == 0 &&
                http_field_count(answer, "Idempotency-Expires") == 0;
    enum ledger_seen seen = good ? SEEN_NOT_SEEN : wrong(&nobody, answer, "a stranger was told something");
    pthread_mutex_unlock(&lock);
    return seen;
}

/* --- the end --- */

void ledger_note_restart(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LEDGER_TENANTS * LEDGER_KEYS; i++) {
        struct pair *pair = &pairs[i / LEDGER_KEYS][i % LEDGER_KEYS];
        pair->created[0] = pair->expires[0] = '\0';
    }
    pthread_mutex_unlock(&lock);
}

/* One request as the handler received it. */
static void judge_received(const char *text)
{
    struct ledger_command command = { 0 };
    char number[16] = "", id[64] = "", tenant[8], key[8], body[64], names[16];
    const char *end = strstr(text, "\r\n\r\n");
    if (!word_after(text, "\r\nX-Tenant: t", "\r", names, sizeof names)) {
        (void) wrong(&command, NULL, "the handler got a request of no tenant: %.400s", text);
        return;
    }
    command.tenant = (int) strtol(names, NULL, 10);
    (void) word_after(text, "\r\nIdempotency-Key: k-", "\r", names, sizeof names);
    command.key = (int) strtol(names, NULL, 10);
    command.payload = end != NULL && strstr(end, "\"amount\":2") != NULL;
    (void) word_after(text, "\r\nNonbis-Command-Id: ", "\r", id, sizeof id);
    (void) word_after(text, "\r\nNonbis-Execution: ", "\r", number, sizeof number);
    struct pair *pair = pair_of(&command);
    long execution = strtol(number, NULL, 10);
    ledger_names(&command, tenant, key, body);
    if (end == NULL || strcmp(end + 4, body) != 0) {
        (void) wrong(&command, NULL, "the handler got another body: %.400s", text);
    }
    if (!same_or_first(pair->id, sizeof pair->id, id)) {
        (void) wrong(&command, NULL, "the handler was told another id, %s, than the clients, %s", id, pair->id);
    }
    pair->executions++;
    if (execution < 1 || execution > EXECUTIONS_MAX || (pair->numbers >> execution & 1) != 0) {
        (void) wrong(&command, NULL, "the handler got execution '%s' twice, or out of bounds", number);
        return;
    }
    pair->numbers |= (uint64_t) 1 << execution;
    if (pair->executions > 1 && ledger_role(command.key) != ROLE_BUSY) {
        (void) wrong(&command, NULL, "executed %u times", pair->executions);
    }
}

unsigned ledger_judge_handler(struct peer *peer)
{
    unsigned count = peer_count_requests(peer);
    pthread_mutex_lock(&lock);
    for (unsigned n = 1; n <= count; n++) {
        struct buf text;
        buf_init(&text, 64 * 1024);
        (void) peer_request(peer, n, &text);
        buf_append_bytes(&text, "", 1);
        judge_received(text.ptr);
        buf_fini(&text);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

static void judge_end(const struct ledger_command *command, struct pair *pair, const struct http_answer *status)
{
    char state[32] = "none";
    enum ledger_role role = ledger_role(command->key);
    (void) word_after(status->body, "\"state\":\"", "\"", state, sizeof state);
    if (pair->executions == 0) {
        bool voided = strcmp(state, "voided") == 0 && pair->voids > 0;
        if (!voided && (pair->voided || status->status != 404)) {
            (void) wrong(command, status, "never executed, and told as %s", state);
        }
        return;
    }
    const char *wanted = role == ROLE_LOST ? "unknown" : role == ROLE_BUSY ? "released" : "completed";
    char executions[32];
    (void) snprintf(executions, sizeof executions, "\"executions\":%u,", pair->executions);
    if (status->status != 200 || strcmp(state, wanted) != 0 || strstr(status->body, executions) == NULL) {
        (void) wrong(command, status, "%u executions, and told as %s instead of %s", pair->executions, state, wanted);
    }
    if (pair->voided || role == ROLE_CUT) {
        (void) wrong(command, status, "executed, and it never should have been");
    }
}

void ledger_judge_end(const struct ledger_command *command, const struct http_answer *status)
{
    pthread_mutex_lock(&lock);
    judge_end(command, pair_of(command), status);
    pthread_mutex_unlock(&lock);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp((const char *) a, (const char *) b);
}

void ledger_judge_ids(void)
{
    static char ids[LEDGER_TENANTS * LEDGER_KEYS][ID_LEN + 1];
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LEDGER_TENANTS * LEDGER_KEYS; i++) {
        const struct pair *pair = &pairs[i / LEDGER_KEYS][i % LEDGER_KEYS];
        if (pair->id[0] != '\0') {
            memcpy(ids[count++], pair->id, sizeof pair->id);
        }
    }
    qsort(ids, count, sizeof ids[0], compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(ids[i - 1], ids[i]) == 0) {
            static const struct ledger_command nobody = { 0 };
            (void) wrong(&nobody, NULL, "two commands have the id %s", ids[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

void ledger_fini(void)
{
    for (int i = 0; i < LEDGER_TENANTS * LEDGER_KEYS; i++) {
        free(pairs[i / LEDGER_KEYS][i % LEDGER_KEYS].body);
    }
}
