/* gate_store.c - see gate_store.h. */
#include "tests/store/gate_store.h"

#include "tests/store/store_fixture.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held; /* begin waits */
    bool commit_held;
    unsigned inside; /* begins that came this far */
    unsigned commits;
    const struct store_class *real;
    struct store_class ops;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static enum store_result gate_begin(struct store *store)
{
    pthread_mutex_lock(&gate.lock);
    gate.inside++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.held) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return gate.real->begin(store);
}

static enum store_result gate_commit(struct store *store)
{
    pthread_mutex_lock(&gate.lock);
    gate.commits++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.commit_held) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return gate.real->commit(store);
}

void gate_hold(bool held)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = held;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

void gate_wait(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.inside < n) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
}

void gate_hold_commit(bool held)
{
    pthread_mutex_lock(&gate.lock);
    gate.commit_held = held;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

void gate_wait_commit(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.commits < n) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
}

unsigned gate_begins(void)
{
    pthread_mutex_lock(&gate.lock);
    unsigned begins = gate.inside;
    pthread_mutex_unlock(&gate.lock);
    return begins;
}

unsigned gate_commits(void)
{
    pthread_mutex_lock(&gate.lock);
    unsigned commits = gate.commits;
    pthread_mutex_unlock(&gate.lock);
    return commits;
}

struct store *gate_open(const struct store_clock *clock)
{
    struct store_options options = fixture_options("memory");
    options.clock = clock;
    struct store *store = store_open_memory(&options);
    gate.real = store->ops;
    gate.ops = *store->ops;
    gate.ops.begin = gate_begin;
    gate.ops.commit = gate_commit;
    store->ops = &gate.ops;
    return store;
}
