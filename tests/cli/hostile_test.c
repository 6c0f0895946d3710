/* hostile_test.c - a server that means harm: what it says ends as it must, costs a bounded time and memory, leads nowhere else, and
 * plays with no terminal. */
#include "client-sdk/cli/printable.h"
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT(name, ...)                                                                                              \
    static const struct peer_step name[] = { { PEER_BODY, NULL, 0 }, __VA_ARGS__, { PEER_WAIT_END, NULL, 0 }, PEER_END }
#define TEN "aaaaaaaaaa"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define JSON_TYPE "Content-Type: application/json\r\nConnection: close\r\n\r\n"
#define PROBLEM_TYPE "Content-Type: application/problem+json\r\nConnection: close\r\n\r\n"

SCRIPT(many_lines, { PEER_SEND, "HTTP/1.1 200 OK\r\n", 0 }, { PEER_SEND, "X-A: " HUNDRED "\r\n", 4000 });
SCRIPT(long_line, { PEER_SEND, "HTTP/1.1 200 OK\r\nX-A: ", 0 }, { PEER_SEND, HUNDRED, 20000 });
SCRIPT(folded, { PEER_SEND, "HTTP/1.1 200 OK\r\nX-A: a\r\n", 0 }, { PEER_SEND, " " HUNDRED "\r\n", 4000 });
SCRIPT(no_end_of_line, { PEER_SEND, HUNDRED, 20000 });
SCRIPT(interim, { PEER_SEND, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100000 });
SCRIPT(endless, { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0 },
       { PEER_SEND, "64\r\n" HUNDRED "\r\n", 100000000 });
SCRIPT(trailers, { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", 0 },
       { PEER_SEND, "X-A: " HUNDRED "\r\n", 100000000 });
SCRIPT(dripped, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", 0 });
SCRIPT(over_length, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\nx", 0 },
       { PEER_CLOSE, NULL, 0 });
SCRIPT(patience, { PEER_SEND, "HTTP/1.1 503 No\r\nRetry-After: 1000000000000000000\r\nContent-Length: 0\r\n\r\n", 0 });
SCRIPT(patience_more,
       { PEER_SEND, "HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999999\r\nContent-Length: 0\r\n\r\n", 0 });
SCRIPT(nonsense,
       { PEER_SEND, "HTTP/1.1 500 No\r\nIdempotency-Status: executed, replayed\x1b[2J\r\nContent-Length: 0\r\n\r\n",
         0 });
SCRIPT(not_http, { PEER_SEND, "SSH-2.0-x\x1b]0;owned\x07\r\n", 0 }, { PEER_CLOSE, NULL, 0 });

/* One post to a server of which we know nothing: nothing is sent a second time, and it is over soon. */
static const struct row {
    const char *name;
    const struct peer_step *script;
    int exit_code;
    const char *err;
} rows[] = {
    { "a head of very many lines", many_lines, 11, "its head is larger than" },
    { "a line of 2 MB", long_line, 11, "" },
    { "a line that is continued for ever", folded, 11, "" },
    { "no line at all", no_end_of_line, 11, "" },
    { "interim answers for ever", interim, 11, "more than 64 interim answers" },
    { "a body that never ends", endless, 11, "not done within" },
    { "trailers that never end", trailers, 11, "its trailers are larger than" },
    { "a length of 8 EB", dripped, 11, "not done within" },
    { "a length over 64 bits", over_length, 11, "" },
    { "patience of 30 billion years", patience, 16, "server-wait-too-long" },
    { "patience that no number holds", patience_more, 16, "server-wait-too-long" },
    { "a word of nonsense", nonsense, 11, "" },
    { "something that is no HTTP", not_http, 11, "" },
};

/* The largest child so far, in KiB. Under the sanitizers freed memory is kept in quarantine, and the figure says nothing. */
static void expect_small(const char *name)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &usage), 0);
    ck_assert_msg(usage.ru_maxrss < 64 * 1024, "%s: %ld KiB", name, usage.ru_maxrss);
#else
    (void) name;
#endif
}

static void expect_no_control(const char *name, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        ck_assert_msg(((unsigned char) *at >= 0x20 && *at != 0x7F) || *at == '\n', "%s: byte %02x in %s", name,
                      (unsigned char) *at, text);
    }
}

