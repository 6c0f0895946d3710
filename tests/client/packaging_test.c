/* packaging_test.c - libnonbis as its users meet it: the installed files, and the programs of the manual, which the Makefile built
 * from the installed tree with nothing but the header, the library and pkg-config. They run against nonbisd in front of the
 * scripted handler, and the handler counts. */
#include "client-sdk/include/nonbis.h"
#include "tests/support/rig.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the programs of the manual ----------------------------------------------------------------------------------- */

static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND,
                                           "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy", 0 },
                                         PEER_END };
static const struct peer_step gone[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 404 Gone\r\nContent-Length: 4\r\n\r\ngone", 0 },
                                         PEER_END };
static const struct peer_step stall[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };

#define COUNTERS                                                                                                       \
    "runs 3\nattempts 3\nretries 0\noutcome{completed} 3\noutcome{rejected} 0\noutcome{not-sent} 0\n"                  \
    "outcome{not-applied} 0\noutcome{in-progress} 0\noutcome{unknown} 0\ncompleted_after_retry 0\nretry_tokens 10.0\n"
#define BATCH                                                                                                          \
    "attempts 3\nbase-delay 1000\nmax-delay 30000\njitter 1\nattempt-timeout 20000\nconnect-timeout 3000\n"            \
    "deadline 300000\nmin-attempt 500\nmax-server-wait 120000\nbudget 10000\nbudget-deposit 100\nbudget-cost 1000\n"   \
    "breaker-failures 0\nbreaker-open 30000\nserver 1\nstatus-timeout 2000\npoll 5000\nmax-poll 60000\nhold 250\n"     \
    "retention 86400000\nresponse-max 16777216\nkey-quoted 0\n"
#define NO_KEY "the key holds a byte that is not visible ASCII (0x21 to 0x7E), or a quote inside a bare key\n"

/* URL stands for the order route behind nonbisd, NOBODY for an address where nobody listens. */
static const struct example_row {
    const char *program, *arguments[3];
    const struct peer_step *first; /* what the handler does with the first request; NULL: 200 */
    const char *output;
    int exit_code;
    unsigned executions; /* at the handler */
} rows[] = {
    { "first", { "URL" }, NULL, "completed, done, HTTP 200\n", 0, 1 },
    { "first", { "NOT-A-URL" }, NULL, "nothing was sent: the text is no http or https URL", 1, 0 },
    { "shared", { "URL" }, NULL, "4 of 4 completed\n", 0, 4 },
    { "counters", { "URL", "3" }, NULL, COUNTERS, 0, 3 },
    { "events",
      { "URL" },
      NULL,
      "tea: attempt 1 of 4\n  connected, sending\n  HTTP 200 \ntea: completed, completed\n",
      0,
      1 },
    { "events",
      { "URL" },
      busy,
      "tea: attempt 1 of 4\n  connected, sending\n  HTTP 503 http\n  server-delay, as the server asked\n"
      "tea: attempt 2 of 4\n  connected, sending\n  HTTP 200 \ntea: completed, completed\n",
      0,
      2 },
    { "outcome", { "URL" }, NULL, "attempt 1: executed, sent, HTTP 200\ncompleted: done\n", 0, 1 },
    { "outcome",
      { "URL" },
      gone,
      "attempt 1: executed, sent, HTTP 404\ncompleted: done, and the handler said no\n",
      0,
      1 },
    { "outcome",
      { "URL" },
      cut,
      "attempt 1: unknown, sent, HTTP 504\nunknown: keep the key; run this operation again, or ask a human\n",
      0,
      1 },
    { "outcome",
      { "NOBODY" },
      NULL,
      "attempt 1: not-sent, not sent, HTTP 0\nattempt 2: not-sent, not sent, HTTP 0\n"
      "not-sent: nothing happened: try again, or tell the user so\n",
      0,
      0 },
    { "policy", { "batch", "attempts=3", "hold=250ms" }, NULL, BATCH, 0, 0 },
    { "policy", { "batch", "attempts=0" }, NULL, "attempts: the value is outside of its range\n", 2, 0 },
    { "policy", { "batch", "min-attempt=6m" }, NULL, "two options of the policy contradict each other\n", 2, 0 },
    { "policy", { "hasty" }, NULL, "hasty: there is no profile or option of that name\n", 2, 0 },
    { "key", { "order-17", "\"k\"", "a b" }, NULL, "order-17: a key\n\"k\": a key\na b: no key: " NO_KEY, 1, 0 },
    { "own_names", { "URL" }, NULL, "completed, 3 calls\n", 0, 1 },
};

