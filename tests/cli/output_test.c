/* output_test.c - where the answer goes: stdout, -o in one step, --json; and --events. */
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

SCENE_ANSWER(made, "HTTP/1.1 201 Created\r\nX-Two: 2\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nmade\n");
SCENE_ANSWER(busy, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
SCENE_ANSWER(bad, "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad");
SCENE_ANSWER(long_one, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
static const struct peer_step bytes[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0 },
                                          { PEER_SEND_BYTES, "a\0\xff\xfe\n", 5 },
                                          PEER_END };
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };

static const char *path_of(const char *name)
{
    static char path[700];
    (void) snprintf(path, sizeof path, "%s-%s", program_journal(), name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_file(const char *path, const char *text)
{
    char content[256] = "";
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s is not there", path);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(content, text);
}

START_TEST(a_final_answer_replaces_the_file_and_no_other_does)
{
    const char *path = path_of("answer");
    struct peer *peer = peer_new();
    peer_script_default(peer, busy);
    write_text(path, "before");
    chmod(path, 0640);
    const char *const arguments[] = { "post", peer_url(peer),    "-k", "k",        "-d",
                                      "x",    "--attempts",      "2",  "--server", "plain",
                                      "-o",   path_of("answer"), "-q", NULL };
    struct program open_end = program_run(arguments);
    PROGRAM_EXPECT(open_end, "503", 11);
    expect_file(path, "before");
    ck_assert_str_eq(open_end.out, "");
    peer_script_default(peer, made);
    struct program final =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k2", "-d", "x", "-o", path, NULL });
    PROGRAM_EXPECT(final, "201", 0);
    expect_file(path, "made\n");
    ck_assert_str_eq(final.out, "");
    peer_script_default(peer, bad);
    struct program wrong =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k3", "-d", "x", "-i", "-o", path, NULL });
    PROGRAM_EXPECT(wrong, "400", 4);
    expect_file(path, "HTTP/1.1 400\nContent-Length: 3\n\nbad");
    program_free(&open_end);
    program_free(&final);
    program_free(&wrong);
    peer_free(peer);
}
END_TEST

/* A pipe of the test's own stands for all that is no regular file, such as /dev/null. */
START_TEST(what_is_no_regular_file_is_written_to_and_not_replaced)
{
    struct peer *peer = peer_new();
    struct stat about;
    char got[8] = "";
    const char *path = path_of("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-o", path, NULL });
    PROGRAM_EXPECT(run, "a pipe", 0);
    ck_assert_int_eq(read(reader, got, sizeof got), 2);
    ck_assert_str_eq(got, "ok");
    ck_assert_int_eq(lstat(path, &about), 0);
    ck_assert(S_ISFIFO(about.st_mode));
    close(reader);
    struct program same = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-o", "-", NULL });
    PROGRAM_EXPECT(same, "-", 0);
    ck_assert_str_eq(same.out, "ok");
    program_free(&run);
    program_free(&same);
    peer_free(peer);
}
END_TEST

START_TEST(status_and_fields_come_before_the_body)
{
    struct peer *peer = peer_new();
    peer_script_default(peer, made);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-iq", NULL });
    PROGRAM_EXPECT(run, "-i", 0);
    ck_assert_str_eq(run.out, "HTTP/1.1 201\nX-Two: 2\nX-One: 1\nContent-Length: 5\n\nmade\n");
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(a_reader_that_has_gone_changes_nothing_but_the_code)
{
    int ends[2];
    struct peer *peer = peer_new();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    const struct program_start start = { .out_fd = ends[1] };
    struct program run = program_run_as(&start, (const char *[]){ "post", peer_url(peer), "-k", "k", "-d", "x", NULL });
    PROGRAM_EXPECT(run, "closed pipe", 12);
    program_expect_words("closed pipe", run.err, "could not be written to stdout: Broken pipe|nonbis wait 'k'");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    program_free(&run);
    close(ends[1]);
    peer_free(peer);
}
END_TEST

START_TEST(an_answer_that_is_too_long_is_not_half_shown)
{
    struct peer *peer = peer_new();
    peer_script_default(peer, long_one);
    struct program run =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k", "--response-max", "9", NULL });
    PROGRAM_EXPECT(run, "too long", 12);
    program_expect_words("too long", run.err, "longer than --response-max");
    ck_assert_str_eq(run.out, "");
    struct program fits =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k-2", "--response-max", "10", NULL });
    PROGRAM_EXPECT(fits, "fits", 0);
    ck_assert_str_eq(fits.out, "0123456789");
    program_free(&run);
    program_free(&fits);
    peer_free(peer);
}
END_TEST

static cJSON *json_of(const char *text)
{
    cJSON *object = cJSON_Parse(text);
    ck_assert_msg(object != NULL, "no JSON: %s", text);
    return object;
}

static const char *text_in(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text != NULL ? text : "(none)";
}

static int number_in(const cJSON *object, const char *name)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(number) ? number->valueint : -1;
}

START_TEST(json_tells_outcome_attempts_and_answer)
{
    struct peer *peer = peer_new();
    peer_script_for_request(peer, 1, lost);
    peer_script_for_request(peer, 2, made);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-k", "k-1", "-d", "x", "--server",
                                                       "keyed", "--base-delay", "5ms", "--json", "-qq", NULL });
    PROGRAM_EXPECT(run, "json", 0);
    ck_assert_str_eq(run.err, "");
    cJSON *object = json_of(run.out);
    ck_assert_str_eq(text_in(object, "outcome"), "completed");
    ck_assert_str_eq(text_in(object, "stop"), "done");
    ck_assert_str_eq(text_in(object, "key"), "k-1");
    ck_assert_str_eq(text_in(object, "method"), "POST");
    ck_assert_str_eq(text_in(object, "url"), peer_url(peer));
    ck_assert_str_eq(text_in(object, "body"), "made\n");
    ck_assert_int_eq(number_in(object, "exit_code"), 0);
    ck_assert_int_eq(number_in(object, "status"), 201);
    ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(object, "final")));
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(object, "replayed")));
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(object, "retry_after_s")));
    const cJSON *attempts = cJSON_GetObjectItem(object, "attempts"), *headers = cJSON_GetObjectItem(object, "headers");
    ck_assert_int_eq(cJSON_GetArraySize(attempts), 2);
    const cJSON *first = cJSON_GetArrayItem(attempts, 0), *second = cJSON_GetArrayItem(attempts, 1);
    ck_assert_str_eq(text_in(first, "class"), "lost");
    ck_assert_str_eq(text_in(first, "error_kind"), "network");
    ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(first, "sent")));
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(first, "http")));
    ck_assert_int_eq(number_in(second, "n"), 2);
    ck_assert_int_eq(number_in(second, "http"), 201);
    ck_assert_str_eq(text_in(second, "reason"), "backoff-jitter");
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetArrayItem(headers, 1), 0)), "X-One");
    cJSON_Delete(object);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(json_holds_bytes_that_are_no_text_in_base64)
{
    struct peer *peer = peer_new();
    peer_script_default(peer, bytes);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "--json", NULL });
    cJSON *object = json_of(run.out);
    ck_assert_str_eq(text_in(object, "body_base64"), "YQD//go=");
    ck_assert_ptr_null(cJSON_GetObjectItem(object, "body"));
    cJSON_Delete(object);
    struct program raw = program_run((const char *[]){ "post", peer_url(peer), NULL });
    ck_assert_uint_eq(raw.out_len, 5);
    ck_assert_mem_eq(raw.out, "a\0\xff\xfe\n", 5);
    program_free(&run);
    program_free(&raw);
    peer_free(peer);
}
END_TEST

