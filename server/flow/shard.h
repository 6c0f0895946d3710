/* shard.h - one loop with all that it owns: its share of the client connections, its way to the handler, its exchanges. `loops` of them run side by
 * side, each on a thread of its own (the first on the main one), and nothing of an exchange is touched by another. What they share is in
 * commons.h.
 *
 * Connections are accepted on the first loop and dealt round robin: the kernel's own spreading would let a second process listen on the
 * same address unnoticed (docs/facts.md 30). */
#ifndef NONBIS_SERVER_FLOW_SHARD_H
#define NONBIS_SERVER_FLOW_SHARD_H

#include "server/flow/flow.h"

#include <pthread.h>

struct shard {
    struct loop *loop;
    struct flow flow;
    struct edge *edge;
    pthread_t thread;
    bool has_thread;
};

struct shards {
    struct shard *items;
    unsigned count;
    unsigned next; /* to be dealt a connection; first loop's thread */
};

/* The loops alone; the first may listen. */
void shards_new(struct shards *shards, unsigned count);
/* All the rest, before any loop runs; commons->worker is there. False and a sentence: the handler's URL cannot be used. */
bool shards_open(struct shards *shards, struct commons *commons, struct buf *error);
/* Starts the threads of all but the first loop, runs that one here, and returns when all were stopped. */
void shards_run(struct shards *shards);
/* After shards_run, or instead of it; before the store thread is stopped, then shards_free after it. */
void shards_close(struct shards *shards);
void shards_free(struct shards *shards);

/* For acceptor_open: the context is the shards. First loop's thread. */
void shards_deal(void *shards, int fd, const void *sockaddr, unsigned len);

#endif