START_TEST(a_hostile_answer_ends_as_it_must_and_is_asked_for_once)
{
    const struct row *row = &rows[_i];
    struct peer *peer = peer_new();
    peer_script_for_request(peer, 1, row->script);
    struct program run =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k", "-d", "x", "--attempt-timeout", "1s",
                                      "--deadline", "4s", "--status-timeout", "300ms", "--base-delay", "50ms", NULL });
    PROGRAM_EXPECT(run, row->name, row->exit_code);
    program_expect_words(row->name, run.err, row->err);
    expect_no_control(row->name, run.err);
    ck_assert_uint_eq(scene_count(peer, "POST", "/"), 1);
    expect_small(row->name);
    program_free(&run);
    peer_free(peer);
}
END_TEST

/* ---- leading elsewhere -------------------------------------------------------------------------------------------- */

START_TEST(no_answer_leads_to_another_host)
{
    static const int statuses[] = { 301, 302, 303, 307, 308 };
    struct peer *other = peer_new();
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        char answer[256];
        const struct peer_step moved[] = { { PEER_BODY, NULL, 0 }, { PEER_SEND, answer, 0 }, PEER_END };
        const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };
        (void) snprintf(answer, sizeof answer, "HTTP/1.1 %d Moved\r\nLocation: %s/x\r\nContent-Length: 0\r\n\r\n",
                        statuses[i], peer_url(other));
        struct peer *peer = peer_new();
        peer_script_for_request(peer, 1, moved);
        struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", NULL });
        PROGRAM_EXPECT(run, "post", 3);
        program_free(&run);
        /* Nor does one to a question. */
        peer_script_for_request(peer, 2, lost);
        peer_script_default(peer, moved);
        run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-H", "Authorization: s", NULL });
        PROGRAM_EXPECT(run, "question", 11);
        program_free(&run);
        peer_free(peer);
    }
    ck_assert_uint_eq(peer_count_connections(other), 0);
    peer_free(other);
}
END_TEST

/* ---- answers to questions ----------------------------------------------------------------------------------------- */

#define NOUGHTS_10 "0,0,0,0,0,0,0,0,0,0,"
#define NOUGHTS                                                                                                        \
    NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10 NOUGHTS_10
#define STATUS_OK "HTTP/1.1 200 OK\r\n" JSON_TYPE
SCRIPT(lose, { PEER_CLOSE, NULL, 0 });
SCRIPT(state_number, { PEER_SEND, STATUS_OK "{\"state\":5,\"executed\":true,\"id\":{}}", 0 }, { PEER_CLOSE, NULL, 0 });
SCRIPT(state_list, { PEER_SEND, STATUS_OK "{\"state\":[\"completed\"]}", 0 }, { PEER_CLOSE, NULL, 0 });
SCRIPT(state_null, { PEER_SEND, STATUS_OK "{\"state\":null,\"request\":7,\"response\":[]}", 0 },
       { PEER_CLOSE, NULL, 0 });
SCRIPT(deep, { PEER_SEND, STATUS_OK "{\"a\":", 0 }, { PEER_SEND, "[", 100000 }, { PEER_CLOSE, NULL, 0 });
SCRIPT(wide, { PEER_SEND, STATUS_OK "{\"state\":\"voided\",\"a\":[", 0 }, { PEER_SEND, NOUGHTS, 60000 },
       { PEER_SEND, "0]}", 0 }, { PEER_CLOSE, NULL, 0 });
SCRIPT(packed,
       { PEER_SEND,
         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nContent-Type: application/json\r\n\r\n"
         "\x1f\x8b\x08\x01",
         0 });
SCRIPT(problem_types,
       { PEER_SEND,
         "HTTP/1.1 404 No\r\n" PROBLEM_TYPE "{\"type\":[\"urn:nonbis:problem:key-not-seen\"],\"retryable\":true}", 0 },
       { PEER_CLOSE, NULL, 0 });
SCRIPT(problem_window,
       { PEER_SEND,
         "HTTP/1.1 404 No\r\n" PROBLEM_TYPE
         "{\"type\":\"urn:nonbis:problem:key-not-seen\",\"retryable\":true,\"window_start\":{\"a\":1}}",
         0 },
       { PEER_CLOSE, NULL, 0 });
SCRIPT(says_protected,
       { PEER_SEND, STATUS_OK "{\"version\":\"1\",\"protected\":true,\"window_start\":\"2026-01-01T00:00:00.000Z\"}",
         0 },
       { PEER_CLOSE, NULL, 0 });

static const struct question_row {
    const char *name;
    const struct peer_step *status;
} questions[] = {
    { "a number for the state", state_number },
    { "a list for the state", state_list },
    { "nulls", state_null },
    { "nested a hundred thousand deep", deep },
    { "twelve megabytes of noughts", wide },
    { "packed bytes that nobody asked for", packed },
    { "a type that is a list", problem_types },
    { "a window that is an object", problem_window },
    { "a half word about the route", says_protected },
};

