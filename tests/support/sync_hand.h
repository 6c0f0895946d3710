/* sync_hand.h - a test's hold on the disk of a running build/nonbisd-held (held_sync.h): its syncs wait until they are let through here. */
#ifndef NONBIS_TESTS_SYNC_HAND_H
#define NONBIS_TESTS_SYNC_HAND_H

#include "tests/support/held_sync.h"

struct sync_hand {
    char path[600];
    struct held_sync *syncs; /* NULL: none, the server syncs as it likes */
};

/* New; all syncs go through. Ends with the test's process. */
void sync_hand_make(struct sync_hand *hand);
void sync_hand_hold(struct sync_hand *hand);    /* every sync that begins from now on waits */
void sync_hand_let_one(struct sync_hand *hand); /* the one that waits, and no other */
void sync_hand_let_all(struct sync_hand *hand); /* from now on */
void sync_hand_expect(struct sync_hand *hand);  /* returns once one waits; fails the test after 20 s */

#endif
