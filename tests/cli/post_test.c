/* post_test.c - `nonbis post` against a scripted server: (what it answers) -> exit code, stdout, stderr, sendings. The scripts share
 * no retry logic with the program. */
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <unistd.h>

#define PROBLEM(status, name, more, length)                                                                            \
    "HTTP/1.1 " status "\r\nContent-Type: application/problem+json\r\n" more "Content-Length: " length "\r\n\r\n"      \
    "{\"type\":\"urn:nonbis:problem:" name "\","

SCENE_ANSWER(ok, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
SCENE_ANSWER(created, "HTTP/1.1 201 Created\r\nIdempotency-Status: executed\r\nContent-Length: 4\r\n\r\nmade");
SCENE_ANSWER(replayed, "HTTP/1.1 201 Created\r\nIdempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n"
                       "Content-Length: 4\r\n\r\nmade");
SCENE_ANSWER(nothing, "HTTP/1.1 204 No Content\r\n\r\n");
SCENE_ANSWER(moved, "HTTP/1.1 303 See Other\r\nLocation: /other\r\nContent-Length: 4\r\n\r\nmove");
SCENE_ANSWER(bad, "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad");
SCENE_ANSWER(authn, "HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nwho");
SCENE_ANSWER(authz, "HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nnot");
SCENE_ANSWER(missing, "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone");
SCENE_ANSWER(invalid, "HTTP/1.1 422 No\r\nContent-Length: 5\r\n\r\nwrong");
SCENE_ANSWER(replayed_500, "HTTP/1.1 500 Oops\r\nIdempotent-Replayed: true\r\nContent-Length: 4\r\n\r\noops");
SCENE_ANSWER(executed_500, "HTTP/1.1 500 Oops\r\nIdempotency-Status: executed\r\nContent-Length: 4\r\n\r\noops");
SCENE_ANSWER(unrecorded, "HTTP/1.1 201 Created\r\nIdempotency-Status: unrecorded\r\nContent-Length: 4\r\n\r\nmade");
SCENE_ANSWER(ignored, "HTTP/1.1 201 Created\r\nIdempotency-Status: ignored\r\nContent-Length: 4\r\n\r\nmade");
SCENE_ANSWER(busy, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
SCENE_ANSWER(later_1, "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy");
SCENE_ANSWER(later_3600, "HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\nContent-Length: 4\r\n\r\nslow");
SCENE_ANSWER(key_reused,
             PROBLEM("422 No", "key-reused", "Idempotency-Status: refused\r\n", "64") "\"retryable\":false,\"d\":0}");
SCENE_ANSWER(too_large, PROBLEM("413 No", "body-too-large", "Idempotency-Status: refused\r\n",
                                "68") "\"retryable\":false,\"d\":0}");
SCENE_ANSWER(not_reached, PROBLEM("502 No", "upstream-not-reached", "Idempotency-Status: not-executed\r\n",
                                  "73") "\"retryable\":true,\"d\":0}");
SCENE_ANSWER(running, PROBLEM("409 No", "in-progress", "Idempotency-Status: in-progress\r\nRetry-After: 1\r\n",
                              "64") "\"retryable\":true,\"d\":0}");
SCENE_ANSWER(expired, PROBLEM("422 No", "key-expired", "Idempotency-Status: refused\r\n",
                              "86") "\"executed\":\"unknown\",\"retryable\":false,\"d\":0}");
SCENE_ANSWER(voided, PROBLEM("422 No", "key-voided", "Idempotency-Status: refused\r\n",
                             "80") "\"executed\":\"no\",\"retryable\":false,\"d\":0}");
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };
static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 },
                                        { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhal", 0 },
                                        { PEER_RESET, NULL, 0 },
                                        PEER_END };
