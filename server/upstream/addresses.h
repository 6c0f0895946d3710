/* addresses.h - what a handler's name stands for: the addresses that a connection tries in their order, beginning with the one that
 * worked last. Private to server/upstream. Shared by the connections of one loop; its thread only. */
#ifndef NONBIS_SERVER_UPSTREAM_ADDRESSES_H
#define NONBIS_SERVER_UPSTREAM_ADDRESSES_H

#include "server/upstream/upstream.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct addrinfo;

enum { ADDRESSES_MAX = 16 }; /* a name with more than that: the others are never tried */

union address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    struct sockaddr_un local;
};

struct addresses {
    unsigned users; /* freed by the last of them */
    unsigned count;
    unsigned first; /* tried first: the one that worked last */
    union address items[];
};

/* Of a target that needs no look-up: a path, a numeric address, "localhost" (RFC 6761 section 6.3). NULL: it has to be looked up. */
struct addresses *addresses_of_target(const struct upstream_target *target);
/* What getaddrinfo found, with the port. NULL: nothing that could be connected to. */
struct addresses *addresses_of_answer(const struct addrinfo *answer, unsigned port);

struct addresses *addresses_share(struct addresses *addresses);
void addresses_release(struct addresses *addresses); /* NULL: nothing */

socklen_t address_length(const union address *address);
void address_write(const union address *address, char *text, size_t size); /* without the port */

#endif
