/* idle.c - makes keyed requests over many connections, one after the other, and then keeps all of them open and idle.
 *
 *   idle PORT CONNECTIONS REQUESTS    prints "ready" when each connection has had REQUESTS answers; ends when stdin does
 *
 * The keys are the same in every run (request n has key n), so that a second run is answered by replays. Blocking sockets,
 * one thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "bench/idle: %s: %s\n", what, errno != 0 ? strerror(errno) : "not as expected");
    exit(1);
}

static int connect_to(unsigned port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((unsigned short) port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address) != 0) {
        die("cannot connect");
    }
    return fd;
}

/* Reads one answer: its head, and the body that Content-Length tells. */
static void read_answer(int fd)
{
    char text[8192];
    size_t len = 0;
    for (;;) {
        ssize_t got = recv(fd, text + len, sizeof text - 1 - len, 0);
        if (got <= 0) {
            die("no whole answer");
        }
        len += (size_t) got;
        text[len] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strcasestr(text, "\r\ncontent-length:");
        if (end != NULL && length != NULL && len >= (size_t) (end - text) + 4 + strtoul(length + 17, NULL, 10)) {
            break;
        }
    }
    if (strncmp(text, "HTTP/1.1 201", 12) != 0) {
        fprintf(stderr, "%.*s\n", 200, text);
        die("an answer that is not 201");
    }
}

static void request(int fd, unsigned port, unsigned number)
{
    char text[512];
    int len =
        snprintf(text, sizeof text,
                 "POST /orders HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nIdempotency-Key: %08x-0000-4000-9000-000000000000\r\n"
                 "Content-Type: application/json\r\nContent-Length: 25\r\n\r\n{\"item\":\"tea\",\"amount\":5}",
                 port, number);
    if (send(fd, text, (size_t) len, MSG_NOSIGNAL) != (ssize_t) len) {
        die("cannot send");
    }
    read_answer(fd);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: idle PORT CONNECTIONS REQUESTS\n");
        return 64;
    }
    unsigned port = (unsigned) strtoul(argv[1], NULL, 10);
    unsigned connections = (unsigned) strtoul(argv[2], NULL, 10);
    unsigned requests = (unsigned) strtoul(argv[3], NULL, 10);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    unsigned number = 0;
    for (unsigned i = 0; i < connections; i++) {
        int fd = connect_to(port);
        for (unsigned j = 0; j < requests; j++) {
            request(fd, port, number++);
        }
    }
    printf("ready\n");
    fflush(stdout);
    char end;
    return read(STDIN_FILENO, &end, 1) < 0;
}
