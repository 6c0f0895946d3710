/* relay.h - stands between client and server and is the bad network: it hands requests on, unless a deed is planned for their key.
 *
 * A connection from the client lives as long as both want it; each request is handed on over a connection of its own, so that the
 * server behind may be killed and come back. Bodies with Content-Length only. Threads of its own; functions here may be called from
 * any thread. */
#ifndef NONBIS_TESTS_RELAY_H
#define NONBIS_TESTS_RELAY_H

#include <stdbool.h>

enum relay_deed {
    RELAY_PASS,
    RELAY_DROP_REQUEST, /* read whole, never handed on, closed */
    RELAY_LOSE_ANSWER,  /* handed on and answered; the answer is thrown away, closed */
    RELAY_CUT_ANSWER,   /* all of the answer but its last byte, then closed */
    RELAY_DEEDS
};

struct relay;

/* In front of "127.0.0.1:PORT". */
struct relay *relay_new(const char *target);
void relay_free(struct relay *relay); /* ends every connection */
const char *relay_address(const struct relay *relay);

/* The next `times` requests with this Idempotency-Key that are not for the server's own resources meet the deed. */
void relay_plan(struct relay *relay, const char *key, enum relay_deed deed, unsigned times);

void relay_refuse(struct relay *relay);       /* closes the listener: connections are refused */
void relay_accept_again(struct relay *relay); /* the same port */

unsigned relay_count(struct relay *relay, enum relay_deed deed); /* how often it was done */
/* Until so many requests have come, of any kind, whatever became of them; false after 20 s. */
bool relay_wait_requests(struct relay *relay, unsigned count);
unsigned relay_requests(struct relay *relay);

#endif
