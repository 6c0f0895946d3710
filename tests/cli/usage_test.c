/* usage_test.c - the command line: what is wrong is told with the nearest right word, and nothing is sent. */
#include "tests/cli/program.h"

static struct peer *peer;

/* "URL" in an argument becomes the peer's. */
static const struct row {
    const char *arguments[10];
    const char *words; /* of stderr */
} rows[] = {
    { { NULL }, "what shall be done|nonbis help" },
    { { "pots", "URL" }, "no command \"pots\"|did you mean \"post\"" },
    { { "frobnicate" }, "no command \"frobnicate\"|nonbis help" },
    { { "http://x/" }, "nonbis post URL" },
    { { "post" }, "post wants URL" },
    { { "post", "URL", "second" }, "\"second\" is one argument too many" },
    { { "post", "URL", "--attemps", "3" }, "no option --attemps|did you mean --attempts" },
    { { "post", "URL", "--dead", "3" }, "no option --dead|did you mean --deadline" },
    { { "post", "URL", "--xyzzy" }, "no option --xyzzy|nonbis help post" },
    { { "post", "URL", "--retry", "3" }, "no option --retry|--attempts" },
    { { "post", "URL", "--max-time", "3" }, "--deadline" },
    { { "post", "URL", "-z" }, "no option -z" },
    { { "post", "URL", "-iz" }, "no option -z" },
    { { "post", "URL", "--json=yes" }, "--json takes no value" },
    { { "post", "URL", "-d" }, "-d wants DATA" },
    { { "post", "URL", "--attempts" }, "--attempts wants a value" },
    { { "post", "URL", "--attempts", "0" }, "--attempts \"0\" is not possible|1 to 100" },
    { { "post", "URL", "--attempts=many" }, "--attempts \"many\"" },
    { { "post", "URL", "--deadline", "1 hour" }, "--deadline \"1 hour\"" },
    { { "post", "URL", "--deadline", "400ms" }, "min-attempt is longer than deadline" },
    { { "post", "URL", "--base-delay", "10s" }, "base-delay is longer than max-delay" },
    { { "post", "URL", "--budget", "0.5" }, "budget-cost is larger than budget" },
    { { "post", "URL", "--profile", "stadard" }, "no such profile|did you mean standard|interactive" },
    { { "post", "URL", "--server", "nonbis", "--no-status-check" }, "--no-status-check|--server nonbis" },
    { { "post", "URL", "-k", "" }, "can be no key" },
    { { "post", "URL", "-k", "a b" }, "\"a b\" can be no key|visible ASCII" },
    { { "post", "URL", "-k", "a", "--no-key" }, "contradict each other" },
    { { "post", "URL", "-X", "post" }, "capital letters" },
    { { "post", "URL", "-X", "GET", "-d", "a" }, "-X GET: such a request is sent without a body" },
    { { "post", "URL", "-X", "HEAD", "-d", "" }, "-X HEAD: such a request is sent without a body" },
    { { "post", "URL", "-d", "a", "-d", "b" }, "-d is given 2 times" },
    { { "post", "URL", "-d", "@/nowhere/at/all" }, "/nowhere/at/all cannot be read|No such file" },
    { { "post", "URL", "-d", "12345", "--max-body", "4" }, "more than 4 bytes|--max-body" },
    { { "post", "URL", "--max-body", "4 bytes" }, "--max-body \"4 bytes\"|16MiB" },
    { { "post", "URL", "-H", "no colon" }, "-H wants 'Name: value'" },
    { { "post", "URL", "-H", "A: 1", "-H", "a: 2" }, "given twice" },
    { { "post", "URL", "-H", "Idempotency-Key: x" }, "given with -k" },
    { { "post", "URL", "-H", "Content-Length: 3" }, "Content-Length cannot be set" },
    { { "post", "URL", "-H", "A\tB: 3" }, "cannot be set" },
    { { "post", "URL", "--auth-file", "/nowhere" }, "--auth-file /nowhere cannot be read" },
    { { "post", "URL", "-o", "/nowhere/at/all" }, "-o /nowhere/at/all could not be written" },
    { { "post", "URL", "-o", "/tmp" }, "-o /tmp could not be written|directory" },
    { { "post", "URL", "--events", "/nowhere/x" }, "--events /nowhere/x cannot be opened" },
    { { "post", "URL", "--events", "fd:77" }, "--events fd:77|descriptor" },
    { { "post", "URL", "--events", "fd:x" }, "--events fd:x|descriptor" },
    { { "post", "URL", "--seed", "x" }, "--seed \"x\" is not possible: the same chances in waits again" },
    { { "post", "URL", "--status-url", "http://me:topsecret@127.0.0.1/" }, "--status-url the URL: wants" },
    { { "post", "URL", "--proxy", "http://me:topsecret@two words:1" }, "--proxy the URL cannot be set" },
    { { "post", "URL", "--status-url", "ftp://x" }, "--status-url ftp://x" },
    { { "post", "example.com/orders" }, "example.com/orders cannot be sent to|http:// or https://" },
    { { "post", "http://me:topsecret@127.0.0.1/x" }, "the URL cannot be sent to|--auth-file" },
    { { "status" }, "status wants KEY" },
    { { "status", "a key", "--url", "URL" }, "\"a key\" can be no key" },
    { { "status", "k", "--url", "nowhere" }, "--url names no server" },
    { { "status", "k" }, "the journal has no such key|--url|NONBIS_URL" },
    { { "wait", "k", "-d", "x" }, "wait has no option -d" },
    { { "void", "k", "--output", "x" }, "void has no option --output" },
    { { "resume", "k" }, "no entry k" },
    { { "resume", "--journal", "none" }, "nothing to resume" },
    { { "resume", "-o", "x" }, "wants one KEY" },
    { { "journal" }, "journal wants ls|show KEY|prune" },
    { { "journal", "sl" }, "\"journal sl\"|ls, show KEY, or prune" },
    { { "journal", "show" }, "\"journal show\"" },
    { { "journal", "show", "k" }, "no key \"k\"" },
    { { "journal", "ls", "--journal", "none" }, "nothing to look at" },
    { { "journal", "prune", "--older-than", "soon" }, "--older-than \"soon\"|7d" },
    { { "key", "make" }, "\"key make\"|key new" },
    { { "key", "check", "a\"b" }, "can be no key" },
    { { "sim", "--clients", "0" }, "--clients \"0\"|1 to 1000000" },
    { { "sim", "--strategy", "equl" }, "no strategy \"equl\"|did you mean equal" },
    { { "sim", "--base-delay", "2h" }, "--base-delay \"2h\"" },
    { { "sim", "--base-delay", "40s" }, "--base-delay is longer than --max-delay" },
    { { "sim", "x" }, "\"x\" is one argument too many" },
    { { "completion", "tcsh" }, "\"tcsh\"|bash, zsh and fish" },
    { { "help", "psot" }, "no help about \"psot\"|did you mean post" },
};