static const struct peer_step by_close[] = {
    { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\n\r\nto the end", 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
};
static const struct peer_step hang[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };

static const struct row {
    const char *name;
    const struct peer_step *scripts[5]; /* of the requests, in their order; then the default */
    const struct peer_step *rest;       /* NULL: 200 "ok" */
    const char *arguments[10];
    int exit_code;
    const char *out;      /* all of stdout */
    const char *err;      /* words of stderr */
    unsigned sent, asked; /* POSTs of the command, questions about it */
} rows[] = {
    /* the answer is final */
    { "200", { ok }, NULL, { NULL }, 0, "ok", "key k-1", 1, 0 },
    { "201 executed", { created }, NULL, { NULL }, 0, "made", "key k-1", 1, 0 },
    { "204", { nothing }, NULL, { NULL }, 0, "", "key k-1", 1, 0 },
    { "replayed", { replayed }, NULL, { NULL }, 0, "made", "", 1, 0 },
    { "a redirect is not followed", { moved }, NULL, { NULL }, 3, "move", "last answer 303", 1, 0 },
    { "400 after one attempt", { bad }, NULL, { NULL }, 4, "bad", "last answer 400", 1, 0 },
    { "401 after one attempt", { authn }, NULL, { NULL }, 4, "who", "last answer 401", 1, 0 },
    { "403 after one attempt", { authz }, NULL, { NULL }, 4, "not", "last answer 403", 1, 0 },
    { "404 after one attempt", { missing }, NULL, { NULL }, 4, "none", "last answer 404", 1, 0 },
    { "422 after one attempt", { invalid }, NULL, { NULL }, 4, "wrong", "last answer 422", 1, 0 },
    { "a replayed 500 after one attempt", { replayed_500 }, NULL, { NULL }, 5, "oops", "last answer 500", 1, 0 },
    { "an executed 500 after one attempt", { executed_500 }, NULL, { NULL }, 5, "oops", "last answer 500", 1, 0 },
    { "unrecorded is a warning", { unrecorded }, NULL, { NULL }, 0, "made", "could not record it", 1, 0 },
    { "an ignored key is a warning", { ignored }, NULL, { NULL }, 0, "made", "ignores the key", 1, 0 },
    { "a body that only a close ends", { by_close }, NULL, { NULL }, 0, "to the end", "may be cut", 1, 0 },
    /* refusals */
    { "another payload", { key_reused }, NULL, { NULL }, 13, NULL, "refused before|new key", 1, 0 },
    { "too large", { too_large }, NULL, { NULL }, 14, NULL, "refused before", 1, 0 },
    { "voided", { voided }, NULL, { NULL }, 15, NULL, "never will be", 1, 0 },
    { "expired", { expired }, NULL, { NULL }, 17, NULL, "reconcile by hand", 1, 0 },
    /* sent again */
    { "a 503 of a server that deduplicates",
      { busy, created },
      NULL,
      { "--server", "keyed" },
      0,
      "made",
      "attempt 1/4: answered 503; attempt 2/4 in ",
      2,
      0 },
    { "a 503 with Retry-After", { later_1, created }, NULL, { NULL }, 0, "made", "(server asked 1s)", 2, 0 },
    { "lost, and the server deduplicates",
      { lost, replayed },
      NULL,
      { "--server", "keyed" },
      0,
      "made",
      "attempt 1/4: no answer (network); attempt 2/4",
      2,
      0 },
    { "cut, and the server deduplicates",
      { cut, cut, replayed },
      NULL,
      { "--server", "keyed" },
      0,
      "made",
      "attempt 3/4",
      3,
      0 },
    { "not executed, then executed", { not_reached, created }, NULL, { NULL }, 0, "made", "attempt 2/4", 2, 0 },
    { "all attempts lost",
      { NULL },
      lost,
      { "--server", "keyed", "--attempts", "3" },
      11,
      "",
      "attempt 3/3|it may have been executed (3 attempts|max-attempts-reached|to go on: nonbis resume 'k-1'",
      3,
      0 },
    { "not executed, attempts used up",
      { NULL },
      not_reached,
      { "--attempts", "2" },
      15,
      "",
      "not executed (2 attempts",
      2,
      0 },
    /* one attempt is one sending, with the key */
    { "one attempt", { busy }, NULL, { "--server", "keyed", "--attempts", "1" }, 11, "", "(1 attempt,", 1, 0 },
    /* nothing is known of the server: asked, and not sent again */
    { "lost, nothing is known of the server",
      { lost },
      missing,
      { NULL },
      11,
      "",
      "has not shown that it deduplicates",
      1,
      1 },
    { "lost, and never asked", { lost }, NULL, { "--server", "plain" }, 11, "", "operation-not-retry-safe", 1, 0 },
    { "no status check means that it deduplicates", { lost, ok }, NULL, { "--no-status-check" }, 0, "ok", "", 2, 0 },
    /* patience */
    { "the server asks for an hour", { later_3600 }, NULL, { NULL }, 16, "", "for 3600 s|server-wait-too-long", 1, 0 },
    /* A second attempt has 950 ms to begin in, behind its second of waiting; a third one would come too late, however quick all is. */
    { "in progress until the deadline",
      { NULL },
      running,
      { "--server", "keyed", "--deadline", "2450ms" },
      12,
      "",
      "still being executed|nonbis wait 'k-1'",
      2,
      0 },
    { "a time limit of one attempt",
      { hang, created },
      NULL,
      { "--server", "keyed", "--attempt-timeout", "1500ms" }, /* which the second has, too */
      0,
      "made",
      "no answer (timeout)",
      2,
      0 },
    /* the journal */
    { "the journal cannot be made",
      { NULL },
      NULL,
      { "--journal", "/proc/nonbis" },
      73,
      "",
      "journal|nothing was sent",
      0,
      0 },
    { "without a journal",
      { lost },
      NULL,
      { "--journal", "none", "--server", "plain" },
      11,
      "",
      "the same command with -k 'k-1'",
      1,
      0 },
    /* without a key */
    { "no key: one attempt", { lost }, NULL, { "--no-key" }, 11, "", "it had no key", 1, 0 },
};

START_TEST(a_situation_has_its_exit_code_output_and_sendings)
{
    const struct row *row = &rows[_i];
    const char *arguments[24] = { "post", NULL,          "-d",   "{\"a\":1}", "--base-delay",
                                  "20ms", "--max-delay", "40ms", "--jitter",  "equal" };
    char url[128];
    int argc = 10;
    struct peer *peer = peer_new();
    (void) snprintf(url, sizeof url, "%s/orders", peer_url(peer));
    arguments[1] = url;
    for (size_t i = 0; i < 10 && row->arguments[i] != NULL; i++) {
        arguments[argc++] = row->arguments[i];
    }
    bool keyed = strcmp(arguments[10] != NULL ? arguments[10] : "", "--no-key") != 0;
    if (keyed) {
        arguments[argc++] = "-k";
        arguments[argc++] = "k-1";
    }
    if (row->rest != NULL) {
        peer_script_default(peer, row->rest);
    }
    for (unsigned i = 0; i < 5 && row->scripts[i] != NULL; i++) {
        peer_script_for_request(peer, i + 1, row->scripts[i]);
    }
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, row->name, row->exit_code);
    program_expect_words(row->name, run.err, row->err);
    if (row->out != NULL) {
        ck_assert_msg(strcmp(run.out, row->out) == 0, "%s: stdout is \"%s\"", row->name, run.out);
    }
    unsigned sent = scene_count(peer, "POST", "/orders"), asked = scene_count(peer, "GET", "/_nonbis/v1/command ");
    ck_assert_msg(sent == row->sent && asked == row->asked, "%s: %u sent and %u asked instead of %u and %u\n%s",
                  row->name, sent, asked, row->sent, row->asked, run.err);
    for (unsigned n = 1; n <= peer_count_requests(peer); n++) {
        ck_assert_str_eq(scene_field(peer, n, "Idempotency-Key"), keyed ? "k-1" : "");
    }
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(nothing_listens_and_nothing_was_sent)
{
    struct peer *peer = peer_new();
    peer_refuse(peer);
    struct program run =
        program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "--attempts", "3", "--base-delay", "10ms",
                                      "--max-delay", "10ms", "--jitter", "equal", NULL });
    PROGRAM_EXPECT(run, "refused", 10);
    program_expect_words(
        "refused", run.err,
        "key |attempt 1/3: not sent (network); attempt 2/3 in |nothing was sent (3 attempts|Connection refused");
    ck_assert_str_eq(run.out, "");
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(the_key_is_made_once_told_first_and_the_same_on_every_attempt)
{
    struct peer *peer = peer_new();
    char line[128];
    peer_script_for_request(peer, 1, lost);
    peer_script_for_request(peer, 2, lost);
    struct program run = program_run(
        (const char *[]){ "post", peer_url(peer), "-d", "x", "--server", "keyed", "--base-delay", "1ms", NULL });
    PROGRAM_EXPECT(run, "key", 0);
    ck_assert_uint_eq(peer_count_requests(peer), 3);
    const char *key = scene_field(peer, 1, "Idempotency-Key");
    ck_assert_uint_eq(strlen(key), 36);
    (void) snprintf(line, sizeof line, "nonbis: key %s\n", key);
    ck_assert_msg(strncmp(run.err, line, strlen(line)) == 0, "the key does not come first: %s", run.err);
    ck_assert_uint_eq(peer_count_key(peer, line + 12 /* with its line's end */), 0);
    line[strlen(line) - 1] = '\0';
    ck_assert_uint_eq(peer_count_key(peer, line + 12), 3);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(stdin_is_read_once_and_sent_whole_on_every_attempt)
{
    struct peer *peer = peer_new();
    const struct program_start start = { .input = "amount=17\nitem=x\n" };
    peer_script_for_request(peer, 1, lost);
    peer_script_for_request(peer, 2, busy);
    struct program run =
        program_run_as(&start, (const char *[]){ "post", peer_url(peer), "-d", "@-", "--server", "keyed",
                                                 "--base-delay", "1ms", "-H", "Content-Type: text/plain", NULL });
    PROGRAM_EXPECT(run, "stdin", 0);
    for (unsigned n = 1; n <= 3; n++) {
        ck_assert_str_eq(scene_body(peer, n), "amount=17\nitem=x\n");
        ck_assert_str_eq(scene_field(peer, n, "Content-Type"), "text/plain");
    }
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(fields_go_out_as_they_were_given)
{
    struct peer *peer = peer_new();
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-H", "X-One:  1 ", "-H",
                                                       "Authorization: Bearer t", "-X", "PATCH", NULL });
    PROGRAM_EXPECT(run, "fields", 0);
    ck_assert_str_eq(scene_field(peer, 1, "X-One"), "1");
    ck_assert_str_eq(scene_field(peer, 1, "Authorization"), "Bearer t");
    ck_assert_str_eq(scene_field(peer, 1, "Content-Type"), "application/json");
    ck_assert_str_eq(scene_field(peer, 1, "User-Agent"), "nonbis/0.1.0");
    ck_assert_uint_eq(scene_count(peer, "PATCH", "/"), 1);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(a_line_of_secrets_with_a_nul_in_it_is_not_sent_in_part)
{
    static const struct {
        const char *line;
        size_t len;
    } lines[] = { { "Authorization: Bearer ab\0cd\n", 28 }, { "X\0-Auth: t\n", 11 } };
    char path[700];
    (void) snprintf(path, sizeof path, "%s-auth", program_journal());
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct peer *peer = peer_new();
        FILE *file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(lines[i].line, 1, lines[i].len, file), lines[i].len);
        ck_assert_int_eq(fclose(file), 0);
        struct program run = program_run((const char *[]){ "post", peer_url(peer), "--auth-file", path, NULL });
        PROGRAM_EXPECT(run, "NUL", 2);
        program_expect_words("NUL", run.err, "a line of --auth-file holds a NUL byte; nothing was sent");
        ck_assert_uint_eq(peer_count_requests(peer), 0);
        program_free(&run);
        peer_free(peer);
    }
}
END_TEST

