/* dry_run_test.c - `nonbis post --dry-run`: what would be sent, and when; nothing is, and nothing is kept. */
#include "tests/cli/program.h"

#include <unistd.h>

START_TEST(the_request_and_its_times_are_printed_and_nothing_is_sent)
{
    struct peer *peer = peer_new();
    char url[128], host[64];
    (void) snprintf(url, sizeof url, "%s/orders?a=b", peer_url(peer));
    (void) snprintf(host, sizeof host, "Host: 127.0.0.1:%u\n", peer_port(peer));
    struct program run =
        program_run((const char *[]){ "post", url, "-d", "{\"a\":1}", "-k", "k-1", "-H", "X-Plain: yes", "-H",
                                      "Authorization: Bearer hidden", "--dry-run", NULL });
    PROGRAM_EXPECT(run, "dry run", 0);
    program_expect_words("request", run.out,
                         "POST /orders?a=b HTTP/1.1\n|Idempotency-Key: k-1\n|X-Plain: yes\n|Authorization: (secret)\n|"
                         "Content-Type: application/json\n|Content-Length: 7\n\n{\"a\":1}\n");
    program_expect_words("host", run.out, host);
    program_expect_words("schedule", run.out,
                         "# attempt 1  at once\n# attempt 2  after 0ms to 500ms\n# attempt 3  after 0ms to 1s\n"
                         "# attempt 4  after 0ms to 2s\n");
    program_expect_words("limits", run.out,
                         "attempt-timeout 10s connect-timeout 3s deadline 30s max-server-wait 60s|nothing was sent");
    ck_assert_ptr_null(strstr(run.out, "hidden"));
    ck_assert_uint_eq(peer_count_connections(peer), 0);
    ck_assert_int_ne(access(program_journal(), F_OK), 0);
    program_free(&run);
    peer_free(peer);
}
END_TEST

static const struct {
    const char *arguments[14];
    const char *schedule;
} schedules[] = {
    { { "--profile", "batch", NULL },
      "# attempt 2  after 0ms to 1s\n# attempt 3  after 0ms to 2s\n# attempt 4  after 0ms to 4s\n"
      "# attempt 5  after 0ms to 8s\n# attempt 6  after 0ms to 16s\n# attempt-timeout 20s" },
    { { "--jitter", "equal", "--attempts", "3", NULL },
      "# attempt 2  after 250ms to 500ms\n# attempt 3  after 500ms to 1s\n# att" },
    { { "--profile", "reconnect", "--attempts", "4", NULL },
      "# attempt 2  after 500ms to 1.5s\n# attempt 3  after 500ms to 4.5s\n# attempt 4  after 500ms to 13.5s\n# "
      "attempt-t" },
    { { "--base-delay", "3s", "--max-delay", "5s", "--attempts", "4", NULL },
      "# attempt 2  after 0ms to 3s\n# attempt 3  after 0ms to 5s\n# attempt 4  after 0ms to 5s\n# attempt-t" },
    { { "--attempts", "1", NULL }, "# attempt 1  at once\n# attempt-timeout" },
};

START_TEST(the_windows_of_a_policy_are_those_of_its_row)
{
    const char *arguments[20] = { "post", "http://127.0.0.1:1/", "--dry-run" };
    for (size_t i = 0; i < 14; i++) {
        arguments[3 + i] = schedules[_i].arguments[i];
    }
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, arguments[3], 0);
    program_expect_words(arguments[3], run.out, schedules[_i].schedule);
    program_free(&run);
}
END_TEST

START_TEST(a_seed_draws_a_schedule_within_the_windows_and_the_same_again)
{
    const char *const arguments[] = { "post", "http://127.0.0.1:1/", "--dry-run", "-k", "k", "--seed", "4", NULL };
    struct program first = program_run(arguments), same = program_run(arguments);
    ck_assert_str_eq(first.out, same.out);
    program_expect_words(
        "seed 4", first.out,
        "# attempt 2  after 0ms to 500ms, by this seed 215ms\n# attempt 3  after 0ms to 1s, by this seed 892ms\n"
        "# attempt 4  after 0ms to 2s, by this seed 1.8s\n");
    program_free(&first);
    program_free(&same);
}
END_TEST

START_TEST(a_body_from_stdin_or_a_file_is_read_whole)
{
    const struct program_start start = { .input = "line one\nline two\n" };
    struct program run = program_run_as(&start, (const char *[]){ "post", "http://127.0.0.1:1/", "-d", "@-",
                                                                  "--dry-run", "-H", "Content-Type:", NULL });
    PROGRAM_EXPECT(run, "stdin", 0);
    program_expect_words("stdin", run.out, "Content-Length: 18\n\nline one\nline two\n");
    ck_assert_ptr_null(strstr(run.out, "Content-Type"));
    program_free(&run);
}
END_TEST

START_TEST(without_a_key_there_is_none)
{
    struct program run = program_run((const char *[]){ "post", "http://127.0.0.1:1/x", "--no-key", "--dry-run", NULL });
    PROGRAM_EXPECT(run, "no key", 0);
    ck_assert_ptr_null(strstr(run.out, "Idempotency-Key"));
    program_expect_words("no key", run.out, "POST /x HTTP/1.1|Content-Length: 0");
    program_free(&run);
}
END_TEST

START_TEST(a_get_is_shown_as_it_would_be_sent)
{
    struct program run =
        program_run((const char *[]){ "post", "http://127.0.0.1:1/x", "-X", "GET", "--dry-run", NULL });
    PROGRAM_EXPECT(run, "GET", 0);
    program_expect_words("GET", run.out, "GET /x HTTP/1.1\n");
    ck_assert_ptr_null(strstr(run.out, "Content-Length"));
    program_free(&run);
}
END_TEST

START_TEST(fields_of_a_file_are_secret_whatever_their_names)
{
    char path[600];
    (void) snprintf(path, sizeof path, "%s-auth", program_journal());
    FILE *file = fopen(path, "we");
    fputs("# who we are\n\nX-Branch: seventeen\r\nAuthorization: Bearer hidden\n", file);
    fclose(file);
    struct program run =
        program_run((const char *[]){ "post", "http://127.0.0.1:1/x", "--auth-file", path, "--dry-run", NULL });
    PROGRAM_EXPECT(run, "auth file", 0);
    program_expect_words("auth file", run.out, "X-Branch: (secret)\nAuthorization: (secret)\n");
    ck_assert_ptr_null(strstr(run.out, "seventeen"));
    program_free(&run);
}
END_TEST

SUITE(dry_run)
{
    Suite *suite = suite_create("cli/dry_run");
    CASE(suite, the_request_and_its_times_are_printed_and_nothing_is_sent);
    CASE_LOOP(suite, the_windows_of_a_policy_are_those_of_its_row, sizeof schedules / sizeof schedules[0]);
    CASE(suite, a_seed_draws_a_schedule_within_the_windows_and_the_same_again);
    CASE(suite, a_body_from_stdin_or_a_file_is_read_whole);
    CASE(suite, without_a_key_there_is_none);
    CASE(suite, a_get_is_shown_as_it_would_be_sent);
    CASE(suite, fields_of_a_file_are_secret_whatever_their_names);
    return suite;
}
