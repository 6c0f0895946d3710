/* waiting_scene.h - what the tests of hostile waiters share: two loops, a command that is held, and when it is known that everybody who will wait does.
 * One scene at a time. */
#ifndef NONBIS_TESTS_WAITING_SCENE_H
#define NONBIS_TESTS_WAITING_SCENE_H

#include "tests/support/sender.h"

enum { SCENE_LOOPS = 2 };

#define STATUS "/_nonbis/v1/command"
#define WAITS "Prefer: wait=20\r\n"
#define HEAD(method, target, version, fields) method " " target " HTTP/" version "\r\nHost: h\r\n" fields

extern struct rig rig;

/* `level` of the log; `more`: a value for --set, or NULL. */
void scene_start(const char *level, const char *more);
/* The handler has it, and holds its answer until peer_release. */
int scene_start_command(const char *key);
int scene_send(const char *text); /* on a new connection */
bool scene_has_answer(int fd);
void scene_wait_for_waiters(int count); /* level debug: so many have begun to wait since the start */
/* Every loop has done what it was given before, and the store has as well: whoever will be answered at once has been. `key` is known. */
void scene_round_trip(const char *key);
/* With waiters_max = `places`: all of them are free, or will be soon. `key` is new. */
void scene_expect_free_places(const char *key, int places);

#endif
