/* replay_cache_test.c - repeats answered from memory, through the whole server (setting replay_cache): when the store is asked and when not, that nothing
 * but time is left out, and that what ends in the store ends in memory. Executions are counted at the handler. With two loops each connection may
 * meet another cache, so all of a test goes over one connection. */
#include "tests/support/exposition.h"
#include "tests/support/rig.h"

#include <unistd.h>

#define START "2030-01-01T00:00:00Z"

static const struct peer_step created[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 7\r\nX-Kept: yes\r\n\r\nthe one", 0 },
    PEER_END
};

static struct rig rig;
static int fd;

static void start(const char *const *more)
{
    rig_start_at(&rig, START, more);
    peer_script_default(rig.peer, created);
    fd = http_connect(rig.address);
}

static struct http_answer post(const char *key, const char *fields, const char *body)
{
    char request[512];
    int len = snprintf(request, sizeof request,
                       "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                       key, fields, strlen(body), body);
    ck_assert(http_send(fd, request, (size_t) len));
    return http_receive(fd, false, NULL);
}

static void expect(const char *key, const char *fields, const char *body, int status, const char *word,
                   const char *text)
{
    struct http_answer answer = post(key, fields, body);
    RIG_EXPECT(answer, status, word);
    ck_assert_msg(strstr(answer.body, text) != NULL, "no '%s' in %s", text, answer.body);
    http_answer_free(&answer);
}

static void expect_metric(const char *name, double from, double to)
{
    struct http_answer page = http_request(rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
    double value = exposition_value(page.body, name);
    ck_assert_msg(value >= from && value <= to, "%s is %f", name, value);
    http_answer_free(&page);
}
#define EXPECT_CACHED(count) expect_metric("nonbis_repeats_cached_total", (count), (count))

static void end(void)
{
    close(fd);
    rig_end(&rig);
}

/* The head behind its Date, which tells when this answer was sent; it is the first field. */
static const char *without_date(const struct http_answer *answer)
{
    static const char date[] = "HTTP/1.1 201 Created\r\nDate: ";
    ck_assert_msg(strncmp(answer->head, date, sizeof date - 1) == 0, "%s", answer->head);
    return strstr(answer->head + sizeof date, "\r\n");
}

START_TEST(the_second_repeat_and_all_after_it_come_from_memory_and_are_the_same)
{
    start(NULL);
    expect("k", "", "x", 201, "executed", "the one");
    EXPECT_CACHED(0);
    struct http_answer first = post("k", "", "x");
    RIG_EXPECT(first, 201, "replayed");
    EXPECT_CACHED(0);
    for (int i = 1; i <= 20; i++) {
        struct http_answer again = post("k", "", "x");
        ck_assert_str_eq(without_date(&again), without_date(&first));
        ck_assert_str_eq(again.body, first.body);
        http_answer_free(&again);
        EXPECT_CACHED(i);
    }
    http_answer_free(&first);
    expect_metric("nonbis_replay_cache_bytes", 100, 2000);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    end();
}
END_TEST

START_TEST(another_payload_or_credential_is_refused_from_memory_too)
{
    start((const char *const[]){ "--set", "tenant=header:X-Org", NULL });
#define MINE "X-Org: one\r\nAuthorization: a\r\n"
    expect("k", MINE, "x", 201, "executed", "the one");
    expect("k", MINE, "x", 201, "replayed", "the one");
    expect("k", MINE, "y", 422, "refused", ":key-reused");
    expect("k", "X-Org: one\r\nAuthorization: b\r\n", "x", 422, "refused", "\"differs\":[\"credentials\"]");
    EXPECT_CACHED(2);
    expect("k", "X-Org: two\r\nAuthorization: a\r\n", "x", 201, "executed", "the one");
    EXPECT_CACHED(2);
    expect("k", MINE, "x", 201, "replayed", "the one");
    EXPECT_CACHED(3);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    end();
}
END_TEST

/* ttl is 24 h and tombstone_ttl 30 days. */
START_TEST(what_ends_in_the_store_ends_in_memory_and_the_next_life_has_its_own_answer)
{
    static const struct peer_step second[] = {
        { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 202 Accepted\r\nContent-Length: 7\r\n\r\nanother", 0 }, PEER_END
    };
    start(NULL);
    expect("k", "", "x", 201, "executed", "the one");
    expect("k", "", "x", 201, "replayed", "the one");
    clock_hand_pass(&rig.clock, MOVED_DAY - 1);
    expect("k", "", "x", 201, "replayed", "the one");
    EXPECT_CACHED(1);
    clock_hand_pass(&rig.clock, 1);
    expect("k", "", "x", 422, "refused", ":key-expired");
    EXPECT_CACHED(1);
    clock_hand_pass(&rig.clock, 29 * MOVED_DAY);
    peer_script_default(rig.peer, second);
    expect("k", "", "x", 202, "executed", "another");
    expect("k", "", "x", 202, "replayed", "another");
    expect("k", "", "x", 202, "replayed", "another");
    EXPECT_CACHED(2);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    end();
}
END_TEST

START_TEST(setting_replay_cache)
{
    start((const char *const[]){ "--set", "replay_cache=0", NULL });
    expect("k", "", "x", 201, "executed", "the one");
    for (int i = 0; i < 5; i++) {
        expect("k", "", "x", 201, "replayed", "the one");
    }
    EXPECT_CACHED(0);
    expect_metric("nonbis_replay_cache_bytes", 0, 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    end();
}
END_TEST

SUITE(replay_cache)
{
    Suite *suite = suite_create("integration/replay_cache");
    CASE(suite, the_second_repeat_and_all_after_it_come_from_memory_and_are_the_same);
    CASE(suite, another_payload_or_credential_is_refused_from_memory_too);
    CASE(suite, what_ends_in_the_store_ends_in_memory_and_the_next_life_has_its_own_answer);
    CASE(suite, setting_replay_cache);
    return suite;
}
