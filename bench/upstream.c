/* upstream.c - the handler of the benchmark: answers every request out of memory, and counts.
 *
 *   upstream [--delay MS] [--answer BYTES]   listens on 127.0.0.1, a port of the kernel's choice, and prints it
 *   upstream --free-port                     prints a port that is free now, for programs that cannot ask the kernel (nginx)
 *
 * One thread, epoll, HTTP/1.1 with Content-Length only. GET /count tells how many POSTs there were; everything else gets 201
 * with BYTES (300) of JSON and about 140 bytes of fields, MS (0) after it was whole. Bodies are counted and thrown away. Owns
 * nothing that outlives a request. Never the bottleneck. */
#include "bench/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

enum {
    INPUT_BYTES = 16384,
    SINK_BYTES = 256 * 1024,
    EVENTS = 256,
    BACKLOG = 1024,
    ANSWER_BYTES = 300,
    HEAD_ROOM = 512
};

struct connection {
    int fd;
    bool waits;              /* its answer is due later */
    bool over;               /* the client left while it waited */
    int64_t due_ms;          /* of the answer */
    struct connection *next; /* of those that wait; one delay for all, so they are in order */
    size_t body_left;        /* bytes of the request's body that did not come yet */
    bool in_body;
    size_t len; /* bytes in input that are not answered yet */
    char input[INPUT_BYTES];
};

static char *answer;
static size_t answer_len;
static size_t answer_bytes = ANSWER_BYTES;
static int64_t delay_ms;
static uint64_t posts;
static struct connection *waiting_first, *waiting_last;
static char sink[SINK_BYTES];

static void die(const char *what)
{
    wire_die("upstream", what);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void prepare_answer(void)
{
    static const char start[] = "{\"order\":1,\"execution\":\"0123456789abcdef\",\"item\":\"tea\",\"note\":\"";
    if (answer_bytes < sizeof start + 1) {
        answer_bytes = sizeof start + 1;
    }
    answer = malloc(answer_bytes + HEAD_ROOM);
    if (answer == NULL) {
        die("no memory for the answer");
    }
    int head = snprintf(answer, HEAD_ROOM,
                        "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                        "Location: /orders/00000001\r\nX-Request-Id: 0123456789abcdef0123456789abcdef\r\n\r\n",
                        answer_bytes);
    char *body = answer + head;
    memset(body, 'x', answer_bytes);
    memcpy(body, start, sizeof start - 1);
    memcpy(body + answer_bytes - 2, "\"}", 2);
    answer_len = (size_t) head + answer_bytes;
}

/* An answer that does not fit into the socket's buffer is sent blocking: it is for bodies of megabytes only. */
static bool send_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return false;
        }
        if (sent > 0) {
            text += sent;
            len -= (size_t) sent;
        }
    }
    return true;
}

static bool answer_request(struct connection *connection)
{
    if (strncmp(connection->input, "GET /count ", 11) == 0) {
        char text[256], number[32];
        int digits = snprintf(number, sizeof number, "%llu", (unsigned long long) posts);
        int len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", digits, number);
        return send_all(connection->fd, text, (size_t) len);
    }
    posts += strncmp(connection->input, "POST ", 5) == 0;
    if (delay_ms == 0) {
        return send_all(connection->fd, answer, answer_len);
    }
    connection->waits = true;
    connection->due_ms = now_ms() + delay_ms;
    connection->next = NULL;
    if (waiting_last != NULL) {
        waiting_last->next = connection;
    } else {
        waiting_first = connection;
    }
    waiting_last = connection;
    return true;
}

/* Answers what is whole in input. False: the connection is over. */
static bool answer_whole(struct connection *connection)
{
    size_t body, head;
    while (!connection->waits && !connection->in_body &&
           (head = wire_head(connection->input, connection->len, &body)) != 0) {
        size_t here = connection->len - head < body ? connection->len - head : body;
        connection->body_left = body - here;
        connection->in_body = connection->body_left > 0; /* the head stays in input until then */
        if (connection->in_body) {
            connection->len = head;
            return true;
        }
        if (!answer_request(connection)) {
            return false;
        }
        connection->len -= head + here;
        memmove(connection->input, connection->input + head + here, connection->len);
    }
    return connection->len < INPUT_BYTES;
}

static bool skip_body(struct connection *connection)
{
    size_t want = connection->body_left < sizeof sink ? connection->body_left : sizeof sink;
    ssize_t got = recv(connection->fd, sink, want, 0);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    connection->body_left -= (size_t) got;
    if (connection->body_left > 0) {
        return true;
    }
    connection->in_body = false;
    bool good = answer_request(connection);
    connection->len = 0;
    return good;
}

/* False: the connection is over. */
static bool serve(struct connection *connection)
{
    if (connection->in_body) {
        return skip_body(connection);
    }
    ssize_t got = recv(connection->fd, connection->input + connection->len, INPUT_BYTES - connection->len, 0);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    connection->len += (size_t) got;
    return answer_whole(connection);
}

static void end(struct connection *connection)
{
    close(connection->fd); /* and with it its place in epoll */
    if (connection->waits) {
        connection->over = true; /* freed when its turn comes */
    } else {
        free(connection);
    }
}

static void answer_due(void)
{
    int64_t now = now_ms();
    while (waiting_first != NULL && waiting_first->due_ms <= now) {
        struct connection *connection = waiting_first;
        waiting_first = connection->next;
        waiting_last = waiting_first == NULL ? NULL : waiting_last;
        connection->waits = false;
        if (connection->over) {
            free(connection);
        } else if (!send_all(connection->fd, answer, answer_len) || !answer_whole(connection)) {
            end(connection);
        }
    }
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

static int wait_ms(void)
{
    if (waiting_first == NULL) {
        return -1;
    }
    int64_t left = waiting_first->due_ms - now_ms();
    return left > 0 ? (int) left : 0;
}

static void run(int listener)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        die("epoll");
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, wait_ms());
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                accept_one(epoll, listener);
            } else if (!serve(connection)) {
                end(connection);
            }
        }
        answer_due();
    }
}

int main(int argc, char **argv)
{
    unsigned port;
    int listener = wire_listen("upstream", &port);
    printf("%u\n", port);
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "--free-port") == 0) {
        return 0;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--delay") == 0) {
            delay_ms = strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--answer") == 0) {
            answer_bytes = strtoul(argv[i + 1], NULL, 10);
        } else {
            fprintf(stderr, "usage: upstream [--delay MS] [--answer BYTES] | --free-port\n");
            return 64;
        }
    }
    prepare_answer();
    run(listener);
}
