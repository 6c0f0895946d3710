/* inside.h - what peer.c (listening, counting, waiting) and script.c (one connection) share. Private to tests/peer. */
#ifndef NONBIS_TESTS_PEER_INSIDE_H
#define NONBIS_TESTS_PEER_INSIDE_H

#include "tests/peer/peer.h"

#include <pthread.h>

enum { PEER_SCRIPTS_MAX = 64, PEER_LINKS_MAX = 4096, PEER_REQUESTS_MAX = 1 << 16 };

struct peer_record {
    struct buf bytes;
    char key[300]; /* of Idempotency-Key; empty when there was none */
    bool whole;
};

/* A script and what it is chosen by: a name, a request number, or a connection number. */
struct peer_choice {
    const char *name;
    unsigned request, connection;
    const struct peer_step *steps;
};

/* Before a request, whose first bytes may lie in the socket; within its head; behind it: it is counted. */
enum peer_stage { PEER_RESTS, PEER_READS, PEER_ACTS };

/* One accepted connection. */
struct peer_link {
    struct peer *peer;
    pthread_t thread;
    unsigned number;
    int fd;                /* -1 once closed; changed under the lock */
    enum peer_stage stage; /* changed under the lock */
    char read[64 * 1024];
    size_t read_from, read_until;
};

struct peer {
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    int keeper;            /* of the port */
    int listener, wake[2]; /* wake: a pipe that ends the accepting thread's poll */
    bool unix_socket, accepting, stopping;
    pthread_t acceptor;
    char url[160];
    unsigned port;
    struct peer_choice choices[PEER_SCRIPTS_MAX];
    unsigned choice_count;
    const struct peer_step *fallback;
    struct peer_link *links[PEER_LINKS_MAX];
    unsigned link_count, ended;
    struct peer_record *records[PEER_REQUESTS_MAX];
    unsigned record_count, whole;
    unsigned stalled, releases;
};

/* script.c: serves one connection; argument: the link. */
void *peer_serve(void *link);

#endif
