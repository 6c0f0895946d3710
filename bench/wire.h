/* wire.h - the little HTTP/1.1 that the servers of the benchmark speak: Content-Length only, heads whole in one buffer. */
#ifndef NONBIS_BENCH_WIRE_H
#define NONBIS_BENCH_WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WIRE_BACKLOG = 1024 };

static inline void wire_die(const char *program, const char *what)
{
    fprintf(stderr, "bench/%s: %s: %s\n", program, what, errno != 0 ? strerror(errno) : "not as expected");
    exit(1);
}

/* The bytes of the head in front of text, blank line included, and of the body that it announces; 0 when the head is not whole. */
static inline size_t wire_head(const char *text, size_t len, size_t *body)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    *body = 0;
    if (end == NULL) {
        return 0;
    }
    const char *line = text;
    while ((line = memchr(line, '\n', (size_t) (end - line))) != NULL) {
        line++;
        if (strncasecmp(line, "content-length:", 15) == 0) {
            *body = (size_t) strtoul(line + 15, NULL, 10);
        }
    }
    return (size_t) (end - text) + 4;
}

/* On 127.0.0.1, a port of the kernel's choice. */
static inline int wire_listen(const char *program, unsigned *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *) &address, &len) != 0 || listen(fd, WIRE_BACKLOG) != 0) {
        wire_die(program, "cannot listen on 127.0.0.1");
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static inline int wire_connect(const char *program, unsigned port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((unsigned short) port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        wire_die(program, "cannot connect");
    }
    return fd;
}

#endif
