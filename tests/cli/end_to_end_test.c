/* end_to_end_test.c - `nonbis` through nonbisd at the order handler: what is told, and how often the handler really executed. The
 * ledger of the handler is the judge, never the word of the two in between. */
#include "tests/cli/house.h"
#include "tests/cli/program.h"
#include "tests/support/http_client.h"
#include "tests/support/relay.h"
#include "tests/support/rig.h"

#include <signal.h>
#include <unistd.h>

#define ORDER "{\"item\":\"x\",\"amount\":3}"
#define OTHER "{\"item\":\"y\",\"amount\":3}"

static struct house house;

static void expect_executions(const char *name, const char *key, int wanted)
{
    int executions = house_executions(&house, key);
    ck_assert_msg(executions == wanted, "%s: %d executions at the handler instead of %d", name, executions, wanted);
}

/* Fast, and the same in every row. */
#define QUICK "--base-delay", "30ms", "--max-delay", "60ms", "--poll", "30ms", "--max-poll", "60ms"

static struct program post(const char *key, const char *body, const char *const *more)
{
    const char *arguments[40] = { "post", house.url, "-k", key, "-d", body, QUICK };
    int argc = 14;
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        arguments[argc++] = more[i];
    }
    return program_run(arguments);
}

static void expect_run(const char *name, const char *const *arguments, int code, const char *out, const char *err)
{
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, name, code);
    program_expect_words(name, run.out, out);
    program_expect_words(name, run.err, err);
    program_free(&run);
}
#define EXPECT(code, out, err, ...)                                                                                    \
    expect_run(__func__, (const char *const[]){ __VA_ARGS__, NULL }, (code), (out), (err))

/* ---- one post, one situation -------------------------------------------------------------------------------------- */

static const struct row {
    const char *name;
    const char *before; /* a first post with this body and the same key; NULL: none */
    const char *arguments[8];
    int exit_code;
    const char *out, *err;
    int executions;
} rows[] = {
    { "fresh", NULL, { NULL }, 0, "\"order\":|\"item\":\"x\"", "nonbis: key ", 1 },
    { "a repeat is replayed", ORDER, { "-i" }, 0, "Idempotent-Replayed: true|\"order\":", "going on with it", 1 },
    { "a repeat without a journal is replayed",
      ORDER,
      { "-i", "--journal", "none" },
      0,
      "Idempotency-Status: replayed|\"order\":",
      "",
      1 },
    { "another payload", OTHER, { NULL }, 13, "", "for another request: the body is another one", 1 },
    { "another payload, and no journal that knows",
      OTHER,
      { "--journal", "none" },
      13,
      "key-reused|\"differs\":[\"body\"]",
      "use a new key",
      1 },
    { "another credential, and no journal that knows",
      ORDER,
      { "-H", "Authorization: Bearer b", "--journal", "none" },
      14,
      "credentials",
      "other credentials",
      1 },
    { "another credential",
      ORDER,
      { "-H", "Authorization: Bearer b", "--server", "nonbis" },
      14,
      "",
      "completed|its answer belongs to other credentials",
      1 },
    { "an execution without an answer, under a credential",
      NULL,
      { "-H", "X-Fail: close-after", "-H", "Authorization: a" },
      11,
      "",
      "with its secret fields given again",
      1 },
    { "no key where one is needed", NULL, { "--no-key" }, 14, "key-missing", "refused before", 0 },
    { "the answer is lost behind the effect",
      NULL,
      { "-H", "X-Fail: close-after" },
      11,
      "",
      "it may have been executed|outcome-unknown|reconcile by hand, no new key|nonbis resume",
      1 },
    { "the answer is lost before any effect",
      NULL,
      { "-H", "X-Fail: close-before" },
      11,
      "",
      "it may have been executed",
      0 },
    { "the handler answers 500", NULL, { "-H", "X-Fail: 500" }, 5, "", "last answer 500", 0 },
    { "the handler answers 404", NULL, { "-H", "X-Fail: 404" }, 4, "", "last answer 404", 0 },
    { "the handler answers 401", NULL, { "-H", "X-Fail: 401" }, 15, "", "not executed (1 attempt", 0 },
    { "the handler answers 429",
      NULL,
      { "-H", "X-Fail: 429", "--attempts", "3" },
      15,
      "",
      "not executed (3 attempts",
      0 },
    { "the handler answers 503", NULL, { "-H", "X-Fail: 503" }, 11, "", "(1 attempt|outcome-unknown", 0 },
    { "a slow handler is waited for", NULL, { "-H", "X-Latency: 2000" }, 0, "\"order\":", "answered 504", 1 },
    { "a handler that is too slow",
      NULL,
      { "-H", "X-Latency: 4000", "--deadline", "2200ms" },
      12,
      "",
      "still being executed|nonbis wait",
      1 },
};

