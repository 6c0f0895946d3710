/* main.c - the oracle: a handler that writes every request down, durably, before it acts on it, so that what it says can be believed
 * whatever is killed. A program of its own, so that it can be stopped and killed too; started again on the same ledger, it goes on.
 *
 *   proof-oracle --listen 127.0.0.1:PORT --ledger FILE
 *
 * The ledger holds lines `arrival ...` (tests/proof/history/history.h). Read from a request are Idempotency-Key, X-Tenant, X-Attempt,
 * Nonbis-Execution, Nonbis-Command-Id, the body, and X-Act, which says what to do with it:
 *
 *   (nothing)     act, and answer 201 with the execution's id in X-Execution and in the body
 *   decline       do nothing, and say so: 429
 *   close         act, and close without an answer            cut           act, and close in the middle of the answer
 *   late=MS       act, and answer so much later               drip=MS       act, and answer a byte at a time, so far apart
 *   hold          act, and answer once POST /let-go has come  wait-cut      as cut, but half of it is sent, and then it waits to be killed
 *
 * POST /let-go lets everybody go that holds, now and later. GET /holds/N is answered once N hold at the same time, GET /acted/N once N have acted.
 * A thread per connection, blocking sockets. */
#include "tests/proof/history/history.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY_ROOM = 128, HEAD_MAX = 16 * 1024, BODY_MAX = 1024 * 1024, BACKLOG = 1024, STACK_BYTES = 256 * 1024 };

static struct {
    int ledger;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool let_go;
    unsigned holds, acted;
} oracle = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

struct request {
    int fd;
    char head[HEAD_MAX + 1]; /* NUL-terminated */
    char *body;
    size_t body_len;
};

static void fail(const char *what)
{
    (void) fprintf(stderr, "proof-oracle: could not %s: %s; it ends\n", what, strerror(errno));
    exit(1);
}

/* --- reading --- */

static void field(const struct request *request, const char *name, char *value, size_t size)
{
    size_t name_len = strlen(name);
    value[0] = '\0';
    for (const char *line = strstr(request->head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, name_len) == 0 && line[2 + name_len] == ':') {
            const char *start = line + 3 + name_len;
            start += strspn(start, " ");
            (void) snprintf(value, size, "%.*s", (int) strcspn(start, "\r"), start);
            return;
        }
    }
}

