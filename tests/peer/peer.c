/* peer.c - see peer.h: listening, counting, waiting. script.c serves the connections. */
#include "tests/peer/inside.h"

#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 512 };

static const struct peer_step plain_answer[] = { { PEER_BODY, NULL, 0 },
                                                 { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                                 PEER_END };

static void peer_must(bool ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "peer: %s: %s\n", what, strerror(errno));
        abort();
    }
}

/* --- listening --- */

/* A socket on peer->port (0: one of the kernel's choice). */
static int peer_bind_tcp(struct peer *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t) peer->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer_must(fd >= 0, "socket");
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    peer_must(bind(fd, (struct sockaddr *) &address, len) == 0, "bind");
    peer_must(getsockname(fd, (struct sockaddr *) &address, &len) == 0, "getsockname");
    peer->port = ntohs(address.sin_port);
    return fd;
}

/* The port is held by a socket that never listens: while the listener is closed nobody else may get it, and answer in its place. */
static void peer_listen_tcp(struct peer *peer)
{
    if (peer->port == 0) {
        peer->keeper = peer_bind_tcp(peer);
    }
    peer->listener = peer_bind_tcp(peer);
    peer_must(listen(peer->listener, BACKLOG) == 0, "listen");
    (void) snprintf(peer->url, sizeof peer->url, "http://127.0.0.1:%u", peer->port);
}

static void peer_listen_unix(struct peer *peer, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    peer_must(strlen(path) < sizeof address.sun_path, "a path of at most 107 bytes");
    memcpy(address.sun_path, path, strlen(path) + 1);
    (void) unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer_must(fd >= 0, "socket");
    peer_must(bind(fd, (struct sockaddr *) &address, sizeof address) == 0, "bind");
    peer_must(listen(fd, BACKLOG) == 0, "listen");
    peer->listener = fd;
    peer->unix_socket = true;
    (void) snprintf(peer->url, sizeof peer->url, "unix:%s", path);
}

/* A small stack: some tests have hundreds of connections. */
static void peer_start_link(struct peer *peer, int fd)
{
    struct peer_link *link = calloc(1, sizeof *link);
    peer_must(link != NULL, "memory");
    link->peer = peer;
    link->fd = fd;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t) 256 * 1024);
    pthread_mutex_lock(&peer->lock);
    if (peer->link_count == PEER_LINKS_MAX) {
        abort();
    }
    peer->links[peer->link_count++] = link;
    link->number = peer->link_count;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    peer_must(pthread_create(&link->thread, &attributes, peer_serve, link) == 0, "start a thread");
    pthread_attr_destroy(&attributes);
}

static void *peer_accept(void *argument)
{
    struct peer *peer = argument;
    struct pollfd polled[2] = { { .fd = peer->listener, .events = POLLIN }, { .fd = peer->wake[0], .events = POLLIN } };
    for (;;) {
        peer_must(poll(polled, 2, -1) > 0 || errno == EINTR, "poll");
        if (polled[1].revents != 0) {
            return NULL;
        }
        if (polled[0].revents != 0) {
            int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0) {
                peer_start_link(peer, fd);
            }
        }
    }
}

static void peer_start_accepting(struct peer *peer)
{
    peer_must(pipe(peer->wake) == 0, "pipe");
    peer_must(pthread_create(&peer->acceptor, NULL, peer_accept, peer) == 0, "start a thread");
    peer->accepting = true;
}

void peer_refuse(struct peer *peer)
{
    if (!peer->accepting) {
        return;
    }
    peer_must(write(peer->wake[1], "x", 1) == 1, "write");
    pthread_join(peer->acceptor, NULL);
    (void) close(peer->wake[0]);
    (void) close(peer->wake[1]);
    (void) close(peer->listener);
    peer->accepting = false;
}

void peer_accept_again(struct peer *peer)
{
    peer_listen_tcp(peer);
    peer_start_accepting(peer);
}

/* --- life --- */

static struct peer *peer_make(const char *path)
{
    struct peer *peer = calloc(1, sizeof *peer);
    peer_must(peer != NULL, "memory");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&peer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&peer->lock, NULL);
    peer->fallback = plain_answer;
    if (path != NULL) {
        peer_listen_unix(peer, path);
    } else {
        peer_listen_tcp(peer);
    }
    peer_start_accepting(peer);
    return peer;
}

struct peer *peer_new(void)
{
    return peer_make(NULL);
}

struct peer *peer_new_unix(const char *path)
{
    return peer_make(path);
}

void peer_free(struct peer *peer)
{
    if (peer == NULL) {
        return;
    }
    peer_refuse(peer);
    if (peer->unix_socket) {
        (void) unlink(peer->url + sizeof "unix:" - 1);
    } else {
        (void) close(peer->keeper);
    }
    pthread_mutex_lock(&peer->lock);
    peer->stopping = true;
    for (unsigned i = 0; i < peer->link_count; i++) {
        if (peer->links[i]->fd >= 0) {
            (void) shutdown(peer->links[i]->fd, SHUT_RDWR);
        }
    }
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    for (unsigned i = 0; i < peer->link_count; i++) {
        pthread_join(peer->links[i]->thread, NULL);
        free(peer->links[i]);
    }
    for (unsigned i = 0; i < peer->record_count; i++) {
        buf_fini(&peer->records[i]->bytes);
        free(peer->records[i]);
    }
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}

