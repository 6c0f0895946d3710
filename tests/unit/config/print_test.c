/* --print-config, which must read back to the same, and --help, which must tell of everything. */
#include "server/config/settings.h"
#include "tests/support/suite.h"

static struct settings settings;
static enum settings_action action;
static char errors[16384];

static int read_flags(int count, char **flags, char *const *environment)
{
    char *argv[200] = { (char *) (uintptr_t) "nonbisd" };
    for (int i = 0; i < count; i++) {
        argv[i + 1] = flags[i];
    }
    struct buf told;
    buf_init(&told, sizeof(errors) - 1);
    int code = settings_read(&settings, &action, count + 1, argv, environment, &told);
    snprintf(errors, sizeof(errors), "%.*s", (int) told.len, told.len > 0 ? told.ptr : "");
    buf_fini(&told);
    return code;
}

/* What settings_print (or settings_help, for NULL) writes; the caller frees it. */
static char *printed(const struct settings *of)
{
    struct buf out;
    buf_init(&out, 65536);
    if (of != NULL) {
        settings_print(of, &out);
    } else {
        settings_help(&out);
    }
    ck_assert(!out.failed);
    buf_append_bytes(&out, "", 1);
    return buf_take(&out, &(size_t){ 0 });
}

static char *text(const char *literal)
{
    return (char *) (uintptr_t) literal;
}

START_TEST(every_value_is_printed_with_its_source)
{
    char *environment[] = { text("STATE_DIRECTORY=/var/lib/nonbis"), text("NONBIS_TTL=36h"), text("NONBIS_GUARD="),
                            NULL };
    char *flags[] = { text("--upstream=http://h"),
                      text("--set=listen=127.0.0.1:1"),
                      text("--log-level"),
                      text("debug"),
                      text("--route"),
                      text("POST /orders/ key=optional release=423,409 replay_drop=Server") };
    ck_assert_msg(read_flags(6, flags, environment) == 0, "%s", errors);
    char *out = printed(&settings);
    ck_assert_str_eq(out, "listen = 127.0.0.1:1  # flag --set\n"
                          "admin = 127.0.0.1:8621  # default\n"
                          "upstream = http://h  # flag --upstream\n"
                          "store = /var/lib/nonbis/nonbis.db  # default\n"
                          "server.loops = 1  # default\n"
                          "log_level = debug  # flag --log-level\n"
                          "log_format = text  # default\n"
                          "tenant = none  # default\n"
                          "guard = \"\"  # environment NONBIS_GUARD\n"
                          "ttl = 36h  # environment NONBIS_TTL\n"
                          "tombstone_ttl = 720h  # default\n"
                          "max_downtime = 24h  # default\n"
                          "connect_timeout = 2s  # default\n"
                          "answer_timeout = 30s  # default\n"
                          "hard_timeout = 120s  # default\n"
                          "passthrough_timeout = 60s  # default\n"
                          "header_deadline = 10s  # default\n"
                          "body_deadline = 60s  # default\n"
                          "client_idle = 75s  # default\n"
                          "upstream_idle = 1s  # default\n"
                          "drain_timeout = 30s  # default\n"
                          "body_max = 1MiB  # default\n"
                          "response_keep_max = 1MiB  # default\n"
                          "request_header_max = 8KiB  # default\n"
                          "response_header_max = 6KiB  # default\n"
                          "connections_max = 4096  # default\n"
                          "running_max = 1024  # default\n"
                          "store_queue_max = 4096  # default\n"
                          "wait_max = 30s  # default\n"
                          "waiters_per_key = 64  # default\n"
                          "waiters_per_tenant = 128  # default\n"
                          "waiters_max = 512  # default\n"
                          "tenant_rate = 0  # default\n"
                          "tenant_burst = 0  # default\n"
                          "tenant_in_flight = 0  # default\n"
                          "replay_cache = 32MiB  # default\n"
                          "store_reserve = 16MiB  # default\n"
                          "sweep_batch = 100  # default\n"
                          "allow_close_delimited = off  # default\n"
                          "problem_prefix = urn:nonbis:problem:  # default\n"
                          "route = \"POST /orders\" key=optional ttl=36h tombstone_ttl=720h answer_timeout=30s "
                          "hard_timeout=120s release=409,423 replay_drop=Server  # flag --route\n");
    free(out);
    settings_fini(&settings);
}
END_TEST

