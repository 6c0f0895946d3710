/* crash_points.c - linked into nonbisd it becomes build/nonbisd-crashing, which kills itself (SIGKILL) when it passes a named point for the n-th
 * time. The product's objects are the same: the linker puts the functions below around theirs (--wrap, see the Makefile), and the calls of the
 * C library that matter are defined here. Not part of any test program.
 *
 *   TEST_CRASH_AT=POINT:N
 *
 *   claim                 forward            handler        outcome                    reply
 *   --|------|-------|------|--------|--------....------------|--------|--------|------|------
 *     P0     P0s     ^      P1       P2                       P3       P3s      ^      P4, P5: half of it is sent
 *     before written, durable before   sent                   before   written, durable
 *     commit not synced       1st byte                        commit   not synced
 *
 * Any thread; what belongs to a commit is the store thread's own. */
#include "server/store/store.h"
#include "server/upstream/connection.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum point { POINT_P0, POINT_P0S, POINT_P1, POINT_P2, POINT_P3, POINT_P3S, POINT_P4, POINT_P5, POINTS };
static const char *const names[POINTS] = { "P0", "P0s", "P1", "P2", "P3", "P3s", "P4", "P5" };

static enum point wanted = POINTS;
static unsigned wanted_pass, passed;
static _Thread_local bool claims, outcomes, committing; /* of the transaction */

/* Before main, and so before there are threads. */
__attribute__((constructor)) static void crash_points_read(void)
{
    const char *text = getenv("TEST_CRASH_AT");
    const char *colon = text != NULL ? strchr(text, ':') : NULL;
    for (int point = 0; colon != NULL && point < POINTS; point++) {
        if (strlen(names[point]) == (size_t) (colon - text) && strncmp(text, names[point], strlen(names[point])) == 0) {
            wanted = (enum point) point;
            wanted_pass = (unsigned) strtoul(colon + 1, NULL, 10);
        }
    }
    if (text != NULL && wanted_pass == 0) {
        (void) fprintf(stderr, "TEST_CRASH_AT=%s is not understood: a point of crash_points.c, a colon, a number\n",
                       text);
        _exit(70);
    }
}

static void pass(enum point point)
{
    if (point == wanted && __atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST) == wanted_pass) {
        (void) kill(getpid(), SIGKILL);
        for (;;) {
            (void) pause();
        }
    }
}

/* --- the store: what a transaction holds, and its commit --- */

enum store_result __real_store_claim_key(struct store *store, const struct store_claim *claim,
                                         struct store_found *found);
enum store_result __wrap_store_claim_key(struct store *store, const struct store_claim *claim,
                                         struct store_found *found);
enum store_result __wrap_store_claim_key(struct store *store, const struct store_claim *claim,
                                         struct store_found *found)
{
    enum store_result result = __real_store_claim_key(store, claim, found);
    claims = claims || (result == STORE_OK && found->claimed);
    return result;
}

enum store_result __real_store_finish_command(struct store *store, const struct store_finish *finish,
                                              struct record *after);
enum store_result __wrap_store_finish_command(struct store *store, const struct store_finish *finish,
                                              struct record *after);
enum store_result __wrap_store_finish_command(struct store *store, const struct store_finish *finish,
                                              struct record *after)
{
    enum store_result result = __real_store_finish_command(store, finish, after);
    outcomes = outcomes || result == STORE_OK;
    return result;
}

enum store_result __real_store_commit(struct store *store);
enum store_result __wrap_store_commit(struct store *store);
enum store_result __wrap_store_commit(struct store *store)
{
    if (claims) {
        pass(POINT_P0);
    }
    if (outcomes) {
        pass(POINT_P3);
    }
    committing = true;
    enum store_result result = __real_store_commit(store);
    committing = false;
    if (outcomes && result == STORE_OK) {
        pass(POINT_P4);
    }
    claims = outcomes = false;
    return result;
}

int fdatasync(int fd)
{
    if (committing) {
        committing = false; /* once a commit, however often it syncs */
        if (claims) {
            pass(POINT_P0S);
        }
        if (outcomes) {
            pass(POINT_P3S);
        }
    }
    return (int) syscall(SYS_fdatasync, fd);
}

/* --- the handler's connection --- */

enum connection_io __real_connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent);
enum connection_io __wrap_connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent);
enum connection_io __wrap_connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent)
{
    pass(POINT_P1);
    enum connection_io io = __real_connection_send(connection, bytes, len, sent);
    if (io == CONNECTION_DONE && *sent == len) {
        pass(POINT_P2);
    }
    return io;
}

/* --- the client's connection: the answers 201, which are the handler's --- */

static void send_half(int fd, const struct iovec *parts, size_t count)
{
    static const char answer[] = "HTTP/1.1 201";
    bool ours = wanted == POINT_P5 && count > 0 && parts[0].iov_len >= sizeof answer &&
                memcmp(parts[0].iov_base, answer, sizeof answer - 1) == 0;
    if (ours && __atomic_load_n(&passed, __ATOMIC_SEQ_CST) + 1 == wanted_pass) {
        (void) syscall(SYS_sendto, fd, parts[0].iov_base, parts[0].iov_len / 2, MSG_NOSIGNAL, NULL, 0);
    }
    if (ours) {
        pass(POINT_P5);
    }
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    struct iovec part = { .iov_len = len };
    memcpy(&part.iov_base, &bytes, sizeof part.iov_base);
    send_half(fd, &part, 1);
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    send_half(fd, message->msg_iov, message->msg_iovlen);
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    send_half(fd, parts, (size_t) count);
    return syscall(SYS_writev, fd, parts, count);
}
