/* linger.c - sockets whose answer is out while the client may still be sending: see inside.h. Owns those descriptors. */
#include "server/edge/inside.h"

#include "server/base/memory.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_MS = 2000,           /* how long a client may take to read its answer and stop */
    LINGER_BYTES = 1024 * 1024, /* how much is read away */
    LINGER_SOCKETS_MAX = 128,   /* more: closed at once */
};

struct edge_linger {
    struct list_node node;
    struct edge *edge;
    int fd;
    struct loop_watch *watch;
    struct loop_timer timer;
    size_t left;
};

static void linger_end(void *context)
{
    struct edge_linger *linger = context;
    loop_timer_stop(&linger->timer);
    loop_watch_close(linger->watch);
    list_remove(&linger->edge->lingers, &linger->node);
    (void) close(linger->fd);
    free(linger);
}

static void linger_on_ready(void *context, int events)
{
    (void) events;
    struct edge_linger *linger = context;
    char waste[16384];
    ssize_t got = recv(linger->fd, waste, sizeof waste, MSG_DONTWAIT);
    if (got <= 0 || (size_t) got > linger->left) {
        linger_end(linger);
        return;
    }
    linger->left -= (size_t) got;
}

void linger_start(struct edge *edge, int fd)
{
    if (fd < 0) {
        return;
    }
    (void) shutdown(fd, SHUT_WR);
    if (edge->lingers.count >= LINGER_SOCKETS_MAX || edge->freeing) {
        (void) close(fd);
        return;
    }
    struct edge_linger *linger = memory_new(sizeof *linger);
    linger->edge = edge;
    linger->fd = fd;
    linger->left = LINGER_BYTES;
    list_append(&edge->lingers, &linger->node);
    loop_timer_init(&linger->timer, edge->loop, linger_end, linger);
    loop_timer_start(&linger->timer, LINGER_MS);
    linger->watch = loop_watch_new(edge->loop, fd, linger_on_ready, linger);
    loop_watch_set(linger->watch, LOOP_READABLE);
}

void linger_end_all(struct edge *edge)
{
    struct list_node *node;
    while ((node = list_first(&edge->lingers)) != NULL) {
        linger_end(LIST_ITEM(node, struct edge_linger, node));
    }
}
