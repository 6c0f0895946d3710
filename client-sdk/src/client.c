/* client.c - struct nonbis_client: made, filled, freed; what its operations share. See client.h. */
#include "client-sdk/src/client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int client_make(struct nonbis_client **out, const struct nonbis_policy *policy, const struct client_parts *parts)
{
    struct nonbis_policy standard;
    (void) policy_init(&standard, NULL);
    if (policy == NULL) {
        policy = &standard;
    }
    if (policy_contradiction(policy) != NULL) {
        return NONBIS_ERROR_POLICY;
    }
    struct nonbis_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    if (pthread_mutex_init(&client->lock, NULL) != 0) {
        free(client);
        return NONBIS_ERROR_MEMORY;
    }
    client->policy = *policy;
    client->parts = *parts;
    atomic_init(&client->chance, (uint64_t) policy_value(policy, NONBIS_SEED));
    budget_init(&client->budget, policy_value(policy, NONBIS_BUDGET_MILLI), policy_value(policy, NONBIS_DEPOSIT_MILLI),
                policy_value(policy, NONBIS_COST_MILLI));
    breaker_init(&client->breaker, policy_value(policy, NONBIS_BREAKER_FAILURES),
                 policy_value(policy, NONBIS_BREAKER_MS));
    *out = client;
    return NONBIS_OK;
}

void nonbis_client_free(struct nonbis_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->parts.journal != NULL) {
        client->parts.journal->free(client->parts.journal);
    }
    client->parts.transport->free(client->parts.transport);
    (void) pthread_mutex_destroy(&client->lock);
    free(client);
}

int nonbis_client_set_text(struct nonbis_client *client, enum nonbis_client_text which, const char *text)
{
    if (client == NULL || text == NULL || which < NONBIS_CLIENT_CA_FILE || which > NONBIS_CLIENT_USER_AGENT) {
        return NONBIS_ERROR_MISUSE;
    }
    return client->parts.transport->set_text(client->parts.transport, which, text);
}

const char *nonbis_client_message(const struct nonbis_client *client)
{
    return client != NULL ? client->message : "";
}

void nonbis_client_on_event(struct nonbis_client *client, int (*callback)(const struct nonbis_event *event, void *arg),
                            void *arg)
{
    client->on_event = callback;
    client->on_event_arg = arg;
}

void nonbis_client_stats(const struct nonbis_client *client, struct nonbis_stats *stats, size_t size)
{
    struct nonbis_client *shared = (struct nonbis_client *) client; /* only its lock is touched */
    pthread_mutex_lock(&shared->lock);
    struct nonbis_stats copy = client->stats;
    pthread_mutex_unlock(&shared->lock);
    copy.tokens_milli = budget_tokens_milli(&client->budget);
    /* A caller that was built with an older header knows less, one with a newer header gets zeros. */
    memset(stats, 0, size);
    memcpy(stats, &copy, size < sizeof(copy) ? size : sizeof(copy));
}

/* SplitMix64, as in the command's own --seed. */
uint64_t client_chance(struct nonbis_client *client)
{
    if (policy_value(&client->policy, NONBIS_SEED) == 0) {
        return random_word(client->parts.random);
    }
    const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t word = atomic_fetch_add(&client->chance, step) + step;
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

/* ---- routes ------------------------------------------------------------------------------------------------------- */

/* FNV-1a over method and endpoint. */
static uint64_t route_hash(const struct nonbis_op *op)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *const parts[] = { op->method, " ", op->endpoint };
    for (size_t i = 0; i < 3; i++) {
        for (const char *at = parts[i]; *at != '\0'; at++) {
            hash = (hash ^ (unsigned char) *at) * UINT64_C(0x100000001b3);
        }
    }
    return hash != 0 ? hash : 1;
}

static struct client_route *route_find(struct nonbis_client *client, uint64_t hash)
{
    for (unsigned i = 0; i < CLIENT_ROUTES_MAX; i++) {
        if (client->routes[i].hash == hash) {
            return &client->routes[i];
        }
    }
    return NULL;
}

enum evidence client_evidence(struct nonbis_client *client, const struct nonbis_op *op)
{
    pthread_mutex_lock(&client->lock);
    const struct client_route *route = route_find(client, route_hash(op));
    enum evidence evidence = route != NULL ? route->evidence : EVIDENCE_NONE;
    pthread_mutex_unlock(&client->lock);
    return evidence;
}

void client_learn(struct nonbis_client *client, const struct nonbis_op *op, enum evidence evidence)
{
    uint64_t hash = route_hash(op);
    if (evidence == EVIDENCE_NONE) {
        return;
    }
    pthread_mutex_lock(&client->lock);
    struct client_route *route = route_find(client, hash);
    if (route == NULL) {
        route = &client->routes[client->route_next++ % CLIENT_ROUTES_MAX];
        route->hash = hash;
    }
    route->evidence = evidence;
    pthread_mutex_unlock(&client->lock);
}

/* ---- journal ------------------------------------------------------------------------------------------------------ */

static int client_journal_error(struct nonbis_client *client, int error)
{
    pthread_mutex_lock(&client->lock); /* several threads may use the journal */
    (void) snprintf(client->message, sizeof(client->message), "%s",
                    client->parts.journal->message(client->parts.journal));
    pthread_mutex_unlock(&client->lock);
    return error;
}

int nonbis_client_resume(struct nonbis_client *client, struct nonbis_op **out)
{
    if (client == NULL || out == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct journal *journal = client->parts.journal;
    if (journal == NULL) {
        return NONBIS_ERROR_STATE;
    }
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    int result = journal->open_next(journal, client->resumed_after, &entry, &record, &state);
    if (result != NONBIS_OK) {
        return result == NONBIS_END ? result : client_journal_error(client, result);
    }
    return op_make_from_record(out, client, record, entry, state);
}

int nonbis_op_open(struct nonbis_op **out, struct nonbis_client *client, const char *key)
{
    if (client == NULL || out == NULL || key == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct journal *journal = client->parts.journal;
    if (journal == NULL) {
        return NONBIS_ERROR_STATE;
    }
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    int result = journal->open(journal, key, &entry, &record, &state);
    if (result != NONBIS_OK) {
        return client_journal_error(client, result);
    }
    return op_make_from_record(out, client, record, entry, state);
}

int nonbis_journal_each(struct nonbis_client *client,
                        int (*callback)(const struct nonbis_journal_entry *entry, void *arg), void *arg)
{
    if (client == NULL || callback == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct journal *journal = client->parts.journal;
    if (journal == NULL) {
        return NONBIS_ERROR_STATE;
    }
    int result = journal->each(journal, callback, arg);
    return result < 0 ? client_journal_error(client, result) : result;
}

int nonbis_journal_prune(struct nonbis_client *client, int64_t older_than_ms, int undecided)
{
    if (client == NULL || older_than_ms < 0) {
        return NONBIS_ERROR_MISUSE;
    }
    struct journal *journal = client->parts.journal;
    if (journal == NULL) {
        return NONBIS_ERROR_STATE;
    }
    int64_t wall_ms = client->parts.clock->wall_ms(client->parts.clock);
    int result = journal->prune(journal, wall_ms, older_than_ms, undecided != 0);
    return result < 0 ? client_journal_error(client, result) : result;
}