START_TEST(the_loudness_can_be_chosen)
{
    static const struct {
        const char *flag, *words, *not_there;
    } loud[] = {
        { "--no-progress", "key |attempt 1/4: answered 503; attempt 2/4 in ", "why:" },
        { "-q", "key k", "attempt" },
        { "-qq", "", "k" },
        { "-v",
          "attempt 1/4: POST http|connected, the request leaves now|answered 503 after|outcome: completed, stop: done",
          "why:" },
        { "--explain", "attempt 2/4 in |why: backoff-jitter: chance within a window|of the deadline|retry tokens",
          "leaves" },
    };
    for (size_t i = 0; i < sizeof loud / sizeof loud[0]; i++) {
        struct peer *peer = peer_new();
        peer_script_for_request(peer, 1, busy);
        struct program run =
            program_run((const char *[]){ "post", peer_url(peer), "-k", "k", "--server", "keyed", "--base-delay", "5ms",
                                          "--jitter", "equal", "--journal", "none", loud[i].flag, NULL });
        PROGRAM_EXPECT(run, loud[i].flag, 0);
        program_expect_words(loud[i].flag, run.err, loud[i].words);
        ck_assert_msg(strstr(run.err, loud[i].not_there) == NULL, "%s: %s", loud[i].flag, run.err);
        program_free(&run);
        peer_free(peer);
    }
}
END_TEST