START_TEST(default_routes_are_printed_as_they_are_in_force)
{
    char *environment[] = { text("HOME=/h"), NULL };
    char *flags[] = { text("--print-config") };
    ck_assert_int_eq(read_flags(1, flags, environment), 0);
    char *out = printed(&settings);
    ck_assert_ptr_ne(strstr(out, "\nupstream = \"\"  # default\n"), NULL);
    const char *routes =
        "\nroute = \"POST /*\" key=required ttl=24h tombstone_ttl=720h answer_timeout=30s hard_timeout=120s"
        "  # default\n"
        "route = \"PATCH /*\" key=required ttl=24h tombstone_ttl=720h answer_timeout=30s hard_timeout=120s"
        "  # default\n";
    ck_assert_msg(strstr(out, routes) != NULL, "%s", out);
    free(out);
    settings_fini(&settings);
}
END_TEST

/* Cuts the sources off. */
static void strip_sources(char *out)
{
    char *to = out;
    for (char *line = out; *line != '\0';) {
        char *end = strchr(line, '\n');
        char *comment = NULL;
        for (char *at = line; (at = strstr(at, "  # ")) != NULL && at < end; at++) {
            comment = at; /* the last one: values may hold a # */
        }
        ck_assert_ptr_ne(comment, NULL);
        memmove(to, line, (size_t) (comment - line));
        to += comment - line;
        *to++ = '\n';
        line = end + 1;
    }
    *to = '\0';
}

/* Feeds every "name = value" line as --set and every route line as --route; returns how many. */
static int flags_from(char *out, char **flags, size_t max)
{
    int count = 0;
    for (char *line = strtok_r(out, "\n", &out); line != NULL; line = strtok_r(NULL, "\n", &out)) {
        ck_assert_uint_lt((size_t) count + 2, max);
        bool route = strncmp(line, "route = ", 8) == 0;
        flags[count++] = text(route ? "--route" : "--set");
        char *equals = strstr(line, " = ");
        if (!route) { /* "name = value" -> "name=value" */
            *equals = '=';
            memmove(equals + 1, equals + 3, strlen(equals + 3) + 1);
        }
        flags[count++] = route ? line + 8 : line;
    }
    return count;
}

static const char *const given[][12] = {
    { "--upstream=http://127.0.0.1:3000" },
    { "--upstream=unix:/run/a b  # c", "--store=/var/lib/a  # default/x y.db", "--set=guard=", "--admin=off" },
    { "--upstream=https://h:1", "--set=ttl=40d", "--set=tombstone_ttl=1001h", "--set=answer_timeout=61s",
      "--set=hard_timeout=61s", "--set=body_max=1025", "--set=response_keep_max=0", "--set=upstream_idle=0ms",
      "--set=tenant=header:X-Org", "--set=guard= Cookie , X-B,", "--log-format=json" },
    { "--upstream=http://h",
      "--route=POST /a//b%2a/* key=optional ttl=90m release=401,403 unknown=500,501 replay_drop=A,B",
      "--route=* /c/ answer_timeout=250ms hard_timeout=1500ms", "--route=PATCH /*" },
    { "--upstream=http://h", "--set=allow_close_delimited=on", "--set=log_level=error",
      "--set=problem_prefix=https://p.example/#" },
};

START_TEST(what_is_printed_reads_back_to_the_same_settings)
{
    char *environment[] = { text("HOME=/h"), NULL };
    char *nothing[] = { NULL };
    char *flags[200];
    int count = 0;
    while (given[_i][count] != NULL) {
        flags[count] = text(given[_i][count]);
        count++;
    }
    ck_assert_msg(read_flags(count, flags, environment) == 0, "%s", errors);
    char *first = printed(&settings);
    unsigned routes = settings.routes.count;
    strip_sources(first);
    char *work = strdup(first);
    settings_fini(&settings);

    count = flags_from(work, flags, 200);
    ck_assert_int_eq(count, 2 * (40 + (int) routes));
    ck_assert_msg(read_flags(count, flags, nothing) == 0, "%s", errors);
    char *second = printed(&settings);
    ck_assert_ptr_ne(strstr(second, "# flag --set\n"), NULL);
    ck_assert_ptr_eq(strstr(second, "# default\n"), NULL);
    strip_sources(second);
    ck_assert_str_eq(second, first);
    settings_fini(&settings);
    free(first);
    free(second);
    free(work);
}
END_TEST

