/* What a log line looks like, and that nothing in a value can break it. Each case runs in a process of its own
 * (Check forks), so standard error may be turned into a file here. */
#include "server/base/log.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int captured = -1;

static void capture(void)
{
    captured = memfd_create("stderr", 0);
    ck_assert_int_ge(captured, 0);
    ck_assert_int_eq(dup2(captured, STDERR_FILENO), STDERR_FILENO);
}

/* What was written so far, NUL-terminated. */
static const char *captured_text(void)
{
    static char text[65536];
    ssize_t len = pread(captured, text, sizeof(text) - 1, 0);
    ck_assert_int_ge(len, 0);
    text[len] = '\0';
    return text;
}

/* The one line written, behind "2026-11-29T12:00:00.123Z ", whose digits are another test's. */
static const char *line_after_time(void)
{
    const char *text = captured_text();
    ck_assert_uint_gt(strlen(text), 25);
    return text + 25;
}

START_TEST(a_text_line_has_time_level_event_and_fields)
{
    capture();
    log_setup(LOG_INFO, LOG_TEXT);
    struct log_line line;
    log_begin(&line, LOG_INFO, "start");
    log_text(&line, "listen", "127.0.0.1:8620");
    log_view(&line, "upstream", VIEW("http://127.0.0.1:3000"));
    log_int(&line, "pid", 42);
    log_end(&line);
    ck_assert_str_eq(line_after_time(), "info  start listen=127.0.0.1:8620 upstream=http://127.0.0.1:3000 pid=42\n");
}
END_TEST

START_TEST(a_json_line_is_one_object)
{
    capture();
    log_setup(LOG_INFO, LOG_JSON);
    struct log_line line;
    log_begin(&line, LOG_WARN, "start");
    log_text(&line, "listen", "127.0.0.1:8620");
    log_int(&line, "low", -7);
    log_end(&line);
    const char *text = captured_text();
    ck_assert_msg(strncmp(text, "{\"time\":\"2", 10) == 0, "%s", text);
    ck_assert_str_eq(text + 33,
                     "\",\"level\":\"warn\",\"event\":\"start\",\"listen\":\"127.0.0.1:8620\",\"low\":-7}\n");
}
END_TEST

START_TEST(the_time_is_rfc_3339_in_utc_with_milliseconds)
{
    capture();
    log_message(LOG_ERROR, "x", "y");
    const char *text = captured_text();
    const char *shape = "dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; shape[i] != '\0'; i++) {
        if (shape[i] == 'd') {
            ck_assert_msg(text[i] >= '0' && text[i] <= '9', "%s", text);
        } else {
            ck_assert_msg(text[i] == shape[i], "%s", text);
        }
    }
    ck_assert_msg(strncmp(text, "202", 3) == 0, "the clock is not in the 2020s: %s", text);
}
END_TEST

static const struct {
    const char *value;
    size_t len;
    const char *text, *json; /* behind v= and "v": */
} values[] = {
#define ROW(value, text, json)                                                                                         \
    {                                                                                                                  \
        value, sizeof(value) - 1, text, json                                                                           \
    }
    ROW("plain", "plain", "\"plain\""),
    ROW("", "\"\"", "\"\""),
    ROW("two words", "\"two words\"", "\"two words\""),
    ROW("a=b", "\"a=b\"", "\"a=b\""), /* would read as another field */
    ROW("say \"hi\"", "\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\""),
    ROW("back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\""),
    ROW("one\ntwo\rthree\tfour", "\"one\\ntwo\\rthree\\tfour\"", "\"one\\ntwo\\rthree\\tfour\""),
    ROW("a\0b", "\"a\\u0000b\"", "\"a\\u0000b\""),
    ROW("\x1b[31m", "\"\\u001b[31m\"", "\"\\u001b[31m\""),
    ROW("\x7f", "\"\\u007f\"", "\"\\u007f\""),
    ROW("caf\xc3\xa9", "\"caf\xc3\xa9\"", "\"caf\xc3\xa9\""),
    ROW("\xe2\x82\xac", "\"\xe2\x82\xac\"", "\"\xe2\x82\xac\""),
    ROW("\xf0\x9f\x99\x82", "\"\xf0\x9f\x99\x82\"", "\"\xf0\x9f\x99\x82\""),
    ROW("\xff", "\"\\u00ff\"", "\"\\u00ff\""),
    ROW("\xc3", "\"\\u00c3\"", "\"\\u00c3\""),                   /* cut in the middle */
    ROW("\xc3(", "\"\\u00c3(\"", "\"\\u00c3(\""),                /* no continuation */
    ROW("\xc0\xaf", "\"\\u00c0\\u00af\"", "\"\\u00c0\\u00af\""), /* overlong */
    ROW("\xe0\x80\xaf", "\"\\u00e0\\u0080\\u00af\"", "\"\\u00e0\\u0080\\u00af\""),
    ROW("\xe0\x9f\xbf", "\"\\u00e0\\u009f\\u00bf\"", "\"\\u00e0\\u009f\\u00bf\""),
    ROW("\xf0\x8f\xbf\xbf", "\"\\u00f0\\u008f\\u00bf\\u00bf\"", "\"\\u00f0\\u008f\\u00bf\\u00bf\""),
    ROW("\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"", "\"\\u00ed\\u00a0\\u0080\""), /* a surrogate */
    ROW("\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\"", "\"\\u00f4\\u0090\\u0080\\u0080\""),
    ROW("\xc2\x9b", "\"\\u00c2\\u009b\"", "\"\\u00c2\\u009b\""),                   /* C1: a terminal's CSI */
    ROW("\xe2\x80\xae", "\"\\u00e2\\u0080\\u00ae\"", "\"\\u00e2\\u0080\\u00ae\""), /* right-to-left override */
#undef ROW
};

