/* void_test.c - giving a key up for good (docs/contract.md section 8): the only way by which "not seen" becomes "never". */
#include "tests/support/caller.h"
#include "tests/support/crowd.h"
#include "tests/support/rig.h"

#define STATUS "/_nonbis/v1/command"
#define VOID "/_nonbis/v1/command/void"

static struct rig rig;

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };

static struct http_answer void_key(const char *key, const char *more)
{
    char fields[256];
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n%s", key, more);
    struct http_answer answer = http_request(rig.address, "POST", VOID, fields, NULL);
    ck_assert(http_field_is(&answer, "Cache-Control", "no-store"));
    ck_assert_int_eq(http_field_count(&answer, "Idempotency-Status"), 0);
    return answer;
}

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

/* `texts`: NULL-terminated; all must be in the body. */
static void expect_void(const char *key, const char *more, int status, const char *const *texts)
{
    struct http_answer answer = void_key(key, more);
    ck_assert_msg(answer.status == status, "%s: %d instead of %d: %s", key, answer.status, status, answer.body);
    for (; *texts != NULL; texts++) {
        ck_assert_msg(strstr(answer.body, *texts) != NULL, "%s: '%s' is not in %s", key, *texts, answer.body);
    }
    http_answer_free(&answer);
}
#define EXPECT_VOID(key, more, status, ...)                                                                            \
    expect_void((key), (more), (status), (const char *const[]){ __VA_ARGS__, NULL })

START_TEST(a_voided_key_is_never_executed_also_after_a_crash)
{
    rig_start(&rig, NULL);
    struct http_answer first = void_key("k-1", "");
    ck_assert_int_eq(first.status, 200);
    ck_assert_ptr_nonnull(strstr(first.body, "\"state\":\"voided\",\"executed\":\"no\",\"executions\":0"));
    ck_assert_ptr_nonnull(strstr(first.body, "\"request\":null,\"response\":null}"));
    ck_assert_int_eq(http_field_count(&first, "Link"), 1);
    struct http_answer again = void_key("k-1", "");
    ck_assert_int_eq(again.status, 200);
    ck_assert_str_eq(again.body, first.body);
    struct http_answer late = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(late, 422, "refused");
    ck_assert_ptr_nonnull(strstr(late.body, "key-voided"));
    ck_assert_ptr_nonnull(strstr(late.body, "\"executed\":\"no\""));
    daemon_kill(&rig.nonbis);
    rig_restart(&rig, NULL);
    post("k-1", 422, "refused");
    EXPECT_VOID("k-1", "", 200, "\"state\":\"voided\"");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 0);
    http_answer_free(&first);
    http_answer_free(&again);
    http_answer_free(&late);
    rig_end(&rig);
}
END_TEST

START_TEST(what_ran_or_may_have_run_cannot_be_voided_and_what_was_released_can)
{
    struct caller caller;
    rig_start(&rig, NULL);
    post("done", 200, "executed");
    peer_script_for_request(rig.peer, 2, lost);
    peer_script_for_request(rig.peer, 3, busy);
    peer_script_for_request(rig.peer, 4, held);
    post("lost", 504, "unknown");
    post("busy", 429, "not-executed");
    caller_start(&caller, rig.address, "running");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    EXPECT_VOID("done", "", 422, "not-voidable", "\"executed\":\"yes\"", "\"state\":\"completed\"",
                "\"command\":\"/_nonbis/v1/commands/");
    EXPECT_VOID("lost", "", 422, "not-voidable", "\"executed\":\"unknown\"", "\"state\":\"unknown\"");
    struct http_answer running = void_key("running", "");
    ck_assert_int_eq(running.status, 409);
    ck_assert_ptr_nonnull(strstr(running.body, "in-progress"));
    ck_assert_int_eq(http_field_count(&running, "Retry-After"), 1);
    EXPECT_VOID("busy", "", 200, "\"state\":\"voided\",\"executed\":\"no\",\"executions\":1",
                "\"request\":{\"method\":\"POST\",\"target\":\"/orders\"}");
    post("busy", 422, "refused");
    post("done", 200, "replayed");
    peer_release(rig.peer, 1);
    caller_join(&caller);
    RIG_EXPECT(caller.answer, 201, "executed");
    EXPECT_VOID("running", "", 422, "not-voidable", "\"state\":\"completed\"");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 4);
    http_answer_free(&running);
    http_answer_free(&caller.answer);
    rig_end(&rig);
}
END_TEST