START_TEST(a_mistake_is_told_and_nothing_is_sent)
{
    const struct row *row = &rows[_i];
    const char *arguments[10];
    char name[256] = "";
    peer = peer_new();
    for (size_t i = 0; i < 10; i++) {
        bool url = row->arguments[i] != NULL && strcmp(row->arguments[i], "URL") == 0;
        arguments[i] = url ? peer_url(peer) : row->arguments[i];
        size_t len = strlen(name);
        (void) snprintf(name + len, sizeof name - len, "%s ", row->arguments[i] != NULL ? row->arguments[i] : "");
    }
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, name, 2);
    program_expect_words(name, run.err, row->words);
    ck_assert_str_eq(run.out, "");
    ck_assert_uint_eq(peer_count_connections(peer), 0);
    ck_assert_msg(strstr(run.err, "topsecret") == NULL, "a password is shown: %s", run.err);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(every_profile_of_the_help_is_one_of_the_library)
{
    static const char *const names[] = { "interactive", "standard", "batch", "read",
                                         "background",  "unkeyed",  "keyed", "reconnect" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct program run =
            program_run((const char *[]){ "post", "http://127.0.0.1:1/", "--profile", names[i], "--dry-run", NULL });
        PROGRAM_EXPECT(run, names[i], 0);
        program_free(&run);
        struct program help = program_run((const char *[]){ "post", "--help", NULL });
        program_expect_words("help", help.out, names[i]);
        program_free(&help);
    }
}
END_TEST

