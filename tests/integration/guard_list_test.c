/* guard_list_test.c - which credential fields a repeat must carry with the same values, by the list in the setting `guard` (docs/contract.md 3.3 to 3.6,
 * 3.11). Executions are counted at the handler. */
#include "tests/support/rig.h"

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"

static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step unauthorized[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_SEND, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n", 0 },
    PEER_END
};

static struct rig rig;

/* With a store of its own: one that has another list is refused. */
static void start(const char *guard)
{
    static int count;
    char setting[256];
    (void) snprintf(setting, sizeof setting, "guard=%s", guard);
    rig.peer = peer_new();
    (void) snprintf(rig.store, sizeof rig.store, "%s/guard-%d.db", daemon_folder(), ++count);
    rig_restart(&rig, (const char *const[]){ "--set", setting, NULL });
}

static struct http_answer ask(const char *method, const char *target, const char *key, const char *fields,
                              const char *body)
{
    char text[2048];
    (void) snprintf(text, sizeof text, "Idempotency-Key: %s\r\n%s", key, fields);
    return http_request(rig.address, method, target, text, body);
}

static void expect_post(const char *key, const char *fields, int status, const char *word)
{
    struct http_answer answer = ask("POST", "/orders", key, fields, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static void expect_query(const char *target, const char *key, const char *fields, int status)
{
    struct http_answer answer = ask("GET", target, key, fields, NULL);
    ck_assert_msg(answer.status == status, "%s of %s: %d instead of %d: %s", target, key, answer.status, status,
                  answer.body);
    http_answer_free(&answer);
}

/* --- an attempt and its repeat under a list --- */

#define OTHER 422, "refused"
#define SAME 200, "replayed"

static const struct {
    const char *what, *guard, *first, *repeat;
    int status;
    const char *word;
} rows[] = {
    { "off", "", "Authorization: a\r\nX-API-Key: a\r\n", "Authorization: b\r\n", SAME },
    { "off, by two quotes", "\"\"", "Authorization: a\r\n", "X-API-Key: b\r\n", SAME },
    { "one name", "X-Who", "X-Who: a\r\n", "X-Who: b\r\n", OTHER },
    { "one name, another field", "X-Who", "X-Who: a\r\nAuthorization: a\r\n", "X-Who: a\r\nAuthorization: b\r\n",
      SAME },
    { "several names, the first", "X-Who,Authorization,X-Session", "X-Who: a\r\nAuthorization: b\r\nX-Session: c\r\n",
      "X-Who: z\r\nAuthorization: b\r\nX-Session: c\r\n", OTHER },
    { "several names, the middle", "X-Who,Authorization,X-Session", "X-Who: a\r\nAuthorization: b\r\nX-Session: c\r\n",
      "X-Who: a\r\nAuthorization: z\r\nX-Session: c\r\n", OTHER },
    { "several names, the last", "X-Who,Authorization,X-Session", "X-Who: a\r\nAuthorization: b\r\nX-Session: c\r\n",
      "X-Who: a\r\nAuthorization: b\r\nX-Session: z\r\n", OTHER },
    { "several names, fields in another order", "X-Who,Authorization,X-Session",
      "X-Who: a\r\nAuthorization: b\r\nX-Session: c\r\n", "X-Session: c\r\nAuthorization: b\r\nX-Who: a\r\n", SAME },
    { "several names, two values changed places", "X-Who,X-Session", "X-Who: a\r\nX-Session: b\r\n",
      "X-Who: b\r\nX-Session: a\r\n", OTHER },
    { "several names, a value under another name", "X-Who,X-Session", "X-Who: a\r\n", "X-Session: a\r\n", OTHER },
    { "several names, a value that moved over the border", "X-Who,X-Session", "X-Who: ab\r\nX-Session: c\r\n",
      "X-Who: a\r\nX-Session: bc\r\n", OTHER },
    { "absent, then there", "X-Who", "", "X-Who: a\r\n", OTHER },
    { "there, then absent", "X-Who", "X-Who: a\r\n", "", OTHER },
    { "absent both times", "X-Who", "", "", SAME },
    { "absent, then empty", "X-Who", "", "X-Who:\r\n", OTHER },
    { "empty both times", "X-Who", "X-Who:\r\n", "X-Who: \t\r\n", SAME },
    { "two lines, the same", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: a\r\nX-Who: b\r\n", SAME },
    { "two lines, with a field between", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: a\r\nX: y\r\nX-Who: b\r\n",
      SAME },
    { "two lines in another order", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: b\r\nX-Who: a\r\n", OTHER },
    { "two lines, then the first", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: a\r\n", OTHER },
    { "two lines, then the second", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: b\r\n", OTHER },
    { "one line, then twice", "X-Who", "X-Who: a\r\n", "X-Who: a\r\nX-Who: a\r\n", OTHER },
    { "two lines, then joined", "X-Who", "X-Who: a\r\nX-Who: b\r\n", "X-Who: a, b\r\n", OTHER },
    { "another line is empty", "X-Who", "X-Who: a\r\n", "X-Who: a\r\nX-Who:\r\n", OTHER },
    { "the case of the name in the request", "X-Who", "X-Who: a\r\n", "x-wHO: a\r\n", SAME },
    { "the case of the name in the setting", "x-WHO", "X-Who: a\r\n", "X-Who: b\r\n", OTHER },
    { "the case of the value", "X-Who", "X-Who: Bearer abc\r\n", "X-Who: Bearer abC\r\n", OTHER },
    { "the case of the scheme", "Authorization", "Authorization: Bearer abc\r\n", "Authorization: bearer abc\r\n",
      OTHER },
    { "blanks around the value", "X-Who", "X-Who: a\r\n", "X-Who:\t  a \t \r\n", SAME },
    { "a blank more within the value", "X-Who", "X-Who: a b\r\n", "X-Who: a  b\r\n", OTHER },
    { "a longer value", "X-Who", "X-Who: a\r\n", "X-Who: aa\r\n", OTHER },
    { "bytes that only Latin-1 has", "X-Who", "X-Who: \xe9\r\n", "X-Who: \xe8\r\n", OTHER },
    { "the default list, Authorization", "Authorization,X-API-Key", "Authorization: a\r\nX-API-Key: a\r\n",
      "Authorization: b\r\nX-API-Key: a\r\n", OTHER },
    { "the default list, X-API-Key", "Authorization,X-API-Key", "Authorization: a\r\nX-API-Key: a\r\n",
      "Authorization: a\r\nX-API-Key: b\r\n", OTHER },
    { "sixteen names, the last", "A1,A2,A3,A4,A5,A6,A7,A8,A9,B0,B1,B2,B3,B4,B5,B6", "A1: a\r\nB6: a\r\n",
      "A1: a\r\nB6: b\r\n", OTHER },
};
enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(a_repeat_is_compared_by_the_fields_of_the_list_alone)
{
    static char done[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        if (done[i]) {
            continue;
        }
        start(rows[i].guard);
        unsigned count = 0;
        for (size_t j = i; j < ROWS; j++) { /* one server for all rows with this list */
            char key[32];
            if (strcmp(rows[j].guard, rows[i].guard) != 0) {
                continue;
            }
            (void) snprintf(key, sizeof key, "row-%zu", j);
            expect_post(key, rows[j].first, 200, "executed");
            struct http_answer answer = ask("POST", "/orders", key, rows[j].repeat, "x");
            ck_assert_msg(answer.status == rows[j].status && http_field_is(&answer, "Idempotency-Status", rows[j].word),
                          "%s: %d instead of %d: %s", rows[j].what, answer.status, rows[j].status, answer.body);
            /* The query and the void see it as the attempt does. */
            expect_query(STATUS, key, rows[j].repeat, rows[j].status == 200 ? 200 : 404);
            expect_query(RESPONSE, key, rows[j].repeat, rows[j].status == 200 ? 200 : 404);
            struct http_answer voided = ask("POST", VOID, key, rows[j].repeat, NULL);
            ck_assert_int_eq(voided.status, 422);
            ck_assert_ptr_nonnull(strstr(voided.body, rows[j].status == 200 ? "not-voidable" : "key-reused"));
            http_answer_free(&answer);
            http_answer_free(&voided);
            done[j] = 1;
            count++;
        }
        ck_assert_uint_eq(peer_count_requests(rig.peer), count);
        rig_end(&rig);
    }
}
END_TEST

/* --- what a record remembers of its caller --- */

START_TEST(a_released_command_forgets_the_credential_and_a_fresh_token_executes_it_again)
{
    struct buf second;
    rig_start(&rig, NULL);
    peer_script_for_request(rig.peer, 1, unauthorized);
    expect_post("k-1", "Authorization: Bearer stale\r\n", 401, "not-executed");
    expect_query(STATUS, "k-1", "Authorization: Bearer fresh\r\n", 200);
    expect_query(STATUS, "k-1", "", 200);
    expect_post("k-1", "Authorization: Bearer fresh\r\n", 200, "executed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 2);
    buf_init(&second, 65536);
    ck_assert(peer_request(rig.peer, 2, &second));
    buf_append_bytes(&second, "", 1);
    ck_assert_ptr_nonnull(strstr(second.ptr, "Nonbis-Execution: 2\r\n"));
    ck_assert_ptr_nonnull(strstr(second.ptr, "Authorization: Bearer fresh\r\n"));
    buf_fini(&second);
    /* It is the fresh one's now, for the stale one as for anybody. */
    expect_post("k-1", "Authorization: Bearer stale\r\n", 422, "refused");
    expect_query(STATUS, "k-1", "Authorization: Bearer stale\r\n", 404);
    expect_post("k-1", "Authorization: Bearer fresh\r\n", 200, "replayed");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 2);
    rig_end(&rig);
}
END_TEST

START_TEST(a_released_command_keeps_its_payload_and_a_stranger_cannot_change_it)
{
    rig_start(&rig, NULL);
    peer_script_for_request(rig.peer, 1, unauthorized);
    expect_post("k-1", "Authorization: Bearer a\r\n", 401, "not-executed");
    struct http_answer other = ask("POST", "/orders", "k-1", "Authorization: Bearer b\r\n", "y");
    RIG_EXPECT(other, 422, "refused");
    ck_assert_ptr_nonnull(strstr(other.body, "\"differs\":[\"body\"]"));
    http_answer_free(&other);
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(completed_unknown_and_voided_commands_keep_the_credential_also_over_a_crash)
{
    static const char *const keys[] = { "done", "lost", "void" };
    static const int own[] = { 200, 504, 422 };
    static const char *const words[] = { "replayed", "unknown", "refused" };
    rig_start(&rig, NULL);
    peer_script_for_request(rig.peer, 2, lost);
    expect_post("done", "X-API-Key: a\r\n", 200, "executed");
    expect_post("lost", "X-API-Key: a\r\n", 504, "unknown");
    struct http_answer voided = ask("POST", VOID, "void", "X-API-Key: a\r\n", NULL);
    ck_assert_int_eq(voided.status, 200);
    http_answer_free(&voided);
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < 3; i++) {
            struct http_answer other = ask("POST", "/orders", keys[i], "X-API-Key: b\r\n", "x");
            RIG_EXPECT(other, 422, "refused");
            ck_assert_ptr_nonnull(strstr(other.body, "\"differs\":[\"credentials\"]"));
            http_answer_free(&other);
            expect_query(STATUS, keys[i], "X-API-Key: b\r\n", 404);
            expect_query(STATUS, keys[i], "X-API-Key: a\r\n", 200);
            expect_post(keys[i], "X-API-Key: a\r\n", own[i], words[i]);
        }
        if (run == 0) {
            daemon_kill(&rig.nonbis);
            rig_restart(&rig, NULL);
        }
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2);
    rig_end(&rig);
}
END_TEST

/* --- the setting over restarts, and what is said at start --- */

START_TEST(a_store_of_another_guard_list_is_refused)
{
    static const struct {
        const char *guard;
        int exit_code;
    } restarts[] = {
        { "guard=X-Who,X-Session", 0 },
        { "guard=X-Session,X-Who", 74 },
        { "guard=X-WHO,X-Session", 74 },
        { "guard=X-Who", 74 },
        { "guard=", 74 },
        { "guard=X-Who , X-Session", 0 },
    };
    const char *const first[] = { "--set", "guard=X-Who,X-Session", NULL };
    rig_start(&rig, first);
    expect_post("k-1", "X-Who: a\r\n", 200, "executed");
    for (size_t i = 0; i < sizeof restarts / sizeof restarts[0]; i++) {
        struct daemon nonbis;
        int exit_code = 0;
        const char *const arguments[] = { "--listen",   "127.0.0.1:0",      "--admin", "off",
                                          "--upstream", peer_url(rig.peer), "--store", rig.store,
                                          "--set",      restarts[i].guard,  NULL };
        if (rig.nonbis.pid > 0) {
            ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
        }
        bool started = daemon_try(&nonbis, "nonbisd", arguments, &exit_code);
        ck_assert_msg(started == (restarts[i].exit_code == 0) && exit_code == restarts[i].exit_code, "%s: exit code %d",
                      restarts[i].guard, exit_code);
        if (started) {
            rig.address = nonbis.listen;
            expect_post("k-1", "X-Who: a\r\n", 200, "replayed");
            ck_assert_int_eq(daemon_stop(&nonbis), 0);
        } else {
            ck_assert(daemon_logged(&nonbis, "guard"));
        }
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    peer_free(rig.peer);
}
END_TEST

START_TEST(the_start_says_what_a_rotating_token_means_unless_the_guard_is_off)
{
    start("X-Who,Authorization");
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "a repeat under another X-Who,Authorization is refused"), 1);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "whose tokens change"), 1);
    rig_end(&rig);
    start("");
    ck_assert(!daemon_logged(&rig.nonbis, "whose tokens change"));
    rig_end(&rig);
}
END_TEST

SUITE(guard_list)
{
    Suite *suite = suite_create("integration/guard_list");
    CASE(suite, a_repeat_is_compared_by_the_fields_of_the_list_alone);
    CASE(suite, a_released_command_forgets_the_credential_and_a_fresh_token_executes_it_again);
    CASE(suite, a_released_command_keeps_its_payload_and_a_stranger_cannot_change_it);
    CASE(suite, completed_unknown_and_voided_commands_keep_the_credential_also_over_a_crash);
    CASE(suite, a_store_of_another_guard_list_is_refused);
    CASE(suite, the_start_says_what_a_rotating_token_means_unless_the_guard_is_off);
    return suite;
}
