/* held_test.c - the client's long poll (`Prefer: wait`) against nonbisd itself: few questions, and the outcome is told when the
 * handler ends, not at the next poll. Requests are counted by the relay between the two, executions by the scripted handler. */
#include "tests/cli/program.h"
#include "tests/support/caller.h"
#include "tests/support/relay.h"
#include "tests/support/rig.h"

#include <stdlib.h>

static const struct peer_step slow[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone", 0 },
                                         PEER_END };

struct scene {
    struct rig rig;
    struct relay *relay;
    char url[128];
};

/* nonbisd gives its caller up after 50 ms; the handler goes on until it is released. */
static void scene_begin(struct scene *scene)
{
    rig_start(&scene->rig, (const char *[]){ "--set", "answer_timeout=50ms", NULL });
    peer_script_default(scene->rig.peer, slow);
    scene->relay = relay_new(scene->rig.address);
    (void) snprintf(scene->url, sizeof scene->url, "http://%s/orders", relay_address(scene->relay));
}

static void scene_finish(struct scene *scene)
{
    relay_free(scene->relay);
    rig_end(&scene->rig);
}

/* Until so many are held by nonbisd, as its metrics say. */
static void wait_held(const struct scene *scene, int wanted)
{
    char line[64];
    bool held = false;
    (void) snprintf(line, sizeof line, "\nnonbis_waiters %d\n", wanted);
    for (int tries = 0; !held && tries < 100000; tries++) {
        struct http_answer page = http_request(scene->rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
        ck_assert_int_eq(page.status, 200);
        held = strstr(page.body, line) != NULL;
        http_answer_free(&page);
    }
    ck_assert_msg(held, "nobody was ever held: %s", line);
}

/* Releases the handler once the program is held, and tells how long the program took from there. */
static int64_t release_and_end(struct scene *scene, struct program *run)
{
    wait_held(scene, 1);
    int64_t released_ms = suite_now_ms();
    peer_release(scene->rig.peer, 1);
    program_end(run);
    return suite_now_ms() - released_ms;
}

/* The poll windows are so long that an answer at a poll would be seen: 10 s. */
#define PATIENT "--poll", "10s", "--max-poll", "10s", "--hold", "20s", "--deadline", "60s", "--status-timeout", "5s"

static void expect_end(struct scene *scene, struct program *run, const char *key, unsigned requests, int64_t took_ms)
{
    PROGRAM_EXPECT(*run, key, 0);
    ck_assert_str_eq(run->out, "done");
    ck_assert_uint_eq(peer_count_key(scene->rig.peer, key), 1);
    ck_assert_msg(relay_requests(scene->relay) <= requests, "%s: %u requests for one slow command", key,
                  relay_requests(scene->relay));
    ck_assert_msg(took_ms < 5000, "%s: told %d ms after the handler ended", key, (int) took_ms);
    FIGURE("%s: %u requests; told %d ms after the handler ended", key, relay_requests(scene->relay), (int) took_ms);
}

START_TEST(wait_is_held_by_the_server_and_told_when_the_handler_ends)
{
    struct scene scene;
    struct program run;
    struct caller caller;
    scene_begin(&scene);
    caller_start(&caller, scene.rig.address, "waited");
    ck_assert(peer_wait_requests(scene.rig.peer, 1));
    program_begin(&run, NULL, (const char *[]){ "wait", "waited", "--url", scene.url, PATIENT, NULL });
    int64_t took_ms = release_and_end(&scene, &run);
    caller_join(&caller);
    http_answer_free(&caller.answer);
    expect_end(&scene, &run, "waited", 3, took_ms); /* status, status held, the answer */
    program_free(&run);
    scene_finish(&scene);
}
END_TEST

START_TEST(a_run_asks_likewise_once_its_attempt_was_told_that_the_handler_goes_on)
{
    struct scene scene;
    struct program run;
    scene_begin(&scene);
    program_begin(&run, NULL, (const char *[]){ "post", scene.url, "-k", "posted", "-d", "x", PATIENT, NULL });
    int64_t took_ms = release_and_end(&scene, &run);
    expect_end(&scene, &run, "posted", 4, took_ms); /* the attempt, status held, the answer; one in hand */
    program_free(&run);
    scene_finish(&scene);
}
END_TEST

/* The hold ends before the handler: the next question is held again, and a minute of work is a handful of questions. */
START_TEST(a_hold_that_ends_too_early_is_followed_by_another)
{
    struct scene scene;
    struct program run;
    scene_begin(&scene);
    program_begin(&run, NULL,
                  (const char *[]){ "post", scene.url, "-k", "again", "-d", "x", "--poll", "0s", "--hold", "1s",
                                    "--base-delay", "0s", "--deadline", "60s", NULL });
    ck_assert(relay_wait_requests(scene.relay, 3)); /* the attempt, one hold, the next question */
    int64_t took_ms = release_and_end(&scene, &run);
    expect_end(&scene, &run, "again", 6, took_ms);
    program_free(&run);
    scene_finish(&scene);
}
END_TEST

SUITE(held)
{
    Suite *suite = suite_create("cli/held");
    CASE(suite, wait_is_held_by_the_server_and_told_when_the_handler_ends);
    CASE(suite, a_run_asks_likewise_once_its_attempt_was_told_that_the_handler_goes_on);
    CASE(suite, a_hold_that_ends_too_early_is_followed_by_another);
    return suite;
}
