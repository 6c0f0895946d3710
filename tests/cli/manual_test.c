/* manual_test.c - the manual page, --help and the completions tell the same options, commands and exit codes. */
#include "tests/cli/program.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE "client-sdk/man/nonbis.1"

enum { NAMES_MAX = 200, NAME_BYTES = 40 };

struct names {
    char names[NAMES_MAX][NAME_BYTES];
    size_t count;
};

static void names_add(struct names *names, const char *name, size_t len)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strlen(names->names[i]) == len && strncmp(names->names[i], name, len) == 0) {
            return;
        }
    }
    ck_assert(names->count < NAMES_MAX && len < NAME_BYTES);
    (void) snprintf(names->names[names->count++], NAME_BYTES, "%.*s", (int) len, name);
}

static bool names_have(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The page without its backslashes before hyphens. */
static char *page_text(void)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    int fd = open(PAGE, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, PAGE " is not there");
    char piece[4096];
    for (ssize_t got = read(fd, piece, sizeof piece); got > 0; got = read(fd, piece, sizeof piece)) {
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] != '\\') {
                buf_append_bytes(&text, &piece[i], 1);
            }
        }
    }
    close(fd);
    buf_append_bytes(&text, "", 1);
    size_t ignored = 0;
    return buf_take(&text, &ignored);
}

/* Every --name in a text; `at_begin`: only those that begin the line's option, as in --help. */
static void collect_options(struct names *names, const char *text, bool at_begin)
{
    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at + 2, "--")) {
        size_t len = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        bool begins = at - text >= 6 && strncmp(at - 6, "  -", 3) == 0;
        begins = begins || (at - text >= 6 && strncmp(at - 6, "      ", 6) == 0);
        if (len > 0 && at[2] != '-' && (!at_begin || begins)) {
            names_add(names, at + 2, len);
        }
    }
}

static void collect_help(struct names *names)
{
    static const char *const commands[] = { "post", "status", "wait", "void",    "resume",    "journal",
                                            "key",  "sim",    "help", "version", "completion" };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct program run = program_run((const char *[]){ "help", commands[i], NULL });
        collect_options(names, run.out, true);
        program_free(&run);
    }
}

START_TEST(every_option_stands_in_the_manual_and_no_other)
{
    static struct names told, written;
    collect_help(&told);
    char *page = page_text();
    collect_options(&written, page, false);
    for (size_t i = 0; i < told.count; i++) {
        ck_assert_msg(names_have(&written, told.names[i]), PAGE " does not know --%s", told.names[i]);
    }
    for (size_t i = 0; i < written.count; i++) {
        ck_assert_msg(names_have(&told, written.names[i]), "--help does not know --%s, which stands in " PAGE,
                      written.names[i]);
    }
    ck_assert_uint_ge(told.count, 50);
    FIGURE("manual: %zu options", told.count);
    free(page);
}
END_TEST

START_TEST(every_exit_code_stands_in_the_manual)
{
    static const char *const codes[] = { "0",  "2",  "3",  "4",  "5",  "10", "11",  "12", "13",
                                         "14", "15", "16", "17", "70", "73", "130", "143" };
    char *page = page_text();
    const char *section = strstr(page, ".SH EXIT STATUS");
    ck_assert_ptr_nonnull(section);
    *strstr(section, ".SH ENVIRONMENT") = '\0';
    struct names seen = { .count = 0 };
    for (const char *line = strchr(section, '\n'); line != NULL; line = strchr(line + 1, '\n')) {
        for (const char *at = line + 1; strncmp(line + 1, ".B", 2) == 0 && *at != '\n' && *at != '\0';) {
            size_t digits = strspn(at, "0123456789");
            if (digits > 0 && (at[-1] == ' ') && strchr(" \n", at[digits]) != NULL) {
                names_add(&seen, at, digits);
            }
            at += digits > 0 ? digits : 1;
        }
    }
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        ck_assert_msg(names_have(&seen, codes[i]), PAGE " does not tell exit code %s", codes[i]);
    }
    ck_assert_uint_eq(seen.count, sizeof codes / sizeof codes[0]);
    free(page);
}
END_TEST

/* What bash offers for a line: COMP_WORDS are the words, the last one is completed. */
static void bash_completes(const char *words, char *out, size_t size)
{
    char program[256], command[2048];
    int ends[2];
    (void) snprintf(program, sizeof program, "%s/nonbis", suite_out());
    (void) snprintf(command, sizeof command,
                    "nonbis() { '%s' \"$@\"; }; source <(nonbis completion bash); COMP_WORDS=(%s); "
                    "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nonbis; echo \" ${COMPREPLY[*]} \"",
                    program, words);
    ck_assert_int_eq(pipe(ends), 0);
    const char *journal = program_journal();
    pid_t pid = fork();
    if (pid == 0) {
        setenv("NONBIS_JOURNAL", journal, 1);
        dup2(ends[1], 1);
        close(ends[0]);
        execlp("bash", "bash", "--norc", "-c", command, (char *) NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t got = 1; got > 0 && len + 1 < size; len += got > 0 ? (size_t) got : 0) {
        got = read(ends[0], out + len, size - 1 - len);
    }
    out[len] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    ck_assert_msg(status == 0, "bash ended with %d for %s: %s", status, words, out);
}

START_TEST(bash_completes_commands_options_and_words)
{
    static const struct {
        const char *words, *offered, *not_offered;
    } rows[] = {
        { "nonbis ''", " post | status | wait | void | resume | journal | key | sim | version | completion | help ",
          "--" },
        { "nonbis po", " post ", "status" },
        { "nonbis post --att", " --attempts | --attempt-timeout ", "--json" },
        { "nonbis post --profile ''", " interactive | standard | batch | reconnect ", "--" },
        { "nonbis post --jitter ''", " full | equal | decorrelated ", "--" },
        { "nonbis sim --strategy ''", " immediate | fixed | exponential ", "--" },
        { "nonbis journal ''", " ls | show | prune ", "post" },
        { "nonbis completion ''", " bash | zsh | fish ", "post" },
        { "nonbis help ''", " post | exit-codes ", "zzz" },
        { "nonbis void --ou", "  ", "--output" },
        { "nonbis wait --ou", " --output ", "--url" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[8192];
        bash_completes(rows[i].words, out, sizeof out);
        program_expect_words(rows[i].words, out, rows[i].offered);
        ck_assert_msg(strstr(out, rows[i].not_offered) == NULL, "%s: %s is offered: %s", rows[i].words,
                      rows[i].not_offered, out);
    }
}
END_TEST

START_TEST(every_completion_knows_every_option)
{
    static const char *const shells[] = { "bash", "zsh", "fish" };
    static struct names told;
    collect_help(&told);
    for (size_t i = 0; i < 3; i++) {
        struct program run = program_run((const char *[]){ "completion", shells[i], NULL });
        PROGRAM_EXPECT(run, shells[i], 0);
        for (size_t j = 0; j < told.count; j++) {
            char word[64];
            (void) snprintf(word, sizeof word, i == 2 ? "-l %s" : "--%s", told.names[j]);
            ck_assert_msg(strstr(run.out, word) != NULL, "%s does not complete %s", shells[i], word);
        }
        program_free(&run);
    }
}
END_TEST

SUITE(manual)
{
    Suite *suite = suite_create("cli/manual");
    CASE(suite, every_option_stands_in_the_manual_and_no_other);
    CASE(suite, every_exit_code_stands_in_the_manual);
    CASE(suite, bash_completes_commands_options_and_words);
    CASE(suite, every_completion_knows_every_option);
    return suite;
}
