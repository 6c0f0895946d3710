/* sender.h - requests that are sent and answered later, each on a connection of its own, from one thread. One after another they are connected in a
 * known order, so that it is known which loop of the server has which. */
#ifndef NONBIS_TESTS_SENDER_H
#define NONBIS_TESTS_SENDER_H

#include "tests/support/rig.h"

/* Keyed POST of /orders with the body "x"; `fields` are whole lines. Returns the connection; a refused one fails the test. */
int sender_post(const char *address, const char *key, const char *fields);
int sender_get(const char *address, const char *target, const char *fields);
/* The same on a connection that is there. False: the other side does not take it any more. */
bool sender_post_on(int fd, const char *key, const char *fields);
bool sender_get_on(int fd, const char *target, const char *fields);

/* Reads one answer, which must be this one; the connection stays. */
void sender_expect(int fd, int status, const char *word);
/* The same, and closes it. */
void sender_expect_last(int fd, int status, const char *word);

/* Reads an answer from each of those that have one, until `wanted` have; 0 after 20 s. answers[i].status stays 0 where none came. */
int sender_gather(const int *fds, int count, int wanted, struct http_answer *answers);

void sender_close_all(const int *fds, int count);
void sender_reset(int fd); /* closes by RST */

#endif
