/* held.h - cases in which the store's disk is held: what a commit rests on is written, and not durable yet. What is told then is told too early.
 *
 * Whether something did NOT happen is asked in order, and not by the clock: what was told before the sync began lies with the loops already, and
 * what is asked of every loop after that is answered behind it. */
#ifndef NONBIS_TESTS_CONTRACT_HELD_H
#define NONBIS_TESTS_CONTRACT_HELD_H

#include "tests/contract/scene.h"
#include "tests/support/sync_hand.h"

extern struct sync_hand held_disk;

/* As scene_start, with nonbisd-held; its syncs go through at first. After a kill, scene_restart starts nonbisd as ever. */
void held_start(void);
/* Returns once the store thread stands before a sync and nothing waits for it: what was asked before is in the batch that is held. */
void held_wait_taken(void);
/* Returns once so many claims and look-ups wait behind the batch that is held. */
void held_wait_queued(int claims, int reads);
/* Returns once each loop has done what lay before it (it has taken a request to the handler, and the answer back), and the handler has counted what came of
 * that. The handler must answer at once. */
void held_pass_through(void);
#define HELD_POST(key) "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: " key "\r\nContent-Length: 1\r\n\r\nx"
/* A request whose answer is not waited for: the socket. */
int held_send(const char *bytes);
/* Fails unless nothing has come on it so far. */
void held_expect_silence(int fd);

#endif