START_TEST(a_hard_timeout_alone_lowers_the_default_of_answer_timeout)
{
    char *environment[] = { text("HOME=/h"), text("NONBIS_HARD_TIMEOUT=5s"), NULL };
    char *flags[] = { text("--print-config") };
    ck_assert_msg(read_flags(1, flags, environment) == 0, "%s", errors);
    char *out = printed(&settings);
    ck_assert_ptr_nonnull(strstr(out, "\nanswer_timeout = 5s  # default\n"));
    ck_assert_ptr_nonnull(strstr(out, " answer_timeout=5s hard_timeout=5s"));
    free(out);
    settings_fini(&settings);
}
END_TEST

START_TEST(defaults_are_printed_as_the_table_writes_them)
{
    char *environment[] = { text("HOME=/h"), NULL };
    char *flags[] = { text("--print-config") };
    ck_assert_int_eq(read_flags(1, flags, environment), 0);
    char *out = printed(&settings);
    for (size_t i = 0; i < setting_table_count; i++) {
        const struct setting_row *row = &setting_table[i];
        bool computed = strcmp(row->name, "store") == 0 || strcmp(row->name, "upstream") == 0;
        char line[200];
        snprintf(line, sizeof(line), "%s = %s  # default\n", row->name, row->default_text);
        ck_assert_msg(computed || strstr(out, line) != NULL, "%s", line);
    }
    free(out);
    settings_fini(&settings);
}
END_TEST

START_TEST(help_tells_of_every_setting_and_flag_within_110_columns)
{
    char *help = printed(NULL);
    for (size_t i = 0; i < setting_table_count; i++) {
        char words[200];
        snprintf(words, sizeof(words), "\n  %s ", setting_table[i].name);
        ck_assert_msg(strstr(help, words) != NULL, "%s", words);
        ck_assert_msg(strstr(help, setting_table[i].help) != NULL, "%s", setting_table[i].help);
        snprintf(words, sizeof(words), "\n  %s VALUE ", setting_table[i].flag);
        ck_assert_msg(setting_table[i].flag == NULL || strstr(help, words) != NULL, "%s", words);
    }
    const char *const words[] = { "usage: nonbisd",
                                  "--route TEXT",
                                  "--set NAME=VALUE",
                                  "--check",
                                  "--print-config",
                                  "--version",
                                  "--help",
                                  "-h",
                                  "-V",
                                  "neither the store nor",
                                  "the start line on stderr",
                                  "exit codes:",
                                  "1 a second signal",
                                  "64",
                                  "69",
                                  "73",
                                  "74",
                                  "78",
                                  "signals:",
                                  "TERM, INT",
                                  "\n  body_max              1MiB (1KiB to 64MiB)      longest body",
                                  "\n  log_level             info (error|warn|info|debug)\n" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ck_assert_msg(strstr(help, words[i]) != NULL, "%s", words[i]);
    }
    for (const char *line = help; *line != '\0'; line = strchr(line, '\n') + 1) {
        ck_assert_msg(strcspn(line, "\n") <= 110, "%.*s", (int) strcspn(line, "\n"), line);
    }
    free(help);
}
END_TEST

/* A name with a dot in it cannot be the name of a test. */
static bool name_is(const char *test, const char *name)
{
    while (*name != '\0' && *test == (*name == '.' ? '_' : *name)) {
        test++;
        name++;
    }
    return *test == *name;
}

START_TEST(every_setting_has_help_and_a_test_of_its_effect)
{
    for (size_t i = 0; i < setting_table_count; i++) {
        const struct setting_row *row = &setting_table[i];
        ck_assert_msg(row->help != NULL && strlen(row->help) > 0 && strlen(row->help) <= 60, "%s", row->name);
        ck_assert_msg(row->test != NULL && strncmp(row->test, "setting_", 8) == 0 && name_is(row->test + 8, row->name),
                      "%s", row->name);
        ck_assert_msg(row->min <= row->max, "%s", row->name);
    }
}
END_TEST

SUITE(settings_print)
{
    Suite *suite = suite_create("config/print");
    CASE(suite, every_value_is_printed_with_its_source);
    CASE(suite, default_routes_are_printed_as_they_are_in_force);
    CASE_LOOP(suite, what_is_printed_reads_back_to_the_same_settings, sizeof(given) / sizeof(given[0]));
    CASE(suite, a_hard_timeout_alone_lowers_the_default_of_answer_timeout);
    CASE(suite, defaults_are_printed_as_the_table_writes_them);
    CASE(suite, help_tells_of_every_setting_and_flag_within_110_columns);
    CASE(suite, every_setting_has_help_and_a_test_of_its_effect);
    return suite;
}
