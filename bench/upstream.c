/* upstream.c - the handler of the benchmark: answers every request at once, out of memory, and counts.
 *
 *   upstream              listens on 127.0.0.1, a port of the kernel's choice, and prints it
 *   upstream --free-port  prints a port that is free now, for programs that cannot ask the kernel (nginx)
 *
 * One thread, epoll, HTTP/1.1 with Content-Length only. GET /count tells how many POSTs there were; everything else gets 201
 * with 300 bytes of JSON and about 140 bytes of fields. Owns nothing that outlives a request. Never the bottleneck. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INPUT_BYTES = 16384, BODY_BYTES = 300, EVENTS = 256, BACKLOG = 1024 };

struct connection {
    int fd;
    size_t len; /* bytes in input that are not answered yet */
    char input[INPUT_BYTES];
};

static char answer[1024];
static size_t answer_len;
static uint64_t posts;

static void die(const char *what)
{
    fprintf(stderr, "bench/upstream: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void prepare_answer(void)
{
    char body[BODY_BYTES + 1];
    int start =
        snprintf(body, sizeof body, "{\"order\":1,\"execution\":\"0123456789abcdef\",\"item\":\"tea\",\"note\":\"");
    memset(body + start, 'x', (size_t) (BODY_BYTES - 2 - start));
    memcpy(body + BODY_BYTES - 2, "\"}", 3);
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                       "Location: /orders/00000001\r\nX-Request-Id: 0123456789abcdef0123456789abcdef\r\n\r\n%s",
                       BODY_BYTES, body);
    answer_len = (size_t) len;
}

/* The bytes of the first request in text[0..len), its body included; 0 when it is not whole. */
static size_t request_bytes(const char *text, size_t len)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    size_t head = (size_t) (end - text) + 4;
    size_t body = 0;
    const char *line = text;
    while ((line = memchr(line, '\n', (size_t) (end - line))) != NULL) {
        line++;
        if (strncasecmp(line, "content-length:", 15) == 0) {
            body = (size_t) strtoul(line + 15, NULL, 10);
        }
    }
    return len < head + body ? 0 : head + body;
}

static bool send_all(int fd, const char *text, size_t len)
{
    return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t) len;
}

static bool answer_request(const struct connection *connection)
{
    if (strncmp(connection->input, "GET /count ", 11) == 0) {
        char text[256], number[32];
        int digits = snprintf(number, sizeof number, "%llu", (unsigned long long) posts);
        int len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", digits, number);
        return send_all(connection->fd, text, (size_t) len);
    }
    posts += strncmp(connection->input, "POST ", 5) == 0;
    return send_all(connection->fd, answer, answer_len);
}

/* False: the connection is over. */
static bool serve(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->input + connection->len, INPUT_BYTES - connection->len, 0);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    connection->len += (size_t) got;
    size_t used;
    while ((used = request_bytes(connection->input, connection->len)) != 0) {
        if (!answer_request(connection)) {
            return false;
        }
        connection->len -= used;
        memmove(connection->input, connection->input + used, connection->len);
    }
    return connection->len < INPUT_BYTES;
}

static int listen_on_loopback(unsigned *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *) &address, &len) != 0 || listen(fd, BACKLOG) != 0) {
        die("cannot listen on 127.0.0.1");
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static void accept_one(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection = fd < 0 ? NULL : calloc(1, sizeof *connection);
    if (connection == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->fd = fd;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("epoll_ctl");
    }
}

int main(int argc, char **argv)
{
    unsigned port;
    int listener = listen_on_loopback(&port);
    printf("%u\n", port);
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "--free-port") == 0) {
        return 0;
    }
    prepare_answer();
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        die("epoll");
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                accept_one(epoll, listener);
            } else if (!serve(connection)) {
                close(connection->fd);
                free(connection);
            }
        }
    }
}
