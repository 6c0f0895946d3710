/* worker_threads_test.c - the store thread (server/store/worker.h) under several loops and over a real database. */
#include "server/store/worker.h"
#include "tests/store/store_file.h"

#include <pthread.h>

enum { CLIENTS = 3, ROUNDS = 200 };

struct client {
    pthread_t thread;
    struct loop *loop;
    struct store_worker *worker;
    struct store_task task;
    int number, round, claimed;
    bool finishing;
    char key[24];
};

static void client_next(struct client *client);

static void client_done(struct store_task *task)
{
    struct client *client = (struct client *) (void *) ((char *) task - offsetof(struct client, task));
    if (task->result != STORE_OK) {
        abort();
    }
    if (!client->finishing && task->found.claimed) {
        client->claimed++;
        client->finishing = true;
        task->kind = STORE_TASK_FINISH;
        task->finish = fixture_finish(client->key, &task->found, OUTCOME_COMPLETED);
        (void) store_worker_submit(client->worker, task);
        return;
    }
    fixture_found_free(&task->found);
    client->finishing = false;
    client_next(client);
}

static void client_next(struct client *client)
{
    if (client->round == ROUNDS) {
        loop_stop(client->loop);
        return;
    }
    /* All clients claim the same keys: exactly one may win each. */
    (void) snprintf(client->key, sizeof client->key, "shared-%d", client->round++);
    client->task = (struct store_task){ .kind = STORE_TASK_CLAIM, .home = client->loop, .done = client_done };
    client->task.claim = fixture_claim(client->key, 1, 0);
    if (!store_worker_submit(client->worker, &client->task)) {
        abort();
    }
}

static void *client_main(void *context)
{
    struct client *client = context;
    client_next(client);
    loop_run(client->loop);
    return NULL;
}

static void client_failed(void *context)
{
    (void) context;
    abort();
}

START_TEST(of_several_threads_that_claim_the_same_keys_one_wins_each)
{
    const struct store_worker_options worker_options = {
        .claims_max = 10, .reads_max = 10, .sweep_batch = 10, .sweep_every_ms = 3600000, .failed = client_failed
    };
    struct store_options options = start();
    struct store_worker *worker = store_worker_start(fixture_open(&options), &worker_options);
    struct client clients[CLIENTS];
    int claimed = 0;
    memset(clients, 0, sizeof clients);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].loop = loop_new();
        clients[i].worker = worker;
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(pthread_join(clients[i].thread, NULL), 0);
        claimed += clients[i].claimed;
        loop_free(clients[i].loop);
    }
    ck_assert_int_eq(claimed, ROUNDS);
    store_worker_stop(worker);
    fixture_remove(directory);
}
END_TEST

SUITE(store_worker_threads)
{
    Suite *suite = suite_create("store/worker_threads");
    CASE(suite, of_several_threads_that_claim_the_same_keys_one_wins_each);
    return suite;
}