static void expect_row(const struct row *row, const char *key)
{
    bool keyed = row->arguments[0] == NULL || strcmp(row->arguments[0], "--no-key") != 0;
    if (row->before != NULL) {
        struct program first = post(key, row->before, NULL);
        PROGRAM_EXPECT(first, row->name, 0);
        program_free(&first);
    }
    struct program run = keyed ? post(key, ORDER, row->arguments)
                               : program_run((const char *[]){ "post", house.url, "-d", ORDER, "--no-key", NULL });
    PROGRAM_EXPECT(run, row->name, row->exit_code);
    program_expect_words(row->name, run.out, row->out);
    program_expect_words(row->name, run.err, row->err);
    if (keyed) {
        program_expect_words(row->name, run.err, key);
    }
    bool undecided = row->exit_code == 11 || row->exit_code == 12;
    ck_assert_msg(!undecided || run.out_len == 0, "%s: stdout is %s", row->name, run.out);
    expect_executions(row->name, key, row->executions);
    program_free(&run);
}

START_TEST(a_situation_has_its_exit_code_and_its_executions)
{
    house_begin(&house, (const char *[]){ "--set", "answer_timeout=1s", NULL });
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%zu", i);
        expect_row(&rows[i], key);
    }
    house_end(&house);
}
END_TEST

/* ---- between client and server ------------------------------------------------------------------------------------ */

static const struct between {
    const char *name;
    enum relay_deed deed;
    unsigned times;
    const char *server;
    int exit_code;
    const char *err;
    int executions;
} betweens[] = {
    { "the answer is lost on its way", RELAY_LOSE_ANSWER, 1, "nonbis", 0, "no answer (network)", 1 },
    { "the answer is lost on its way, of a server that we do not know", RELAY_LOSE_ANSWER, 1, "detect", 0, "no answer",
      1 },
    { "the answer is lost on its way, of a server without status", RELAY_LOSE_ANSWER, 1, "keyed", 0, "attempt 2/4", 1 },
    { "every answer is lost on its way", RELAY_LOSE_ANSWER, 99, "nonbis", 0, "status: completed", 1 },
    { "every answer is lost, without status", RELAY_LOSE_ANSWER, 99, "keyed", 11,
      "it may have been executed (4 attempts", 1 },
    { "the answer is cut on its way", RELAY_CUT_ANSWER, 1, "nonbis", 0, "status: completed", 1 },
    { "the request is lost on its way", RELAY_DROP_REQUEST, 1, "nonbis", 0, "status: not-seen; attempt 2/4", 1 },
    { "the request is lost on its way, without status", RELAY_DROP_REQUEST, 1, "keyed", 0, "attempt 2/4", 1 },
    { "the request is lost, and we do not know the server", RELAY_DROP_REQUEST, 1, "detect", 0,
      "status: not-seen; attempt 2/4", 1 },
    { "every request is lost, and we do not know the server", RELAY_DROP_REQUEST, 99, "detect", 15,
      "not executed (4 attempts", 0 },
    { "every request is lost on its way", RELAY_DROP_REQUEST, 99, "nonbis", 15, "not executed (4 attempts", 0 },
    { "every request is lost, without status", RELAY_DROP_REQUEST, 99, "keyed", 11, "it may have been executed", 0 },
};