START_TEST(values_are_quoted_and_escaped_where_needed)
{
    capture();
    struct log_line line;
    log_setup(LOG_INFO, LOG_TEXT);
    log_begin(&line, LOG_INFO, "e");
    log_view(&line, "v", view_make(values[_i].value, values[_i].len));
    log_end(&line);
    char expected[200];
    snprintf(expected, sizeof(expected), "info  e v=%s\n", values[_i].text);
    ck_assert_str_eq(line_after_time(), expected);

    ck_assert_int_eq(ftruncate(captured, 0), 0);
    lseek(captured, 0, SEEK_SET);
    log_setup(LOG_INFO, LOG_JSON);
    log_begin(&line, LOG_INFO, "e");
    log_view(&line, "v", view_make(values[_i].value, values[_i].len));
    log_end(&line);
    snprintf(expected, sizeof(expected), "\",\"level\":\"info\",\"event\":\"e\",\"v\":%s}\n", values[_i].json);
    ck_assert_str_eq(captured_text() + 33, expected);
}
END_TEST

static const struct {
    int64_t value;
    const char *text;
} numbers[] = {
    { 0, "n=0" },
    { -1, "n=-1" },
    { INT64_MAX, "n=9223372036854775807" },
    { INT64_MIN, "n=-9223372036854775808" },
};

START_TEST(numbers_are_written_in_decimal)
{
    capture();
    struct log_line line;
    log_begin(&line, LOG_INFO, "e");
    log_int(&line, "n", numbers[_i].value);
    log_end(&line);
    char expected[100];
    snprintf(expected, sizeof(expected), "info  e %s\n", numbers[_i].text);
    ck_assert_str_eq(line_after_time(), expected);
}
END_TEST

START_TEST(the_one_line_that_must_be_told_is_written_at_every_level)
{
    capture();
    log_setup(LOG_ERROR, LOG_TEXT);
    struct log_line line;
    log_begin(&line, LOG_INFO, "kept-back");
    log_end(&line);
    log_begin_always(&line, LOG_INFO, "start");
    log_text(&line, "listen", "127.0.0.1:8620");
    log_end(&line);
    ck_assert_str_eq(line_after_time(), "info  start listen=127.0.0.1:8620\n");
}
END_TEST

START_TEST(levels_below_the_setting_write_nothing)
{
    capture();
    log_setup(LOG_WARN, LOG_TEXT);
    ck_assert(log_enabled(LOG_ERROR));
    ck_assert(log_enabled(LOG_WARN));
    ck_assert(!log_enabled(LOG_INFO));
    ck_assert(!log_enabled(LOG_DEBUG));
    struct log_line line;
    log_begin(&line, LOG_INFO, "quiet");
    log_text(&line, "a", "b");
    log_int(&line, "c", 1);
    log_end(&line);
    log_message(LOG_DEBUG, "quiet", "nothing");
    ck_assert_str_eq(captured_text(), "");
    log_message(LOG_ERROR, "store", "the disk is slow: %d ms", 17);
    ck_assert_str_eq(line_after_time(), "error store message=\"the disk is slow: 17 ms\"\n");
}
END_TEST

