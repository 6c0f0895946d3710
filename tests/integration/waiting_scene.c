/* waiting_scene.c - see waiting_scene.h. */
#include "tests/integration/waiting_scene.h"

#include <poll.h>

enum { PLACES_MAX = 128 };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

struct rig rig;

void scene_start(const char *level, const char *more)
{
    rig_start(&rig, (const char *const[]){ "--set", "server.loops=2", "--log-level", level,
                                           more != NULL ? "--set" : NULL, more, NULL });
    peer_script_named(rig.peer, "held", held);
}

int scene_start_command(const char *key)
{
    int fd = sender_post(rig.address, key, "X-Script: held\r\n");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    return fd;
}

void scene_wait_for_waiters(int count)
{
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", count));
}

int scene_send(const char *text)
{
    int fd = http_connect(rig.address);
    ck_assert_int_ge(fd, 0);
    ck_assert(http_send(fd, text, strlen(text)));
    return fd;
}

bool scene_has_answer(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    return poll(&one, 1, 0) > 0;
}

void scene_round_trip(const char *key)
{
    char field[128];
    (void) snprintf(field, sizeof field, "Idempotency-Key: %s\r\n", key);
    for (int i = 0; i < 2 * SCENE_LOOPS; i++) {
        sender_expect_last(sender_get(rig.address, STATUS, field), 200, "");
    }
}

void scene_expect_free_places(const char *key, int places)
{
    int fds[PLACES_MAX], waiting = 0;
    int first = scene_start_command(key);
    for (int turn = 0; turn < 1000 && waiting < places; turn++) {
        while (waiting < places) {
            fds[waiting++] = sender_post(rig.address, key, WAITS);
        }
        scene_round_trip(key);
        for (int i = 0; i < waiting;) {
            if (scene_has_answer(fds[i])) { /* there was no place for it yet */
                sender_expect_last(fds[i], 409, "in-progress");
                fds[i] = fds[--waiting];
            } else {
                i++;
            }
        }
    }
    ck_assert_int_eq(waiting, places);
    int over = sender_post(rig.address, key, WAITS);
    sender_expect_last(over, 409, "in-progress");
    peer_release(rig.peer, 1);
    sender_expect_last(first, 201, "executed");
    for (int i = 0; i < places; i++) {
        sender_expect_last(fds[i], 201, "replayed");
    }
}
