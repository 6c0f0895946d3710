/* settings_waiting_test.c - the limits on waiting show their effect in the running server, as settings_test.c does for others: the second
 * of two repeats is answered at once. */
#include "tests/support/rig.h"

#include <stdio.h>
#include <unistd.h>

static struct rig rig;

#define WITH(...) rig_start(&rig, (const char *const[]){ "--log-level", "debug", __VA_ARGS__, NULL })
#define SET(text) "--set", text

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

static int post_waiting(const char *key, const char *fields)
{
    char request[512];
    int fd = http_connect(rig.address);
    int len = snprintf(request, sizeof request,
                       "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: %s\r\nPrefer: wait=20\r\n%s"
                       "Content-Length: 1\r\n\r\nx",
                       key, fields);
    ck_assert(fd >= 0 && http_send(fd, request, (size_t) len));
    return fd;
}

static void expect_at(int fd, int status, const char *word)
{
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
    close(fd);
}

/* One repeat of `key` waits, one of `over` is over the limit, and one of `within` (NULL: none) waits as well. */
static void expect_waiters(const char *const *keys, const char *fields, const char *over, const char *over_fields,
                           const char *within, const char *within_fields)
{
    int firsts[2];
    int count = 0;
    peer_script_default(rig.peer, held);
    for (; keys[count] != NULL; count++) {
        firsts[count] = post_waiting(keys[count], count == 0 ? fields : within_fields);
        ck_assert(peer_wait_stalled(rig.peer, (unsigned) count + 1));
    }
    int waiter = post_waiting(keys[0], fields);
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", 1));
    expect_at(post_waiting(over, over_fields), 409, "in-progress");
    int second = within != NULL ? post_waiting(within, within_fields) : -1;
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", within != NULL ? 2 : 1));
    peer_release(rig.peer, (unsigned) count);
    for (int i = 0; i < count; i++) {
        expect_at(firsts[i], 201, "executed");
    }
    expect_at(waiter, 201, "replayed");
    if (within != NULL) {
        expect_at(second, 201, "replayed");
    }
    rig_end(&rig);
}

START_TEST(setting_waiters_per_key)
{
    WITH(SET("waiters_per_key=1"));
    expect_waiters((const char *const[]){ "a", "b", NULL }, "", "a", "", "b", "");
}
END_TEST

START_TEST(setting_waiters_per_tenant)
{
    WITH(SET("waiters_per_tenant=1"), SET("tenant=header:X-Org"));
    expect_waiters((const char *const[]){ "a", "b", NULL }, "X-Org: one\r\n", "a", "X-Org: one\r\n", "b",
                   "X-Org: two\r\n");
}
END_TEST

START_TEST(setting_waiters_max)
{
    WITH(SET("waiters_max=1"));
    expect_waiters((const char *const[]){ "a", "b", NULL }, "", "b", "", NULL, "");
}
END_TEST

START_TEST(setting_wait_max)
{
    WITH(SET("wait_max=0s"));
    peer_script_default(rig.peer, held);
    int first = post_waiting("a", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    expect_at(post_waiting("a", ""), 409, "in-progress");
    ck_assert(!daemon_logged(&rig.nonbis, "waits for the end"));
    peer_release(rig.peer, 1);
    expect_at(first, 201, "executed");
    rig_end(&rig);
}
END_TEST

SUITE(settings_waiting)
{
    Suite *suite = suite_create("integration/settings-waiting");
    CASE(suite, setting_waiters_per_key);
    CASE(suite, setting_waiters_per_tenant);
    CASE(suite, setting_waiters_max);
    CASE(suite, setting_wait_max);
    return suite;
}
