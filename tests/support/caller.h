/* caller.h - one client in a thread of its own, for requests that are held. */
#ifndef NONBIS_TESTS_CALLER_H
#define NONBIS_TESTS_CALLER_H

#include "tests/support/http_client.h"

#include <pthread.h>

struct caller {
    pthread_t thread;
    const char *address;
    char key[64];
    struct http_answer answer;
};

/* POST /orders with that key and the body "x". `address` and the caller must outlive the thread. */
void caller_start(struct caller *caller, const char *address, const char *key);
/* Waits for the answer. */
void caller_join(struct caller *caller);

#endif
