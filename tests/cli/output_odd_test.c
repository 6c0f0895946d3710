/* output_odd_test.c - what is told where the place for it is odd: closed, full, standing still, a private file, a name without room;
 * and what is told of bytes that are no text. See output_test.c for the rest. */
#include "tests/cli/program.h"
#include "tests/cli/scene.h"
#include "tests/support/daemon.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

SCENE_ANSWER(latin, "HTTP/1.1 200 OK\r\nX-Name: caf\xe9 \xc3\xa9\r\nContent-Length: 2\r\n\r\nok");

static const char *path_of(const char *name)
{
    static char path[1000];
    (void) snprintf(path, sizeof path, "%s-%s", program_journal(), name);
    return path;
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s is not there", path);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

START_TEST(a_file_that_is_replaced_keeps_its_mode)
{
    char text[16];
    const char *path = path_of("private");
    struct stat about;
    struct peer *peer = peer_new();
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, 0600), 0);
    close(fd);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-o", path, NULL });
    PROGRAM_EXPECT(run, "-o", 0);
    read_text(path, text, sizeof text);
    ck_assert_str_eq(text, "ok");
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0600);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(a_name_as_long_as_a_name_may_be_takes_the_answer)
{
    char path[1000], text[16];
    struct peer *peer = peer_new();
    size_t folder = (size_t) snprintf(path, sizeof path, "%s/", daemon_folder());
    memset(path + folder, 'n', 255);
    path[folder + 255] = '\0';
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "-o", path, NULL });
    PROGRAM_EXPECT(run, "a long name", 0);
    read_text(path, text, sizeof text);
    ck_assert_str_eq(text, "ok");
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(what_has_no_place_is_not_written_into_other_files)
{
    for (int closed = 1; closed < 3; closed++) {
        char events[8192];
        const char *path = path_of("events");
        const struct program_start start = { .closed_fd = closed };
        struct peer *peer = peer_new();
        (void) unlink(path);
        struct program run =
            program_run_as(&start, (const char *[]){ "post", peer_url(peer), "-d", "x", "--events", path, NULL });
        PROGRAM_EXPECT(run, closed == 1 ? "stdout" : "stderr", closed == 1 ? 12 : 0);
        program_expect_words("stderr", run.err, closed == 1 ? "could not be written to stdout" : "");
        ck_assert_str_eq(run.out, closed == 1 ? "" : "ok");
        read_text(path, events, sizeof events);
        for (char *line = events; *line != '\0'; line += strcspn(line, "\n") + 1) {
            ck_assert_msg(*line == '{', "among the events: %s", line);
        }
        program_free(&run);
        peer_free(peer);
    }
}
END_TEST

static const struct {
    const char *arguments[6];
} tellers[] = {
    { { "key", "new" } },
    { { "version" } },
    { { "help" } },
    { { "sim", "--clients", "10", "--no-plot" } },
    { { "sim", "--clients", "10", "--json" } },
    { { "post", "URL", "--dry-run" } },
    { { "status", "k", "--url", "URL" } },
    { { "status", "k", "--url", "URL", "--json" } },
    { { "journal", "ls" } },
    { { "journal", "ls", "--json" } },
};

START_TEST(what_stdout_does_not_take_is_not_lost_without_a_word)
{
    SCENE_ANSWER(told, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n"
                       "{\"state\":\"completed\",\"executed\":\"yes\"}");
    const char *arguments[7] = { NULL };
    struct peer *peer = peer_new();
    struct program first = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", NULL });
    PROGRAM_EXPECT(first, "first", 0);
    peer_script_default(peer, told);
    for (size_t i = 0; i < 6 && tellers[_i].arguments[i] != NULL; i++) {
        arguments[i] = strcmp(tellers[_i].arguments[i], "URL") == 0 ? peer_url(peer) : tellers[_i].arguments[i];
    }
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(full, 0);
    const struct program_start start = { .out_fd = full };
    struct program run = program_run_as(&start, arguments);
    close(full);
    PROGRAM_EXPECT(run, arguments[0], 70);
    program_expect_words(arguments[0], run.err, "stdout");
    program_free(&first);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(json_is_utf_8_whatever_a_field_or_a_name_holds)
{
    char events[8192];
    const char *path = path_of("events");
    struct peer *peer = peer_new();
    peer_script_default(peer, latin);
    struct program run = program_run(
        (const char *[]){ "post", peer_url(peer), "-d", "x", "--json", "--events", path, "--name", "caf\xe9", NULL });
    PROGRAM_EXPECT(run, "--json", 0);
    program_expect_words("--json", run.out, "[\"X-Name\",\"caf\xc3\xa9 \xc3\xa9\"]");
    read_text(path, events, sizeof events);
    program_expect_words("--events", events, "\"name\":\"caf\xc3\xa9\"");
    program_free(&run);
    peer_free(peer);
}
END_TEST

/* A pipe that is full, and nobody reads it. */
static void pipe_full(int ends[2])
{
    static const char filler[4096];
    ck_assert_int_eq(pipe(ends), 0); /* NOLINT(android-cloexec-pipe): the program inherits it */
    ck_assert_int_gt(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
    ck_assert_int_eq(write(ends[1], filler, sizeof filler), (int) sizeof filler);
}

START_TEST(events_that_nobody_reads_do_not_hold_up_the_run)
{
    int ends[2];
    char where[16];
    struct peer *peer = peer_new();
    pipe_full(ends);
    (void) snprintf(where, sizeof where, "fd:%d", ends[1]);
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-d", "x", "--events", where, NULL });
    PROGRAM_EXPECT(run, "nobody reads", 0);
    program_expect_words("nobody reads", run.err,
                         "--events cannot be written: nothing is taken there for 2 s; the run goes on without");
    ck_assert_str_eq(run.out, "ok");
    program_free(&run);
    close(ends[0]);
    close(ends[1]);
    peer_free(peer);
}
END_TEST

SUITE(output_odd)
{
    Suite *suite = suite_create("cli/output_odd");
    CASE(suite, a_file_that_is_replaced_keeps_its_mode);
    CASE(suite, a_name_as_long_as_a_name_may_be_takes_the_answer);
    CASE(suite, what_has_no_place_is_not_written_into_other_files);
    CASE_LOOP(suite, what_stdout_does_not_take_is_not_lost_without_a_word, sizeof tellers / sizeof tellers[0]);
    CASE(suite, json_is_utf_8_whatever_a_field_or_a_name_holds);
    CASE(suite, events_that_nobody_reads_do_not_hold_up_the_run);
    return suite;
}
