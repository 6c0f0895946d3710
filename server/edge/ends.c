/* ends.c - which clients have closed their sending half. Owns an epoll descriptor that watches every connection for its end alone: libmicrohttpd
 * tells of an end only by closing, and does not look at all at a connection that is suspended. One call asks for all connections at once, in turns
 * in which a request has ended; asking each one (recv with MSG_PEEK, twice per request) cost a fortieth of a request. The loop's thread. */
#include "server/edge/inside.h"

#include "server/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENDS_AT_ONCE = 64 };

void ends_open(struct edge *edge)
{
    edge->ends = epoll_create1(EPOLL_CLOEXEC);
    if (edge->ends < 0) {
        log_message(LOG_ERROR, "edge", "no descriptor for an epoll: %s; the process ends", strerror(errno));
        abort();
    }
}

void ends_close(struct edge *edge)
{
    (void) close(edge->ends);
}

void ends_watch(struct edge_connection *connection)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = connection };
    /* Without memory for it the kernel refuses: then its end is looked for each time. */
    connection->end_unseen = epoll_ctl(connection->edge->ends, EPOLL_CTL_ADD, connection->fd, &event) != 0;
}

/* Before the descriptor is closed: a copy of it that lingers would keep the watch alive. */
void ends_forget(struct edge_connection *connection)
{
    (void) epoll_ctl(connection->edge->ends, EPOLL_CTL_DEL, connection->fd, NULL);
}

void ends_read(struct edge *edge)
{
    struct epoll_event events[ENDS_AT_ONCE];
    int count;
    do {
        count = epoll_wait(edge->ends, events, ENDS_AT_ONCE, 0);
        for (int i = 0; i < count; i++) {
            struct edge_connection *connection = events[i].data.ptr;
            connection->end_unseen = true;
        }
    } while (count == ENDS_AT_ONCE);
}

bool connection_has_read_all(const struct edge_connection *connection)
{
    char byte;
    return connection->end_unseen && recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