START_TEST(what_is_lost_between_client_and_server_has_its_exit_code_and_its_executions)
{
    house_begin(&house, NULL);
    house_wait_memory(&house);
    struct relay *relay = relay_new(house.listen);
    (void) snprintf(house.url, sizeof house.url, "http://%s/orders", relay_address(relay));
    for (size_t i = 0; i < sizeof betweens / sizeof betweens[0]; i++) {
        const struct between *row = &betweens[i];
        char key[16];
        (void) snprintf(key, sizeof key, "k-%zu", i);
        relay_plan(relay, key, row->deed, row->times);
        struct program run = post(key, ORDER, (const char *[]){ "--server", row->server, NULL });
        PROGRAM_EXPECT(run, row->name, row->exit_code);
        program_expect_words(row->name, run.err, row->err);
        program_expect_words(row->name, run.out, row->exit_code == 0 ? "\"order\":" : "");
        expect_executions(row->name, key, row->executions);
        program_free(&run);
    }
    relay_free(relay);
    house_end(&house);
}
END_TEST

static void rig_wait_memory(const struct rig *rig)
{
    struct house only;
    memset(&only, 0, sizeof only);
    (void) snprintf(only.listen, sizeof only.listen, "%s", rig->address);
    house_wait_memory(&only);
}

/* A front that sends only /_nonbis to nonbisd, and the command past it: "not seen" is true there, and means nothing. */
static const struct peer_step lose[] = { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };

START_TEST(a_handler_that_the_server_does_not_stand_in_front_of_gets_no_second_copy)
{
    char url[128], status_url[128];
    struct rig rig;
    rig_start(&rig, NULL);
    rig_wait_memory(&rig);
    struct peer *past = peer_new();
    peer_script_for_request(past, 1, lose);
    (void) snprintf(url, sizeof url, "%s/orders", peer_url(past));
    (void) snprintf(status_url, sizeof status_url, "http://%s", rig.address);
    struct program run =
        program_run((const char *[]){ "post", url, "-k", "k-1", "-d", ORDER, QUICK, "--status-url", status_url, NULL });
    PROGRAM_EXPECT(run, "past the server", 11);
    program_expect_words("past the server", run.err, "it may have been executed (1 attempt|say server=nonbis");
    ck_assert_uint_eq(peer_count_key(past, "k-1"), 1);
    ck_assert_uint_eq(peer_count_requests(past), 2); /* the other one is the question about the route */
    program_free(&run);
    peer_free(past);
    rig_end(&rig);
}
END_TEST

/* Nor does one on a route that is not protected. */
START_TEST(a_route_that_is_not_protected_gets_no_second_copy)
{
    char url[128];
    struct rig rig;
    rig_start(&rig, (const char *[]){ "--route", "POST /payments", NULL });
    rig_wait_memory(&rig);
    peer_script_for_request(rig.peer, 1, lose);
    struct relay *relay = relay_new(rig.address);
    relay_plan(relay, "k-1", RELAY_LOSE_ANSWER, 1);
    (void) snprintf(url, sizeof url, "http://%s/orders", relay_address(relay));
    struct program run = program_run((const char *[]){ "post", url, "-k", "k-1", "-d", ORDER, QUICK, NULL });
    PROGRAM_EXPECT(run, "not protected", 11);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    program_free(&run);
    relay_free(relay);
    rig_end(&rig);
}
END_TEST

/* A handler that answers when it is released. */
static const struct peer_step slow[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 11\r\n\r\n{\"order\":1}",
                                           0 },
                                         PEER_END };

static void slow_rig_start(struct rig *rig, const char *const *more)
{
    rig_start(rig, more);
    peer_script_default(rig->peer, slow);
    (void) snprintf(house.url, sizeof house.url, "http://%s/orders", rig->address);
}

/* ---- status, wait, void ------------------------------------------------------------------------------------------- */

