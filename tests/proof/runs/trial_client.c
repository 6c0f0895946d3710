/* trial_client.c - clients of a trial: each writes, repeats, asks and voids without pause, by chance from a seed, and does what a careful client does
 * when no answer comes. A rude one also leaves in mid-request, and is slow. */
#include "tests/proof/runs/trial.h"

enum { TENANTS = 4, RECENT = 24, SLOW_BYTE_MS = 1 };

static void choose_key(struct trial_client *client, struct intent *intent)
{
    bool fresh = suite_random_below(&client->random, 100) < 55;
    unsigned back = suite_random_below(&client->random, RECENT), tenant = suite_random_below(&client->random, TENANTS);
    struct trial *trial = client->trial;
    pthread_mutex_lock(&trial->lock);
    trial->newest_key += fresh;
    unsigned key = fresh || trial->newest_key - trial->first_key < back ? trial->newest_key : trial->newest_key - back;
    pthread_mutex_unlock(&trial->lock);
    (void) snprintf(intent->tenant, sizeof intent->tenant, "t%u", tenant);
    (void) snprintf(intent->key, sizeof intent->key, "k-%u", key);
}

static void choose_attempt(struct trial_client *client, struct intent *intent)
{
    static const char *const acts[] = { "late=1", "late=5", "late=20", "decline", "decline", "close", "cut", "drip=1" };
    unsigned act = suite_random_below(&client->random, 24);
    choose_key(client, intent);
    intent->amount = suite_random_below(&client->random, 100) < 4 ? 2 : 1;
    intent->act = act < sizeof acts / sizeof acts[0] ? acts[act] : NULL;
    intent->fields = suite_random_below(&client->random, 100) < 30 ? "Prefer: wait=5\r\n" : NULL;
}

/* What the answer says that was met on the way. */
static void note_faults(struct trial *trial, const struct history_event *told)
{
    static const struct {
        const char *word, *fault;
    } words[] = { { "not-executed", "declined" }, { "in-progress", "in-progress" }, { "unknown", "unknown" } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(told->word, words[i].word) == 0) {
            trial_met(trial, words[i].fault);
        }
    }
    if (strcmp(told->problem, "key-reused") == 0) {
        trial_met(trial, "mismatch");
    }
}

/* One command, and what a careful client does when no answer comes: it repeats the same once the server is back, and asks. */
static bool client_write(struct trial_client *client, unsigned *generation)
{
    struct intent intent = { .amount = 1 };
    struct history_event told;
    choose_attempt(client, &intent);
    if (trial_attempt(client->trial, &intent, &told)) {
        note_faults(client->trial, &told);
        return true;
    }
    trial_met(client->trial, "lost-answer");
    if (!trial_wait_start(client->trial, generation)) {
        return false;
    }
    if (suite_random_below(&client->random, 2) == 0) {
        (void) trial_ask(client->trial, intent.tenant, intent.key, NULL);
    }
    if (trial_attempt(client->trial, &intent, &told)) {
        note_faults(client->trial, &told);
        trial_met(client->trial, strcmp(told.word, "replayed") == 0   ? "lost-completed"
                                 : strcmp(told.word, "unknown") == 0  ? "lost-unknown"
                                 : strcmp(told.word, "executed") == 0 ? "lost-absent"
                                                                      : "lost-otherwise");
        return true;
    }
    return trial_wait_start(client->trial, generation);
}

static void client_leave(struct trial_client *client)
{
    struct intent intent = { .amount = 1 };
    unsigned leave = suite_random_below(&client->random, LEAVE_WHILE_IT_RUNS);
    choose_attempt(client, &intent);
    trial_attempt_and_leave(client->trial, &intent, (enum trial_leave) leave, 0);
    trial_met(client->trial, "left");
}

static bool client_write_slowly(struct trial_client *client, unsigned *generation)
{
    struct intent intent = { .amount = 1 };
    choose_attempt(client, &intent);
    if (trial_attempt_slowly(client->trial, &intent, SLOW_BYTE_MS, NULL)) {
        trial_met(client->trial, "slow");
        return true;
    }
    trial_met(client->trial, "lost-answer");
    return trial_wait_start(client->trial, generation);
}

static void *client_run(void *context)
{
    struct trial_client *client = context;
    struct trial *trial = client->trial;
    unsigned generation = 0;
    bool more = trial_wait_start(trial, &generation);
    while (more) {
        struct intent intent = { .amount = 1 };
        struct history_event told;
        unsigned deed = suite_random_below(&client->random, 100);
        bool answered = true;
        if (client->rude && deed < 4) {
            client_leave(client);
        } else if (client->rude && deed < 8) {
            more = client_write_slowly(client, &generation);
        } else if (deed < 78) {
            more = client_write(client, &generation);
        } else {
            choose_key(client, &intent);
            answered = deed < 94 ? trial_ask(trial, intent.tenant, intent.key, &told)
                                 : trial_void(trial, intent.tenant, intent.key, &told);
        }
        if (deed >= 94 && answered && told.answer == 200) {
            trial_met(trial, "voided");
        }
        more = more && (answered || trial_wait_start(trial, &generation));
        pthread_mutex_lock(&trial->lock);
        more = more && !trial->over;
        pthread_mutex_unlock(&trial->lock);
    }
    return NULL;
}

void trial_clients_begin(struct trial *trial, struct trial_client *clients, unsigned count, unsigned seed, bool rude)
{
    for (unsigned i = 0; i < count; i++) {
        clients[i].trial = trial;
        clients[i].rude = rude;
        suite_random_start(&clients[i].random, seed + 1 + i);
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
}

void trial_clients_end(struct trial *trial, struct trial_client *clients, unsigned count)
{
    pthread_mutex_lock(&trial->lock);
    trial->over = true;
    pthread_cond_broadcast(&trial->changed);
    pthread_mutex_unlock(&trial->lock);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    trial->over = false;
}
