/* s06_outcomes_test.c - docs/contract.md section 6, 6.1 to 6.6: what is seen of an exchange, what the client gets, and what a repeat
 * gets then. What runs is counted at the handler. s06b_exchange_test.c has 6.7 and what follows. */
#include "tests/contract/scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define EMPTY "Content-Length: 0\r\n\r\n"

/* --- 6.1 --- */

static void expect_not_reached(const char *key)
{
    const struct http_answer *answer = post(key, "x");
    EXPECT_PROBLEM(answer, 502, "not-executed", "upstream-not-reached");
    ck_assert_str_eq(member_of(answer, "executed"), "\"no\"");
    ck_assert_str_eq(member_of(get_status(key, ""), "state"), "\"released\"");
}

START_TEST(rule_6_1_a_handler_that_refuses_the_connection_releases_the_command)
{
    SCENE_START(NULL);
    peer_refuse(scene.peer);
    expect_not_reached("k");
    expect_not_reached("k");
    peer_accept_again(scene.peer);
    EXPECT(post("k", "x"), 200, "executed");
    ck_assert_str_eq(handler_saw_field(1, "Nonbis-Execution"), "3");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

static void start_before(const char *upstream, const char *const *more)
{
    (void) snprintf(scene.store, sizeof scene.store, "%s/n.db", daemon_folder());
    daemon_start(&scene.nonbis, upstream, scene.store, more);
    scene.address = scene.nonbis.listen;
}

START_TEST(rule_6_1_a_handler_that_is_not_there_releases_the_command)
{
    scene.peer = peer_new();
    start_before(text("unix:%s/nobody", daemon_folder()), NULL);
    expect_not_reached("k");
    scene_end();
}
END_TEST

/* No label of a name has more than 63 letters: nobody is asked for this one. */
START_TEST(rule_6_1_a_name_that_is_unknown_releases_the_command)
{
    scene.peer = peer_new();
    start_before("http://a-name-that-nobody-can-have-because-it-is-longer-than-any-label-may-be.example:80", NULL);
    expect_not_reached("k");
    scene_end();
}
END_TEST

/* A listener whose backlog is full takes no connection and refuses none. */
START_TEST(rule_6_1_connect_timeout_releases_the_command)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fill[8], full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(full, (struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(full, 0), 0);
    ck_assert_int_eq(getsockname(full, (struct sockaddr *) &address, &len), 0);
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void) connect(fill[i], (struct sockaddr *) &address, sizeof address);
    }
    scene.peer = peer_new();
    const char *const more[] = { "--set", "connect_timeout=50ms", NULL };
    start_before(text("127.0.0.1:%u", ntohs(address.sin_port)), more);
    expect_not_reached("k");
    scene_end();
    for (int i = 0; i < 8; i++) {
        close(fill[i]);
    }
    close(full);
}
END_TEST

START_TEST(rule_6_1_a_tls_handshake_that_fails_releases_the_command)
{
    static const struct peer_step no_tls[] = { { PEER_SEND, "HTTP/1.1 400 Bad\r\n" EMPTY, 0 },
                                               { PEER_CLOSE, NULL, 0 },
                                               PEER_END };
    scene.peer = peer_new();
    peer_script_for_connection(scene.peer, 1, no_tls);
    start_before(text("https://127.0.0.1:%u", peer_port(scene.peer)), NULL);
    expect_not_reached("k");
    ck_assert_uint_eq(peer_count_connections(scene.peer), 1);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    scene_end();
}
END_TEST

/* --- 6.2 to 6.4, 6.6: complete answers --- */

struct complete_row {
    const char *answer;
    int status;
};

/* The answer is passed on with `word`; a repeat then gets what the outcome says. */
static void expect_complete(const char *rule, const struct complete_row *row, const char *word)
{
    bool released = strcmp(word, "not-executed") == 0, executed = strcmp(word, "executed") == 0;
    const char *key = text("%s-%d-%s", rule, row->status, word);
    handler_answers(row->answer);
    const struct http_answer *first = post(key, "x");
    EXPECT(first, row->status, word);
    const char *framed = strstr(row->answer, "Content-Length: 4\r\n\r\nbody") != NULL ? "body" : "";
    ck_assert_str_eq(first->body, framed); /* unchanged */
    EXPECT_FIELD(first, "X-Own", "1");
    const char *state = released ? "\"released\"" : executed ? "\"completed\"" : "\"unknown\"";
    ck_assert_str_eq(member_of(get_status(key, ""), "state"), state);
    const struct http_answer *again = post(key, "x");
    if (released || executed) {
        EXPECT(again, row->status, released ? "not-executed" : "replayed");
        ck_assert_str_eq(again->body, framed);
    } else {
        EXPECT_PROBLEM(again, 504, "unknown", "outcome-unknown");
    }
    EXPECT_RUNS(key, released ? 2 : 1);
}

