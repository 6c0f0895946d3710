/* itself.h - is the upstream this very server? Once at start. */
#ifndef NONBIS_SERVER_FLOW_ITSELF_H
#define NONBIS_SERVER_FLOW_ITSELF_H

#include <stdbool.h>

/* True when host:port resolves to an address that `listen` ("127.0.0.1:8620", wildcard addresses included) takes connections on. A name that
 * does not resolve is not ourselves; loops over other hosts are found at run time by Via. */
bool itself_is_target(const char *listen, const char *host, unsigned port);

/* True when two addresses to listen on ("127.0.0.1:8620", "[::]:8620") cannot both be had; never with a port of 0. */
bool itself_is_taken(const char *one, const char *other);

#endif
