/* listener.c - see listener.h. */
#include "tests/upstream/listener.h"

#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int listener_at(const char *ip, unsigned port, int backlog)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(AF_INET, ip, &address.sin_addr), 1);
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, backlog), 0);
    return listener;
}

int listener_in_silence(const char *ip, unsigned port, int fillers[LISTENER_FILLERS])
{
    int listener = listener_at(ip, port, 0);
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    for (int i = 0; i < LISTENER_FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void) connect(fillers[i], (struct sockaddr *) &address, len);
    }
    return listener;
}

void listener_close(int listener, const int fillers[LISTENER_FILLERS])
{
    for (int i = 0; i < LISTENER_FILLERS; i++) {
        (void) close(fillers[i]);
    }
    (void) close(listener);
}
