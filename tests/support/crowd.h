/* crowd.h - many clients at once, each in a thread of its own, held at a barrier before they send, so that they really overlap. A crowd that stays
 * keeps its threads and connections between rounds: then a round costs requests alone. */
#ifndef NONBIS_TESTS_CROWD_H
#define NONBIS_TESTS_CROWD_H

#include "tests/support/http_client.h"

enum { CROWD_MAX = 128 };

struct crowd_member {
    const char *address;
    const char *target; /* NULL: /orders */
    const char *fields; /* further lines ("A: b\r\n"), or NULL */
    char key[64];
    char body[128];
    struct http_answer answer;
};

/* Connects everybody, waits until all are connected, lets all POST at once, and returns when all have an answer (or none). */
void crowd_run(struct crowd_member *members, int count);
void crowd_free(struct crowd_member *members, int count);

struct crowd; /* that stays */

struct crowd *crowd_gather(int count);
/* As crowd_run; a connection that was not closed is used again. The number of members and their addresses stay the same. */
void crowd_round(struct crowd *crowd, struct crowd_member *members);
void crowd_leave(struct crowd *crowd);

#endif
