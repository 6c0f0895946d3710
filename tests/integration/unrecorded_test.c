/* unrecorded_test.c - the store has no room when an outcome is there (docs/contract.md sections 6 and 11): the client still gets the real answer, marked
 * unrecorded; the outcome is kept in memory and recorded as soon as there is room. The disk is a small file system of this test's own. */
#include "tests/support/exposition.h"
#include "tests/support/rig.h"
#include "tests/support/small_disk.h"

#include <pthread.h>

static const struct peer_step held_large[] = { { PEER_BODY, NULL, 0 },
                                               { PEER_WAIT, NULL, 0 },
                                               { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 500000\r\n\r\n",
                                                 0 },
                                               { PEER_SEND, "0123456789", 50000 },
                                               PEER_END };

static struct rig rig;
static struct http_answer first;

static void *first_caller(void *context)
{
    first = http_post(rig.address, "/orders", "k-1", "x");
    return context;
}

START_TEST(an_outcome_that_cannot_be_stored_is_told_as_unrecorded_and_recorded_once_there_is_room)
{
    pthread_t thread;
    char disk[700];
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    if (!small_disk_open(disk, "4m")) {
        return;
    }
    ck_assert_int_eq(setenv("NONBIS_STORE_RESERVE", "256KiB", 1), 0); /* less than the answer */
    rig.peer = peer_new();
    peer_script_for_request(rig.peer, 2, held_large);
    (void) snprintf(rig.store, sizeof rig.store, "%.500s/n.db", disk);
    rig_restart(&rig, NULL);
    struct http_answer before = http_post(rig.address, "/orders", "k-0", "x");
    RIG_EXPECT(before, 200, "executed");
    pthread_create(&thread, NULL, first_caller, NULL);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    small_disk_fill(disk);
    peer_release(rig.peer, 1);
    pthread_join(thread, NULL);
    RIG_EXPECT(first, 201, "unrecorded");
    ck_assert(first.whole);
    ck_assert_uint_eq(first.body_len, 500000);
    ck_assert_int_eq(http_field_count(&first, "Idempotency-Expires"), 0);
    /* Replays go on, new commands are refused, and the command itself is never sent again. */
    struct http_answer replay = http_post(rig.address, "/orders", "k-0", "x");
    RIG_EXPECT(replay, 200, "replayed");
    struct http_answer running = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(running, 409, "in-progress");
    small_disk_make_room(disk);
    ck_assert(daemon_wait_logged(&rig.nonbis, "is recorded now"));
    /* The line, and the counts, tell of it once; what is in the store now is complete. */
    ck_assert(daemon_logged(&rig.nonbis, " before=not_seen after=in_progress "));
    ck_assert(daemon_logged(&rig.nonbis, " upstream_status=201 store_result=full "));
    struct http_answer page = http_request(rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
    ck_assert(exposition_has(page.body, "nonbis_requests_total{route=\"POST /*\",result=\"unrecorded\"} 1"));
    ck_assert(exposition_has(page.body, "nonbis_unknown_total{cause=\"unrecorded\"} 1"));
    ck_assert(exposition_has(page.body, "nonbis_records{state=\"completed\"} 2"));
    ck_assert(exposition_has(page.body, "nonbis_records{state=\"in_progress\"} 0"));
    http_answer_free(&page);
    struct http_answer again = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(again, 201, "replayed");
    ck_assert_uint_eq(again.body_len, 500000);
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 1);
    http_answer_free(&before);
    http_answer_free(&first);
    http_answer_free(&replay);
    http_answer_free(&running);
    http_answer_free(&again);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    peer_free(rig.peer);
    small_disk_end(disk);
}
END_TEST

SUITE(unrecorded)
{
    Suite *suite = suite_create("integration/unrecorded");
    CASE(suite, an_outcome_that_cannot_be_stored_is_told_as_unrecorded_and_recorded_once_there_is_room);
    return suite;
}