static void orders_url(const struct rig *rig, char *url, size_t size)
{
    (void) snprintf(url, size, "http://%s/orders", rig->address);
}

/* Runs one of the programs; a row's output is how the real one begins. */
static void example_expect(const char *program, const char *const *arguments, int exit_code, const char *output)
{
    char path[64], seen[8192];
    (void) snprintf(path, sizeof path, "examples/%s", program);
    int code = daemon_run(path, arguments, seen, sizeof seen);
    ck_assert_msg(code == exit_code && strncmp(seen, output, strlen(output)) == 0,
                  "%s: expected exit code %d and\n%sgot %d and\n%s", program, exit_code, output, code, seen);
}

/* One nonbisd for all rows: each has keys of its own. */
START_TEST(each_program_of_the_manual_does_what_its_page_says)
{
    struct rig rig;
    char url[128], nobody[128];
    rig_start(&rig, NULL);
    orders_url(&rig, url, sizeof url);
    struct peer *absent = peer_new(); /* it keeps the port, so that nobody else gets it and answers */
    (void) snprintf(nobody, sizeof nobody, "%s/orders", peer_url(absent));
    peer_refuse(absent);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct example_row *row = &rows[i];
        const char *arguments[4] = { NULL };
        unsigned before = peer_count_requests(rig.peer);
        if (row->first != NULL) {
            peer_script_for_request(rig.peer, before + 1, row->first);
        }
        for (int j = 0; j < 3 && row->arguments[j] != NULL; j++) {
            arguments[j] = strcmp(row->arguments[j], "URL") == 0      ? url
                           : strcmp(row->arguments[j], "NOBODY") == 0 ? nobody
                                                                      : row->arguments[j];
        }
        example_expect(row->program, arguments, row->exit_code, row->output);
        ck_assert_msg(peer_count_requests(rig.peer) - before == row->executions, "row %zu, %s: %u executions", i,
                      row->program, peer_count_requests(rig.peer) - before);
    }
    peer_free(absent);
    rig_end(&rig);
}
END_TEST

