/* shard.c - see shard.h. */
#include "server/flow/shard.h"

#include "server/base/memory.h"
#include "server/flow/waiters.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- dealing --- */

/* An accepted connection on its way to another loop. */
struct dealt {
    struct loop_message message;
    struct shard *shard;
    int fd;
    unsigned len;
    struct sockaddr_storage address;
};

/* The thread of that loop. */
static void shard_adopt(struct shard *shard, int fd, const void *sockaddr, unsigned len)
{
    metrics_add(&shard->flow.metrics->connections, 1);
    edge_adopt(shard->edge, fd, sockaddr, len);
}

static void dealt_deliver(struct loop_message *message)
{
    struct dealt *dealt = LIST_ITEM(message, struct dealt, message);
    shard_adopt(dealt->shard, dealt->fd, &dealt->address, dealt->len);
    free(dealt);
}

void shards_deal(void *context, int fd, const void *sockaddr, unsigned len)
{
    struct shards *shards = context;
    struct shard *shard = &shards->items[shards->next];
    shards->next = (shards->next + 1) % shards->count;
    if (shard == &shards->items[0]) {
        shard_adopt(shard, fd, sockaddr, len);
        return;
    }
    struct dealt *dealt = memory_new(sizeof *dealt);
    dealt->message.deliver = dealt_deliver;
    dealt->shard = shard;
    dealt->fd = fd;
    dealt->len = len <= sizeof dealt->address ? len : 0;
    memcpy(&dealt->address, sockaddr, dealt->len);
    loop_post(shard->loop, &dealt->message);
}

/* --- life --- */

void shards_new(struct shards *shards, unsigned count)
{
    *shards = (struct shards){ .items = memory_new(count * sizeof shards->items[0]), .count = count };
    for (unsigned i = 0; i < count; i++) {
        shards->items[i].loop = loop_new();
    }
}

static bool shard_open(struct shard *shard, struct commons *commons, struct buf *error)
{
    const struct settings *settings = commons->settings;
    const struct edge_options edge = {
        .connections_max = (unsigned) settings->connections_max,
        .connections = &commons->connections,
        .client_idle_ms = settings->client_idle_ms,
        .head_deadline_ms = settings->header_deadline_ms,
        .body_deadline_ms = settings->body_deadline_ms,
        .body_max = (size_t) settings->body_max,
    };
    const struct upstream_options upstream = {
        .url = settings->upstream,
        .connect_timeout_ms = settings->connect_timeout_ms,
        .idle_ms = settings->upstream_idle_ms,
        .response_header_max = (size_t) settings->response_header_max,
        .allow_close_delimited = settings->allow_close_delimited,
        .distrusted = &commons->handler_distrusted,
        .name_fails = &commons->handler_name_fails,
    };
    flow_init(&shard->flow, shard->loop, commons);
    shard->flow.desk = store_desk_open(commons->worker, shard->loop, waiters_on_ended, shard->flow.waiters);
    shard->edge = edge_new(shard->loop, &edge, &front_handler, &shard->flow);
    shard->flow.upstream = upstream_open(shard->loop, &upstream, error);
    return shard->flow.upstream != NULL;
}

bool shards_open(struct shards *shards, struct commons *commons, struct buf *error)
{
    for (unsigned i = 0; i < shards->count; i++) {
        if (!shard_open(&shards->items[i], commons, error)) {
            return false;
        }
        shards->items[i].flow.number = i;
    }
    return true;
}

static void shard_flush_log(void *context)
{
    (void) context;
    log_flush();
}

/* Runs the loop on the calling thread; its log lines are written once per turn. */
static void shard_run(struct shard *shard)
{
    log_hold();
    loop_on_idle(shard->loop, shard_flush_log, NULL);
    loop_run(shard->loop);
    log_flush();
}

static void *shard_main(void *context)
{
    shard_run(context);
    return NULL;
}

void shards_run(struct shards *shards)
{
    /* Signals are events of the first loop: the other threads take none. */
    sigset_t all, before;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 1; i < shards->count; i++) {
        struct shard *shard = &shards->items[i];
        int failed = pthread_create(&shard->thread, NULL, shard_main, shard);
        if (failed != 0) {
            log_message(LOG_ERROR, "start", "could not start the thread of a loop: %s; the process ends",
                        strerror(failed));
            abort();
        }
        shard->has_thread = true;
    }
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    shard_run(&shards->items[0]);
    for (unsigned i = 1; i < shards->count; i++) {
        (void) pthread_join(shards->items[i].thread, NULL);
    }
}

void shards_close(struct shards *shards)
{
    for (unsigned i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->items[i];
        edge_free(shard->edge);
        shard->edge = NULL;
        if (shard->flow.upstream != NULL) {
            upstream_close(shard->flow.upstream);
        }
    }
}

void shards_free(struct shards *shards)
{
    for (unsigned i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->items[i];
        loop_free(shard->loop);
        if (shard->flow.desk != NULL) { /* it was opened */
            store_desk_close(shard->flow.desk);
            flow_fini(&shard->flow);
        }
    }
    free(shards->items);
}