START_TEST(a_long_line_is_cut_whole_and_says_so)
{
    char value[4000];
    /* A character of three bytes, so that a cut at any byte would leave a broken one. */
    for (size_t i = 0; i + 3 <= sizeof(value); i += 3) {
        memcpy(value + i, "\xe2\x82\xac", 3);
    }
    capture();
    log_setup(LOG_INFO, _i == 0 ? LOG_TEXT : LOG_JSON);
    struct log_line line;
    log_begin(&line, LOG_INFO, "e");
    log_view(&line, "v", view_make(value, 3999));
    log_text(&line, "after", "x");
    log_int(&line, "number", 1);
    log_end(&line);
    const char *text = captured_text();
    size_t len = strlen(text);
    const char *end = _i == 0 ? "\xe2\x82\xac\" cut=1\n" : "\xe2\x82\xac\",\"cut\":1}\n";
    ck_assert_msg(len > strlen(end) && strcmp(text + len - strlen(end), end) == 0, "%s", text);
    ck_assert_uint_le(len, 2048);
    ck_assert_uint_gt(len, 1900);
    ck_assert_ptr_eq(strstr(text, "after"), NULL);
    ck_assert_ptr_eq(strstr(text, "number"), NULL);
    ck_assert_ptr_eq(strchr(text, '\n'), text + len - 1);
}
END_TEST

START_TEST(fields_of_every_length_keep_the_line_in_its_room)
{
    char value[2100];
    memset(value, 'a', sizeof(value));
    capture();
    for (size_t len = 1900; len < 2100; len++) {
        for (int json = 0; json < 2; json++) {
            log_setup(LOG_INFO, json ? LOG_JSON : LOG_TEXT);
            ck_assert_int_eq(ftruncate(captured, 0), 0);
            lseek(captured, 0, SEEK_SET);
            struct log_line line;
            log_begin(&line, LOG_INFO, "e");
            log_view(&line, "v", view_make(value, len));
            log_int(&line, "n", INT64_MIN);
            log_text(&line, "quoted", "\n");
            log_end(&line);
            ck_assert_uint_le(line.len, sizeof(line.text));
            const char *text = captured_text();
            ck_assert_uint_eq(strlen(text), line.len);
            bool whole = strstr(text, json ? "\"quoted\":\"\\n\"}\n" : " quoted=\"\\n\"\n") != NULL;
            ck_assert_msg(whole == (strstr(text, json ? "\"cut\":1}\n" : " cut=1\n") == NULL), "%zu: %s", len, text);
        }
    }
}
END_TEST

START_TEST(a_long_message_is_cut_and_says_so)
{
    char text[3000];
    memset(text, 'm', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    capture();
    log_message(LOG_INFO, "e", "%s", text);
    const char *line = captured_text();
    ck_assert_str_eq(line + strlen(line) - 8, "m cut=1\n");
}
END_TEST

START_TEST(errno_is_preserved)
{
    capture();
    errno = ENOENT;
    log_message(LOG_INFO, "e", "cannot open: %s", strerror(ENOENT));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_str_eq(line_after_time(), "info  e message=\"cannot open: No such file or directory\"\n");

    close(STDERR_FILENO); /* write() now fails with EBADF */
    errno = ENOENT;
    struct log_line line;
    log_begin(&line, LOG_INFO, "e");
    log_text(&line, "a", "b");
    log_end(&line);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(lines_that_could_not_be_written_are_counted_by_the_next)
{
    int full = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(full, 0);
    ck_assert_int_eq(dup2(full, STDERR_FILENO), STDERR_FILENO);
    log_message(LOG_INFO, "e", "one");
    log_message(LOG_INFO, "e", "two");
    capture();
    log_message(LOG_INFO, "e", "three");
    log_message(LOG_INFO, "e", "four");
    const char *text = line_after_time();
    ck_assert_msg(strncmp(text, "info  e message=three lost=2\n", 29) == 0, "%s", text);
    ck_assert_str_eq(text + 29 + 25, "info  e message=four\n");
}
END_TEST

/* A file that may not grow further, as on a full disk: what of a line fits stands there, and must not run into the next one. */
START_TEST(a_line_of_which_a_part_was_written_ends_before_the_next_one)
{
    struct rlimit usual, tight;
    capture();
    log_message(LOG_INFO, "a", "fits");
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    tight = usual;
    tight.rlim_cur = (rlim_t) strlen(captured_text()) + 10;
    (void) signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    log_message(LOG_INFO, "b", "does not fit");
    log_message(LOG_INFO, "c", "does not either");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &usual), 0);
    log_message(LOG_INFO, "d", "fits again");
    const char *torn = strchr(captured_text(), '\n') + 1;
    ck_assert_uint_eq(strcspn(torn, "\n"), 10);
    ck_assert_str_eq(torn + 10 + 1 + sizeof "2026-01-01T00:00:00.000Z" - 1, " info  d message=\"fits again\" lost=2\n");
}
END_TEST

