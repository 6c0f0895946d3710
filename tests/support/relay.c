/* relay.c - see relay.h. A thread accepts, a thread per connection works; blocking sockets, whose ends wake them. */
#include "tests/support/relay.h"

#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PLANS_MAX = 1024, CONNECTIONS_MAX = 256, REQUEST_MAX = 64 * 1024, DEADLINE_S = 20 };

struct plan {
    char key[64];
    enum relay_deed deed;
    unsigned times;
};

struct relay {
    char target[64], address[64];
    unsigned port;
    pthread_t acceptor;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int keeper;   /* of the port */
    int listener; /* -1: refusing */
    bool ending;
    struct plan plans[PLANS_MAX];
    unsigned plan_count, requests, done[RELAY_DEEDS];
    int connections[CONNECTIONS_MAX]; /* of clients; -1: free */
    unsigned open;
};

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
        abort();
    }
}

/* ---- one request -------------------------------------------------------------------------------------------------- */

/* Reads until a whole request is there: its length, 0 when the client ended. */
static size_t request_read(int fd, char *text)
{
    size_t len = 0;
    for (;;) {
        text[len] = '\0';
        const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
        size_t body = end != NULL && length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
        size_t whole = end != NULL ? (size_t) (end - text) + 4 + body : REQUEST_MAX;
        if (end != NULL && len >= whole) {
            return whole; /* this client does not pipeline */
        }
        ssize_t got = len < REQUEST_MAX - 1 ? recv(fd, text + len, REQUEST_MAX - 1 - len, 0) : 0;
        if (got <= 0) {
            return 0;
        }
        len += (size_t) got;
    }
}

static enum relay_deed deed_take(struct relay *relay, const char *text)
{
    enum relay_deed deed = RELAY_PASS;
    char key[64] = "";
    const char *field = strcasestr(text, "\r\nIdempotency-Key: ");
    if (field != NULL) {
        (void) snprintf(key, sizeof key, "%.*s", (int) strcspn(field + 19, "\r"), field + 19);
    }
    bool own = strstr(text, " /_nonbis") != NULL && strstr(text, " /_nonbis") < strstr(text, "\r\n");
    pthread_mutex_lock(&relay->lock);
    for (unsigned i = 0; i < relay->plan_count && !own && deed == RELAY_PASS; i++) {
        if (relay->plans[i].times > 0 && strcmp(relay->plans[i].key, key) == 0) {
            relay->plans[i].times--;
            deed = relay->plans[i].deed;
        }
    }
    relay->done[deed]++;
    relay->requests++;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    return deed;
}

/* False: the connection to the client ends here. */
static bool hand_on(struct relay *relay, int client, const char *text, size_t len, enum relay_deed deed)
{
    int server = deed != RELAY_DROP_REQUEST ? http_connect(relay->target) : -1;
    bool good = false;
    if (server >= 0 && http_send(server, text, len)) {
        struct http_answer answer = http_receive(server, strncmp(text, "HEAD ", 5) == 0, NULL);
        if (answer.whole && deed != RELAY_LOSE_ANSWER) {
            size_t head = strlen(answer.head), size = head + 4 + answer.body_len;
            char *whole = malloc(size + 1);
            (void) snprintf(whole, size + 1, "%s\r\n\r\n", answer.head);
            memcpy(whole + head + 4, answer.body, answer.body_len);
            good = http_send(client, whole, deed == RELAY_CUT_ANSWER ? size - 1 : size) && deed == RELAY_PASS;
            free(whole);
        }
        http_answer_free(&answer);
    }
    if (server >= 0) {
        close(server);
    }
    return good;
}

struct work {
    struct relay *relay;
    int place;
};

static void *connection_run(void *arg)
{
    struct work *work = arg;
    struct relay *relay = work->relay;
    int fd = relay->connections[work->place];
    char *text = malloc(REQUEST_MAX);
    size_t len;
    while ((len = request_read(fd, text)) > 0 && hand_on(relay, fd, text, len, deed_take(relay, text))) {
    }
    free(text);
    pthread_mutex_lock(&relay->lock);
    close(fd);
    relay->connections[work->place] = -1;
    relay->open--;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    free(work);
    return NULL;
}

/* ---- listening ---------------------------------------------------------------------------------------------------- */

