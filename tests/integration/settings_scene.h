/* settings_scene.h - what the tests of settings share: nonbisd with a few settings of the test's own, and a client that asks it. Header only, so that
 * each file has a rig of its own. */
#ifndef NONBIS_TESTS_SETTINGS_SCENE_H
#define NONBIS_TESTS_SETTINGS_SCENE_H

#include "tests/support/caller.h"
#include "tests/support/rig.h"

static struct rig rig;

#define WITH(...) rig_start(&rig, (const char *const[]){ __VA_ARGS__, NULL })
#define SET(text) "--set", text

static inline void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step never[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };

static inline void caller_expect(struct caller *caller, int status, const char *word)
{
    caller_join(caller);
    RIG_EXPECT(caller->answer, status, word);
    http_answer_free(&caller->answer);
}

#endif
