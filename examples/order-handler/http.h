/* http.h - the order handler's HTTP face.
 *
 * One thread per connection: an order that waits on purpose (faults.h) holds up nobody else. */
#ifndef ORDER_HANDLER_HTTP_H
#define ORDER_HANDLER_HTTP_H

#include "examples/order-handler/ledger.h"
#include "examples/order-handler/options.h"

struct http;

/* NULL when it cannot listen; stderr says why. Ledger and options have to outlive it. */
struct http *http_open(const struct options *options, struct ledger *ledger);

/* The port that it listens on. */
unsigned http_port(const struct http *http);

/* Takes no new connection, ends hanging requests, waits for the others, and frees everything. */
void http_close(struct http *http);

#endif