START_TEST(a_unix_socket_is_reached)
{
    char path[108];
    (void) snprintf(path, sizeof path, "/tmp/nonbis-cli-%d.sock", (int) getpid());
    struct peer *peer = peer_new_unix(path);
    struct program run =
        program_run((const char *[]){ "post", "http://handler.example/x", "-d", "x", "--unix-socket", path, NULL });
    PROGRAM_EXPECT(run, "socket", 0);
    ck_assert_str_eq(scene_field(peer, 1, "Host"), "handler.example");
    program_free(&run);
    peer_free(peer);
    unlink(path);
}
END_TEST

SUITE(post)
{
    Suite *suite = suite_create("cli/post");
    CASE_LOOP(suite, a_situation_has_its_exit_code_output_and_sendings, sizeof rows / sizeof rows[0]);
    CASE(suite, nothing_listens_and_nothing_was_sent);
    CASE(suite, the_key_is_made_once_told_first_and_the_same_on_every_attempt);
    CASE(suite, stdin_is_read_once_and_sent_whole_on_every_attempt);
    CASE(suite, fields_go_out_as_they_were_given);
    CASE(suite, a_line_of_secrets_with_a_nul_in_it_is_not_sent_in_part);
    CASE(suite, the_loudness_can_be_chosen);
    CASE(suite, a_unix_socket_is_reached);
    return suite;
}