START_TEST(a_hostile_answer_to_a_question_decides_nothing)
{
    const struct question_row *row = &questions[_i];
    struct peer *peer = peer_new();
    peer_script_for_request(peer, 1, lose);
    peer_script_default(peer, row->status);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-k", "k", "-d", "x", "--deadline",
                                                       "1500ms", "--base-delay", "0s", "--poll", "1s", NULL });
    PROGRAM_EXPECT(run, row->name, 11);
    expect_no_control(row->name, run.err);
    ck_assert_uint_eq(scene_count(peer, "POST", "/"), 1);
    expect_small(row->name);
    program_free(&run);
    peer_free(peer);
}
END_TEST

/* ---- a terminal --------------------------------------------------------------------------------------------------- */

#define PLAY                                                                                                           \
    "\x1b[2J\x1b]0;owned\x07\x7f\x9b"                                                                                  \
    "31m\xc2\x9b"                                                                                                      \
    "1m\xe2\x80\xae"

START_TEST(what_would_play_with_a_terminal_is_masked)
{
    static const struct {
        const char *text, *clean, *lines;
    } texts[] = {
        { "plain", "plain", "plain" },
        { "a\tb\nc", "a?b?c", "a\tb\nc" },
        { "a\r\nb\rc", "a??b?c", "a \nb?c" },
        { "\x1b[2J\x07\x7f", "?[2J??", "?[2J??" },
        { "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\xb5", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\xb5",
          "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\xb5" },
        { "\xc2\x9b"
          "1m|\xc2\xa0",
          "??1m|\xc2\xa0", "??1m|\xc2\xa0" },
        { "\x9b"
          "1m",
          "?1m", "?1m" },
        { "\xe2\x80\xae|\xe2\x81\xa6|\xe2\x80\x8f", "???|???|???", "???|???|???" },
        { "\xc0\x9b|\xc1\xbf|\xe0\x80\x9b|\xed\xa0\x80|\xf5\x80\x80\x80", "??|??|???|???|????", "??|??|???|???|????" },
        { "\xc3", "?", "?" },
        { "\xe2\x82", "??", "??" },
        { "\xf0\x9f\x8d", "???", "???" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[64], lines[64];
        (void) snprintf(text, sizeof text, "%s", texts[i].text);
        (void) snprintf(lines, sizeof lines, "%s", texts[i].text);
        printable_clean(text, strlen(text), false);
        printable_clean(lines, strlen(lines), true);
        ck_assert_str_eq(text, texts[i].clean);
        ck_assert_str_eq(lines, texts[i].lines);
        ck_assert_str_eq(printable_copy(text, sizeof text, texts[i].text), texts[i].clean);
    }
    char few[4];
    ck_assert_str_eq(printable_copy(few, sizeof few,
                                    "a\x1b"
                                    "cd"),
                     "a?c");
}
END_TEST

static int open_terminal(int *master)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(*master, 0);
    ck_assert_int_eq(grantpt(*master), 0);
    ck_assert_int_eq(unlockpt(*master), 0);
    int slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(slave, 0);
    return slave;
}

/* What was written to the terminal by a program that has ended. */
static size_t shown_on(int master, char *shown, size_t size)
{
    size_t len = 0;
    struct pollfd one = { .fd = master, .events = POLLIN };
    while (len < size - 1 && poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0) {
        ssize_t got = read(master, shown + len, size - 1 - len);
        ck_assert_int_gt(got, 0);
        len += (size_t) got;
    }
    shown[len] = '\0';
    return len;
}

SCRIPT(plays, { PEER_SEND, "HTTP/1.1 200 OK\r\nX-A: \x1b[2J\r\nContent-Length: 31\r\n\r\n" PLAY "|\ntea", 0 });