START_TEST(a_slow_command_is_waited_for_later_by_its_key_alone)
{
    struct rig rig;
    slow_rig_start(&rig, (const char *[]){ "--set", "answer_timeout=100ms", NULL });
    struct program run = post("k-1", ORDER, (const char *[]){ "--deadline", "2s", NULL });
    PROGRAM_EXPECT(run, "post", 12);
    program_free(&run);
    EXPECT(12, "state      in_progress|request    POST /orders", "", "status", "k-1");
    EXPECT(12, "\"state\":\"in_progress\"|\"exit_code\":12", "", "status", "k-1", "--json");
    peer_release(rig.peer, 1);
    EXPECT(0, "\"order\":1", "", "wait", "k-1", QUICK);
    EXPECT(0, "done |completed |201 k-1", "", "journal", "ls");
    EXPECT(0, "state      completed|response   201, |kept", "", "status", "k-1");
    EXPECT(0, "\"order\":1", "", "wait", "k-1"); /* once more: it is decided, and its answer is still there */
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(a_voided_key_is_never_executed)
{
    house_begin(&house, NULL);
    EXPECT(11, "not seen, which is not never", "", "status", "k-1", "--url", house.url);
    EXPECT(0, "", "", "void", "k-1", "--url", house.url);
    EXPECT(15, "state      voided", "", "status", "k-1", "--url", house.url);
    struct program late = post("k-1", ORDER, NULL);
    PROGRAM_EXPECT(late, "late copy", 15);
    program_expect_words("late copy", late.err, "not executed, and never will be");
    program_free(&late);
    expect_executions("late copy", "k-1", 0);
    struct program run = post("k-2", ORDER, NULL);
    PROGRAM_EXPECT(run, "post", 0);
    program_free(&run);
    EXPECT(14, "", "k-2: too late, it was executed", "void", "k-2");
    expect_executions("void", "k-2", 1);
    house_end(&house);
}
END_TEST

START_TEST(the_server_is_named_by_the_variable_too)
{
    char variable[160];
    house_begin(&house, NULL);
    struct program run = post("k-1", ORDER, NULL);
    program_free(&run);
    (void) snprintf(variable, sizeof variable, "NONBIS_URL=http://%s", house.listen);
    const struct program_start start = { .variables = { variable, "NONBIS_JOURNAL=none" } };
    struct program status = program_run_as(&start, (const char *[]){ "status", "k-1", NULL });
    PROGRAM_EXPECT(status, "NONBIS_URL", 0);
    program_expect_words("NONBIS_URL", status.out, "completed");
    program_free(&status);
    house_end(&house);
}
END_TEST

START_TEST(an_expired_key_is_told_as_such)
{
    static const char *const short_lived[] = { "--set", "ttl=1s", NULL };
    house_begin(&house, short_lived);
    struct program run = post("k-1", ORDER, NULL);
    PROGRAM_EXPECT(run, "fresh", 0);
    program_free(&run);
    bool expired = false;
    for (int tries = 0; !expired && tries < 100000; tries++) {
        struct http_answer answer =
            http_request(house.listen, "GET", "/_nonbis/v1/command", "Idempotency-Key: k-1\r\n", NULL);
        expired = answer.body != NULL && strstr(answer.body, "\"state\":\"expired\"") != NULL;
        http_answer_free(&answer);
    }
    ck_assert(expired);
    struct program again = post("k-1", ORDER, NULL);
    PROGRAM_EXPECT(again, "expired", 17);
    program_free(&again);
    EXPECT(17, "state      expired", "", "status", "k-1");
    expect_executions("expired", "k-1", 1);
    house_end(&house);
}
END_TEST

/* ---- crashes ------------------------------------------------------------------------------------------------------ */

START_TEST(a_server_that_comes_later_gets_the_command_once)
{
    struct program run;
    house_begin(&house, NULL);
    daemon_kill(&house.nonbis);
    program_begin(&run, NULL,
                  (const char *[]){ "post", house.url, "-k", "k-1", "-d", ORDER, "--base-delay", "50ms", "--max-delay",
                                    "50ms", "--jitter", "equal", "--attempts", "100", "--budget", "0", NULL });
    ck_assert(program_wait_err(&run, "not sent (network); attempt 3/100"));
    house_start_nonbis(&house, NULL);
    program_end(&run);
    PROGRAM_EXPECT(run, "later", 0);
    expect_executions("later", "k-1", 1);
    program_free(&run);
    house_end(&house);
}
END_TEST

START_TEST(a_server_killed_in_the_middle_leaves_one_execution_and_an_honest_answer)
{
    struct program run;
    house_begin(&house, NULL);
    program_begin(&run, NULL,
                  (const char *[]){ "post", house.url, "-k", "k-1", "-d", ORDER, "-H", "X-Fail: hang", "--base-delay",
                                    "50ms", "--max-delay", "50ms", "--attempts", "100", "--budget", "0", "--server",
                                    "nonbis", NULL });
    house_wait_arrival(&house, "k-1");
    daemon_kill(&house.nonbis);
    ck_assert(program_wait_err(&run, "attempt 1/100: no answer (network)"));
    house_start_nonbis(&house, NULL);
    program_end(&run);
    PROGRAM_EXPECT(run, "killed", 11);
    program_expect_words("killed", run.err, "outcome-unknown|nonbis resume 'k-1'");
    expect_executions("killed", "k-1", 1);
    program_free(&run);
    EXPECT(11, "state      unknown, because of crash", "", "status", "k-1");
    house_end(&house);
}
END_TEST

START_TEST(a_handler_that_is_down_executes_nothing)
{
    house_begin(&house, NULL);
    ck_assert_int_eq(daemon_stop(&house.handler), 0);
    struct program run = post("k-1", ORDER, (const char *[]){ "--attempts", "1", NULL });
    PROGRAM_EXPECT(run, "down", 15);
    program_expect_words("down", run.err, "not executed (1 attempt, last answer 502");
    program_free(&run);
    house_end(&house);
}
END_TEST

START_TEST(a_killed_client_is_resumed_and_the_effect_is_one)
{
    struct program run;
    struct rig rig;
    slow_rig_start(&rig, NULL);
    program_begin(&run, NULL, (const char *[]){ "post", house.url, "-k", "k-1", "-d", ORDER, NULL });
    ck_assert(peer_wait_stalled(rig.peer, 1));
    kill(run.pid, SIGKILL);
    program_end(&run);
    ck_assert_int_eq(run.exit_code, -SIGKILL);
    program_free(&run);
    peer_release(rig.peer, 1);
    EXPECT(0, "k-1 completed done 201 POST http", "", "resume", QUICK);
    ck_assert_uint_eq(peer_count_key(rig.peer, "k-1"), 1);
    EXPECT(0, "done |completed |201 k-1", "", "journal", "ls");
    EXPECT(0, "", "", "resume");
    rig_end(&rig);
}
END_TEST

SUITE(end_to_end)
{
    Suite *suite = suite_create("cli/end_to_end");
    CASE(suite, a_situation_has_its_exit_code_and_its_executions);
    CASE(suite, what_is_lost_between_client_and_server_has_its_exit_code_and_its_executions);
    CASE(suite, a_handler_that_the_server_does_not_stand_in_front_of_gets_no_second_copy);
    CASE(suite, a_route_that_is_not_protected_gets_no_second_copy);
    CASE(suite, a_slow_command_is_waited_for_later_by_its_key_alone);
    CASE(suite, a_voided_key_is_never_executed);
    CASE(suite, the_server_is_named_by_the_variable_too);
    CASE(suite, an_expired_key_is_told_as_such);
    CASE(suite, a_server_that_comes_later_gets_the_command_once);
    CASE(suite, a_server_killed_in_the_middle_leaves_one_execution_and_an_honest_answer);
    CASE(suite, a_handler_that_is_down_executes_nothing);
    CASE(suite, a_killed_client_is_resumed_and_the_effect_is_one);
    return suite;
}
