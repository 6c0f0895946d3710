/* itself.c - see itself.h. */
#include "server/flow/itself.h"

#include "common/view.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return (ntohl(((const struct sockaddr_in *) (const void *) address)->sin_addr.s_addr) >> 24) == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) (const void *) address)->sin6_addr);
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        return ((const struct sockaddr_in *) (const void *) a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *) (const void *) b)->sin_addr.s_addr;
    }
    return memcmp(&((const struct sockaddr_in6 *) (const void *) a)->sin6_addr,
                  &((const struct sockaddr_in6 *) (const void *) b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool is_wildcard(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return ((const struct sockaddr_in *) (const void *) address)->sin_addr.s_addr == htonl(INADDR_ANY);
    }
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *) (const void *) address)->sin6_addr);
}

static struct addrinfo *resolve(const char *host)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    return getaddrinfo(host, NULL, &hints, &found) == 0 ? found : NULL;
}

/* "127.0.0.1:8620" and "[::1]:8620" in two; the brackets go. */
static bool address_split(const char *address, char host[256], unsigned *port)
{
    const char *colon = strrchr(address, ':');
    uint64_t number = 0;
    if (colon == NULL || !view_to_uint64(view_of(colon + 1), &number) || number > 65535) {
        return false;
    }
    size_t len = (size_t) (colon - address);
    bool bracketed = len >= 2 && address[0] == '[';
    (void) snprintf(host, 256, "%.*s", (int) (bracketed ? len - 2 : len), address + (bracketed ? 1 : 0));
    *port = (unsigned) number;
    return true;
}

bool itself_is_target(const char *listen, const char *host, unsigned port)
{
    char own[256];
    unsigned own_port = 0;
    if (!address_split(listen, own, &own_port) || own_port != port) {
        return false;
    }
    struct addrinfo *ours = resolve(own);
    struct addrinfo *theirs = resolve(host);
    /* The name always means this machine (RFC 6761 section 6.3), also where no file says so. */
    bool same = view_equal_nocase(view_of(host), VIEW("localhost")) && ours != NULL &&
                (address_is_loopback(ours->ai_addr) || is_wildcard(ours->ai_addr));
    for (struct addrinfo *a = theirs; a != NULL && ours != NULL; a = a->ai_next) {
        same = same || same_address(a->ai_addr, ours->ai_addr) ||
               (is_wildcard(ours->ai_addr) && address_is_loopback(a->ai_addr));
    }
    if (ours != NULL) {
        freeaddrinfo(ours);
    }
    if (theirs != NULL) {
        freeaddrinfo(theirs);
    }
    return same;
}

bool itself_is_taken(const char *one, const char *other)
{
    char one_host[256];
    char other_host[256];
    unsigned one_port = 0;
    unsigned other_port = 0;
    if (!address_split(one, one_host, &one_port) || !address_split(other, other_host, &other_port) || one_port == 0 ||
        one_port != other_port) {
        return false;
    }
    struct addrinfo *ours = resolve(one_host);
    struct addrinfo *theirs = resolve(other_host);
    bool taken =
        ours != NULL && theirs != NULL && ours->ai_addr->sa_family == theirs->ai_addr->sa_family &&
        (same_address(ours->ai_addr, theirs->ai_addr) || is_wildcard(ours->ai_addr) || is_wildcard(theirs->ai_addr));
    if (ours != NULL) {
        freeaddrinfo(ours);
    }
    if (theirs != NULL) {
        freeaddrinfo(theirs);
    }
    return taken;
}
