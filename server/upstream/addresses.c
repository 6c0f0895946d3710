/* addresses.c - see addresses.h. Asks nobody. */
#include "server/upstream/addresses.h"

#include "server/base/memory.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct addresses *addresses_new(unsigned room)
{
    struct addresses *addresses = memory_new(sizeof *addresses + room * sizeof addresses->items[0]);
    addresses->users = 1;
    return addresses;
}

static void addresses_add_ip4(struct addresses *addresses, struct in_addr ip, unsigned port)
{
    addresses->items[addresses->count++].ip4 =
        (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr = ip };
}

static void addresses_add_ip6(struct addresses *addresses, struct in6_addr ip, unsigned port)
{
    addresses->items[addresses->count++].ip6 =
        (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port), .sin6_addr = ip };
}

static bool host_is_this_machine(struct view host)
{
    const struct view name = VIEW("localhost"), ending = VIEW(".localhost");
    return view_equal_nocase(host, name) ||
           (host.len > ending.len &&
            view_equal_nocase(view_make(host.ptr + host.len - ending.len, ending.len), ending));
}

struct addresses *addresses_of_target(const struct upstream_target *target)
{
    struct addresses *addresses = addresses_new(2);
    struct in_addr ip4;
    struct in6_addr ip6;
    char bare[sizeof target->host];
    if (strcmp(target->scheme, "unix") == 0) {
        struct sockaddr_un *local = &addresses->items[addresses->count++].local;
        local->sun_family = AF_UNIX;
        memcpy(local->sun_path, target->host, sizeof local->sun_path); /* url.c lets no longer one through */
        return addresses;
    }
    if (host_is_this_machine(view_of(target->host))) {
        addresses_add_ip6(addresses, in6addr_loopback, target->port);
        addresses_add_ip4(addresses, (struct in_addr){ htonl(INADDR_LOOPBACK) }, target->port);
        return addresses;
    }
    if (inet_pton(AF_INET, target->host, &ip4) == 1) {
        addresses_add_ip4(addresses, ip4, target->port);
        return addresses;
    }
    if (target->host[0] == '[') {
        (void) snprintf(bare, sizeof bare, "%.*s", (int) strcspn(target->host + 1, "]"), target->host + 1);
        if (inet_pton(AF_INET6, bare, &ip6) == 1) {
            addresses_add_ip6(addresses, ip6, target->port);
            return addresses;
        }
    }
    addresses_release(addresses);
    return NULL;
}

struct addresses *addresses_of_answer(const struct addrinfo *answer, unsigned port)
{
    struct addresses *addresses = addresses_new(ADDRESSES_MAX);
    for (; answer != NULL && addresses->count < ADDRESSES_MAX; answer = answer->ai_next) {
        if (answer->ai_family == AF_INET) {
            struct sockaddr_in ip4;
            memcpy(&ip4, answer->ai_addr, sizeof ip4);
            addresses_add_ip4(addresses, ip4.sin_addr, port);
        } else if (answer->ai_family == AF_INET6) {
            struct sockaddr_in6 ip6;
            memcpy(&ip6, answer->ai_addr, sizeof ip6);
            addresses_add_ip6(addresses, ip6.sin6_addr, port);
            addresses->items[addresses->count - 1].ip6.sin6_scope_id = ip6.sin6_scope_id;
        }
    }
    if (addresses->count == 0) {
        addresses_release(addresses);
        return NULL;
    }
    return addresses;
}

struct addresses *addresses_share(struct addresses *addresses)
{
    addresses->users++;
    return addresses;
}

void addresses_release(struct addresses *addresses)
{
    if (addresses != NULL && --addresses->users == 0) {
        free(addresses);
    }
}

socklen_t address_length(const union address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return sizeof address->ip4;
    case AF_INET6:
        return sizeof address->ip6;
    default:
        return sizeof address->local;
    }
}

void address_write(const union address *address, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    if (address->any.sa_family == AF_UNIX) {
        (void) snprintf(text, size, "%s", address->local.sun_path);
        return;
    }
    const void *bytes = address->any.sa_family == AF_INET ? (const void *) &address->ip4.sin_addr
                                                          : (const void *) &address->ip6.sin6_addr;
    (void) inet_ntop(address->any.sa_family, bytes, ip, sizeof ip);
    (void) snprintf(text, size, "%s", ip);
}
