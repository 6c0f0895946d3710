/* stream_client.c - see stream_client.h. */
#include "tests/support/stream_client.h"

#include "tests/peer/peer.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <sys/socket.h>

enum { BLOCK = 64 * 1024 };

bool stream_send_text(int fd, const char *text)
{
    return http_send(fd, text, strlen(text));
}

bool stream_send_pattern(int fd, uint64_t from, uint64_t until)
{
    static char block[BLOCK];
    while (from < until) {
        size_t part = until - from < BLOCK ? (size_t) (until - from) : BLOCK;
        peer_pattern_write(block, part, from);
        if (!http_send(fd, block, part)) {
            return false;
        }
        from += part;
    }
    return true;
}

void stream_read_head(int fd, char *head, size_t size)
{
    size_t len = 0;
    while (len + 1 < size && (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0)) {
        ck_assert_int_eq(recv(fd, head + len, 1, 0), 1);
        len++;
    }
    head[len] = '\0';
}

uint64_t stream_read_pattern(int fd, uint64_t from, uint64_t until)
{
    static char block[BLOCK];
    while (from < until) {
        ssize_t got = recv(fd, block, until - from < BLOCK ? (size_t) (until - from) : BLOCK, 0);
        if (got <= 0) {
            return from;
        }
        ck_assert_msg(peer_pattern_matches(block, (size_t) got, from), "wrong bytes behind offset %llu",
                      (unsigned long long) from);
        from += (uint64_t) got;
    }
    return from;
}