const char *peer_url(const struct peer *peer)
{
    return peer->url;
}

unsigned peer_port(const struct peer *peer)
{
    return peer->port;
}

/* --- scripts --- */

static void peer_choose(struct peer *peer, struct peer_choice choice)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->choice_count == PEER_SCRIPTS_MAX) {
        abort();
    }
    peer->choices[peer->choice_count++] = choice;
    pthread_mutex_unlock(&peer->lock);
}

void peer_script_default(struct peer *peer, const struct peer_step *steps)
{
    pthread_mutex_lock(&peer->lock);
    peer->fallback = steps;
    pthread_mutex_unlock(&peer->lock);
}

void peer_script_named(struct peer *peer, const char *name, const struct peer_step *steps)
{
    peer_choose(peer, (struct peer_choice){ .name = name, .steps = steps });
}

void peer_script_for_request(struct peer *peer, unsigned request, const struct peer_step *steps)
{
    peer_choose(peer, (struct peer_choice){ .request = request, .steps = steps });
}

void peer_script_for_connection(struct peer *peer, unsigned connection, const struct peer_step *steps)
{
    peer_choose(peer, (struct peer_choice){ .connection = connection, .steps = steps });
}

void peer_release(struct peer *peer, unsigned count)
{
    pthread_mutex_lock(&peer->lock);
    peer->releases += count;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
}

/* --- what it saw --- */

static unsigned peer_read_count(struct peer *peer, const unsigned *count)
{
    pthread_mutex_lock(&peer->lock);
    unsigned now = *count;
    pthread_mutex_unlock(&peer->lock);
    return now;
}

unsigned peer_count_requests(struct peer *peer)
{
    return peer_read_count(peer, &peer->record_count);
}

unsigned peer_count_whole(struct peer *peer)
{
    return peer_read_count(peer, &peer->whole);
}

unsigned peer_count_connections(struct peer *peer)
{
    return peer_read_count(peer, &peer->link_count);
}

unsigned peer_count_key(struct peer *peer, const char *key)
{
    unsigned count = 0;
    pthread_mutex_lock(&peer->lock);
    for (unsigned i = 0; i < peer->record_count; i++) {
        count += strcmp(peer->records[i]->key, key) == 0 ? 1 : 0;
    }
    pthread_mutex_unlock(&peer->lock);
    return count;
}

bool peer_request(struct peer *peer, unsigned n, struct buf *out)
{
    pthread_mutex_lock(&peer->lock);
    bool there = n >= 1 && n <= peer->record_count;
    if (there) {
        buf_append(out, buf_view(&peer->records[n - 1]->bytes));
    }
    pthread_mutex_unlock(&peer->lock);
    return there;
}

/* --- waiting --- */

static struct timespec peer_deadline(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t) (PEER_DEADLINE_MS / 1000) * suite_slowness();
    return until;
}

/* Under the lock. */
static bool peer_has_read(const struct peer *peer)
{
    for (unsigned i = 0; i < peer->link_count; i++) {
        const struct peer_link *link = peer->links[i];
        int unread = 0;
        bool open = link->fd >= 0 && link->stage != PEER_ACTS;
        if (open && (link->stage == PEER_READS || ioctl(link->fd, FIONREAD, &unread) != 0 || unread > 0)) {
            return false;
        }
    }
    return true;
}

bool peer_wait_read(struct peer *peer)
{
    struct timespec until = peer_deadline();
    pthread_mutex_lock(&peer->lock);
    while (!peer_has_read(peer) && pthread_cond_timedwait(&peer->changed, &peer->lock, &until) == 0) {
    }
    bool read = peer_has_read(peer);
    pthread_mutex_unlock(&peer->lock);
    return read;
}

static bool peer_wait_count(struct peer *peer, const unsigned *count, unsigned wanted)
{
    struct timespec until = peer_deadline();
    pthread_mutex_lock(&peer->lock);
    while (*count < wanted && pthread_cond_timedwait(&peer->changed, &peer->lock, &until) == 0) {
    }
    bool reached = *count >= wanted;
    pthread_mutex_unlock(&peer->lock);
    return reached;
}

bool peer_wait_requests(struct peer *peer, unsigned count)
{
    return peer_wait_count(peer, &peer->record_count, count);
}

bool peer_wait_whole(struct peer *peer, unsigned count)
{
    return peer_wait_count(peer, &peer->whole, count);
}

bool peer_wait_connections(struct peer *peer, unsigned count)
{
    return peer_wait_count(peer, &peer->link_count, count);
}

bool peer_wait_ended(struct peer *peer, unsigned count)
{
    return peer_wait_count(peer, &peer->ended, count);
}

bool peer_wait_stalled(struct peer *peer, unsigned count)
{
    return peer_wait_count(peer, &peer->stalled, count);
}