START_TEST(an_expired_command_cannot_be_voided)
{
    const char *const more[] = { "--set", "ttl=1s", NULL };
    rig_start(&rig, more);
    post("k-1", 200, "executed");
    struct http_answer answer = void_key("k-1", "");
    while (strstr(answer.body, "\"state\":\"completed\"") != NULL) {
        http_answer_free(&answer);
        answer = void_key("k-1", "");
    }
    ck_assert_int_eq(answer.status, 422);
    ck_assert_ptr_nonnull(strstr(answer.body, "not-voidable"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"executed\":\"yes\",\"command\""));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"state\":\"expired\""));
    http_answer_free(&answer);
    rig_end(&rig);
}
END_TEST

START_TEST(a_stranger_voids_nothing_and_is_told_nothing)
{
    static const char *const words[] = { "\"Link\"", "\"command\"", "\"state\"", "\"executed\"" };
    rig_start(&rig, NULL);
    struct http_answer mine =
        http_request(rig.address, "POST", "/orders", "Idempotency-Key: done\r\nAuthorization: Bearer a\r\n", "x");
    RIG_EXPECT(mine, 200, "executed");
    EXPECT_VOID("gone", "Authorization: Bearer a\r\n", 200, "\"state\":\"voided\"");
    for (int i = 0; i < 2; i++) {
        struct http_answer other = void_key(i == 0 ? "done" : "gone", "Authorization: Bearer b\r\n");
        ck_assert_int_eq(other.status, 422);
        ck_assert_ptr_nonnull(strstr(other.body, "key-reused"));
        ck_assert_ptr_nonnull(strstr(other.body, "\"differs\":[\"credentials\"]"));
        ck_assert_int_eq(http_field_count(&other, "Link"), 0);
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++) {
            ck_assert_msg(strstr(other.body, words[j]) == NULL, "%s is told to a stranger: %s", words[j], other.body);
        }
        http_answer_free(&other);
    }
    /* A void stores whose it was: the late copy of somebody else is refused as a stranger's. */
    struct http_answer late =
        http_request(rig.address, "POST", "/orders", "Idempotency-Key: gone\r\nAuthorization: Bearer b\r\n", "x");
    RIG_EXPECT(late, 422, "refused");
    ck_assert_ptr_nonnull(strstr(late.body, "\"differs\":[\"credentials\"]"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    http_answer_free(&mine);
    http_answer_free(&late);
    rig_end(&rig);
}
END_TEST

START_TEST(a_void_counts_as_a_claim_where_no_more_are_taken)
{
    const char *const more[] = { "--set", "running_max=1", NULL };
    struct caller caller;
    rig_start(&rig, more);
    EXPECT_VOID("gone", "", 200, "\"state\":\"voided\"");
    peer_script_default(rig.peer, held);
    caller_start(&caller, rig.address, "k-1");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    EXPECT_VOID("k-2", "", 503, "unavailable", "\"reason\":\"overloaded\"", "\"retryable\":true");
    EXPECT_VOID("gone", "", 200, "\"state\":\"voided\"");
    EXPECT_VOID("k-1", "", 409, "in-progress");
    peer_release(rig.peer, 1);
    caller_join(&caller);
    EXPECT_VOID("k-2", "", 200, "\"state\":\"voided\"");
    http_answer_free(&caller.answer);
    rig_end(&rig);
}
END_TEST

/* --- the race --- */

enum { SIDE = 64, ROUNDS = 200 };

struct race_counts {
    int voided, executed, neither;
    int told_voided, told_executed, told_in_progress; /* answers, over all rounds */
};

/* One key: voids against as many copies, all at once. Either every void says 200 and nothing was executed, or one copy was executed and no void says 200. */
static void race_run(struct crowd *crowd, int round, struct race_counts *counts)
{
    static struct crowd_member members[2 * SIDE];
    char key[64];
    int voided = 0, executed = 0, refused = 0;
    (void) snprintf(key, sizeof key, "r-%d", round);
    for (int i = 0; i < 2 * SIDE; i++) {
        members[i] = (struct crowd_member){ .address = rig.address, .target = i % 2 == 0 ? VOID : NULL };
        (void) snprintf(members[i].key, sizeof members[i].key, "%s", key);
        (void) snprintf(members[i].body, sizeof members[i].body, "{}");
    }
    crowd_round(crowd, members);
    for (int i = 0; i < 2 * SIDE; i++) {
        int status = members[i].answer.status;
        ck_assert_msg(status == 200 || status == 409 || status == 422, "round %d: status %d: %s", round, status,
                      members[i].answer.body != NULL ? members[i].answer.body : "");
        voided += i % 2 == 0 && status == 200;
        executed += i % 2 == 1 && status == 200;
        refused += i % 2 == 1 && status == 422;
        counts->told_in_progress += status == 409;
    }
    crowd_free(members, 2 * SIDE);
    unsigned executions = peer_count_key(rig.peer, key);
    ck_assert_msg(voided == 0 || executions == 0, "round %d: %d voids said 200, and the handler counted %u", round,
                  voided, executions);
    ck_assert_msg(voided == (executions == 0 ? SIDE : 0), "round %d: %d voids said 200, %u executions", round, voided,
                  executions);
    ck_assert_uint_le(executions, 1);
    ck_assert_msg(executions == 1 ? executed >= 1 && refused == 0 : executed == 0 && refused == SIDE,
                  "round %d: %d copies executed or replayed, %d refused, %u executions", round, executed, refused,
                  executions);
    counts->voided += voided > 0;
    counts->executed += executions == 1;
    counts->neither += voided == 0 && executions == 0;
    counts->told_voided += voided;
    counts->told_executed += executed;
}

/* Index: loops - 1. */
START_TEST(of_a_void_and_its_late_copies_one_wins_and_all_are_told_who)
{
    struct race_counts counts = { 0 };
    rig_start(&rig, _i == 0 ? (const char *const[]){ "--set", "server.loops=1", NULL }
                            : (const char *const[]){ "--set", "server.loops=2", NULL });
    struct crowd *crowd = crowd_gather(2 * SIDE);
    for (int round = 0; round < ROUNDS; round++) {
        race_run(crowd, round, &counts);
    }
    crowd_leave(crowd);
    FIGURE("void against late copies, %d of each, loops=%d: rounds=%d voided=%d executed=%d neither=%d "
           "executions_at_handler=%u; answers: voided=%d executed_or_replayed=%d in_progress=%d",
           SIDE, _i + 1, ROUNDS, counts.voided, counts.executed, counts.neither, peer_count_requests(rig.peer),
           counts.told_voided, counts.told_executed, counts.told_in_progress);
    ck_assert_int_gt(counts.voided, 0);
    ck_assert_int_gt(counts.executed, 0);
    ck_assert_int_eq(counts.neither, 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) (ROUNDS - counts.voided));
    rig_end(&rig);
}
END_TEST

SUITE(void_command)
{
    Suite *suite = suite_create("integration/void");
    CASE(suite, a_voided_key_is_never_executed_also_after_a_crash);
    CASE(suite, what_ran_or_may_have_run_cannot_be_voided_and_what_was_released_can);
    CASE(suite, an_expired_command_cannot_be_voided);
    CASE(suite, a_stranger_voids_nothing_and_is_told_nothing);
    CASE(suite, a_void_counts_as_a_claim_where_no_more_are_taken);
    CASE_LOOP(suite, of_a_void_and_its_late_copies_one_wins_and_all_are_told_who, 2);
    return suite;
}