START_TEST(json_without_an_answer_has_no_body_and_tells_why)
{
    struct peer *peer = peer_new();
    peer_script_default(peer, busy);
    struct program run =
        program_run((const char *[]){ "post", peer_url(peer), "-k", "k", "--server", "plain", "--json", NULL });
    PROGRAM_EXPECT(run, "503", 11);
    cJSON *object = json_of(run.out);
    ck_assert_str_eq(text_in(object, "outcome"), "unknown");
    ck_assert_str_eq(text_in(object, "stop"), "not-replayable");
    ck_assert_str_eq(text_in(object, "reason"), "operation-not-retry-safe");
    ck_assert_int_eq(number_in(object, "exit_code"), 11);
    ck_assert_int_eq(number_in(object, "status"), 503);
    ck_assert_ptr_null(cJSON_GetObjectItem(object, "body"));
    cJSON_Delete(object);
    program_free(&run);
    struct program refused =
        program_run((const char *[]){ "post", peer_url(peer), "--journal", "/proc/nonbis", "--json", NULL });
    PROGRAM_EXPECT(refused, "no journal", 73);
    object = json_of(refused.out);
    ck_assert_int_eq(number_in(object, "exit_code"), 73);
    ck_assert_str_ne(text_in(object, "error"), "(none)");
    cJSON_Delete(object);
    program_free(&refused);
    peer_free(peer);
}
END_TEST

