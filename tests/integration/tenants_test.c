/* tenants_test.c - 50 tenants behind one front proxy, all executing the same key at the same moment (docs/contract.md section 3): each is told of its
 * own attempt, and gets its own answer. The handler holds them all, so they overlap by construction, and gives back the request as it
 * received it: its answers name tenant, key and command. Many keys and everything at random: tenants_storm_test.c. */
#include "tests/integration/tenants_ledger.h"
#include "tests/support/crowd.h"
#include "tests/support/rig.h"

#include <pthread.h>

#define STATUS "/_nonbis/v1/command"
#define VOID "/_nonbis/v1/command/void"

static const char *const by_tenant[] = { "--set", "tenant=header:X-Tenant", "--log-level", "warn", NULL };

static const struct peer_step held_echo[] = {
    { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_ECHO, NULL, 0 }, PEER_END
};
static struct rig rig;
static struct crowd_member members[LEDGER_TENANTS];

static void *crowd_thread(void *context)
{
    crowd_run(members, LEDGER_TENANTS);
    return context;
}

static struct http_answer ask_one(const char *method, const char *target, int tenant, const char *key, const char *body)
{
    char fields[256];
    (void) snprintf(fields, sizeof fields,
                    "X-Tenant: t%02d\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\n", tenant, key);
    return http_request(rig.address, method, target, fields, body);
}

/* While all are held at the handler: what tenant `i` is told is of its own attempt. */
static void expect_running(int i, char link[256])
{
    static const char other[] = "{\"amount\":3}";
    struct http_answer repeat = ask_one("POST", "/orders", i, "k-02", members[i].body);
    RIG_EXPECT(repeat, 409, "in-progress");
    ck_assert(http_field(&repeat, "Link", link, 256));
    struct http_answer reused = ask_one("POST", "/orders", i, "k-02", other);
    RIG_EXPECT(reused, 422, "refused");
    ck_assert_ptr_nonnull(strstr(reused.body, "\"differs\":[\"body\"]"));
    ck_assert(http_field_is(&reused, "Link", link));
    struct http_answer voided = ask_one("POST", VOID, i, "k-02", NULL);
    ck_assert_int_eq(voided.status, 409);
    ck_assert(http_field_is(&voided, "Link", link));
    struct http_answer status = ask_one("GET", STATUS, i, "k-02", NULL);
    ck_assert_int_eq(status.status, 200);
    ck_assert_ptr_nonnull(strstr(status.body, "\"state\":\"in_progress\",\"executed\":\"unknown\",\"executions\":1"));
    ck_assert(http_field_is(&status, "Link", link));
    http_answer_free(&repeat);
    http_answer_free(&reused);
    http_answer_free(&voided);
    http_answer_free(&status);
}

START_TEST(fifty_tenants_execute_one_key_at_the_same_time_and_each_gets_its_own_answer)
{
    static char fields[LEDGER_TENANTS][64], links[LEDGER_TENANTS][256];
    pthread_t thread;
    char tenant[8], key[8];
    rig_start(&rig, by_tenant);
    peer_script_default(rig.peer, held_echo);
    for (int i = 0; i < LEDGER_TENANTS; i++) {
        const struct ledger_command command = { .tenant = i, .key = 2 };
        char body[64];
        ledger_names(&command, tenant, key, body);
        (void) snprintf(fields[i], sizeof fields[i], "X-Tenant: %s\r\n", tenant);
        members[i] = (struct crowd_member){ .address = rig.address, .fields = fields[i] };
        (void) snprintf(members[i].key, sizeof members[i].key, "%s", key);
        (void) snprintf(members[i].body, sizeof members[i].body, "%s", body);
        ledger_begin_attempt(&command);
    }
    pthread_create(&thread, NULL, crowd_thread, NULL);
    ck_assert(peer_wait_stalled(rig.peer, LEDGER_TENANTS));
    for (int i = 0; i < LEDGER_TENANTS; i++) {
        expect_running(i, links[i]);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), LEDGER_TENANTS);
    peer_release(rig.peer, LEDGER_TENANTS);
    pthread_join(thread, NULL);
    for (int i = 0; i < LEDGER_TENANTS; i++) {
        const struct ledger_command command = { .tenant = i, .key = 2 };
        RIG_EXPECT(members[i].answer, 200, "executed");
        ck_assert(http_field_is(&members[i].answer, "Link", links[i]));
        (void) ledger_judge_attempt(&command, &members[i].answer);
        struct http_answer replay = ask_one("POST", "/orders", i, members[i].key, members[i].body);
        RIG_EXPECT(replay, 200, "replayed");
        (void) ledger_judge_attempt(&command, &replay);
        http_answer_free(&replay);
    }
    FIGURE("one key of %d tenants at once: executions_at_handler=%u, all %d held there at the same time",
           LEDGER_TENANTS, ledger_judge_handler(rig.peer), LEDGER_TENANTS);
    ledger_judge_ids();
    const char *fault = ledger_fault();
    ck_assert_msg(fault == NULL, "%s", fault != NULL ? fault : "");
    ck_assert_uint_eq(peer_count_requests(rig.peer), LEDGER_TENANTS);
    crowd_free(members, LEDGER_TENANTS);
    ledger_fini();
    rig_end(&rig);
}
END_TEST

SUITE(tenants)
{
    Suite *suite = suite_create("integration/tenants");
    CASE(suite, fifty_tenants_execute_one_key_at_the_same_time_and_each_gets_its_own_answer);
    return suite;
}
