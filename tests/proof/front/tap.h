/* tap.h - a relay between a front proxy and nonbisd that keeps every byte that the front proxy sends, so that it is known what the front
 * proxy took for a request. It changes nothing. Threads of its own: one accepts, one per connection relays. */
#ifndef NONBIS_TESTS_PROOF_TAP_H
#define NONBIS_TESTS_PROOF_TAP_H

#include "common/buf.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TAP_LINKS_MAX = 4096, TAP_MARKS_MAX = 1024 };

/* From byte `offset` of a connection on, the test was at row `row`. */
struct tap_mark {
    size_t offset;
    int row;
};

struct tap_link {
    struct tap *tap;
    pthread_t thread;
    int front, nonbis;
    struct buf sent; /* by the front proxy */
    struct tap_mark marks[TAP_MARKS_MAX];
    int mark_count;
};

struct tap {
    char address[64]; /* "127.0.0.1:PORT", where the front proxy connects */
    char nonbis[64];
    int listener, wake[2];
    atomic_int row; /* set by the test */
    pthread_t acceptor;
    struct tap_link *links[TAP_LINKS_MAX];
    int link_count; /* to be read after tap_end */
};

void tap_start(struct tap *tap, const char *nonbis);
/* Takes no new connection, and waits for the end of those that are there: front proxy and nonbisd have ended before. */
void tap_end(struct tap *tap);
void tap_free(struct tap *tap);

int tap_row_at(const struct tap_link *link, size_t offset);

#endif
