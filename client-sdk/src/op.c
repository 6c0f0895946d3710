/* op.c - struct nonbis_op: made, set up, freed. See client.h; running it is run.h. */
#include "client-sdk/src/client.h"

#include "client-sdk/src/key_make.h"
#include "client-sdk/src/run.h"
#include "client-sdk/src/url.h"
#include "common/key.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts -------------------------------------------------------------------------------------------------------- */

static int text_replace(char **place, const char *text)
{
    char *copy = view_dup(view_of(text));
    if (copy == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    free(*place);
    *place = copy;
    return NONBIS_OK;
}

static bool method_repeats(const char *method)
{
    static const char *const names[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(method, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum safety op_safety(const struct nonbis_op *op)
{
    return op->key[0] != '\0' ? SAFETY_KEYED : method_repeats(op->method) ? SAFETY_REPEATABLE : SAFETY_UNKEYED;
}

/* ---- what the journal does not keep ------------------------------------------------------------------------------ */

static void lacks_free(struct op_lacks *lacks)
{
    for (size_t i = 0; i < lacks->count; i++) {
        free(lacks->names[i]);
    }
    free(lacks->names);
}

static bool lacks_copy(struct op_lacks *lacks, const char *const *names, size_t count)
{
    lacks->names = calloc(count > 0 ? count : 1, sizeof(*lacks->names));
    if (lacks->names == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char *name = view_dup(view_of(names[i]));
        if (name == NULL) {
            return false;
        }
        lacks->names[lacks->count++] = name;
    }
    return true;
}

static void lacks_drop(struct op_lacks *lacks, const char *name)
{
    for (size_t i = 0; i < lacks->count; i++) {
        if (view_equal_nocase(view_of(lacks->names[i]), view_of(name))) {
            free(lacks->names[i]);
            memmove(&lacks->names[i], &lacks->names[i + 1], (lacks->count - i - 1) * sizeof(*lacks->names));
            lacks->count--;
            return;
        }
    }
}

/* ---- making ------------------------------------------------------------------------------------------------------- */

void nonbis_op_free(struct nonbis_op *op)
{
    if (op == NULL) {
        return;
    }
    if (op->entry != NULL) {
        op->client->parts.journal->close(op->client->parts.journal, op->entry);
    }
    for (size_t i = 0; i < op->field_count; i++) {
        free(op->fields[i].name);
        free(op->fields[i].value);
    }
    free(op->fields);
    lacks_free(&op->lacks);
    free(op->url);
    free(op->method);
    free(op->name);
    free(op->status_url);
    free(op->origin);
    free(op->endpoint);
    free(op->body);
    free(op->attempts);
    transport_facts_fini(&op->facts);
    answer_fini(&op->answer);
    waker_fini(&op->waker);
    free(op);
}

static int op_fill(struct nonbis_op *op, const char *url, const void *body, size_t body_len)
{
    struct url_parts parts;
    if (!url_split(url, &parts)) {
        return NONBIS_ERROR_URL;
    }
    op->url = view_dup(view_of(url));
    op->origin = view_dup(parts.origin);
    op->endpoint = view_dup(parts.endpoint);
    op->method = view_dup(VIEW("POST"));
    op->body = malloc(body_len > 0 ? body_len : 1);
    if (op->url == NULL || op->origin == NULL || op->endpoint == NULL || op->method == NULL || op->body == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    if (body_len > 0) {
        memcpy(op->body, body, body_len);
    }
    op->body_len = body_len;
    op->has_body = true;
    return NONBIS_OK;
}

static int op_make(struct nonbis_op **out, struct nonbis_client *client, const char *url, const void *body,
                   size_t body_len)
{
    struct nonbis_op *op = calloc(1, sizeof(*op));
    if (op == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    size_t body_max = (size_t) policy_value(&client->policy, NONBIS_RESPONSE_MAX);
    op->client = client;
    op->retry_after_s = -1;
    transport_facts_init(&op->facts, body_max);
    answer_init(&op->answer, body_max);
    int result = waker_init(&op->waker) ? op_fill(op, url, body, body_len) : NONBIS_ERROR_MEMORY;
    if (result != NONBIS_OK) {
        nonbis_op_free(op);
        return result;
    }
    op->created_wall_ms = run_wall_ms(op);
    *out = op;
    return NONBIS_OK;
}

int nonbis_op_new(struct nonbis_op **out, struct nonbis_client *client, const char *url, const void *body,
                  size_t body_len)
{
    if (out == NULL || client == NULL || url == NULL || (body == NULL && body_len > 0)) {
        return NONBIS_ERROR_MISUSE;
    }
    struct nonbis_op *op = NULL;
    int result = op_make(&op, client, url, body, body_len);
    if (result != NONBIS_OK) {
        return result;
    }
    if (!key_make(client->parts.random, op->created_wall_ms, op->key)) {
        nonbis_op_free(op);
        return NONBIS_ERROR_RANDOM;
    }
    history_init(&op->history, SAFETY_KEYED, true, true);
    *out = op;
    return NONBIS_OK;
}

static int op_take_key(struct nonbis_op *op, const char *text)
{
    struct key key;
    if (key_parse(view_of(text), &key) != KEY_OK) {
        return NONBIS_ERROR_KEY;
    }
    memcpy(op->key, key.text, key.len + 1);
    return NONBIS_OK;
}

int nonbis_op_new_for_key(struct nonbis_op **out, struct nonbis_client *client, const char *url, const char *key)
{
    if (out == NULL || client == NULL || url == NULL || key == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct nonbis_op *op = NULL;
    int result = op_make(&op, client, url, NULL, 0);
    if (result == NONBIS_OK) {
        result = op_take_key(op, key);
        if (result != NONBIS_OK) {
            nonbis_op_free(op);
        }
    }
    if (result != NONBIS_OK) {
        return result;
    }
    op->has_body = false;
    history_init(&op->history, SAFETY_KEYED, false, false);
    history_resume(&op->history, 0); /* somebody may have sent it, nobody knows when */
    *out = op;
    return NONBIS_OK;
}

/* As the journal keeps it, unquoted: read as a field value once more, a key with quotes in it would be another key, or none. */
static int op_take_kept_key(struct nonbis_op *op, const char *key)
{
    size_t len = strlen(key);
    if (len == 0 || len >= sizeof(op->key)) {
        return NONBIS_ERROR_KEY;
    }
    memcpy(op->key, key, len + 1);
    return NONBIS_OK;
}

static int op_copy_record(struct nonbis_op *op, const struct journal_record *record)
{
    int result = op_take_kept_key(op, record->key);
    if (result == NONBIS_OK) {
        result = text_replace(&op->method, record->method);
    }
    if (result == NONBIS_OK && record->name != NULL && record->name[0] != '\0') {
        result = nonbis_op_set_name(op, record->name);
    }
    if (result == NONBIS_OK && record->status_url != NULL && record->status_url[0] != '\0') {
        result = nonbis_op_set_status_url(op, record->status_url);
    }
    for (size_t i = 0; i < record->field_count && result == NONBIS_OK; i++) {
        result = nonbis_op_set_header(op, record->fields[i].name, record->fields[i].value, NONBIS_HEADER_STORED);
    }
    if (result == NONBIS_OK && !lacks_copy(&op->lacks, record->unstored, record->unstored_count)) {
        result = NONBIS_ERROR_MEMORY;
    }
    return result;
}

/* How the last run ended, as far as it was told: a decided entry is not run again. */
static void op_take_ending(struct nonbis_op *op, const struct journal_record *record, enum journal_state state)
{
    op->outcome = record->outcome;
    op->stop = record->stop;
    op->answer.status = record->http_status;
    if (state == JOURNAL_NEW) {
        return;
    }
    history_resume(&op->history, record->created_wall_ms);
    op->history.credentials_changed = record->unstored_count > 0; /* with nothing left out it was sent without any */
    if (state == JOURNAL_SENT) {
        return;
    }
    static const enum standing standings[] = {
        [NONBIS_COMPLETED] = STANDING_COMPLETED,   [NONBIS_REJECTED] = STANDING_REJECTED,
        [NONBIS_NOT_SENT] = STANDING_UNSENT,       [NONBIS_NOT_APPLIED] = STANDING_VOIDED,
        [NONBIS_IN_PROGRESS] = STANDING_AMBIGUOUS, [NONBIS_UNKNOWN] = STANDING_AMBIGUOUS
    };
    bool known = record->outcome >= NONBIS_COMPLETED && record->outcome <= NONBIS_UNKNOWN;
    op->history.standing = known ? standings[record->outcome] : STANDING_AMBIGUOUS;
    op->history.proved = op->history.standing == STANDING_COMPLETED;
    op->marks = op->history.standing == STANDING_VOIDED ? (unsigned) NONBIS_MARK_VOIDED : 0;
    op->settled = op->history.standing != STANDING_UNSENT;
}

int op_make_from_record(struct nonbis_op **out, struct nonbis_client *client, const struct journal_record *record,
                        struct journal_entry *entry, enum journal_state state)
{
    struct nonbis_op *op = NULL;
    int result = op_make(&op, client, record->url, record->body, record->body_len);
    if (result != NONBIS_OK) {
        client->parts.journal->close(client->parts.journal, entry);
        return result == NONBIS_ERROR_URL ? NONBIS_ERROR_JOURNAL : result;
    }
    op->entry = entry; /* closed with the operation */
    op->created_wall_ms = record->created_wall_ms;
    op->has_body = record->has_body;
    result = op_copy_record(op, record);
    if (result != NONBIS_OK) {
        nonbis_op_free(op);
        return result == NONBIS_ERROR_MEMORY ? result : NONBIS_ERROR_JOURNAL;
    }
    history_init(&op->history, op_safety(op), op->has_body, record->own_key);
    op_take_ending(op, record, state);
    op->ran = state != JOURNAL_NEW;
    op->resumed = true;
    if (state == JOURNAL_DONE && !op->settled) {
        client->parts.journal->close(client->parts.journal, entry); /* a run would be a beginning: create replaces it */
        op->entry = NULL;
        op->resumed = false;
    }
    *out = op;
    return NONBIS_OK;
}

/* ---- setting up --------------------------------------------------------------------------------------------------- */

int nonbis_op_set_key(struct nonbis_op *op, const char *key)
{
    if (op == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (op->ran || op->entry != NULL || !op->has_body) {
        return NONBIS_ERROR_STATE;
    }
    if (key == NULL) {
        op->key[0] = '\0';
    } else if (op_take_key(op, key) != NONBIS_OK) {
        return NONBIS_ERROR_KEY;
    }
    history_init(&op->history, op_safety(op), true, false);
    return NONBIS_OK;
}

int nonbis_op_set_method(struct nonbis_op *op, const char *method)
{
    if (op == NULL || method == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (op->ran || op->entry != NULL || !op->has_body) {
        return NONBIS_ERROR_STATE;
    }
    size_t len = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (len == 0 || len > 32 || method[len] != '\0') {
        return NONBIS_ERROR_RANGE;
    }
    int result = text_replace(&op->method, method);
    if (result == NONBIS_OK) {
        history_init(&op->history, op_safety(op), true, op->history.own_key);
    }
    return result;
}

int nonbis_op_set_name(struct nonbis_op *op, const char *name)
{
    return op == NULL || name == NULL ? NONBIS_ERROR_MISUSE : text_replace(&op->name, name);
}

int nonbis_op_set_status_url(struct nonbis_op *op, const char *base_url)
{
    struct url_parts parts;
    if (op == NULL || base_url == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (!url_split(base_url, &parts) || strpbrk(base_url, "?#") != NULL) {
        return NONBIS_ERROR_URL;
    }
    int result = text_replace(&op->status_url, base_url);
    size_t len = result == NONBIS_OK ? strlen(op->status_url) : 0;
    while (len > 0 && op->status_url[len - 1] == '/') {
        op->status_url[--len] = '\0';
    }
    return result;
}

static bool field_name_is(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (view_equal_nocase(view_of(name), view_of(*names))) {
            return true;
        }
    }
    return false;
}

/* A token (RFC 9110 section 5.6.2), and a value without control bytes: libcurl would send CR LF as it stands (docs/facts.md 4). */
static bool field_is_clean(const char *name, const char *value)
{
    size_t len = strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (len == 0 || name[len] != '\0') {
        return false;
    }
    for (const unsigned char *at = (const unsigned char *) value; *at != '\0'; at++) {
        if ((*at < 0x20 && *at != '\t') || *at == 0x7F) {
            return false;
        }
    }
    return true;
}

static int field_put(struct nonbis_op *op, const char *name, const char *value, bool stored)
{
    for (size_t i = 0; i < op->field_count; i++) {
        if (view_equal_nocase(view_of(op->fields[i].name), view_of(name))) {
            op->fields[i].stored = stored;
            return text_replace(&op->fields[i].value, value);
        }
    }
    struct op_field *grown = realloc(op->fields, (op->field_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    op->fields = grown;
    struct op_field *field = &grown[op->field_count];
    *field = (struct op_field){ .name = view_dup(view_of(name)), .value = view_dup(view_of(value)), .stored = stored };
    if (field->name == NULL || field->value == NULL) {
        free(field->name);
        free(field->value);
        return NONBIS_ERROR_MEMORY;
    }
    op->field_count++;
    return NONBIS_OK;
}

int nonbis_op_set_header(struct nonbis_op *op, const char *name, const char *value, unsigned flags)
{
    static const char *const own[] = { "Idempotency-Key", "Host",   "Content-Length", "Transfer-Encoding",
                                       "Connection",      "Expect", "Prefer",         NULL };
    static const char *const plain[] = { "Content-Type", "Content-Encoding", "Accept", NULL };
    static const char *const secret[] = { "Authorization", "Proxy-Authorization", "Cookie", "X-API-Key", NULL };
    if (op == NULL || name == NULL || value == NULL || (flags & ~(unsigned) NONBIS_HEADER_STORED) != 0) {
        return NONBIS_ERROR_MISUSE;
    }
    if (!field_is_clean(name, value) || field_name_is(name, own)) {
        return NONBIS_ERROR_FIELD;
    }
    bool is_secret = field_name_is(name, secret);
    if (is_secret && op->history.first_sent_wall_ms != 0) {
        op->history.credentials_changed = true;
    }
    bool stored = field_name_is(name, plain) || (!is_secret && (flags & NONBIS_HEADER_STORED) != 0);
    int result = field_put(op, name, value, stored);
    if (result == NONBIS_OK) {
        lacks_drop(&op->lacks, name);
    }
    return result;
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

int nonbis_op_run(struct nonbis_op *op)
{
    return op == NULL ? NONBIS_ERROR_MISUSE : run_operation(op, GOAL_RUN);
}

int nonbis_op_wait(struct nonbis_op *op)
{
    if (op == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    return op->key[0] == '\0' ? NONBIS_ERROR_STATE : run_operation(op, GOAL_WAIT);
}

int nonbis_op_void(struct nonbis_op *op)
{
    if (op == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    return op->key[0] == '\0' ? NONBIS_ERROR_STATE : run_operation(op, GOAL_VOID);
}

int nonbis_op_status(struct nonbis_op *op, const struct nonbis_status **status)
{
    if (op == NULL || status == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (op->key[0] == '\0') {
        return NONBIS_ERROR_STATE;
    }
    int result = run_ask_once(op);
    if (result == NONBIS_OK) {
        *status = &op->status;
    }
    return result;
}

void nonbis_op_cancel(struct nonbis_op *op)
{
    waker_cancel(&op->waker);
}

void nonbis_op_uncancel(struct nonbis_op *op)
{
    waker_uncancel(&op->waker);
}

void nonbis_op_retry_now(struct nonbis_op *op)
{
    waker_hurry(&op->waker);
}