#define BODY "X-Own: 1\r\nContent-Length: 4\r\n\r\nbody"

static const struct complete_row declared[] = {
    { "HTTP/1.1 401 No\r\n" BODY, 401 },
    { "HTTP/1.1 425 Early\r\n" BODY, 425 },
    { "HTTP/1.1 429 Slow\r\n" BODY, 429 },
    { "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n" BODY, 503 },
    { "HTTP/1.1 503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n" BODY, 503 },
};

START_TEST(rule_6_2_an_answer_that_declares_not_executed_releases_the_command)
{
    expect_complete(text("6.2-%d", _i), &declared[_i], "not-executed");
}
END_TEST

START_TEST(rule_6_2_the_answer_is_unchanged)
{
    handler_answers("HTTP/1.1 503 Busy\r\nRetry-After: 17\r\nContent-Type: a/b\r\n" BODY);
    const struct http_answer *busy = post("6.2-fields", "x");
    EXPECT(busy, 503, "not-executed");
    EXPECT_FIELD(busy, "Retry-After", "17");
    EXPECT_FIELD(busy, "Content-Type", "a/b");
    EXPECT_NO_FIELD(busy, "Idempotency-Expires");
}
END_TEST

static const struct complete_row ambiguous[] = {
    { "HTTP/1.1 408 Late\r\n" BODY, 408 },
    { "HTTP/1.1 502 Bad\r\n" BODY, 502 },
    { "HTTP/1.1 504 Late\r\n" BODY, 504 },
    { "HTTP/1.1 503 Busy\r\n" BODY, 503 },
};

START_TEST(rule_6_3_an_answer_that_a_router_may_have_made_is_unknown)
{
    expect_complete("6.3", &ambiguous[_i], "unknown");
}
END_TEST

static const struct complete_row others[] = {
    { "HTTP/1.1 200 OK\r\n" BODY, 200 },
    { "HTTP/1.1 201 Created\r\n" BODY, 201 },
    { "HTTP/1.1 202 Taken\r\n" BODY, 202 },
    { "HTTP/1.1 204 None\r\nX-Own: 1\r\n\r\n", 204 },
    { "HTTP/1.1 299 Odd\r\n" BODY, 299 },
    { "HTTP/1.1 301 Moved\r\n" BODY, 301 },
    { "HTTP/1.1 304 Same\r\nX-Own: 1\r\n\r\n", 304 },
    { "HTTP/1.1 400 Bad\r\n" BODY, 400 },
    { "HTTP/1.1 403 No\r\n" BODY, 403 },
    { "HTTP/1.1 404 No\r\n" BODY, 404 },
    { "HTTP/1.1 409 Clash\r\n" BODY, 409 },
    { "HTTP/1.1 422 No\r\n" BODY, 422 },
    { "HTTP/1.1 500 Oh\r\n" BODY, 500 },
    { "HTTP/1.1 501 No\r\nRetry-After: 1\r\n" BODY, 501 },
    { "HTTP/1.1 507 Full\r\n" BODY, 507 },
    { "HTTP/1.1 599 Odd\r\n" BODY, 599 },
};

START_TEST(rule_6_4_any_other_complete_answer_completes_the_command)
{
    expect_complete("6.4", &others[_i], "executed");
}
END_TEST

struct word_row {
    struct complete_row answer;
    const char *word;
};
static const struct word_row words[] = {
    { { "HTTP/1.1 200 OK\r\nNonbis-Outcome: completed\r\n" BODY, 200 }, "executed" },
    { { "HTTP/1.1 200 OK\r\nNonbis-Outcome: not-executed\r\n" BODY, 200 }, "not-executed" },
    { { "HTTP/1.1 200 OK\r\nNonbis-Outcome: unknown\r\n" BODY, 200 }, "unknown" },
    { { "HTTP/1.1 429 Slow\r\nNonbis-Outcome: completed\r\n" BODY, 429 }, "executed" },
    { { "HTTP/1.1 429 Slow\r\nNonbis-Outcome: unknown\r\n" BODY, 429 }, "unknown" },
    { { "HTTP/1.1 502 Bad\r\nNonbis-Outcome: completed\r\n" BODY, 502 }, "executed" },
    { { "HTTP/1.1 502 Bad\r\nNonbis-Outcome: not-executed\r\n" BODY, 502 }, "not-executed" },
};

START_TEST(rule_6_6_the_handlers_word_decides)
{
    expect_complete("6.6", &words[_i].answer, words[_i].word);
}
END_TEST

/* --- 6.5 --- */