START_TEST(json_leaves_the_body_to_the_file)
{
    const char *path = path_of("body");
    struct peer *peer = peer_new();
    peer_script_default(peer, made);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "--json", "-o", path, NULL });
    PROGRAM_EXPECT(run, "json and file", 0);
    cJSON *object = json_of(run.out);
    ck_assert_int_eq(number_in(object, "status"), 201);
    ck_assert_ptr_null(cJSON_GetObjectItem(object, "body"));
    expect_file(path, "made\n");
    cJSON_Delete(object);
    program_free(&run);
    peer_free(peer);
}
END_TEST

/* The values of one member over all lines: "attempt sent answer ". */
static void lines_of(char *text, const char *member, char *out, size_t size)
{
    out[0] = '\0';
    for (char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        char *next = line + len + (line[len] == '\n' ? 1 : 0);
        line[len] = '\0';
        cJSON *object = json_of(line);
        size_t used = strlen(out);
        (void) snprintf(out + used, size - used, "%s ", text_in(object, member));
        cJSON_Delete(object);
        line = next;
    }
}

START_TEST(events_are_lines_of_json_without_key_credential_query_or_body)
{
    const char *path = path_of("events");
    char url[160], kinds[512], decisions[512], text[16384] = "";
    struct peer *peer = peer_new();
    peer_script_for_request(peer, 1, busy);
    (void) snprintf(url, sizeof url, "%s/pay?card=4111", peer_url(peer));
    struct program run = program_run((const char *[]){ "post", url, "-k", "key-that-is-mine", "-d", "body-that-is-mine",
                                                       "-H", "Authorization: Bearer hidden", "--server", "keyed",
                                                       "--base-delay", "5ms", "--events", path, "-q", NULL });
    PROGRAM_EXPECT(run, "events", 0);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char *const secrets[] = { "key-that-is-mine", "body-that-is-mine", "hidden", "4111" };
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        ck_assert_msg(strstr(text, secrets[i]) == NULL, "%s is told: %s", secrets[i], text);
    }
    char copy[16384];
    memcpy(copy, text, sizeof copy);
    lines_of(copy, "event", kinds, sizeof kinds);
    ck_assert_str_eq(kinds, "attempt sent answer decision attempt sent answer outcome ");
    lines_of(text, "decision", decisions, sizeof decisions);
    program_expect_words("decisions", decisions, "backoff-jitter|completed");
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(events_go_to_an_open_descriptor)
{
    struct peer *peer = peer_new();
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "--events", "fd:2", "-qq", NULL });
    PROGRAM_EXPECT(run, "fd:2", 0);
    char kinds[256];
    lines_of(run.err, "event", kinds, sizeof kinds);
    ck_assert_str_eq(kinds, "attempt sent answer outcome ");
    ck_assert_str_eq(run.out, "ok");
    program_free(&run);
    peer_free(peer);
}
END_TEST

SUITE(output)
{
    Suite *suite = suite_create("cli/output");
    CASE(suite, a_final_answer_replaces_the_file_and_no_other_does);
    CASE(suite, what_is_no_regular_file_is_written_to_and_not_replaced);
    CASE(suite, status_and_fields_come_before_the_body);
    CASE(suite, a_reader_that_has_gone_changes_nothing_but_the_code);
    CASE(suite, an_answer_that_is_too_long_is_not_half_shown);
    CASE(suite, json_tells_outcome_attempts_and_answer);
    CASE(suite, json_holds_bytes_that_are_no_text_in_base64);
    CASE(suite, json_without_an_answer_has_no_body_and_tells_why);
    CASE(suite, json_leaves_the_body_to_the_file);
    CASE(suite, events_are_lines_of_json_without_key_credential_query_or_body);
    CASE(suite, events_go_to_an_open_descriptor);
    return suite;
}
