/* scene.h - what several of these tests need around the program: answers of a scripted server, and who was asked what. */
#ifndef NONBIS_TESTS_CLI_SCENE_H
#define NONBIS_TESTS_CLI_SCENE_H

#include "tests/peer/peer.h"

/* Scripts of one answer each. ANSWER(status line, fields, body without quotes of length) writes whole heads. */
#define SCENE_ANSWER(name, text)                                                                                       \
    static const struct peer_step name[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, text, 0 }, PEER_END }

/* How many requests of `method` for a path that begins with `path` came. */
unsigned scene_count(struct peer *peer, const char *method, const char *path);
/* The body of the n-th request of all, from 1; in a static place. */
const char *scene_body(struct peer *peer, unsigned n);
/* The value of a field of the n-th request; "" when it is not there. In a static place. */
const char *scene_field(struct peer *peer, unsigned n, const char *name);

#endif
