/* log.c - the physical limit for two durable records per request: appends each request to a log, forwards it when that is on the
 * disk, appends the answer, and sends it when that is on the disk. Finds no repeat and reads nothing back.
 *
 *   log UPSTREAM_PORT FILE    listens on 127.0.0.1, a port of the kernel's choice, and prints it
 *
 * One thread with epoll for clients and upstream connections (kept, one per client), one that writes what has gathered and syncs it:
 * what comes meanwhile is the next batch. FILE is 64 MiB, written once at start and then over and over, since overwriting is what a
 * disk syncs fastest, and past the page cache where the file system can (O_DIRECT). A request and its answer must each fit into 64 KiB. */
#include "bench/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
    INPUT_BYTES = 65536,
    EVENTS = 256,
    LOG_BYTES = 64 * 1024 * 1024,
    BATCH_BYTES = 8 * 1024 * 1024, /* more than all connections can have on their way */
    PAGE_BYTES = 4096
};

enum exchange_state { READING, CLAIMING, FORWARDED, FINISHING };

struct side { /* one of the two sockets of an exchange, as epoll tells it */
    struct exchange *exchange;
    int fd;
    size_t len, whole; /* bytes in text; of the message in front, 0: not whole */
    char text[INPUT_BYTES];
};

struct exchange {
    struct side client, upstream;
    enum exchange_state state;
    bool over;
    struct exchange *next; /* in a batch */
};

struct batch {
    char *bytes;
    size_t len;
    struct exchange *first;
};

static unsigned upstream_port;
static int epoll_fd, done_fd, log_fd;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gathered = PTHREAD_COND_INITIALIZER;
static struct batch gathering;      /* under the lock */
static struct exchange *durable;    /* under the lock: what the next wake-up of the loop acts upon */
static struct exchange *turn_first; /* the loop's: appended in this turn, handed over at its end */
static struct batch turn;

static void die(const char *what)
{
    wire_die("log", what);
}

/* --- the log ------------------------------------------------------------------------------------------------ */

static char *new_buffer(size_t bytes)
{
    char *buffer = aligned_alloc(PAGE_BYTES, bytes);
    if (buffer == NULL) {
        die("no memory for a batch");
    }
    memset(buffer, 0, bytes);
    return buffer;
}

static void prepare_log(const char *path)
{
    char *zeros = new_buffer(BATCH_BYTES);
    log_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
    if (log_fd < 0) {
        log_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (log_fd < 0) {
        die("cannot open the log");
    }
    for (off_t at = 0; at < LOG_BYTES; at += BATCH_BYTES) {
        if (pwrite(log_fd, zeros, BATCH_BYTES, at) != BATCH_BYTES) {
            die("cannot write the log");
        }
    }
    if (fsync(log_fd) != 0) {
        die("cannot sync the log");
    }
    free(zeros);
}

static void write_durably(const struct batch *batch)
{
    static off_t at;
    size_t padded = (batch->len + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (at + (off_t) padded > LOG_BYTES) {
        at = 0;
    }
    if (pwrite(log_fd, batch->bytes, padded, at) != (ssize_t) padded || fdatasync(log_fd) != 0) {
        die("cannot write the log");
    }
    at += (off_t) padded;
}

static void *run_log(void *context)
{
    struct batch mine = { .bytes = context };
    for (;;) {
        pthread_mutex_lock(&lock);
        while (gathering.first == NULL) {
            pthread_cond_wait(&gathered, &lock);
        }
        struct batch taken = gathering;
        gathering = (struct batch){ .bytes = mine.bytes };
        pthread_mutex_unlock(&lock);
        write_durably(&taken);
        mine.bytes = taken.bytes;
        struct exchange *last = taken.first;
        while (last->next != NULL) {
            last = last->next;
        }
        pthread_mutex_lock(&lock);
        last->next = durable;
        durable = taken.first;
        pthread_mutex_unlock(&lock);
        uint64_t one = 1;
        if (write(done_fd, &one, sizeof one) != sizeof one) {
            die("eventfd");
        }
    }
    return NULL;
}

/* Gathers for this turn of the loop: one lock and one wake-up for all of it. */
static void append(struct exchange *exchange, const char *text, size_t len)
{
    if (turn.len + len + PAGE_BYTES > BATCH_BYTES) {
        errno = 0;
        die("more at once than a batch holds");
    }
    memcpy(turn.bytes + turn.len, text, len);
    turn.len += len;
    exchange->next = turn_first;
    turn_first = exchange;
}

static void hand_over(void)
{
    if (turn_first == NULL) {
        return;
    }
    struct exchange *last = turn_first;
    while (last->next != NULL) {
        last = last->next;
    }
    pthread_mutex_lock(&lock);
    if (gathering.len + turn.len + PAGE_BYTES > BATCH_BYTES) {
        errno = 0;
        die("more at once than a batch holds");
    }
    memcpy(gathering.bytes + gathering.len, turn.bytes, turn.len);
    gathering.len += turn.len;
    last->next = gathering.first;
    gathering.first = turn_first;
    pthread_cond_signal(&gathered);
    pthread_mutex_unlock(&lock);
    turn_first = NULL;
    turn.len = 0;
}

/* --- exchanges ---------------------------------------------------------------------------------------------- */

static void watch(struct side *side)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = side };
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, side->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void end(struct exchange *exchange)
{
    if (!exchange->over) {
        close(exchange->client.fd);
        close(exchange->upstream.fd);
        exchange->over = true;
    }
}

static void pass(const struct side *from, const struct side *to)
{
    if (send(to->fd, from->text, from->whole, MSG_NOSIGNAL) != (ssize_t) from->whole) {
        end(from->exchange);
    }
}

static void drop_message(struct side *side)
{
    side->len -= side->whole;
    memmove(side->text, side->text + side->whole, side->len);
    side->whole = 0;
}

/* When a message is whole on the side that is waited for, it is appended. */
static void look(struct exchange *exchange)
{
    struct side *side = exchange->state == READING ? &exchange->client : &exchange->upstream;
    size_t body, head;
    if ((exchange->state != READING && exchange->state != FORWARDED) ||
        (head = wire_head(side->text, side->len, &body)) == 0 || side->len < head + body) {
        return;
    }
    side->whole = head + body;
    exchange->state = exchange->state == READING ? CLAIMING : FINISHING;
    append(exchange, side->text, side->whole);
}

static void take_input(struct side *side)
{
    struct exchange *exchange = side->exchange;
    ssize_t got = recv(side->fd, side->text + side->len, INPUT_BYTES - side->len, 0);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            end(exchange);
        }
        return;
    }
    side->len += (size_t) got;
    look(exchange);
}

