/* Wrong flags, variables and values: each is told once, in one line, with its source and what was expected. */
#include "tests/unit/config/reading.h"

static unsigned line_count(const char *text)
{
    unsigned lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* One wrong thing, one line, and the exit code. */
static const struct {
    const char *flag, *value, *variable;
    int code;
    const char *source, *word; /* the line starts with the one and holds the other */
} wrong[] = {
    /* usage */
    { "--lisen", "127.0.0.1:1", NULL, 64, "\"--lisen\": unknown flag; did you mean --listen?", "" },
    { "--loglevel=debug", NULL, NULL, 64, "\"--loglevel\": ", "did you mean --log-level?" },
    { "--body-max=1KiB", NULL, NULL, 64, "\"--body-max\": ", "did you mean --set body_max=VALUE?" },
    { "--config=x.yaml", NULL, NULL, 64, "\"--config\": unknown flag", "" },
    { "--zzzzzzzzzz", NULL, NULL, 64, "\"--zzzzzzzzzz\": unknown flag; --help lists them", "" },
    { "-x", NULL, NULL, 64, "\"-x\": unknown flag", "--help" },
    { "--listen", NULL, NULL, 64, "--listen: expected a value", "" },
    { "--listen", "--check", NULL, 64, "--listen: expected a value", "" },
    { "--check=yes", NULL, NULL, 64, "--check: takes no value", "" },
    { "serve", NULL, NULL, 64, "\"serve\": stray argument", "" },
    { "", NULL, NULL, 64, "\"\": stray argument", "" },
    { "--", NULL, NULL, 64, "\"--\": stray argument", "" },
    { "--set", "body_max", NULL, 64, "--set: expected NAME=VALUE, got \"body_max\"", "" },
    { "--set", NULL, NULL, 64, "--set: expected a value", "" },
    /* names */
    { "--set", "bodymax=1KiB", NULL, 78, "--set \"bodymax\": no setting has this name; did you mean body_max?", "" },
    { "--set", "Listen=x", NULL, 78, "--set \"Listen\": ", "did you mean listen?" },
    { "--set", "=x", NULL, 78, "--set \"\": no setting has this name", "--help" },
    { "--set", "qwertz=1", NULL, 78, "--set \"qwertz\": no setting has this name; --help lists them", "" },
    { NULL, NULL, "NONBIS_BODYMAX=1KiB", 78, "NONBIS_BODYMAX: no setting", "did you mean NONBIS_BODY_MAX?" },
    { NULL, NULL, "NONBIS_listen=127.0.0.1:1", 78, "NONBIS_listen: no setting", "did you mean NONBIS_LISTEN?" },
    { NULL, NULL, "NONBIS_BODY-MAX=1KiB", 78, "NONBIS_BODY-MAX: no setting", "did you mean NONBIS_BODY_MAX?" },
    { NULL, NULL, "NONBIS_\x1b[31m\xe9\n=1", 78, "\"NONBIS_\\x1b[31m\\xe9\\x0a\": no setting", "--help" },
    { NULL, NULL, "NONBIS_=1", 78, "NONBIS_: no setting", "" },
    { NULL, NULL, "NONBIS_PORT=8080", 78, "NONBIS_PORT: no setting", "" },
    { NULL, NULL, "NONBIS_ROUTE=POST /x", 78, "NONBIS_ROUTE: routes are given by --route only", "" },
    { NULL, NULL, "NONBIS_ROUTES=POST /x", 78, "NONBIS_ROUTES: routes are given by --route only", "" },
    /* values */
    { "--set", "body_max=1X", NULL, 78, "--set body_max: expected a size from 1KiB to 64MiB", "got \"1X\"" },
    { "--set", "body_max=10 MB", NULL, 78, "--set body_max: expected a size from 1KiB to 64MiB", "did you mean 10MB?" },
    { "--set", "body_max=100 MB", NULL, 78, "--set body_max: expected a size from 1KiB to 64MiB",
      "it is written 100MB, and is out of that range" },
    { "--set", "ttl=5 S", NULL, 78, "--set ttl: expected a duration", "did you mean 5s?" },
    { "--set", "body-max=1X", NULL, 78, "--set body_max: expected a size", "" },
    { "--set", "ttl=30", NULL, 78, "--set ttl: expected a duration from 1s to 3650d", "did you mean 30s?" },
    { NULL, NULL, "NONBIS_TTL=30", 78, "NONBIS_TTL: expected a duration", "the unit is missing" },
    { NULL, NULL, "NONBIS_TTL=", 78, "NONBIS_TTL: expected a duration", "got \"\"" },
    { "--listen", "127.0.0.1", NULL, 78, "--listen: expected ADDRESS:PORT", "got \"127.0.0.1\"" },
    { "--listen", "8620", NULL, 78, "--listen: expected ADDRESS:PORT", "" },
    { "--listen", ":8620", NULL, 78, "--listen: expected ADDRESS:PORT", "" },
    { "--listen", "127.0.0.1:65536", NULL, 78, "--listen: expected", "port from 0 to 65535" },
    { "--listen", "::1:8620", NULL, 78, "--listen: expected", "[IPV6]:PORT" },
    { "--listen", "off", NULL, 78, "--listen: expected ADDRESS:PORT", "" },
    { "--listen=", NULL, NULL, 78, "--listen: expected a value, got nothing", "" },
    { "--admin", "no", NULL, 78, "--admin: expected off, or ADDRESS:PORT", "" },
    { "--upstream", "127.0.0.1:3000", NULL, 78, "--upstream: expected http://HOST[:PORT]", "" },
    { "--upstream", "http://", NULL, 78, "--upstream: expected http://HOST", "" },
    { "--upstream", "unix:relative", NULL, 78, "--upstream: expected http://HOST", "unix:/PATH" },
    { "--store", "a\nb", NULL, 78, "--store: expected at most 4096 bytes without control characters",
      "got \"a\\x0ab\"" },
    { "--log-level", "verbose", NULL, 78, "--log-level: expected error, warn, info or debug, got \"verbose\"", "" },
    { "--log-level", "warning", NULL, 78, "--log-level: expected error, warn", "" },
    { "--log-level", "Info", NULL, 78, "--log-level: expected", "did you mean info?" },
    { "--log-format", "xml", NULL, 78, "--log-format: expected text or json", "" },
    { "--set", "allow_close_delimited=true", NULL, 78, "--set allow_close_delimited: expected off or on",
      "got \"true\"; did you mean on?" },
    { "--set", "allow_close_delimited=False", NULL, 78, "--set allow_close_delimited: expected off or on",
      "did you mean off?" },
    { "--set", "connections_max=0", NULL, 78, "--set connections_max: expected a whole number from 1 to 1000000", "" },
    { "--set", "tenant=X-Org", NULL, 78, "--set tenant: expected none or header:NAME", "" },
    { "--set", "tenant=header:", NULL, 78, "--set tenant: expected header:NAME", "" },
    { "--set", "tenant=header:X Org", NULL, 78, "--set tenant: expected header:NAME", "" },
    { "--set", "tenant=header:idempotency-key", NULL, 78, "--set tenant: expected header:NAME", "" },
    { "--set", "guard=X API", NULL, 78, "--set guard: expected field names separated by commas", "" },
    { "--set", "guard=,", NULL, 78, "--set guard: expected field names separated by commas", "got \",\"" },
    { "--set", "problem_prefix=urn:a b", NULL, 78, "--set problem_prefix: expected the start of a URI", "" },
    { "--set", "problem_prefix=urn:\"", NULL, 78, "--set problem_prefix: expected the start of a URI", "" },
    { "--set", "request_header_max=8193", NULL, 78, "--set request_header_max: expected a size from 1KiB to 8KiB", "" },
    { "--set", "response_header_max=7KiB", NULL, 78, "--set response_header_max: expected a size from 1KiB to 6KiB",
      "" },
    /* relations */
    { "--set", "answer_timeout=121s", NULL, 78,
      "answer_timeout (121s, flag --set): expected at most hard_timeout (120s, default)", "" },
    { "--set", "answer_timeout=2s", "NONBIS_HARD_TIMEOUT=1s", 78,
      "answer_timeout (2s, flag --set): expected at most hard_timeout (1s, environment NONBIS_HARD_TIMEOUT)", "" },
    { "--set", "hard_timeout=1s", "NONBIS_ANSWER_TIMEOUT=x", 78, "NONBIS_ANSWER_TIMEOUT: ", "" }, /* and no more */
    { "--set", "ttl=721h", NULL, 78, "ttl (721h, flag --set): expected at most tombstone_ttl (720h, default)", "" },
    { "--set", "tenant=header:x-api-key", NULL, 78, "guard (Authorization,X-API-Key, default): expected a list without",
      "tenant (header:x-api-key, flag --set)" },
    /* routes */
    { "--route", "post /x", NULL, 78, "--route \"post /x\": expected METHOD PATH", "capitals" },
    { "--route=", NULL, NULL, 78, "--route \"\": expected METHOD PATH", "" },
    { "--route", "POST /x hard_timeout=5s", "NONBIS_ANSWER_TIMEOUT=6s", 78, "--route \"POST /x hard_timeout=5s\": ",
      "expected answer_timeout (6s) to be at most hard_timeout (5s); give the route its own answer_timeout" },
    { "--route", "POST /x ttl=800h", NULL, 78, "--route \"POST /x ttl=800h\": ", "to be at most tombstone_ttl (720h)" },
};

START_TEST(every_mistake_is_told_in_one_line_with_its_source)
{
    const char *environment[] = { "HOME=/h", wrong[_i].variable, NULL };
    const char *flags[] = { UPSTREAM, wrong[_i].flag, wrong[_i].flag != NULL ? wrong[_i].value : NULL, NULL };
    int code = read_all(environment, flags);
    ck_assert_msg(code == wrong[_i].code, "%d: %s", code, errors);
    ck_assert_msg(strncmp(errors, wrong[_i].source, strlen(wrong[_i].source)) == 0, "%s", errors);
    ck_assert_msg(strstr(errors, wrong[_i].word) != NULL, "%s", errors);
    ck_assert_msg(line_count(errors) == 1 && errors[strlen(errors) - 1] == '\n', "%s", errors);
    settings_fini(&settings);
}
END_TEST

START_TEST(all_mistakes_are_told_in_one_run_each_once)
{
    const char *const environment[] = { "NONBIS_TTTL=1", "NONBIS_TTL=1", "NONBIS_HARD_TIMEOUT=x", NULL };
    /* The refused hard_timeout is not compared with anything, and routes say nothing more of it. */
    const char *const flags[] = { "stray",  "--lisen", "127.0.0.1:1",        "--set",
                                  "nope=1", "--set",   "answer_timeout=10m", "--route",
                                  "POST x", "--route", "POST /a key=no",     NULL };
    ck_assert_int_eq(read_all(environment, flags), 64); /* wrong usage is told first by the code */
    ck_assert_msg(line_count(errors) == 9, "%s", errors);
    const char *const lines[] = {
        "NONBIS_TTTL: no setting",   "NONBIS_TTL: expected",      "NONBIS_HARD_TIMEOUT: expected",
        "\"stray\": stray argument", "\"--lisen\": unknown flag", "--set \"nope\": no setting",
        "store: no place",           "--route \"POST x\": ",      "--route \"POST /a key=no\": "
    };
    const char *at = errors;
    for (size_t i = 0; i < COUNT(lines); i++) {
        ck_assert_msg(strncmp(at, lines[i], strlen(lines[i])) == 0, "line %zu: %s", i, at);
        at = strchr(at, '\n') + 1;
    }
    settings_fini(&settings);
}
END_TEST

START_TEST(a_refused_value_is_told_even_when_a_stronger_source_wins)
{
    const char *const environment[] = { "HOME=/h", "NONBIS_BODY_MAX=big", NULL };
    ck_assert_int_eq(read_all(environment, LIST(UPSTREAM, "--set", "body_max=2KiB")), 78);
    ck_assert_msg(strncmp(errors, "NONBIS_BODY_MAX: ", 17) == 0, "%s", errors);
    settings_fini(&settings);
}
END_TEST

/* A flag that could not be read may have been meant to be --upstream: then nothing is said about that. */
START_TEST(a_missing_handler_is_told_unless_the_command_line_was_not_understood)
{
    ck_assert_int_eq(read_all(LIST("HOME=/h"), LIST("--set", "ttl=1")), 78);
    ck_assert_msg(line_count(errors) == 2 && strstr(errors, "upstream: expected a handler") != NULL, "%s", errors);
    settings_fini(&settings);
    ck_assert_int_eq(read_all(LIST("HOME=/h"), LIST("--upstrem", "http://127.0.0.1:1")), 64);
    ck_assert_msg(line_count(errors) == 1, "%s", errors);
    settings_fini(&settings);
    ck_assert_int_eq(read_all(LIST("HOME=/h"), LIST("--print-config")), 0);
    settings_fini(&settings);
    ck_assert_int_eq(read_all(LIST("HOME=/h"), LIST("--check", "--print-config")), 78);
    ck_assert_msg(strstr(errors, "upstream: expected a handler") != NULL, "%s", errors);
    settings_fini(&settings);
}
END_TEST

SUITE(settings_mistakes)
{
    Suite *suite = suite_create("config/mistakes");
    CASE_LOOP(suite, every_mistake_is_told_in_one_line_with_its_source, COUNT(wrong));
    CASE(suite, all_mistakes_are_told_in_one_run_each_once);
    CASE(suite, a_refused_value_is_told_even_when_a_stronger_source_wins);
    CASE(suite, a_missing_handler_is_told_unless_the_command_line_was_not_understood);
    return suite;
}
