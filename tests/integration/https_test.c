/* https_test.c - the library for https is there for those who name their handler by https, and for nobody else. */
#include "tests/support/rig.h"

#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_MAX = 16 * 1024 };

/* Whether a file whose path holds `name` is mapped into the server. */
static bool server_holds(const struct daemon *nonbis, const char *name)
{
    char path[64], line[1000];
    bool found = false;
    (void) snprintf(path, sizeof path, "/proc/%d/maps", (int) nonbis->pid);
    FILE *maps = fopen(path, "re");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        found = found || strstr(line, name) != NULL;
    }
    (void) fclose(maps);
    return found;
}

START_TEST(a_server_whose_handler_is_not_named_by_https_does_without_libcurl)
{
    struct rig rig;
    rig_start(&rig, NULL);
    struct http_answer answer = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(answer, 200, "executed");
    http_answer_free(&answer);
    ck_assert(server_holds(&rig.nonbis, "/libsqlite3.so")); /* so the look sees what there is */
    ck_assert(!server_holds(&rig.nonbis, "/libcurl"));
    ck_assert(!server_holds(&rig.nonbis, "/libssl"));
    ck_assert(!server_holds(&rig.nonbis, "/libcrypto"));
    rig_end(&rig);
}
END_TEST

START_TEST(a_server_whose_handler_is_named_by_https_loads_libcurl_at_its_start)
{
    struct daemon nonbis;
    int exit_code = 0;
    const char *const arguments[] = { "--upstream", "https://127.0.0.1:1", "--listen", "127.0.0.1:0",
                                      "--admin",    "127.0.0.1:0",         "--store",  "memory",
                                      NULL };
    ck_assert(daemon_try(&nonbis, "nonbisd", arguments, &exit_code));
    ck_assert(server_holds(&nonbis, "/libcurl.so.4"));
    ck_assert_int_eq(daemon_stop(&nonbis), 0);
}
END_TEST

/* A file of that name that is no library stands before the system's. Index 0: a start, 1: --check. */
START_TEST(https_without_its_library_is_refused_before_anything_is_started)
{
    char library[700], store[700], output[OUTPUT_MAX];
    (void) snprintf(library, sizeof library, "%s/libcurl.so.4", daemon_folder());
    (void) snprintf(store, sizeof store, "%s/n.db", daemon_folder());
    FILE *file = fopen(library, "we");
    ck_assert_ptr_nonnull(file);
    (void) fclose(file);
    const char *const arguments[] = {
        "--upstream", "https://127.0.0.1:1",      "--listen", "127.0.0.1:0", "--admin", "off", "--store",
        store,        _i == 0 ? NULL : "--check", NULL
    };
    ck_assert_int_eq(setenv("LD_LIBRARY_PATH", daemon_folder(), 1), 0);
    int exit_code = daemon_run("nonbisd", arguments, output, sizeof output);
    ck_assert_int_eq(unsetenv("LD_LIBRARY_PATH"), 0);
    ck_assert_msg(exit_code == 78, "exit code %d: %s", exit_code, output);
    ck_assert_msg(strstr(output, "--upstream \"https://\" needs libcurl, which cannot be used: ") != NULL &&
                      strstr(output, "libcurl.so.4: file too short; install it (Debian and Ubuntu: the package "
                                     "libcurl4), or name the handler by http:// or unix:") != NULL,
                  "%s", output);
    ck_assert_int_ne(access(store, F_OK), 0);
    const char *const plain[] = { "--upstream", "http://127.0.0.1:1", "--check", NULL };
    ck_assert_int_eq(setenv("LD_LIBRARY_PATH", daemon_folder(), 1), 0);
    exit_code = daemon_run("nonbisd", plain, output, sizeof output);
    ck_assert_int_eq(unsetenv("LD_LIBRARY_PATH"), 0);
    ck_assert_msg(exit_code == 0, "exit code %d: %s", exit_code, output);
}
END_TEST

SUITE(https)
{
    Suite *suite = suite_create("integration/https");
    CASE(suite, a_server_whose_handler_is_not_named_by_https_does_without_libcurl);
    CASE(suite, a_server_whose_handler_is_named_by_https_loads_libcurl_at_its_start);
    CASE_LOOP(suite, https_without_its_library_is_refused_before_anything_is_started, 2);
    return suite;
}