START_TEST(an_answer_shown_on_a_terminal_is_masked_and_elsewhere_it_is_as_it_came)
{
    int master = -1, slave = open_terminal(&master);
    char shown[4096];
    struct peer *peer = peer_new();
    peer_script_default(peer, plays);
    const struct program_start start = { .out_fd = slave };
    struct program run = program_run_as(&start, (const char *[]){ "post", peer_url(peer), "-i", NULL });
    PROGRAM_EXPECT(run, "terminal", 0);
    program_free(&run);
    (void) shown_on(master, shown, sizeof shown);
    ck_assert_msg(strpbrk(shown, "\x1b\x07\x7f\x9b") == NULL && strstr(shown, "\xe2\x80\xae") == NULL, "%s", shown);
    program_expect_words("terminal", shown, "X-A: ?[2J|?[2J?]0;owned???31m??1m???|tea");
    run = program_run_as(&start, (const char *[]){ "post", peer_url(peer), "-o", "-", NULL });
    PROGRAM_EXPECT(run, "asked for", 0);
    program_free(&run);
    (void) shown_on(master, shown, sizeof shown);
    ck_assert_ptr_nonnull(strstr(shown, PLAY));
    run = program_run((const char *[]){ "post", peer_url(peer), NULL });
    ck_assert_uint_eq(run.out_len, 31);
    ck_assert_ptr_nonnull(strstr(run.out, PLAY));
    program_free(&run);
    peer_free(peer);
    close(master);
    close(slave);
}
END_TEST

SCRIPT(told,
       { PEER_SEND,
         STATUS_OK "{\"id\":\"\\u001b[2J\",\"state\":\"completed\",\"executed\":\"yes\",\"cause\":\"\\u009b31m\","
                   "\"response\":{\"status\":200,\"kept\":true},\"request\":{\"method\":\"\\u007f\",\"target\":\"/"
                   "\\u202e\\u001b]0;owned\\u0007\"}}",
         0 },
       { PEER_CLOSE, NULL, 0 });

START_TEST(a_status_that_is_shown_plays_with_no_terminal_and_as_json_says_the_same)
{
    struct peer *peer = peer_new();
    peer_script_default(peer, told);
    struct program run = program_run((const char *[]){ "status", "k", "--url", peer_url(peer), NULL });
    PROGRAM_EXPECT(run, "status", 0);
    expect_no_control("status", run.out);
    ck_assert_msg(strstr(run.out, "\xc2\x9b") == NULL && strstr(run.out, "\xe2\x80\xae") == NULL, "%s", run.out);
    program_expect_words("status", run.out, "state      completed, because of ??31m\n|/????]0;owned?");
    program_free(&run);
    run = program_run((const char *[]){ "status", "k", "--url", peer_url(peer), "--json", NULL });
    PROGRAM_EXPECT(run, "json", 0);
    expect_no_control("json", run.out);
    program_expect_words("json", run.out, "\\u001b[2J|\\u009b31m|\\u007f");
    program_free(&run);
    peer_free(peer);
}
END_TEST

/* ---- a journal that somebody else has written in ------------------------------------------------------------------ */

START_TEST(names_in_the_journal_play_with_no_terminal_and_nothing_in_it_blocks)
{
    char path[1400];
    struct program run = program_run((const char *[]){ "journal", "ls", NULL });
    PROGRAM_EXPECT(run, "made", 0);
    program_free(&run);
    (void) snprintf(path, sizeof path, "%s/sent/\x1b]0;owned\x07", program_journal());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    (void) snprintf(path, sizeof path, "%s/sent/pipe", program_journal());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    (void) snprintf(path, sizeof path, "%s/sent/zero", program_journal());
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
    (void) snprintf(path, sizeof path, "%s/sent/folder", program_journal());
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void) snprintf(path, sizeof path, "%s/new/sparse", program_journal());
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, INT64_C(1) << 40), 0);
    close(fd);
    static const char *const commands[][4] = { { "journal", "ls" },           { "resume" },
                                               { "journal", "show", "pipe" }, { "resume", "zero" },
                                               { "status", "sparse" },        { "journal", "prune", "--undecided" } };
    static const int codes[] = { 0, 73, 0, 73, 73, 0 };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        run = program_run(commands[i]);
        PROGRAM_EXPECT(run, commands[i][0], codes[i]);
        expect_no_control(commands[i][0], run.out);
        expect_no_control(commands[i][0], run.err);
        program_free(&run);
    }
}
END_TEST

SUITE(hostile)
{
    Suite *suite = suite_create("cli/hostile");
    CASE_LOOP(suite, a_hostile_answer_ends_as_it_must_and_is_asked_for_once, sizeof rows / sizeof rows[0]);
    CASE(suite, no_answer_leads_to_another_host);
    CASE_LOOP(suite, a_hostile_answer_to_a_question_decides_nothing, sizeof questions / sizeof questions[0]);
    CASE(suite, what_would_play_with_a_terminal_is_masked);
    CASE(suite, an_answer_shown_on_a_terminal_is_masked_and_elsewhere_it_is_as_it_came);
    CASE(suite, a_status_that_is_shown_plays_with_no_terminal_and_as_json_says_the_same);
    CASE(suite, names_in_the_journal_play_with_no_terminal_and_nothing_in_it_blocks);
    return suite;
}