START_TEST(an_order_number_is_one_order_however_often_the_program_is_started)
{
    struct rig rig;
    char url[128];
    rig_start(&rig, NULL);
    orders_url(&rig, url, sizeof url);
    example_expect("order", (const char *[]){ url, "17", NULL }, 0, "order-17 was executed: 200\n");
    example_expect("order", (const char *[]){ url, "17", NULL }, 0, "order-17 was executed before: 200\n");
    ck_assert_int_eq(setenv("ORDER_TOKEN", "other", 1), 0);
    example_expect("order", (const char *[]){ url, "17", NULL }, 1, "POST ");
    example_expect("order", (const char *[]){ url, "17x", NULL }, 2, "usage: order URL NUMBER\n");
    ck_assert_uint_eq(peer_count_key(rig.peer, "order-17"), 1);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(the_status_program_settles_a_key_for_ever)
{
    struct rig rig;
    char url[128];
    rig_start(&rig, NULL);
    orders_url(&rig, url, sizeof url);
    example_expect("order", (const char *[]){ url, "1", NULL }, 0, "order-1 was executed: 200\n");
    example_expect("status", (const char *[]){ url, "order-1", NULL }, 0,
                   "completed, executed: yes\ncompleted, for ever\n");
    example_expect("status", (const char *[]){ url, "order-2", NULL }, 0,
                   "not seen, which is not never: a copy may be under way\nnot-applied, for ever\n");
    example_expect("order", (const char *[]){ url, "2", NULL }, 1, "POST "); /* a late copy is refused */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(an_interrupt_ends_the_cancel_program_with_an_outcome_and_the_key)
{
    struct rig rig;
    struct daemon program;
    char url[128];
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, stall);
    orders_url(&rig, url, sizeof url);
    daemon_begin(&program, "examples/cancel", (const char *[]){ url, NULL });
    ck_assert(peer_wait_whole(rig.peer, 1));
    daemon_signal(&program, SIGINT);
    ck_assert_int_eq(daemon_wait(&program), 0);
    ck_assert(daemon_logged(&program, "unknown, cancelled\ngo on with this key only: "));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    daemon_kill(&rig.nonbis); /* it would wait for the handler */
    peer_free(rig.peer);
}
END_TEST

/* The event at which the process "crashes". */
static int crash_at(const struct nonbis_event *event, void *arg)
{
    const enum nonbis_event_kind *kind = arg;
    if (event->kind == *kind) {
        _exit(77);
    }
    return 0;
}

static void crash(const char *url, const char *journal, const char *key, enum nonbis_event_kind kind)
{
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct nonbis_client *client = NULL;
        struct nonbis_op *op = NULL;
        int error = nonbis_client_new(&client, NULL);
        error = error == NONBIS_OK ? nonbis_client_use_journal(client, journal) : error;
        error = error == NONBIS_OK ? nonbis_op_new(&op, client, url, "{}", 2) : error;
        error = error == NONBIS_OK ? nonbis_op_set_key(op, key) : error;
        if (error == NONBIS_OK && strstr(key, "secret") != NULL) {
            error = nonbis_op_set_header(op, "Authorization", "Bearer t", 0);
        }
        if (error == NONBIS_OK) {
            nonbis_client_on_event(client, crash_at, &kind);
            error = nonbis_op_run(op);
        }
        _exit(error == NONBIS_OK ? 1 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 77);
}

START_TEST(the_resume_program_ends_what_crashed_processes_began)
{
    struct rig rig;
    char url[128], journal[600];
    rig_start(&rig, NULL);
    orders_url(&rig, url, sizeof url);
    (void) snprintf(journal, sizeof journal, "%s/journal", daemon_folder());
    crash(url, journal, "not-sent-yet", NONBIS_EVENT_ATTEMPT);
    crash(url, journal, "sent-and-answered", NONBIS_EVENT_ANSWER);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    example_expect("resume", (const char *[]){ journal, NULL }, 0,
                   "new POST not-sent-yet\nsent POST sent-and-answered\nnot-sent-yet: completed\n"
                   "sent-and-answered: completed\n");
    example_expect("resume", (const char *[]){ journal, NULL }, 0,
                   "done POST not-sent-yet\ndone POST sent-and-answered\n");
    ck_assert_uint_eq(peer_count_key(rig.peer, "not-sent-yet"), 1);
    ck_assert_uint_eq(peer_count_key(rig.peer, "sent-and-answered"), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(the_resume_program_goes_on_behind_what_it_cannot_run)
{
    struct rig rig;
    char url[128], journal[600], torn[700];
    rig_start(&rig, NULL);
    orders_url(&rig, url, sizeof url);
    (void) snprintf(journal, sizeof journal, "%s/journal", daemon_folder());
    crash(url, journal, "1-with-a-secret", NONBIS_EVENT_ATTEMPT);
    crash(url, journal, "2-without", NONBIS_EVENT_ATTEMPT);
    (void) snprintf(torn, sizeof torn, "%s/new/0-torn", journal);
    FILE *file = fopen(torn, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    const char *const arguments[] = { journal, NULL };
    char seen[8192];
    ck_assert_int_eq(daemon_run("examples/resume", arguments, seen, sizeof seen), 1);
    static const char *const words[] = { "new unreadable: ", "/new/0-torn", "\n1-with-a-secret: POST ",
                                         "nothing was sent: it was made with Authorization",
                                         "\n2-without: completed\n" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ck_assert_msg(strstr(seen, words[i]) != NULL, "%s is not in %s", words[i], seen);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(a_fresh_key_of_the_key_program_is_a_key_and_not_the_one_before)
{
    char first[128], second[128];
    const char *why = NULL;
    ck_assert_int_eq(daemon_run("examples/key", NULL, first, sizeof first), 0);
    ck_assert_int_eq(daemon_run("examples/key", NULL, second, sizeof second), 0);
    ck_assert_str_ne(first, second);
    ck_assert_uint_eq(strlen(first), 37); /* with its line end */
    first[36] = '\0';
    ck_assert_int_eq(nonbis_key_check(first, &why), NONBIS_OK);
}
END_TEST

START_TEST(a_program_in_cxx_uses_the_library)
{
    char path[600];
    (void) snprintf(path, sizeof path, "%s/examples/from_cxx", suite_out());
    if (access(path, X_OK) != 0) {
        FIGURE("no C++ compiler: the library was not used from C++");
        return;
    }
    example_expect("from_cxx", NULL, 0,
                   "0.1.0: the text is no http or https URL with a host and without a user in it\n");
}
END_TEST

/* ---- the installed files ------------------------------------------------------------------------------------------ */

static const struct installed_row {
    const char *path; /* below PREFIX */
    unsigned mode;    /* 0: a link, which must lead somewhere */
} installed[] = {
    { "bin/nonbisd", 0755 },
    { "bin/nonbis", 0755 },
    { "lib/libnonbis.so.0.1.0", 0644 },
    { "lib/libnonbis.so.0", 0 },
    { "lib/libnonbis.so", 0 },
    { "lib/libnonbis.a", 0644 },
    { "lib/pkgconfig/nonbis.pc", 0644 },
    { "include/nonbis.h", 0644 },
    { "share/man/man1/nonbis.1", 0644 },
    { "share/man/man8/nonbisd.8", 0644 },
    { "share/man/man3/nonbis.3", 0644 },
    { "share/man/man3/libnonbis.3", 0 },
    { "share/man/man3/nonbis_op_run.3", 0644 },
    { "share/man/man3/nonbis_op_cancel.3", 0 },
    { "share/man/man3/nonbis_client_use_journal.3", 0 },
    { "share/bash-completion/completions/nonbis", 0644 },
    { "share/zsh/site-functions/_nonbis", 0644 },
    { "share/fish/vendor_completions.d/nonbis.fish", 0644 },
};

static void run_install(const char *action, const char *destination)
{
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const char *const variables[][2] = { { "OUT", suite_out() },           { "DESTDIR", destination },
                                             { "BINDIR", "/usr/bin" },         { "LIBDIR", "/usr/lib" },
                                             { "INCLUDEDIR", "/usr/include" }, { "DATADIR", "/usr/share" },
                                             { "MANDIR", "/usr/share/man" } };
        for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
            if (setenv(variables[i][0], variables[i][1], 1) != 0) {
                _exit(126);
            }
        }
        if (freopen("/dev/null", "w", stdout) == NULL) {
            _exit(126);
        }
        execl("tools/install", "install", action, (char *) NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static unsigned files_left;

static int count_file(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void) path;
    (void) status;
    (void) where;
    files_left += kind == FTW_F || kind == FTW_SL || kind == FTW_SLN ? 1 : 0;
    return 0;
}

static unsigned count_files(const char *folder)
{
    files_left = 0;
    ck_assert_int_eq(nftw(folder, count_file, 16, FTW_PHYS), 0);
    return files_left;
}

START_TEST(installing_puts_every_file_in_its_place_and_uninstalling_takes_all_of_them)
{
    char destination[600], path[900];
    (void) snprintf(destination, sizeof destination, "%s/destination", daemon_folder());
    ck_assert_int_eq(mkdir(destination, 0700), 0);
    run_install("install", destination);
    for (size_t i = 0; i < sizeof installed / sizeof installed[0]; i++) {
        struct stat status;
        (void) snprintf(path, sizeof path, "%s/usr/%s", destination, installed[i].path);
        ck_assert_msg(lstat(path, &status) == 0, "%s: %s", installed[i].path, strerror(errno));
        if (installed[i].mode != 0) {
            ck_assert_msg((status.st_mode & 07777) == installed[i].mode, "%s has mode %o", installed[i].path,
                          status.st_mode & 07777);
        } else {
            ck_assert_msg(S_ISLNK(status.st_mode) && stat(path, &status) == 0 && S_ISREG(status.st_mode),
                          "%s leads nowhere", installed[i].path);
        }
    }
    /* programs and library 8, pages 12, further names in section 3 56, completions 3 */
    ck_assert_uint_eq(count_files(destination), 80);
    run_install("uninstall", destination);
    ck_assert_uint_eq(count_files(destination), 0);
}
END_TEST

/* ---- the manual against the library ------------------------------------------------------------------------------- */

/* The page as text, its hyphens unescaped. */
static char *policy_page(void)
{
    FILE *file = fopen("client-sdk/man/nonbis_policy_new.3.in", "re");
    ck_assert_ptr_nonnull(file);
    char *text = calloc(1, 65536);
    size_t len = 0;
    for (int c = fgetc(file); c != EOF && len < 65535; c = fgetc(file)) {
        if (c != '\\') {
            text[len++] = (char) c;
        }
    }
    (void) fclose(file);
    return text;
}

START_TEST(the_manual_tells_every_option_with_its_name_and_its_standard_value)
{
    struct nonbis_policy *standard = NULL, *told = NULL;
    char *page = policy_page();
    ck_assert_int_eq(nonbis_policy_new(&standard, "standard"), NONBIS_OK);
    ck_assert_int_eq(nonbis_policy_new(&told, "batch"), NONBIS_OK);
    for (int option = 1; option < NONBIS_OPTION_END; option++) {
        char begin[64], value[32] = "";
        const char *name = nonbis_option_name((enum nonbis_option) option);
        (void) snprintf(begin, sizeof begin, " (%s, ", name);
        const char *found = strstr(page, begin);
        ck_assert_msg(found != NULL, "the page does not tell %s", name);
        ck_assert_int_eq(sscanf(found + strlen(begin), "%31[^)\n]", value), 1);
        ck_assert_msg(nonbis_policy_set_text(told, name, value) == NONBIS_OK, "%s=%s", name, value);
        ck_assert_msg(nonbis_policy_get(told, (enum nonbis_option) option) ==
                          nonbis_policy_get(standard, (enum nonbis_option) option),
                      "the page tells %s for %s", value, name);
    }
    nonbis_policy_free(standard);
    nonbis_policy_free(told);
    free(page);
}
END_TEST

START_TEST(the_manual_tells_the_profiles_as_they_are)
{
    static const char *const profiles[] = { "interactive", "standard", "batch", "read",
                                            "background",  "unkeyed",  "keyed", "reconnect" };
    static const enum nonbis_option columns[] = { NONBIS_ATTEMPTS,    NONBIS_BASE_MS,     NONBIS_CAP_MS,
                                                  NONBIS_ATTEMPT_MS,  NONBIS_DEADLINE_MS, NONBIS_SERVER_WAIT_MS,
                                                  NONBIS_BUDGET_MILLI };
    char *page = policy_page();
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        struct nonbis_policy *policy = NULL;
        char begin[32];
        double told[7] = { 0 };
        (void) snprintf(begin, sizeof begin, "\n%s\t", profiles[i]);
        const char *found = strstr(page, begin);
        ck_assert_msg(found != NULL, "the page does not tell %s", profiles[i]);
        ck_assert_int_eq(sscanf(found + strlen(begin), "%lf %lf %lf %lf %lf %lf %lf", &told[0], &told[1], &told[2],
                                &told[3], &told[4], &told[5], &told[6]),
                         7);
        ck_assert_int_eq(nonbis_policy_new(&policy, profiles[i]), NONBIS_OK);
        for (int column = 0; column < 7; column++) {
            int64_t value = nonbis_policy_get(policy, columns[column]);
            int64_t expected = (int64_t) (told[column] * (column == 0 ? 1 : 1000) + 0.5);
            ck_assert_msg(value == expected, "%s: the page tells %g for %s", profiles[i], told[column],
                          nonbis_option_name(columns[column]));
        }
        nonbis_policy_free(policy);
    }
    free(page);
}
END_TEST

SUITE(packaging)
{
    Suite *suite = suite_create("client/packaging");
    CASE(suite, each_program_of_the_manual_does_what_its_page_says);
    CASE(suite, an_order_number_is_one_order_however_often_the_program_is_started);
    CASE(suite, the_status_program_settles_a_key_for_ever);
    CASE(suite, an_interrupt_ends_the_cancel_program_with_an_outcome_and_the_key);
    CASE(suite, the_resume_program_ends_what_crashed_processes_began);
    CASE(suite, the_resume_program_goes_on_behind_what_it_cannot_run);
    CASE(suite, a_fresh_key_of_the_key_program_is_a_key_and_not_the_one_before);
    CASE(suite, a_program_in_cxx_uses_the_library);
    CASE(suite, installing_puts_every_file_in_its_place_and_uninstalling_takes_all_of_them);
    CASE(suite, the_manual_tells_every_option_with_its_name_and_its_standard_value);
    CASE(suite, the_manual_tells_the_profiles_as_they_are);
    return suite;
}