static int bind_to(unsigned *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t) *port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    must(bind(fd, (struct sockaddr *) &address, len) == 0, "bind");
    must(getsockname(fd, (struct sockaddr *) &address, &len) == 0, "getsockname");
    *port = ntohs(address.sin_port);
    return fd;
}

static int listen_on(unsigned *port)
{
    int fd = bind_to(port);
    must(listen(fd, CONNECTIONS_MAX) == 0, "listen");
    return fd;
}

static void connection_take(struct relay *relay, int fd)
{
    struct work *work = malloc(sizeof *work);
    pthread_t thread;
    int place = 0;
    pthread_mutex_lock(&relay->lock);
    while (place < CONNECTIONS_MAX && relay->connections[place] >= 0) {
        place++;
    }
    must(place < CONNECTIONS_MAX && work != NULL, "connections");
    relay->connections[place] = fd;
    relay->open++;
    *work = (struct work){ relay, place };
    must(pthread_create(&thread, NULL, connection_run, work) == 0, "thread");
    pthread_detach(thread);
    pthread_mutex_unlock(&relay->lock);
}

/* One listener, until it is shut down. */
static void *accept_run(void *arg)
{
    struct relay *relay = arg;
    pthread_mutex_lock(&relay->lock);
    int listener = relay->listener;
    pthread_mutex_unlock(&relay->lock);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            connection_take(relay, fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return NULL;
        }
    }
}

void relay_refuse(struct relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    int listener = relay->listener;
    relay->listener = -1;
    pthread_mutex_unlock(&relay->lock);
    if (listener >= 0) {
        (void) shutdown(listener, SHUT_RDWR); /* accept returns */
        pthread_join(relay->acceptor, NULL);
        close(listener);
    }
}

void relay_accept_again(struct relay *relay)
{
    int listener = listen_on(&relay->port);
    pthread_mutex_lock(&relay->lock);
    relay->listener = listener;
    pthread_mutex_unlock(&relay->lock);
    must(pthread_create(&relay->acceptor, NULL, accept_run, relay) == 0, "thread");
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

struct relay *relay_new(const char *target)
{
    struct relay *relay = calloc(1, sizeof *relay);
    must(relay != NULL, "memory");
    (void) snprintf(relay->target, sizeof relay->target, "%s", target);
    pthread_mutex_init(&relay->lock, NULL);
    pthread_cond_init(&relay->changed, NULL);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        relay->connections[i] = -1;
    }
    relay->keeper = bind_to(&relay->port); /* never listens: while the listener is closed nobody else gets the port */
    relay_accept_again(relay);
    (void) snprintf(relay->address, sizeof relay->address, "127.0.0.1:%u", relay->port);
    return relay;
}

void relay_free(struct relay *relay)
{
    relay_refuse(relay);
    pthread_mutex_lock(&relay->lock);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (relay->connections[i] >= 0) {
            (void) shutdown(relay->connections[i], SHUT_RDWR);
        }
    }
    while (relay->open > 0) {
        pthread_cond_wait(&relay->changed, &relay->lock);
    }
    pthread_mutex_unlock(&relay->lock);
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    close(relay->keeper);
    free(relay);
}

const char *relay_address(const struct relay *relay)
{
    return relay->address;
}

void relay_plan(struct relay *relay, const char *key, enum relay_deed deed, unsigned times)
{
    pthread_mutex_lock(&relay->lock);
    must(relay->plan_count < PLANS_MAX, "plans");
    struct plan *plan = &relay->plans[relay->plan_count++];
    (void) snprintf(plan->key, sizeof plan->key, "%s", key);
    plan->deed = deed;
    plan->times = times;
    pthread_mutex_unlock(&relay->lock);
}

unsigned relay_count(struct relay *relay, enum relay_deed deed)
{
    pthread_mutex_lock(&relay->lock);
    unsigned count = relay->done[deed];
    pthread_mutex_unlock(&relay->lock);
    return count;
}

unsigned relay_requests(struct relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    unsigned count = relay->requests;
    pthread_mutex_unlock(&relay->lock);
    return count;
}

bool relay_wait_requests(struct relay *relay, unsigned count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t) DEADLINE_S * suite_slowness();
    pthread_mutex_lock(&relay->lock);
    while (relay->requests < count && pthread_cond_timedwait(&relay->changed, &relay->lock, &until) == 0) {
    }
    bool there = relay->requests >= count;
    pthread_mutex_unlock(&relay->lock);
    return there;
}
