/* client.h - the inside of struct nonbis_client and struct nonbis_op, for run.c and the files of the public functions.
 *
 * The client owns its parts and is shared: budget and chance are atomic, counters, breaker and evidence are behind `lock`, policy and
 * callback are constant once there are operations. The operation owns its texts, body, history and answers and belongs to one thread, but for its waker. */
#ifndef NONBIS_CLIENT_CLIENT_H
#define NONBIS_CLIENT_CLIENT_H

#include "client-sdk/src/breaker.h"
#include "client-sdk/src/budget.h"
#include "client-sdk/src/clock.h"
#include "client-sdk/src/journal.h"
#include "client-sdk/src/planner.h"
#include "client-sdk/src/random.h"

#include <pthread.h>

enum {
    CLIENT_ROUTES_MAX = 256, /* remembered evidence, oldest forgotten first */
    CLIENT_MESSAGE = 1024,
    OP_ATTEMPTS_MAX = 1000 /* remembered; later ones are only counted */
};

/* What a client is made of. `transport` is owned (freed with it), as `journal` is; clock and random are borrowed. */
struct client_parts {
    struct transport *transport;
    struct clock *clock;
    struct random_source *random;
    struct journal *journal; /* NULL: none */
};

/* What was seen of a route, so that the next operation need not find out again. */
struct client_route {
    uint64_t hash; /* of method and endpoint */
    enum evidence evidence;
};

struct nonbis_client {
    struct nonbis_policy policy;
    struct client_parts parts;
    struct budget budget;
    _Atomic uint64_t chance; /* of a policy with a seed */
    int (*on_event)(const struct nonbis_event *event, void *arg);
    void *on_event_arg;
    pthread_mutex_t lock; /* what follows, up to message */
    struct nonbis_stats stats;
    struct breaker breaker;
    struct client_route routes[CLIENT_ROUTES_MAX]; /* a ring */
    unsigned route_next;
    char resumed_after[NONBIS_JOURNAL_NAME];
    char message[CLIENT_MESSAGE];
};

struct op_field {
    char *name, *value;
    bool stored;
};

/* Names of fields that a record does not hold the values of. */
struct op_lacks {
    char **names;
    size_t count;
};

struct nonbis_op {
    struct nonbis_client *client;
    char *url, *method, *name, *status_url;
    char *origin, *endpoint; /* cut out of the URL */
    char key[256];           /* "": none */
    char *body;
    size_t body_len;
    bool has_body;
    struct op_field *fields;
    size_t field_count;
    struct op_lacks lacks;

    struct waker waker;
    struct history history;
    struct transport_facts facts; /* of the last exchange */
    struct answer answer;         /* what the caller sees: the last answer to the command, or its stored response */
    struct told_status told;      /* behind `status` */
    struct nonbis_status status;
    struct nonbis_attempt *attempts;
    unsigned attempt_count, attempt_cap;

    bool was_ambiguous; /* in this run */
    int retry_column;   /* for the counters: what an attempt that follows is a retry of */

    struct journal_entry *entry; /* NULL: no journal, or not begun */
    bool resumed;                /* the entry was there before this operation: nobody else remembers the command */
    bool settled;                /* and was decided: nothing that happens now is better knowledge */
    int64_t created_wall_ms;
    bool ran, busy;

    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
    enum reason reason;
    char reason_text[64];
    unsigned marks;
    int64_t retry_after_s;
    char message[CLIENT_MESSAGE];
    char
        attempt_message[256]; /* what went wrong with the last attempt, "" else: questions behind it must not hide it */
};

/* nonbis_client_new with parts of the caller: the seam of the tests. On failure the parts still belong to the caller. */
int client_make(struct nonbis_client **out, const struct nonbis_policy *policy, const struct client_parts *parts);

/* A word of chance for a wait: the policy's seed, else the random source. */
uint64_t client_chance(struct nonbis_client *client);

/* What was seen of a route. */
enum evidence client_evidence(struct nonbis_client *client, const struct nonbis_op *op);
void client_learn(struct nonbis_client *client, const struct nonbis_op *op, enum evidence evidence);

/* An operation around a record of the journal; takes the entry over, also when it fails. */
int op_make_from_record(struct nonbis_op **out, struct nonbis_client *client, const struct journal_record *record,
                        struct journal_entry *entry, enum journal_state state);

#endif
