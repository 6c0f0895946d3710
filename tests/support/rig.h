/* rig.h - the usual scene of an integration test: a scripted peer as handler, nonbisd in front of it, both of this test alone. */
#ifndef NONBIS_TESTS_RIG_H
#define NONBIS_TESTS_RIG_H

#include "tests/peer/peer.h"
#include "tests/support/clock_hand.h"
#include "tests/support/daemon.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

struct rig {
    struct peer *peer;
    struct daemon nonbis;
    char store[600];
    const char *address;     /* nonbisd's data listener */
    struct clock_hand clock; /* of rig_start_at */
};

/* `more`: further arguments, NULL-terminated, or NULL. */
void rig_start(struct rig *rig, const char *const *more);
/* The same by rig->clock, which says `wall` and stands still until the test moves it. */
void rig_start_at(struct rig *rig, const char *wall, const char *const *more);
/* Starts nonbisd anew on the same store and handler, and by the same clock. */
void rig_restart(struct rig *rig, const char *const *more);
/* TERM; fails the test unless the exit code is 0 and the log has no line of level error. */
void rig_end(struct rig *rig);

/* Fails the test when `answer` is not this status with this Idempotency-Status ("" : none). */
#define RIG_EXPECT(answer, wanted_status, word)                                                                        \
    do {                                                                                                               \
        char rig_seen[64] = "";                                                                                        \
        (void) http_field(&(answer), "Idempotency-Status", rig_seen, sizeof rig_seen);                                 \
        ck_assert_msg((answer).status == (wanted_status) && strcmp(rig_seen, (word)) == 0,                             \
                      "expected %d with Idempotency-Status '%s', got %d with '%s': %s", (wanted_status), (word),       \
                      (answer).status, rig_seen, (answer).body != NULL ? (answer).body : "(no answer)");               \
    } while (0)

#endif