/* A byte at a time: a request of a kept connection must not be read into the one before it. */
static bool read_head(struct request *request)
{
    for (size_t len = 0; len < HEAD_MAX; len++) {
        if (recv(request->fd, &request->head[len], 1, 0) != 1) {
            return false;
        }
        request->head[len + 1] = '\0';
        if (len >= 3 && memcmp(&request->head[len - 3], "\r\n\r\n", 4) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_request(struct request *request)
{
    char length[24];
    if (!read_head(request)) {
        return false;
    }
    field(request, "Content-Length", length, sizeof length);
    request->body_len = strtoul(length, NULL, 10);
    if (request->body_len > BODY_MAX) {
        return false;
    }
    request->body = malloc(request->body_len + 1);
    for (size_t got = 0; request->body != NULL && got < request->body_len;) {
        ssize_t n = recv(request->fd, request->body + got, request->body_len - got, 0);
        if (n <= 0) {
            return false;
        }
        got += (size_t) n;
    }
    return request->body != NULL;
}

/* --- answering --- */

static bool send_all(int fd, const char *bytes, size_t len)
{
    for (size_t went = 0; went < len;) {
        ssize_t n = send(fd, bytes + went, len - went, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        went += (size_t) n;
    }
    return true;
}

/* A handler that is slow: this is the fault itself, not a wait for anything. Ends early when the other side leaves. */
static bool linger(int fd, int ms)
{
    struct pollfd one = { .fd = fd, .events = POLLRDHUP };
    return poll(&one, 1, ms) == 0;
}

static bool send_drip(int fd, const char *bytes, size_t len, int ms)
{
    for (size_t i = 0; i < len; i++) {
        if (!send_all(fd, bytes + i, 1) || !linger(fd, ms)) {
            return false;
        }
    }
    return true;
}

static bool answer_plainly(int fd, const char *status)
{
    char text[128];
    int len = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
    return send_all(fd, text, (size_t) len);
}

static void hold(void)
{
    pthread_mutex_lock(&oracle.lock);
    oracle.holds++;
    pthread_cond_broadcast(&oracle.changed);
    while (!oracle.let_go) {
        pthread_cond_wait(&oracle.changed, &oracle.lock);
    }
    oracle.holds--;
    pthread_mutex_unlock(&oracle.lock);
}

/* Of an execution; its length. */
static int make_body(const struct history_event *event, char body[BODY_ROOM])
{
    return snprintf(body, BODY_ROOM, "{\"execution\":\"%s\",\"number\":%u,\"of\":\"%s\"}", event->execution,
                    event->number, event->payload);
}

static bool answer_act(const struct request *request, const struct history_event *event, const char *act)
{
    char body[BODY_ROOM], text[512];
    const char *equals = strchr(act, '=');
    int ms = equals != NULL ? (int) strtol(equals + 1, NULL, 10) : 0;
    int body_len = make_body(event, body);
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Execution: %s\r\n"
                       "Content-Length: %d\r\n\r\n%s",
                       event->execution, body_len, body);
    size_t half = (size_t) (len - body_len / 2);
    if (strcmp(act, "close") == 0) {
        return false;
    }
    if (strcmp(act, "hold") == 0) {
        hold();
    } else if (strcmp(act, "cut") == 0 || strcmp(act, "wait-cut") == 0) {
        (void) send_all(request->fd, text, half);
        if (act[0] == 'w') {
            hold();
        }
        return false;
    } else if (strncmp(act, "late=", 5) == 0 && !linger(request->fd, ms)) {
        return false;
    } else if (strncmp(act, "drip=", 5) == 0) {
        return send_drip(request->fd, text, (size_t) len, ms);
    }
    return send_all(request->fd, text, (size_t) len);
}

/* --- the ledger --- */

static int64_t now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* On the disk when it returns. One write with O_APPEND: lines of several threads stand one behind the other. */
static void write_down(const struct history_event *event)
{
    struct buf line;
    buf_init(&line, 4096);
    history_write_event(event, &line);
    if (line.failed || write(oracle.ledger, line.ptr, line.len) != (ssize_t) line.len ||
        fdatasync(oracle.ledger) != 0) {
        fail("write the ledger");
    }
    buf_fini(&line);
}

static bool act(const struct request *request)
{
    char act[32], number[16], body[BODY_ROOM];
    uint64_t id = 0;
    struct history_event event = { .kind = HISTORY_ARRIVAL };
    event.from = event.to = now_ns();
    field(request, "X-Act", act, sizeof act);
    field(request, "X-Tenant", event.tenant, sizeof event.tenant);
    field(request, "Idempotency-Key", event.key, sizeof event.key);
    field(request, "Nonbis-Command-Id", event.command, sizeof event.command);
    field(request, "X-Attempt", number, sizeof number);
    event.no = (unsigned) strtoul(number, NULL, 10);
    field(request, "Nonbis-Execution", number, sizeof number);
    event.number = (unsigned) strtoul(number, NULL, 10);
    history_hash(view_make(request->body, request->body_len), event.payload);
    if (getrandom(&id, sizeof id, 0) != (ssize_t) sizeof id) {
        fail("draw an id");
    }
    (void) snprintf(event.execution, sizeof event.execution, "%016llx", (unsigned long long) id);
    bool declines = strcmp(act, "decline") == 0;
    bool breaks = strcmp(act, "close") == 0 || strcmp(act, "cut") == 0 || strcmp(act, "wait-cut") == 0;
    (void) snprintf(event.does, sizeof event.does, "%s", declines ? "decline" : breaks ? "break" : "run");
    if (!declines) {
        history_hash(view_make(body, (size_t) make_body(&event, body)), event.body);
    }
    write_down(&event);
    pthread_mutex_lock(&oracle.lock);
    oracle.acted++;
    pthread_cond_broadcast(&oracle.changed);
    pthread_mutex_unlock(&oracle.lock);
    return declines ? answer_plainly(request->fd, "429 Too Many Requests") : answer_act(request, &event, act);
}

/* --- connections --- */

static void wait_for(const unsigned *count, const char *text)
{
    unsigned wanted = (unsigned) strtoul(text, NULL, 10);
    pthread_mutex_lock(&oracle.lock);
    while (*count < wanted) {
        pthread_cond_wait(&oracle.changed, &oracle.lock);
    }
    pthread_mutex_unlock(&oracle.lock);
}

static bool serve_request(const struct request *request)
{
    static const char let_go[] = "POST /let-go ", holds[] = "GET /holds/", acted[] = "GET /acted/";
    const char *head = request->head;
    if (strncmp(head, holds, sizeof holds - 1) == 0) {
        wait_for(&oracle.holds, head + sizeof holds - 1);
    } else if (strncmp(head, acted, sizeof acted - 1) == 0) {
        wait_for(&oracle.acted, head + sizeof acted - 1);
    } else if (strncmp(head, let_go, sizeof let_go - 1) == 0) {
        pthread_mutex_lock(&oracle.lock);
        oracle.let_go = true;
        pthread_cond_broadcast(&oracle.changed);
        pthread_mutex_unlock(&oracle.lock);
    } else {
        return act(request);
    }
    return answer_plainly(request->fd, "200 OK");
}

static void *connection_run(void *context)
{
    struct request *request = context;
    bool more = true;
    while (more) {
        more = read_request(request) && serve_request(request);
        free(request->body);
        request->body = NULL;
    }
    (void) close(request->fd);
    free(request);
    return NULL;
}

static int listen_on(const char *address)
{
    char host[64], *colon;
    struct sockaddr_in to = { .sin_family = AF_INET };
    socklen_t len = sizeof to;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void) snprintf(host, sizeof host, "%s", address);
    colon = strchr(host, ':');
    if (colon == NULL) {
        errno = EINVAL;
        fail("read the address of --listen");
    } else {
        *colon = '\0';
        to.sin_port = htons((uint16_t) strtoul(colon + 1, NULL, 10));
    }
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one); /* whoever starts it may hold its port */
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1 || bind(fd, (struct sockaddr *) &to, sizeof to) != 0 ||
        listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *) &to, &len) != 0) {
        fail("listen");
    }
    (void) printf("listening on %s:%u\n", host, ntohs(to.sin_port));
    (void) fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 5 || strcmp(argv[1], "--listen") != 0 || strcmp(argv[3], "--ledger") != 0) {
        (void) fprintf(stderr, "usage: proof-oracle --listen ADDRESS --ledger FILE\n");
        return 64;
    }
    oracle.ledger = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (oracle.ledger < 0) {
        fail("open the ledger");
    }
    int listener = listen_on(argv[2]);
    pthread_attr_t attributes;
    (void) pthread_attr_init(&attributes);
    (void) pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t thread;
        int one = 1;
        struct request *request = calloc(1, sizeof *request);
        if (request == NULL) {
            fail("take a connection");
        }
        request->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        (void) setsockopt(request->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (request->fd < 0 || pthread_create(&thread, &attributes, connection_run, request) != 0) {
            fail("take a connection");
        }
    }
}