static void *write_lines(void *thread)
{
    for (int i = 0; i < 200; i++) {
        log_message(LOG_INFO, "e", "thread %d line %03d", *(int *) thread, i);
    }
    return NULL;
}

START_TEST(lines_of_several_threads_do_not_mix)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETPIPE_SZ, 1 << 18), 1 << 18); /* all lines fit: nobody reads meanwhile */
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    pthread_t threads[4];
    int ids[4] = { 0, 1, 2, 3 };
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_lines, &ids[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    close(STDERR_FILENO);
    FILE *lines = fdopen(ends[0], "r");
    char line[200];
    int next[4] = { 0 };
    int count = 0;
    while (fgets(line, sizeof(line), lines) != NULL) {
        int thread = -1;
        int number = -1;
        int end = 0;
        int found = sscanf(line + 25, "info e message=\"thread %d line %d\"\n%n", &thread, &number, &end);
        ck_assert_msg(found == 2 && thread >= 0 && thread < 4 && line[25 + end] == '\0', "%s", line);
        ck_assert_int_eq(number, next[thread]);
        next[thread]++;
        count++;
    }
    fclose(lines);
    ck_assert_int_eq(count, 800);
}
END_TEST

enum { WRITERS = 2 };
static atomic_bool writers_end;
static atomic_uint written[WRITERS];

static void *write_until_end(void *count)
{
    log_hold(); /* as loops do: what is written at a time takes a page of the pipe to itself */
    while (!atomic_load(&writers_end)) {
        log_message(LOG_INFO, "e", "a line that wants the last room of the pipe, as those of other threads do");
        atomic_fetch_add((atomic_uint *) count, 1);
    }
    return NULL;
}

/* There is room for one write, and all want it; then the reader stands still until everybody has ended some lines more. */
START_TEST(a_pipe_whose_reader_stands_still_stops_no_thread)
{
    enum { ROOMS = 120, PAGE = 4096, DEADLINE_MS = 10000 };
    int ends[2];
    char page[PAGE];
    pthread_t threads[WRITERS];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETPIPE_SZ, PAGE), PAGE);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_until_end, &written[i]), 0);
    }
    for (int room = 0; room < ROOMS; room++) {
        int64_t until_ms = suite_now_ms() + DEADLINE_MS;
        ck_assert_int_gt(read(ends[0], page, sizeof page), 0);
        for (int i = 0; i < WRITERS; i++) {
            unsigned before = atomic_load(&written[i]);
            while (atomic_load(&written[i]) - before < 100) {
                ck_assert_msg(suite_now_ms() < until_ms, "room %d: a thread stands in its write to the full pipe",
                              room);
                sched_yield();
            }
        }
    }
    atomic_store(&writers_end, true);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    close(ends[0]);
}
END_TEST

SUITE(log)
{
    Suite *suite = suite_create("base/log");
    CASE(suite, a_text_line_has_time_level_event_and_fields);
    CASE(suite, a_json_line_is_one_object);
    CASE(suite, the_one_line_that_must_be_told_is_written_at_every_level);
    CASE(suite, the_time_is_rfc_3339_in_utc_with_milliseconds);
    CASE_LOOP(suite, values_are_quoted_and_escaped_where_needed, sizeof(values) / sizeof(values[0]));
    CASE_LOOP(suite, numbers_are_written_in_decimal, sizeof(numbers) / sizeof(numbers[0]));
    CASE(suite, levels_below_the_setting_write_nothing);
    CASE_LOOP(suite, a_long_line_is_cut_whole_and_says_so, 2);
    CASE(suite, fields_of_every_length_keep_the_line_in_its_room);
    CASE(suite, a_long_message_is_cut_and_says_so);
    CASE(suite, errno_is_preserved);
    CASE(suite, lines_that_could_not_be_written_are_counted_by_the_next);
    CASE(suite, a_line_of_which_a_part_was_written_ends_before_the_next_one);
    CASE(suite, lines_of_several_threads_do_not_mix);
    /* Three threads that want a processor: at the mercy of everything else that runs. */
    CASE_TIMEOUT(suite, a_pipe_whose_reader_stands_still_stops_no_thread, 300);
    return suite;
}
