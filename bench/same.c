/* same.c - whether a server keeps the promise that is measured: the same key many times at once, then again, then with another
 * payload.
 *
 *   same PORT KEYS AT_ONCE SEED    prints "created running replayed odd mismatch_refused"
 *
 * For each of KEYS keys: one POST on each of AT_ONCE connections, all sent before any answer is read. They may be 201 (`created`
 * counts those without a replay's field) or 409 (`running`). Then one repeat, which must be 201 with the body of the first
 * (`replayed`), and one with another payload, which must be 422 (`mismatch_refused`). Everything else is `odd`. Executions are
 * counted at the handler by whoever calls this. Blocking sockets, one thread. */
#include "bench/wire.h"

#include <stdbool.h>
#include <sys/time.h>

enum { ANSWER_MAX = 8192, CONNECTIONS_MAX = 256, PATIENCE_S = 20 };

struct reply {
    int status;
    bool replay;
    size_t body_len;
    char body[ANSWER_MAX];
};

static void die(const char *what)
{
    wire_die("same", what);
}

static int connect_patiently(unsigned port)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int fd = wire_connect("same", port);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        die("cannot set a time-out");
    }
    return fd;
}

static void send_order(int fd, unsigned port, unsigned seed, unsigned key, unsigned amount)
{
    char body[64], text[512];
    int body_len = snprintf(body, sizeof body, "{\"item\":\"tea\",\"amount\":%u}", amount);
    int len = snprintf(text, sizeof text,
                       "POST /orders HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nIdempotency-Key: %08x-0000-4000-a000-%012x\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       port, seed, key, body_len, body);
    if (send(fd, text, (size_t) len, MSG_NOSIGNAL) != (ssize_t) len) {
        die("cannot send");
    }
}

/* One answer with Content-Length. */
static void read_reply(int fd, struct reply *reply)
{
    char text[ANSWER_MAX];
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
        if (end == NULL || length == NULL) {
            continue;
        }
        size_t head = (size_t) (end - text) + 4;
        reply->body_len = strtoul(length + 17, NULL, 10);
        if (len >= head + reply->body_len) {
            reply->status = (int) strtol(text + strlen("HTTP/1.1 "), NULL, 10);
            memcpy(reply->body, text + head, reply->body_len);
            const char *field = strcasestr(text, "\r\nidempotent-replayed: true");
            reply->replay = field != NULL && field < end;
            return;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: same PORT KEYS AT_ONCE SEED\n");
        return 64;
    }
    unsigned port = (unsigned) strtoul(argv[1], NULL, 10), keys = (unsigned) strtoul(argv[2], NULL, 10);
    unsigned at_once = (unsigned) strtoul(argv[3], NULL, 10), seed = (unsigned) strtoul(argv[4], NULL, 10);
    unsigned created = 0, running = 0, replayed = 0, odd = 0, refused = 0;
    static int fds[CONNECTIONS_MAX];
    static struct reply first, reply;
    at_once = at_once < CONNECTIONS_MAX ? at_once : CONNECTIONS_MAX;
    for (unsigned i = 0; i < at_once; i++) {
        fds[i] = connect_patiently(port);
    }
    for (unsigned key = 0; key < keys; key++) {
        first.status = 0;
        for (unsigned i = 0; i < at_once; i++) {
            send_order(fds[i], port, seed, key, 5);
        }
        for (unsigned i = 0; i < at_once; i++) {
            read_reply(fds[i], &reply);
            created += reply.status == 201 && !reply.replay;
            running += reply.status == 409;
            odd += reply.status != 201 && reply.status != 409;
            first = reply.status == 201 ? reply : first;
        }
        send_order(fds[0], port, seed, key, 5);
        read_reply(fds[0], &reply);
        bool same = reply.status == 201 && reply.body_len == first.body_len &&
                    memcmp(reply.body, first.body, first.body_len) == 0;
        replayed += same;
        odd += !same;
        send_order(fds[0], port, seed, key, 6);
        read_reply(fds[0], &reply);
        refused += reply.status == 422;
        odd += reply.status != 422;
    }
    printf("%u %u %u %u %u\n", created, running, replayed, odd, refused);
    return 0;
}
