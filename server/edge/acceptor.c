/* acceptor.c - a listening TCP socket on one loop. Owns the socket. The loop's thread.
 *
 * Our own accept instead of libmicrohttpd's: connections can be dealt to several loops, and an address that is in use is an error
 * at start (docs/facts.md 30; so no SO_REUSEPORT). */
#include "server/edge/edge.h"

#include "server/base/log.h"
#include "server/base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_BATCH = 64,     /* connections per wake-up: a flood must not starve the rest of the loop */
    ACCEPT_PAUSE_MS = 100, /* with no descriptor left: time for some to be closed */
    ADDRESS_BYTES = 64,
};

struct acceptor {
    struct loop *loop;
    int fd;
    struct loop_watch *watch;
    struct loop_timer pause;
    bool starved; /* logged once per shortage */
    void (*accepted)(void *context, int fd, const void *sockaddr, unsigned len);
    void *context;
    char address[ADDRESS_BYTES];
};

union socket_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* --- addresses --- */

static bool address_read(const char *text, union socket_address *address, socklen_t *len, struct buf *error)
{
    memset(address, 0, sizeof *address);
    struct view rest = view_of(text);
    bool is_six = rest.len > 0 && rest.ptr[0] == '[';
    const char *host_end = is_six ? strchr(text, ']') : strrchr(text, ':');
    const char *host = is_six ? text + 1 : text;
    const char *colon = host_end == NULL ? NULL : (is_six ? host_end + 1 : host_end);
    char name[ADDRESS_BYTES];
    if (colon == NULL || *colon != ':' || host_end == host || (size_t) (host_end - host) >= sizeof name) {
        buf_printf(error,
                   "\"%s\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)",
                   text);
        return false;
    }
    memcpy(name, host, (size_t) (host_end - host));
    name[host_end - host] = '\0';
    uint64_t port;
    if (!view_to_uint64(view_of(colon + 1), &port) || port > 65535) {
        buf_printf(error, "\"%s\": the port must be a number from 0 to 65535", text);
        return false;
    }
    bool good;
    if (is_six) {
        address->six.sin6_family = AF_INET6;
        address->six.sin6_port = htons((uint16_t) port);
        good = inet_pton(AF_INET6, name, &address->six.sin6_addr) == 1;
        *len = sizeof address->six;
    } else {
        address->four.sin_family = AF_INET;
        address->four.sin_port = htons((uint16_t) port);
        good = inet_pton(AF_INET, name, &address->four.sin_addr) == 1;
        *len = sizeof address->four;
    }
    if (!good) {
        buf_printf(error, "\"%s\": \"%s\" is no numeric %s address (host names are not looked up)", text, name,
                   is_six ? "IPv6" : "IPv4");
    }
    return good;
}

bool acceptor_check_address(const char *address, struct buf *error)
{
    union socket_address parsed;
    socklen_t len;
    return address_read(address, &parsed, &len, error);
}

static void acceptor_name(struct acceptor *acceptor)
{
    union socket_address address = { .six = { .sin6_family = AF_UNSPEC } };
    socklen_t len = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    uint16_t port = 0;
    if (getsockname(acceptor->fd, &address.any, &len) == 0) {
        bool is_six = address.any.sa_family == AF_INET6;
        const void *bytes = is_six ? (const void *) &address.six.sin6_addr : (const void *) &address.four.sin_addr;
        (void) inet_ntop(address.any.sa_family, bytes, host, sizeof host);
        port = ntohs(is_six ? address.six.sin6_port : address.four.sin_port);
        (void) snprintf(acceptor->address, sizeof acceptor->address, is_six ? "[%s]:%u" : "%s:%u", host,
                        (unsigned) port);
    }
}

/* --- accepting --- */

static bool accept_is_starved(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void acceptor_pause(struct acceptor *acceptor, int error)
{
    if (!acceptor->starved) {
        acceptor->starved = true;
        log_message(LOG_WARN, "accept",
                    "cannot take connections on %s: %s; they wait in the backlog, tried again every %d ms",
                    acceptor->address, strerror(error), ACCEPT_PAUSE_MS);
    }
    loop_watch_set(acceptor->watch, 0);
    loop_timer_start(&acceptor->pause, ACCEPT_PAUSE_MS);
}

static void acceptor_on_ready(void *context, int events)
{
    (void) events;
    struct acceptor *acceptor = context;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        union socket_address peer;
        socklen_t len = sizeof peer;
        int fd = accept4(acceptor->fd, &peer.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (accept_is_starved(errno)) {
                acceptor_pause(acceptor, errno);
                return;
            }
            if (errno == ECONNABORTED || errno == EINTR) {
                continue; /* that client left before it was taken */
            }
            return;
        }
        acceptor->starved = false;
        int on = 1;
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        acceptor->accepted(acceptor->context, fd, &peer, (unsigned) len);
    }
}

static void acceptor_on_pause_end(void *context)
{
    struct acceptor *acceptor = context;
    loop_watch_set(acceptor->watch, LOOP_READABLE);
}

/* --- life --- */

/* What to do about it. */
static const char *listen_way_on(int error_number)
{
    switch (error_number) {
    case EADDRINUSE:
        return ". Another process has this port (ss -ltnp tells which): stop it, or name another port";
    case EACCES:
        return ". Ports below 1024 take root or CAP_NET_BIND_SERVICE: give it that, or name a higher port";
    case EADDRNOTAVAIL:
        return ". This machine has no such address (ip address tells which it has): name one of its own";
    default:
        return "";
    }
}

static int acceptor_listen(const char *text, struct buf *error)
{
    union socket_address address;
    socklen_t len;
    if (!address_read(text, &address, &len, error)) {
        return -1;
    }
    int on = 1;
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        buf_printf(error, "cannot listen on %s: no socket: %s", text, strerror(errno));
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 || bind(fd, &address.any, len) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        buf_printf(error, "cannot listen on %s: %s%s", text, strerror(errno), listen_way_on(errno));
        (void) close(fd);
        return -1;
    }
    return fd;
}

struct acceptor *acceptor_open(struct loop *loop, const char *address,
                               void (*accepted)(void *context, int fd, const void *sockaddr, unsigned len),
                               void *context, struct buf *error)
{
    int fd = acceptor_listen(address, error);
    if (fd < 0) {
        return NULL;
    }
    struct acceptor *acceptor = memory_new(sizeof *acceptor);
    acceptor->loop = loop;
    acceptor->fd = fd;
    acceptor->accepted = accepted;
    acceptor->context = context;
    acceptor_name(acceptor);
    loop_timer_init(&acceptor->pause, loop, acceptor_on_pause_end, acceptor);
    acceptor->watch = loop_watch_new(loop, fd, acceptor_on_ready, acceptor);
    loop_watch_set(acceptor->watch, LOOP_READABLE);
    return acceptor;
}

const char *acceptor_address(const struct acceptor *acceptor)
{
    return acceptor->address;
}

void acceptor_close(struct acceptor *acceptor)
{
    if (acceptor == NULL) {
        return;
    }
    loop_timer_stop(&acceptor->pause);
    loop_watch_close(acceptor->watch);
    (void) close(acceptor->fd);
    free(acceptor);
}
