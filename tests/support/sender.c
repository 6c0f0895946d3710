/* sender.c - see sender.h. */
#include "tests/support/sender.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SENDER_DEADLINE_MS = 20000, SENDER_MAX = 1024 };

bool sender_post_on(int fd, const char *key, const char *fields)
{
    char request[1024];
    int len = snprintf(request, sizeof request,
                       "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: %s\r\n%sContent-Length: 1\r\n\r\nx", key,
                       fields);
    return http_send(fd, request, (size_t) len);
}

bool sender_get_on(int fd, const char *target, const char *fields)
{
    char request[1024];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", target, fields);
    return http_send(fd, request, (size_t) len);
}

int sender_post(const char *address, const char *key, const char *fields)
{
    int fd = http_connect(address);
    ck_assert_int_ge(fd, 0);
    ck_assert(sender_post_on(fd, key, fields));
    return fd;
}

int sender_get(const char *address, const char *target, const char *fields)
{
    int fd = http_connect(address);
    ck_assert_int_ge(fd, 0);
    ck_assert(sender_get_on(fd, target, fields));
    return fd;
}

void sender_expect(int fd, int status, const char *word)
{
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, status, word);
    ck_assert(answer.whole);
    http_answer_free(&answer);
}

void sender_expect_last(int fd, int status, const char *word)
{
    sender_expect(fd, status, word);
    close(fd);
}

int sender_gather(const int *fds, int count, int wanted, struct http_answer *answers)
{
    struct pollfd polls[SENDER_MAX];
    int got = 0;
    ck_assert_int_le(count, SENDER_MAX);
    for (int i = 0; i < count; i++) {
        polls[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
        answers[i] = (struct http_answer){ 0 };
    }
    while (got < wanted) {
        if (poll(polls, (nfds_t) count, SENDER_DEADLINE_MS * suite_slowness()) <= 0) {
            return 0;
        }
        for (int i = 0; i < count && got < wanted; i++) {
            if (polls[i].fd >= 0 && polls[i].revents != 0) {
                answers[i] = http_receive(fds[i], false, NULL);
                polls[i].fd = -1; /* not asked about again */
                got++;
            }
        }
    }
    return got;
}

void sender_close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

void sender_reset(int fd)
{
    const struct linger reset = { .l_onoff = 1 };
    (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}
