/* held.c - see held.h. */
#include "tests/contract/held.h"

#include "tests/support/exposition.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { LOOKS_MAX = 20000, LOOPS_MAX = 4 };

struct sync_hand held_disk;

void held_start(void)
{
    scene.peer = peer_new();
    (void) snprintf(scene.store, sizeof scene.store, "%s/nonbis.db", daemon_folder());
    sync_hand_make(&held_disk);
    daemon_start_held(&scene.nonbis, held_disk.path, peer_url(scene.peer), scene.store, NULL);
    scene.address = scene.nonbis.listen;
}

static struct http_answer metrics(void)
{
    struct http_answer page = http_request(scene.nonbis.admin, "GET", "/metrics", NULL, NULL);
    ck_assert_int_eq(page.status, 200);
    return page;
}

/* What waits for the store thread, as /metrics tells. */
static bool queue_is(int claims, int reads)
{
    struct http_answer page = metrics();
    bool is = (int) exposition_value(page.body, "nonbis_store_queue{kind=\"outcomes\"}") == 0 &&
              (int) exposition_value(page.body, "nonbis_store_queue{kind=\"claims\"}") == claims &&
              (int) exposition_value(page.body, "nonbis_store_queue{kind=\"reads\"}") == reads;
    http_answer_free(&page);
    return is;
}

/* The claim has come as far as the store's queue: it counts as running before that, and each loop has had a turn since. */
static void wait_claimed(void)
{
    int looks = 0;
    for (bool claimed = false; !claimed;) {
        struct http_answer page = metrics();
        claimed = exposition_value(page.body, "nonbis_running") >= 1;
        http_answer_free(&page);
        ck_assert_msg(looks++ < LOOKS_MAX, "no command ever asked for its claim");
    }
    for (int i = 0; i < 2 * LOOPS_MAX; i++) { /* connections go to the loops in turn */
        ck_assert_int_eq(ask("GET", "/_nonbis/v1", "", NULL)->status, 200);
    }
}

void held_wait_taken(void)
{
    wait_claimed();
    for (;;) {
        sync_hand_expect(&held_disk);
        if (queue_is(0, 0)) {
            return;
        }
        sync_hand_let_one(&held_disk); /* the store's own, of its housekeeping */
    }
}

void held_wait_queued(int claims, int reads)
{
    int looks = 0;
    while (!queue_is(claims, reads)) {
        ck_assert_msg(looks++ < LOOKS_MAX, "there were never %d claims and %d look-ups in the queue", claims, reads);
    }
}

void held_pass_through(void)
{
    for (int i = 0; i < 2 * LOOPS_MAX; i++) { /* connections go to the loops in turn */
        ck_assert_int_eq(ask("GET", "/passing", "", NULL)->status, 200);
    }
    /* The handler has threads too: what the loops sent before is counted when its connections are all accepted, which happens in their order, and read. */
    struct http_answer last = http_request(peer_url(scene.peer) + strlen("http://"), "GET", "/passing", NULL, NULL);
    ck_assert_int_eq(last.status, 200);
    http_answer_free(&last);
    ck_assert(peer_wait_read(scene.peer));
}

int held_send(const char *bytes)
{
    int fd = http_connect(scene.address);
    ck_assert_int_ge(fd, 0);
    ck_assert(http_send(fd, bytes, strlen(bytes)));
    return fd;
}

void held_expect_silence(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    ck_assert_msg(poll(&ready, 1, 0) == 0, "an answer came before what it rests on was durable");
}
