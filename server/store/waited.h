/* waited.h - who is told when an execution ends: keys that somebody waits for, and the loops that do (docs/contract.md 10.15). The waiting requests
 * themselves are listed by their loops; here a key has one bit per loop.
 *
 *   in progress, found by a task of a durable batch    waited_add     key -> one more loop
 *   a durable outcome                                  waited_end     a message to each of them; the key is forgotten
 *   older than anybody waits                           waited_tidy    the key is forgotten
 *
 * A key is known by a hash under a secret of this run, so nobody can choose two with the same; if there are two, their waiters wake for nothing.
 *
 * Threads: the table belongs to the store thread, but for waited_listen, which is any. What is posted runs on the listener's loop. */
#ifndef NONBIS_SERVER_STORE_WAITED_H
#define NONBIS_SERVER_STORE_WAITED_H

#include "server/base/loop.h"
#include "server/core/record.h"

#include <pthread.h>

enum { WAITED_LISTENERS_MAX = 64 }; /* in the life of a table: bits of an entry */

enum { STORE_ANSWER_NOT_REACHED = -1 };

/* What the waiters of a released command are told. */
struct store_answer {
    int status; /* of the handler's answer; STORE_ANSWER_NOT_REACHED; 0: there is none to pass on */
    struct view fields, body;
    bool body_kept;
};

/* The execution of a command has ended, durably. */
struct store_ended {
    uint64_t key_hash; /* that of the tasks that wait */
    uint32_t execution;
    enum outcome_kind outcome;
    struct store_answer answer; /* for OUTCOME_NOT_EXECUTED, else zeroed; views valid during the call */
};

/* A loop that can be told. Storage of its owner; private. */
struct waited_listener {
    struct loop *loop;
    void (*ended)(void *context, const struct store_ended *ended);
    void *context;
    unsigned slot;        /* its bit; WAITED_LISTENERS_MAX: none was left, it is never told anything */
    pthread_mutex_t lock; /* of posted */
    struct list posted;   /* messages on their way, which are freed here when the loop ends before them */
};

struct waited;

struct waited *waited_new(int64_t wait_max_ms); /* nobody waits longer than that */
void waited_free(struct waited *waited);

void waited_listen(struct waited *waited, struct waited_listener *listener, struct loop *loop,
                   void (*ended)(void *context, const struct store_ended *ended), void *context);
/* Its loop must be gone; the table may be. */
void waited_listener_fini(struct waited_listener *listener);

uint64_t waited_hash(const struct waited *waited, struct view tenant, struct view key);

/* Again and again for one key and listener is once. False: that listener has no bit. */
bool waited_add(struct waited *waited, uint64_t key_hash, const struct waited_listener *listener, int64_t now_ms);
/* One message per listener, each with its own copy of the answer, in the order of the calls. */
void waited_end(struct waited *waited, const struct store_ended *ended);
/* Looks at the whole table, but not more often than once per wait_max_ms. */
void waited_tidy(struct waited *waited, int64_t now_ms);

size_t waited_count(const struct waited *waited); /* keys */

#endif
