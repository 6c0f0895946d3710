/* tap.c - see tap.h. */
#include "tests/proof/front/tap.h"

#include "tests/proof/front/front.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAP_PIECE = 16 * 1024, TAP_KEPT_MAX = 16 * 1024 * 1024 };

/* In threads a failed assertion of Check cannot be told. */
static void tap_must(bool ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "tap: %s: %s\n", what, strerror(errno));
        abort();
    }
}

static void keep(struct tap_link *link, const char *bytes, size_t len)
{
    int row = atomic_load(&link->tap->row);
    if (link->mark_count == 0 || link->marks[link->mark_count - 1].row != row) {
        tap_must(link->mark_count < TAP_MARKS_MAX, "more marks than there is room for");
        link->marks[link->mark_count++] = (struct tap_mark){ .offset = link->sent.len, .row = row };
    }
    buf_append_bytes(&link->sent, bytes, len);
    tap_must(!link->sent.failed, "keep what the front proxy sent");
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t put = send(fd, bytes, len, MSG_NOSIGNAL);
        if (put <= 0) {
            return false;
        }
        bytes += put;
        len -= (size_t) put;
    }
    return true;
}

/* One piece from `from` to `to`. 1: relayed; 0: `from` has ended; -1: nothing more can pass between them. */
static int pass(struct tap_link *link, int from, int to)
{
    char bytes[TAP_PIECE];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    if (got < 0) {
        return -1;
    }
    if (got == 0) {
        (void) shutdown(to, SHUT_WR);
        return 0;
    }
    if (from == link->front) {
        keep(link, bytes, (size_t) got);
    }
    return send_all(to, bytes, (size_t) got) ? 1 : -1;
}

static void *relay(void *argument)
{
    struct tap_link *link = argument;
    struct pollfd polled[2] = { { .fd = link->front, .events = POLLIN }, { .fd = link->nonbis, .events = POLLIN } };
    int open = 2;
    while (open > 0) {
        tap_must(poll(polled, 2, -1) > 0 || errno == EINTR, "poll");
        for (int i = 0; i < 2 && open > 0; i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0) {
                continue;
            }
            int passed = pass(link, i == 0 ? link->front : link->nonbis, i == 0 ? link->nonbis : link->front);
            if (passed < 0) {
                open = 0;
            } else if (passed == 0) {
                polled[i].fd = -1;
                open--;
            }
        }
    }
    (void) close(link->front);
    (void) close(link->nonbis);
    return NULL;
}

static void *accept_links(void *argument)
{
    struct tap *tap = argument;
    struct pollfd polled[2] = { { .fd = tap->listener, .events = POLLIN }, { .fd = tap->wake[0], .events = POLLIN } };
    for (;;) {
        tap_must(poll(polled, 2, -1) > 0 || errno == EINTR, "poll");
        if (polled[1].revents != 0) {
            return NULL;
        }
        int fd = polled[0].revents != 0 ? accept4(tap->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0) {
            continue;
        }
        struct tap_link *link = calloc(1, sizeof *link);
        tap_must(link != NULL && tap->link_count < TAP_LINKS_MAX, "room for a connection");
        link->tap = tap;
        link->front = fd;
        link->nonbis = http_connect(tap->nonbis);
        tap_must(link->nonbis >= 0, "connect to nonbisd");
        buf_init(&link->sent, TAP_KEPT_MAX);
        tap->links[tap->link_count++] = link;
        tap_must(pthread_create(&link->thread, NULL, relay, link) == 0, "start a thread");
    }
}

void tap_start(struct tap *tap, const char *nonbis)
{
    memset(tap, 0, sizeof *tap);
    (void) snprintf(tap->nonbis, sizeof tap->nonbis, "%s", nonbis);
    tap->listener = front_listen(tap->address, sizeof tap->address);
    ck_assert_int_eq(pipe(tap->wake), 0);
    ck_assert_int_eq(pthread_create(&tap->acceptor, NULL, accept_links, tap), 0);
}

void tap_end(struct tap *tap)
{
    ck_assert_int_eq((int) write(tap->wake[1], "x", 1), 1);
    pthread_join(tap->acceptor, NULL);
    for (int i = 0; i < tap->link_count; i++) {
        pthread_join(tap->links[i]->thread, NULL);
    }
    (void) close(tap->wake[0]);
    (void) close(tap->wake[1]);
    (void) close(tap->listener);
}

void tap_free(struct tap *tap)
{
    for (int i = 0; i < tap->link_count; i++) {
        buf_fini(&tap->links[i]->sent);
        free(tap->links[i]);
    }
}

int tap_row_at(const struct tap_link *link, size_t offset)
{
    int row = -1;
    for (int i = 0; i < link->mark_count && link->marks[i].offset <= offset; i++) {
        row = link->marks[i].row;
    }
    return row;
}
