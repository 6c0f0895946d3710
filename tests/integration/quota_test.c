/* quota_test.c - quotas of tenants in the running server (docs/contract.md 4.10, whose sentences are in tests/contract/s04c_quota_test.c): each setting
 * shows its effect, and the count is exact with many clients and loops at once. Executions are counted at the handler. */
#include "tests/support/crowd.h"
#include "tests/support/exposition.h"
#include "tests/support/rig.h"
#include "tests/support/sender.h"

#include <unistd.h>

static struct rig rig;

/* Time stands still until a test moves it. */
#define WITH(...) rig_start_at(&rig, "2030-01-01T00:00:00Z", (const char *const[]){ __VA_ARGS__, NULL })
#define SET(text) "--set", text

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

START_TEST(setting_tenant_rate)
{
    WITH(SET("tenant_rate=2/s"));
    post("1", 200, "executed");
    post("2", 200, "executed"); /* what comes in a second is the burst */
    post("3", 429, "refused");
    clock_hand_pass(&rig.clock, 499);
    post("3", 429, "refused");
    clock_hand_pass(&rig.clock, 1);
    post("3", 200, "executed");
    post("4", 429, "refused");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=refused status=429 problem=quota-exceeded reason=rate"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    rig_end(&rig);
}
END_TEST

START_TEST(setting_tenant_burst)
{
    WITH(SET("tenant_rate=30/m"), SET("tenant_burst=5"));
    for (int i = 0; i < 5; i++) {
        post((const char *const[]){ "1", "2", "3", "4", "5" }[i], 200, "executed");
    }
    post("6", 429, "refused");
    clock_hand_pass(&rig.clock, 2000);
    post("6", 200, "executed");
    post("7", 429, "refused");
    rig_end(&rig);
}
END_TEST

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };

START_TEST(setting_tenant_in_flight)
{
    WITH(SET("tenant_in_flight=1"));
    peer_script_default(rig.peer, held);
    int running = sender_post(rig.address, "1", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    post("2", 429, "refused");
    ck_assert(daemon_wait_logged(&rig.nonbis, "problem=quota-exceeded reason=in-flight"));
    peer_release(rig.peer, 2);
    sender_expect_last(running, 201, "executed");
    post("2", 201, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

/* --- many at once --- */

enum { MANY = 64, BURST = 20 };

static struct crowd_member members[MANY];

static int run_crowd(int count, const char *fields, int status)
{
    int seen = 0;
    crowd_run(members, count);
    for (int i = 0; i < count; i++) {
        seen += members[i].answer.status == status;
        ck_assert_msg(members[i].answer.status == 200 || members[i].answer.status == 429, "status %d, fields %s",
                      members[i].answer.status, fields != NULL ? fields : "none");
    }
    crowd_free(members, count);
    return seen;
}

START_TEST(of_a_crowd_on_four_loops_exactly_the_burst_is_executed)
{
    WITH(SET("server.loops=4"), SET("tenant=header:X-Tenant"), SET("tenant_rate=1/h"), SET("tenant_burst=20"));
    for (int round = 0; round < 4; round++) {
        char fields[32];
        (void) snprintf(fields, sizeof fields, "X-Tenant: t%d\r\n", round);
        for (int i = 0; i < MANY; i++) {
            members[i] = (struct crowd_member){ .address = rig.address, .fields = fields, .body = "x" };
            (void) snprintf(members[i].key, sizeof members[i].key, "k%d", i);
        }
        ck_assert_int_eq(run_crowd(MANY, fields, 200), BURST);
        ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) (round + 1) * BURST);
    }
    rig_end(&rig);
}
END_TEST

/* Repeats that ask the store hold a token while they do: afterwards it is there again. */
START_TEST(a_crowd_of_repeats_uses_nothing_of_the_quota)
{
    WITH(SET("server.loops=4"), SET("replay_cache=0"), SET("tenant_rate=1/h"), SET("tenant_burst=3"),
         SET("tenant_in_flight=3"));
    post("k", 200, "executed");
    for (int i = 0; i < MANY; i++) {
        members[i] = (struct crowd_member){ .address = rig.address, .key = "k", .body = "x" };
    }
    for (int round = 0; round < 4; round++) {
        ck_assert_int_eq(run_crowd(MANY, NULL, 200), MANY);
    }
    post("1", 200, "executed");
    post("2", 200, "executed");
    post("3", 429, "refused");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 3);
    rig_end(&rig);
}
END_TEST

static void expect_metrics(int exchanges, const char *refused, const char *tenants)
{
    char line[2][128];
    ck_assert(daemon_wait_logged_times(&rig.nonbis, " exchange ", exchanges)); /* counted before it is logged */
    struct http_answer page = http_request(rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
    (void) snprintf(line[0], sizeof line[0],
                    "nonbis_requests_total{route=\"POST /orders\",result=\"quota-exceeded\"} %s", refused);
    (void) snprintf(line[1], sizeof line[1], "nonbis_quota_tenants %s", tenants);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(exposition_has(page.body, line[i]), "no line '%s'", line[i]);
    }
    http_answer_free(&page);
}

START_TEST(the_metrics_tell_refusals_and_tenants_that_have_used_some)
{
    WITH(SET("tenant=header:X-Tenant"), SET("tenant_rate=1/s"), SET("tenant_burst=2"), "--route", "POST /orders");
    for (int i = 0; i < 6; i++) {
        members[i] = (struct crowd_member){ .address = rig.address, .body = "x" };
        members[i].fields = i < 4 ? "X-Tenant: a\r\n" : "X-Tenant: b\r\n";
        (void) snprintf(members[i].key, sizeof members[i].key, "k%d", i);
    }
    expect_metrics(0, "0", "0");
    ck_assert_int_eq(run_crowd(6, NULL, 200), 4);
    expect_metrics(6, "2", "2");
    clock_hand_pass(&rig.clock, 2000);
    expect_metrics(6, "2", "0");
    rig_end(&rig);
}
END_TEST

SUITE(quota)
{
    Suite *suite = suite_create("integration/quota");
    CASE(suite, setting_tenant_rate);
    CASE(suite, setting_tenant_burst);
    CASE(suite, setting_tenant_in_flight);
    CASE(suite, of_a_crowd_on_four_loops_exactly_the_burst_is_executed);
    CASE(suite, a_crowd_of_repeats_uses_nothing_of_the_quota);
    CASE(suite, the_metrics_tell_refusals_and_tenants_that_have_used_some);
    return suite;
}