START_TEST(help_tells_every_command_its_options_and_the_exit_codes)
{
    static const char *const commands[] = { "post", "status", "wait", "void",    "resume",    "journal",
                                            "key",  "sim",    "help", "version", "completion" };
    struct program all = program_run((const char *[]){ "help", NULL });
    struct program same = program_run((const char *[]){ "--help", NULL });
    PROGRAM_EXPECT(all, "help", 0);
    ck_assert_str_eq(all.out, same.out);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char line[64];
        (void) snprintf(line, sizeof line, "  nonbis %s ", commands[i]);
        program_expect_words("help", all.out, line);
        struct program one = program_run((const char *[]){ "help", commands[i], NULL });
        struct program other = program_run((const char *[]){ commands[i], "-h", NULL });
        PROGRAM_EXPECT(one, commands[i], 0);
        if (strcmp(commands[i], "help") != 0) {
            ck_assert_str_eq(one.out, other.out);
        }
        program_expect_words(commands[i], one.out, "--help");
        program_free(&one);
        program_free(&other);
    }
    struct program codes = program_run((const char *[]){ "help", "exit-codes", NULL });
    program_expect_words("exit codes", codes.out,
                         "  0  executed|  2  the command|  3  executed|  4  executed|  5  executed|10  no byte|"
                         "11  it may|12  still|13  the key|14  refused|15  not executed|16  not executed|"
                         "17  the key|70  nonbis itself|73  the journal|130  interrupted|143  ended");
    struct program post = program_run((const char *[]){ "help", "post", NULL });
    ck_assert_ptr_nonnull(strstr(post.out, codes.out));
    program_free(&all);
    program_free(&same);
    program_free(&codes);
    program_free(&post);
}
END_TEST

START_TEST(the_version_is_that_of_the_library)
{
    struct program run = program_run((const char *[]){ "version", NULL });
    struct program same = program_run((const char *[]){ "--version", NULL });
    PROGRAM_EXPECT(run, "version", 0);
    ck_assert_str_eq(run.out, "nonbis 0.1.0\n");
    ck_assert_str_eq(run.out, same.out);
    program_free(&run);
    program_free(&same);
}
END_TEST

START_TEST(a_new_key_is_a_uuid_of_version_7_and_passes_its_own_check)
{
    struct program first = program_run((const char *[]){ "key", "new", NULL });
    struct program second = program_run((const char *[]){ "key", "new", NULL });
    ck_assert_uint_eq(first.out_len, 37);
    ck_assert_int_eq(first.out[14], '7');
    ck_assert_str_ne(first.out, second.out);
    first.out[36] = '\0';
    struct program check = program_run((const char *[]){ "key", "check", first.out, NULL });
    PROGRAM_EXPECT(check, first.out, 0);
    ck_assert_str_eq(check.err, "");
    program_free(&first);
    program_free(&second);
    program_free(&check);
}
END_TEST

SUITE(usage)
{
    Suite *suite = suite_create("cli/usage");
    CASE_LOOP(suite, a_mistake_is_told_and_nothing_is_sent, sizeof rows / sizeof rows[0]);
    CASE(suite, every_profile_of_the_help_is_one_of_the_library);
    CASE(suite, help_tells_every_command_its_options_and_the_exit_codes);
    CASE(suite, the_version_is_that_of_the_library);
    CASE(suite, a_new_key_is_a_uuid_of_version_7_and_passes_its_own_check);
    return suite;
}