struct broken_row {
    const char *name;
    struct peer_step steps[4];
};
#define GETS_BODY                                                                                                      \
    {                                                                                                                  \
        PEER_BODY, NULL, 0                                                                                             \
    }
#define SENDS(bytes)                                                                                                   \
    {                                                                                                                  \
        PEER_SEND, (bytes), 0                                                                                          \
    }
#define CLOSES                                                                                                         \
    {                                                                                                                  \
        PEER_CLOSE, NULL, 0                                                                                            \
    }
#define RESETS                                                                                                         \
    {                                                                                                                  \
        PEER_RESET, NULL, 0                                                                                            \
    }
#define HANGS                                                                                                          \
    {                                                                                                                  \
        PEER_WAIT_END, NULL, 0                                                                                         \
    }
static const struct broken_row broken[] = {
    { "reset", { GETS_BODY, RESETS } },
    { "no answer", { GETS_BODY, CLOSES } },
    { "reset before the body was read", { RESETS } },
    { "head cut in its status line", { GETS_BODY, SENDS("HTTP/1.1 2"), CLOSES } },
    { "head cut behind a field", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), CLOSES } },
    { "head whole, reset", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), RESETS } },
    { "body cut", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), CLOSES } },
    { "last chunk missing",
      { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), CLOSES } },
    { "final CR LF missing",
      { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"), CLOSES } },
    { "a body that only a close ends", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\n\r\nok"), CLOSES } },
    { "garbage", { GETS_BODY, SENDS("hello\r\n\r\n") } },
    { "101", { GETS_BODY, SENDS("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n") } },
    { "hard_timeout, no answer", { GETS_BODY, HANGS } },
    { "hard_timeout, body", { GETS_BODY, SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), HANGS } },
    /* 6.7: what counts as garbage */
    { "two framings",
      { GETS_BODY,
        SENDS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n") } },
};

static void expect_unknown(const char *key, const char *name, const char *body)
{
    const struct http_answer *first = post(key, body);
    ck_assert_msg(first->status == 504, "%s: %d %s", name, first->status, first->body);
    EXPECT_PROBLEM(first, 504, "unknown", "outcome-unknown");
    EXPECT_PROBLEM(post(key, body), 504, "unknown", "outcome-unknown");
    ck_assert_str_eq(member_of(get_status(key, ""), "state"), "\"unknown\"");
    ck_assert(peer_wait_requests(scene.peer, 1)); /* on a busy machine the handler may be later than hard_timeout */
    EXPECT_RUNS(key, 1);
}

START_TEST(rule_6_5_an_exchange_that_breaks_is_unknown_and_not_sent_again)
{
    peer_script_default(scene.peer, broken[_i].steps);
    expect_unknown(text("6.5-%d", _i), broken[_i].name, "x");
}
END_TEST

/* A Unix socket takes less than half of this before its reader does. */
START_TEST(rule_6_5_a_byte_of_the_answer_before_the_request_was_written_is_unknown)
{
    static const struct peer_step early[] = { SENDS("HTTP/1.1 200 OK\r\n" EMPTY), HANGS, PEER_END };
    enum { MANY = 1024 * 1024 };
    char *body = calloc(1, MANY + 1);
    memset(body, 'x', MANY);
    peer_script_default(scene.peer, early);
    expect_unknown("6.5-early", "an answer before the request was written", body);
    free(body);
}
END_TEST

SUITE(contract_outcomes)
{
    Suite *suite = suite_create("contract/06-outcomes");
    RULE_ALONE(suite, rule_6_1_a_handler_that_refuses_the_connection_releases_the_command);
    RULE_ALONE(suite, rule_6_1_a_handler_that_is_not_there_releases_the_command);
    RULE_ALONE(suite, rule_6_1_a_name_that_is_unknown_releases_the_command);
    RULE_ALONE(suite, rule_6_1_connect_timeout_releases_the_command);
    RULE_ALONE(suite, rule_6_1_a_tls_handshake_that_fails_releases_the_command);
    RULE_ROWS(suite, house_plain, rule_6_2_an_answer_that_declares_not_executed_releases_the_command, declared);
    RULE(suite, house_plain, rule_6_2_the_answer_is_unchanged);
    RULE_ROWS(suite, house_plain, rule_6_3_an_answer_that_a_router_may_have_made_is_unknown, ambiguous);
    RULE_ROWS(suite, house_plain, rule_6_4_any_other_complete_answer_completes_the_command, others);
    RULE_ROWS(suite, house_plain, rule_6_6_the_handlers_word_decides, words);
    RULE(suite, house_plain, rule_6_5_a_byte_of_the_answer_before_the_request_was_written_is_unknown);
    RULE_ROWS(suite, house_hasty, rule_6_5_an_exchange_that_breaks_is_unknown_and_not_sent_again, broken);
    return suite;
}