static void act_on_durable(void)
{
    uint64_t count;
    if (read(done_fd, &count, sizeof count) != sizeof count) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct exchange *exchange = durable;
    durable = NULL;
    pthread_mutex_unlock(&lock);
    while (exchange != NULL) {
        struct exchange *next = exchange->next;
        if (exchange->over) {
            exchange = next; /* left where it is: the process is short-lived */
            continue;
        }
        if (exchange->state == CLAIMING) {
            pass(&exchange->client, &exchange->upstream);
            drop_message(&exchange->client);
            exchange->state = FORWARDED;
        } else {
            pass(&exchange->upstream, &exchange->client);
            drop_message(&exchange->upstream);
            exchange->state = READING;
        }
        if (!exchange->over) {
            look(exchange);
        }
        exchange = next;
    }
}

static void accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct exchange *exchange = fd < 0 ? NULL : calloc(1, sizeof *exchange);
    if (exchange == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    int on = 1;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    exchange->client = (struct side){ .exchange = exchange, .fd = fd };
    exchange->upstream = (struct side){ .exchange = exchange, .fd = wire_connect("log", upstream_port) };
    (void) fcntl(exchange->upstream.fd, F_SETFL, O_NONBLOCK);
    watch(&exchange->client);
    watch(&exchange->upstream);
}

static void run(int listener)
{
    struct side listening = { .fd = listener }, done = { .fd = done_fd };
    watch(&listening);
    watch(&done);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct side *side = events[i].data.ptr;
            if (side == &listening) {
                accept_one(listener);
            } else if (side == &done) {
                act_on_durable();
            } else if (!side->exchange->over) {
                take_input(side);
            }
        }
        hand_over();
    }
}

int main(int argc, char **argv)
{
    unsigned port;
    pthread_t thread;
    if (argc != 3) {
        fprintf(stderr, "usage: log UPSTREAM_PORT FILE\n");
        return 64;
    }
    upstream_port = (unsigned) strtoul(argv[1], NULL, 10);
    prepare_log(argv[2]);
    int listener = wire_listen("log", &port);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gathering.bytes = new_buffer(BATCH_BYTES);
    turn.bytes = new_buffer(BATCH_BYTES);
    if (epoll_fd < 0 || done_fd < 0 || pthread_create(&thread, NULL, run_log, new_buffer(BATCH_BYTES)) != 0) {
        die("cannot start");
    }
    printf("%u\n", port);
    fflush(stdout);
    run(listener);
}
